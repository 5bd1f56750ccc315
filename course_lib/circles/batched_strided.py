"""A batch of products of views: strides instead of copies, as attention has its operands.

Adds to `batched-numba`: A and B may have any strides. The heads of attention are columns 64 h to 64 h + 63 of
one matrix (T, 512), seen as (8, T, 64) without moving a number, and the keys come transposed on top of that.
To lay them out anew would cost a pass over each operand before the first product.

- A costs nothing: its numbers are read one by one and spread over a vector, wherever the next one lies.
- B whose columns lie side by side costs nothing either: rows are as far apart as they like.
- B transposed (its k lie side by side) cannot be loaded as a vector of columns. Each panel is turned round
  on its way into L1, a square of one vector by one vector at a time, and used for all slivers of A. This is
  part of the product's work, with memory for one panel a core, not a copy of B. Any other B is gathered
  there too.
- A batch stride of zero repeats one matrix (`np.broadcast_to`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numba
import numpy as np
from numba import types

from course_lib.circles import batched_loop
from course_lib.circles.batched_numba import (
    PANEL_BYTES,
    SMALL_BYTES,
    VECTOR_BYTES,
    multiply_panel,
    parts_for,
)
from course_lib.circles.front_door import Array
from course_lib.circles.memory import contiguous
from course_lib.circles.simd import FORCED_BITS
from course_lib.circles.threads import pool
from course_lib.circles.tiles import flat, pointer, transpose
from course_lib.circles.vectors import lanes
from course_lib.measure.jit import compiled


@compiled(cache=False)
def gather_panel(B, b, down, right, depth, columns, panel):
    """Copy B[b], depth x columns strides down and right, into a panel with rows of PANEL_BYTES."""
    width, side = lanes(B, PANEL_BYTES), lanes(B, VECTOR_BYTES)
    if down == 1 and depth >= side:
        for j in range(0, columns, side):
            for step in range(-(-depth // side)):
                k = min(step * side, depth - side)  # the last square ends with the last k
                count = min(side, columns - j)
                transpose(B, b + j * right + k, right, count, panel, k * width + j, width, VECTOR_BYTES)
    else:
        for j in range(columns):
            for k in range(depth):
                panel[k * width + j] = B[b + k * down + j * right]


@compiled(cache=False)
def multiply_part(first, last, A, B, C, a_by, b_by, M, K, N, panel):
    """Set rows first to last of C (batch, M, N), all matrices counted through; a_by, b_by are strides."""
    width = lanes(B, PANEL_BYTES)
    for m in range(first // M, -(-last // M)):
        top, bottom = max(first - m * M, 0), min(last - m * M, M)
        a = m * a_by[0]
        for j in range(0, N, width):
            b, c, left = m * b_by[0] + j * b_by[2], m * M * N + j, min(width, N - j)
            source, place, down = B, b, b_by[1]
            if b_by[2] != 1:
                gather_panel(B, b, b_by[1], b_by[2], K, left, panel)
                source, place, down = panel, b - b, width  # a literal 0 would have all compiled once more
            multiply_panel(top, bottom, K, A, a, a_by[1], a_by[2], source, place, down, C, c, N, left)


@compiled(cache=False, parallel=True)
def multiply_parts(A, B, C, a_by, b_by, batch, M, K, N, panels):
    """Do `multiply_part` for all rows, on as many cores as there are panels."""
    parts = len(panels)
    for part in numba.prange(parts):
        first, last = batch * M * part // parts, batch * M * (part + 1) // parts
        panel = pointer(panels[part])
        multiply_part(first, last, pointer(A), pointer(B), pointer(C), a_by, b_by, M, K, N, panel)


@functools.cache
def multiply_for(dtype: np.dtype) -> Callable[[Array, Array, Array, Array], None]:
    """Return `multiply` for operands of a dtype, compiled once for any strides.

    Left alone Numba compiles anew for every layout that it meets: C, Fortran, other strides, read-only.
    """
    number = numba.from_dtype(dtype)
    operand = types.Array(number, 3, "A", readonly=True)
    made = compiled(cache=not FORCED_BITS)(multiply)
    made.compile((operand, operand, number[:, :, ::1], number[:, ::1]))
    made.disable_compile()
    return made


def multiply(A, B, C, panels):
    """Set C (batch, M, N) to A (batch, M, K) @ B (batch, K, N) of any strides; a panel (K x width) a core."""
    (batch, M, K), N, size = A.shape, B.shape[2], A.itemsize
    a_by = A.strides[0] // size, A.strides[1] // size, A.strides[2] // size
    b_by = B.strides[0] // size, B.strides[1] // size, B.strides[2] // size
    if len(panels) > 1:
        multiply_parts(flat(A), flat(B), flat(C), a_by, b_by, batch, M, K, N, panels)
    else:
        panel = pointer(panels)
        multiply_part(0, batch * M, pointer(A), pointer(B), pointer(C), a_by, b_by, M, K, N, panel)


def matmul(A: Array, B: Array) -> Array:
    """Return A @ B (batch, M, N) for A (batch, M, K), B (batch, K, N), both float32 or both float64.

    Of any strides, without copies (but for numbers that do not begin at a multiple of their size). Shapes are
    not checked here, and with some that do not fit, memory behind the operands is read: the front door
    (`batched_ladder.rung("batched-strided").matmul`) refuses them.
    """
    (batch, M, K), N = A.shape, B.shape[2]
    if not (batch and M and K and N):
        return np.zeros((batch, M, N), A.dtype)
    if K * N * A.itemsize > SMALL_BYTES:
        return batched_loop.matmul(A, B)
    C = np.empty((batch, M, N), A.dtype)
    panels = np.empty((parts_for(batch, M, K, N), K * PANEL_BYTES // A.itemsize), A.dtype)
    with pool:
        multiply_for(A.dtype)(_aligned(A), _aligned(B), C, panels)
    return C


def _aligned(X: Array) -> Array:
    return X if X.flags.aligned else contiguous(X)
