"""What is published about GPUs that this computer may lack: figures from elsewhere, each with its source.

    PUBLISHED["H100"].peak_flops, PUBLISHED["H100"].ridge
    BOEHM.share("cuda-tiled")          S. Boehm's kernels on an RTX A6000, as shares of cuBLAS there

Nothing in here was measured by this course; that is in `measure.recordings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import Table, digits

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class PublishedGpu:
    """What a GPU's maker says of it. A multiprocessor (SM) begins `fp32_lanes` float32 FMAs a cycle."""

    name: str
    cc: tuple[int, int]
    sms: int
    fp32_lanes: int  # per SM
    clock_hz: float  # the boost clock, for which peaks are published
    bytes_per_s: float  # of its memory
    l1_bytes: int  # per SM, L1 cache and shared memory together
    l2_bytes: int
    source: str
    register_bytes: int = 256 * KIB  # per SM

    @property
    def peak_flops(self) -> float:
        """FLOP/s in float32 without tensor cores: two for each FMA."""
        return 2.0 * self.sms * self.fp32_lanes * self.clock_hz

    @property
    def ridge(self) -> float:
        """FLOP per byte of memory from which on arithmetic is the limit, not memory."""
        return self.peak_flops / self.bytes_per_s

    def bytes_in_flight(self, latency_s: float) -> float:
        """Return the bytes that must be on their way all the time to use the whole bandwidth (Little)."""
        return self.bytes_per_s * latency_s


PUBLISHED = {
    gpu.name: gpu
    for gpu in (
        PublishedGpu(
            "A100",
            (8, 0),
            108,
            64,
            1.41e9,
            1.555e12,
            192 * KIB,
            40 * MIB,
            "NVIDIA A100 Tensor Core GPU Architecture, 2020, A100-SXM4-40GB",
        ),
        PublishedGpu(
            "RTX A6000",
            (8, 6),
            84,
            128,
            1.80e9,
            768e9,
            128 * KIB,
            6 * MIB,
            "NVIDIA Ampere GA102 GPU Architecture, V2.1, 2021",
        ),
        PublishedGpu(
            "RTX 4090",
            (8, 9),
            128,
            128,
            2.52e9,
            1.008e12,
            128 * KIB,
            72 * MIB,
            "NVIDIA Ada GPU Architecture, V2.02, 2023",
        ),
        PublishedGpu(
            "H100",
            (9, 0),
            132,
            128,
            1.98e9,
            3.352e12,
            256 * KIB,
            50 * MIB,
            "NVIDIA H100 Tensor Core GPU Architecture, V1.04, 2023, H100 SXM5",
        ),
    )
}


def specifications(*names: str) -> Table:
    """Return published figures of these GPUs (None given: all), a column each.

    Raises ValueError for a name that is not in PUBLISHED.
    """
    if unknown := [name for name in names if name not in PUBLISHED]:
        raise ValueError(f"There is nothing about {unknown[0]!r}: known are {', '.join(PUBLISHED)}.")
    gpus = [PUBLISHED[name] for name in names or PUBLISHED]
    lines = {
        "multiprocessors (SMs)": [f"{gpu.sms}" for gpu in gpus],
        "float32 FMAs a cycle, an SM": [f"{gpu.fp32_lanes}" for gpu in gpus],
        "clock (boost)": [f"{gpu.clock_hz / 1e9:.2f} GHz" for gpu in gpus],
        "float32 peak": [f"{digits(gpu.peak_flops / 1e12)} TFLOP/s" for gpu in gpus],
        "registers, an SM": [in_bytes(gpu.register_bytes) for gpu in gpus],
        "L1 and shared memory, an SM": [in_bytes(gpu.l1_bytes) for gpu in gpus],
        "registers, all SMs": [in_bytes(gpu.sms * gpu.register_bytes) for gpu in gpus],
        "L2": [in_bytes(gpu.l2_bytes) for gpu in gpus],
        "memory": [f"{digits(gpu.bytes_per_s / 1e9, 4)} GB/s" for gpu in gpus],
        "ridge": [f"{digits(gpu.ridge)} FLOP/byte" for gpu in gpus],
    }
    rows = tuple((what, *values) for what, values in lines.items())
    notes = tuple(f"{gpu.name}: {gpu.source}." for gpu in gpus)
    return Table(("", *(gpu.name for gpu in gpus)), rows, "As published by NVIDIA", notes=notes)


@dataclass(frozen=True)
class PublishedLadder:
    """GFLOP/s that somebody else measured with kernels of the same ideas; keys are this ladder's rungs."""

    gpu: str  # in PUBLISHED
    size: int  # N of the N x N matrices, float32
    gflops: Mapping[str, float]
    source: str
    baseline: str = "torch"  # cuBLAS

    def share(self, rung: str) -> float:
        """Return the speed of a rung as a part of cuBLAS's; raises KeyError for one that is not there."""
        return self.gflops[rung] / self.gflops[self.baseline]

    def of_peak(self, rung: str) -> float:
        """Return the speed of a rung as a part of the GPU's published peak."""
        return 1e9 * self.gflops[rung] / PUBLISHED[self.gpu].peak_flops


BOEHM = PublishedLadder(
    "RTX A6000",
    4096,
    {
        "cuda-naive": 309.0,
        "cuda-coalesced": 1986.5,
        "cuda-tiled": 2980.3,
        "cuda-1d": 8474.7,
        "cuda-2d": 15971.7,
        "cuda-vectorised": 18237.3,
        "cuda-warptiled": 21779.3,
        "torch": 23249.6,
    },
    "S. Boehm, github.com/siboehm/SGEMM_CUDA, README: kernels 1 to 6, 10 and 0 in CUDA C++ on an RTX A6000",
)
