"""A batch of products as a Python loop over the `threads` rung: where everybody begins.

Every matrix is a call of its own: Python finds the function, checks and lays out the operands, packs B, wakes
the cores and waits for them. That costs microseconds, which a large product does not notice and a small one
takes several times over.
"""

from __future__ import annotations

import numpy as np

from course_lib.circles import threads
from course_lib.circles.front_door import Array


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (batch, M, N) for A (batch, M, K), B (batch, K, N), both float32 or both float64."""
    C = np.empty((A.shape[0], A.shape[1], B.shape[2]), A.dtype)
    for m in range(len(C)):
        C[m] = threads.matmul(A[m], B[m])
    return C
