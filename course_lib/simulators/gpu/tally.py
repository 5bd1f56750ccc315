"""What is counted while a kernel runs, over all batches of blocks, and what one warp does, step by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course_lib.simulators.gpu.arrays import DeviceArray
from course_lib.simulators.gpu.counting import SECTOR_BYTES, WARP

# -- the steps of one warp: the picture that a time slider shows ---------------------------------------------


MOST_STEPS = 5_000


@dataclass(frozen=True)
class WarpStep:
    """One memory instruction of a warp, or a barrier.

    `kind` is 'load', 'store', 'atomic' or 'barrier'. `places` holds, for each of the 32 lanes, the element
    number counted from the start of the array's memory (of the block's, in shared memory), None for a lane
    that takes no part; times `item_bytes` it is the address. `cost` is sectors in global and wavefronts in
    shared memory. `shape` and `strides` (in elements) are those of the array, which begins at `offset`.
    """

    line: int
    kind: str
    array: str = ""
    space: str = ""
    item_bytes: int = 0
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    offset: int = 0
    places: tuple[int | None, ...] = ()
    cost: int = 0


@dataclass
class Recorder:
    """Keeps the steps of one warp of one block; `is_cut` says that there were more than are kept."""

    block: int
    warp: int
    steps: list[WarpStep] = field(default_factory=list)
    is_cut: bool = False

    def lanes_of(self, block_number: np.ndarray, block_lanes: int) -> slice | None:
        """Return where the warp's lanes are among these, None if its block is not run here."""
        first = int(np.searchsorted(block_number[::block_lanes], self.block)) * block_lanes
        if first >= len(block_number) or block_number[first] != self.block:
            return None
        return slice(first + self.warp * WARP, first + (self.warp + 1) * WARP)

    def keep(self, step: WarpStep) -> None:
        """Keep a step if there is room."""
        if len(self.steps) < MOST_STEPS:
            self.steps.append(step)
        else:
            self.is_cut = True


# -- what is counted -----------------------------------------------------------------------------------------


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


def _only_in(space: str, value: Callable[[AccessRow], Any]) -> property:
    """Return a property that only the rows of one memory have."""

    def read(row: AccessRow) -> Any:
        if row.space != space:
            raise AttributeError(
                f"{row.array} lies in {row.space} memory, but this is counted in {space} memory."
            )
        return value(row)

    return property(read)


@dataclass
class AccessRow:
    """All accesses of one line to one array, in global or shared memory.

    A request is one instruction of a warp. Its cost is the 32-byte sectors that it touches in global memory,
    and in shared memory the wavefronts that it takes. `accesses` counts single threads, `bytes` what they
    asked for.
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
    meet: str = ""  # in a bank of shared memory: the first that did

    @property
    def per_request(self) -> float:
        """Return the cost of a request on average.

        4 sectors are best for 4-byte elements, 32 are worst; 1 wavefront has no bank conflict (2 for 8-byte
        elements).
        """
        return self.cost / self.requests if self.requests else 0.0

    sectors = _only_in("global", lambda row: row.cost)
    sectors_per_request = _only_in("global", lambda row: row.per_request)
    bytes_moved = _only_in("global", lambda row: row.cost * SECTOR_BYTES)
    wavefronts = _only_in("shared", lambda row: row.cost)
    wavefronts_per_request = _only_in("shared", lambda row: row.per_request)


@dataclass
class LineRow:
    """How a line was executed: by so many warps, with so many active threads, and, where threads part, how
    many of the warps went both ways: `divided` of `decisions`, as a loop or two conditions in one line make
    a warp decide more than once."""

    line: int
    warps: int = 0
    threads: int = 0
    divided: int = 0
    decisions: int = 0

    @property
    def active(self) -> float:
        """Return the mean number of active threads of a warp, 32 at best."""
        return self.threads / self.warps if self.warps else 0.0


@dataclass
class KernelTally:
    """The counters of one trace."""

    sites: dict[int, Any] = field(default_factory=dict)  # by number
    rows: dict[tuple, AccessRow] = field(default_factory=dict)
    divided: Counter = field(default_factory=Counter)  # warps that went both ways, by line
    decisions: Counter = field(default_factory=Counter)  # and those that came to a branch
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

    def note(self, hazard: Hazard, is_remark: bool = False) -> None:
        """Keep the first hazard of its kind at its place, and count the others.

        A remark is worth a look but no hazard: threads that write the same value, a lane that asks one which
        has none to give, an index that wraps.
        """
        kept = self.remarks if is_remark else self.hazards
        key = (hazard.kind, hazard.line, hazard.array, hazard.other_line)
        self.times[id(kept.setdefault(key, hazard))] += hazard.times
