"""What several tasks of chapter 06 use: inputs, sizes, counts of sectors.

Where the limits come from: a sector has 32 bytes, eight float32. A warp whose 32 lanes read float32 side by
side needs four sectors if the first lies at the beginning of a sector, and five if it does not (rows whose
length is no multiple of 8 begin anywhere)."""

from __future__ import annotations

import numpy as np

WARP = 32
ALIGNED, ANYWHERE = 4, 5  # sectors of 32 float32 side by side
PER_SECTOR = 8

UNWRITTEN = 0x7FC0DEAD  # bits of a NaN


def pieces(length: int, size: int) -> int:
    """Return how many pieces of `size` cover `length`; the last one may be shorter."""
    return -(-length // size)


def row_sectors(rows: int, columns: int) -> int:
    """Return the most sectors that warps need which read every row of float32 once, 32 side by side."""
    return ANYWHERE * rows * pieces(columns, WARP)


def exact_sectors(rows: int, columns: int) -> int:
    """Return how many sectors they need: the pieces of a row begin with its elements 0, 32, 64 …"""
    row, first = np.arange(rows)[:, None] * columns, np.arange(0, columns, WARP)
    last = row + np.minimum(first + WARP, columns) - 1
    return int((last // PER_SECTOR - (row + first) // PER_SECTOR + 1).sum())


def unwritten(*shape: int) -> np.ndarray:
    """Return an array of float32 for a result, full of a NaN that no sum makes."""
    return np.full(shape, UNWRITTEN, np.uint32).view(np.float32)


def has_computed_nan(got: np.ndarray) -> bool:
    """Return whether some NaN of a result (float32) is another one than stood there before the launch."""
    return bool((np.isnan(got) & (got.view(np.uint32) != UNWRITTEN)).any())


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return float32 numbers from -2 to 2, none of them below 0.5 in size: none could be left out."""
    return (rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape)).astype(np.float32)
