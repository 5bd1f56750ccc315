"""The ring of stages that feeds a tensor core: who waits for whom, and what happens if nobody does.

    run(Ring(stages=4, blocks=2, tiles=(3, 3)), seed=0)            # Outcome: "done", in so many steps
    run(Ring(stages=4, blocks=2, tiles=(3, 3), remote_reports=False), seed=0).problem
    trace(Ring(stages=4), seed=0).moments                          # the same, with the state at every step

A cluster of `blocks` thread blocks computes tile after tile. In each block one thread orders copies (the
producer), and `consumers` warps multiply what has come. They meet at two mbarriers for each of `stages`
stages:

- full: one arrival, the producer's, which announces bytes; the phase ends when it and all bytes are there;
- empty: an arrival from every consumer of every block, because the producer writes into all of them.

The model has the rules of PTX's mbarrier: a phase ends when arrivals and bytes are complete, and it can be
asked only about the present phase and the one before - by parity. Copies arrive whenever they like. All
interleavings are allowed; `run` takes one at random. What is checked: a consumer finds in the stage what it
was promised, nothing is written while somebody reads, nobody waits for ever, and no signal is sent to a block
that has ended.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from course_lib.arguments import is_whole, whole


class ProtocolBroken(Exception):
    """The protocol let something happen that must not be."""


@dataclass(frozen=True)
class Ring:
    """What runs; raises ValueError for numbers that make no sense.

    `tiles` are the blocks of K of each tile, one after the other. The last three leave out what the protocol
    needs: reports to the other blocks, the flip of the parity after a lap, and the meeting at the end.
    """

    stages: int
    blocks: int = 1
    tiles: tuple[int, ...] = (4,)
    consumers: int = 2
    remote_reports: bool = True
    flips: bool = True
    meets_at_the_end: bool = True

    def __post_init__(self) -> None:
        for name in ("stages", "blocks", "consumers"):
            whole(name, getattr(self, name))
        if not all(is_whole(tile) and tile >= 0 for tile in self.tiles):
            raise ValueError(f"tiles is {self.tiles!r}, but it must hold whole numbers, 0 or more.")

    @property
    def visits(self) -> int:
        """How often a stage is filled in all: blocks of K of all tiles."""
        return sum(self.tiles)


@dataclass(frozen=True)
class RingOutcome:
    """How a run ended: `problem` is None, or what went wrong in a sentence."""

    problem: str | None
    steps: int

    def __str__(self) -> str:
        return self.problem or f"done in {self.steps} steps"


@dataclass(frozen=True)
class BarrierState:
    """An mbarrier at a moment: its open phase, and the arrivals and copies that this phase still needs.

    Copies stand for their bytes. Fewer than none are missing when one came before it was announced.
    """

    phase: int
    arrivals: int
    copies: int

    @property
    def parity(self) -> int:
        """The parity of the open phase; a wait for the other one passes."""
        return self.phase % 2


@dataclass(frozen=True)
class StageState:
    """A stage of a block: both barriers, the block of K in each part (None: nothing yet), and its readers.

    Parts are A's, one fetched by each block of the cluster, and B.
    """

    full: BarrierState
    empty: BarrierState
    held: tuple[int | None, ...]
    readers: int


@dataclass(frozen=True)
class ActorState:
    """A producer or a warp: the block of K (`visit`) that it is at, and what it waits for.

    `waits_for` is "full", "empty", "the others" at the end, or "" if it can simply go on; `is_able` says
    whether the wait is over.
    """

    name: str
    block: int
    visit: int
    stage: int
    waits_for: str
    parity: int
    is_able: bool
    has_ended: bool


@dataclass(frozen=True)
class RingMoment:
    """What has just been done, and the state after it: stages and actors of each block, copies on their way.

    `stages[block][stage]`; copies are (block, stage, part, visit).
    """

    did: str
    stages: tuple[tuple[StageState, ...], ...]
    actors: tuple[ActorState, ...]
    copies: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class RingRun:
    """A run with its moments: the first before any step, then one after each step, the failed one counted."""

    ring: Ring
    outcome: RingOutcome
    moments: tuple[RingMoment, ...]


@dataclass
class _Barrier:
    """An mbarrier: arrivals and bytes that the present phase still needs."""

    arrivals: int
    missing: int = 0
    bytes: int = 0
    phase: int = 0

    def __post_init__(self) -> None:
        self.missing = self.arrivals

    def arrive(self, expected: int = 0) -> None:
        if self.missing == 0:
            raise ProtocolBroken("A barrier got more arrivals than its phase has.")
        self.missing -= 1
        self.bytes += expected
        self._turn()

    def deliver(self) -> None:
        self.bytes -= 1
        self._turn()

    def _turn(self) -> None:
        if self.missing == 0 and self.bytes == 0:
            self.phase, self.missing = self.phase + 1, self.arrivals

    def is_over(self, parity: int) -> bool:
        """Is the phase of this parity over? The one before the present phase, that is."""
        return (self.phase - 1) % 2 == parity

    def state(self) -> BarrierState:
        return BarrierState(self.phase, self.missing, self.bytes)


@dataclass(frozen=True)
class _Wait:
    """What an actor waits for; `visit` is the block of K that it is at."""

    waits_for: str
    visit: int
    stage: int = 0
    parity: int = 0
    is_over: Callable[[], bool] = lambda: True


@dataclass
class _Stage:
    """A stage of a block: its barriers, what lies in each part, and how many read it."""

    full: _Barrier
    empty: _Barrier
    held: dict[int, int] = field(default_factory=dict)
    readers: int = 0


@dataclass
class _Block:
    """A thread block."""

    stages: list[_Stage]
    ended: bool = False


class _Run:
    """A run: the cluster's blocks, its actors by name, and what each waits for (none who has ended)."""

    def __init__(self, ring: Ring, seed: int) -> None:
        self.ring, self.rng = ring, random.Random(seed)
        self.did = "nothing yet"
        self.copies: list[tuple[int, int, int, int]] = []  # block, stage, part, visit
        self.through: Counter[int] = Counter()  # of each block, those who are through with their work
        reports = ring.consumers * (ring.blocks if ring.remote_reports else 1)
        ranks = range(ring.blocks)
        self.blocks = [
            _Block([_Stage(_Barrier(1), _Barrier(reports)) for _ in range(ring.stages)]) for _ in ranks
        ]
        consumers = [(rank, warp) for rank in ranks for warp in range(ring.consumers)]
        self.names = [*(("producer", rank) for rank in ranks)]
        self.names += [(f"warp {warp}", rank) for rank, warp in consumers]
        self.actors = [*map(self.producer, ranks), *(self.consumer(*one) for one in consumers)]
        self.waits = {number: next(actor, None) for number, actor in enumerate(self.actors)}

    def go(self, most_steps: int, after_each: Callable[[], Any] = lambda: None) -> RingOutcome:
        """Take steps in a random order; return how it went."""
        steps = 0
        try:
            while self.waits and steps < most_steps:
                able = [number for number, wait in self.waits.items() if wait.is_over()]
                choices = len(able) + len(self.copies)
                if not choices:
                    waiting = f"{len(self.waits)} of {len(self.actors)}"
                    return RingOutcome(f"Everybody waits: {waiting} never end.", steps)
                steps += 1
                choice = self.rng.randrange(choices)
                if choice >= len(able):
                    self.deliver(choice - len(able))
                else:
                    self._go_on(able[choice])
                after_each()
        except ProtocolBroken as problem:
            return RingOutcome(str(problem), steps)
        if self.waits:
            return RingOutcome(f"It did not end within {most_steps} steps.", steps)
        return RingOutcome(None, steps)

    def _go_on(self, number: int) -> None:
        try:
            self.waits[number] = next(self.actors[number])
        except StopIteration:
            del self.waits[number]

    # Actors are generators: they yield what they wait for, and go on when that is over. Before an actor does
    # something it says so in `did`.

    def producer(self, rank: int) -> Iterator[_Wait]:
        block, name = self.blocks[rank], self._name("producer", rank)
        for visit in range(self.ring.visits):
            stage, parity = self._where(visit)
            full, empty, earlier = block.stages[stage].full, block.stages[stage].empty, parity ^ 1
            goes_on = _Wait("", visit, stage)
            yield _Wait("empty", visit, stage, earlier, partial(empty.is_over, earlier))
            self.did = f"{name} sees that stage {stage} is empty"
            yield goes_on
            self.did = f"{name} announces block {visit} of K at full[{stage}]"
            full.arrive(expected=self.ring.blocks + 1)  # a part of A from each block, and B
            yield goes_on
            self.did = f"{name} orders {'its part of ' if self.ring.blocks > 1 else ''}A for stage {stage}"
            for other in range(self.ring.blocks):
                self.copies.append((other, stage, rank, visit))
            yield goes_on
            self.did = f"{name} orders B for stage {stage}"
            self.copies.append((rank, stage, self.ring.blocks, visit))
        yield from self._end(rank, name)

    def consumer(self, rank: int, warp: int) -> Iterator[_Wait]:
        block, name = self.blocks[rank], self._name(f"warp {warp}", rank)
        for visit in range(self.ring.visits):
            stage, parity = self._where(visit)
            own, goes_on = block.stages[stage], _Wait("", visit, stage)
            yield _Wait("full", visit, stage, parity, partial(own.full.is_over, parity))
            self.did = f"{name} sees that stage {stage} is full, and begins to read"
            own.readers += 1
            yield goes_on
            self.did = f"{name} reads block {visit} of K in stage {stage}"
            found = [own.held.get(part) for part in range(self.ring.blocks + 1)]
            if found != [visit] * len(found):
                raise ProtocolBroken(f"A warp wanted block {visit} of K and found {found} in stage {stage}.")
            yield goes_on
            self.did = f"{name} is through with stage {stage}"
            own.readers -= 1
            for other in range(self.ring.blocks) if self.ring.remote_reports else (rank,):
                yield goes_on
                self.did = f"{name} reports at empty[{stage}]" + self._of_block(other)
                if self.blocks[other].ended:
                    raise ProtocolBroken("A signal went to a block that had ended.")
                self.blocks[other].stages[stage].empty.arrive()
        yield from self._end(rank, name)

    def _where(self, visit: int) -> tuple[int, int]:
        """Return the stage of a visit, and the parity of its lap."""
        return visit % self.ring.stages, visit // self.ring.stages % 2 if self.ring.flips else 0

    def _of_block(self, rank: int) -> str:
        return f" of block {rank}" if self.ring.blocks > 1 else ""

    def _name(self, name: str, rank: int) -> str:
        return name + self._of_block(rank)

    def _end(self, rank: int, name: str) -> Iterator[_Wait]:
        self.through[rank] += 1
        ranks = range(self.ring.blocks) if self.ring.meets_at_the_end else [rank]
        everybody = len(ranks) * (1 + self.ring.consumers)
        yield _Wait(
            "the others",
            self.ring.visits,
            is_over=lambda: sum(self.through[one] for one in ranks) == everybody,
        )
        self.did = f"{name} ends"
        self.blocks[rank].ended = True

    def deliver(self, number: int) -> None:
        rank, stage, part, visit = self.copies.pop(number)
        into = self.blocks[rank].stages[stage]
        what = "B" if part == self.ring.blocks else f"A{self._of_block(part).replace(' of', ' from')}"
        self.did = f"{what} of block {visit} of K comes into stage {stage}{self._of_block(rank)}"
        if self.blocks[rank].ended:
            raise ProtocolBroken("A copy came to a block that had ended.")
        if into.readers:
            raise ProtocolBroken(f"Stage {stage} was written while a warp read it.")
        into.held[part] = visit
        into.full.deliver()

    def moment(self) -> RingMoment:
        """Return the present state."""
        parts = range(self.ring.blocks + 1)
        stages = tuple(
            tuple(
                StageState(one.full.state(), one.empty.state(), tuple(map(one.held.get, parts)), one.readers)
                for one in block.stages
            )
            for block in self.blocks
        )
        actors = []
        for number, (name, rank) in enumerate(self.names):
            wait = self.waits.get(number) or _Wait("", self.ring.visits)
            state = (wait.visit, wait.stage, wait.waits_for, wait.parity, wait.is_over())
            actors.append(ActorState(name, rank, *state, has_ended=number not in self.waits))
        return RingMoment(self.did, stages, tuple(actors), tuple(self.copies))


def run(ring: Ring, seed: int = 0, most_steps: int = 100_000) -> RingOutcome:
    """Let everybody take steps in a random order until all have ended; return how it went."""
    return _Run(ring, seed).go(most_steps)


def trace(ring: Ring, seed: int = 0, most_steps: int = 2000) -> RingRun:
    """Return the run of a seed step by step, as `run` takes it."""
    running = _Run(ring, seed)
    moments = [running.moment()]
    outcome = running.go(most_steps, lambda: moments.append(running.moment()))
    if len(moments) <= outcome.steps:  # the last step failed
        moments.append(running.moment())
    return RingRun(ring, outcome, tuple(moments))
