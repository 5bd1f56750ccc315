"""Launches of GPU kernels that are answers: how they are declared, and what the tracer counted of one.

A kernel never runs as Python: `simulators.gpu` runs its text in lockstep and counts while it runs. What its
trace holds leaves the process that made it as lists of numbers and words (`plain_counts`). On the safe side
`counts_of` takes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

KINDS = ("load", "store", "atomic")
HAZARDS = ("race", "uninitialised", "out-of-bounds", "divergent-barrier")
UNDEFINED = "undefined-value"  # what a lane gets from one that gives nothing: a fault if it is used
NUMBERS = ("flops", "shared_bytes", "busiest_warp")
MOST_ROWS = 5_000  # of each kind; an honest kernel has some dozens
MOST_HAZARDS = 50
LONGEST_WORDS = 600


class CountLimit(Protocol):
    """A limit on what a launch may cost; `wanted` tells the learner what it asks for.

    A limit that has `rows(counts)` as well is shown with these rows where it is missed.
    """

    wanted: str

    def judge(self, counts: LaunchCounts, args: tuple) -> str | None:
        """Return None if the limit is kept, else one sentence: what, got, wanted, how to mend it."""


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
    limits: tuple[CountLimit, ...] = ()

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
    those of single threads. `array` is the task's name of the argument, `yours` the learner's.
    """

    array: str
    line: int
    kind: str
    requests: int
    cost: int
    accesses: int
    bytes: int
    yours: str = ""
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

    @property
    def sectors(self) -> int:
        """What all requests touched."""
        return self.cost


@dataclass(frozen=True)
class SharedRow(CountedAccess):
    """In shared memory; the cost is in wavefronts.

    1 for each request is free of bank conflicts (2 for 8-byte elements).
    """

    @property
    def wavefronts(self) -> int:
        """What all requests took."""
        return self.cost


@dataclass(frozen=True)
class HazardRow:
    """Something that a right kernel must not do: where it was seen first, and `times` in all."""

    kind: str
    line: int
    what: str
    times: int
    block: tuple[int, ...]
    array: str = ""
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
    flops: int = 0
    shared_bytes: int = 0  # of a block
    busiest_warp: int = 0  # the most requests that one warp made, in both memories, and shuffles

    def of(self, kind: str | None = None) -> tuple[GlobalRow, ...]:
        """Return the rows of global memory of a kind of access; None: of all."""
        return tuple(row for row in self.global_rows if kind in (None, row.kind))

    @property
    def atomics(self) -> tuple[GlobalRow | SharedRow, ...]:
        """The rows of atomic operations in both memories."""
        return tuple(row for row in (*self.global_rows, *self.shared_rows) if row.kind == "atomic")

    def placed(self, text: str, lines: Sequence[int]) -> LaunchCounts:
        """Return the counts with the lines of the learner's cell: line n of `text` is lines[n - 1] there.

        Each row gets the text of its line, which is read here.
        """
        place = Places(text, lines)
        moved = {
            one.name: tuple(place.row(row) for row in getattr(self, one.name))
            for one in fields(self)
            if one.name not in NUMBERS
        }
        return replace(self, **moved)

    def called(self, own: Sequence[str], given: Sequence[str]) -> LaunchCounts:
        """Return the counts with the task's names of the arguments for the learner's own."""
        names = dict(zip(own, given, strict=False))
        rows = tuple(
            replace(row, array=names.get(row.array, row.array), yours=row.array) for row in self.global_rows
        )
        shared = tuple(replace(row, yours=row.array) for row in self.shared_rows)
        return replace(self, global_rows=rows, shared_rows=shared)


class Places:
    """Where the lines of a judged text stand in the learner's cells; a line that is nowhere is 0."""

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
        **{name: int(getattr(trace, name)) for name in NUMBERS},
    }


def _plain_hazards(hazards: Sequence[Any]) -> list[list]:
    return [
        [one.kind, one.line, one.what[:LONGEST_WORDS], int(one.times), [int(n) for n in one.block], one.array]
        for one in hazards[:MOST_HAZARDS]
    ]


def counts_of(plain: Any) -> LaunchCounts:
    """Return the counts in a reply; NoCounts if it has anything else than `plain_counts` has."""
    try:
        return LaunchCounts(
            tuple(GlobalRow(*_access(row)) for row in _rows(plain["global_rows"], 7)),
            tuple(SharedRow(*_access(row)) for row in _rows(plain["shared_rows"], 7)),
            tuple(_hazard(row, HAZARDS) for row in _rows(plain["hazards"], 6, MOST_HAZARDS)),
            tuple(_hazard(row, (UNDEFINED,)) for row in _rows(plain["undefined"], 6, MOST_HAZARDS)),
            tuple(BarrierRow(*map(_count, row)) for row in _rows(plain["barriers"], 2)),
            tuple(ShuffleRow(*map(_count, row)) for row in _rows(plain["shuffles"], 2)),
            *(_count(plain[name]) for name in NUMBERS),
        )
    except (KeyError, TypeError) as problem:
        raise NoCounts(f"these are no counts ({type(problem).__name__})") from None


def _rows(rows: Any, width: int, most: int = MOST_ROWS) -> list[list]:
    good = isinstance(rows, list) and len(rows) <= most
    if not good or any(not isinstance(row, list) or len(row) != width for row in rows):
        raise NoCounts("these are no rows of counts")
    return rows


def _access(row: list) -> tuple:
    array, line, kind, *counts = row
    return _words(array), _count(line), _one_of(kind, KINDS), *map(_count, counts)


def _hazard(row: list, kinds: Sequence[str]) -> HazardRow:
    kind, line, what, times, block, array = row
    if not isinstance(block, list) or len(block) != 3:
        raise NoCounts("a hazard has no block")
    place = tuple(map(_count, block))
    return HazardRow(_one_of(kind, kinds), _count(line), _words(what), _count(times), place, _words(array))


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**62:
        raise NoCounts("a count is no whole number")
    return number


def _words(words: Any) -> str:
    if type(words) is not str or len(words) > LONGEST_WORDS:
        raise NoCounts("a word is none")
    return words


def _one_of(word: Any, known: Sequence[str]) -> str:
    if type(word) is not str or word not in known:
        raise NoCounts("a kind is unknown")
    return word
