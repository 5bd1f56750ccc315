"""An answer that many ranks call at once: played on threads, its messages counted and compared.

`Task.collective` says that a task is of this kind. Each of its arguments lists an entry for each rank.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course_lib.distributed.wire import Wire, rehearse
from course_lib.grading.compare import Mismatch, ResultComparison
from course_lib.grading.runner import LONGEST_CALL_S

#: A little less than a call may take: so it is the rehearsal that says that a rank computes without end.
LONGEST_S = 0.9 * LONGEST_CALL_S
Played = tuple[list, np.ndarray]  # each rank's value; (step, sender, receiver, bytes) of each message


def play(function: Callable, args: Sequence[Sequence]) -> Played:
    """Call ``function(wire, *its entries of args)`` on every rank; no thread is left behind.

    Raises what a rank raises, and Stuck where all wait for each other.
    """
    actors: list[threading.Thread] = []

    def part(wire: Wire) -> Any:
        actors.append(threading.current_thread())
        return function(wire, *(entries[wire.rank] for entries in args))

    try:
        played = rehearse(part, len(args[0]), time_limit_s=LONGEST_S)
    finally:
        _end(actors)
    return played.values, np.array(played.messages, np.int64).reshape(-1, 4)


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
                place = f"On rank {rank} of {len(want[0])}: "
                first = found.says[0] if found.form else place + found.says[0][0].lower() + found.says[0][1:]
                return replace(found, says=(first, *found.says[1:]))
        return next((Mismatch((says,)) for says in self._too_much(got[1], want[1], len(want[0]))), None)

    def _too_much(self, got: np.ndarray, want: np.ndarray, ranks: int):
        """Yield a sentence for each thing of which there is more than is needed."""
        sent, needed = (np.bincount(one[:, 1], minlength=ranks) for one in (got, want))
        if sent.max() > needed.max():
            said = f"Rank {sent.argmax()} sends {sent.max()} messages; {needed.max()} are enough"
            yield f"The values are right. {said}: {self.wanted}."
        if len(got) > len(want):
            said = f"All ranks together send {len(got)} messages; {len(want)} are enough"
            yield f"The values are right. {said}: {self.wanted}."
        carried, least = (np.bincount(one[:, 1], one[:, 3], ranks) for one in (got, want))
        if carried.max() > 1.02 * least.max() + 16 * needed.max():
            said = f"Rank {carried.argmax()} sends {carried.max():,.0f} bytes; {least.max():,.0f} are enough"
            yield f"The values are right. {said}: {self.wanted}."
        steps, fewest = (1 + int(one[:, 0].max(initial=-1)) for one in (got, want))
        if self.steps is not None and steps > self.steps * fewest:
            said = f"{steps} steps follow each other; {self.steps * fewest:.0f} are enough"
            yield f"The values are right. {said}: {self.wanted}."
