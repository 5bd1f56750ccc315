"""One level of Strassen with its sums folded into packing and into the store of a tile.

Adds to `strassen`: no sum of blocks is ever written to memory. Blocks of B are added while they are packed,
which moves them anyway; slivers of A are added on their way into the L1 cache; and a finished tile, still in
registers, is added to every block of C that the product belongs to (J. Huang, T. Smith, G. Henry, R. van de
Geijn, "Strassen's algorithm reloaded", SC 2016). What is left of the price: 12 blocks of C are updated where
the classical algorithm updates 8, and the larger rounding error (see `strassen.error_bound`).
"""

from __future__ import annotations

import math

import numpy as np

from course_lib.circles import simd
from course_lib.circles.front_door import Array
from course_lib.circles.memory import aligned, operands
from course_lib.circles.simd import (
    BLOCK_BYTES,
    MR,
    ROW_BYTES,
    add_products,
    empty_tile,
    kernel,
    micro_kernel,
    pack,
)
from course_lib.circles.strassen import INTO, LEFT, RIGHT, add_peeled
from course_lib.circles.vectors import broadcast, fma, lanes, load, prefetch_row, store

STRETCH = 64  # steps of a tile between two requests for rows of C
DEPTH_BYTES = 4096  # of a sliver's row: deeper than in `simd`, as every block of C is visited more often
SMALLEST = 2000  # a product with M, K or N below this is left to the classical algorithm

_LEFT, _RIGHT, _INTO = (np.array(table, np.int64) for table in (LEFT, RIGHT, INTO))


@kernel
def find_blocks(signs, rows, columns, stride, starts, factors):
    """Write where the one or two blocks with a sign begin, and their signs, + first; return their number.

    The four blocks are rows x columns each, in a flat matrix with row stride `stride`.
    """
    count = 0
    for sign in (1, -1):
        for block in range(4):
            if signs[block] == sign:
                starts[count] = block // 2 * rows * stride + block % 2 * columns
                factors[count] = sign
                count += 1
    return count


@kernel
def add_rows(X, first, second, factors, length, out, at):
    """Set out[at:] to `length` numbers X[first:] + factors[1] * X[second:]; both flat."""
    width = lanes(X, ROW_BYTES)
    whole = length // width * width
    for j in range(0, whole, width):
        one, two = load(X, first + j, ROW_BYTES), load(X, second + j, ROW_BYTES)
        store(out, at + j, fma(broadcast(factors, 1, two), two, one))
    for j in range(whole, length):
        out[at + j] = X[first + j] + factors[1] * X[second + j]


@kernel
def pack_sum(B, first, second, factors, ldb, depth, columns, block):
    """Do the work of `pack` for the sum of two blocks of B."""
    width = lanes(B, ROW_BYTES)
    if columns % width:
        block[columns // width * width * depth :][: depth * width] = 0
    for k in range(depth):
        one, two = first + k * ldb, second + k * ldb
        for j in range(0, columns, width):
            at = j * depth + k * width
            add_rows(B, one + j, two + j, factors, min(columns - j, width), block, at)


@kernel
def scatter_tile(depth, A, a, lda, B, b, C, c, ldc, starts, factors, count, ahead):
    """Add the sliver A[a] times the panel B[b] to `count` blocks of C, each with its factor, at offset c."""
    width = lanes(B, ROW_BYTES)
    tile = empty_tile(B)
    for k in range(0, depth, STRETCH):
        row = k // STRETCH  # of the tiles of C: asked for one by one, all at once would hold up B
        if row < count * MR:
            prefetch_row(C, c + starts[row // MR] + row % MR * ldc, ROW_BYTES)
        steps = min(STRETCH, depth - k)
        tile = add_products(tile, steps, A, a + k, lda, B, b + k * width, ahead + k)
    c0, c1, c2, c3, c4, c5 = tile
    for block in range(count):
        at, sign = c + starts[block], broadcast(factors, block, c0)
        store(C, at, fma(sign, c0, load(C, at, ROW_BYTES)))
        store(C, at + ldc, fma(sign, c1, load(C, at + ldc, ROW_BYTES)))
        store(C, at + 2 * ldc, fma(sign, c2, load(C, at + 2 * ldc, ROW_BYTES)))
        store(C, at + 3 * ldc, fma(sign, c3, load(C, at + 3 * ldc, ROW_BYTES)))
        store(C, at + 4 * ldc, fma(sign, c4, load(C, at + 4 * ldc, ROW_BYTES)))
        store(C, at + 5 * ldc, fma(sign, c5, load(C, at + 5 * ldc, ROW_BYTES)))


@kernel
def scatter_edge(rows, columns, tile, C, c, ldc, starts, factors, count):
    """Do the rest of `scatter_tile`'s work where the tile, rows x columns, lies in memory, row stride NR."""
    width = lanes(C, ROW_BYTES)
    for block in range(count):
        for i in range(rows):
            ours, theirs = tile[i * width :][:columns], C[c + starts[block] + i * ldc :][:columns]
            for j in range(columns):
                theirs[j] += factors[block] * ours[j]


@kernel
def pack_sliver(A, starts, factors, terms, at, lda, rows, depth, out, o):
    """Set out[o], MR x depth with row stride DEPTH_BYTES, to rows of A's (sum of) blocks, then zeros."""
    stride = DEPTH_BYTES // A.itemsize
    for i in range(rows):
        first, second = starts[0] + at + i * lda, starts[terms - 1] + at + i * lda
        if terms == 2:
            add_rows(A, first, second, factors, depth, out, o + i * stride)
        else:
            out[o + i * stride : o + i * stride + depth] = A[first : first + depth]
    for i in range(rows, MR):
        out[o + i * stride : o + i * stride + depth] = 0


@kernel
def multiply_sliver(rows, depth, A, a, lda, block, columns, C, c, ldc, starts, factors, targets, tile):
    """Add the sliver A[a] times a packed block to the blocks of C, tile by tile."""
    width = lanes(A, ROW_BYTES)
    for j in range(0, columns, width):
        right = min(width, columns - j)
        if rows == MR and right == width:
            ahead = a + (MR + min(MR, j // width)) * lda
            scatter_tile(depth, A, a, lda, block, j * depth, C, c + j, ldc, starts, factors, targets, ahead)
        else:
            micro_kernel(depth, A, a, lda, block, j * depth, tile, 0, width, False, a)
            scatter_edge(rows, right, tile, C, c + j, ldc, starts, factors, targets)


@kernel
def multiply(A, B, C, m, k, n, lda, ldb, ldc, block, slivers, tile):
    """Add to C the products of the seven sums of blocks: A's are m x k, B's k x n, C's m x n; all flat.

    block, slivers and tile are working memory: see `matmul`.
    """
    width, most = lanes(A, ROW_BYTES), DEPTH_BYTES // A.itemsize
    of_a, of_b, of_c = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    by_a, by_b, by_c = np.zeros(2, A.dtype), np.zeros(2, A.dtype), np.zeros(2, A.dtype)
    depths, panels = -(-k // most), -(-n // width)
    blocks = -(-panels * width * DEPTH_BYTES // BLOCK_BYTES)
    for product in range(7):
        terms = find_blocks(_LEFT[product], m, k, lda, of_a, by_a)
        sources = find_blocks(_RIGHT[product], k, n, ldb, of_b, by_b)
        targets = find_blocks(_INTO[product], m, n, ldc, of_c, by_c)
        for d in range(depths):
            k0 = k * d // depths
            depth = k * (d + 1) // depths - k0
            for part in range(blocks):
                first = panels * part // blocks * width
                columns = min(panels * (part + 1) // blocks * width, n) - first
                one, two = of_b[0] + k0 * ldb + first, of_b[1] + k0 * ldb + first
                if sources == 1:
                    pack(B, one, ldb, depth, columns, block)
                else:
                    pack_sum(B, one, two, by_b, ldb, depth, columns, block)
                for i in range(0, m, MR):
                    rows, c = min(MR, m - i), i * ldc + first
                    ours, a, stride = A, of_a[0] + i * lda + k0, lda
                    if terms == 2 or rows < MR:  # packed once, with the first columns
                        ours, a, stride = slivers, i * most, most
                        if part == 0:
                            pack_sliver(A, of_a, by_a, terms, i * lda + k0, lda, rows, depth, slivers, a)
                    multiply_sliver(
                        rows, depth, ours, a, stride, block, columns, C, c, ldc, of_c, by_c, targets, tile
                    )


def matmul(A: Array, B: Array, smallest: int = SMALLEST) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, on one core.

    One level of Strassen where M, K and N are at least `smallest` (and 2), else the classical product; also
    where a sum overflowed or there was NaN or inf to spread, which shows in C afterwards.
    """
    A, B = operands(A, B)
    (M, K), N = A.shape, B.shape[1]
    if min(M, K, N) < max(smallest, 2):
        return simd.matmul(A, B)
    C = np.zeros((M, N), A.dtype)
    flat = A.reshape(-1), B.reshape(-1), C.reshape(-1)
    most, width = DEPTH_BYTES // A.itemsize, ROW_BYTES // A.itemsize
    block = aligned(BLOCK_BYTES // A.itemsize + most * width, A.dtype)
    slivers, tile = aligned((M // 2 + MR) * most, A.dtype), aligned(MR * width, A.dtype)
    multiply(*flat, M // 2, K // 2, N // 2, K, N, N, block, slivers, tile)
    add_peeled(A, B, C)
    # one pass over C, where `strassen.is_safe` needs two; the squares of large numbers may be infinite alone
    is_finite = math.isfinite(np.vdot(C, C)) or bool(np.isfinite(C).all())
    return C if is_finite else simd.matmul(A, B)
