"""What a trace found: accesses and their cost, divergence, hazards."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from course_lib.measure.table import Table
from course_lib.simulators.gpu.counting import SECTOR_BYTES, WARP
from course_lib.simulators.gpu.recorder import Recorder
from course_lib.simulators.gpu.report import Report
from course_lib.simulators.gpu.tally import AccessRow, BranchRow, Hazard, LineRow, Tally

__all__ = ["Launch", "Trace"]


@dataclass(frozen=True)
class Launch:
    """What was launched: blocks_run of blocks were traced."""

    kernel: str
    file: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    blocks_run: int
    blocks: int


@dataclass(frozen=True)
class GlobalAccess:
    """The accesses of one line to one array in global memory.

    A request is one instruction of a warp; `sectors` are the 32-byte pieces that all requests touched.
    `accesses` counts single threads, `bytes` what they asked for.
    """

    array: str
    line: int
    kind: str
    requests: int
    sectors: int
    accesses: int
    bytes: int

    @property
    def sectors_per_request(self) -> float:
        """Return sectors for each request: 4 is best for 4-byte elements, 32 is worst."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def bytes_moved(self) -> int:
        """Return the bytes of all sectors."""
        return self.sectors * SECTOR_BYTES


@dataclass(frozen=True)
class SharedAccess:
    """The accesses of one line to one array in shared memory; 1 wavefront for a request has no conflict."""

    array: str
    line: int
    kind: str
    requests: int
    wavefronts: int
    accesses: int
    bytes: int

    @property
    def wavefronts_per_request(self) -> float:
        """Return wavefronts for each request: 1 without bank conflicts (2 for 8-byte elements)."""
        return self.wavefronts / self.requests if self.requests else 0.0


@dataclass(frozen=True)
class Divergence:
    """How a line was executed: by so many warps, with so many active threads, and, where threads part, how
    many of the warps went both ways: `divided` of `decisions`, as a loop or two conditions in one line make
    a warp decide more than once."""

    line: int
    warps: int
    threads: int
    divided: int
    decisions: int

    @property
    def active(self) -> float:
        """Return the mean number of active threads of a warp, 32 at best."""
        return self.threads / self.warps if self.warps else 0.0


class Trace:
    """What one launch did. Every list is in the order of the source."""

    def __init__(
        self, launch: Launch, tally: Tally, source: dict[int, str], recorder: Recorder | None = None
    ) -> None:
        self.launch = launch
        self.source = source
        rows = sorted(tally.rows.values(), key=lambda row: (row.line, row.array, row.kind))
        self.global_accesses = [_global(row) for row in rows if row.space == "global"]
        self.shared_accesses = [_shared(row) for row in rows if row.space == "shared"]
        self.divergence = [
            _divergence(tally.lines[line], tally.branches.get(line)) for line in sorted(tally.lines)
        ]
        self.hazards = _with_times(tally, tally.hazards)
        self.remarks = _with_times(tally, tally.remarks)
        self.barriers = dict(sorted(tally.barrier_lines.items()))
        self.shuffles = dict(sorted(tally.shuffle_lines.items()))
        self.atomic_rounds = dict(tally.atomic_rounds)
        self.steps = recorder.steps if recorder else []
        self.steps_cut = bool(recorder and recorder.is_cut)
        self.recorded = (recorder.block, recorder.warp) if recorder else None  # block counted over the grid
        self.busiest_warp = tally.busiest_warp  # requests, in both memories, and shuffles
        self.flops = tally.flops
        self.shared_bytes = tally.shared_bytes

    @property
    def accesses(self) -> int:
        """Return how many elements all threads together read and wrote, in global and shared memory."""
        return sum(row.accesses for row in (*self.global_accesses, *self.shared_accesses))

    @property
    def requests(self) -> int:
        """Return how many requests all warps together made, in global and shared memory, shuffles included.

        A shuffle takes the place of a load from shared memory, and as long.
        """
        accesses = sum(row.requests for row in (*self.global_accesses, *self.shared_accesses))
        return accesses + sum(self.shuffles.values())

    @property
    def imbalance(self) -> float:
        """Return the requests of the busiest warp over those of a warp on average: 1 if all have the same.

        A launch ends when its last warp does. 0.0 if there was no request.
        """
        warps = self.launch.blocks_run * -(-math.prod(self.launch.block) // WARP)
        return self.busiest_warp * warps / self.requests if self.requests else 0.0

    @property
    def global_bytes(self) -> int:
        """Return the bytes of all sectors that were moved from and to global memory (or its caches)."""
        return sum(row.bytes_moved for row in self.global_accesses)

    @property
    def intensity(self) -> float:
        """Return the arithmetic intensity, FLOP for each byte of global sectors moved; inf if none was."""
        return self.flops / self.global_bytes if self.global_bytes else float("inf")

    def row(self, array: str, kind: str = "load", line: int | None = None) -> GlobalAccess | SharedAccess:
        """Return the only row for an array and a kind of access; KeyError if there is none or several."""
        found = [
            row
            for row in (*self.global_accesses, *self.shared_accesses)
            if row.array == array and row.kind == kind and line in (None, row.line)
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} rows are {kind}s of {array}; name the line as well.")
        return found[0]

    def table(self) -> Table:
        """Return accesses line by line."""
        rows = [(row, "global", row.sectors, "sectors") for row in self.global_accesses]
        rows += [(row, "shared", row.wavefronts, "wavefronts") for row in self.shared_accesses]
        rows.sort(key=lambda entry: entry[0].line)
        headers = ("line", "array", "memory", "kind", "requests", "cost", "per request")
        return Table(headers, tuple(_access_row(*entry) for entry in rows))

    def report(self) -> Report:
        """Return the kernel's text with what each line did beside it."""
        return Report(self)

    def __repr__(self) -> str:
        run = self.launch.blocks_run
        part = "" if run == self.launch.blocks else f" ({run:,} of {self.launch.blocks:,} blocks)"
        found = f"{len(self.hazards)} hazards" if self.hazards else "no hazards"
        return f"<Trace of {self.launch.kernel}{part}: {self.accesses:,} accesses, {found}>"


def _access_row(row: GlobalAccess | SharedAccess, memory: str, cost: int, unit: str) -> tuple[str, ...]:
    each = cost / row.requests if row.requests else 0.0
    return (
        str(row.line),
        row.array,
        memory,
        row.kind,
        f"{row.requests:,}",
        f"{cost:,} {unit}",
        f"{each:.3g}",
    )


def _global(row: AccessRow) -> GlobalAccess:
    return GlobalAccess(row.array, row.line, row.kind, row.requests, row.cost, row.accesses, row.bytes)


def _shared(row: AccessRow) -> SharedAccess:
    return SharedAccess(row.array, row.line, row.kind, row.requests, row.cost, row.accesses, row.bytes)


def _divergence(line: LineRow, branch: BranchRow | None) -> Divergence:
    divided, decisions = (branch.divided, branch.warps) if branch else (0, 0)
    return Divergence(line.line, line.warps, line.threads, divided, decisions)


def _with_times(tally: Tally, kept: dict[tuple, Hazard]) -> list[Hazard]:
    found = [replace(hazard, times=tally.times[id(hazard)]) for hazard in kept.values()]
    return sorted(found, key=lambda hazard: (hazard.line, hazard.kind))
