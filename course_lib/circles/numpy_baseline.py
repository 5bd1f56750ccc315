"""The baseline every rung is measured against: NumPy's A @ B, that is, the BLAS NumPy was installed with.

Which BLAS, and for which instruction set, decides what "as fast as NumPy" means: `measure.machine` names it.
"""

from __future__ import annotations

from course_lib.circles.front_door import Array


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64."""
    return A @ B
