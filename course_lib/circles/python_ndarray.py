"""Matrix product in plain Python that indexes NumPy arrays: the same loop, and slower.

Changes against `python_lists`: the numbers lie side by side in memory, but each A[i, k] makes Python build a
new NumPy scalar object around one of them. The array is not the bottleneck, taking it apart is.
"""

from __future__ import annotations

import numpy as np

from course_lib.circles.front_door import Array


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64."""
    M, K, N = *A.shape, B.shape[1]
    C = np.zeros((M, N), A.dtype)
    for i in range(M):
        for j in range(N):
            total = A.dtype.type(0)
            for k in range(K):
                total += A[i, k] * B[k, j]
            C[i, j] = total
    return C
