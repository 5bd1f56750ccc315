"""What the machine can do at best: FLOP/s from registers, bandwidth of caches and memory, the clock.

All but bandwidths of reads are the best of several short repeats. A peak is a limit: a repeat that another
program disturbed says nothing about the limit, and no repeat can be too fast.
"""

from __future__ import annotations

import datetime
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import cycle, pairwise
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

from course_lib.arguments import whole
from course_lib.measure import clocks, hardware
from course_lib.measure.recording_files import Count, Moment, Positive, naming, validated

if TYPE_CHECKING:
    import numpy as np

DTYPES = ("float32", "float64")
SPANS = ("one", "all")
PAGE, HUGE = 4096, 2**21
METHOD = 4  # raise it when the way of measuring changes: remembered peaks are then measured again
WARM_UP_S = 0.03  # long enough for the clock frequency to rise
WINDOW_S = 0.005  # short, so that some windows are free of other programs
WINDOWS = 30
FEWEST_WINDOWS = 10
WINDOWS_S = 1.2  # on a busy machine the windows are cut short here
CALL_S = 0.25e-3  # one call of the register loop; threads that finish early take another
TRIAD_WINDOWS = 100
TRIAD_PIECE = 2**20  # bytes of each array in one call: short beside a window, long beside the call itself
TOUCH_S = 0.5  # first touching is slow on some virtual machines; arrays are made small enough for this time
SMALLEST_TRIAD_ARRAY = 16 * 2**20
LARGEST_TRIAD_ARRAY = 128 * 2**20
READ_WINDOWS = 12
READ_BYTES = 2**25  # in one call of the reading loop: long beside the call itself
TIMES_LOWER = 4  # a cache is read in so many times the bytes of the level before it, which has them no more
TICKS = 32  # of the clock's loop in a turn; its FMAs take 16 to 20 cycles
STREAM_RULE = 4  # STREAM wants each array at least this many times the last-level cache
MULTIPLIER, ADDEND = 0.999, 0.5  # v * 0.999 + 0.5 settles at 500: never inf, nan or denormal
DISTURBED = (
    "The machine was busy: half of the repeats were over 15 % below the best, so some peaks may be too low; "
    "machine.peaks(refresh=True) measures again."
)
Rates = Annotated[dict[str, Positive], naming(SPANS)]


@dataclass(frozen=True)
class Peaks:
    """The machine's limits, for one core ("one") and for all this process may use ("all").

    ``flops`` in GFLOP/s per dtype, ``bandwidth`` in GB/s (10^9 bytes; STREAM triad, three arrays counted).

    The triad a = b + s * c is counted as STREAM counts it, 24 bytes per float64 element. Most CPUs move 32:
    they read the lines of ``a`` before they write them (write-allocate). A loop that only reads has no such
    extra traffic, so it can exceed ``bandwidth`` by up to a third.
    """

    flops: Annotated[dict[str, Rates], naming(DTYPES)]
    bandwidth: Rates
    threads: Count  # how many "all" were
    when: Moment  # ISO 8601, UTC
    array_bytes: Count  # size of one of the triad's three arrays
    chain: Positive  # GFLOP/s of one core whose every FMA waits for the one before, float64
    ghz: Positive  # the clock of one core while it computes with vectors
    #: GB/s that one core reads, by level: "L1", "L2" ... as far as they are known, and "memory".
    reads: Annotated[dict[str, Positive], naming(("L1", "memory"))]
    notes: tuple[str, ...] = ()
    #: The same with 256-bit vectors where the CPU has wider ones (compilers often use no more); else None.
    flops_256: Annotated[dict[str, Rates], naming(DTYPES)] | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs disturbed the measurement, which may then be too low."""
        return DISTURBED in self.notes

    def gflops(self, dtype: Any = "float64", threads: int = 1) -> float:
        """Return the peak GFLOP/s for ``dtype`` on ``threads`` cores."""
        import numpy as np

        name = np.dtype(dtype).name
        if name not in self.flops:
            raise ValueError(
                f"No peak was measured for dtype {name!r}; there are {' and '.join(self.flops)}."
            )
        return _between(self.flops[name], threads, self.threads)

    def gflops_256(self, dtype: Any = "float64", threads: int = 1) -> float | None:
        """Return the peak GFLOP/s with 256-bit vectors, None where the CPU has no wider ones."""
        import numpy as np

        if self.flops_256 is None:
            return None
        return _between(self.flops_256[np.dtype(dtype).name], threads, self.threads)

    def gbps(self, threads: int = 1) -> float:
        """Return the memory bandwidth in GB/s that ``threads`` cores reach together."""
        return _between(self.bandwidth, threads, self.threads)

    @property
    def in_flight(self) -> float:
        """FMAs that must be under way to reach the peak: their latency x the ports they begin at."""
        return self.flops["float64"]["one"] / self.chain

    @property
    def loads(self) -> float:
        """Vectors that can be loaded from L1 in the time in which one FMA of vectors can begin."""
        return self.reads["L1"] / (4 * self.flops["float64"]["one"])  # 8 bytes and 2 FLOP for each lane

    def per_cycle(self, dtype: Any = "float64", threads: int = 1) -> int:
        """Return the FLOP that so many threads could do in a cycle, out of peak and clock of one core.

        Ports x lanes x 2 is a multiple of 4 on every CPU with vectors, so it is rounded to one.
        """
        cores = min(threads, hardware.cores())  # a second thread of a core brings no units of its own
        return cores * max(4, 4 * round(self.gflops(dtype) / self.ghz / 4))

    def data(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {"method": METHOD, **asdict(self)}


def restore(saved: Any) -> Peaks | None:
    """Return the Peaks that ``data`` was made of, None when the values cannot be trusted."""
    try:
        return validated(Peaks, saved) if saved["method"] == METHOD else None
    except (KeyError, TypeError, ValueError):
        return None


def higher(one: Peaks, other: Peaks) -> Peaks:
    """Return ``other`` with every limit raised to that of ``one``: no repeat can be too fast."""

    def top(a: Any, b: Any) -> Any:
        if isinstance(b, dict):
            return {name: top(a[name], b[name]) for name in b}
        return None if b is None else max(a, b)

    limits = ("flops", "bandwidth", "flops_256", "chain", "ghz", "reads")
    return replace(other, **{name: top(getattr(one, name), getattr(other, name)) for name in limits})


def measure(
    simd: str, simd_bits: int, threads: int, caches: tuple[hardware.CacheLevel, ...], memory_bytes: int
) -> Peaks:
    """Measure the peaks of a machine with these properties; about five seconds, Numba's import included."""
    notes: list[str] = []
    flops, chain, ghz, flops_disturbed = _measure_flops(simd, simd_bits, threads)
    array_bytes = _triad_array_bytes(caches, memory_bytes, notes)
    bandwidth, bandwidth_disturbed = _measure_bandwidth(threads, array_bytes)
    if flops_disturbed or bandwidth_disturbed:
        notes.insert(0, DISTURBED)
    return Peaks(
        flops=flops[max(flops)],
        bandwidth=bandwidth,
        threads=threads,
        when=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        array_bytes=array_bytes,
        chain=chain,
        ghz=ghz,
        reads=_measure_reads(simd_bits, caches, array_bytes),
        notes=tuple(notes),
        flops_256=flops[256] if max(flops) > 256 else None,
    )


# -- FLOP/s ------------------------------------------------------------------------------------------------


def _measure_flops(
    simd: str, simd_bits: int, threads: int
) -> tuple[dict[int, dict[str, dict[str, float]]], float, float, bool]:
    """Return GFLOP/s per vector width, dtype and span, of one chain, GHz, and if others disturbed them.

    Each is the best of many short windows; all kinds take turns, so each gets its calm moments.
    """
    widths = (simd_bits, 256) if simd_bits > 256 else (simd_bits,)
    loops = {(bits, dtype): _loop(dtype, simd, bits) for bits in widths for dtype in DTYPES}
    singles = {name: _loop("float64", simd, simd_bits, name) for name in ("chain", "clock")}
    rates = {(*kind, span): [] for kind in loops for span in SPANS} | {name: [] for name in singles}
    end = time.perf_counter() + WINDOWS_S
    for window in range(WINDOWS):
        if window >= FEWEST_WINDOWS and time.perf_counter() > end:
            break
        for kind, (call, gflop) in loops.items():
            rates[*kind, "one"].append(gflop * _rate(call))
            if threads > 1:
                rates[*kind, "all"].append(gflop * _rate_together(call, threads))
        for name, (call, amount) in singles.items():
            rates[name].append(amount * _rate(call))
    best = {
        bits: {dtype: _best(rates[bits, dtype, "one"], rates[bits, dtype, "all"]) for dtype in DTYPES}
        for bits in widths
    }
    disturbed = any(_is_disturbed(found) for found in rates.values())
    return best, max(rates["chain"]), max(rates["clock"]), disturbed


def _best(one: list[float], together: list[float]) -> dict[str, float]:
    """Return the best rate of one core, and of all: they are never slower than one of them."""
    return {"one": max(one), "all": max(one + together)}


def _is_disturbed(rates: list[float]) -> bool:
    return bool(rates) and sorted(rates)[len(rates) // 2] < 0.85 * max(rates)


def _loop(dtype: str, simd: str, simd_bits: int, kind: str = "") -> tuple[Callable[[], Any], float]:
    """Return a call that takes about CALL_S, and the GFLOP it does ("clock": the 10^9 cycles it takes).

    One "chain" of FMAs waits for itself, many do not.
    """
    import numpy as np

    from course_lib.measure.peak_loops import fma_loop

    # Latency 4 times 2 ports (x86) or 4 ports (ARM): 8 or 16 operations must be in flight. With 16 registers,
    # two of them taken by x and y, there is room for 12 chains and some to spare.
    many = 16 if simd in ("AVX-512", "NEON") else 12
    chains, ticks = {"chain": (1, 0), "clock": (4, TICKS)}.get(kind, (many, 0))
    fused = simd in ("AVX2", "AVX-512", "NEON")
    run, flops_per_turn = fma_loop(dtype, max(simd_bits, 128), chains, fused, ticks)
    x, y = np.dtype(dtype).type(MULTIPLIER), np.dtype(dtype).type(ADDEND)
    turns = _turns_in(CALL_S, lambda n: run(n, x, y))
    return lambda: run(turns, x, y), turns * (ticks or flops_per_turn) / 1e9


def _turns_in(seconds: float, run: Callable[[int], Any]) -> int:
    """Return how many turns take about ``seconds``, after bringing the core up to speed."""
    run(1000)
    turns, best = 20_000, math.inf
    end = time.perf_counter() + WARM_UP_S
    while time.perf_counter() < end:
        start = time.perf_counter()
        run(turns)
        best = min(best, time.perf_counter() - start)
    return max(1000, int(turns * seconds / best))


def _rate(call: Callable[[], Any]) -> float:
    """Return calls per second on this thread during one window, not counting what other programs take."""
    calls, begun = 0, _own_time()
    end = time.perf_counter() + WINDOW_S
    while time.perf_counter() < end:
        call()
        calls += 1
    return calls / (_own_time() - begun)


def _rate_together(call: Callable[[], Any], threads: int) -> float:
    """Return calls per second of all threads together during one window that begins on a barrier.

    A thread takes calls until the window is over, so fast and slow cores of a chip stay busy to the end.
    """

    def window(thread: int, barrier: threading.Barrier, worked: list) -> None:
        barrier.wait()
        worked.append(_work(call))

    return _joint_rate([own for (own,) in _on_threads(window, threads)])


def _joint_rate(worked: Sequence[tuple[float, float, float]]) -> float:
    """Return the amount of work per second of threads that each did (amount, start, end)."""
    amounts, starts, ends = zip(*worked, strict=True)
    return sum(amounts) / (max(ends) - min(starts))


def _work(call: Callable[[], Any]) -> tuple[int, float, float]:
    calls, start = 0, time.perf_counter()
    now = start
    while now - start < WINDOW_S:
        call()
        calls += 1
        now = time.perf_counter()
    return calls, start, now


# -- bandwidth ---------------------------------------------------------------------------------------------


def _measure_reads(
    simd_bits: int, caches: tuple[hardware.CacheLevel, ...], array_bytes: int
) -> dict[str, float]:
    """Return GB/s that one core reads from each cache and from memory, in windows that take turns.

    Half of a cache is read, and no more than does for the level before it to have lost it: the last cache may
    be shared with others.
    """
    import numpy as np

    from course_lib.measure.peak_loops import read_loop

    sizes = {f"L{cache.level}": cache.size_bytes // 2 for cache in caches} or {"L1": 2**14}
    for before, level in pairwise(caches):
        name = f"L{level.level}"
        sizes[name] = min(sizes[name], TIMES_LOWER * before.size_bytes)
    run, a_turn = read_loop(max(simd_bits, 128))
    raw = np.ones((array_bytes + HUGE) // 8)
    x = raw[-raw.ctypes.data % HUGE // 8 :]  # no vector lies in two lines, no small set in pages of two kinds
    sizes["memory"] = array_bytes
    rates: dict[str, list[float]] = {name: [] for name in sizes}
    for _ in range(READ_WINDOWS):
        for name, size in sizes.items():
            turns, times = size // a_turn, max(1, READ_BYTES // size)
            rate = _rate(lambda turns=turns, times=times: run(x, turns, times))
            rates[name].append(turns * times * a_turn / 1e9 * rate)
    return {name: median(found) for name, found in rates.items()}  # a last cache may help in the best window


def _triad_array_bytes(caches: tuple[hardware.CacheLevel, ...], memory_bytes: int, notes: list[str]) -> int:
    """Choose the size of one triad array: STREAM's rule where time and memory allow it."""
    last = caches[-1].size_bytes if caches else 0
    wanted = max(2 * SMALLEST_TRIAD_ARRAY, STREAM_RULE * last)
    chosen = min(wanted, LARGEST_TRIAD_ARRAY, memory_bytes // 16, _bytes_touched_in(TOUCH_S))
    if chosen < STREAM_RULE * last:
        notes.append(
            f"The triad arrays are {chosen / 2**20:.0f} MiB each; STREAM asks for {STREAM_RULE} times the "
            f"last-level cache, {last / 2**20:.0f} MiB. That cache may have served part of the traffic."
        )
    return chosen


def _bytes_touched_in(seconds: float) -> int:
    """Return the size of three arrays that can be touched first in this time, or the smallest size."""
    import numpy as np

    from course_lib.measure.peak_loops import touch

    arrays = [np.empty(SMALLEST_TRIAD_ARRAY // 8) for _ in range(3)]
    start = time.perf_counter()
    touch(*arrays)
    share = seconds / (time.perf_counter() - start)
    return int(SMALLEST_TRIAD_ARRAY * max(1.0, share)) // PAGE * PAGE


def _measure_bandwidth(threads: int, array_bytes: int) -> tuple[dict[str, float], bool]:
    """Return the triad's best GB/s of one core and of all, and whether other programs disturbed it."""
    one = _triad_rates(1, array_bytes)
    together = _triad_rates(threads, array_bytes) if threads > 1 else []
    return _best(one, together), _is_disturbed(one) or _is_disturbed(together)


def _triad_rates(threads: int, array_bytes: int) -> list[float]:
    """Return the GB/s of many short windows, every thread on the slice of the arrays that it touched first.

    From window to window a thread goes on where it was in its slice, so a piece comes back only after all
    the others: a cache smaller than the arrays has lost it by then.
    """
    import numpy as np

    from course_lib.measure.peak_loops import touch, triad

    count = array_bytes // 8
    arrays = [np.empty(count) for _ in range(3)]
    bounds = [count * t // threads for t in range(threads + 1)]

    def windows(thread: int, barrier: threading.Barrier, worked: list) -> None:
        own = [array[bounds[thread] : bounds[thread + 1]] for array in arrays]
        touch(*own)
        cut = _pieces(own)
        moved = sum(array.nbytes for array in cut[0]) / 1e9  # GB of a call, counted as STREAM does
        pieces = cycle(cut)
        for _ in range(TRIAD_WINDOWS):
            barrier.wait()
            if threads == 1:
                worked.append(moved * _rate(lambda: triad(*next(pieces), 3.0)))
            else:
                calls, start, end = _work(lambda: triad(*next(pieces), 3.0))
                worked.append((moved * calls, start, end))

    per_thread = _on_threads(windows, threads)
    if threads == 1:
        return per_thread[0]
    return [_joint_rate(window) for window in zip(*per_thread, strict=True)]


def _pieces(arrays: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Cut the arrays into pieces of TRIAD_PIECE bytes; what is left at the end is not used."""
    size = min(TRIAD_PIECE // 8, len(arrays[0]))
    starts = range(0, len(arrays[0]) - size + 1, size)
    return [[array[start : start + size] for array in arrays] for start in starts]


# -- helpers -----------------------------------------------------------------------------------------------


def _on_threads(work: Callable[[int, threading.Barrier, list], None], threads: int) -> list[list]:
    """Run ``work(thread, barrier, results)`` on that many threads at once; return each thread's results."""
    barrier = threading.Barrier(threads)
    results: list[list] = [[] for _ in range(threads)]

    def guarded(thread: int) -> None:
        try:
            work(thread, barrier, results[thread])
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(threads) as pool:
        ended = [pool.submit(guarded, thread) for thread in range(threads)]
    for problem in filter(None, (future.exception() for future in ended)):
        if not isinstance(problem, threading.BrokenBarrierError):
            raise problem
    return results


def _own_time() -> float:
    """Read this thread's CPU time, which leaves out what other programs take (wall time if unknown)."""
    return time.thread_time() if clocks.HAS_THREAD_CLOCK else time.perf_counter()


def _between(values: dict[str, float], threads: int, all_threads: int) -> float:
    """Return the limit of ``threads`` cores: as many times one core's, but not above all cores' together."""
    whole("threads", threads)
    return values["all"] if threads >= all_threads else min(threads * values["one"], values["all"])
