"""What a level of cache is: size, ways, line; made by hand or taken from this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.arguments import whole

if TYPE_CHECKING:
    from course_lib.measure.hardware import CacheLevel

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
