"""Timing an answer from outside, in turns with the baseline in a clean process.

The clock is the CPU time of the whole process, read from the system; wall time where there is no such clock.
An answer's time is all that passes between its last exchange and the end of the next: its own word on when it
begins or is done counts for nothing. An exchange is a number of calls, each on other numbers; all of their
results are kept in the process, and when the clock has stopped one is chosen, asked for and compared. What an
exchange takes without calls is measured on the baseline's process, which runs our code alone, and taken off.
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

from course_lib.grading.runner import Change, Timing, change, clone, other_places, unchanged
from course_lib.grading.sandbox import wire
from course_lib.grading.sandbox.process import AnswerProcess, Stopped
from course_lib.grading.task import SpeedRule

SAMPLE_S = 20e-3  # of one exchange; shorter ones would measure the shipping
FEWEST_ROUNDS, MOST_ROUNDS = 7, 200
TARGET = 0.02  # half the width of the interval of the ratio at which measuring ends
MOST_CALLS, TRIES = 2000, 3  # of an exchange, and of each number of calls until it is long enough
MOST_KEPT = 64 * 2**20  # bytes of the results of an exchange
SHIPPING_ROUNDS = 5
CHECKED = 16  # exchanges of which a result is looked at: work that is left out now and then must not pay
STASHED = "it changed its own input between timed calls: every call must do all of its work"
NOT_PLAIN = (
    "a timed call returned something else than a plain array or a list of plain numbers: "
    "return the result itself, of NumPy's or Python's own type"
)
LATE = "it worked on after its timed calls had returned: every call must do all of its work"


@dataclass
class _TimedProcess:
    """One of the two: its process, its arguments as they are by now, and its samples.

    `exchanged_s` is the time of all exchanges, `aside_s` that between them, in which nothing is to be done.
    """

    process: AnswerProcess
    args: tuple
    limit_s: Callable[[], float]
    calls: int = 1
    samples: list[float] = field(default_factory=list)
    exchanged_s: float = 0.0
    aside_s: float = 0.0
    _changes: list[Change] = field(default_factory=list)  # of the last exchange: `args` is from before it
    _last: float = 0.0

    def start(self) -> None:
        """Ship the arguments, call once to compile, and start the clock."""
        self._ask({"do": "prepare", "args": clone(self.args)})
        self.run(1, random.Random(0))

    def run(self, calls: int, rng: random.Random) -> float:
        """Have it called so often; return the seconds since the end of the last exchange."""
        self._catch_up()
        changes = [other_places(self.args, rng) for _ in range(calls)]
        places = [wire.PLACE.pack(*place) for places in changes for place in places]
        started = self._begin()
        reply = self._ask({"do": "time", "which": 0}, b"".join([*places, wire.END * len(self.args)]))
        if reply.get("calls") != calls or reply.get("plain") is not True:
            raise Stopped("NotPlain", NOT_PLAIN)
        self._changes, self._last = changes, self._now()
        self.exchanged_s += self._last - started
        return self._last - started

    def looked_at(self, rng: random.Random) -> tuple[tuple, Any]:
        """Choose a call of the last exchange; return its arguments and its result.

        Stopped if the arguments are not what they should be by now.
        """
        number = rng.randrange(len(self._changes))
        args, started = self._catch_up(number), self._begin()
        value = self._ask({"do": "result", "number": number}).get("value")
        held = self._ask({"do": "held"}).get("args")
        self._last = self._now()
        self.aside_s += self._last - started
        if not unchanged(self.args, held):
            raise Stopped("Stashed", STASHED)
        return args, value

    def _catch_up(self, number: int = -1) -> tuple:
        """Change the arguments as the last exchange did; return those of the call of this number."""
        wanted = ()
        for place, places in enumerate(self._changes):
            change(self.args, places)
            wanted = clone(self.args) if place == number else wanted
        self._changes = []
        return wanted

    def _ask(self, request: dict[str, Any], behind: bytes = b"") -> dict[str, Any]:
        limit = self.limit_s()
        reply = self.process.ask(request, limit, limit, behind=behind)
        if reply.get("fault") is not None:
            raise Stopped("Stopped", "it failed in a timed call, though it had worked before")
        return reply

    def _begin(self) -> float:
        return self._last if self.process.cpu() is not None else time.perf_counter()

    def _now(self) -> float:
        cpu = self.process.cpu()
        return time.perf_counter() if cpu is None else cpu


def race(
    mine: AnswerProcess,
    base: AnswerProcess,
    args: tuple,
    speed: SpeedRule,
    rng: random.Random,
    limit_s: Callable[[], float],
) -> Timing:
    """Time two processes that have loaded their functions against each other; Stopped if one fails."""
    yours, baseline = (_TimedProcess(process, clone(args), limit_s) for process in (mine, base))
    for one in (baseline, yours):
        one.start()
    _, result = baseline.looked_at(rng)
    most = max(1, min(MOST_CALLS, MOST_KEPT // _bytes(result)))
    shipping = median(baseline.run(0, rng) for _ in range(SHIPPING_ROUNDS))
    for one in (baseline, yours):
        _choose_calls(one, shipping, rng, most)
        counted = one.looked_at(rng)  # while calls were counted it had to do its work, too
        one.exchanged_s = one.aside_s = 0.0
    checked = [counted, *_take_rounds(yours, baseline, shipping, speed, rng)]
    if mine.has_helpers():
        raise Stopped("Helpers", "it started other processes, and a timed answer must do its work itself")
    if yours.aside_s > 2 * baseline.aside_s + yours.exchanged_s / 10:
        raise Stopped("Late", LATE)
    times, reference = np.array(yours.samples), np.array(baseline.samples)
    low, high = _ratio_interval(reference, times)
    medians = float(np.median(times)), float(np.median(reference))
    samples = tuple(zip(yours.samples, baseline.samples, strict=True))
    return Timing(medians[1] / medians[0], low, high, *medians, checked=tuple(checked), samples=samples)


def _bytes(result: Any) -> int:
    """Return about how much memory a result takes: a number in a list 24 bytes, and 8 for its place."""
    return result.nbytes if isinstance(result, np.ndarray) else 32 * np.size(result)


def _choose_calls(one: _TimedProcess, shipping: float, rng: random.Random, most: int) -> None:
    """Choose so many calls an exchange that it lasts long enough.

    Found by more and more calls together: of one that leaves its work out now and then, a call alone may take
    no time at all, and thousands of it would not end. The quickest of three counts: one may be disturbed.
    """
    calls, seconds = 1, 0.0
    while True:
        seconds = min(one.run(calls, rng) for _ in range(TRIES)) - shipping
        if seconds > SAMPLE_S / 4 or calls == most:
            break
        calls = min(4 * calls, most)
    one.calls = max(1, min(most, math.ceil(calls * SAMPLE_S / max(seconds, 1e-6))))


def _take_rounds(
    yours: _TimedProcess, baseline: _TimedProcess, shipping: float, speed: SpeedRule, rng: random.Random
) -> list[tuple[tuple, Any]]:
    """Take samples in turns; return arguments and values of some calls of yours, chosen at random."""
    end = time.perf_counter() + speed.budget_s
    kept: list[tuple[tuple, Any]] = []
    for number in range(MOST_ROUNDS):
        for one in rng.sample((yours, baseline), 2):
            calls = one.calls + rng.randrange(one.calls // 4 + 2)
            seconds = one.run(calls, rng)
            one.samples.append(max(seconds - shipping, 1e-9) / calls)
        place = rng.randrange(number + 1)  # each exchange is as likely as any other to be kept
        if number < CHECKED or place < CHECKED:
            baseline.looked_at(rng)
            kept[place : place + (number >= CHECKED)] = [yours.looked_at(rng)]
        if number + 1 >= FEWEST_ROUNDS and (time.perf_counter() > end or _is_certain(yours, baseline, speed)):
            break
    return kept


def _is_certain(yours: _TimedProcess, baseline: _TimedProcess, speed: SpeedRule) -> bool:
    """Whether the ratio is known well enough, and no threshold lies where it may be."""
    low, high = _ratio_interval(np.array(baseline.samples), np.array(yours.samples))
    return (high - low) / (high + low) < TARGET and not speed.is_between(low, high)


def _ratio_interval(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    from course_lib.measure.timing import ratio_interval  # most submissions time nothing

    return ratio_interval(a, b)
