"""The three loops cut into blocks that stay in a cache: block partitioning.

Adds to `compiled-ikj`: a block of B is used for all rows of A in the block before the next one is fetched. A
number that came from memory serves `block` rows of A, and does not come back for every single one (M. Lam,
E. Rothberg, M. Wolf, "The cache performance and optimizations of blocked algorithms", ASPLOS 1991).
"""

from __future__ import annotations

import numbers

import numpy as np

from course_lib.circles.front_door import Array
from course_lib.circles.memory import operands
from course_lib.measure.jit import compiled

BLOCK = 128  # rows and depth of a block
WIDE = 4  # its columns are that many times as many: the inner loop likes long rows


@compiled(fastmath={"contract", "reassoc"})
def multiply(A, B, C, block):
    """Add A @ B to C, all in C order: rows and depth in steps of `block`, columns in WIDE * block."""
    (M, K), N = A.shape, B.shape[1]
    for j0 in range(0, N, WIDE * block):
        for k0 in range(0, K, block):
            for i0 in range(0, M, block):
                for i in range(i0, min(i0 + block, M)):
                    row = C[i, j0 : j0 + WIDE * block]  # a slice: a range from j0 on would not be vectorised,
                    for k in range(k0, min(k0 + block, K)):
                        a, other = A[i, k], B[k, j0 : j0 + WIDE * block]
                        for j in range(len(row)):  # as an index that may be negative means the end in Python
                            row[j] += a * other[j]


def matmul(A: Array, B: Array, block: int = BLOCK) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, in blocks.

    Raises ValueError for a block size that is no whole number of at least 1.
    """
    if not isinstance(block, numbers.Integral) or block < 1:
        raise ValueError(f"block is {block!r}, but it must be a whole number of at least 1.")
    A, B = operands(A, B)
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    multiply(A, B, C, min(int(block), max(*A.shape, B.shape[1], 1)))  # WIDE times a huge one would overflow
    return C
