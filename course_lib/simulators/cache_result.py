"""What a run of the cache simulator counted, and its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import Table, digits

if TYPE_CHECKING:
    from course_lib.simulators.cache_level import Level


@dataclass(frozen=True)
class ArrayMisses:
    """One array's part: its accesses (of level 1) and its misses, one number per level."""

    accesses: int
    misses: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """What the levels counted: tuples with one number per level, nearest first."""

    levels: tuple[Level, ...]
    accesses: tuple[int, ...]  # of level 1: all; of a later level: the misses of the one before
    misses: tuple[int, ...]
    write_backs: tuple[int, ...]  # dirty lines that went from this level to the next (the last: behind it)
    by_array: Mapping[str, ArrayMisses]
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

    @property
    def memory_bytes(self) -> int:
        """Bytes moved between the last level simulated and what lies behind it."""
        return self.fetched_bytes + self.written_bytes

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
        row += [f"{part.misses[n]:,}" for part in self.by_array.values()]
        return [*row, f"{self.write_backs[n]:,}"]

    def _notes(self) -> tuple[str, ...]:
        read, written = (in_bytes(count, digits=4) for count in (self.fetched_bytes, self.written_bytes))
        moved = (
            f"Read from behind {self.name(-1)}, the last level simulated: {read}; written back to there: "
            f"{written} (lines still dirty in a cache not counted)."
        )
        assumed = [self.name(n) for n, level in enumerate(self.levels) if level.is_assumed]
        if not assumed:
            return (moved,)
        return (moved, f"This system does not tell the ways of {', '.join(assumed)}: 8 are assumed.")

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
