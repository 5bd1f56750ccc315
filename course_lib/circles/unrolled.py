"""Blocks, and four rows of A times eight steps of k at once: loop unrolling and loop strength reduction.

Adds to `blocked`: the inner loop does 32 multiply-adds for 16 loads and stores instead of one for three, as
eight numbers of B serve four rows and four numbers of C take eight products. And it computes no address:
every row is a slice taken outside, so that `i * N + j` (a multiplication for each access) has become one
counter (loop strength reduction: Cocke and Kennedy, "An algorithm for reduction of operator strength", CACM
20(11), 1977). No intrinsics: the compiler finds the vectors itself.
"""

from __future__ import annotations

import numpy as np

from course_lib.circles.front_door import Array
from course_lib.circles.memory import aligned, operands
from course_lib.measure.jit import compiled, use_wide_registers

ROWS, STEPS = 4, 8  # of the unrolled loop, which is written out for these numbers
LANES = 16  # numbers in a piece of a row, one vector or two; rows of C are filled up to whole pieces
ROW_BYTES, DEPTH = 4096, 128  # of a block of B, which takes part of the L2 cache; DEPTH in whole steps
LINE_BYTES = 64  # left free after each row: rows 4096 bytes apart would compete for the same sets of L1
BLOCK_BYTES = DEPTH * (ROW_BYTES + LINE_BYTES)
FUSE_AND_REORDER = {"contract", "reassoc"}


@compiled(fastmath=FUSE_AND_REORDER)
def add_four_rows(A, a, lda, depth, block, ldb, C, c, ldc, pieces):
    """Add A[a], 4 x depth, times the block, depth x pieces * LANES, to C[c]; flat, row strides lda, ldb, ldc.

    `pieces * LANES`, a multiple of every vector's length, leaves no last columns for which the compiler would
    write another loop, and keep the 32 numbers of A for it in registers that the main loop needs.
    """
    use_wide_registers()
    columns = pieces * LANES
    c0, c1 = C[c : c + columns], C[c + ldc : c + ldc + columns]
    c2, c3 = C[c + 2 * ldc : c + 2 * ldc + columns], C[c + 3 * ldc : c + 3 * ldc + columns]
    r0, r1 = A[a : a + depth], A[a + lda : a + lda + depth]
    r2, r3 = A[a + 2 * lda : a + 2 * lda + depth], A[a + 3 * lda : a + 3 * lda + depth]
    for step in range(depth // STEPS):
        k = step * STEPS
        b = block[k * ldb : (k + STEPS) * ldb]
        b0, b1, b2, b3 = b[:columns], b[ldb:], b[2 * ldb :], b[3 * ldb :]
        b4, b5, b6, b7 = b[4 * ldb :], b[5 * ldb :], b[6 * ldb :], b[7 * ldb :]
        p0, p1, p2, p3, p4, p5, p6, p7 = eight(r0, k)
        q0, q1, q2, q3, q4, q5, q6, q7 = eight(r1, k)
        s0, s1, s2, s3, s4, s5, s6, s7 = eight(r2, k)
        t0, t1, t2, t3, t4, t5, t6, t7 = eight(r3, k)
        for j in range(pieces * LANES):
            x0, x1, x2, x3, x4, x5, x6, x7 = b0[j], b1[j], b2[j], b3[j], b4[j], b5[j], b6[j], b7[j]
            c0[j] += p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3 + p4 * x4 + p5 * x5 + p6 * x6 + p7 * x7
            c1[j] += q0 * x0 + q1 * x1 + q2 * x2 + q3 * x3 + q4 * x4 + q5 * x5 + q6 * x6 + q7 * x7
            c2[j] += s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3 + s4 * x4 + s5 * x5 + s6 * x6 + s7 * x7
            c3[j] += t0 * x0 + t1 * x1 + t2 * x2 + t3 * x3 + t4 * x4 + t5 * x5 + t6 * x6 + t7 * x7


@compiled
def eight(row, k):
    """Return the eight numbers of a row from k on."""
    return row[k], row[k + 1], row[k + 2], row[k + 3], row[k + 4], row[k + 5], row[k + 6], row[k + 7]


@compiled(fastmath=FUSE_AND_REORDER)
def add_row(A, a, first, depth, block, ldb, C, c, columns):
    """Add one row, A[a + first : a + depth], times the block to C[c]: what four and eight leave over."""
    row = C[c : c + columns]
    for k in range(first, depth):
        number, other = A[a + k], block[k * ldb : k * ldb + columns]
        for j in range(len(row)):
            row[j] += number * other[j]


@compiled
def copy_block(B, b, ldb, depth, columns, block, stride):
    """Copy B[b], depth x columns with row stride ldb, to the block, whose rows have another stride."""
    for k in range(depth):
        block[k * stride : k * stride + columns] = B[b + k * ldb : b + k * ldb + columns]


@compiled
def multiply(A, B, C, M, K, N, ldc, block):
    """Add A (M, K) times B (K, N) to C (M, N) with row stride ldc, all flat; `block` takes BLOCK_BYTES."""
    stride = (ROW_BYTES + LINE_BYTES) // A.itemsize
    pieces = -(-N // LANES)
    blocks = -(-pieces * LANES * A.itemsize // ROW_BYTES)
    for n in range(blocks):  # about equal ones, of whole pieces
        first, last = pieces * n // blocks, pieces * (n + 1) // blocks
        j = first * LANES
        columns = min(last * LANES, N) - j
        for k in range(0, K, DEPTH):
            depth = min(DEPTH, K - k)
            whole = depth // STEPS * STEPS
            copy_block(B, k * N + j, N, depth, columns, block, stride)
            for i in range(0, M - ROWS + 1, ROWS):
                add_four_rows(A, i * K + k, K, whole, block, stride, C, i * ldc + j, ldc, last - first)
            for i in range(M):
                done = whole if i < M // ROWS * ROWS else 0
                add_row(A, i * K + k, done, depth, block, stride, C, i * ldc + j, columns)


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, four rows by eight steps."""
    A, B = operands(A, B)
    (M, K), N = A.shape, B.shape[1]
    width = -(-N // LANES) * LANES  # of C, so that whole pieces can be added to its last columns
    C, block = aligned(M * width, A.dtype), aligned(BLOCK_BYTES // A.itemsize, A.dtype)
    C[:], block[:] = 0, 0
    multiply(A.reshape(-1), B.reshape(-1), C, M, K, N, width, block)
    return np.ascontiguousarray(C.reshape(M, width)[:, :N])
