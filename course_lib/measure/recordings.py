"""What was measured on a GPU that this computer lacks: read from files that `record --gpu` wrote there.

    recordings.newest()            the newest recording of any GPU, None if there is none
    recordings.newest("H200")      of a device whose name contains that
    recording.origin               "recorded on an NVIDIA H200 (driver …) on …": to be shown with every figure
    recording.table(4096)          all rungs at one size, beside cuBLAS
    recording.hiding()             the share of the peak against warps per scheduler

A recording is a JSON file in the folder of this package. A file in which something is missing or does not
make sense is refused with a sentence: a figure whose origin is not known is worth nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from course_lib.measure import recording_files
from course_lib.measure.gpu_state import RecordedGpu
from course_lib.measure.recording_files import (
    Checked,
    Commit,
    Count,
    Moment,
    NotNegative,
    Positive,
    RecordingFiles,
    Text,
    Versions,
    naming,
    refuse_twice,
)
from course_lib.measure.recording_files import MalformedRecording as MalformedRecording
from course_lib.measure.recording_files import is_commit as is_commit
from course_lib.measure.table import Table, digits

FOLDER = Path(__file__).parent / "recordings"
BASELINE = "torch"
#: float32 FMAs that a multiprocessor begins in a cycle, by compute capability (CUDA C++ programming guide).
LANES = {"7.0": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.9": 128, "9.0": 128}
#: What must be known of the software.
VERSIONS = ("python", "numpy", "torch", "numba", "numba-cuda")


@dataclass(frozen=True)
class RungRow:
    """One rung for one shape (M, K, N) in float32."""

    rung: Text
    shape: tuple[Count, Count, Count]
    seconds: Positive  # on the GPU, the median of `samples`
    spread_s: NotNegative  # half the distance between the quartiles
    samples: Count
    call_s: Positive  # of the CPU until a product is queued, with checks and dispatch in Python: the median
    error: NotNegative  # max|C - exact| / max|exact|
    tile: str = ""  # the tile shape that was chosen, for rungs that have a choice

    @property
    def tflops(self) -> float:
        """TFLOP/s, counting 2MNK operations."""
        return 2 * math.prod(self.shape) / self.seconds / 1e12


@dataclass(frozen=True)
class HidingPoint:
    """FMAs per second of the whole GPU with so many independent sums a thread and warps a scheduler."""

    chains: Count
    warps: Positive  # per scheduler
    fma_per_s: Positive


Whole = Annotated[int, Checked(lambda value: value >= 0, "a whole number of at least 0")]


@dataclass(frozen=True)
class CountedLaunch:
    """What the GPU's own counters say of a launch for one shape (M, K, N): see `commands.gpu_counters`."""

    rung: Text
    shape: tuple[Count, Count, Count]
    tile: str
    load_sectors: Count  # of 32 bytes, of global memory: what the lanes of its loads touch
    store_sectors: Count
    shared_loads: Whole  # of warps
    shared_load_wavefronts: Whole
    fmas: Count  # of single threads

    @property
    def warp_fmas(self) -> float:
        """FMAs of whole warps."""
        return self.fmas / 32


@dataclass(frozen=True)
class Recording:
    """One run on one GPU: everything was measured in turns with everything else of the same size."""

    when: Moment  # ISO 8601, UTC
    commit: Commit  # of the course; "+changes" if files differed from it
    device: Text  # "NVIDIA H200"
    memory_bytes: Count
    gpu: RecordedGpu
    versions: Annotated[Versions, naming(VERSIONS)]
    method: Text  # how it was measured, in words
    rows: Annotated[tuple[RungRow, ...], Checked(len, "one row or more")]
    latency_hiding: tuple[HidingPoint, ...] = ()  # of `measure.latency_hiding`
    counters: tuple[CountedLaunch, ...] = ()  # of `commands.gpu_counters`; none where ncu could not read them

    def __post_init__(self) -> None:
        refuse_twice(f"{row.rung} at {' x '.join(map(str, row.shape))}" for row in self.rows)

    @property
    def origin(self) -> str:
        """Where the figures come from, in a few words."""
        return recording_files.origin(self.device, f"driver {self.gpu.driver}", self.when)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The N of the N x N matrices, rising."""
        return tuple(sorted({row.shape[0] for row in self.rows}))

    def row(self, rung: str, size: int) -> RungRow | None:
        """Return the row of a rung for size x size matrices, None if it was not measured."""
        return next((row for row in self.rows if (row.rung, row.shape) == (rung, (size,) * 3)), None)

    def share(self, rung: str, size: int) -> float | None:
        """Return the rung's speed as a part of cuBLAS's at that size; None if one was not measured."""
        ours, theirs = self.row(rung, size), self.row(BASELINE, size)
        return theirs.seconds / ours.seconds if ours and theirs else None

    def of_peak(self, rung: str, size: int) -> float | None:
        """Return the rung's speed as a part of the float32 peak at the highest clock; None if not known."""
        row, lanes = self.row(rung, size), LANES.get(self.gpu.compute_capability)
        if not (row and lanes and self.gpu.highest_sm_mhz):
            return None
        return row.tflops / (2 * lanes * self.gpu.multiprocessors * self.gpu.highest_sm_mhz * 1e-6)

    def counted(self, rung: str) -> CountedLaunch | None:
        """Return what the counters say of a rung with the first of its tiles; None if they were not read."""
        return next((one for one in self.counters if one.rung == rung), None)

    def hiding(self) -> dict[str, dict[float, float]]:
        """Return, for each number of sums a thread, the share of the highest rate by warps per scheduler."""
        return shares(self.latency_hiding, self.origin)

    def table(self, size: int) -> Table:
        """Return all rungs at one size; raises ValueError if that size was not measured."""
        rows = [row for row in self.rows if row.shape == (size,) * 3]
        if not rows:
            raise ValueError(f"Size {size} was not recorded; {', '.join(map(str, self.sizes))} were.")
        return Table(
            columns=("", "us", "TFLOP/s", "x cuBLAS", "max error", "call us"),
            rows=tuple(self._cells(row) for row in rows),
            caption=f"{size} x {size} x {size}, float32, {self.origin}",
            marked=BASELINE,
            notes=(
                "us: median on the GPU ± half the middle 50 %; call: CPU time from the call in Python until "
                "the product is queued, the launch and what checks and dispatches before it. "
                f"{self.method}",
            ),
        )

    def _cells(self, row: RungRow) -> tuple[str, ...]:
        share = self.share(row.rung, row.shape[0])
        return (
            row.rung,
            f"{digits(row.seconds * 1e6)} ± {digits(row.spread_s * 1e6, 2)}",
            digits(row.tflops),
            f"{share:.3f}" if share else "–",
            f"{row.error:.1e}",
            digits(row.call_s * 1e6),
        )


FILES = RecordingFiles("gpu", Recording, FOLDER, indent=1)
read, restore, write = FILES.read, FILES.restore, FILES.write


def shares(points: Sequence[HidingPoint], origin: str) -> dict[str, dict[float, float]]:
    """Return, for each number of sums a thread, the share of the highest rate by warps per scheduler."""
    highest = max((point.fma_per_s for point in points), default=math.nan)
    found: dict[str, dict[float, float]] = {}
    for point in points:
        sums = f"{point.chains} sum{'s' * (point.chains > 1)} of FMAs a thread, {origin}"
        found.setdefault(sums, {})[point.warps] = point.fma_per_s / highest
    return found


def newest(device: str = "", folder: Path = FOLDER) -> Recording | None:
    """Return the newest recording of a GPU whose name contains `device`; None if there is none.

    Raises MalformedRecording if any file of the folder is no recording.
    """
    return FILES.newest(folder, lambda recording: device.lower() in recording.device.lower())


def of_chapter() -> Recording:
    """Return the newest recording that has all that chapter 06 shows: the package brings one.

    Raises MalformedRecording as `newest` does.
    """

    def is_whole(one: Recording) -> bool:
        return bool(
            one.counters and one.latency_hiding and one.of_peak(BASELINE, 4096) and one.row(BASELINE, 2000)
        )

    return FILES.newest(FOLDER, is_whole)
