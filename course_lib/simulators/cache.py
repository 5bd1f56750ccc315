"""A cache simulator: which memory accesses of a program hit, which miss, and in which level.

    levels = [Level(48 * 2**10, ways=12), Level(2 * 2**20, ways=16)]
    simulate(addresses, levels).misses                      # one number per level
    simulate(traces.loops("ikj", 512, 512, 512), levels)    # with the matrices told apart

The model is that of Valgrind's cachegrind (its manual, "Cache simulation specifics"), for any depth:

- A level has sets of `ways` lines. A line belongs to set (address // line_bytes) % sets. A full set gives up
  the line whose last use is longest ago (LRU).
- An access that finds its line is a hit; otherwise a miss, which asks the next level and brings the line in
  (also for a write: write-allocate). So the accesses of level 2 are the misses of level 1. A hit in level 1
  is not seen by level 2, and a line that leaves level 2 may stay in level 1 (neither inclusive nor
  exclusive).
- A written line is dirty. When it leaves its level it is written to the next one, if that still holds the
  line, and else to the one after that (write-back). Write-backs are counted, but they are no accesses and
  do not count as a use: so `writes` change no hit and no miss. (Cachegrind does not model them.)
- An access stands for all bytes it touches: it is assumed not to reach over the end of a line, which holds
  for every aligned number. For one that does, only the line of its first byte is counted.

What a real cache does besides is left out on purpose: prefetching, other programs, the translation of virtual
to physical addresses, replacement that only approximates LRU. The difference to measurements is what teaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from course_lib.arguments import whole
from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import Shown, Table, digits

if TYPE_CHECKING:
    from course_lib.measure.hardware import CacheLevel
    from course_lib.simulators.traces import AddressTrace

ASSUMED_WAYS = 8


@dataclass(frozen=True)
class Level:
    """One level of cache: its size in bytes, the ways of a set (None: fully associative), bytes in a line.

    The line must be a power of two, the size a whole number of sets; the number of sets may be any.
    """

    size_bytes: int
    ways: int | None = None
    line_bytes: int = 64
    name: str | None = None  # None: "L1", "L2", … by position
    is_assumed: bool = False  # the ways are not known of this machine: a table says so

    def __post_init__(self) -> None:
        for what in ("size_bytes", "line_bytes"):
            whole(what, getattr(self, what))
        if self.line_bytes & (self.line_bytes - 1):
            raise ValueError(f"line_bytes is {self.line_bytes}, but a cache line is a power of two: take 64.")
        if self.ways is not None:
            whole("ways", self.ways)
        if self.size_bytes % (self.set_ways * self.line_bytes) or self.size_bytes < self.line_bytes:
            raise ValueError(
                f"size_bytes is {self.size_bytes}, but it must be a multiple of a set, which is "
                f"{self.ways or 1} ways x {self.line_bytes} bytes: change the size or the ways."
            )

    @property
    def lines(self) -> int:
        """How many lines the level holds."""
        return self.size_bytes // self.line_bytes

    @property
    def set_ways(self) -> int:
        """The ways as a number: all lines if fully associative."""
        return max(self.lines, 1) if self.ways is None else self.ways

    @property
    def sets(self) -> int:
        """How many sets the lines are divided into."""
        return self.lines // self.set_ways


def levels_of(caches: Iterable[CacheLevel]) -> list[Level]:
    """Return the levels of a machine, nearest first: `levels_of(machine.caches())`.

    Where the system does not tell the ways, or tells ways that do not divide the size, 8 are assumed, and
    `Level.is_assumed` and the notes under a result's table say so.
    """
    return [_level_of(cache) for cache in caches]


def _level_of(cache: CacheLevel) -> Level:
    lines = cache.size_bytes // cache.line_bytes
    known = bool(cache.ways) and lines % cache.ways == 0
    ways = cache.ways if known else min(ASSUMED_WAYS, lines)
    size = lines // ways * ways * cache.line_bytes
    return Level(size, ways, cache.line_bytes, f"L{cache.level}", is_assumed=not known)


# -- what a run counted --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class CacheCounts(Shown):
    """What the levels counted: tuples with one number per level, nearest first."""

    levels: tuple[Level, ...]
    accesses: tuple[int, ...]  # of level 1: all; of a later level: the misses of the one before
    misses: tuple[int, ...]
    write_backs: tuple[int, ...]  # dirty lines that went from this level to the next (the last: behind it)
    by_array: Mapping[str, tuple[int, ...]]  # the misses in each array
    flops: int | None = None  # floating-point operations of the program, if known

    @property
    def hits(self) -> tuple[int, ...]:
        """Accesses that found their line, per level."""
        return tuple(a - m for a, m in zip(self.accesses, self.misses, strict=True))

    @property
    def miss_rates(self) -> tuple[float, ...]:
        """Misses per access of the same level (NaN where nothing was accessed)."""
        return tuple(m / a if a else float("nan") for a, m in zip(self.accesses, self.misses, strict=True))

    @property
    def misses_per_flop(self) -> tuple[float, ...]:
        """Misses per floating-point operation, per level; ValueError if those are not known."""
        if not self.flops:
            raise ValueError(
                "The floating-point operations are not known: simulate a Trace, or divide yourself."
            )
        return tuple(m / self.flops for m in self.misses)

    @property
    def fetched_bytes(self) -> int:
        """Bytes read from behind the last level simulated: its misses, a line each.

        That is memory if no cache of the machine was left out.
        """
        return self.misses[-1] * self.levels[-1].line_bytes

    @property
    def written_bytes(self) -> int:
        """Bytes written back from the last level simulated; what is still dirty is not among them."""
        return self.write_backs[-1] * self.levels[-1].line_bytes

    def name(self, level: int) -> str:
        """Return what a level is called: "L1", or the name it was given."""
        return self.levels[level].name or f"L{level % len(self.levels) + 1}"

    def table(self, what: str = "") -> Table:
        """Return the counts: a row for each level, a column for the misses in each array; `what` was run."""
        columns = ["level", "accesses", "misses", "miss rate"]
        columns += ["misses / FLOP"] if self.flops else []
        columns += [*(f"in {name}" for name in self.by_array), "written back"]
        rows = tuple(tuple(self._row(n)) for n in range(len(self.levels)))
        caption = f"Cache misses{f', {what}' if what else ''}, simulated (LRU, no prefetching)"
        return Table(tuple(columns), rows, caption, notes=self._notes())

    def _row(self, n: int) -> list[str]:
        level = self.levels[n]
        ways = "fully associative" if level.sets == 1 else f"{level.ways} ways"
        name = (
            f"{self.name(n)}, {in_bytes(level.size_bytes, digits=4)}, {ways}, {level.line_bytes}-byte lines"
        )
        rate = self.miss_rates[n]
        row = [name, f"{self.accesses[n]:,}", f"{self.misses[n]:,}"]
        row.append("–" if rate != rate else f"{digits(100 * rate)} %")
        row += [digits(self.misses_per_flop[n])] if self.flops else []
        row += [f"{misses[n]:,}" for misses in self.by_array.values()]
        return [*row, f"{self.write_backs[n]:,}"]

    def _notes(self) -> tuple[str, ...]:
        read, written = (in_bytes(count, digits=4) for count in (self.fetched_bytes, self.written_bytes))
        moved = (
            f"Read from behind {self.name(-1)}, the last level simulated: {read}; written back to there: "
            f"{written} (lines still dirty in a cache not counted)."
        )
        left_out = (
            "Addresses are not translated: a real L2 is indexed by physical ones, which 4 KiB pages shuffle."
        )
        assumed = ", ".join(self.name(n) for n, level in enumerate(self.levels) if level.is_assumed)
        unknown = f"This system does not tell the ways of {assumed}: 8 are assumed."
        return (moved, left_out, unknown) if assumed else (moved, left_out)


# -- the simulation ------------------------------------------------------------------------------------------


ACCESSES, MISSES, WRITE_BACKS = range(3)  # places in what a level counts, as in `lru`
BLOCK = 1 << 16  # requests that go through all levels before the next ones: they stay in the real cache
SMALLEST_SAFE_LINE = 4  # bytes; with shorter lines an address above 2^62 would not fit into an entry


def simulate(
    addresses: np.ndarray | AddressTrace,
    levels: Sequence[Level],
    writes: np.ndarray | None = None,
    *,
    arrays: Mapping[str, tuple[int, int]] | None = None,
) -> CacheCounts:
    """Send the accesses through empty caches and return what hit and what missed.

    addresses: byte addresses, one per access, in order: a one-dimensional array of uint64 (other integers
    that are not negative are converted), or a Trace, which brings its writes and its arrays with it.
    levels: nearest first; the lines of a level may not be shorter than those of the level before.
    writes: one bool per address, True for a write; None: all are reads.
    arrays: name -> (start, bytes), to tell the misses of each array apart.

    Raises ValueError or TypeError in one sentence for anything else.
    """
    if not hasattr(addresses, "chunks"):
        cache = Cache(levels, arrays)
        cache.run(addresses, writes)
        return cache.result()
    if writes is not None or arrays is not None:
        raise TypeError("A Trace brings its own writes and arrays: leave both out.")
    cache = Cache(levels, addresses.arrays)
    for chunk, chunk_writes in addresses.chunks():
        cache.run(chunk, chunk_writes)
    return cache.result(addresses.flops)


class Cache:
    """Caches that keep their contents from one `run` to the next: for traces too long to store."""

    def __init__(self, levels: Sequence[Level], arrays: Mapping[str, tuple[int, int]] | None = None) -> None:
        from course_lib.simulators.lru import Stage  # with it comes Numba

        self.levels = _checked_levels(levels)
        self._names, self._starts, self._sizes = _checked_arrays(arrays or {})
        self._reads_only = np.zeros(BLOCK, np.uint8)
        # a level hands on at most a fetch and a victim for each fetch, and every write-back it was given
        self._stages = [
            Stage(level.line_bytes, level.sets, level.set_ways, len(self._names), (n + 2) * BLOCK)
            for n, level in enumerate(self.levels)
        ]

    def run(self, addresses: np.ndarray, writes: np.ndarray | None = None) -> None:
        """Send further accesses through the caches (arguments as in `simulate`)."""
        addresses = _checked_addresses(addresses, self.levels)
        kinds = _checked_writes(writes, len(addresses))
        for start in range(0, len(addresses), BLOCK):
            requests = addresses[start : start + BLOCK]
            what = self._reads_only[: len(requests)] if kinds is None else kinds[start : start + BLOCK]
            for stage in self._stages:
                requests, what = stage.send(requests, what, self._starts, self._sizes)

    def result(self, flops: int | None = None) -> CacheCounts:
        """Return the counts so far; `flops`, if given, is what the table puts the misses in relation to."""
        stages = self._stages
        return CacheCounts(
            levels=self.levels,
            accesses=tuple(int(stage.tally[ACCESSES]) for stage in stages),
            misses=tuple(int(stage.tally[MISSES]) for stage in stages),
            write_backs=tuple(int(stage.tally[WRITE_BACKS]) for stage in stages),
            by_array={
                name: tuple(int(stage.missed[n]) for stage in stages) for n, name in enumerate(self._names)
            },
            flops=flops,
        )

    def contents(self, level: int = 0) -> list[list[tuple[int, bool]]]:
        """Return the lines of each set, newest first: (address of the first byte, whether it is dirty)."""
        return self._stages[level].contents()


def _checked_levels(levels: Sequence[Level]) -> tuple[Level, ...]:
    levels = tuple(levels)
    if not levels or not all(isinstance(level, Level) for level in levels):
        raise TypeError(
            f"levels is {levels!r}, but it must be a list of Level(size_bytes, ways, line_bytes)."
        )
    for near, far in pairwise(levels):
        if far.line_bytes < near.line_bytes:
            raise ValueError(
                f"A level with lines of {far.line_bytes} bytes comes after one with {near.line_bytes}, so a "
                "miss would ask for several lines: order the levels outwards; lines must not get shorter."
            )
    return levels


def _checked_arrays(arrays: Mapping[str, tuple[int, int]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    places = sorted((int(start), int(size), name) for name, (start, size) in arrays.items())
    for start, size, name in places:
        if start < 0 or size < 0:
            raise ValueError(f"{name} starts at {start} and has {size} bytes, but neither may be negative.")
    for (start, size, name), (next_start, _, next_name) in pairwise(places):
        if start + size > next_start:
            raise ValueError(
                f"{name} and {next_name} overlap, so an access could not be told to belong to one: "
                "give arrays that lie apart, or leave arrays out."
            )
    starts = np.array([start for start, _ in arrays.values()], np.uint64)
    sizes = np.array([size for _, size in arrays.values()], np.uint64)
    return list(arrays), starts, sizes


def _checked_addresses(addresses: np.ndarray, levels: Sequence[Level]) -> np.ndarray:
    given = np.asarray(addresses)
    if given.ndim != 1 or (given.dtype.kind not in "ui" and given.size):
        raise TypeError(
            f"addresses is an array of {given.dtype} with shape {given.shape}, but it must be "
            "one-dimensional and of uint64: one byte address per access."
        )
    if given.dtype.kind == "i" and given.size and given.min() < 0:
        raise ValueError(f"addresses holds {given.min()}, but an address is not negative.")
    checked = np.ascontiguousarray(given, np.uint64)
    if levels[0].line_bytes < SMALLEST_SAFE_LINE and checked.size and checked.max() >= 1 << 62:
        raise ValueError("An address is 2^62 or more, which needs lines of at least 4 bytes.")
    return checked


def _checked_writes(writes: np.ndarray | None, count: int) -> np.ndarray | None:
    if writes is None:
        return None
    given = np.asarray(writes)
    if given.shape != (count,) or (given.dtype != np.bool_ and count):
        raise TypeError(
            f"writes is an array of {given.dtype} with shape {given.shape}, but it must hold one bool "
            f"for each of the {count} addresses."
        )
    return np.ascontiguousarray(given, np.bool_).view(np.uint8)
