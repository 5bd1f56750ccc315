"""How long a number takes to arrive, against how much memory the program goes round in: a pointer chase.

    curve = measure()                       # the system's own pages
    curve.table()                           # a plateau per cache level, and where the curve really climbs

Every step reads a number that says where to read next, so the CPU can neither begin two reads at once nor
guess the next place: one step takes one latency. The places form one random cycle (Sattolo 1986) through all
cache lines of the working set, one number a line, so each step needs a line of its own and a prefetcher finds
no pattern. This is lat_mem_rd of lmbench (McVoy and Staelin, USENIX 1996) with a random order.

What the curve holds besides the caches: the CPU keeps the addresses of a limited number of pages (the TLB). A
random walk through more pages than that pays for looking them up as well. With pages of 2 MiB instead of
4 KiB it hardly ever does, so the difference between `measure("small")` and `measure("huge")` is the TLB's.
"""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from course_lib.measure import hardware
from course_lib.measure.jit import compiled
from course_lib.measure.table import Table, digits

WORD = 8  # bytes of a number that says where to go
SMALLEST = 4 * 2**10
LARGEST = 128 * 2**20  # beyond it the time to build the cycle is longer than the measurement
MEMORY_SHARE = 8  # and never more than an eighth of the memory
POINTS_PER_DOUBLING = 2
SAMPLE_S = 2e-3
SAMPLES = 5
WARM_LINES = 2**17  # larger working sets are as warm as writing the cycle has made them
HUGE = 2 * 2**20
FLAT = 0.75  # the latency grows with a lower power of the size than this
FLAT_POINTS = 3
CLIMB = 1.25  # two plateaus closer than this are one
SHARE = 2.0  # a curve that climbs at less than the size / SHARE says that one has only a part of the cache
PAGES = {"system": None, "small": "MADV_NOHUGEPAGE", "huge": "MADV_HUGEPAGE"}


@dataclass(frozen=True)
class Plateau:
    """A stretch of the curve: the level it lies in, the latency there, and where the curve climbs after it.

    `size_bytes` is what the system says, None for memory. `edge_bytes` is where the latency passes the
    geometric mean of this plateau and the next; None after the last one.
    """

    name: str
    size_bytes: int | None
    nanoseconds: float
    edge_bytes: float | None


@dataclass(frozen=True)
class Curve:
    """Latencies in nanoseconds against working sets in bytes, the shortest of several samples each."""

    sizes: tuple[int, ...]
    nanoseconds: tuple[float, ...]
    caches: tuple[hardware.CacheLevel, ...]
    pages: str
    notes: tuple[str, ...] = ()

    def at(self, size_bytes: float) -> float:
        """Return the latency of the measured size nearest to this one."""
        nearest = min(range(len(self.sizes)), key=lambda n: abs(math.log(self.sizes[n] / size_bytes)))
        return self.nanoseconds[nearest]

    def plateaus(self) -> list[Plateau]:
        """Return where the curve is flat, smallest working set first: found in the data alone.

        Flat is a run of at least FLAT_POINTS sizes between which the latency hardly grows. The n-th is named
        after the n-th cache, all after the last cache "memory".
        """
        runs = [float(np.median(run)) for run in self._flat_runs()]
        found = [ns for n, ns in enumerate(runs) if n == 0 or ns > CLIMB * runs[n - 1]]
        known = [(f"L{cache.level}", cache.size_bytes) for cache in self.caches]
        names = known + [("memory", None)] * len(found)
        later = [*found[1:], None]
        return [
            Plateau(*name, ns, None if after is None else self._edge(ns, after))
            for name, ns, after in zip(names, found, later, strict=False)
        ]

    def _flat_runs(self) -> list[list[float]]:
        runs: list[list[float]] = [[self.nanoseconds[0]]]
        for (size, before), (next_size, ns) in pairwise(zip(self.sizes, self.nanoseconds, strict=True)):
            if ns < before * (next_size / size) ** FLAT:
                runs[-1].append(ns)
            else:
                runs.append([ns])
        return [run for run in runs if len(run) >= FLAT_POINTS]

    def _edge(self, low: float, high: float) -> float | None:
        """Return the size at which the curve passes the middle between two plateaus, on logarithmic axes."""
        middle = math.sqrt(low * high)
        pairs = list(zip(self.sizes, self.nanoseconds, strict=True))
        for (size, ns), (next_size, next_ns) in pairwise(pairs):
            if ns < middle <= next_ns:
                share = math.log(middle / ns) / math.log(next_ns / ns)
                return size * (next_size / size) ** share
        return None

    def table(self) -> Table:
        """Return the plateaus beside what the system says of its caches."""
        plateaus = self.plateaus()
        first = plateaus[0].nanoseconds if plateaus else math.nan
        rows = tuple(
            (
                one.name,
                _kib(one.size_bytes),
                digits(one.nanoseconds, 2),
                f"{digits(one.nanoseconds / first, 2)}x",
                _kib(one.edge_bytes),
            )
            for one in plateaus
        )
        columns = ("level", "size by the system (KiB)", "latency (ns)", "against L1", "climbs at about (KiB)")
        caption = f"Latency of one read, {self._pages_in_words()}"
        return Table(columns, rows, caption, notes=(*self.notes, *self._shares(plateaus)))

    def _shares(self, plateaus: Sequence[Plateau]) -> Iterator[str]:
        for one in plateaus:
            if one.edge_bytes and one.size_bytes and one.edge_bytes * SHARE < one.size_bytes:
                yield (
                    f"The curve leaves {one.name} long before the size that the system tells: you have only "
                    "a part of it (a virtual machine, or a cache divided among groups of cores)."
                )

    def _pages_in_words(self) -> str:
        return {"small": "4 KiB pages", "huge": "2 MiB pages"}.get(self.pages, "the system's own pages")


def measure(pages: str = "system", sizes: Sequence[int] | None = None, seed: int = 0) -> Curve:
    """Return the latency curve of this machine: about a second.

    pages: "system" (what NumPy would get), "small" or "huge" (2 MiB; Linux only). sizes: working sets in
    bytes, rising; None: from 4 KiB to beyond the last cache, at most 128 MiB. Raises ValueError for sizes
    that are no such list, for other pages, and RuntimeError where the system does not let one choose pages.
    """
    caches = hardware.caches()
    line = max([cache.line_bytes for cache in caches], default=64)
    sizes = _checked_sizes(default_sizes(caches) if sizes is None else sizes, line)
    memory, notes = _memory(sizes[-1], pages)
    rng = np.random.default_rng(seed)
    found = [_latency(memory[: size // WORD], line, rng) for size in sizes]
    return Curve(tuple(sizes), tuple(found), caches, pages, notes)


def default_sizes(caches: Sequence[hardware.CacheLevel]) -> list[int]:
    """Return working sets from 4 KiB to four times the last cache, within LARGEST and the memory."""
    last = caches[-1].size_bytes if caches else 8 * 2**20
    largest = min(max(4 * last, 2**24), LARGEST, hardware.memory_bytes() // MEMORY_SHARE)
    steps = int(POINTS_PER_DOUBLING * math.log2(largest / SMALLEST))
    return [int(SMALLEST * 2 ** (n / POINTS_PER_DOUBLING)) // 512 * 512 for n in range(steps + 1)]


def cycle(places: int, rng: np.random.Generator) -> np.ndarray:
    """Return `following` (uint64): one random cycle through 0 … places - 1 that starts and ends anywhere."""
    order = rng.permutation(places)
    following = np.empty(places, np.uint64)
    following[order] = np.roll(order, -1)
    return following


@compiled
def chase(memory, start, steps):
    """Go `steps` steps through memory, each to the index that stands at the present one; return the end.

    All uint64: an index that might be negative would put Python's question, is it?, on the path we time.
    """
    place = start
    for _ in range(steps):
        place = memory[place]
    return place


def _latency(memory: np.ndarray, line: int, rng: np.random.Generator) -> float:
    """Return nanoseconds a step: the shortest of SAMPLES, as whatever else happens only makes it longer."""
    stride = line // WORD
    lines = len(memory) // stride
    memory[: lines * stride : stride] = cycle(lines, rng) * np.uint64(stride)
    place = np.uint64(chase(memory, np.uint64(0), min(lines, WARM_LINES)))
    steps, seconds = 256, 0.0
    while seconds < SAMPLE_S / 2:
        steps *= 2
        place, seconds = _timed(memory, place, steps)
    best = seconds
    for _ in range(SAMPLES):
        place, seconds = _timed(memory, place, steps)
        best = min(best, seconds)
    return 1e9 * best / steps


def _timed(memory: np.ndarray, place: int, steps: int) -> tuple[np.uint64, float]:
    start = time.perf_counter()
    place = chase(memory, place, steps)
    return np.uint64(place), time.perf_counter() - start


def _memory(size: int, pages: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return uint64 memory that begins at a multiple of 2 MiB, and what there is to say about its pages."""
    if pages not in PAGES:
        raise ValueError(f"pages is {pages!r}, but it must be one of {', '.join(PAGES)}.")
    room = -(-size // HUGE) * HUGE + HUGE
    if pages == "system":
        raw = np.empty(room, np.uint8)
        start = -raw.ctypes.data % HUGE
        return raw[start : start + size].view(np.uint64), ()
    advice = getattr(mmap, PAGES[pages], None)
    if advice is None:
        raise RuntimeError(f'This system does not let a program ask for {pages} pages: take pages="system".')
    mapped = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        mapped.madvise(advice)
    except OSError as problem:
        raise RuntimeError(
            f'This system does not give {pages} pages ({problem.strerror}): take pages="system".'
        ) from None
    raw = np.frombuffer(mapped, np.uint8)  # keeps the mapping alive
    start = -raw.ctypes.data % HUGE
    raw[start : start + size] = 0
    notes = ()
    if pages == "huge" and (got := _huge_bytes()) is not None and got < size // 2:
        notes = ("The system had hardly any 2 MiB pages to give, so these are mostly 4 KiB pages.",)
    return raw[start : start + size].view(np.uint64), notes


def _huge_bytes(file: Path = Path("/proc/self/smaps_rollup")) -> int | None:
    """Return how many bytes of this process lie in huge pages; None where the system does not tell."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages:")]
    return found[0] if found else None


def _checked_sizes(sizes: Sequence[int], line: int) -> list[int]:
    checked = [int(size) // WORD * WORD for size in sizes]
    if not checked or checked != sorted(set(checked)) or checked[0] < 2 * line:
        raise ValueError(f"sizes is {sizes!r}, but it must be rising numbers of bytes from {2 * line} on.")
    return checked


def _kib(size: float | None) -> str:
    return "–" if size is None else digits(size / 2**10, 3 if size < 2**20 else 4)
