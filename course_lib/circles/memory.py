"""Memory as the compiled rungs want it: in C order, and from the first byte of a cache line on."""

from __future__ import annotations

import numpy as np

from course_lib.circles.front_door import Array, check_operands

ALIGNMENT = 64  # bytes: a cache line, and the widest vector; one that begins elsewhere lies in two lines


def aligned(size: int, dtype: np.dtype) -> Array:
    """Return uninitialised memory for `size` numbers that begins at a cache line."""
    memory = np.empty(size * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size * dtype.itemsize].view(dtype)


def operands(A: Array, B: Array) -> tuple[Array, Array]:
    """Return A and B as `contiguous` does; one sentence is raised if they do not go together.

    Compiled code takes the sizes and the dtype of one for those of the other. (`check_operands` says which.)
    """
    if A.dtype != B.dtype or A.ndim != 2 or B.ndim != 2 or A.shape[1] != B.shape[0]:
        check_operands(A, B)
    return contiguous(A), contiguous(B)


def contiguous(X: Array) -> Array:
    """Return X in C order, aligned, writable (the kind that is compiled): itself if it is, else a copy."""
    if X.flags.carray:  # all three: no more than this is asked of a small matrix
        return X
    return np.require(X, requirements=("C", "ALIGNED", "WRITEABLE"))
