"""Caches of several cores that must agree: the MESI protocol, counted.

    result = simulate(counters(threads=2, times=100, stride_bytes=8))
    result.invalidations, result.false_sharing_misses, result.table()

Each core has a private cache; all of them snoop one bus (Papamarcos & Patel 1984, the "Illinois" protocol).
A line is Modified, Exclusive, Shared or Invalid in each cache. A miss is served by another cache if one has
the line, otherwise by memory; a modified line that another core asks for is written back at that moment.
The caches have no limit of size: every miss is a first access (cold) or a matter of coherence, and nothing
else is counted.

A miss to a line that the core had before and lost to another core's write is *true sharing* if, before the
core loses the line again, it touches a word that another core has written since the core last needed such
news; otherwise it is *false sharing*: the line was lost for words the core does not use, and padding would
have avoided it (Dubois, Skeppstedt, Ricciulli, Ramamurthy & Stenström 1993, "The detection and elimination
of useless misses in multiprocessors"). Both reads and writes count as touching: two cores that write one
word share it truly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.arguments import is_whole, refusal, whole
from course_lib.measure.table import Shown, Table

MOST_CORES = 64
WORD_BYTES = 8
MOST_LINE_BYTES = 64 * WORD_BYTES  # a bit for each word
COUNTS = (
    "reads",
    "writes",
    "hits",
    "misses",
    "bus_reads",  # a line fetched to read it
    "bus_read_exclusives",  # a line fetched to write it
    "upgrades",  # a shared line that the core has becomes its own: no data, only an announcement
    "invalidations",  # lines the core lost to another core's write
    "write_backs",  # modified lines written to memory because another core asked
    "cache_to_cache",  # misses served by another core's cache
    "cold_misses",
    "true_sharing_misses",
    "false_sharing_misses",
    "ownership_moves",  # a core writes a line that another core has written last
)
_NUMBER = {name: number for number, name in enumerate(COUNTS)}
_COLUMNS = {
    "accesses": ("reads", "writes"),
    "misses": ("misses",),
    "cold": ("cold_misses",),
    "true sharing": ("true_sharing_misses",),
    "false sharing": ("false_sharing_misses",),
    "invalidations": ("invalidations",),
    "bus": ("bus_reads", "bus_read_exclusives", "upgrades"),
}


@dataclass(frozen=True, repr=False)
class CoherenceCounts(Shown):
    """What happened on the bus and in the caches: `per_core` (cores, counts), int64, columns as in COUNTS."""

    per_core: np.ndarray

    def __getattr__(self, name: str) -> int:
        if name in _NUMBER:
            return int(self.per_core[:, _NUMBER[name]].sum())
        raise AttributeError(
            f"A result of the coherence simulator has no {name!r}; it has {', '.join(COUNTS)}."
        )

    @property
    def accesses(self) -> int:
        """Reads and writes of all cores."""
        return self.reads + self.writes

    def table(self) -> Table:
        """Return the counts of each core and of all."""
        named = [(f"core {number}", counts) for number, counts in enumerate(self.per_core)]
        named.append(("all cores", self.per_core.sum(axis=0)))
        rows = tuple(
            (name, *(f"{sum(counts[_NUMBER[one]] for one in kinds):,}" for kinds in _COLUMNS.values()))
            for name, counts in named
        )
        legend = "bus: reads, reads for ownership and upgrades, which every cache must hear of."
        return Table(("", *_COLUMNS), rows, notes=(legend,))


Events = np.ndarray | Iterable[tuple[int, int, bool]]


def simulate(events: Events, cores: int | None = None, line_bytes: int = 64) -> CoherenceCounts:
    """Run accesses through the caches, in the order given.

    `events` are (core, byte address, is a write), as tuples or as an integer array (n, 3). `cores` None: as
    many as appear. Lines have `line_bytes` bytes (a power of two), words eight; an access touches one word.
    Raises ValueError for numbers that make no sense.
    """
    array = _as_array(events)
    cores = _checked(array, cores, line_bytes)
    from course_lib.simulators.coherence_kernel import play

    core, address, write = (np.ascontiguousarray(column) for column in array.T)
    lines, numbers = np.unique(address // line_bytes, return_inverse=True)
    words = WORD_BYTES.bit_length() - 1, line_bytes // WORD_BYTES - 1
    per_core = np.zeros((cores, len(COUNTS)), np.int64)
    play(core, address, write, numbers, len(lines), *words, per_core)
    return CoherenceCounts(per_core)


def counters(threads: int, times: int, stride_bytes: int, *, locked: bool = False) -> np.ndarray:
    """Return the events of threads that take turns to increment a counter of their own, each `times` times.

    Counter t lies at byte `stride_bytes` * t (0: all count in one). An increment is a read and a write;
    a `locked` one asks at once for the line as its own and is a single write here.
    """
    asked = (("threads", threads, 1), ("times", times, 0), ("stride_bytes", stride_bytes, 0))
    for what, value, least in asked:
        whole(what, value, least=least)
    turns = np.meshgrid(range(times), range(threads), [1] if locked else [0, 1], indexing="ij")
    _, core, write = (axis.ravel() for axis in turns)
    return np.column_stack([core, core * stride_bytes, write])


# -- one line, step by step --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transition:
    """One access to a line: the state in every cache after it, and what the bus carried."""

    core: int
    write: bool
    address: int
    states: str  # one letter per core: "MI"
    bus: str  # "", "BusRd", "BusRdX" or "BusUpgr"
    source: str  # who delivered the line: "", "memory" or "core 1"
    written_back: bool


def access(states: str, core: int, write: bool) -> tuple[str, str, str, bool]:
    """Return (states, bus, source, written back) after one access: the protocol's table.

    `states` has a letter for each core: Modified, Exclusive, Shared, Invalid.
    """
    own = states[core]
    others = [one for number, one in enumerate(states) if number != core]
    has_it = next((number for number, one in enumerate(states) if number != core and one != "I"), None)
    written_back = own == "I" and "M" in others
    bus = source = ""
    if own == "I":
        bus = "BusRdX" if write else "BusRd"
        source = "memory" if has_it is None else f"core {has_it}"
    elif write and own == "S":
        bus = "BusUpgr"
    if write:
        after = ["M" if number == core else "I" for number in range(len(states))]
    elif own != "I":
        after = list(states)
    else:
        after = ["S" if one != "I" else "I" for one in states]
        after[core] = "E" if has_it is None else "S"
    return "".join(after), bus, source, written_back


def history(events: Events, line_bytes: int, most: int) -> tuple[Transition, ...]:
    """Return what the first `most` accesses to one line did to it: the line at address 0."""
    array = _as_array(events)
    states = "I" * _checked(array, None, line_bytes)
    found = []
    for core, at, write in array[array[:, 1] < line_bytes][:most].tolist():
        states, bus, source, written_back = access(states, core, bool(write))
        found.append(Transition(core, bool(write), at, states, bus, source, written_back))
    return tuple(found)


def _as_array(events: Any) -> np.ndarray:
    listed = events if isinstance(events, np.ndarray) else list(events)
    try:
        array = np.asarray(listed)
        if array.size == 0:
            return np.zeros((0, 3), np.int64)
        if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iub":
            raise TypeError
        return array.astype(np.int64, casting="unsafe")
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            "events must be accesses (core, byte address, is a write) in whole numbers: for example "
            "[(0, 64, True), (1, 72, False)]."
        ) from None


def _checked(array: np.ndarray, cores: int | None, line_bytes: int) -> int:
    is_possible = is_whole(line_bytes) and WORD_BYTES <= line_bytes <= MOST_LINE_BYTES
    if not is_possible or line_bytes & (line_bytes - 1):
        raise refusal("line_bytes", line_bytes, f"a power of two, {WORD_BYTES} to {MOST_LINE_BYTES}")
    first, last = (int(array[:, 0].min()), int(array[:, 0].max())) if len(array) else (0, 0)
    cores = whole("cores", max(last, 0) + 1 if cores is None else cores, most=MOST_CORES)
    if first < 0 or last >= cores:
        wrong = first if first < 0 else last
        raise ValueError(f"events name core {wrong}, but with {cores} cores they are 0 to {cores - 1}.")
    if len(array) and array[:, 1].min() < 0:
        raise ValueError(f"events hold the address {array[:, 1].min()}, but addresses start at 0.")
    return cores
