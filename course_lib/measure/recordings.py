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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course_lib.measure import recorded_fields as fields
from course_lib.measure.recorded_fields import MalformedRecording as MalformedRecording
from course_lib.measure.recorded_fields import Range, Wrong
from course_lib.measure.recorded_fields import is_commit as is_commit
from course_lib.measure.table import Table, digits

FOLDER = Path(__file__).parent / "recordings"
KIND, FORMAT = "gpu", 1
#: What is said where there is none.
NONE = (
    "No GPU has been recorded yet: `python -m course_lib record --gpu` on a machine with one writes a file "
    "that is shown here."
)
BASELINE = "torch"
#: What must be known of the software, and what may be of the GPU while it measured.
VERSIONS = ("python", "numpy", "torch", "cuda", "numba", "numba-cuda")
STATES = ("sm_mhz", "memory_mhz", "power_w", "temperature_c")


@dataclass(frozen=True)
class Row:
    """One rung for one shape (M, K, N) in float32."""

    rung: str
    shape: tuple[int, int, int]
    seconds: float  # on the GPU, the median of `samples`
    spread_s: float  # half the distance between the quartiles
    samples: int
    call_s: float  # of the CPU until a product is queued, with checks and dispatch in Python: the median
    error: float  # max|C - exact| / max|exact|
    tile: str = ""  # the tile shape that was chosen, for rungs that have a choice

    @property
    def tflops(self) -> float:
        """TFLOP/s, counting 2MNK operations."""
        return 2 * math.prod(self.shape) / self.seconds / 1e12


@dataclass(frozen=True)
class HidingPoint:
    """FMAs per second of the whole GPU with so many independent sums a thread and warps a scheduler."""

    chains: int
    warps: float  # per scheduler
    fma_per_s: float


@dataclass(frozen=True)
class Recording:
    """One run on one GPU: everything was measured in turns with everything else of the same size."""

    when: str  # ISO 8601, UTC
    commit: str  # of the course; "+changes" if files differed from it
    device: str  # "NVIDIA H200"
    compute_capability: str  # "9.0"
    memory_bytes: int
    multiprocessors: int
    driver: str
    versions: Mapping[str, str]  # of VERSIONS
    state: Mapping[str, Range | None]  # of STATES, while it measured; None: nvidia-smi does not tell
    power_limit_w: float | None
    highest_sm_mhz: float | None
    method: str  # how it was measured, in words
    rows: tuple[Row, ...]
    latency_hiding: tuple[HidingPoint, ...] = ()  # of `measure.latency_hiding`

    @property
    def origin(self) -> str:
        """Where the figures come from, in a few words."""
        return fields.origin(self.device, f"driver {self.driver}", self.when)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The N of the N x N matrices, rising."""
        return tuple(sorted({row.shape[0] for row in self.rows}))

    def row(self, rung: str, size: int) -> Row | None:
        """Return the row of a rung for size x size matrices, None if it was not measured."""
        return next((row for row in self.rows if (row.rung, row.shape) == (rung, (size,) * 3)), None)

    def share(self, rung: str, size: int) -> float | None:
        """Return the rung's speed as a part of cuBLAS's at that size; None if one was not measured."""
        ours, theirs = self.row(rung, size), self.row(BASELINE, size)
        return theirs.seconds / ours.seconds if ours and theirs else None

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

    def _cells(self, row: Row) -> tuple[str, ...]:
        share = self.share(row.rung, row.shape[0])
        return (
            row.rung,
            f"{digits(row.seconds * 1e6)} ± {digits(row.spread_s * 1e6, 2)}",
            digits(row.tflops),
            f"{share:.3f}" if share else "–",
            f"{row.error:.1e}",
            digits(row.call_s * 1e6),
        )

    def data(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"kind": KIND, "format": FORMAT, **asdict(self)}


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
    found = [read(path) for path in sorted(folder.glob("*.json"))]
    fitting = [recording for recording in found if device.lower() in recording.device.lower()]
    return max(fitting, key=lambda recording: fields.moment(recording.when), default=None)


def write(recording: Recording, folder: Path = FOLDER) -> Path:
    """Write a recording into a file of its own and return the path; raises OSError if that cannot be done."""
    return fields.write(recording.data(), folder, restore, indent=1)


def read(path: Path) -> Recording:
    """Return the recording of a file; raises MalformedRecording, or OSError if there is no such file."""
    return restore(fields.content_of(path), path.name)


def restore(content: Any, name: str = "this") -> Recording:
    """Return the Recording that `data` made; raises MalformedRecording with what is wrong."""
    return fields.checked(_restored, content, name, "--gpu")


# -- what makes sense --------------------------------------------------------------------------------------


def _restored(content: Any) -> Recording:
    if not isinstance(content, dict) or (content.get("kind"), content.get("format")) != (KIND, FORMAT):
        raise Wrong(f"it does not say 'kind': '{KIND}' and 'format': {FORMAT}")
    rows = fields.rows(_row, content, "rows")
    if not rows:
        raise Wrong("it has no rows")
    versions, state = (fields.value(content, name, dict) for name in ("versions", "state"))
    seen = [(row.rung, row.shape) for row in rows]
    if twice := next((one for one in seen if seen.count(one) > 1), None):
        raise Wrong(f"'{twice[0]}' stands there twice for {' x '.join(map(str, twice[1]))}")
    return Recording(
        when=fields.date(content, "when"),
        commit=fields.commit(content, "commit"),
        **{name: fields.text(content, name) for name in ("device", "compute_capability", "driver", "method")},
        **{name: fields.whole(content, name) for name in ("memory_bytes", "multiprocessors")},
        versions={name: fields.text(versions, name) for name in VERSIONS},
        state={name: fields.perhaps(fields.span, state, name) for name in STATES},
        power_limit_w=fields.perhaps(fields.number, content, "power_limit_w"),
        highest_sm_mhz=fields.perhaps(fields.number, content, "highest_sm_mhz"),
        rows=rows,
        latency_hiding=tuple(map(_hiding, fields.value(content, "latency_hiding", list))),
    )


def _row(content: dict) -> Row:
    shape = fields.value(content, "shape", list)
    if len(shape) != 3 or not all(type(size) is int and size > 0 for size in shape):
        raise Wrong(f"'shape' is {shape}, not three positive whole numbers")
    return Row(
        rung=fields.text(content, "rung"),
        shape=tuple(shape),
        seconds=fields.number(content, "seconds"),
        spread_s=fields.number(content, "spread_s", least=0),
        samples=fields.whole(content, "samples"),
        call_s=fields.number(content, "call_s"),
        error=fields.number(content, "error", least=0),
        tile=fields.value(content, "tile", str),
    )


def _hiding(content: Any) -> HidingPoint:
    if not isinstance(content, dict):
        raise Wrong(f"'latency_hiding' has {content!r}, which is no object")
    chains, warps, rate = (fields.number(content, name) for name in ("chains", "warps", "fma_per_s"))
    return HidingPoint(int(chains), warps, rate)
