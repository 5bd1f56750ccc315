"""Strassen's algorithm, level by level, with its sums of blocks written to memory: the third circle.

Adds to the definition: 2 x 2 blocks are multiplied with seven products instead of eight, so N^2.81 steps
instead of N^3 (V. Strassen, "Gaussian elimination is not optimal", Numerische Mathematik 13, 1969). Each
level pays with 18 sums of blocks. Below `cutoff` the classical product of circle 4 takes over; odd rows and
columns are peeled off and multiplied classically (S. Huss-Lederman et al., "Implementation of Strassen's
algorithm for matrix multiplication", SC 1996).

The price in accuracy (N. Higham, "Accuracy and stability of numerical algorithms", 2002, theorem 23.2): the
error of an entry is bounded by a multiple of max|A| max|B|, not of the sums |a||b| of its own row and column.
"""

from __future__ import annotations

import math

import numpy as np

from course_lib.circles import simd
from course_lib.circles.front_door import Array
from course_lib.circles.memory import operands

CUTOFF = 1024  # smaller products are left to the classical algorithm

#: One row for a product: the signs with which the blocks 11, 12, 21, 22 of A are added up, those of B, and
#: those with which the product is added to the blocks of C.
LEFT = ((1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (-1, 0, 1, 0), (0, 1, 0, -1))
RIGHT = ((1, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, -1), (-1, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1))
INTO = ((1, 0, 0, 1), (0, 0, 1, -1), (0, 1, 0, 1), (1, 0, 1, 0), (-1, 1, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0))


def multiply(A: Array, B: Array, cutoff: int) -> Array:
    """Return A @ B for A (M, K), B (K, N); the recursion ends when one of M, K, N is `cutoff` or less."""
    (M, K), N = A.shape, B.shape[1]
    if min(M, K, N) <= max(cutoff, 1):
        return simd.matmul(A, B)
    m, k, n = M // 2, K // 2, N // 2
    C = np.zeros((M, N), A.dtype)
    As, Bs, Cs = blocks(A, m, k), blocks(B, k, n), blocks(C, m, n)
    for left, right, into in zip(LEFT, RIGHT, INTO, strict=True):
        product = multiply(combined(As, left), combined(Bs, right), cutoff)  # (m, n)
        for block, sign in zip(Cs, into, strict=True):
            if sign > 0:
                block += product
            elif sign < 0:
                block -= product
    add_peeled(A, B, C)
    return C


def blocks(X: Array, rows: int, columns: int) -> tuple[Array, Array, Array, Array]:
    """Return the blocks 11, 12, 21, 22 of X, each rows x columns; an odd last row or column is in none."""
    top, bottom = X[:rows], X[rows : 2 * rows]
    left, right = slice(columns), slice(columns, 2 * columns)
    return top[:, left], top[:, right], bottom[:, left], bottom[:, right]


def combined(parts: tuple[Array, ...], signs: tuple[int, ...]) -> Array:
    """Return the sum of the parts with their signs; a single part with sign + is not copied."""
    total = None
    for part, sign in zip(parts, signs, strict=True):
        if sign and total is None:
            total = part if sign > 0 else -part
        elif sign:
            total = total + part if sign > 0 else total - part
    return total


def add_peeled(A: Array, B: Array, C: Array) -> None:
    """Complete C = A @ B where M, K or N is odd: its last row and column, and the last step of k."""
    (M, K), N = A.shape, B.shape[1]
    m, k, n = M // 2 * 2, K // 2 * 2, N // 2 * 2
    if k < K:
        C[:m, :n] += A[:m, k:] * B[k:, :n]  # (m, 1) times (1, n)
    if n < N:
        C[:m, n:] = simd.matmul(A[:m], B[:, n:])
    if m < M:
        C[m:] = simd.matmul(A[m:], B)


def is_safe(A: Array, B: Array) -> bool:
    """Say whether sums of blocks do no harm: there is no NaN or inf to spread, and nothing will overflow."""
    # a sum has K products; with each of log2(N) levels they may grow by 2 * 2 for A and B and by 4 for C
    growth = float(max(*A.shape, B.shape[1])) ** 5
    # the length of X as a vector: one pass, at least max|X|, and NaN or inf as soon as one number is
    lengths = [math.sqrt(float(np.vdot(X, X))) for X in operands(A, B)]
    return lengths[0] * lengths[1] * growth < float(np.finfo(A.dtype).max)  # False for NaN


def error_bound(A: Array, B: Array, levels: int) -> float:
    """Return the bound on max|C - exact| after so many levels, to first order in the rounding unit u.

    For N x N: ((N / n)^log2(12) (n^2 + 5 n) - 5 N) u max|A| max|B| with n = N / 2^levels (Higham 2002,
    theorem 23.2); here N is the largest of M, K, N.
    """
    N = max(*A.shape, B.shape[1])
    n = math.ceil(N / 2**levels)
    unit = float(np.finfo(A.dtype).eps) / 2
    factor = 12.0**levels * (n**2 + 5 * n) - 5 * N
    return factor * unit * float(np.max(np.abs(A))) * float(np.max(np.abs(B)))


def matmul(A: Array, B: Array, cutoff: int = CUTOFF) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, on one core.

    Operands with NaN, inf or numbers near the largest are multiplied classically: a sum of blocks would
    spread them to entries that they do not belong to.
    """
    A, B = operands(A, B)
    if not is_safe(A, B):
        return simd.matmul(A, B)
    return multiply(A, B, cutoff)
