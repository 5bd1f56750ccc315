"""Threads that count, timed: each in a line of its own or all in one cache line, and all to one total.

    counting = false_sharing(threads=2, strides=(8, 64, 128))
    counting.comparison, counting.ratio(8)          times, and how much longer stride 8 takes than the widest
    one_total(threads=2)                            plain, mutex, atomic, private: times, and what was lost

The threads are Python threads in compiled code that holds no interpreter lock, so they really run at once.
Every increment loads and stores in memory (see `counting_loops`).
"""

from __future__ import annotations

import threading
import time
import timeit
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from course_lib.arguments import is_whole, refusal, whole
from course_lib.measure import hardware
from course_lib.measure.comparison import Comparison
from course_lib.measure.table import Shown, Table, digits
from course_lib.measure.timing import compare

CALL_S = 4e-3  # one thread alone counts so long in a call: starting two threads costs a hundredth of it
TOGETHER = 0.6  # threads that run at once less than this, on average, had no core each
MOST_THREADS = 64
MOST_TIMES = 100_000_000  # of all threads: seconds where they fight over a line, and nothing stops them
WORD_BYTES = 8
STRIDES = (8, 64, 128)
PAGE_BYTES = 4096
ONE_CORE = (
    "This process may use one core only: threads take turns on it and share its cache, so cache lines cannot "
    "move between cores here."
)


@dataclass(frozen=True)
class Counting:
    """Private counters at several distances, timed against each other."""

    threads: int
    strides: tuple[int, ...]  # bytes from one thread's counter to the next
    times: int  # increments of each thread in one call
    comparison: Comparison | None  # a row for each stride; None where there is one core only
    note: str  # why nothing was measured, else ""
    at_once: float = 0.0  # how many of the threads ran at the same time, on average

    def seconds(self, stride: int) -> float:
        """Return the median time of one increment, with all threads counting at once."""
        return self._measured().row(name_of(stride)).seconds / self.times

    def ratio(self, stride: int) -> float:
        """Return how many times as long the counters at a distance take as those furthest apart."""
        return self._measured().row(name_of(stride)).ratio

    def _measured(self) -> Comparison:
        if self.comparison is None:
            raise ValueError(self.note)
        return self.comparison


@dataclass(frozen=True, repr=False)
class OneTotal(Shown):
    """All threads counted to one total, in several ways."""

    threads: int
    times: int  # increments of each thread in one call
    comparison: Comparison  # a row for each way
    lost: dict[str, int]  # by way: what was missing after the worst call

    def seconds(self, way: str) -> float:
        """Return the median time of an increment, over all threads: at once, they share it."""
        return self.comparison.row(way).seconds / (self.threads * self.times)

    def table(self) -> Table:
        """Return for each way the time of an increment, and the part of them that was lost at worst."""
        rows = tuple(
            (
                row.name,
                digits(1e9 * self.seconds(row.name)),
                digits(row.ratio),
                f"{100 * self.lost[row.name] / (self.threads * self.times):.2g} %",
            )
            for row in self.comparison.rows
        )
        note = f"{self.threads} threads, {self.times:,} increments each. {self.comparison.conditions.held}"
        columns = ("", "ns an increment", f"x {self.comparison.baseline}", "lost at worst")
        return Table(columns, rows, marked=self.comparison.baseline, notes=(note.rstrip(),))


def false_sharing(
    threads: int | None = None,
    strides: Sequence[int] = STRIDES,
    *,
    budget_s: float = 2.0,
) -> Counting:
    """Time threads that count in private counters `strides` bytes apart; the widest is the baseline.

    `threads` None: one for each core this process may use, at most 4. Increments are atomic: the core must
    own the line for each. (With load, add and store the stores wait in the core's store buffer and it reads
    them from there, so one visit of the line serves many.) In a call a thread does as many increments as it
    does in 4 ms alone. Raises ValueError for strides that are no multiples of 8 bytes.
    """
    cores = hardware.cores()
    threads = min(cores, 4) if threads is None else threads
    strides = _checked(threads, strides)
    if cores < 2 or threads < 2:
        why = ONE_CORE if cores < 2 else "One thread has nobody to share a line with: ask for two or more."
        return Counting(threads, strides, 0, None, why)
    times = _times()
    with _Team(threads) as team:
        runs = {name_of(stride): team.counting("atomic", stride, times) for stride in strides}
        comparison = compare(
            runs, baseline=name_of(max(strides)), threads=threads, budget_s=budget_s, progress=False
        )
        at_once = team.cpu_s / team.wall_s
    if at_once < TOGETHER * threads:
        ran = f"on average only {digits(at_once, 2)} of {threads} threads ran at once"
        comparison = comparison.called_held(f"This machine was busy: {ran}. Run the cell again.")
    return Counting(threads, strides, times, comparison, "", at_once)


def one_total(threads: int = 2, times: int = 2_000_000, *, budget_s: float = 2.0) -> OneTotal:
    """Let all threads count to one total, `times` increments each, and time four ways to do so.

    "plain" loads, adds and stores in one counter, and increments get lost; "mutex" does so with a lock held;
    "atomic" increments in one step; "private" counts plainly in counters 128 bytes apart, added up at the
    end. Where the system has no POSIX mutex that way is left out.
    """
    from course_lib.measure.counting_loops import LOOPS

    whole("threads", threads, most=MOST_THREADS)
    whole("times", times, most=MOST_TIMES // threads)
    lost: dict[str, int] = {}
    with _Team(threads) as team:

        def counted(way: str, run: Callable[[], int]) -> Callable[[], int]:
            def call() -> int:
                total = run()
                lost[way] = max(lost.get(way, 0), threads * times - total)
                return total

            return call

        ways = {way: team.counting(way, 0, times) for way in ("plain", "mutex", "atomic") if way in LOOPS}
        ways["private"] = team.counting("plain", max(STRIDES), times)
        runs = {way: counted(way, run) for way, run in ways.items()}
        how = {"threads": threads, "budget_s": budget_s, "max_error": False, "progress": False}
        return OneTotal(threads, times, compare(runs, baseline="private", **how), lost)


def name_of(stride: int) -> str:
    """Return the name under which a distance stands in a comparison."""
    return f"{stride} B apart" if stride else "one counter"


class _Team:
    """Threads that wait for work, so that starting them is not part of the time."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="counter")
        self._barrier = threading.Barrier(threads)
        self.cpu_s = self.wall_s = 0.0  # of all runs so far: CPU time of all threads, and wall time

    def __enter__(self) -> _Team:
        return self

    def __exit__(self, *problem: object) -> None:
        self._pool.shutdown(wait=True)

    def counting(self, kind: str, stride: int, times: int) -> Callable[[], int]:
        """Return a function that lets every thread count in its counter and returns what was added in all."""
        from course_lib.measure.counting_loops import LOOPS, MUTEX, make_mutex

        loop = LOOPS[kind]
        memory = page_aligned(2 * MUTEX + (self._threads - 1) * stride // WORD_BYTES)
        places = [thread * stride // WORD_BYTES for thread in range(self._threads)]

        def one(place: int) -> float:
            """Count and return the seconds of CPU time."""
            self._barrier.wait()
            start = time.thread_time()
            loop(memory, place, times)
            return time.thread_time() - start

        def run() -> int:
            memory[:] = 0
            if kind == "mutex":
                make_mutex(memory)
            start = time.perf_counter()
            self.cpu_s += sum(self._pool.map(one, places))
            self.wall_s += time.perf_counter() - start
            return int(sum(memory[place] for place in set(places)))

        return run


def page_aligned(words: int) -> np.ndarray:
    """Return `words` zeros (int64) that begin at a page and so at a cache line, alone in their lines."""
    room = np.zeros(-(-words * WORD_BYTES // PAGE_BYTES) * PAGE_BYTES + 2 * PAGE_BYTES, np.uint8)
    start = -room.ctypes.data % PAGE_BYTES
    return room[start : start + words * WORD_BYTES].view(np.int64)


def _times() -> int:
    """Return how many increments one thread does in CALL_S."""
    from course_lib.measure.counting_loops import atomic

    memory = page_aligned(1)
    times = 20_000
    while True:
        took = min(timeit.repeat(partial(atomic, memory, 0, times), number=1, repeat=5))
        if took > CALL_S / 8:
            return max(1, int(times * CALL_S / took))
        times *= 2


def _checked(threads: int, strides: Sequence[int]) -> tuple[int, ...]:
    whole("threads", threads, most=MOST_THREADS)
    strides = tuple(strides)
    if not strides or not all(is_whole(n) and n in range(0, PAGE_BYTES + 1, WORD_BYTES) for n in strides):
        wanted = f"one distance or more, each a multiple of 8 bytes up to {PAGE_BYTES}, for example (8, 64)"
        raise refusal("strides", strides, wanted)
    return strides
