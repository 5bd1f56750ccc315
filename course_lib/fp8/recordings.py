"""What the FP8 kernels took on a Hopper GPU: read from files that `record --hopper` wrote there.

    recordings.newest()                 the newest recording, None if there is none
    recording.origin                    "recorded on an NVIDIA H200 (…) on …": to be shown with every figure
    recording.table("dense")            all shapes of a kind, ours beside torch's
    recording.ladder()                  rung by rung, at one shape

A recording is a JSON file in the folder of this package. As with `measure.recordings`, a file in which
something is missing or makes no sense is refused with a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from course_lib.arguments import one_of
from course_lib.fp8.choose import moved_bytes
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
from course_lib.measure.table import Table, digits

FOLDER = Path(__file__).parent / "recordings"
KINDS = ("ladder", "dense", "contiguous", "masked")
VERSIONS = ("python", "numpy", "torch", "nvrtc")
OURS, OURS_DENSE = "ours", "ours, dense"
#: What the rows of a kind are compared with: grouped products with as many rows of one product.
BASELINES = {
    "ladder": "v6_tuned",
    "dense": "torch block-wise",
    "contiguous": OURS_DENSE,
    "masked": OURS_DENSE,
}


@dataclass(frozen=True)
class HopperRow:
    """One way to compute one product. `rows` are those that are computed, of all groups together."""

    kind: Literal["ladder", "dense", "contiguous", "masked"]
    what: Text  # "ours", a rung's name, or "torch …"
    kernel: str  # our kernel and its tile; "" for torch's
    groups: Count
    rows: Count
    N: Count
    K: Count
    seconds: Positive  # on the GPU with an empty L2 cache, the median of `samples`
    spread_s: NotNegative  # half the distance between the quartiles
    samples: Count
    call_s: Positive  # of the CPU until the product is queued
    diff: NotNegative  # errors.calc_diff against the product of what it was given
    matrices: Count = 1  # of B that are read: a dense product beside grouped ones reads one
    #: Medians while this and what is compared with it took turns; None: nvidia-smi does not tell.
    sm_mhz: NotNegative | None = None
    power_w: NotNegative | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Groups, rows, N, K."""
        return self.groups, self.rows, self.N, self.K

    @property
    def tflops(self) -> float:
        """TFLOP/s, counting two operations for each product."""
        return 2e-12 * self.rows * self.N * self.K / self.seconds

    @property
    def gbytes_per_s(self) -> float:
        """GB/s of memory if operands of one byte (bf16: two) are read once and D is written once."""
        size = 2 if self.what == "torch bf16" else 1
        return 1e-9 * moved_bytes(self.rows, self.N, self.K, self.matrices, size) / self.seconds


@dataclass(frozen=True)
class HopperRecording:
    """One run on one GPU: what has the same kind and shape was measured in turns."""

    when: Moment  # ISO 8601, UTC
    commit: Commit  # of the course; "+changes" if files differed from it
    device: Text  # "NVIDIA H200"
    gpu: RecordedGpu
    versions: Annotated[Versions, naming(VERSIONS)]
    method: Text  # how it was measured, in words
    rows: Annotated[tuple[HopperRow, ...], Checked(len, "one row or more")]
    notes: tuple[Text, ...] = ()  # what could not be measured, a sentence each

    def __post_init__(self) -> None:
        refuse_twice(f"{row.what} ({row.kind} {' x '.join(map(str, row.shape))})" for row in self.rows)

    @property
    def origin(self) -> str:
        """Where the figures come from, in a few words."""
        return recording_files.origin(self.device, f"driver {self.gpu.driver}", self.when)

    def of(self, kind: str) -> tuple[HopperRow, ...]:
        """Return the rows of a kind; ValueError for a kind that is none."""
        one_of("kind", kind, KINDS)
        return tuple(row for row in self.rows if row.kind == kind)

    def ladder(self) -> tuple[HopperRow, ...]:
        """Return the rungs in the order in which one climbs them."""
        return tuple(sorted(self.of("ladder"), key=lambda row: row.what))

    def share(self, row: HopperRow) -> float | None:
        """Return a row's speed as a part of BASELINES' for the same work; None if that was not measured."""
        same = {other.what: other for other in self.of(row.kind) if other.shape == row.shape}
        baseline = same.get(BASELINES[row.kind])
        return baseline.seconds / row.seconds if baseline else None

    def table(self, kind: str) -> Table:
        """Return the rows of a kind, ours beside torch's; a shape that all of them have is in the caption."""
        rows = self.ladder() if kind == "ladder" else self.of(kind)
        shapes = {row.shape for row in rows}
        one = f" of {_words(*shapes)}" if len(shapes) == 1 else ""
        columns = (
            "groups x rows x N x K",
            "",
            "kernel",
            "us",
            "TFLOP/s",
            "GB/s",
            "share",
            "MHz",
            "W",
            "diff",
        )
        skipped = int(len(shapes) == 1)
        return Table(
            columns=columns[skipped:],
            rows=tuple(self._cells(row)[skipped:] for row in rows),
            caption=f"{kind.capitalize()} products{one}, {self.origin}",
            notes=(
                "us: median on the GPU ± half the middle 50 %, L2 cache empty; GB/s: operands read once, D "
                f"written once; share: speed over that of '{BASELINES[kind]}' for the same work; MHz, W: "
                "medians of clock and power while all of that shape took turns, L2's emptying included; "
                f"diff: 1 - 2 sum(d r) / sum(d² + r²). {self.method}",
            ),
        )

    def beside(self) -> Table:
        """Return the dense products, one a row: our time, and how many times as long torch's ways take."""
        dense, rows = self.of("dense"), []
        names = list(dict.fromkeys(row.what for row in dense if row.what != OURS))
        for ours in (row for row in dense if row.what == OURS):
            others = {row.what: row for row in dense if row.shape == ours.shape}
            times = (
                f"{others[name].seconds / ours.seconds:.2f}x" if name in others else "–" for name in names
            )
            shape = _words(ours.shape[1:])
            rows.append((shape, ours.kernel, digits(ours.seconds * 1e6), digits(ours.tflops), *times))
        return Table(
            columns=("M x N x K", "ours", "us", "TFLOP/s", *names),
            rows=tuple(rows),
            caption=f"Dense products, {self.origin}",
            notes=(f"x: the others' time over ours, so above 1 they are slower. {self.method}",),
        )

    def _cells(self, row: HopperRow) -> tuple[str, ...]:
        share = self.share(row)
        return (
            _words(row.shape),
            row.what,
            row.kernel,
            f"{digits(row.seconds * 1e6)} ± {digits(row.spread_s * 1e6, 2)}",
            digits(row.tflops),
            digits(row.gbytes_per_s),
            f"{share:.3f}" if share else "–",
            *("–" if one is None else f"{one:.0f}" for one in (row.sm_mhz, row.power_w)),
            f"{row.diff:.1e}",
        )


def _words(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


FILES = RecordingFiles("hopper", HopperRecording, FOLDER)
newest, read, restore, write = FILES.newest, FILES.read, FILES.restore, FILES.write
