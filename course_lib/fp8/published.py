"""What is published about FP8 products on Hopper: figures from elsewhere, with their sources.

    PEAK_FLOPS                       an H100's, H200's or H800's (SXM5) tensor cores in e4m3
    DEEPGEMM                         the dense products in DeepGEMM's first README, as measured on an H800
    DEEPGEMM[0].tflops, DEEPGEMM[0].intensity

Nothing in here was measured by this course; that is in `fp8.recordings`.
"""

from __future__ import annotations

from dataclasses import dataclass

#: FLOP/s at 1.83 GHz, without sparsity. NVIDIA H100 Tensor Core GPU Architecture, V1.04, 2023; the H200's
#: data sheet (2024) gives the same.
PEAK_FLOPS = 1978.9e12
SOURCE = "DeepGEMM, README of its first release, February 2025: H800 SXM5, NVCC 12.8"
#: With an empty cache the same code gave 3 to 28 % less for M = 64 (on a GH200, as told there).
CAVEAT = "Taken before its benchmark emptied the L2 cache (pull request 68), which flatters M = 64 and 128."


@dataclass(frozen=True)
class Product:
    """D (M, N) with K products an element, operands e4m3, D bf16; what somebody measured for it."""

    M: int
    N: int
    K: int
    tflops: float

    @property
    def intensity(self) -> float:
        """FLOP per byte, operands and D moved once."""
        return intensity(self.M, self.N, self.K)


def moved_bytes(M: int, N: int, K: int, matrices: int = 1, size: int = 1) -> int:
    """Return the bytes of a product when operands are read once and D (bf16) is written once.

    M are the rows of all groups together, `matrices` of B, each (N, K), are read, and an operand's number has
    `size` bytes. Scales are left out: 3 % of A.
    """
    return size * (M * K + matrices * N * K) + 2 * M * N


def intensity(M: int, N: int, K: int, matrices: int = 1) -> float:
    """Return FLOP per moved byte, for operands in e4m3."""
    return 2.0 * M * N * K / moved_bytes(M, N, K, matrices)


def _products() -> tuple[Product, ...]:
    shapes = ((2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048))
    tflops = {
        64: (206, 289, 219, 336, 287, 295),
        128: (352, 535, 358, 645, 533, 510),
        4096: (1058, 990, 590, 1358, 1304, 1025),
    }
    return tuple(
        Product(M, N, K, measured)
        for M, row in tflops.items()
        for (N, K), measured in zip(shapes, row, strict=True)
    )


DEEPGEMM = _products()
