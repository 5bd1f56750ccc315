"""The three loops compiled by Numba to machine code, in any of the six orders: the second circle.

Adds to `python_lists`: no objects, no bytecode; a number is a number in a register. The order of the loops
is a compile-time constant, so each order becomes machine code of its own and nothing is decided at run time.

`fastmath` is {"contract", "reassoc"}: a product and a sum may fuse into one FMA, sums may be reordered into
vector lanes. Full fastmath=True would also let the compiler assume that NaN and inf never occur.
"""

from __future__ import annotations

import functools

import numpy as np

from course_lib.circles.front_door import Array
from course_lib.measure.jit import compiled

ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")
FUSE_AND_REORDER = frozenset({"contract", "reassoc"})


@functools.cache
def compiled_loops(order: str, fastmath: frozenset[str] = FUSE_AND_REORDER):
    """Return loops(A, B, C), which adds A @ B to C in place, with the three loops nested in `order`.

    `order` names the loops from outside in: "ikj" runs j innermost. Raises ValueError for anything else.
    """
    if order not in ORDERS:
        raise ValueError(f"order is {order!r}, but it must be one of {', '.join(ORDERS)}.")
    outer, middle, inner = ("ijk".index(name) for name in order)
    at_i, at_j, at_k = (order.index(name) for name in "ijk")

    def loops(A, B, C):
        size = (C.shape[0], C.shape[1], A.shape[1])  # M, N, K
        for x in range(size[outer]):
            for y in range(size[middle]):
                for z in range(size[inner]):
                    at = (x, y, z)
                    i, j, k = at[at_i], at[at_j], at[at_k]
                    C[i, j] += A[i, k] * B[k, j]

    # Numba's cache on disk does not tell two fastmath settings apart, so only one of them may use it.
    return compiled(loops, cache=fastmath == FUSE_AND_REORDER, fastmath=set(fastmath))


def matmul(A: Array, B: Array, order: str = "ikj") -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, with the loops in `order`.

    A strided view is copied once (O(N^2) against O(N^3)), so the strides are those of row-major matrices.
    """
    A, B = (np.require(X, requirements=("C", "ALIGNED")) for X in (A, B))
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    compiled_loops(order)(A, B, C)
    return C
