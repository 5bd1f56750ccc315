"""Launches of GPU kernels that are answers: how they are declared, what the tracer counted, its limits.

A kernel never runs as Python: `simulators.gpu` runs its text in lockstep and counts while it runs. What its
trace holds leaves the process that made it as lists of numbers and words (`plain_counts`). On the safe side
`counts_of` takes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

KINDS = ("load", "store", "atomic")
HAZARDS = ("race", "uninitialised", "out-of-bounds", "divergent-barrier")
UNDEFINED = "undefined-value"  # what a lane gets from one that gives nothing: a fault if it is used
MOST_ROWS = 5_000  # of each kind; an honest kernel has some dozens
MOST_HAZARDS = 50
LONGEST_WORDS = 600


@dataclass(frozen=True)
class Shape:
    """One launch as plain values: what the sandbox is told of it."""

    grid: tuple[int, ...]
    block: tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """How a kernel that is an answer is launched; its last argument holds the result afterwards.

    `grid` gets the case's arguments. `limits` are judged in order on every case.
    """

    grid: Callable[..., tuple[int, ...]]
    block: tuple[int, ...]
    limits: tuple[Limit, ...] = ()

    def shape(self, args: tuple) -> Shape:
        """Return the launch for these arguments."""
        return Shape(tuple(self.grid(*args)), self.block)


# --- what was counted ---------------------------------------------------------------------------------------


class NoCounts(ValueError):
    """What should be counts is none."""


@dataclass(frozen=True)
class CountedAccess:
    """The accesses of one line to one array.

    A request is one instruction of a warp, `cost` is what all requests took of the memory, `accesses` are
    those of single threads.
    """

    array: str
    line: int
    kind: str
    requests: int
    cost: int
    accesses: int
    bytes: int
    code: str = ""

    @property
    def each(self) -> float:
        """The cost of each request."""
        return self.cost / self.requests if self.requests else 0.0


@dataclass(frozen=True)
class GlobalRow(CountedAccess):
    """In global memory; the cost is in sectors, the 32-byte pieces that a request touches.

    4 for each request are best for 4-byte elements, 32 are worst.
    """


@dataclass(frozen=True)
class SharedRow(CountedAccess):
    """In shared memory; the cost is in wavefronts.

    1 for each request is free of bank conflicts (2 for 8-byte elements).
    """


@dataclass(frozen=True)
class HazardRow:
    """Something that a right kernel must not do: where it was seen first, and `times` in all."""

    kind: str
    line: int
    what: str
    times: int
    block: tuple[int, ...]
    code: str = ""


@dataclass(frozen=True)
class BarrierRow:
    """A line with a barrier, and how many warps came to it."""

    line: int
    warps: int
    code: str = ""


@dataclass(frozen=True)
class ShuffleRow:
    """A line where lanes of a warp give each other values, and how many warps did so."""

    line: int
    warps: int
    code: str = ""


Row = GlobalRow | SharedRow | HazardRow | BarrierRow | ShuffleRow


@dataclass(frozen=True)
class LaunchCounts:
    """What one launch did, in the order of the source. Lines are those of the learner's cell."""

    global_rows: tuple[GlobalRow, ...] = ()
    shared_rows: tuple[SharedRow, ...] = ()
    hazards: tuple[HazardRow, ...] = ()
    undefined: tuple[HazardRow, ...] = ()
    barriers: tuple[BarrierRow, ...] = ()
    shuffles: tuple[ShuffleRow, ...] = ()
    busiest_warp: int = 0  # the most requests that one warp made, in both memories, and shuffles

    def placed(self, place: Places) -> LaunchCounts:
        """Return the counts with the lines of the learner's cell; each row gets the text of its line."""
        moved = {
            one.name: tuple(place.row(row) for row in getattr(self, one.name))
            for one in fields(self)
            if one.name != "busiest_warp"
        }
        return replace(self, **moved)


class Places:
    """Where the lines of a judged text stand in the learner's cells: line n is lines[n - 1]; 0 is nowhere."""

    def __init__(self, text: str, lines: Sequence[int]) -> None:
        self._text = text.splitlines()
        self._lines = lines

    def line(self, line: int) -> int:
        """Return the line in the learner's cell."""
        if not 0 < line <= len(self._text):
            return 0
        return self._lines[line - 1] if line <= len(self._lines) else line

    def code(self, line: int) -> str:
        """Return the text of a line."""
        return self._text[line - 1].strip() if 0 < line <= len(self._text) else ""

    def row(self, row: Row) -> Row:
        """Return the row with its line, and the line's text, in the learner's cell."""
        said = {"what": self.words(row.what)} if isinstance(row, HazardRow) else {}
        return replace(row, line=self.line(row.line), code=self.code(row.line), **said)

    def fault(self, fault: Any) -> Any:
        """Return a fault with the line, and its text, in the learner's cell; None for nowhere."""
        line = fault.line or 0
        said = self.words(fault.message) if fault.message.startswith("Numba cannot") else fault.message
        return replace(fault, message=said, line=self.line(line) or None, code=self.code(line))

    def words(self, words: str) -> str:
        """Return a sentence of the tracer's with the lines of the learner's cell."""
        return re.sub(r"\bline (\d+)", lambda found: f"line {self.line(int(found[1]))}", words)


# --- what comes from the tracer -----------------------------------------------------------------------------


def plain_counts(trace: Any) -> dict[str, Any]:
    """Return what a `Trace` counted as lists of plain values, no more than anybody reads."""
    names = ("array", "line", "kind", "requests", "cost", "accesses", "bytes")
    accesses = [
        [getattr(row, name if name != "cost" else cost) for name in names]
        for rows, cost in ((trace.global_accesses, "sectors"), (trace.shared_accesses, "wavefronts"))
        for row in rows
    ]
    split = len(trace.global_accesses)
    return {
        "global_rows": accesses[:split],
        "shared_rows": accesses[split:],
        "hazards": _plain_hazards(trace.hazards),
        "undefined": _plain_hazards([one for one in trace.remarks if one.kind == UNDEFINED]),
        "barriers": [[line, warps] for line, warps in trace.barriers.items()],
        "shuffles": [[line, warps] for line, warps in trace.shuffles.items()],
        "busiest_warp": int(trace.busiest_warp),
    }


def _plain_hazards(hazards: Sequence[Any]) -> list[list]:
    return [
        [one.kind, one.line, one.what[:LONGEST_WORDS], int(one.times), [int(n) for n in one.block]]
        for one in hazards[:MOST_HAZARDS]
    ]


def counts_of(plain: Any) -> LaunchCounts:
    """Return the counts in a reply; NoCounts if it has anything else than `plain_counts` has."""
    access = (_words, _count, _one_of(KINDS), _count, _count, _count, _count)
    hazard = (_count, _words, _count, _block)
    rows = {
        "global_rows": (GlobalRow, access, MOST_ROWS),
        "shared_rows": (SharedRow, access, MOST_ROWS),
        "hazards": (HazardRow, (_one_of(HAZARDS), *hazard), MOST_HAZARDS),
        "undefined": (HazardRow, (_one_of((UNDEFINED,)), *hazard), MOST_HAZARDS),
        "barriers": (BarrierRow, (_count, _count), MOST_ROWS),
        "shuffles": (ShuffleRow, (_count, _count), MOST_ROWS),
    }
    try:
        read = {name: _rows(plain[name], *how) for name, how in rows.items()}
        return LaunchCounts(**read, busiest_warp=_count(plain["busiest_warp"]))
    except (KeyError, TypeError) as problem:
        raise NoCounts(f"these are no counts ({type(problem).__name__})") from None


def _rows(rows: Any, make: type[Row], parts: Sequence[Callable], most: int) -> tuple[Row, ...]:
    good = isinstance(rows, list) and len(rows) <= most
    if not good or any(not isinstance(row, list) or len(row) != len(parts) for row in rows):
        raise NoCounts("these are no rows of counts")
    return tuple(make(*(read(one) for read, one in zip(parts, row, strict=True))) for row in rows)


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**62:
        raise NoCounts("a count is no whole number")
    return number


def _words(words: Any) -> str:
    if type(words) is not str or len(words) > LONGEST_WORDS:
        raise NoCounts("a word is none")
    return words


def _block(block: Any) -> tuple[int, ...]:
    if not isinstance(block, list) or len(block) != 3:
        raise NoCounts("a hazard has no block")
    return tuple(map(_count, block))


def _one_of(known: Sequence[str]) -> Callable[[Any], str]:
    def read(word: Any) -> str:
        if type(word) is not str or word not in known:
            raise NoCounts("a kind is unknown")
        return word

    return read


# --- limits on what a launch may cost: each has one idea ----------------------------------------------------

SECTOR_BYTES = 32
Formula = Callable[..., float]  # of the case's arguments


class Limit:
    """A limit on what a launch may cost; where it is missed, it is shown with its `rows`."""

    def rows(self, counts: LaunchCounts) -> tuple[Row, ...]:
        """Return the rows that it looks at."""
        return ()

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return None if the limit is kept, else one sentence: what, got, wanted, how to mend it."""
        raise NotImplementedError


@dataclass(frozen=True)
class _PerRequest(Limit):
    """No line's requests cost more than `most` each, on average over the launch."""

    most: float

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        worst = max(self.rows(counts), key=lambda row: row.each, default=None)
        return None if worst is None or worst.each <= self.most else self._sentence(worst)

    def _sentence(self, worst: CountedAccess) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class SectorsPerRequest(_PerRequest):
    """No line's requests to global memory touch more than `most` sectors each, on average over the launch.

    4 are the least for a warp that reads 32 floats. A mean says nothing of a request with one lane, nor of a
    dear access among cheap ones in its line: it goes with `TotalSectors`.
    """

    def rows(self, counts: LaunchCounts) -> tuple[GlobalRow, ...]:
        return counts.global_rows

    def _sentence(self, worst: GlobalRow) -> str:
        return (
            f"{_place(worst)} needs {worst.each:.3g} sectors for each request of a warp, and "
            f"{self.most:g} are enough: {_cure(worst)}."
        )


@dataclass(frozen=True)
class WavefrontsPerRequest(_PerRequest):
    """No line's requests to shared memory take more than `most` wavefronts each: 1 is free of conflicts."""

    def rows(self, counts: LaunchCounts) -> tuple[SharedRow, ...]:
        return counts.shared_rows

    def _sentence(self, worst: SharedRow) -> str:
        return (
            f"{_place(worst)} takes {worst.each:.3g} wavefronts for each request of a warp, and "
            f"{self.most:g} should do: its threads want different words of the same bank of shared memory."
        )


@dataclass(frozen=True)
class _Total(Limit):
    """A sum over the whole launch is at most `formula(*args)`; `wanted` says how that can be."""

    formula: Formula
    wanted: str

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        (total, what), most = self._total(counts), self.formula(*args)
        if total <= most:
            return None
        return (
            f"On this input your kernel needs {total:,} {what}, and {most:,.10g} are enough: {self.wanted}."
        )

    def _total(self, counts: LaunchCounts) -> tuple[int, str]:
        """Return the sum, and in words what of."""
        raise NotImplementedError


@dataclass(frozen=True)
class TotalSectors(_Total):
    """All requests to global memory together; `kind` leaves out the others: "load" counts what is read."""

    kind: str | None = None

    def rows(self, counts: LaunchCounts) -> tuple[GlobalRow, ...]:
        return tuple(row for row in counts.global_rows if self.kind in (None, row.kind))

    def _total(self, counts: LaunchCounts) -> tuple[int, str]:
        done = {None: "", "load": " to read", "store": " to write", "atomic": " to update"}[self.kind]
        return sum(row.cost for row in self.rows(counts)), f"sectors{done}"


@dataclass(frozen=True)
class SharedRequests(_Total):
    """All requests to shared memory and all shuffles together.

    A shuffle costs what a load from shared memory without conflicts costs: a multiprocessor serves 32 lanes
    in a clock cycle with either (CUDA C++ Programming Guide, "Arithmetic Instructions" and "Shared Memory").
    So it is no way around a limit on the loads.
    """

    def rows(self, counts: LaunchCounts) -> tuple[SharedRow | ShuffleRow, ...]:
        return (*counts.shared_rows, *counts.shuffles)

    def _total(self, counts: LaunchCounts) -> tuple[int, str]:
        shuffles = sum(row.warps for row in counts.shuffles)
        total = sum(row.requests for row in counts.shared_rows) + shuffles
        return total, "requests to shared memory" + " and shuffles" * bool(shuffles)


@dataclass(frozen=True)
class Barriers(_Total):
    """The warps that come to a barrier, over the whole launch; they are at least `least(*args)`, too."""

    least: Formula = field(default=lambda *args: 0)

    def rows(self, counts: LaunchCounts) -> tuple[BarrierRow, ...]:
        return counts.barriers

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        total, least = self._total(counts)[0], self.least(*args)
        if total < least:
            return (
                f"On this input {total:,} warps come to a barrier, and {least:,.10g} should: {self.wanted}."
            )
        return super().judge(counts, args)

    def _total(self, counts: LaunchCounts) -> tuple[int, str]:
        return sum(row.warps for row in counts.barriers), "warps at barriers"


@dataclass(frozen=True)
class Atomics(_Total):
    """The atomic operations of single threads, in both memories.

    Those of a warp's lanes on one address take turns, so each lane's counts.
    """

    def rows(self, counts: LaunchCounts) -> tuple[GlobalRow | SharedRow, ...]:
        return tuple(row for row in (*counts.global_rows, *counts.shared_rows) if row.kind == "atomic")

    def _total(self, counts: LaunchCounts) -> tuple[int, str]:
        return sum(row.accesses for row in self.rows(counts)), "atomic operations"


@dataclass(frozen=True)
class BusiestWarp(Limit):
    """No warp makes more than `formula(*args)` requests, in both memories and to other lanes (shuffles): the
    work is shared by all of them.

    A launch lasts as long as its busiest warp. Limits on sums cannot see one that does everything alone.
    """

    formula: Formula
    wanted: str

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        most = self.formula(*args)
        if counts.busiest_warp <= most:
            return None
        what = "requests to memory" + " and other lanes" * bool(counts.shuffles)
        return (
            f"One warp makes {counts.busiest_warp:,} {what}, and no warp needs more than {most:,.10g}: "
            f"{self.wanted}. A launch lasts as long as its busiest warp."
        )


def _cure(row: GlobalRow) -> str:
    """Say what makes requests cheaper: neighbours that begin elsewhere need one sector more, not several."""
    if row.each <= row.bytes / row.requests / SECTOR_BYTES + 1:
        return (
            "its threads take neighbouring elements, but the first of a warp does not begin a sector; give "
            "each warp a number that a sector begins with (0, 8, 16 … in an array of 4-byte elements)"
        )
    return "let neighbouring threads (threadIdx.x) take neighbouring elements"


def _place(row: GlobalRow | SharedRow) -> str:
    verb = {"load": "reading", "store": "writing", "atomic": "updating"}[row.kind]
    code = f", `{row.code}`," if row.code else ""
    return f"{verb.capitalize()} {row.array} in line {row.line}{code}"
