"""Limits on what a kernel's launch may cost, judged on the traced counts. Each has one idea.

A formula gets the case's arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from course_lib.grading.launch import BarrierRow, GlobalRow, LaunchCounts, SharedRow, ShuffleRow

SECTOR_BYTES = 32

Formula = Callable[..., float]


@dataclass(frozen=True)
class SectorsPerRequest:
    """No line's requests to global memory touch more than `most` sectors each, on average over the launch.

    4 are the least for a warp that reads 32 floats. A mean says nothing of a request with one lane, nor of a
    dear access among cheap ones in its line: it goes with `TotalSectors`.
    """

    most: float

    @property
    def wanted(self) -> str:
        return f"at most {self.most:g} sectors for each request"

    def rows(self, counts: LaunchCounts) -> tuple[GlobalRow, ...]:
        """Return the rows that it looks at."""
        return counts.global_rows

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return a sentence about the line with the most sectors for a request."""
        worst = max(self.rows(counts), key=lambda row: row.each, default=None)
        if worst is None or worst.each <= self.most:
            return None
        return (
            f"{_place(worst)} needs {worst.each:.3g} sectors for each request of a warp, and "
            f"{self.most:g} are enough: {_cure(worst)}."
        )


@dataclass(frozen=True)
class WavefrontsPerRequest:
    """No line's requests to shared memory take more than `most` wavefronts each: 1 is free of conflicts."""

    most: float

    @property
    def wanted(self) -> str:
        conflicts = "no bank conflicts: " if self.most == 1 else ""
        return f"{conflicts}at most {self.most:g} wavefront{'' if self.most == 1 else 's'} for each request"

    def rows(self, counts: LaunchCounts) -> tuple[SharedRow, ...]:
        """Return the rows that it looks at."""
        return counts.shared_rows

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return a sentence about the line with the most wavefronts for a request."""
        worst = max(self.rows(counts), key=lambda row: row.each, default=None)
        if worst is None or worst.each <= self.most:
            return None
        return (
            f"{_place(worst)} takes {worst.each:.3g} wavefronts for each request of a warp, and "
            f"{self.most:g} should do: its threads want different words of the same bank of shared memory."
        )


@dataclass(frozen=True)
class TotalSectors:
    """All requests to global memory together touch at most `formula(*args)` sectors; `wanted` says it.

    `kind` leaves out the others: "load" counts what is read.
    """

    formula: Formula
    wanted: str
    kind: str | None = None

    def rows(self, counts: LaunchCounts) -> tuple[GlobalRow, ...]:
        """Return the rows that it looks at."""
        return counts.of(kind=self.kind)

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total = sum(row.sectors for row in self.rows(counts))
        return _too_many(f"sectors{_for(self.kind)}", total, self.formula(*args), self.wanted)


@dataclass(frozen=True)
class SharedRequests:
    """All requests to shared memory and all shuffles together are at most `formula(*args)`.

    A shuffle costs what a load from shared memory without conflicts costs: a multiprocessor serves 32 lanes
    in a clock cycle with either (CUDA C++ Programming Guide, "Arithmetic Instructions" and "Shared Memory").
    So it is no way around a limit on the loads.
    """

    formula: Formula
    wanted: str

    def rows(self, counts: LaunchCounts) -> tuple[SharedRow | ShuffleRow, ...]:
        """Return the rows that it looks at."""
        return (*counts.shared_rows, *counts.shuffles)

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        shuffles = sum(row.warps for row in counts.shuffles)
        total = sum(row.requests for row in counts.shared_rows) + shuffles
        what = "requests to shared memory" + (" and shuffles" if shuffles else "")
        return _too_many(what, total, self.formula(*args), self.wanted)


@dataclass(frozen=True)
class Barriers:
    """The warps that come to a barrier, over the whole launch, are at most `formula(*args)`, and at least
    `least(*args)`."""

    formula: Formula
    wanted: str
    least: Formula = field(default=lambda *args: 0)

    def rows(self, counts: LaunchCounts) -> tuple[BarrierRow, ...]:
        """Return the lines with barriers."""
        return counts.barriers

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total, least = sum(row.warps for row in counts.barriers), self.least(*args)
        if total < least:
            return (
                f"On this input {total:,} warps come to a barrier, and {least:,.10g} should: {self.wanted}."
            )
        return _too_many("warps at barriers", total, self.formula(*args), self.wanted)


@dataclass(frozen=True)
class BusiestWarp:
    """No warp makes more than `formula(*args)` requests, in both memories and to other lanes (shuffles): the
    work is shared by all of them.

    A launch lasts as long as its busiest warp. Limits on sums cannot see one that does everything alone.
    """

    formula: Formula
    wanted: str

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return a sentence if one warp makes more."""
        most = self.formula(*args)
        if counts.busiest_warp <= most:
            return None
        what = "requests to memory" + " and other lanes" * bool(counts.shuffles)
        return (
            f"One warp makes {counts.busiest_warp:,} {what}, and no warp needs more than {most:,.10g}: "
            f"{self.wanted}. A launch lasts as long as its busiest warp."
        )


@dataclass(frozen=True)
class Atomics:
    """The atomic operations of single threads, in both memories, are at most `formula(*args)`.

    Those of a warp's lanes on one address take turns, so each lane's counts.
    """

    formula: Formula
    wanted: str

    def rows(self, counts: LaunchCounts) -> tuple[GlobalRow | SharedRow, ...]:
        """Return the rows of atomic operations."""
        return counts.atomics

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return a sentence if there are more."""
        total = sum(row.accesses for row in self.rows(counts))
        return _too_many("atomic operations", total, self.formula(*args), self.wanted)


def _cure(row: GlobalRow) -> str:
    """Say what makes requests cheaper: neighbours that begin elsewhere need one sector more, not several."""
    if row.each <= row.bytes / row.requests / SECTOR_BYTES + 1:
        return (
            "its threads take neighbouring elements, but the first of a warp does not begin a sector; give "
            "each warp a number that a sector begins with (0, 8, 16 … in an array of 4-byte elements)"
        )
    return "let neighbouring threads (threadIdx.x) take neighbouring elements"


def _too_many(what: str, total: float, most: float, wanted: str) -> str | None:
    if total <= most:
        return None
    return f"On this input your kernel needs {total:,} {what}, and {most:,.10g} are enough: {wanted}."


def _for(kind: str | None) -> str:
    return {None: "", "load": " to read", "store": " to write", "atomic": " to update"}[kind]


def _place(row: GlobalRow | SharedRow) -> str:
    verb = {"load": "reading", "store": "writing", "atomic": "updating"}[row.kind]
    code = f", `{row.code}`," if row.code else ""
    return f"{verb.capitalize()} {row.yours or row.array} in line {row.line}{code}"
