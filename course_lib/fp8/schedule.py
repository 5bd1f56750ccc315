"""Which block computes which tile of D, and when: the order of kernels/scheduler.cuh, in Python.

    order = Schedule(rows=32, columns=56, clusters=66, cluster=2, band=16)
    order.tile(turn=0, number=3, rank=1)          # (row, column), None when nothing is left for the cluster
    order.turns                                    # how many turns the busiest cluster takes

Tiles are dealt out to clusters of blocks; a block alone is a cluster of one. A unit of work is `cluster`
tiles side by side, a tile for each block, so the blocks of a cluster cannot disagree about what they share or
about when they are done. Where the tiles of a row do not come out even, the last unit sticks out of D by one
tile. Units go down through `band` rows of tiles and then on to the next column, so that those that run at the
same time share rows of A and columns of B in L2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Tile = tuple[int, int]
BAND = 16  # rows of tiles that are walked together, where nothing else is said


@dataclass(frozen=True)
class Schedule:
    """Tiles of D, rows x columns, for `clusters` of `cluster` blocks."""

    rows: int
    columns: int
    clusters: int
    cluster: int = 1
    band: int = BAND

    @property
    def units_across(self) -> int:
        """Units in a row of tiles."""
        return -(-self.columns // self.cluster)

    @property
    def units(self) -> int:
        """Units in all."""
        return self.rows * self.units_across

    @property
    def turns(self) -> int:
        """Turns that the busiest cluster takes: waves of blocks over the GPU."""
        return -(-self.units // self.clusters)

    @property
    def idle_share(self) -> float:
        """The share of blocks' turns in which there is no tile of D to compute."""
        slots = self.turns * self.clusters * self.cluster
        return 1 - self.rows * self.columns / slots if slots else 0.0

    def tile(self, turn: int, number: int, rank: int = 0) -> Tile | None:
        """Return the tile that block `rank` of cluster `number` computes in a turn, None if none is left."""
        unit = turn * self.clusters + number
        if unit >= self.units:
            return None
        whole = self.band * self.units_across
        first = unit // whole * self.band
        inside = unit % whole
        height = min(self.rows - first, self.band)
        return first + inside % height, inside // height * self.cluster + rank

    def turn(self, turn: int) -> Iterator[tuple[int, Tile]]:
        """Yield (block, tile) for all that is computed in a turn."""
        for number in range(self.clusters):
            for rank in range(self.cluster):
                found = self.tile(turn, number, rank)
                if found is not None:
                    yield number * self.cluster + rank, found
