"""Work items of unequal length on several threads: who does which, planned, and as it really happened.

    plan(costs, threads=2, policy="guided")           from known costs: pure arithmetic
    timeline = schedule(items, run, threads=2, policy="dynamic")      measured

`run(item)` should release the interpreter's lock (a Numba function with nogil=True, NumPy), else the threads
take turns, and take a millisecond or more, else Python's own time for handing out is what is measured.
Policies, as OpenMP defines them (OpenMP API 5.2, "schedule clause"), and one more:

    static    each thread gets one contiguous part, decided beforehand; parts differ by one item at most
    cyclic    schedule(static, 1): dealt out like cards, round robin
    dynamic   whoever is free takes the next item
    guided    like dynamic, with shrinking chunks: items left / threads, rounded up
    longest   dynamic, the longest item first; needs the costs (LPT; Graham 1969, "Bounds on multiprocessing
              timing anomalies": never more than 4/3 - 1/(3 threads) of the optimum)
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from course_lib.arguments import number, one_of, whole
from course_lib.measure.table import Shown, Table, seconds_in_words

POLICIES = ("static", "cyclic", "dynamic", "guided", "longest")
MOST_THREADS = 64
LARGEST_EXACT = 16  # items whose best distribution is found by trying


@dataclass(frozen=True)
class Bar:
    """One item as it was done: times in seconds from the common start."""

    item: int  # its number
    thread: int
    start: float
    end: float
    cpu: float  # CPU time of the thread meanwhile; less than the duration: it waited for a CPU or a lock


@dataclass(frozen=True, repr=False)
class Timeline(Shown):
    """Who did what and when. Times in seconds (of a plan: in the unit of its costs)."""

    policy: str
    threads: int
    bars: tuple[Bar, ...]  # in the order of their starts
    measured: bool  # False: a plan

    @property
    def makespan(self) -> float:
        """From the common start to the end of the last item."""
        return max((bar.end for bar in self.bars), default=0.0)

    @property
    def busy(self) -> tuple[float, ...]:
        """The seconds each thread worked."""
        return tuple(sum(bar.end - bar.start for bar in self.of(thread)) for thread in range(self.threads))

    @property
    def busy_fraction(self) -> tuple[float, ...]:
        """The part of the makespan that each thread worked."""
        return tuple(seconds / self.makespan if self.makespan else 0.0 for seconds in self.busy)

    @property
    def imbalance(self) -> float:
        """The busiest thread's work over the mean: 1 is perfect."""
        mean = sum(self.busy) / self.threads
        return max(self.busy) / mean if mean else 1.0

    @property
    def bound(self) -> float:
        """What no distribution of these items can beat: total / threads, or the longest item."""
        lengths = [bar.end - bar.start for bar in self.bars]
        return max(sum(lengths) / self.threads, max(lengths)) if lengths else 0.0

    @property
    def without_cpu(self) -> float:
        """The part of the busy time in which the threads had no CPU: other programs ran, or there are few."""
        busy = sum(self.busy)
        return max(0.0, 1 - sum(bar.cpu for bar in self.bars) / busy) if busy else 0.0

    def of(self, thread: int) -> list[Bar]:
        """Return the bars of one thread."""
        return [bar for bar in self.bars if bar.thread == thread]

    def table(self) -> Table:
        """Return a row per thread: items, time at work, idle time, share of the makespan."""
        say = seconds_in_words if self.measured else "{:.4g}".format
        rows = []
        for thread, (busy, share) in enumerate(zip(self.busy, self.busy_fraction, strict=True)):
            idle = max(0.0, self.makespan - busy)
            waited = max(0.0, busy - sum(bar.cpu for bar in self.of(thread)))
            cells = (
                f"thread {thread}",
                str(len(self.of(thread))),
                say(busy),
                say(idle),
                f"{100 * share:.0f} %",
            )
            rows.append((*cells, *([say(waited)] * self.measured)))
        columns = ("", "items", "busy", "idle", "busy share", *(["of busy: no CPU"] * self.measured))
        over = 100 * (self.makespan / self.bound - 1) if self.bound else 0.0
        note = (
            f"{self.policy}: makespan {say(self.makespan)}, {over:.0f} % above the bound {say(self.bound)}; "
            f"busiest thread / mean {self.imbalance:.2f}."
        )
        return Table(columns, tuple(rows), notes=(note,))


# -- who takes what ----------------------------------------------------------------------------------------


class Hand:
    """Hands out item numbers by a policy: `take(thread)` returns the next ones, [] when none is left."""

    def __init__(self, order: Sequence[int], threads: int, policy: str) -> None:
        self._left, self._threads, self._policy = list(order), threads, policy
        self._dealt: list[list[int]] = [[] for _ in range(threads)]  # what is decided beforehand
        if policy in ("static", "cyclic"):
            small, larger = divmod(len(order), threads)
            ends = [thread * small + min(thread, larger) for thread in range(threads + 1)]
            parts = [slice(*pair) for pair in pairwise(ends)]
            if policy == "cyclic":
                parts = [slice(thread, None, threads) for thread in range(threads)]
            self._dealt, self._left = [self._left[part] for part in parts], []

    def take(self, thread: int) -> list[int]:
        """Return the item numbers that the thread does next."""
        dealt, self._dealt[thread] = self._dealt[thread], []
        size = -(-len(self._left) // self._threads) if self._policy == "guided" else 1
        taken, self._left = self._left[:size], self._left[size:]
        return dealt or taken


def plan(costs: Sequence[float], threads: int, policy: str = "dynamic") -> Timeline:
    """Return what happens if item i takes exactly costs[i] and handing out takes no time.

    Times are in the unit of the costs. Raises ValueError for numbers that make no sense.
    """
    costs = _checked_costs(costs)
    _check(threads, policy)
    hand = Hand(_order(range(len(costs)), policy, costs), threads, policy)
    free = [(0.0, thread) for thread in range(threads)]  # when each thread is free; of equals the first
    bars = []
    while free:
        now, thread = heapq.heappop(free)
        taken = hand.take(thread)
        for item in taken:
            bars.append(Bar(item, thread, now, now + costs[item], costs[item]))
            now += costs[item]
        if taken:
            heapq.heappush(free, (now, thread))
    bars.sort(key=lambda bar: (bar.start, bar.thread))
    return Timeline(policy, threads, tuple(bars), measured=False)


def best_makespan(costs: Sequence[float], threads: int) -> tuple[float, bool]:
    """Return (the smallest possible makespan, True), or (a lower bound, False) where finding it would take
    long.

    Up to 16 items are tried in all ways that can still win (branch and bound); beyond that the bound is the
    larger of total / threads and the longest item.
    """
    costs = sorted(_checked_costs(costs), reverse=True)
    _check(threads, "dynamic")
    if not costs:
        return 0.0, True
    bound = max(sum(costs) / threads, costs[0])
    if len(costs) > LARGEST_EXACT:
        return bound, False
    best = plan(costs, threads, "longest").makespan
    loads = [0.0] * threads

    def place(number: int) -> None:
        nonlocal best
        if number == len(costs):
            best = min(best, max(loads))
            return
        tried = set()
        for thread in range(threads):
            load = loads[thread] + costs[number]
            if loads[thread] in tried or load >= best:
                continue  # the same as a thread tried before, or no better than what is known
            tried.add(loads[thread])
            loads[thread] = load
            place(number + 1)
            loads[thread] = load - costs[number]
            if best <= bound * (1 + 1e-12):
                return

    place(0)
    return best, True


# -- as it really happens ----------------------------------------------------------------------------------


def schedule(
    items: Sequence[Any],
    run: Callable[[Any], Any],
    threads: int,
    policy: str = "dynamic",
    *,
    costs: Sequence[float] | None = None,
) -> Timeline:
    """Do run(item) for every item on `threads` threads and return the measured timeline.

    `costs` (any unit) are needed by the policy "longest". What run raises is raised here, after the other
    threads have finished the item they were at.
    """
    items = list(items)
    _check(threads, policy)
    if not callable(run):
        raise TypeError(f"run is {run!r}, but it must be a function that is called with an item.")
    weights = None if costs is None else _checked_costs(costs)
    if weights is not None and len(weights) != len(items):
        raise ValueError(f"There are {len(weights)} costs for {len(items)} items: one each is needed.")
    hand = Hand(_order(range(len(items)), policy, weights), threads, policy)
    bars: list[Bar] = []
    problems: list[BaseException] = []
    start, go, stop, one_at_a_time = 0, threading.Event(), threading.Event(), threading.Lock()

    def do(item: int, thread: int) -> None:
        cpu, begun = time.thread_time_ns(), time.perf_counter_ns()
        run(items[item])
        ended, cpu = time.perf_counter_ns(), time.thread_time_ns() - cpu
        bars.append(Bar(item, thread, (begun - start) * 1e-9, (ended - start) * 1e-9, cpu * 1e-9))

    def work(thread: int) -> None:
        go.wait()
        try:
            while not stop.is_set():
                with one_at_a_time:
                    taken = hand.take(thread)
                if not taken:
                    return
                for item in taken:
                    if not stop.is_set():
                        do(item, thread)
        except BaseException as problem:  # it belongs to the caller, whatever it is
            problems.append(problem)
            stop.set()

    team = [
        threading.Thread(target=work, args=(number,), name=f"worker {number}", daemon=True)
        for number in range(threads)
    ]
    for thread in team:
        thread.start()  # returns when it runs
    start = time.perf_counter_ns()
    go.set()
    try:
        for thread in team:
            thread.join()
    finally:  # also when the learner interrupts the cell
        stop.set()
    if problems:
        raise problems[0]
    bars.sort(key=lambda bar: (bar.start, bar.thread))
    return Timeline(policy, threads, tuple(bars), measured=True)


# -- what is asked -----------------------------------------------------------------------------------------


def _order(items: Sequence[int], policy: str, costs: Sequence[float] | None) -> list[int]:
    if policy != "longest":
        return list(items)
    if costs is None:
        raise ValueError(
            'The policy "longest" sorts items by their costs: pass costs=, one number for each item.'
        )
    return sorted(items, key=lambda item: -costs[item])


def _checked_costs(costs: Sequence[float]) -> list[float]:
    return [number("a cost", float(cost), least=0) for cost in costs]


def _check(threads: int, policy: str) -> None:
    whole("threads", threads, most=MOST_THREADS)
    one_of("policy", policy, POLICIES)
