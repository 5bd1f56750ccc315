"""The ring of stages that feeds a tensor core: who waits for whom, and what happens if nobody does.

    run(Ring(stages=4, blocks=2, tiles=(3, 3)), seed=0)            # Outcome: "done", in so many steps
    run(Ring(stages=4, blocks=2, tiles=(3, 3), remote_reports=False), seed=0).problem

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
from collections.abc import Iterator
from dataclasses import dataclass, field


class Wrong(Exception):
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
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}, but it must be a whole number above 0.")
        if any(isinstance(tile, bool) or not isinstance(tile, int) or tile < 0 for tile in self.tiles):
            raise ValueError(f"tiles is {self.tiles!r}, but it must hold whole numbers, 0 or more.")

    @property
    def visits(self) -> int:
        """How often a stage is filled in all: blocks of K of all tiles."""
        return sum(self.tiles)


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `problem` is None, or what went wrong in a sentence."""

    problem: str | None
    steps: int

    def __str__(self) -> str:
        return self.problem or f"done in {self.steps} steps"


@dataclass
class _Barrier:
    """An mbarrier: arrivals and bytes that the present phase still needs."""

    arrivals: int
    missing: int = 0
    bytes: int = 0
    phase: int = 0
    owner: _Block | None = None

    def __post_init__(self) -> None:
        self.missing = self.arrivals

    def arrive(self, expected: int = 0) -> None:
        if self.owner is not None and self.owner.ended:
            raise Wrong("A signal went to a block that had ended.")
        if self.missing == 0:
            raise Wrong("A barrier got more arrivals than its phase has.")
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


@dataclass
class _Block:
    """A thread block: its barriers, what its stages hold, and who reads them."""

    full: list[_Barrier]
    empty: list[_Barrier]
    held: list[dict[int, int]]  # for each stage: what lies in each part
    readers: list[int]
    ended: bool = False


@dataclass
class _Cluster:
    ring: Ring
    blocks: list[_Block] = field(default_factory=list)
    copies: list[tuple[int, int, int, int]] = field(default_factory=list)  # block, stage, part, visit
    through: Counter[int] = field(
        default_factory=Counter
    )  # of each block, those who are through with their work

    def __post_init__(self) -> None:
        ring = self.ring
        reports = ring.consumers * (ring.blocks if ring.remote_reports else 1)
        for _ in range(ring.blocks):
            block = _Block([], [], [{} for _ in range(ring.stages)], [0] * ring.stages)
            block.full = [_Barrier(1, owner=block) for _ in range(ring.stages)]
            block.empty = [_Barrier(reports, owner=block) for _ in range(ring.stages)]
            self.blocks.append(block)

    # Actors are generators. What they yield is a question: they go on when it is answered with True.

    def producer(self, rank: int) -> Iterator:
        block = self.blocks[rank]
        for visit in range(self.ring.visits):
            stage, parity = self._where(visit)
            yield lambda stage=stage, parity=parity: block.empty[stage].is_over(parity ^ 1)
            yield None
            block.full[stage].arrive(expected=self.ring.blocks + 1)  # a part of A from each block, and B
            yield None
            for other in range(self.ring.blocks):
                self.copies.append((other, stage, rank, visit))
            yield None
            self.copies.append((rank, stage, self.ring.blocks, visit))
        yield from self._end(rank)

    def consumer(self, rank: int) -> Iterator:
        block = self.blocks[rank]
        for visit in range(self.ring.visits):
            stage, parity = self._where(visit)
            yield lambda stage=stage, parity=parity: block.full[stage].is_over(parity)
            block.readers[stage] += 1
            yield None
            found = [block.held[stage].get(part) for part in range(self.ring.blocks + 1)]
            if found != [visit] * len(found):
                raise Wrong(f"A warp wanted block {visit} of K and found {found} in stage {stage}.")
            yield None
            block.readers[stage] -= 1
            for other in range(self.ring.blocks) if self.ring.remote_reports else (rank,):
                yield None
                self.blocks[other].empty[stage].arrive()
        yield from self._end(rank)

    def _where(self, visit: int) -> tuple[int, int]:
        """Return the stage of a visit, and the parity of its lap."""
        return visit % self.ring.stages, visit // self.ring.stages % 2 if self.ring.flips else 0

    def _end(self, rank: int) -> Iterator:
        self.through[rank] += 1
        if self.ring.meets_at_the_end:
            yield lambda: self.through.total() == self.ring.blocks * (1 + self.ring.consumers)
        else:
            yield lambda: self.through[rank] == 1 + self.ring.consumers
        self.blocks[rank].ended = True

    def deliver(self, number: int) -> None:
        rank, stage, part, visit = self.copies.pop(number)
        block = self.blocks[rank]
        if block.ended:
            raise Wrong("A copy came to a block that had ended.")
        if block.readers[stage]:
            raise Wrong(f"Stage {stage} was written while a warp read it.")
        block.held[stage][part] = visit
        block.full[stage].deliver()


def run(ring: Ring, seed: int = 0, most_steps: int = 100_000) -> Outcome:
    """Let everybody take steps in a random order until all have ended; return how it went."""
    rng = random.Random(seed)
    cluster = _Cluster(ring)
    actors = [cluster.producer(rank) for rank in range(ring.blocks)]
    actors += [cluster.consumer(rank) for rank in range(ring.blocks) for _ in range(ring.consumers)]
    waits = {number: next(actor, None) for number, actor in enumerate(actors)}
    steps = 0
    try:
        while waits and steps < most_steps:
            able = [number for number, wait in waits.items() if wait is None or wait()]
            choices = len(able) + len(cluster.copies)
            if not choices:
                return Outcome(f"Everybody waits: {len(waits)} of {len(actors)} never end.", steps)
            steps += 1
            choice = rng.randrange(choices)
            if choice >= len(able):
                cluster.deliver(choice - len(able))
                continue
            try:
                waits[able[choice]] = next(actors[able[choice]])
            except StopIteration:
                del waits[able[choice]]
    except Wrong as problem:
        return Outcome(str(problem), steps)
    if waits:
        return Outcome(f"It did not end within {most_steps} steps.", steps)
    return Outcome(None, steps)
