"""Work items of unequal length on several threads: who does which, planned, and as it really happened.

    plan(costs, threads=2, policy="guided")           from known costs: pure arithmetic
    timeline = schedule(items, run, threads=2, policy="dynamic", chunk=1)      measured

`run(item)` should release the interpreter's lock (a Numba function with nogil=True, NumPy), else the threads
take turns, and take a millisecond or more, else Python's own time for handing out is what is measured.
Policies, as OpenMP defines them (OpenMP API 5.2, "schedule clause"), and one more:

    static    each thread gets one contiguous part, decided beforehand; parts differ by one item at most
    cyclic    schedule(static, chunk): chunks dealt out like cards, round robin
    dynamic   whoever is free takes the next chunk
    guided    like dynamic, with shrinking chunks: items left / threads, rounded up, at least `chunk`
    longest   dynamic, the longest item first; needs the costs (LPT; Graham 1969, "Bounds on multiprocessing
              timing anomalies": never more than 4/3 - 1/(3 threads) of the optimum)
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.arguments import number, one_of, whole
from course_lib.measure.table import Shown, Table, seconds_in_words

POLICIES = ("static", "cyclic", "dynamic", "guided", "longest")
MOST_THREADS = 64
LARGEST_EXACT = 16  # items whose best distribution is found by trying
GRACE_S = 0.5  # an item may go on so long after the shortest time limit


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
    chunk: int
    threads: int
    bars: tuple[Bar, ...]  # in the order of their starts
    items: int  # how many there were
    ended: str  # "done", or why items were left
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
    def assignment(self) -> tuple[tuple[int, ...], ...]:
        """The items of each thread, in the order they were done."""
        return tuple(tuple(bar.item for bar in self.of(thread)) for thread in range(self.threads))

    @property
    def name(self) -> str:
        """The policy with its chunk, unless that is 1: "dynamic, chunk 4"."""
        return (
            self.policy
            if self.policy == "static" or self.chunk == 1
            else f"{self.policy}, chunk {self.chunk}"
        )

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
        notes = [
            f"{self.name}: makespan {say(self.makespan)}, {over:.0f} % above the bound {say(self.bound)}; "
            f"busiest thread / mean {self.imbalance:.2f}."
        ]
        notes += [self.ended] if self.ended != "done" else []
        return Table(columns, tuple(rows), notes=tuple(notes))


# -- who takes what ----------------------------------------------------------------------------------------


class Hand:
    """Hands out chunks of item numbers by a policy: `take(thread)` returns the next, [] when none is left."""

    def __init__(self, order: Sequence[int], threads: int, policy: str, chunk: int) -> None:
        self._order = list(order)
        self._threads, self._policy, self._chunk = threads, policy, chunk
        self._next = 0
        self._dealt = [self._deal(thread) for thread in range(threads)]

    def _deal(self, thread: int) -> Iterator[list[int]]:
        """Yield what is decided beforehand."""
        count, threads = len(self._order), self._threads
        if self._policy == "static":
            small, larger = divmod(count, threads)
            start = thread * small + min(thread, larger)
            yield self._order[start : start + small + (thread < larger)]
        elif self._policy == "cyclic":
            for start in range(thread * self._chunk, count, threads * self._chunk):
                yield self._order[start : start + self._chunk]

    def take(self, thread: int) -> list[int]:
        """Return the item numbers that the thread does next."""
        if self._policy in ("static", "cyclic"):
            return next(self._dealt[thread], [])
        left = len(self._order) - self._next
        size = max(self._chunk, -(-left // self._threads)) if self._policy == "guided" else self._chunk
        taken = self._order[self._next : self._next + size]
        self._next += len(taken)
        return taken


def plan(costs: Sequence[float], threads: int, policy: str = "dynamic", chunk: int = 1) -> Timeline:
    """Return what happens if item i takes exactly costs[i] and handing out takes no time.

    Times are in the unit of the costs. Raises ValueError for numbers that make no sense.
    """
    costs = _checked_costs(costs)
    _check(threads, policy, chunk)
    hand = Hand(_order(range(len(costs)), policy, costs), threads, policy, chunk)
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
    return Timeline(policy, chunk, threads, tuple(bars), len(costs), "done", measured=False)


def best_makespan(costs: Sequence[float], threads: int) -> tuple[float, bool]:
    """Return (the smallest possible makespan, True), or (a lower bound, False) where finding it would take
    long.

    Up to 16 items are tried in all ways that can still win (branch and bound); beyond that the bound is the
    larger of total / threads and the longest item.
    """
    costs = sorted(_checked_costs(costs), reverse=True)
    _check(threads, "dynamic", 1)
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
    chunk: int = 1,
    *,
    costs: Sequence[float] | None = None,
    time_limit_s: float = 20.0,
) -> Timeline:
    """Do run(item) for every item on `threads` threads and return the measured timeline.

    `costs` (any unit) are needed by the policy "longest". What run raises is raised here, after the other
    threads have finished the item they were at. At the time limit no more items are handed out and the
    timeline's `ended` says so. TimeoutError is raised if the threads have not even started by then, or if an
    item itself goes on for as long again, half a second at least (its thread is left behind: a thread cannot
    be ended from outside).
    """
    items = list(items)
    _check(threads, policy, chunk)
    if not callable(run):
        raise TypeError(f"run is {run!r}, but it must be a function that is called with an item.")
    number("time_limit_s", time_limit_s, above=0, most=10**6)
    weights = None if costs is None else _checked_costs(costs)
    if weights is not None and len(weights) != len(items):
        raise ValueError(f"There are {len(weights)} costs for {len(items)} items: one each is needed.")
    order = _order(range(len(items)), policy, weights)
    return _Work(items, run, threads, Hand(order, threads, policy, chunk), time_limit_s).timeline(
        policy, chunk
    )


class _Work:
    """Threads at work on items, and their stopwatch."""

    def __init__(self, items: list, run: Callable, threads: int, hand: Hand, limit_s: float) -> None:
        self._items, self._run, self._hand = items, run, hand
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._ready = threading.Barrier(threads + 1, action=self._begin)
        self._start = 0  # nanoseconds: when the last thread came to the start
        self._stop = threading.Event()
        self._bars: list[list[tuple[int, int, int, int]]] = [[] for _ in range(threads)]
        self._problem: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(number,), name=f"worker {number}", daemon=True)
            for number in range(threads)
        ]

    def timeline(self, policy: str, chunk: int) -> Timeline:
        for thread in self._threads:
            thread.start()
        try:
            self._all_ready()
            self._wait(self._limit_s)
            is_late = any(thread.is_alive() for thread in self._threads)
        finally:  # also when the learner interrupts the cell
            self._stop.set()
        self._wait(max(self._limit_s, GRACE_S))
        if self._problem is not None:
            raise self._problem
        for place, thread in enumerate(self._threads):
            if thread.is_alive():
                raise TimeoutError(
                    f"Thread {place} is still at one item long after the time limit of {self._limit_s:g} "
                    "s: check that item for a loop that does not end."
                )
        start = self._start
        bars = [
            Bar(item, number, (begun - start) * 1e-9, (ended - start) * 1e-9, cpu * 1e-9)
            for number, own in enumerate(self._bars)
            for item, begun, ended, cpu in own
        ]
        bars.sort(key=lambda bar: (bar.start, bar.thread))
        left = len(self._items) - len(bars)
        how = "done"
        if is_late and left:
            how = (
                f"The time limit of {self._limit_s:g} s was reached: {left} items of {len(self._items)} left."
            )
        threads = len(self._threads)
        return Timeline(policy, chunk, threads, tuple(bars), len(self._items), how, measured=True)

    def _begin(self) -> None:
        self._start = time.perf_counter_ns()

    def _all_ready(self) -> None:
        """Wait until every thread stands at the start."""
        try:
            self._ready.wait(self._limit_s)
        except threading.BrokenBarrierError:
            raise TimeoutError(
                f"The {len(self._threads)} threads did not start within the time limit of {self._limit_s:g} "
                "s: give a larger time_limit_s, for example 20."
            ) from None

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self, number: int) -> None:
        own = self._bars[number]
        try:
            self._ready.wait(self._limit_s)
        except threading.BrokenBarrierError:
            return  # the caller's thread sees the same and says so
        try:
            while not self._stop.is_set():
                with self._lock:
                    taken = self._hand.take(number)
                if not taken:
                    return
                for item in taken:
                    if self._stop.is_set():
                        return
                    cpu, begun = time.thread_time_ns(), time.perf_counter_ns()
                    self._run(self._items[item])
                    ended = time.perf_counter_ns()
                    own.append((item, begun, ended, time.thread_time_ns() - cpu))
        except BaseException as problem:  # it belongs to the caller, whatever it is
            self._problem = self._problem or problem
            self._stop.set()


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


def _check(threads: int, policy: str, chunk: int) -> None:
    whole("threads", threads, most=MOST_THREADS)
    one_of("policy", policy, POLICIES)
    whole("chunk", chunk)
