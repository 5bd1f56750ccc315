"""Matrix product in plain Python, on lists of lists: the first circle.

For row in A, for col in B, for pair in (row, col). Nothing but the definition:
c_ij is the sum over k of a_ik times b_kj.
"""

from __future__ import annotations

import numpy as np

from course_lib.circles.front_door import Array

Rows = list[list[float]]


def multiply(A: Rows, B: Rows) -> Rows:
    """Return the product of A (M rows of K) and B (K rows of N) as M rows of N floats."""
    columns = list(zip(*B, strict=True))  # N tuples of K
    C = []  # M rows of N
    for row in A:
        C.append([])
        for col in columns:
            total = 0.0
            for a, b in zip(row, col, strict=True):
                total += a * b
            C[-1].append(total)
    return C


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N); Python adds in float64 whatever the dtype."""
    return np.array(multiply(A.tolist(), B.tolist())).astype(A.dtype)
