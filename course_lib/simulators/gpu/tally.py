"""What is counted while a kernel runs, over all batches of blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from course_lib.simulators.gpu.arrays import DeviceArray
from course_lib.simulators.gpu.masks import Mask

Point = tuple[int, int, int]


@dataclass(frozen=True)
class Hazard:
    """Something a correct kernel must not do, with the first place where it was seen.

    `kind` is 'race', 'uninitialised', 'out-of-bounds' or 'divergent-barrier'; `line` is the line in the
    kernel's file, `block` and `threads` are (x, y, z); `times` counts accesses of this kind, line and array.
    """

    kind: str
    line: int
    block: Point
    threads: tuple[Point, ...]
    what: str
    array: str = ""
    times: int = 1
    other_line: int = 0
    other_block: Point | None = None

    def __str__(self) -> str:
        times = f" ({self.times:,} times in all)" if self.times > 1 else ""
        return f"line {self.line}, block {self.block}: {self.what}{times}."


@dataclass
class AccessRow:
    """All accesses of one line to one array: requests of whole warps, and what they cost.

    `cost` is sectors for global memory and wavefronts for shared memory; `accesses` are those of single
    threads, `bytes` what they asked for.
    """

    array: str
    space: str
    line: int
    kind: str
    item_bytes: int
    requests: int = 0
    cost: int = 0
    accesses: int = 0
    bytes: int = 0


@dataclass
class BranchRow:
    """A line where warps may part: how many came, and how many of them went both ways."""

    line: int
    warps: int = 0
    divided: int = 0


@dataclass
class LineRow:
    """How often warps executed a line, and with how many threads in all."""

    line: int
    warps: int = 0
    threads: int = 0


@dataclass
class Tally:
    """The counters of one trace."""

    sites: list[Any] = field(default_factory=list)
    rows: dict[tuple, AccessRow] = field(default_factory=dict)
    branches: dict[int, BranchRow] = field(default_factory=dict)
    lines: dict[int, LineRow] = field(default_factory=dict)
    hazards: dict[tuple, Hazard] = field(default_factory=dict)
    remarks: dict[tuple, Hazard] = field(default_factory=dict)
    times: Counter = field(default_factory=Counter)  # of each hazard and each remark, by its first one
    barrier_lines: Counter = field(default_factory=Counter)
    shuffle_lines: Counter = field(default_factory=Counter)
    atomic_rounds: Counter = field(default_factory=Counter)
    flops: int = 0
    shared_bytes: int = 0
    busiest_warp: int = 0  # the most requests, to memory or to other lanes, that one warp made

    def row(self, array: DeviceArray, line: int, kind: str) -> AccessRow:
        """Return the row of one line's accesses of one kind to one array."""
        key = (array.space, array.name, line, kind)
        if key not in self.rows:
            self.rows[key] = AccessRow(array.name, array.space, line, kind, array.item_bytes)
        return self.rows[key]

    def line(self, number: int) -> LineRow:
        """Return the row of one line."""
        return self.lines.setdefault(number, LineRow(number))

    def branch(self, line: int, warps: int, divided: int) -> None:
        """Count warps at a branch."""
        row = self.branches.get(line)
        if row is None:
            row = self.branches[line] = BranchRow(line)
        row.warps += warps
        row.divided += divided

    def barriers(self, line: int, m: Mask) -> None:
        """Count warps at a barrier."""
        self.barrier_lines[line] += m.warps

    def shuffles(self, line: int, m: Mask) -> None:
        """Count warps at a shuffle."""
        self.shuffle_lines[line] += m.warps

    def hazard(self, hazard: Hazard) -> None:
        """Keep the first hazard of its kind at its place, and count the others."""
        self._keep(self.hazards, hazard)

    def remark(self, hazard: Hazard) -> None:
        """Keep what is worth a look but no hazard.

        Threads that write the same value, a lane that asks one which has none to give, an index that wraps.
        """
        self._keep(self.remarks, hazard)

    def _keep(self, kept: dict[tuple, Hazard], hazard: Hazard) -> None:
        key = (hazard.kind, hazard.line, hazard.array, hazard.other_line)
        self.times[id(kept.setdefault(key, hazard))] += hazard.times
