"""Launches of GPU kernels that are answers: how they are declared, what the tracer counted, its limits.

A kernel never runs as Python: `simulators.gpu` runs its text in lockstep and counts while it runs. What its
trace holds leaves the process that made it as lists of numbers and words (`plain_counts`). On the safe side
`counts_of` takes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

MEMORIES = ("global", "shared", "barrier", "shuffle")
KINDS = ("load", "store", "atomic", "")
UNDEFINED = "undefined-value"  # what a lane gets from one that gives nothing: a fault if it is used
HAZARDS = ("race", "uninitialised", "out-of-bounds", "divergent-barrier", UNDEFINED)
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
class LineCount:
    """What one line of a kernel did with an array in "global" or "shared" memory, as "barrier" or "shuffle".

    A request is one instruction of a warp. `cost` is what all requests took of the memory: of global memory
    sectors, the 32-byte pieces that they touch (4 for each are best for 4-byte elements, 32 are worst), of
    shared memory wavefronts (1 for each is free of bank conflicts, 2 for 8-byte elements), of both the turns
    that lanes take which update one word, if these are more. `accesses` are those of single threads.
    """

    where: str
    line: int
    requests: int
    array: str = ""
    kind: str = ""
    cost: int = 0
    accesses: int = 0
    bytes: int = 0
    meet: str = ""  # which lanes meet in which bank
    code: str = ""

    @property
    def each(self) -> float:
        """The cost of each request."""
        return self.cost / self.requests if self.requests else 0.0


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
class LaunchCounts:
    """What one launch did, in the order of the source. Lines are those of the learner's cell."""

    rows: tuple[LineCount, ...] = ()
    hazards: tuple[HazardRow, ...] = ()
    busiest_warp: int = 0  # the most requests that one warp made, in both memories, and shuffles

    def of(self, *places: str, kind: str | None = None) -> tuple[LineCount, ...]:
        """Return the rows of these memories, or of barriers or shuffles, and of one kind of access."""
        return tuple(row for row in self.rows if row.where in places and kind in (None, row.kind))

    def placed(self, place: Places) -> LaunchCounts:
        """Return the counts with the lines of the learner's cell; each row gets the text of its line."""
        return replace(self, rows=place.rows(self.rows), hazards=place.rows(self.hazards))


class Places:
    """Where the lines of a judged text stand in the learner's cells: line n is lines[n - 1]; 0 is nowhere.

    What stands below the learner's lines is ours (Task.code), and nowhere. Without `lines` all are their own.
    """

    def __init__(self, text: str, lines: Sequence[int]) -> None:
        self._text = text.splitlines()[: len(lines) or None]
        self._lines = lines

    def line(self, line: int) -> int:
        """Return the line in the learner's cell."""
        if not 0 < line <= len(self._text):
            return 0
        return self._lines[line - 1] if self._lines else line

    def code(self, line: int) -> str:
        """Return the text of a line."""
        return self._text[line - 1].strip() if 0 < line <= len(self._text) else ""

    def rows(self, rows: Sequence[Any]) -> tuple[Any, ...]:
        """Return rows with their lines, and the text of these, in the learner's cell."""
        return tuple(map(self._row, rows))

    def _row(self, row: Any) -> Any:
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

#: What a row and a hazard are made of on the wire: whole numbers, words, and one of some words.
ROW = (frozenset(MEMORIES), int, int, str, frozenset(KINDS), int, int, int, str)
ACCESSED = ("accesses", "bytes", "meet")
HAZARD = (frozenset(HAZARDS), int, str, int, (int, int, int))


def plain_counts(trace: Any) -> dict[str, Any]:
    """Return what a `Trace` counted as lists of plain values, no more than anybody reads."""
    rows = [
        [where, one.line, one.requests, one.array, one.kind, cost, *(getattr(one, name) for name in ACCESSED)]
        for where, one, cost in (
            *(("global", one, max(one.sectors, _turns(trace, one))) for one in trace.global_accesses),
            *(("shared", one, max(one.wavefronts, _turns(trace, one))) for one in trace.shared_accesses),
        )
    ]
    for where, lines in (("barrier", trace.barriers), ("shuffle", trace.shuffles)):
        rows += [[where, line, warps, "", "", 0, 0, 0, ""] for line, warps in lines.items()]
    undefined = [one for one in trace.remarks if one.kind == UNDEFINED]
    hazards = [
        [one.kind, one.line, one.what[:LONGEST_WORDS], int(one.times), [int(n) for n in one.block]]
        for one in (*trace.hazards[:MOST_HAZARDS], *undefined[:MOST_HAZARDS])
    ]
    return {"rows": rows, "hazards": hazards, "busiest_warp": int(trace.busiest_warp)}


def _turns(trace: Any, row: Any) -> int:
    """Return how often lanes of a warp that update one word wait for each other."""
    return trace.atomic_rounds.get((row.line, row.array), 0) if row.kind == "atomic" else 0


def counts_of(plain: Any) -> LaunchCounts:
    """Return the counts in a reply; NoCounts if it has anything else than `plain_counts` has."""
    try:
        rows, hazards, busiest = plain["rows"], plain["hazards"], plain["busiest_warp"]
    except (KeyError, TypeError) as problem:
        raise NoCounts(f"these are no counts ({type(problem).__name__})") from None
    for many, form, most in (
        (rows, ROW, MOST_ROWS),
        (hazards, HAZARD, 2 * MOST_HAZARDS),
        ([busiest], int, 1),
    ):
        if type(many) is not list or len(many) > most or not all(_has_form(one, form) for one in many):
            raise NoCounts("these are no rows of counts")
    found = tuple(HazardRow(*one, tuple(block)) for *one, block in hazards)
    return LaunchCounts(tuple(LineCount(*one) for one in rows), found, busiest)


def _has_form(value: Any, form: Any) -> bool:
    if isinstance(form, tuple):
        parts = type(value) is list and len(value) == len(form)
        return parts and all(map(_has_form, value, form))
    if form is int:
        return type(value) is int and 0 <= value < 2**62
    return type(value) is str and (len(value) <= LONGEST_WORDS if form is str else value in form)


# --- limits on what a launch may cost: each has one idea ----------------------------------------------------

SECTOR_BYTES = 32
Formula = Callable[..., float]  # of the case's arguments
#: What is wrong (what, got, wanted, how to mend it), and the rows that show it.
Missed = tuple[str, tuple[LineCount, ...]]


class Limit(Protocol):
    """A limit on what a launch may cost."""

    def judge(self, counts: LaunchCounts, args: tuple) -> Missed | None:
        """Return None if the limit is kept."""


@dataclass(frozen=True)
class SectorsPerRequest:
    """No line's requests to global memory touch more than `most` sectors each, on average over the launch.

    4 are the least for a warp that reads 32 floats. A mean says nothing of a request with one lane, nor of a
    dear access among cheap ones in its line: it goes with `TotalSectors`.
    """

    most: float

    def judge(self, counts: LaunchCounts, args: tuple) -> Missed | None:
        """Return None if the limit is kept."""
        return _worst(counts.of("global"), self.most, "needs", "sectors", "are enough", _cure)


@dataclass(frozen=True)
class WavefrontsPerRequest:
    """No line's requests to shared memory take more than `most` wavefronts each: 1 is free of conflicts."""

    most: float

    def judge(self, counts: LaunchCounts, args: tuple) -> Missed | None:
        """Return None if the limit is kept."""
        return _worst(counts.of("shared"), self.most, "takes", "wavefronts", "should do", _meeting)


def _worst(
    rows: tuple[LineCount, ...], most: float, takes: str, unit: str, enough: str, cure: Callable
) -> Missed | None:
    worst = max(rows, key=lambda row: row.each, default=None)
    if worst is None or worst.each <= most:
        return None
    place = f"{_place(worst)} {takes} {worst.each:.3g} {unit} for each request of a warp"
    return f"{place}, and {most:g} {enough}: {cure(worst)}.", rows


@dataclass(frozen=True)
class _Total:
    """A sum over the whole launch is at most `formula(*args)`; `wanted` says how that can be."""

    formula: Formula
    wanted: str

    def judge(self, counts: LaunchCounts, args: tuple) -> Missed | None:
        """Return None if the limit is kept."""
        (total, what, rows), most = self._total(counts), self.formula(*args)
        if total <= most:
            return None
        said = (
            f"On this input your kernel needs {total:,} {what}, and {most:,.10g} are enough: {self.wanted}."
        )
        return said, rows

    def _total(self, counts: LaunchCounts) -> tuple[int, str, tuple[LineCount, ...]]:
        """Return the sum, in words what of, and the rows that it is of."""
        raise NotImplementedError


@dataclass(frozen=True)
class TotalSectors(_Total):
    """All requests to global memory together; `kind` leaves out the others: "load" counts what is read.

    What atomics update is read and written.
    """

    kind: str | None = None

    def _total(self, counts: LaunchCounts) -> tuple[int, str, tuple[LineCount, ...]]:
        done = {None: "", "load": " to read", "store": " to write", "atomic": " to update"}[self.kind]
        rows = counts.of("global")
        rows = tuple(row for row in rows if self.kind in (None, row.kind) or row.kind == "atomic")
        return sum(row.cost for row in rows), f"sectors{done}", rows


@dataclass(frozen=True)
class SharedRequests(_Total):
    """All requests to shared memory and all shuffles together.

    A shuffle costs what a load from shared memory without conflicts costs: a multiprocessor serves 32 lanes
    in a clock cycle with either (CUDA C++ Programming Guide, "Arithmetic Instructions" and "Shared Memory").
    So it is no way around a limit on the loads. Nor are atomics: each turn of theirs counts.
    """

    def _total(self, counts: LaunchCounts) -> tuple[int, str, tuple[LineCount, ...]]:
        rows, shuffles = counts.of("shared", "shuffle"), counts.of("shuffle")
        what = "requests to shared memory" + " and shuffles" * bool(shuffles)
        return sum(row.cost if row.kind == "atomic" else row.requests for row in rows), what, rows


@dataclass(frozen=True)
class Barriers(_Total):
    """The warps that come to a barrier, over the whole launch; they are at least `least(*args)`, too."""

    least: Formula = field(default=lambda *args: 0)

    def judge(self, counts: LaunchCounts, args: tuple) -> Missed | None:
        """Return None if the limit is kept."""
        (total, _, rows), least = self._total(counts), self.least(*args)
        if total >= least:
            return super().judge(counts, args)
        said = f"On this input {total:,} warps come to a barrier, and {least:,.10g} should: {self.wanted}."
        return said, rows

    def _total(self, counts: LaunchCounts) -> tuple[int, str, tuple[LineCount, ...]]:
        rows = counts.of("barrier")
        return sum(row.requests for row in rows), "warps at barriers", rows


@dataclass(frozen=True)
class Atomics(_Total):
    """The atomic operations of single threads, in both memories.

    Those of a warp's lanes on one address take turns, so each lane's counts.
    """

    def _total(self, counts: LaunchCounts) -> tuple[int, str, tuple[LineCount, ...]]:
        rows = counts.of("global", "shared", kind="atomic")
        return sum(row.accesses for row in rows), "atomic operations", rows


@dataclass(frozen=True)
class BusiestWarp:
    """No warp makes more than `formula(*args)` requests, in both memories and to other lanes (shuffles): the
    work is shared by all of them.

    A launch lasts as long as its busiest warp. Limits on sums cannot see one that does everything alone.
    """

    formula: Formula
    wanted: str

    def judge(self, counts: LaunchCounts, args: tuple) -> Missed | None:
        """Return None if the limit is kept."""
        most = self.formula(*args)
        if counts.busiest_warp <= most:
            return None
        what = "requests to memory" + " and other lanes" * bool(counts.of("shuffle"))
        return (
            f"One warp makes {counts.busiest_warp:,} {what}, and no warp needs more than {most:,.10g}: "
            f"{self.wanted}. A launch lasts as long as its busiest warp."
        ), ()


def _meeting(row: LineCount) -> str:
    if row.kind == "atomic":
        return "lanes that update one word take turns, and each turn counts"
    return f"its threads want different words of the same bank of shared memory, as {row.meet}"


def _cure(row: LineCount) -> str:
    """Say what makes requests cheaper: neighbours that begin elsewhere need one sector more, not several."""
    if row.kind == "atomic":
        return "let neighbouring threads update neighbouring elements; those that update one take turns"
    if row.each <= row.bytes / row.requests / SECTOR_BYTES + 1:
        return (
            "its threads take neighbouring elements, but the first of a warp does not begin a sector; give "
            "each warp a number that a sector begins with (0, 8, 16 … in an array of 4-byte elements)"
        )
    return "let neighbouring threads (threadIdx.x) take neighbouring elements"


def _place(row: LineCount) -> str:
    verb = {"load": "reading", "store": "writing", "atomic": "updating"}[row.kind]
    code = f", `{row.code}`," if row.code else ""
    return f"{verb.capitalize()} {row.array} in line {row.line}{code}"
