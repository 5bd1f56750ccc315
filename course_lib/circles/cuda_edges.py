"""The edges of a matrix in a kernel: what lies outside counts as zero, and is never written.

A product of any shape is covered with whole tiles; those at the border stick out. Zeros add nothing to a
sum, so the loops inside a tile need not know where the matrix ends.
"""

from __future__ import annotations

from numba import cuda, float32


@cuda.jit(device=True)
def element(X, i, j):
    """Return X[i, j], or zero where X has no such element (i, j >= 0)."""
    value = float32(0)
    if i < X.shape[0] and j < X.shape[1]:
        value = X[i, j]
    return value


@cuda.jit(device=True)
def put(X, i, j, value):
    """Set X[i, j] to value, unless X has no such element (i, j >= 0)."""
    if i < X.shape[0] and j < X.shape[1]:
        X[i, j] = value
