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

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from course_lib.simulators import lru
from course_lib.simulators.cache_level import Level, levels_of
from course_lib.simulators.cache_result import ArrayMisses, Result
from course_lib.simulators.cache_stage import new_stage

if TYPE_CHECKING:
    from course_lib.simulators.traces import Trace

__all__ = ["ArrayMisses", "Cache", "Level", "Result", "levels_of", "simulate"]

BLOCK = 1 << 16  # requests that go through all levels before the next ones: they stay in the real cache
SMALLEST_SAFE_LINE = 4  # bytes; with shorter lines an address above 2^62 would not fit into an entry


def simulate(
    addresses: np.ndarray | Trace,
    levels: Sequence[Level],
    writes: np.ndarray | None = None,
    *,
    arrays: Mapping[str, tuple[int, int]] | None = None,
) -> Result:
    """Send the accesses through empty caches and return what hit and what missed.

    addresses: byte addresses, one per access, in order: a one-dimensional array of uint64 (other integers
    that are not negative are converted), or a Trace, which brings its writes and its arrays with it.
    levels: nearest first; the lines of a level may not be shorter than those of the level before.
    writes: one bool per address, True for a write; None: all are reads.
    arrays: name -> (start, bytes), to tell the accesses and misses of each array apart.

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
        self.levels = _checked_levels(levels)
        self._names, self._starts, self._sizes = _checked_arrays(arrays or {})
        self._touched = np.zeros(len(self._names), np.int64)
        self._reads_only = np.zeros(BLOCK, np.uint8)
        # a level hands on at most a fetch and a victim for each fetch, and every write-back it was given
        self._stages = [
            new_stage(level, len(self._names), (n + 2) * BLOCK) for n, level in enumerate(self.levels)
        ]

    def run(self, addresses: np.ndarray, writes: np.ndarray | None = None) -> None:
        """Send further accesses through the caches (arguments as in `simulate`)."""
        addresses = _checked_addresses(addresses, self.levels)
        kinds = _checked_writes(writes, len(addresses))
        for start in range(0, len(addresses), BLOCK):
            requests = addresses[start : start + BLOCK]
            what = self._reads_only[: len(requests)] if kinds is None else kinds[start : start + BLOCK]
            lru.count_owners(requests, self._starts, self._sizes, self._touched)
            for stage in self._stages:
                requests, what = stage.send(requests, what, self._starts, self._sizes)

    def result(self, flops: int | None = None) -> Result:
        """Return the counts so far; `flops`, if given, is what the table puts the misses in relation to."""
        stages = self._stages
        return Result(
            levels=self.levels,
            accesses=tuple(int(stage.tally[lru.ACCESSES]) for stage in stages),
            misses=tuple(int(stage.tally[lru.MISSES]) for stage in stages),
            write_backs=tuple(int(stage.tally[lru.WRITE_BACKS]) for stage in stages),
            by_array={
                name: ArrayMisses(int(self._touched[n]), tuple(int(stage.missed[n]) for stage in stages))
                for n, name in enumerate(self._names)
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
