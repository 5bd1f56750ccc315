"""The compiled part of the trace of a packed product: the five loops around the micro-kernel.

The loops over blocks (jc, pc, ic) run here in Python; the packing of a block and the micro-kernels along one
panel of B are compiled. Buffers are as wide as whole panels; a block at the edge is padded with zeros, which
are stored by the packing, and read by the micro-kernel, but loaded from nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from course_lib.measure.jit import compiled
from course_lib.simulators.placement import Matrix


@dataclass(frozen=True)
class Tiles:
    """Block sizes: MC x KC of A and KC x NC of B are packed, the micro-kernel computes MR x NR of C."""

    MC: int
    KC: int
    NC: int
    MR: int
    NR: int


def chunks(
    sizes: tuple[int, int, int], tiles: Tiles, at: Mapping[str, Matrix]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (addresses, writes) of C += A @ B: packing and micro-kernels in their order."""
    M, K, N = sizes
    if not (M and K and N):
        return
    A, B, C, buffer_A, buffer_B = (at[name] for name in ("A", "B", "C", "packed A", "packed B"))
    itemsize = np.uint64(C.itemsize)
    for jc in range(0, N, tiles.NC):
        nc = min(tiles.NC, N - jc)
        for pc in range(0, K, tiles.KC):
            kc = min(tiles.KC, K - pc)
            yield _packed(_corner(B, pc, jc), B.column_stride, B.row_stride, nc, kc, tiles.NR, buffer_B)
            for ic in range(0, M, tiles.MC):
                mc = min(tiles.MC, M - ic)
                yield _packed(_corner(A, ic, pc), A.row_stride, A.column_stride, mc, kc, tiles.MR, buffer_A)
                for jr in range(0, nc, tiles.NR):
                    nr = min(tiles.NR, nc - jr)
                    panel = np.uint64(buffer_B.start + jr * kc * int(itemsize))
                    buffers = np.uint64(buffer_A.start), panel, _corner(C, ic, jc + jr)
                    steps = itemsize, np.uint64(C.row_stride), np.uint64(C.column_stride)
                    room = -(-mc // tiles.MR) * kc * (tiles.MR + tiles.NR) + 2 * mc * nr
                    out = np.empty(room, np.uint64), np.empty(room, np.bool_)
                    micro_kernels(*buffers, *steps, mc, kc, nr, tiles.MR, tiles.NR, *out)
                    yield out


def accesses(sizes: tuple[int, int, int], tiles: Tiles) -> int:
    """Return how many accesses `chunks` makes."""
    M, K, N = sizes
    if not (M and K and N):
        return 0
    panels_A = sum(-(-min(tiles.MC, M - ic) // tiles.MR) for ic in range(0, M, tiles.MC))
    panels_B = sum(-(-min(tiles.NC, N - jc) // tiles.NR) for jc in range(0, N, tiles.NC))
    times_A, times_C = -(-N // tiles.NC), -(-K // tiles.KC)
    packing = K * (N + panels_B * tiles.NR) + times_A * K * (M + panels_A * tiles.MR)
    return packing + panels_A * panels_B * K * (tiles.MR + tiles.NR) + 2 * times_C * M * N


def _corner(matrix: Matrix, row: int, column: int) -> np.uint64:
    return np.uint64(matrix.start + row * matrix.row_stride + column * matrix.column_stride)


def _packed(start, step, k_step, size, kc, width, buffer):
    padded = -(-size // width) * width
    room = kc * (size + padded)
    out = np.empty(room, np.uint64), np.empty(room, np.bool_)
    numbers = np.uint64(step), np.uint64(k_step), np.uint64(buffer.start), np.uint64(buffer.itemsize)
    pack(start, *numbers, size, kc, width, *out)
    return out


@compiled
def pack(start, step, k_step, buffer, itemsize, size, kc, width, addresses, writes):
    """Copy a block into panels `width` wide: for each panel, for each k, one number after the other."""
    at = 0
    for panel in range(0, size, width):
        for k in range(kc):
            for n in range(panel, panel + width):
                if n < size:
                    addresses[at] = start + np.uint64(n) * step + np.uint64(k) * k_step
                    writes[at] = False
                    at += 1
                addresses[at], writes[at] = buffer, True
                buffer += itemsize
                at += 1


@compiled
def micro_kernels(packed_A, panel_B, C, itemsize, C_row, C_column, mc, kc, nr, MR, NR, addresses, writes):
    """Go down a panel of B's tiles of C: for each k a row of the panel and a column of A's, then the tile."""
    at = 0
    for ir in range(0, mc, MR):
        b = panel_B
        for _ in range(kc):
            for _ in range(NR):
                addresses[at], writes[at] = b, False
                b += itemsize
                at += 1
            for _ in range(MR):
                addresses[at], writes[at] = packed_A, False
                packed_A += itemsize
                at += 1
        for i in range(ir, min(ir + MR, mc)):
            for j in range(nr):
                c = C + np.uint64(i) * C_row + np.uint64(j) * C_column
                addresses[at], writes[at] = c, False
                addresses[at + 1], writes[at + 1] = c, True
                at += 2
