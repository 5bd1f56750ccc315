"""Which tile suits a product: a model of its time in cycles, from waves, tensor core, what feeds it, memory.

    best = choose(256, 7168, 4096)                     # Estimate for the tile that the model likes best
    best.tile, best.turns, best.limit                  # Tile(BM=128, BN=112, cluster=2), 1, "L2"
    ranking(4096, 7168, 16384)[:5]                     # the next best, too

Nothing here is measured: it is a model, and says so. A multiprocessor of Hopper does 4096 products of e4m3 a
cycle (64 x N x 32 in N/2 cycles); L2 gives it about 64 bytes a cycle while all draw on it, and all of them
together about 6.1 kB; shared memory takes or gives 128 a cycle, and every byte of the operands goes in once
and out once; the clock is what large products leave of the boost clock. A block of K takes as long as the
slowest of the three needs, a tile its blocks of K and the epilogue, which overlaps with the next tile's work
but not after the last. The whole cannot be faster than memory delivers the operands once.

The constants, and that shared memory sees each byte twice, are after DeepGEMM's heuristics
(csrc/jit_kernels/heuristics/sm90.hpp, 2026), which also add D's bytes there, and have no cycles of the tensor
core. Twice is the lower count: a tile's rows are multiplied 64 at a time, and if B is read anew for each 64,
256 x 80 wants 184 bytes a cycle of the tensor core, and 256 x 128 wants 145.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from course_lib.arguments import whole
from course_lib.fp8 import BLOCK
from course_lib.fp8.schedule import Schedule
from course_lib.fp8.tiles import TILES, Tile
from course_lib.measure.gpu_published import PUBLISHED

PRODUCTS_A_CYCLE = 4096
L2_BYTES_A_CYCLE, L2_BYTES_IN_ALL = 64.0, 6100.0
SHARED_BYTES_A_CYCLE = 128.0
PROMOTIONS_A_CYCLE = 128  # float32 FMAs
NEAR = 0.002  # what differs by less, the model cannot tell apart
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Hopper:
    """A GPU with Hopper's multiprocessors: how many, its memory's bytes a second, its clock under load."""

    name: str
    sms: int
    bytes_per_s: float
    clock_hz: float


CLOCK_HZ = 1.575e9  # seen under load (DeepGEMM, issue 120), where the boost clock is 1.98 GHz
H100 = Hopper("H100", PUBLISHED["H100"].sms, PUBLISHED["H100"].bytes_per_s, CLOCK_HZ)
H200 = Hopper("H200", 132, 4.8e12, CLOCK_HZ)  # NVIDIA H200 Tensor Core GPU, data sheet, 2024
#: By the driver's name. Others differ in clocks, multiprocessors or memory: H20, GH200, cards for PCIe.
KNOWN = {"NVIDIA H100 80GB HBM3": H100, "NVIDIA H800": H100, "NVIDIA H200": H200}


@dataclass(frozen=True)
class Estimate:
    """What the model says of a tile: cycles in all, and what limits them.

    `limit` is "tensor core", "L2", "shared memory" or "memory"; `own_cycles` are what it would take if memory
    were no limit.
    """

    tile: Tile
    turns: int
    idle_share: float
    cycles: float
    own_cycles: float
    limit: str
    flop: float
    gpu: Hopper

    @property
    def seconds(self) -> float:
        """The time that the model expects."""
        return self.cycles / self.gpu.clock_hz

    @property
    def flops(self) -> float:
        """FLOP/s that the model expects."""
        return self.flop / self.seconds if self.cycles else 0.0

    @property
    def efficiency(self) -> float:
        """The share of what the tensor cores of this GPU could do in that time."""
        return self.flop / 2 / (self.cycles * PRODUCTS_A_CYCLE * self.gpu.sms) if self.cycles else 0.0


def schedule_of(tile: Tile, M: int, N: int, gpu: Hopper = H200) -> Schedule:
    """Return the order in which a GPU computes the tiles of D (M, N)."""
    return Schedule(-(-M // tile.BM), -(-N // tile.BN), gpu.sms // tile.cluster, tile.cluster)


def estimate(tile: Tile, M: int, N: int, K: int, gpu: Hopper = H200) -> Estimate:
    """Return the model's estimate for D (M, N) with K products an element; ValueError for sizes below 0."""
    for name, size in (("M", M), ("N", N), ("K", K)):
        whole(name, size, least=0)
    schedule = schedule_of(tile, M, N, gpu)
    busy = min(schedule.units, schedule.clusters) * tile.cluster  # blocks that draw on L2 together
    blocks = -(-K // BLOCK)
    tensor = tile.BM * tile.BN * BLOCK / PRODUCTS_A_CYCLE
    if tile.math_threads == 128:  # no other warpgroup behind whose product it could hide
        tensor += tile.BM * tile.BN / PROMOTIONS_A_CYCLE
    l2 = fetched_bytes(tile) / min(L2_BYTES_A_CYCLE, L2_BYTES_IN_ALL / max(busy, 1))
    shared = 2 * (tile.BM + tile.BN) * BLOCK / SHARED_BYTES_A_CYCLE
    needs = {"tensor core": tensor, "L2": l2, "shared memory": shared}
    slowest = max(needs, key=needs.__getitem__)
    epilogue = tile.d_bytes / L2_BYTES_A_CYCLE
    own = schedule.turns * blocks * needs[slowest] + (epilogue if schedule.units else 0)
    memory = memory_cycles(M, N, K, gpu)
    limit = "memory" if memory > own else slowest

    cycles = max(own, memory)
    return Estimate(tile, schedule.turns, schedule.idle_share, cycles, own, limit, 2.0 * M * N * K, gpu)


def fetched_bytes(tile: Tile) -> float:
    """Return the bytes of L2 that a block's block of K costs: A (a cluster shares it), B and A's scales."""
    return (tile.BM / tile.cluster + tile.BN) * BLOCK + tile.BM * 4


def moved_bytes(M: int, N: int, K: int, matrices: int = 1, size: int = 1) -> int:
    """Return the bytes of a product when operands are read once and D (bf16) is written once.

    M are the rows of all groups together, `matrices` of B, each (N, K), are read, and an operand's number has
    `size` bytes. Scales are left out: 3 % of A.
    """
    return size * (M * K + matrices * N * K) + 2 * M * N


def intensity(M: int, N: int, K: int, matrices: int = 1) -> float:
    """Return FLOP per moved byte, for operands in e4m3; M, N and K are above 0."""
    return 2.0 * M * N * K / moved_bytes(M, N, K, matrices)


def memory_cycles(M: int, N: int, K: int, gpu: Hopper = H200) -> float:
    """Return the cycles in which memory delivers operands and scales once, and takes D."""
    scales = 4 * (M + N / BLOCK) * -(-K // BLOCK)
    return (moved_bytes(M, N, K) + scales) / gpu.bytes_per_s * gpu.clock_hz


def ranking(M: int, N: int, K: int, gpu: Hopper = H200) -> list[Estimate]:
    """Return the estimates for all tiles, the best first."""
    estimates = {tile: estimate(tile, M, N, K, gpu) for tile in TILES}
    return [estimates[tile] for tile in in_order(estimates)]


def choose(M: int, N: int, K: int, gpu: Hopper = H200) -> Estimate:
    """Return the best tile's estimate."""
    return ranking(M, N, K, gpu)[0]


def in_order(estimates: Mapping[_Key, Estimate]) -> list[_Key]:
    """Return what has these estimates, the fastest first: of what memory limits, the fastest without it.

    Of what is so near to the best that the model cannot tell them apart, a tile comes first that meets one
    block of B's scales, then what fetches less.
    """

    def fetches(choice: _Key) -> float:  # for each number of D
        tile = estimates[choice].tile
        return 1 / tile.BN / tile.cluster + 1 / tile.BM

    order = sorted(estimates, key=lambda choice: (estimates[choice].own_cycles, fetches(choice)))
    most = (1 + NEAR) * estimates[order[0]].own_cycles
    near = [choice for choice in order if estimates[choice].own_cycles <= most]
    near.sort(key=lambda choice: (estimates[choice].tile.straddles, fetches(choice)))
    return near + order[len(near) :]
