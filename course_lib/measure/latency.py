"""How long a number takes to arrive, against how much memory the program goes round in: a pointer chase.

    curve = measure()                       # the system's own pages
    curve.table()                           # a plateau per cache level, and where the curve really climbs
    curve.where_it_ends                     # a sentence if the curve does not reach memory, else empty

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

from course_lib.arguments import one_of
from course_lib.measure import hardware
from course_lib.measure.jit import compiled
from course_lib.measure.sizes import in_bytes
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
SHARE = 2.0  # a curve that climbs at less than the size / SHARE climbs early, and the table says so
PAGES = {"system": None, "small": "MADV_NOHUGEPAGE", "huge": "MADV_HUGEPAGE"}


MEMORY = "memory"
UNNAMED = "plateau"  # where the system does not tell its caches


@dataclass(frozen=True)
class Plateau:
    """A stretch of the curve: the level it lies in, the latency there, and where the curve climbs after it.

    `level` is "L1", …, or "memory" beyond the last cache: that of the smallest cache which holds the
    plateau's first working sets. `name` tells plateaus of one level apart: "L3", "L3, step 2". `size_bytes`
    is what the system says of that cache, None for memory. `edge_bytes` is where the latency passes the
    geometric mean of this plateau and the next; None after the last one, and where a cache between them has
    no plateau.
    """

    name: str
    level: str
    size_bytes: int | None
    nanoseconds: float
    edge_bytes: float | None
    first_bytes: int  # the smallest and the largest working set on it
    last_bytes: int


#: Neighbouring measured sizes with their nanoseconds, between which the latency hardly grows. The first size
#: may be the end of the climb, in the cache before.
FlatRun = list[tuple[int, float]]


@dataclass(frozen=True)
class LatencyCurve:
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
        """Return where the curve is flat, smallest working set first.

        Flat is a run of at least FLAT_POINTS sizes between which the latency hardly grows: found in the data
        alone. Each is then named after the smallest cache that holds its first working sets, so a cache in
        which the curve is nowhere flat, or has two steps, does not shift the names of the others.
        """
        runs = self._flat_runs()
        skipped = [cache.size_bytes for cache in self._sloping(runs)]
        medians = [_median(run) for run in runs]
        levels = [self._level(run[1][0]) for run in runs]
        found = []
        for n, (run, (level, size_bytes)) in enumerate(zip(runs, levels, strict=True)):
            step = 1 + [name for name, _ in levels[:n]].count(level)
            edge = None
            if n + 1 < len(runs):
                low, high = size_bytes or math.inf, levels[n + 1][1] or math.inf
                if not any(low < size < high for size in skipped):
                    edge = self._edge(medians[n], medians[n + 1])
            name = level if step == 1 else f"{level}, step {step}"
            if n + 1 == len(runs) and run[-1][0] > (size_bytes or math.inf):
                name = MEMORY  # of that cache the system gives only a part: see where_it_ends
            found.append(Plateau(name, level, size_bytes, medians[n], edge, run[0][0], run[-1][0]))
        return found

    def _flat_runs(self) -> list[FlatRun]:
        """Return the runs that are long enough; one that is no higher than the one before belongs to it."""
        points = list(zip(self.sizes, self.nanoseconds, strict=True))
        runs = [points[:1]]
        for (size, before), (next_size, ns) in pairwise(points):
            if ns >= before * (next_size / size) ** FLAT:
                runs.append([])
            runs[-1].append((next_size, ns))
        found: list[FlatRun] = []
        for run in runs:
            if len(run) < FLAT_POINTS:
                continue
            if found and _median(run) <= CLIMB * _median(found[-1]):
                found[-1] += run
            else:
                found.append(run)
        return found

    def _level(self, size: int) -> tuple[str, int | None]:
        """Return the name and size of the smallest cache that holds so many bytes."""
        return holding(self.caches, size) if self.caches else (UNNAMED, None)

    def _sloping(self, runs: Sequence[FlatRun]) -> list[hardware.CacheLevel]:
        """Return the caches for which sizes were measured, but none of them on a plateau."""
        found, below = [], 0
        for cache in sorted(self.caches, key=lambda cache: cache.size_bytes):
            own = [size for size in self.sizes if below < size <= cache.size_bytes]
            if own and not any(run[1][0] <= size <= run[-1][0] for run in runs for size in own):
                found.append(cache)
            below = cache.size_bytes
        return found

    def _edge(self, low: float, high: float) -> float | None:
        """Return the size at which the curve passes the middle between two plateaus, on logarithmic axes."""
        middle = math.sqrt(low * high)
        for (size, ns), (next_size, next_ns) in pairwise(zip(self.sizes, self.nanoseconds, strict=True)):
            if ns < middle <= next_ns:
                share = math.log(middle / ns) / math.log(next_ns / ns)
                return size * (next_size / size) ** share
        return None

    @property
    def reaches_memory(self) -> bool:
        """Whether the curve has a plateau beyond the last cache that the system tells of."""
        return any(one.level == MEMORY for one in self.plateaus())

    @property
    def where_it_ends(self) -> str:
        """One sentence for a curve that does not reach memory; empty if it does."""
        if not self.caches:
            return "This system does not tell its caches, so nobody knows which plateau is which."
        last = max(self.caches, key=lambda cache: cache.size_bytes)
        largest = in_bytes(self.sizes[-1])
        if self.sizes[-1] <= last.size_bytes:
            return (
                "By the sizes that the system tells, memory is not reached: the largest working set "
                f"({largest}) fits into L{last.level} ({in_bytes(last.size_bytes)})."
            )
        if self.reaches_memory:
            return ""
        for far in self.plateaus()[-1:]:
            if far.last_bytes > last.size_bytes:
                flat = f"{in_bytes(far.first_bytes)} to {in_bytes(far.last_bytes)}"
                return (
                    f"The curve is flat from {flat}, beyond L{last.level} ({in_bytes(last.size_bytes)} by "
                    "the system): of that cache you have only a part, and this is memory."
                )
        return (
            f"No plateau of memory is seen: the curve still climbs at the largest working set ({largest}), "
            f"beyond L{last.level} ({in_bytes(last.size_bytes)} by the system)."
        )

    def table(self, huge: LatencyCurve | None = None) -> Table:
        """Return the plateaus beside what the system says of its caches.

        huge: the same walk in pages of 2 MiB, which tells why this one leaves a plateau early.
        """
        plateaus = self.plateaus()
        first = plateaus[0].nanoseconds if plateaus else math.nan
        rows = tuple(
            (
                one.name,
                _kib(None if one.name == MEMORY else one.size_bytes),
                digits(one.nanoseconds, 2),
                f"{digits(one.nanoseconds / first, 2)}x",
                _kib(one.edge_bytes),
            )
            for one in plateaus
        )
        against = f"against {plateaus[0].name if plateaus else 'the first'}"
        columns = ("level", "size by the system (KiB)", "latency (ns)", against, "climbs at about (KiB)")
        caption = f"Latency of one read, {self._pages_in_words()}"
        ends = (self.where_it_ends,) if self.where_it_ends else ()
        said = (*self.notes, *self._slopes(), *self._early(plateaus, huge), *ends)
        return Table(columns, rows, caption, notes=said)

    def _slopes(self) -> Iterator[str]:
        for cache in self._sloping(self._flat_runs()):
            yield f"L{cache.level} has no plateau of its own: the curve climbs all the way through it."

    def _early(self, plateaus: Sequence[Plateau], huge: LatencyCurve | None) -> Iterator[str]:
        """Say where the curve leaves a plateau long before its cache is full, and what may be the cause."""
        part = (
            "you have only a part of that cache (a virtual machine, or a cache divided among groups of cores)"
        )
        pages = "the TLB does not keep the addresses of so many pages"
        alone = self.pages == "huge" and not self.notes
        either = f'{pages} (compare measure("huge")), or {part}'
        last = max((cache.size_bytes for cache in self.caches), default=None)
        is_said = "only a part" in self.where_it_ends and not huge
        for one in plateaus:
            if is_said and one.size_bytes == last:
                continue
            if one.edge_bytes and one.size_bytes and one.edge_bytes * SHARE < one.size_bytes:
                cause = f"It may be that {part if alone else either}"
                if huge and not huge.notes:
                    stays = huge.at(SHARE * one.edge_bytes) <= CLIMB * one.nanoseconds
                    cause = f"In 2 MiB pages it stays: {pages}" if stays else f"In 2 MiB pages, too: {part}"
                yield (
                    f"The curve leaves {one.name} at about {in_bytes(one.edge_bytes, 2)}, long before the "
                    f"{in_bytes(one.size_bytes)} that the system tells of {one.level}. "
                    f"{cause}{'; then what follows is memory' if one.size_bytes == last else ''}."
                )

    def _pages_in_words(self) -> str:
        return {"small": "4 KiB pages", "huge": "2 MiB pages"}.get(self.pages, "the system's own pages")


def holding(caches: Sequence[hardware.CacheLevel], size: int) -> tuple[str, int | None]:
    """Return the name and the size of the smallest cache that holds so many bytes: "memory" if none does."""
    fitting = [cache for cache in caches if cache.size_bytes >= size]
    nearest = min(fitting, key=lambda cache: cache.size_bytes, default=None)
    return (f"L{nearest.level}", nearest.size_bytes) if nearest else (MEMORY, None)


def measure(pages: str = "system", sizes: Sequence[int] | None = None) -> LatencyCurve:
    """Return the latency curve of this machine: about a second.

    pages: "system" (what NumPy would get), "small" or "huge" (2 MiB; Linux only). sizes: working sets in
    bytes, rising; None: from 4 KiB to beyond the last cache, at most 128 MiB. Raises ValueError for sizes
    that are no such list, for other pages, and RuntimeError where the system does not let one choose pages.
    """
    caches = hardware.caches()
    line = max([cache.line_bytes for cache in caches], default=64)
    sizes = _checked_sizes(default_sizes(caches) if sizes is None else sizes, line)
    memory, notes = allocate(sizes[-1], pages)
    rng = np.random.default_rng(0)
    found = [_latency(memory[: size // WORD], line, rng) for size in sizes]
    return LatencyCurve(tuple(sizes), tuple(found), caches, pages, notes)


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


def allocate(size: int, pages: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return uint64 memory that begins at a multiple of 2 MiB, and what there is to say about its pages."""
    one_of("pages", pages, PAGES)
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


def _huge_bytes() -> int | None:
    """Return how many bytes of this process lie in huge pages; None where the system does not tell."""
    lines = hardware.text_of(Path("/proc/self/smaps_rollup")).splitlines()
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages:")]
    return found[0] if found else None


def _checked_sizes(sizes: Sequence[int], line: int) -> list[int]:
    checked = [int(size) // WORD * WORD for size in sizes]
    if not checked or checked != sorted(set(checked)) or checked[0] < 2 * line:
        raise ValueError(f"sizes is {sizes!r}, but it must be rising numbers of bytes from {2 * line} on.")
    return checked


def _median(run: FlatRun) -> float:
    return float(np.median([ns for _, ns in run]))


def _kib(size: float | None) -> str:
    return "–" if size is None else digits(size / 2**10, 3 if size < 2**20 else 4)
