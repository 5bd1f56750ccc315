"""Messages between ranks, counted: the three calls that the chapter's algorithms are written in.

    wire = Wire.of_group()              # in a rank of `launch.run` or of torchrun
    wire.send(block, to=1)              # arrays of NumPy, float32, float64 or whole numbers
    block = wire.receive(like, source=0)
    block = wire.exchange(block, to=right, source=left)   # both at once: two sends could wait for each other

On one machine `rehearse` plays the same function on threads: no process, no port, every message written down.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from course_lib.arguments import number, whole

Array = np.ndarray


class Message(NamedTuple):
    """One message: between which ranks, and how many bytes.

    In a rehearsal `step` counts from 0 what has to come after each other; between processes, which share no
    clock, it is the sender's how-many-eth message.
    """

    step: int
    sender: int
    receiver: int
    nbytes: int


class Wire:
    """Sends and receives arrays between the ranks of a group, and counts them.

    `rank` and `size` are those of the group; `sent` lists this rank's messages.
    """

    def __init__(self, carrier: Any, members: Sequence[int] | None = None, sent: list | None = None) -> None:
        self._carrier = carrier
        self.members = list(range(carrier.size)) if members is None else list(members)
        if carrier.rank not in self.members:
            raise ValueError(f"Rank {carrier.rank} is not among the members {self.members} of this group.")
        self.rank = self.members.index(carrier.rank)
        self.size = len(self.members)
        self.sent: list[Message] = [] if sent is None else sent

    @classmethod
    def of_group(cls) -> Wire:
        """Return the wire of all ranks of torch.distributed, which must have been initialised."""
        return cls(_Torch())

    def among(self, members: Sequence[int]) -> Wire:
        """Return the wire of a part of this group (a row of a grid, a rack): the same messages' account."""
        return Wire(self._carrier, [self.members[member] for member in members], self.sent)

    def send(self, x: Array, to: int) -> None:
        """Send x to a rank of the group; return when it may be changed again."""
        self.start_send(x, to)()

    def start_send(self, x: Array, to: int) -> Callable[[], None]:
        """Begin to send x; return what waits until it may be changed again. The sender goes on."""
        return self._carrier.start_send(self._counted(x, to), self.members[to])

    def receive(self, like: Array, source: int) -> Array:
        """Return a new array of the shape and dtype of `like`, from a rank of the group."""
        received = np.empty(like.shape, like.dtype)
        self._carrier.start_receive(received, self.members[self._known(source)])()
        return received

    def exchange(self, x: Array, to: int, source: int, like: Array | None = None) -> Array:
        """Send x and receive from `source` what is like x (or `like`), both at the same time."""
        received = np.empty_like(x if like is None else like, order="C")
        arrived = self._carrier.start_receive(received, self.members[self._known(source)])  # first: gloo
        left = self._carrier.start_send(self._counted(x, to), self.members[to])  # is half duplex otherwise
        arrived()
        left()
        return received

    @property
    def bytes_sent(self) -> int:
        """Bytes of all arrays that this rank has sent."""
        return sum(message.nbytes for message in self.sent)

    def _counted(self, x: Array, to: int) -> Array:
        self._known(to)
        x = np.asarray(x, order="C")
        if x.dtype.kind not in "biufc":  # an object's bytes lie elsewhere, where nobody counts them
            raise ValueError(f"An array of {x.dtype} cannot be sent: give it a dtype of numbers.")
        me, other = self._carrier.rank, self.members[to]
        self.sent.append(Message(len(self.sent), me, other, x.nbytes))
        return x

    def _known(self, rank: int) -> int:
        whole("the other rank", rank, least=0, most=self.size - 1)
        if rank == self.rank:
            raise ValueError(f"Rank {rank} talks to itself: what it has need not be sent.")
        return rank


class _Torch:
    """Carries arrays by torch.distributed (gloo, or whatever the group was made with)."""

    def __init__(self) -> None:
        import torch
        import torch.distributed

        self._dist, self._tensor = torch.distributed, torch.from_numpy
        self.rank, self.size = self._dist.get_rank(), self._dist.get_world_size()

    def start_send(self, x: Array, to: int) -> Callable[[], None]:
        return self._dist.isend(self._tensor(x), to).wait

    def start_receive(self, out: Array, source: int) -> Callable[[], None]:
        return self._dist.irecv(self._tensor(out), source).wait


# -- a rehearsal on threads ---------------------------------------------------------------------------------


class Stuck(TimeoutError):
    """All ranks of a rehearsal wait for each other; the sentence says for whom."""


@dataclass
class Rehearsal:
    """What came of it: the ranks' values, every message, and when ranks waited for others and ended."""

    values: list[Any]
    messages: list[Message] = field(default_factory=list)
    waits: list[tuple[int, float, float]] = field(default_factory=list)  # (rank, from, to), s
    ends: list[float] = field(default_factory=list)  # of each rank, s

    @property
    def bytes_by_rank(self) -> list[int]:
        """Bytes that each rank sent."""
        return [
            sum(message.nbytes for message in self.messages if message.sender == rank)
            for rank in range(len(self.values))
        ]


def rehearse(
    function: Callable[..., Any], ranks: int = 4, *, time_limit_s: float = 10.0, **arguments: Any
) -> Rehearsal:
    """Call ``function(wire, **arguments)`` on every rank, as threads of this process.

    A send waits for its receiver, as it must be expected to: who relies on a buffer in between is found out.
    Raises Stuck when no rank can go on or the time is over, and whatever a rank raises. Ranks that wait then
    are ended; one that computes without end is not.
    """
    whole("ranks", ranks, most=256)
    number("time_limit_s", time_limit_s, above=0, most=600)
    problems: list[BaseException] = []
    stage = _Stage(ranks, problems)
    values: list[Any] = [None] * ranks
    wires = [Wire(_Threads(stage, rank)) for rank in range(ranks)]

    def play(rank: int) -> None:
        try:
            own = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in arguments.items()}
            values[rank] = function(wires[rank], **own)  # ranks share nothing
        except BaseException as problem:
            problems.append(problem)
        finally:
            stage.leave(rank)

    actors = [threading.Thread(target=play, args=(rank,), daemon=True) for rank in range(ranks)]
    until = time.monotonic() + time_limit_s
    try:
        for actor in actors:
            actor.start()
        for actor in actors:
            actor.join(max(0.0, until - time.monotonic()))
        if any(actor.is_alive() for actor in actors):
            raise Stuck(f"The time limit of {time_limit_s:g} s was reached: a rank computes without end.")
    except BaseException:  # an interrupted cell, too
        stage.close()
        raise
    if problems:
        raise next((problem for problem in problems if not isinstance(problem, Stuck)), problems[0])
    return Rehearsal(values, sorted(stage.messages), stage.waits, stage.ends)


@dataclass
class _Posted:
    """A send or a receive that has begun."""

    rank: int
    says: str  # "receives from rank 2"
    array: Array
    step: int  # the earliest it can be
    ended: threading.Event = field(default_factory=threading.Event)
    problem: Exception | None = None


class _Stage:
    """Where sends meet receives. Nobody is kept waiting when all who are left wait."""

    def __init__(self, ranks: int, problems: list[BaseException]) -> None:
        self.size = ranks
        self._problems = problems  # one that a rank catches counts, too: it tells more than was sent
        self._lock = threading.Lock()
        #: (sender, receiver) -> sends and receives that have not met
        self._open: dict[tuple[int, int], tuple[deque, deque]] = defaultdict(lambda: (deque(), deque()))
        self._waits: dict[int, _Posted] = {}
        self._here = ranks
        self._over: Stuck | None = None
        self._clock = [0] * ranks  # the step that each rank has come to
        self.messages: list[Message] = []
        self._begun = time.perf_counter()
        self.waits: list[tuple[int, float, float]] = []
        self.ends = [0.0] * ranks

    def post(self, rank: int, says: str, other: int, array: Array) -> Callable[[], None]:
        """Begin what the rank `says`, "sends to" or "receives from"; return what waits for its end."""
        posted = _Posted(rank, f"{says} rank {other}", array, self._clock[rank])
        sends_it = says == "sends to"
        with self._lock:
            sends, receives = self._open[(rank, other) if sends_it else (other, rank)]
            (sends if sends_it else receives).append(posted)
            if sends and receives:
                self._deliver(sends.popleft(), receives.popleft())
        return lambda: self._wait(posted)

    def leave(self, rank: int) -> None:
        self.ends[rank] = self._now()
        with self._lock:
            self._here -= 1
            self._end_if_stuck()

    def _now(self) -> float:
        return time.perf_counter() - self._begun

    def _deliver(self, send: _Posted, receive: _Posted) -> None:
        x, out = send.array, receive.array
        if (x.shape, x.dtype) != (out.shape, out.dtype):
            send.problem = receive.problem = ValueError(
                f"Rank {send.rank} sent {x.dtype} {x.shape}, but rank {receive.rank} waited for "
                f"{out.dtype} {out.shape}."
            )
            self._problems.append(send.problem)
        else:
            out[...] = x
        send.step = receive.step = max(send.step, receive.step)
        self.messages.append(Message(send.step, send.rank, receive.rank, x.nbytes))
        for posted in (send, receive):
            if self._waits.get(posted.rank) is posted:
                del self._waits[posted.rank]
            posted.ended.set()

    def _wait(self, posted: _Posted) -> None:
        with self._lock:
            if self._over and not posted.ended.is_set():
                raise self._over
            if not posted.ended.is_set():
                self._waits[posted.rank] = posted
                self._end_if_stuck()
        begun = self._now()
        posted.ended.wait()
        self.waits.append((posted.rank, begun, self._now()))
        self._clock[posted.rank] = max(self._clock[posted.rank], posted.step + 1)
        if posted.problem:
            raise posted.problem

    def _end_if_stuck(self) -> None:
        if not self._waits or len(self._waits) < self._here:
            return
        said = "; ".join(f"rank {rank} {self._waits[rank].says}" for rank in sorted(self._waits))
        self._end_all(Stuck(f"Nobody can go on: {said}."))

    def close(self) -> None:
        """End all that wait, and whoever would come to wait."""
        with self._lock:
            self._over = Stuck("The rehearsal is over.")
            self._end_all(self._over)

    def _end_all(self, stuck: Stuck) -> None:
        self._problems.append(stuck)
        for posted in self._waits.values():
            posted.problem = stuck
            posted.ended.set()
        self._waits.clear()


class _Threads:
    """Carries arrays between the threads of a rehearsal."""

    def __init__(self, stage: _Stage, rank: int) -> None:
        self._stage, self.rank, self.size = stage, rank, stage.size

    def start_send(self, x: Array, to: int) -> Callable[[], None]:
        return self._stage.post(self.rank, "sends to", to, x)

    def start_receive(self, out: Array, source: int) -> Callable[[], None]:
        return self._stage.post(self.rank, "receives from", source, out)
