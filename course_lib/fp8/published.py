"""What is published about FP8 products on Hopper: figures from elsewhere, with their sources.

    PEAK_FLOPS                       an H100's, H200's or H800's (SXM5) tensor cores in e4m3
    DEEPGEMM                         the dense products in DeepGEMM's first README, as measured on an H800
    DEEPGEMM[0].tflops, DEEPGEMM[0].intensity

Nothing in here was measured by this course; that is in `fp8.recordings`.
"""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.fp8.choose import intensity

PEAK_CLOCK_HZ = 1.83e9  # at which NVIDIA counts it; float32's peak is counted at 1.98 GHz
#: FLOP/s at that clock, without sparsity. NVIDIA H100 Tensor Core GPU Architecture, V1.04, 2023; the H200's
#: data sheet (2024) gives the same.
PEAK_FLOPS = 1978.9e12
SOURCE = "DeepGEMM, README of its first release, February 2025: H800 SXM5, NVCC 12.8"
#: A GH200, whose memory is faster, gave 3 to 28 % less for M = 64 with an emptied cache (same pull request).
CAVEAT = "Taken before its benchmark emptied the L2 cache (pull request 68), which flatters M = 64 and 128."


@dataclass(frozen=True)
class PublishedProduct:
    """D (M, N) with K products an element, operands e4m3, D bf16; what somebody measured for it."""

    M: int
    N: int
    K: int
    tflops: float

    @property
    def intensity(self) -> float:
        """FLOP per byte, operands and D moved once."""
        return intensity(self.M, self.N, self.K)


_SHAPES = ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))  # N, K
_TFLOPS = {
    64: (206, 289, 219, 336, 287, 295),
    128: (352, 535, 358, 645, 533, 510),
    4096: (1058, 990, 590, 1358, 1304, 1025),
}
DEEPGEMM = tuple(
    PublishedProduct(M, N, K, measured)
    for M, row in _TFLOPS.items()
    for (N, K), measured in zip(_SHAPES, row, strict=True)
)
