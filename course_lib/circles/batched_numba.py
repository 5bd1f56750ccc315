"""Many small products, one for each matrix of a batch: no packing, tiles cut to measure, one call.

Adds to `batched-loop`: one call for the whole batch. What packing, spare memory and a call from Python cost a
large product can afford; a head of attention is 25 x 64 times 64 x 25, 40,000 FMAs, and would take longer to
prepare than to compute. Three things are different from the `simd` rung:

- B is used where it lies. A panel of it is at most two vectors wide, K rows of 128 bytes: that stays in L1
  without being packed.
- The height of the tile is chosen for the matrix: 25 rows are three slivers of ten (the last one ends with
  the last row, so five rows are computed twice), not five of six: fewer loads of B for as many FMAs. Narrow
  panels make room for high tiles in the registers.
- The cores share out the slivers of all matrices, wherever one matrix ends: a batch of three on two cores is
  one and a half each.

Libraries have small products of their own for this reason (A. Heinecke, G. Henry, M. Hutchinson, H. Pabst,
"LIBXSMM: accelerating small matrix multiplications by runtime code generation", SC 2016).
"""

from __future__ import annotations

import numba
import numpy as np

from course_lib.circles import batched_loop
from course_lib.circles.front_door import Array
from course_lib.circles.memory import contiguous
from course_lib.circles.simd import BITS, FORCED_BITS, L2_BYTES, REGISTERS
from course_lib.circles.threads import pool
from course_lib.circles.tiles import add_outer, load_first, pointer, store_tile, zero_tile
from course_lib.circles.vectors import lanes, load
from course_lib.measure.jit import compiled

VECTOR_BYTES = BITS // 8
PANEL_BYTES = 2 * VECTOR_BYTES
HEIGHTS = (12, 10, 8, 6, 4, 2, 1) if REGISTERS == 32 else (6, 4, 2, 1)  # two vectors a row, and some spare
SMALL_BYTES = L2_BYTES // 4  # a larger B is packed
FEW_FMAS = 20_000  # so few are done before a second core has woken up


def tile_kernel(rows: int, row_bytes: int):
    """Return the compiled micro-kernel for a tile of `rows` Rows of `row_bytes` bytes."""

    @compiled(cache=False)
    def multiply_tile(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns):
        """Set C[c], rows x columns, to A[a] (strides lda, ka) times B[b] (row stride ldb)."""
        tile = zero_tile(B, rows, row_bytes)
        if columns >= lanes(B, row_bytes):
            for k in range(depth):
                tile = add_outer(tile, A, a + k * ka, lda, load(B, b + k * ldb, row_bytes))
        else:
            for k in range(depth):
                tile = add_outer(tile, A, a + k * ka, lda, load_first(B, b + k * ldb, columns, row_bytes))
        store_tile(C, c, ldc, tile, columns)

    return multiply_tile


def _sliver_kernel(row_bytes: int):
    """Return a compiled function that does what a tile kernel does for any of HEIGHTS."""
    kernels = {rows: tile_kernel(rows, row_bytes) for rows in HEIGHTS}
    kernels.update({rows: kernels[1] for rows in (12, 10, 8) if rows not in kernels})  # not asked for
    t12, t10, t8, t6, t4, t2, t1 = (kernels[rows] for rows in (12, 10, 8, 6, 4, 2, 1))

    @compiled(cache=False)
    def multiply_sliver(rows, depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns):
        if rows == 12:
            t12(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)
        elif rows == 10:
            t10(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)
        elif rows == 8:
            t8(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)
        elif rows == 6:
            t6(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)
        elif rows == 4:
            t4(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)
        elif rows == 2:
            t2(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)
        else:
            t1(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)

    return multiply_sliver


wide_sliver = _sliver_kernel(PANEL_BYTES)
narrow_sliver = _sliver_kernel(VECTOR_BYTES)


@compiled(cache=False)
def height(M):
    """Return how high the slivers of M rows are: one of HEIGHTS, at most M, with little done twice."""
    best, least = 1, 10 * M
    for high in HEIGHTS:
        slivers = -(-M // high)
        cost = slivers * (2 * max(high, 4) + 1)  # in halves of a row: loads of B and the call take about one
        if high <= M and cost < least:  # below 4 rows FMAs wait for each other
            best, least = high, cost
    return best


@compiled(cache=False)
def multiply_panel(first, last, rows, M, depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns):
    """Set slivers first to last of C[c], M x columns, a panel wide; the last one ends with the last row."""
    for sliver in range(first, last):
        i = min(sliver * rows, M - rows)
        if columns > lanes(B, VECTOR_BYTES):
            wide_sliver(rows, depth, A, a + i * lda, lda, ka, B, b, ldb, C, c + i * ldc, ldc, columns)
        else:
            narrow_sliver(rows, depth, A, a + i * lda, lda, ka, B, b, ldb, C, c + i * ldc, ldc, columns)


@compiled(cache=False)
def multiply_part(first, last, rows, A, B, C, M, K, N):
    """Set slivers first to last of C (batch, M, N), all matrices counted through; A, B, C are pointers."""
    width, slivers = lanes(B, PANEL_BYTES), -(-M // rows)
    for m in range(first // slivers, -(-last // slivers)):
        start, stop = max(first - m * slivers, 0), min(last - m * slivers, slivers)
        for j in range(0, N, width):
            b, c, left = m * K * N + j, m * M * N + j, min(width, N - j)
            multiply_panel(start, stop, rows, M, K, A, m * M * K, K, 1, B, b, N, C, c, N, left)


@compiled(cache=False, parallel=True)
def multiply_parts(parts, rows, A, B, C):
    """Do `multiply_part` for all slivers, on as many cores as there are parts."""
    (batch, M, K), N = A.shape, B.shape[2]
    total = batch * -(-M // rows)
    for part in numba.prange(parts):
        first, last = total * part // parts, total * (part + 1) // parts
        multiply_part(first, last, rows, pointer(A), pointer(B), pointer(C), M, K, N)


@compiled(cache=not FORCED_BITS)
def multiply(parts, A, B, C):
    """Set C (batch, M, N) to A (batch, M, K) @ B (batch, K, N), all in C order, in parts of equal size."""
    (batch, M, K), N = A.shape, B.shape[2]
    rows = height(M)
    if parts > 1:
        multiply_parts(parts, rows, A, B, C)
    else:
        multiply_part(0, batch * -(-M // rows), rows, pointer(A), pointer(B), pointer(C), M, K, N)


def parts_for(batch: int, M: int, K: int, N: int) -> int:
    """Return how many cores are worth waking for so many FMAs."""
    worth = batch * M * K * N // FEW_FMAS
    return min(numba.get_num_threads(), worth) if worth > 1 else 1


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (batch, M, N) for A (batch, M, K), B (batch, K, N), both float32 or both float64."""
    (batch, M, K), N = A.shape, B.shape[2]
    if not (batch and M and K and N):
        return np.zeros((batch, M, N), A.dtype)
    if K * N * A.itemsize > SMALL_BYTES:
        return batched_loop.matmul(A, B)
    C = np.empty((batch, M, N), A.dtype)
    with pool:
        multiply(parts_for(batch, M, K, N), contiguous(A), contiguous(B), C)
    return C
