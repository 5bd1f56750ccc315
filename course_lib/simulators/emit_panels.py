"""The compiled part of the trace of the rung `simd`: B packed into panels, A read where it lies.

The loops over blocks run here in Python; the packing of a block and the tiles along one sliver of A are
compiled. "spare" is the memory in which tiles at the edges are computed. What the rung asks for ahead of time
(prefetch) is no access here: it changes when a line comes, not which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from course_lib.measure.jit import compiled
from course_lib.simulators.placement import Matrix


@dataclass(frozen=True)
class Panels:
    """A tile is MR x NR; of B, up to KC rows and so many columns are packed that `block_bytes` hold them."""

    MR: int
    NR: int
    KC: int
    block_bytes: int


@dataclass(frozen=True)
class PanelBlock:
    """Rows `k` to k + depth and columns `j` to j + columns of B."""

    k: int
    depth: int
    j: int
    columns: int


def blocks(K: int, N: int, itemsize: int, tiles: Panels) -> Iterator[PanelBlock]:
    """Yield the blocks of B in their order: about equal ones, made of whole panels."""
    depths, panels = -(-K // tiles.KC), -(-N // tiles.NR)
    across = -(-panels * tiles.NR * tiles.KC * itemsize // tiles.block_bytes)
    for n in range(across):
        j = panels * n // across * tiles.NR
        columns = min(panels * (n + 1) // across * tiles.NR, N) - j
        for d in range(depths):
            k = K * d // depths
            yield PanelBlock(k, K * (d + 1) // depths - k, j, columns)


def chunks(
    sizes: tuple[int, int, int], tiles: Panels, at: Mapping[str, Matrix]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (addresses, writes) of C = A @ B: the packing of each block, then its tiles sliver by sliver."""
    M, K, N = sizes
    A, B, C, spare, packed = (at[name] for name in ("A", "B", "C", "spare", "packed B"))
    item = C.itemsize
    for block in blocks(K, N, item, tiles) if M and K and N else ():
        out = _room(_of_packing(block, tiles))
        pack(_corner(B, block.k, block.j), B.row_stride, packed.start, item, *_size(block), tiles.NR, *out)
        yield out
        for i in range(0, M, tiles.MR):
            rows = min(tiles.MR, M - i)
            out = _room(_of_sliver(rows, block, tiles))
            ends = _corner(A, i, block.k), A.row_stride, _corner(C, i, block.j), C.row_stride
            shape = rows, *_size(block), tiles.MR, tiles.NR, tiles.KC
            sliver(*ends, packed.start, spare.start, item, block.k > 0, *shape, *out)
            yield out


def accesses(sizes: tuple[int, int, int], itemsize: int, tiles: Panels) -> int:
    """Return how many accesses `chunks` makes."""
    M, K, N = sizes
    whole, left = divmod(M, tiles.MR)
    total = 0
    for block in blocks(K, N, itemsize, tiles) if M and K and N else ():
        total += _of_packing(block, tiles) + whole * _of_sliver(tiles.MR, block, tiles)
        total += _of_sliver(left, block, tiles) if left else 0
    return total


def _of_packing(block: PanelBlock, tiles: Panels) -> int:
    zeros = tiles.NR if block.columns % tiles.NR else 0  # the last panel is emptied first
    return block.depth * (2 * block.columns + zeros)


def _of_sliver(rows: int, block: PanelBlock, tiles: Panels) -> int:
    panels, rest = divmod(block.columns, tiles.NR)
    touched = 2 if block.k else 1  # C is loaded as well from the second block of the depth on
    kernel, tile = block.depth * (tiles.NR + tiles.MR), tiles.MR * tiles.NR
    copied = (tiles.MR - rows) * tiles.KC + 2 * rows * block.depth if rows < tiles.MR else 0
    edges = 1 if rest else 0
    if rows < tiles.MR:
        panels, edges = 0, panels + edges
    in_edges = edges * (copied + kernel + tile) + (1 + touched) * rows * (block.columns - panels * tiles.NR)
    return panels * (kernel + touched * tile) + in_edges


def _corner(matrix: Matrix, row: int, column: int) -> int:
    return matrix.start + row * matrix.row_stride + column * matrix.column_stride


def _size(block: PanelBlock) -> tuple[int, int]:
    return block.depth, block.columns


def _room(accesses: int) -> tuple[np.ndarray, np.ndarray]:
    return np.empty(accesses, np.uint64), np.empty(accesses, np.bool_)


@compiled
def run(start, step, count, write, at, addresses, writes):
    """Make `count` accesses, `step` bytes apart; return the number of accesses made so far."""
    for n in range(count):
        addresses[at], writes[at] = start + n * step, write
        at += 1
    return at


@compiled
def copy(source, target, item, count, at, addresses, writes):
    """Load a number, store it, and so on."""
    for n in range(count):
        addresses[at], writes[at] = source + n * item, False
        addresses[at + 1], writes[at + 1] = target + n * item, True
        at += 2
    return at


@compiled
def box(start, row, item, rows, columns, write, at, addresses, writes):
    """Touch the numbers of a tile, row by row."""
    for i in range(rows):
        at = run(start + i * row, item, columns, write, at, addresses, writes)
    return at


@compiled
def pack(B, B_row, packed, item, depth, columns, NR, addresses, writes):
    """Deal each row of a block out to the panels, a vector at a time; the last panel may have an edge."""
    whole, at = columns // NR * NR, 0
    for k in range(depth):
        for j in range(0, whole, NR):
            at = run(B + k * B_row + j * item, item, NR, False, at, addresses, writes)
            at = run(packed + (j * depth + k * NR) * item, item, NR, True, at, addresses, writes)
    if whole < columns:
        last = packed + whole * depth * item
        at = run(last, item, depth * NR, True, at, addresses, writes)
        for k in range(depth):
            row = B + k * B_row + whole * item
            at = copy(row, last + k * NR * item, item, columns - whole, at, addresses, writes)


@compiled
def products(A, A_row, panel, item, depth, MR, NR, at, addresses, writes):
    """For each k load a row of the panel, then a number of each row of the sliver."""
    for k in range(depth):
        at = run(panel + k * NR * item, item, NR, False, at, addresses, writes)
        at = run(A + k * item, A_row, MR, False, at, addresses, writes)
    return at


@compiled
def sliver(A, A_row, C, C_row, packed, spare, item, add, rows, depth, columns, MR, NR, KC, addresses, writes):
    """Go along a sliver's tiles of C: micro-kernels, and at the edges the same work in spare memory."""
    at, tile = 0, spare + MR * KC * item
    for j in range(0, columns, NR):
        panel, c, width = packed + j * depth * item, C + j * item, min(NR, columns - j)
        if rows == MR and width == NR:
            at = products(A, A_row, panel, item, depth, MR, NR, at, addresses, writes)
            if add:
                at = box(c, C_row, item, MR, NR, False, at, addresses, writes)
            at = box(c, C_row, item, MR, NR, True, at, addresses, writes)
            continue
        if rows == MR:
            at = products(A, A_row, panel, item, depth, MR, NR, at, addresses, writes)
        else:
            at = run(spare + rows * KC * item, item, (MR - rows) * KC, True, at, addresses, writes)
            for i in range(rows):
                at = copy(A + i * A_row, spare + i * KC * item, item, depth, at, addresses, writes)
            at = products(spare, KC * item, panel, item, depth, MR, NR, at, addresses, writes)
        at = box(tile, NR * item, item, MR, NR, True, at, addresses, writes)
        for i in range(rows):
            for n in range(width):
                at = run(tile + (i * NR + n) * item, item, 1, False, at, addresses, writes)
                at = run(c + i * C_row + n * item, item, int(add), False, at, addresses, writes)
                at = run(c + i * C_row + n * item, item, 1, True, at, addresses, writes)
