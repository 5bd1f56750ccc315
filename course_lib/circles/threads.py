"""The `simd` rung on every core: the third of the five loops given to the cores.

Adds to `simd`: C is cut into a grid of bands (rows) and groups (columns), one part for each core. Every group
of columns has its own packed block of B, so that each core finds its block in its own L2 cache; the cores of
one group pack it together. No two cores write the same element of C, so nothing needs a lock; between packing
and multiplying everybody waits for the last (the end of a `prange` is a barrier).
"""

from __future__ import annotations

import math
import os
import threading

import numba
import numpy as np

from course_lib.circles.front_door import Array
from course_lib.circles.memory import aligned, operands
from course_lib.circles.simd import (
    BLOCK_BYTES,
    FORCED_BITS,
    KC,
    MR,
    ROW_BYTES,
    WORKING_BYTES,
    multiply_band,
    pack,
)
from course_lib.circles.vectors import lanes
from course_lib.measure.jit import compiled

UNEVEN = 1.02  # so much longer may the last one take, for parts that read less


def grid(M: int, N: int, threads: int, panel: int) -> tuple[int, int]:
    """Return (bands, groups), at most `threads` parts of C: the shortest edges among those that divide well.

    A band is some slivers of MR rows high, a group some panels of `panel` columns wide. Everybody waits for
    the largest part: a grid divides well if that is at most UNEVEN times the smallest one that can be had.
    A part of m x n reads (m + n) K numbers.
    """
    slivers, panels = -(-M // MR), -(-N // panel)
    sizes = {}
    for bands in range(1, min(threads, slivers) + 1):
        groups = min(threads // bands, panels)
        sizes[bands, groups] = -(-slivers // bands) * MR, -(-panels // groups) * panel
    least = min(m * n for m, n in sizes.values())
    good = (one for one, (m, n) in sizes.items() if m * n <= UNEVEN * least)
    return min(good, key=lambda one: (sum(sizes[one]), math.prod(sizes[one])))


@compiled(cache=not FORCED_BITS, parallel=True)
def multiply(A, B, C, M, K, N, bands, groups, memory):
    """Set C (M, N) to A (M, K) times B (K, N), all flat, in `bands` x `groups` parts.

    `memory` has a row for each part: of the first `groups` rows the blocks are used, of all the spare tiles.
    """
    width = lanes(A, ROW_BYTES)
    size = MR * (KC + width)
    slivers, panels, depths = -(-M // MR), -(-N // width), -(-K // KC)
    rounds = -(-panels * width * KC * A.itemsize // (groups * BLOCK_BYTES))
    pieces = rounds * groups
    for n in range(rounds):  # loop 5: columns, one block for each group
        for d in range(depths):  # loop 4: depth
            k = K * d // depths
            depth = K * (d + 1) // depths - k
            for part in numba.prange(bands * groups):
                band, group = part // groups, part % groups
                first, last = _span(panels, pieces, n * groups + group)
                left, right = _span(last - first, bands, band)  # this core's share of the panels
                if left < right:
                    j = (first + left) * width
                    columns = min((first + right) * width, N) - j
                    pack(B, k * N + j, N, depth, columns, memory[group, size + left * width * depth :])
            for part in numba.prange(bands * groups):  # loop 3: bands
                band, group = part // groups, part % groups
                first, last = _span(panels, pieces, n * groups + group)
                top, bottom = _span(slivers, bands, band)
                i, j = top * MR, first * width
                rows, columns = min(bottom * MR, M) - i, min(last * width, N) - j
                block, spare = memory[group, size:], memory[part, :size]
                multiply_band(A, i * K + k, K, rows, depth, block, C, i * N + j, N, columns, d > 0, spare)


@compiled
def _span(count, parts, part):
    """Return where a part of `count` things begins and ends when they are dealt out evenly."""
    return count * part // parts, count * (part + 1) // parts


_own = threading.local()
pool = threading.Lock()  # one product at a time: not every threading layer of Numba stands two callers
if hasattr(os, "register_at_fork"):  # a child that is forked during a product has nobody to release it
    os.register_at_fork(after_in_child=pool._at_fork_reinit)
_ROW = -(-WORKING_BYTES // 4096) * 4096  # parts do not share a page, and so no cache line


def working_memory(parts: int, dtype: np.dtype) -> Array:
    """Return this thread's memory for `parts` cores, a row each."""
    if getattr(_own, "parts", 0) < parts:
        _own.memory, _own.parts = aligned(parts * _ROW, np.dtype(np.uint8)), parts
    return _own.memory[: parts * _ROW].reshape(parts, _ROW).view(dtype)


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, on Numba's threads."""
    A, B = operands(A, B)
    (M, K), N = A.shape, B.shape[1]
    if not (M and K and N):
        return np.zeros((M, N), A.dtype)
    C = np.empty((M, N), A.dtype)
    bands, groups = grid(M, N, numba.get_num_threads(), ROW_BYTES // A.itemsize)
    flat = A.reshape(-1), B.reshape(-1), C.reshape(-1)
    with pool:
        multiply(*flat, M, K, N, bands, groups, working_memory(bands * groups, A.dtype))
    return C
