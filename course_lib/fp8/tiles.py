"""The tiles that the tuned kernels may have: what fits into a multiprocessor, and in how many stages.

    tile = Tile(BM=128, BN=160)
    tile.stages, tile.shared_bytes, tile.accumulators
    TILES                                   # all that are worth a try

Three limits hold (NVIDIA H100: 65,536 registers, 227 KiB of shared memory a block): a thread's accumulators,
the tensor core's and the second level's, must not be more than 192, or registers spill; D's tile and the
stages of the ring must fit into shared memory; and a tile may meet two blocks of B's scales at most, which a
width above 128 does only if it reaches beyond by a divisor of 128.
"""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.fp8 import BLOCK
from course_lib.fp8.schedule import BAND

SHARED_BYTES = 227 * 1024  # a block may have
ALIGNMENT = 1024  # of swizzled tiles; the barriers stand before the first
MOST_ACCUMULATORS = 192  # registers of a thread: above, the compiler spills (seen with NVRTC 13.0)
MOST_STAGES = 8
WGMMA_ROWS = 64  # of a tile that one warpgroup multiplies by an instruction
#: Two warpgroups multiply, and this is what they take at once: taller tiles take several goes.
ROWS_AT_ONCE = 2 * WGMMA_ROWS


@dataclass(frozen=True)
class Tile:
    """A tile of D, and how many blocks compute tiles side by side; raises ValueError if there is none."""

    BM: int
    BN: int
    cluster: int = 1

    def __post_init__(self) -> None:
        if self.BM not in (64, 128, 256):
            raise ValueError(f"BM is {self.BM!r}, but a block computes 64, 128 or 256 rows.")
        if self.BN not in range(16, 257, 16):
            raise ValueError(f"BN is {self.BN!r}, but it must be a multiple of 16 up to 256.")
        if self.BN > BLOCK and BLOCK % (self.BN - BLOCK):
            raise ValueError(
                f"BN is {self.BN}, so a tile could meet three blocks of scales: take 144, 160 or 192."
            )
        if self.cluster not in (1, 2):
            raise ValueError(f"cluster is {self.cluster!r}, but it must be 1 or 2.")
        if self.accumulators > MOST_ACCUMULATORS:
            raise ValueError(
                f"a tile of {self.BM} x {self.BN} needs {self.accumulators} accumulators a thread, "
                f"but above {MOST_ACCUMULATORS} registers spill."
            )

    @property
    def math_threads(self) -> int:
        """Threads that multiply: one warpgroup for 64 rows, two for more."""
        return 128 if self.BM == WGMMA_ROWS else 256

    @property
    def accumulators(self) -> int:
        """Registers of a thread for sums: the tensor core's for 64 rows, the second level's for all."""
        return _accumulators(self.BM, self.BN)

    @property
    def stage_bytes(self) -> int:
        """Shared memory of a stage: 128 bytes for each row of both operands, and A's scales."""
        return (self.BM + self.BN) * BLOCK + self.BM * 4

    @property
    def d_bytes(self) -> int:
        """Shared memory of the epilogue: the tile in bf16."""
        return self.BM * self.BN * 2

    @property
    def stages(self) -> int:
        """Stages of the ring: as many as fit, at most 8."""
        return stages_that_fit(self.stage_bytes, self.d_bytes)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        return self.d_bytes + self.stages * self.stage_bytes

    @property
    def straddles(self) -> bool:
        """May a tile meet two blocks of B's scales?"""
        return bool(BLOCK % self.BN)

    def constants(self) -> dict[str, int]:
        """Return what the kernel's text is compiled with."""
        return {"BM": self.BM, "BN": self.BN, "STAGES": self.stages, "CLUSTER": self.cluster, "BAND": BAND}


def stages_that_fit(stage_bytes: int, epilogue_bytes: int = 0) -> int:
    """Return the stages of a ring in a block's shared memory, beside the epilogue's; at most 8."""
    return min((SHARED_BYTES - ALIGNMENT - epilogue_bytes) // stage_bytes, MOST_STAGES)


def _accumulators(BM: int, BN: int) -> int:
    waves = max(BM // ROWS_AT_ONCE, 1)
    return (1 + waves) * BN // 2


TILES = tuple(
    Tile(BM, BN, cluster)
    for BM in (64, 128, 256)
    for BN in (*range(16, 129, 16), 144, 160, 192)
    if _accumulators(BM, BN) <= MOST_ACCUMULATORS
    for cluster in (1, 2)
)
