"""An answer that many ranks call at once: played on threads, its messages counted and compared.

`Task.collective` says that a task is of this kind. Each of its arguments lists an entry for each rank.

Threads share a memory, and whoever looks finds ways through it: freed blocks, addresses, tables. So each rank
calls a copy of the answer, and what it sends and receives is noted. The judge has ranks called once more with
the messages that they got, each in a process that has seen no other's numbers: it has to do the same again.
"""

from __future__ import annotations

import builtins
import copy
import ctypes
import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, NoReturn

import numpy as np

from course_lib.distributed.wire import Wire, rehearse
from course_lib.grading.compare import Mismatch, ResultComparison
from course_lib.grading.runner import LONGEST_CALL_S, unchanged

#: A little less than a call may take: so it is the rehearsal that says that a rank computes without end.
LONGEST_S = 0.9 * LONGEST_CALL_S
MOST_NOTED = 10_000  # messages; no task needs a tenth
Notes = tuple[list[tuple[int, np.ndarray]], list[tuple[int, np.ndarray]]]  # (to, sent), (source, received)
#: Each rank's value; (step, sender, receiver, bytes) of each message; each rank's notes, none of too many.
Played = tuple[list, np.ndarray, list[Notes]]


def play(function: Callable, args: Sequence[Sequence]) -> Played:
    """Call ``function(wire, *its entries of args)`` on every rank; no thread is left behind.

    Raises what a rank raises, and Stuck where all wait for each other.
    """
    actors: list[threading.Thread] = []
    ranks = len(args[0])
    own, notes = [_copied(function) for _ in range(ranks)], [([], []) for _ in range(ranks)]

    def part(wire: Wire) -> Any:
        actors.append(threading.current_thread())
        noted = Wire(_Noting(wire._carrier, *notes[wire.rank]))
        return own[wire.rank](noted, *(entries[wire.rank] for entries in args))

    try:
        played = rehearse(part, ranks, time_limit_s=LONGEST_S)
    finally:
        _end(actors)
    messages = np.array(played.messages, np.int64).reshape(-1, 4)
    return played.values, messages, notes if len(messages) <= MOST_NOTED else []


# --- alone with its messages --------------------------------------------------------------------------------


def part_again(
    function: Callable, rank: int, size: int, args: tuple, received: list[tuple[int, np.ndarray]]
) -> tuple[Any, list[tuple[int, np.ndarray]]] | None:
    """Call a rank alone with the messages that it got; return its value and what it sends.

    None if it waits for other messages, or not for all. What it sent and returned before is compared by the
    judge: it must not lie about where the answer runs.
    """
    messages = _Repeating(rank, size, deque(received))
    try:
        value = _copied(function)(Wire(messages), *args)
    except Exception:
        return None
    return None if messages.differs or messages.received else (value, messages.sent)


def is_the_same(sent: list[tuple[int, np.ndarray]], value: Any, again: Any) -> bool:
    """Whether a rank has sent and returned, alone, what it did before; `again` may be anything."""
    if type(again) is not tuple or len(again) != 2 or not unchanged(value, again[0]):
        return False
    try:
        return [*map(_letter, sent)] == [*map(_letter, again[1])]
    except (AttributeError, TypeError, ValueError):
        return False


def _letter(note: tuple[int, np.ndarray]) -> tuple:
    """Return what is in a message, bit for bit: a NaN has many numbers in it."""
    partner, x = note
    return int(partner), x.shape, x.dtype, x.tobytes()


@dataclass
class _Noting:
    """Carries arrays as another carrier does, and writes down which."""

    carrier: Any
    sent: list[tuple[int, np.ndarray]]
    received: list[tuple[int, np.ndarray]]

    def __post_init__(self) -> None:
        self.rank, self.size = self.carrier.rank, self.carrier.size

    def start_send(self, x: np.ndarray, to: int) -> Callable[[], None]:
        self.sent.append((to, x.copy()))
        return self.carrier.start_send(x, to)

    def start_receive(self, out: np.ndarray, source: int) -> Callable[[], None]:
        arrives = self.carrier.start_receive(out, source)

        def arrived() -> None:
            arrives()
            self.received.append((source, out.copy()))

        return arrived


@dataclass
class _Repeating:
    """Gives a rank the messages that it got before, and writes down what it sends.

    `differs` stays, whether or not the rank catches the error.
    """

    rank: int
    size: int
    received: deque[tuple[int, np.ndarray]]
    sent: list[tuple[int, np.ndarray]] = field(default_factory=list)
    differs: bool = False

    def start_send(self, x: np.ndarray, to: int) -> Callable[[], None]:
        self.sent.append((to, x.copy()))
        return _at_once

    def start_receive(self, out: np.ndarray, source: int) -> Callable[[], None]:
        if self.differs or not self.received:
            self._fail()
        partner, before = self.received.popleft()
        if partner != source or (before.shape, before.dtype) != (out.shape, out.dtype):
            self._fail()
        out[...] = before
        return _at_once

    def _fail(self) -> NoReturn:
        self.differs = True
        raise LookupError


def _at_once() -> None:
    pass


def _copied(function: Callable) -> Callable:
    """Return a function with tables of its own, and so all functions that it can call."""
    if not isinstance(function, FunctionType):
        return function
    names: dict[str, Any] = {"__builtins__": builtins}
    todo = [function.__code__]
    while todo:  # what it reaches alone: a notebook has cells, results and pictures beside it
        code = todo.pop()
        todo += [one for one in code.co_consts if isinstance(one, CodeType)]
        for name in {*code.co_names} & function.__globals__.keys() - names.keys():
            one = function.__globals__[name]
            if isinstance(one, FunctionType) and one.__globals__ is function.__globals__:
                names[name] = _in(names, one)
                todo.append(one.__code__)
            else:
                names[name] = copy.deepcopy(one) if isinstance(one, list | dict | set | np.ndarray) else one
    return _in(names, function)


def _in(names: dict[str, Any], function: FunctionType) -> FunctionType:
    made = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _end(actors: Sequence[threading.Thread]) -> None:
    """Raise SystemExit in threads that still compute: they would do so for ever, beside all that follows."""
    for ident in (actor.ident for actor in actors if actor.is_alive()):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


def played(function: Callable) -> Callable[..., Played]:
    """Return a function of all ranks' arguments that plays `function`, under its name: a task's reference."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def on_all_ranks(*args: Sequence) -> Played:
        return play(function, args)

    del on_all_ranks.__wrapped__  # its arguments are others
    return on_all_ranks


@dataclass(frozen=True)
class OnTheWire:
    """Accepts right values on all ranks that took no more messages, bytes and steps than the reference's.

    `values` compares one rank's. Of bytes 2 % more are allowed, and 16 with each message, for blocks that are
    padded or cut otherwise. `steps` times as many steps as the reference's may follow each other; None: any
    number. `wanted` ends the sentence on what is too much.
    """

    values: ResultComparison
    wanted: str
    steps: float | None = None

    def compare(self, got: Any, want: Played, args: tuple) -> Mismatch | None:
        """Return None if `got` is right, else what is wrong on the first rank, or what is too much."""
        for rank, (mine, right) in enumerate(zip(got[0], want[0], strict=True)):
            found = self.values.compare(mine, right, args)
            if found:
                return found if found.form else found.in_part(f"On rank {rank} of {len(want[0])}: ")
        for said in self._too_much(got[1], want[1], len(want[0])):
            return Mismatch((f"The values are right. {said}: {self.wanted}.",))
        return None

    def _too_much(self, got: np.ndarray, want: np.ndarray, ranks: int) -> Iterator[str]:
        """Yield the middle of a sentence for each thing of which there is more than is needed."""
        sent, needed = (np.bincount(one[:, 1], minlength=ranks) for one in (got, want))
        if sent.max() > needed.max():
            yield f"Rank {sent.argmax()} sends {sent.max()} messages; {needed.max()} are enough"
        if len(got) > len(want):
            yield f"All ranks together send {len(got)} messages; {len(want)} are enough"
        carried, least = (np.bincount(one[:, 1], one[:, 3], ranks) for one in (got, want))
        if carried.max() > 1.02 * least.max() + 16 * needed.max():
            yield f"Rank {carried.argmax()} sends {carried.max():,.0f} bytes; {least.max():,.0f} are enough"
        steps, fewest = (1 + int(one[:, 0].max(initial=-1)) for one in (got, want))
        if self.steps is not None and steps > self.steps * fewest:
            yield f"{steps} steps follow each other; {self.steps * fewest:.0f} are enough"
