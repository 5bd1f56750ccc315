"""Which register tile a core's numbers ask for, before any is tried, and which blocks its caches.

    core = Core.here(registers=32)
    best(core)                              (MR, n): rows, and registers in a row
    share(6, 4, core)                       of the peak

A tile of C has MR rows of n registers. In a step of k the core loads a row of B (n registers), broadcasts MR
numbers of A, and begins MR x n FMAs. Tiles that need more registers than there are have no share here: what
the compiler then carries to memory and back waits for itself, and how long depends on what it chooses. The
limits are those of Low, Igual, Smith and Quintana-Ortí, "Analytical modeling is enough for high-performance
BLIS", ACM TOMS 43(2), 2016, but with measured numbers for a core instead of tabled ones, each as a ratio to
the rate of FMAs, so that no clock is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.measure import machine

if TYPE_CHECKING:
    from course_lib.measure.hardware import CacheLevel
    from course_lib.measure.peaks import Peaks

ROW_LENGTHS = (1, 2, 4, 8)  # registers in a row of the tile: LLVM's vectors are powers of two long
SAME = 0.995  # shares that close are one: then the tile counts that loads least
TILE_COST = 1 / 20  # what reading and writing the tile of C may take of the time of its FMAs


@dataclass(frozen=True)
class Core:
    """What a tile has to respect: vector registers, FMAs in flight, and vectors loaded in an FMA's time."""

    registers: int
    in_flight: float  # latency of an FMA x the ports at which one can begin
    loads: float

    @classmethod
    def here(cls, registers: int) -> Core:
        """Return the numbers of this machine's cores, as `machine.peaks` has measured them."""
        limits = machine.peaks()
        return cls(registers, limits.in_flight, limits.loads)


def needed(MR: int, n: int) -> int:
    """Return the registers of a tile: its sums, a row of B, and a number of A in all lanes."""
    return MR * n + n + 1


def share(MR: int, n: int, core: Core) -> float:
    """Return the share of the peak that a tile reaches: its FMAs over the longest of what a step takes."""
    return MR * n / max(MR * n, core.in_flight, (MR + n) / core.loads)


def best(core: Core) -> tuple[int, int]:
    """Return (MR, n) of the tile with the highest share; of equal ones that with fewest loads for an FMA."""
    fit = [(MR, n) for n in ROW_LENGTHS for MR in range(1, core.registers) if needed(MR, n) <= core.registers]
    highest = max(share(*tile, core) for tile in fit)
    equal = [tile for tile in fit if share(*tile, core) > SAME * highest]
    return min(equal, key=lambda tile: sum(tile) / (tile[0] * tile[1]))


def blocks(MR: int, NR: int, itemsize: int, limits: Peaks, caches: Sequence[CacheLevel]) -> dict[str, int]:
    """Return KC, NC and MC for tiles of MR x NR numbers: how much of k, of B and of A stays where.

    KC: a tile of C is read and written once for so many steps, at the bandwidth of the memory. NC: a block of
    B, KC x NC, fills half of L2; a core without one uses its L1. MC: as many rows of A fill half of the last
    cache. (GotoBLAS and BLIS give L2 to A and the last cache to B: the same with the names exchanged.)
    """
    step = 2 * MR * NR / limits.gflops(f"float{8 * itemsize}")  # ns
    tile = 2 * MR * NR * itemsize / limits.reads["memory"]  # ns
    KC = 2 ** round(math.log2(tile / TILE_COST / step))
    private = caches[min(1, len(caches) - 1)].size_bytes // 2
    NC = max(1, private // (KC * NR * itemsize)) * NR
    MC = max(1, caches[-1].size_bytes // 2 // (KC * MR * itemsize)) * MR
    return {"KC": KC, "NC": NC, "MC": MC}
