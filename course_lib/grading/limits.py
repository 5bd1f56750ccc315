"""Limits on what a kernel's launch may cost, judged on the traced counts. Each has one idea.

A formula gets the case's arguments. `when` says of which cases a limit holds; without it, of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course_lib.grading.counts import BarrierRow, Counts, GlobalRow, LineRow, SharedRow

Formula = Callable[..., float]


@dataclass(frozen=True)
class SectorsPerRequest:
    """No line's requests to global memory touch more than `most` sectors each, on average over the launch.

    4 are the least for a warp that reads 32 floats; `array` and `kind` leave out all others.
    """

    most: float
    array: str | None = None
    kind: str | None = None
    when: Callable[..., bool] | None = None

    @property
    def wanted(self) -> str:
        return f"at most {self.most:g} sectors for each request{_to(self.array, self.kind)}"

    def rows(self, counts: Counts) -> tuple[GlobalRow, ...]:
        """Return the rows that it looks at."""
        return counts.of(self.array, self.kind)

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return a sentence about the line with the most sectors for a request."""
        worst = max(self.rows(counts), key=lambda row: row.each, default=None)
        if not _holds(self.when, args) or worst is None or worst.each <= self.most:
            return None
        return (
            f"{_place(worst)} needs {worst.each:.3g} sectors for each request of a warp, and "
            f"{self.most:g} are enough: let neighbouring threads (threadIdx.x) take neighbouring elements."
        )


@dataclass(frozen=True)
class WavefrontsPerRequest:
    """No line's requests to shared memory take more than `most` wavefronts each: 1 is free of conflicts."""

    most: float
    array: str | None = None
    when: Callable[..., bool] | None = None

    @property
    def wanted(self) -> str:
        conflicts = "no bank conflicts: " if self.most == 1 else ""
        return f"{conflicts}at most {self.most:g} wavefront{'' if self.most == 1 else 's'} for each request"

    def rows(self, counts: Counts) -> tuple[SharedRow, ...]:
        """Return the rows that it looks at."""
        return counts.shared_of(self.array)

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return a sentence about the line with the most wavefronts for a request."""
        worst = max(self.rows(counts), key=lambda row: row.each, default=None)
        if not _holds(self.when, args) or worst is None or worst.each <= self.most:
            return None
        return (
            f"{_place(worst)} takes {worst.each:.3g} wavefronts for each request of a warp, and "
            f"{self.most:g} should do: its threads want different words of the same bank of shared memory."
        )


@dataclass(frozen=True)
class TotalSectors:
    """All requests to global memory together touch at most `formula(*args)` sectors; `wanted` says it."""

    formula: Formula
    wanted: str
    array: str | None = None
    kind: str | None = None

    def rows(self, counts: Counts) -> tuple[GlobalRow, ...]:
        """Return the rows that it looks at."""
        return counts.of(self.array, self.kind)

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total = sum(row.sectors for row in self.rows(counts))
        return _too_many(f"sectors{_for(self.array, self.kind)}", total, self.formula(*args), self.wanted)


@dataclass(frozen=True)
class SharedRequests:
    """All requests to shared memory together are at most `formula(*args)`."""

    formula: Formula
    wanted: str
    array: str | None = None
    kind: str | None = None

    def rows(self, counts: Counts) -> tuple[SharedRow, ...]:
        """Return the rows that it looks at."""
        return counts.shared_of(self.array, self.kind)

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total = sum(row.requests for row in self.rows(counts))
        return _too_many("requests to shared memory", total, self.formula(*args), self.wanted)


@dataclass(frozen=True)
class Barriers:
    """The warps that come to a barrier, over the whole launch, are at most `formula(*args)`."""

    formula: Formula
    wanted: str

    def rows(self, counts: Counts) -> tuple[BarrierRow, ...]:
        """Return the lines with barriers."""
        return counts.barriers

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total = sum(row.warps for row in counts.barriers)
        return _too_many("warps at barriers", total, self.formula(*args), self.wanted)


@dataclass(frozen=True)
class Atomics:
    """The requests of atomic operations, in both memories, are at most `formula(*args)`."""

    formula: Formula
    wanted: str
    array: str | None = None

    def rows(self, counts: Counts) -> tuple[GlobalRow | SharedRow, ...]:
        """Return the rows of atomic operations."""
        return tuple(row for row in counts.atomics if self.array in (None, row.array))

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total = sum(row.requests for row in self.rows(counts))
        return _too_many("atomic requests", total, self.formula(*args), self.wanted)


@dataclass(frozen=True)
class FullWarps:
    """A warp goes both ways at a branch at most `formula(*args)` times in the whole launch."""

    formula: Formula
    wanted: str

    def rows(self, counts: Counts) -> tuple[LineRow, ...]:
        """Return the lines where a warp went both ways."""
        return tuple(row for row in counts.divergence if row.divided)

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total = sum(row.divided for row in counts.divergence)
        return _too_many("times that a warp goes both ways", total, self.formula(*args), self.wanted)


def _holds(when: Callable[..., bool] | None, args: tuple) -> bool:
    return when is None or when(*args)


def _too_many(what: str, total: float, most: float, wanted: str) -> str | None:
    if total <= most:
        return None
    return f"On this input your kernel needs {total:,} {what}, and {most:,.10g} are enough: {wanted}."


def _to(array: str | None, kind: str | None) -> str:
    verb = {"load": " that reads", "store": " that writes", "atomic": " that updates"}
    if kind:
        return f"{verb[kind]} {array or 'global memory'}"
    return f" to {array}" if array else ""


def _for(array: str | None, kind: str | None) -> str:
    verb = {"load": " to read", "store": " to write", "atomic": " to update"}
    if kind:
        return f"{verb[kind]} {array or 'global memory'}"
    return f" of {array}" if array else ""


def _place(row: GlobalRow | SharedRow) -> str:
    verb = {"load": "reading", "store": "writing", "atomic": "updating"}[row.kind]
    code = f", `{row.code}`," if row.code else ""
    return f"{verb.capitalize()} {row.yours or row.array} in line {row.line}{code}"
