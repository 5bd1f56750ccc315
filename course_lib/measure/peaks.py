"""What the machine can do at best: FLOP/s from registers, and memory bandwidth.

Both are the best of several short repeats. A peak is a limit: a repeat that another program disturbed says
nothing about the limit, and no repeat can be too fast.
"""

from __future__ import annotations

import datetime
import math
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from course_lib.measure import clocks, hardware

DTYPES = ("float32", "float64")
SPANS = ("one", "all")
PAGE = 4096
METHOD = 1  # raise it when the way of measuring changes: remembered peaks are then measured again
WARM_UP_S = 0.03  # long enough for the clock frequency to rise
WINDOW_S = 0.005  # short, so that some windows are free of other programs
WINDOWS = 30
FEWEST_WINDOWS = 10
WINDOWS_S = 1.0  # on a busy machine the windows are cut short here
CALL_S = 0.25e-3  # one call of the register loop; threads that finish early take another
TRIAD_PASSES = 5
TOUCH_S = 0.7  # first touching is slow on some virtual machines; arrays are made small enough for this time
SMALLEST_TRIAD_ARRAY = 16 * 2**20
LARGEST_TRIAD_ARRAY = 128 * 2**20
STREAM_RULE = 4  # STREAM wants each array at least this many times the last-level cache
MULTIPLIER, ADDEND = 0.999, 0.5  # v * 0.999 + 0.5 settles at 500: never inf, nan or denormal


@dataclass(frozen=True)
class Peaks:
    """The machine's limits, for one core ("one") and for all this process may use ("all").

    ``flops`` in GFLOP/s per dtype, ``bandwidth`` in GB/s (10^9 bytes; STREAM triad, three arrays counted).
    """

    flops: dict[str, dict[str, float]]
    bandwidth: dict[str, float]
    threads: int  # how many "all" were
    when: str  # ISO 8601, UTC
    array_bytes: int  # size of one of the triad's three arrays
    notes: tuple[str, ...] = ()

    def gflops(self, dtype: Any = "float64", threads: int = 1) -> float:
        """Return the peak GFLOP/s for ``dtype`` on ``threads`` cores."""
        import numpy as np

        name = np.dtype(dtype).name
        if name not in self.flops:
            raise ValueError(
                f"No peak was measured for dtype {name!r}; there are {' and '.join(self.flops)}."
            )
        return _between(self.flops[name], threads, self.threads)

    def gbps(self, threads: int = 1) -> float:
        """Return the memory bandwidth in GB/s that ``threads`` cores reach together."""
        return _between(self.bandwidth, threads, self.threads)

    def data(self) -> dict[str, Any]:
        """Return everything as JSON-ready values."""
        return {"method": METHOD, **asdict(self), "notes": list(self.notes)}


def restore(saved: Any) -> Peaks | None:
    """Return the Peaks that ``data`` was made of, None when the values cannot be trusted."""
    try:
        if saved["method"] != METHOD:
            return None
        peaks = Peaks(
            flops={
                dtype: {span: _positive(saved["flops"][dtype][span]) for span in SPANS} for dtype in DTYPES
            },
            bandwidth={span: _positive(saved["bandwidth"][span]) for span in SPANS},
            threads=int(_positive(saved["threads"])),
            when=datetime.datetime.fromisoformat(saved["when"]).isoformat(timespec="seconds"),
            array_bytes=int(_positive(saved["array_bytes"])),
            notes=tuple(str(note) for note in saved["notes"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    return peaks


def measure(
    simd: str, simd_bits: int, threads: int, caches: tuple[hardware.CacheLevel, ...], memory_bytes: int
) -> Peaks:
    """Measure the peaks of a machine with these properties; about two seconds, Numba's import included."""
    notes: list[str] = []
    flops = _measure_flops(simd, simd_bits, threads, notes)
    array_bytes = _triad_array_bytes(caches, memory_bytes, notes)
    one = _measure_triad(1, array_bytes)
    return Peaks(
        flops=flops,
        bandwidth={
            "one": one,
            "all": one if threads == 1 else max(one, _measure_triad(threads, array_bytes)),
        },
        threads=threads,
        when=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        array_bytes=array_bytes,
        notes=tuple(notes),
    )


# -- FLOP/s ------------------------------------------------------------------------------------------------


def _measure_flops(simd: str, simd_bits: int, threads: int, notes: list[str]) -> dict[str, dict[str, float]]:
    """Return the best GFLOP/s of many short windows; kinds take turns, so each gets its calm moments."""
    kernels = {dtype: _kernel(dtype, simd, simd_bits) for dtype in DTYPES}
    rates = {(dtype, span): [] for dtype in DTYPES for span in SPANS}
    end = time.perf_counter() + WINDOWS_S
    for window in range(WINDOWS):
        if window >= FEWEST_WINDOWS and time.perf_counter() > end:
            break
        for dtype, (call, gflop) in kernels.items():
            rates[dtype, "one"].append(gflop * _rate(call))
            if threads > 1:
                rates[dtype, "all"].append(gflop * _rate_together(call, threads))
    if any(_is_disturbed(found) for found in rates.values()):
        notes.append(
            "The machine was busy: half of the repeats were over 15 % below the best, so the numbers for all "
            "cores may be too low; machine.peaks(refresh=True) measures again."
        )
    best = {kind: max(found, default=0.0) for kind, found in rates.items()}
    return {
        dtype: {"one": best[dtype, "one"], "all": max(best[dtype, "one"], best[dtype, "all"])}
        for dtype in DTYPES
    }


def _is_disturbed(rates: list[float]) -> bool:
    return bool(rates) and sorted(rates)[len(rates) // 2] < 0.85 * max(rates)


def _kernel(dtype: str, simd: str, simd_bits: int) -> tuple[Callable[[], Any], float]:
    """Return a call that takes about CALL_S, and the GFLOP it does."""
    import numpy as np

    from course_lib.measure.peak_kernels import fma_loop

    # Latency 4 times 2 ports (x86) or 4 ports (ARM): 8 or 16 operations must be in flight. With 16 registers,
    # two of them taken by x and y, there is room for 12 chains and some to spare.
    chains = 16 if simd in ("AVX-512", "NEON") else 12
    fused = simd in ("AVX2", "AVX-512", "NEON")
    run, flops_per_turn = fma_loop(dtype, max(simd_bits, 128), chains, fused)
    x, y = np.dtype(dtype).type(MULTIPLIER), np.dtype(dtype).type(ADDEND)
    turns = _turns_in(CALL_S, lambda n: run(n, x, y))
    return lambda: run(turns, x, y), turns * flops_per_turn / 1e9


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

    worked = [own for (own,) in _on_threads(window, threads)]
    calls, starts, ends = zip(*worked, strict=True)
    return sum(calls) / (max(ends) - min(starts))


def _work(call: Callable[[], Any]) -> tuple[int, float, float]:
    calls, start = 0, time.perf_counter()
    now = start
    while now - start < WINDOW_S:
        call()
        calls += 1
        now = time.perf_counter()
    return calls, start, now


# -- bandwidth ---------------------------------------------------------------------------------------------


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

    from course_lib.measure.peak_kernels import touch

    arrays = [np.empty(SMALLEST_TRIAD_ARRAY // 8) for _ in range(3)]
    start = time.perf_counter()
    touch(*arrays)
    share = seconds / (time.perf_counter() - start)
    return int(SMALLEST_TRIAD_ARRAY * max(1.0, share)) // PAGE * PAGE


def _measure_triad(threads: int, array_bytes: int) -> float:
    """Return the best GB/s of a few passes, every thread on the slice of the arrays that it touched first."""
    import numpy as np

    from course_lib.measure.peak_kernels import touch, triad

    count = array_bytes // 8
    arrays = [np.empty(count) for _ in range(3)]
    bounds = [count * t // threads for t in range(threads + 1)]

    def passes(thread: int, barrier: threading.Barrier, spans: list) -> None:
        own = [array[bounds[thread] : bounds[thread + 1]] for array in arrays]
        touch(*own)
        for _ in range(TRIAD_PASSES):
            barrier.wait()
            start = clock()
            triad(*own, 3.0)
            spans.append((start, clock()))

    clock = time.perf_counter if threads > 1 else _own_time
    spans = _on_threads(passes, threads)
    seconds = [
        max(end for _, end in same) - min(start for start, _ in same) for same in zip(*spans, strict=True)
    ]
    return 3 * 8 * count / min(seconds) / 1e9


# -- helpers -----------------------------------------------------------------------------------------------


def _on_threads(work: Callable[[int, threading.Barrier, list], None], threads: int) -> list[list]:
    """Run ``work(thread, barrier, results)`` on that many threads at once; return each thread's results."""
    barrier = threading.Barrier(threads)
    results: list[list] = [[] for _ in range(threads)]
    problems: list[BaseException] = []

    def guarded(thread: int) -> None:
        try:
            work(thread, barrier, results[thread])
        except BaseException as problem:
            problems.append(problem)
            barrier.abort()

    crew = [threading.Thread(target=guarded, args=(t,), daemon=True) for t in range(threads)]
    for member in crew:
        member.start()
    for member in crew:
        member.join()
    for problem in problems:
        if not isinstance(problem, threading.BrokenBarrierError):
            raise problem
    return results


def _own_time() -> float:
    """Read this thread's CPU time, which leaves out what other programs take (wall time if unknown)."""
    return time.thread_time() if clocks.HAS_THREAD_CLOCK else time.perf_counter()


def _between(values: dict[str, float], threads: int, all_threads: int) -> float:
    """Return the limit of ``threads`` cores: as many times one core's, but not above all cores' together."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads is {threads!r}, but it must be a whole number from 1 to {all_threads}.")
    return values["all"] if threads >= all_threads else min(threads * values["one"], values["all"])


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{value!r} is no positive number")
    return value
