"""Many small products, one for each matrix of a batch: no packing, tiles cut to measure, one call.

Adds to `batched-loop`: one call for the whole batch. What packing, spare memory and a call from Python cost a
large product can afford; a head of attention is 25 x 64 times 64 x 25, 40,000 FMAs, and would take longer to
prepare than to compute. Three things are different from the `simd` rung:

- B is used where it lies. A panel of it is at most four vectors wide, K rows of 256 bytes: that stays in L1
  without being packed.
- The tile is cut to the matrix. Where a panel is full it is four vectors wide and six rows high: a number of
  A, once spread over a vector, serves for four FMAs. Narrower panels have higher tiles: 25 rows are three
  slivers of ten (the last one ends with the last row, so five rows are computed twice), not five of six.
- The cores share out the rows of all matrices, wherever one matrix ends: a batch of three on two cores is
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
WIDE_BYTES = 2 * VECTOR_BYTES
PANEL_BYTES = 4 * VECTOR_BYTES if REGISTERS == 32 else WIDE_BYTES
HEIGHTS = (10, 6, 4, 2, 1) if REGISTERS == 32 else (6, 4, 2, 1)
MOST_SUMS = 24  # vectors in a tile, where there are 32 registers; the others are for B and a number of A
STEPS = 4  # of k between two looks at the loop's end; where rows begin is computed once for all of them
SMALL_BYTES = L2_BYTES // 4  # a larger B is packed
FEW_FMAS = 20_000  # so few are done before a second core has woken up


def tile_kernel(rows: int, row_bytes: int, whole: bool):
    """Return the compiled micro-kernel for tiles of `rows` Rows of `row_bytes`, whole ones or narrower."""

    @compiled(cache=False)
    def multiply_tile(depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns):
        """Set C[c], rows x columns, to A[a] (strides lda, ka) times B[b] (row stride ldb)."""
        tile = zero_tile(B, rows, row_bytes)
        if whole:
            rounds = depth // STEPS
            for round in range(rounds):
                for step in range(STEPS):  # LLVM writes these out
                    k = round * STEPS + step
                    tile = add_outer(tile, A, a + k * ka, lda, load(B, b + k * ldb, row_bytes))
            for k in range(rounds * STEPS, depth):
                tile = add_outer(tile, A, a + k * ka, lda, load(B, b + k * ldb, row_bytes))
        else:
            for k in range(depth):
                tile = add_outer(tile, A, a + k * ka, lda, load_first(B, b + k * ldb, columns, row_bytes))
        store_tile(C, c, ldc, tile, columns)

    return multiply_tile


@compiled(cache=False)
def height(M, vectors):
    """Return how high the slivers of M rows are: one of HEIGHTS, at most M, with little done twice.

    `vectors` is the width of the tile; height and width together must leave room in the registers.
    """
    best, least = 1, 100 * M
    for high in HEIGHTS:
        slivers = -(-M // high)
        cost = slivers * (2 * max(high * vectors, 8) + vectors + 1)  # fewer sums than 8 wait for each other
        if high <= M and high * vectors <= MOST_SUMS and cost < least:
            best, least = high, cost
    return best


def _slivers_kernel(vectors: int, whole: bool):
    """Return a compiled function that sets rows of C, so many vectors wide or, if not `whole`, narrower."""
    heights = [rows for rows in HEIGHTS if rows * vectors <= MOST_SUMS]
    kernels = {rows: tile_kernel(rows, vectors * VECTOR_BYTES, whole) for rows in heights}
    kernels.update({rows: kernels[1] for rows in (10, 6) if rows not in kernels})  # never asked for
    t10, t6, t4, t2, t1 = (kernels[rows] for rows in (10, 6, 4, 2, 1))

    @compiled(cache=False)
    def multiply_slivers(top, bottom, depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns):
        """Set rows top to bottom; the last sliver ends with the last row."""
        rows = height(bottom - top, vectors)
        for i in range(top, bottom, rows):
            i = min(i, bottom - rows)
            if rows == 10:
                t10(depth, A, a + i * lda, lda, ka, B, b, ldb, C, c + i * ldc, ldc, columns)
            elif rows == 6:
                t6(depth, A, a + i * lda, lda, ka, B, b, ldb, C, c + i * ldc, ldc, columns)
            elif rows == 4:
                t4(depth, A, a + i * lda, lda, ka, B, b, ldb, C, c + i * ldc, ldc, columns)
            elif rows == 2:
                t2(depth, A, a + i * lda, lda, ka, B, b, ldb, C, c + i * ldc, ldc, columns)
            else:
                t1(depth, A, a + i * lda, lda, ka, B, b, ldb, C, c + i * ldc, ldc, columns)

    return multiply_slivers


panel_wide = _slivers_kernel(PANEL_BYTES // VECTOR_BYTES, whole=True)
two_wide = _slivers_kernel(2, whole=False)
one_wide = _slivers_kernel(1, whole=False)


@compiled(cache=False)
def multiply_panel(top, bottom, depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns):
    """Set rows top to bottom of C[c] to those of A[a] times a panel B[b] of so many columns."""
    if columns == lanes(B, PANEL_BYTES):
        panel_wide(top, bottom, depth, A, a, lda, ka, B, b, ldb, C, c, ldc, columns)
    else:
        for j in range(0, columns, lanes(B, WIDE_BYTES)):
            left = columns - j
            if left > lanes(B, VECTOR_BYTES):
                two_wide(top, bottom, depth, A, a, lda, ka, B, b + j, ldb, C, c + j, ldc, left)
            else:
                one_wide(top, bottom, depth, A, a, lda, ka, B, b + j, ldb, C, c + j, ldc, left)


@compiled(cache=False)
def multiply_part(first, last, A, B, C, M, K, N):
    """Set rows first to last of C (batch, M, N), all matrices counted through; A, B, C are pointers."""
    width = lanes(B, PANEL_BYTES)
    for m in range(first // M, -(-last // M)):
        top, bottom = max(first - m * M, 0), min(last - m * M, M)
        for j in range(0, N, width):
            b, c, left = m * K * N + j, m * M * N + j, min(width, N - j)
            multiply_panel(top, bottom, K, A, m * M * K, K, 1, B, b, N, C, c, N, left)


@compiled(cache=False, parallel=True)
def multiply_parts(parts, A, B, C):
    """Do `multiply_part` for all rows, on as many cores as there are parts."""
    (batch, M, K), N = A.shape, B.shape[2]
    for part in numba.prange(parts):
        first, last = batch * M * part // parts, batch * M * (part + 1) // parts
        multiply_part(first, last, pointer(A), pointer(B), pointer(C), M, K, N)


@compiled(cache=not FORCED_BITS)
def multiply(parts, A, B, C):
    """Set C (batch, M, N) to A (batch, M, K) @ B (batch, K, N), all in C order, in parts of equal size."""
    (batch, M, K), N = A.shape, B.shape[2]
    if parts > 1:
        multiply_parts(parts, A, B, C)
    else:
        multiply_part(0, batch * M, pointer(A), pointer(B), pointer(C), M, K, N)


def parts_for(batch: int, M: int, K: int, N: int) -> int:
    """Return how many cores are worth waking for so many FMAs."""
    worth = batch * M * K * N // FEW_FMAS
    return min(numba.get_num_threads(), worth) if worth > 1 else 1


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (batch, M, N) for A (batch, M, K), B (batch, K, N), both float32 or both float64.

    Shapes are not checked here, and with some that do not fit, memory behind the operands is read: the front
    door (`batched_ladder.rung("batched-numba").matmul`) refuses them.
    """
    (batch, M, K), N = A.shape, B.shape[2]
    if not (batch and M and K and N):
        return np.zeros((batch, M, N), A.dtype)
    if K * N * A.itemsize > SMALL_BYTES:
        return batched_loop.matmul(A, B)
    C = np.empty((batch, M, N), A.dtype)
    with pool:
        multiply(parts_for(batch, M, K, N), contiguous(A), contiguous(B), C)
    return C
