"""What one streaming multiprocessor (SM) can hold, by compute capability.

Sources: NVIDIA, CUDA C++ Programming Guide 13, chapter "Compute Capabilities", table "Technical
Specifications per Compute Capability" (blocks, warps, threads, registers, shared memory; its KB are 1024
bytes); `cuda_occupancy.h` of the CUDA toolkit, 12.9 and 13.0 (granularities of allocation, 4 sub-partitions);
NVIDIA's tuning guides for Ampere, Ada and Hopper, "Unified Shared Memory/L1/Texture Cache" (of every block's
shared memory 1 KB is reserved for the system).
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
WARP = 32  # threads
SUB_PARTITIONS = 4  # of an SM, each with a scheduler and a quarter of the registers
REGISTERS_PER_SM = 65_536  # 32-bit registers; a block may use all of them
MOST_REGISTERS = 255  # per thread
REGISTER_UNIT = 256  # registers are given to a warp in this many at a time
MOST_THREADS = 1024  # per block
MOST_ALONG = (1024, 1024, 64)  # threads of a block along x, y and z
WITHOUT_ASKING = 48 * KIB  # bytes of shared memory that a block may have without an opt-in


@dataclass(frozen=True)
class Limits:
    """What an SM of one compute capability can hold at a time; memory in bytes."""

    cc: tuple[int, int]
    blocks: int
    warps: int
    shared_bytes: int  # per SM, the largest share of the joint L1 cache and shared memory
    shared_bytes_per_block: int  # with an opt-in
    shared_unit: int  # shared memory is given to a block in multiples of this
    reserved_bytes: int  # of shared memory, per block, taken by the system

    @property
    def threads(self) -> int:
        """Resident threads per SM."""
        return WARP * self.warps

    @property
    def name(self) -> str:
        """The compute capability as it is written: "8.6"."""
        return f"{self.cc[0]}.{self.cc[1]}"


LIMITS = {
    limits.cc: limits
    for limits in (
        Limits((7, 5), 16, 32, 64 * KIB, 64 * KIB, 256, 0),
        Limits((8, 0), 32, 64, 164 * KIB, 163 * KIB, 128, KIB),
        Limits((8, 6), 16, 48, 100 * KIB, 99 * KIB, 128, KIB),
        Limits((8, 7), 16, 48, 164 * KIB, 163 * KIB, 128, KIB),
        Limits((8, 9), 24, 48, 100 * KIB, 99 * KIB, 128, KIB),
        Limits((9, 0), 32, 64, 228 * KIB, 227 * KIB, 128, KIB),
    )
}


def limits_of(cc: tuple[int, int] | str | float) -> Limits:
    """Return the limits of a compute capability, given as (8, 6), "8.6" or 8.6.

    Raises ValueError for one that is not in the table.
    """
    written = ".".join(map(str, cc)) if isinstance(cc, tuple | list) else str(cc)
    for limits in LIMITS.values():
        if limits.name == written:
            return limits
    known = ", ".join(limits.name for limits in LIMITS.values())
    raise ValueError(
        f"cc is {cc!r}, but the limits are known for {known}: give one of these, for example (8, 6)."
    )
