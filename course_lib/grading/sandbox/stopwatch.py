"""Timing an answer from outside, in turns with the baseline in a clean process.

The clock is the CPU time of the whole process, read from the system; wall time where there is no such clock.
An answer's time is all that passes between its last result and its next: its own word on when it begins or is
done counts for nothing. (Between some rounds its arguments are fetched and looked at. That is not counted,
and what comes next is not known then.) What it takes to ship numbers is measured on the baseline's process,
which runs our code alone, and taken off both.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from course_lib.grading.runner import Timing, change, clone, other_places, unchanged
from course_lib.grading.sandbox.process import AnswerProcess, Stopped

SAMPLE_S = 20e-3  # of one exchange; shorter ones would measure the shipping
FEWEST_ROUNDS, MOST_ROUNDS = 7, 200
TARGET = 0.02  # half the width of the interval of the ratio at which measuring ends
MOST_CALLS, TRIES = 2000, 3  # of an exchange, and of each number of calls until it is long enough
SHIPPING_ROUNDS = 5
CHECKED = 12  # exchanges whose results are looked at: work that is left out now and then must not pay
STASHED = "it changed its own input between timed calls: every call must do all of its work"


@dataclass
class _TimedProcess:
    """One of the two: its process, its arguments as they are by now, and its samples."""

    process: AnswerProcess
    args: tuple
    limit_s: Callable[[], float]
    calls: int = 1
    samples: list[float] = field(default_factory=list)
    value: Any = None
    _last: float = 0.0

    def start(self) -> None:
        """Ship the arguments, call once to compile, and start the clock."""
        self._ask({"do": "prepare", "args": clone(self.args)})
        self.run([other_places(self.args, random.Random(0))])

    def run(self, changes: list) -> float:
        """Have it called once for each change; return the seconds since the end of the last exchange."""
        for places in changes:
            change(self.args, places)
        started = self._last if self.process.cpu() is not None else time.perf_counter()
        self.value = self._ask(
            {"do": "time", "which": 0, "changes": [list(map(list, one)) for one in changes]}
        )
        self._last = self._now()
        return self._last - started

    def held(self) -> tuple:
        """Return the arguments as the process holds them; its clock starts anew."""
        limit = self.limit_s()
        args = self.process.ask({"do": "held"}, limit, limit).get("args")
        self._last = self._now()
        return args

    def result_for(self, args: tuple) -> Any:
        """Return what the function gives for these arguments."""
        limit = self.limit_s()
        return self.process.ask({"do": "call", "which": 0, "args": clone(args)}, limit, limit).get("value")

    def _ask(self, request: dict[str, Any]) -> Any:
        limit = self.limit_s()
        reply = self.process.ask(request, limit, limit)
        fault = reply.get("fault")
        if fault is not None:
            raise Stopped("Stopped", "it failed in a timed call, though it had worked before")
        return reply.get("value")

    def _now(self) -> float:
        cpu = self.process.cpu()
        return time.perf_counter() if cpu is None else cpu


def race(
    mine: AnswerProcess,
    base: AnswerProcess,
    args: tuple,
    budget_s: float,
    rng: random.Random,
    limit_s: Callable[[], float],
) -> Timing:
    """Time two processes that have loaded their functions against each other; Stopped if one fails.

    The timing's `last` are arguments and value of an exchange: of those chosen at random the one that is
    furthest from what the baseline gives.
    """
    yours, baseline = (_TimedProcess(process, clone(args), limit_s) for process in (mine, base))
    for one in (baseline, yours):
        one.start()
    shipping = median(baseline.run([]) for _ in range(SHIPPING_ROUNDS))
    for one in (baseline, yours):
        _choose_calls(one, shipping, rng)
    kept = _take_rounds(yours, baseline, shipping, budget_s, rng)
    if mine.has_helpers():
        raise Stopped("Helpers", "it started other processes, and a timed answer must do its work itself")
    times, reference = np.array(yours.samples), np.array(baseline.samples)
    low, high = _ratio_interval(reference, times)
    speedup = float(np.median(reference) / np.median(times))
    shown = max(kept, key=lambda one: _distance(one[1], baseline.result_for(one[0])))
    return Timing(speedup, low, high, float(np.median(times)), float(np.median(reference)), last=shown)


def _choose_calls(one: _TimedProcess, shipping: float, rng: random.Random) -> None:
    """Choose so many calls an exchange that it lasts long enough.

    Found by more and more calls together: of one that leaves its work out now and then, a call alone may take
    no time at all, and thousands of it would not end. The quickest of three counts: one may be disturbed.
    """
    calls, seconds = 1, 0.0
    while True:
        tries = (one.run([other_places(one.args, rng) for _ in range(calls)]) for _ in range(TRIES))
        seconds = min(tries) - shipping
        if seconds > SAMPLE_S / 4 or calls == MOST_CALLS:
            break
        calls = min(4 * calls, MOST_CALLS)
    one.calls = max(1, min(MOST_CALLS, math.ceil(calls * SAMPLE_S / max(seconds, 1e-6))))


def _take_rounds(
    yours: _TimedProcess, baseline: _TimedProcess, shipping: float, budget_s: float, rng: random.Random
) -> list[tuple[tuple, Any]]:
    """Take samples in turns; return arguments and values of some exchanges of yours, chosen at random."""
    end = time.perf_counter() + budget_s
    kept: list[tuple[tuple, Any]] = []
    for number in range(MOST_ROUNDS):
        for one in rng.sample((yours, baseline), 2):
            calls = one.calls + rng.randrange(one.calls // 4 + 2)  # which one is the last nobody can tell
            seconds = one.run([other_places(one.args, rng) for _ in range(calls)])
            one.samples.append(max(seconds - shipping, 1e-9) / calls)
        place = rng.randrange(number + 1)  # each exchange is as likely as any other to be kept
        if number < CHECKED or place < CHECKED:
            if not unchanged(yours.args, yours.held()):
                raise Stopped("Stashed", STASHED)
            kept[place : place + (number >= CHECKED)] = [(clone(yours.args), yours.value)]
        if number + 1 >= FEWEST_ROUNDS and (time.perf_counter() > end or _certain(yours, baseline)):
            break
    return kept


def _distance(value: Any, wanted: Any) -> float:
    """Return how far a result is from another one; infinite if the two cannot be compared."""
    try:
        far = np.abs(np.asarray(value, np.float64) - np.asarray(wanted, np.float64))
    except (TypeError, ValueError, OverflowError):
        return math.inf
    largest = float(np.max(far, initial=0.0))
    return math.inf if math.isnan(largest) else largest


def _certain(yours: _TimedProcess, baseline: _TimedProcess) -> bool:
    low, high = _ratio_interval(np.array(baseline.samples), np.array(yours.samples))
    return (high - low) / (high + low) < TARGET


def _ratio_interval(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    from course_lib.measure.timing import ratio_interval  # most submissions time nothing

    return ratio_interval(a, b)
