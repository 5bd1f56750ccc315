"""Traces of the products that pack their operands: BLIS' five loops, and the rung `simd`.

The loops over blocks run in Python; what happens in a block, and the tiles along one panel or sliver, are
arrays of addresses, whose dimensions are the loops inside. What the rung asks for ahead of time (prefetch) is
no access here: it changes when a line comes, not which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from course_lib.simulators.placement import Matrix

Sizes = tuple[int, int, int]  # M, K, N
Chunks = Iterator[tuple[np.ndarray, np.ndarray]]  # addresses (uint64), writes (bool)
#: Addresses in their order, and whether they are written: one bool, or one for each place of the last loops.
Accesses = tuple[np.ndarray, bool | list]


class Tiles(NamedTuple):
    """MC x KC of A and KC x NC of B are packed, the micro-kernel computes MR x NR of C."""

    MC: int
    KC: int
    NC: int
    MR: int
    NR: int


class Panels(NamedTuple):
    """A tile is MR x NR; of B, up to KC rows and so many columns are packed that `block_bytes` hold them."""

    MR: int
    NR: int
    KC: int
    block_bytes: int


class PanelBlock(NamedTuple):
    """Rows `k` to k + depth and columns `j` to j + columns of B."""

    k: int
    depth: int
    j: int
    columns: int


def addresses(start: int, *loops: tuple[int, int]) -> np.ndarray:
    """Return the addresses of nested loops, (step in bytes, turns) from outside in: a dimension for each."""
    found = np.array(start)
    for step, turns in loops:
        found = found[..., None] + step * np.arange(turns)
    return found


def joined(parts: list[Accesses]) -> tuple[np.ndarray, np.ndarray]:
    """Return (addresses, writes) of accesses one after the other."""
    writes = [np.broadcast_to(write, at.shape).ravel() for at, write in parts]
    return np.concatenate([at.ravel() for at, _ in parts]).view(np.uint64), np.concatenate(writes)


def copied(source: np.ndarray, target: np.ndarray) -> Accesses:
    """Return: load a number, store it, and so on."""
    return np.stack([source, target], -1), [False, True]


def corner(matrix: Matrix, row: int, column: int) -> int:
    """Return the address of an element."""
    return matrix.start + row * matrix.row_stride + column * matrix.itemsize


# -- both operands packed ----------------------------------------------------------------------------------


def packed(sizes: Sizes, tiles: Tiles, at: Mapping[str, Matrix]) -> Chunks:
    """Yield the accesses of C += A @ B: packing and micro-kernels in their order.

    Buffers are as wide as whole panels; a block at the edge is padded with zeros, which are stored by the
    packing, and read by the micro-kernel, but loaded from nowhere.
    """
    M, K, N = sizes
    MC, KC, NC, MR, NR = tiles
    A, B, C, buffer_A, buffer_B = (at[name] for name in ("A", "B", "C", "packed A", "packed B"))
    item = C.itemsize
    for jc in range(0, N if M and K else 0, NC):
        nc = min(NC, N - jc)
        for pc in range(0, K, KC):
            kc = min(KC, K - pc)
            yield _packing(corner(B, pc, jc), item, B.row_stride, nc, kc, NR, buffer_B)
            for ic in range(0, M, MC):
                mc = min(MC, M - ic)
                yield _packing(corner(A, ic, pc), A.row_stride, item, mc, kc, MR, buffer_A)
                for jr in range(0, nc, NR):
                    parts: list[Accesses] = []
                    b = addresses(buffer_B.start + jr * kc * item, (NR * item, kc), (item, NR))
                    for ir in range(0, mc, MR):
                        a = addresses(buffer_A.start + ir * kc * item, (MR * item, kc), (item, MR))
                        rows, columns = (C.row_stride, min(MR, mc - ir)), (item, min(NR, nc - jr))
                        c = addresses(corner(C, ic + ir, jc + jr), rows, columns)
                        parts += [(np.concatenate([b, a], 1), False), copied(c, c)]
                    yield joined(parts)


def _packing(
    start: int, step: int, k_step: int, size: int, kc: int, width: int, buffer: Matrix
) -> tuple[np.ndarray, np.ndarray]:
    """Copy a block into panels `width` wide: for each panel, for each k, one number after the other."""
    panels = -(-size // width)
    source = addresses(start, (width * step, panels), (k_step, kc), (step, width))
    target = addresses(buffer.start, (buffer.itemsize, source.size)).reshape(source.shape)
    made, writes = joined([copied(source, target)])
    is_there = addresses(0, (width, panels), (0, kc), (1, width)).ravel() < size
    happens = np.stack([is_there, np.ones_like(is_there)], -1).ravel()
    return made[happens], writes[happens]


def packed_accesses(sizes: Sizes, tiles: Tiles) -> int:
    """Return how many accesses `packed` makes."""
    M, K, N = sizes
    if not (M and K and N):
        return 0
    panels_A = sum(-(-min(tiles.MC, M - ic) // tiles.MR) for ic in range(0, M, tiles.MC))
    panels_B = sum(-(-min(tiles.NC, N - jc) // tiles.NR) for jc in range(0, N, tiles.NC))
    times_A, times_C = -(-N // tiles.NC), -(-K // tiles.KC)
    packing = K * (N + panels_B * tiles.NR) + times_A * K * (M + panels_A * tiles.MR)
    return packing + panels_A * panels_B * K * (tiles.MR + tiles.NR) + 2 * times_C * M * N


# -- the rung simd: B packed, A read where it lies ---------------------------------------------------------


def blocks(sizes: Sizes, itemsize: int, tiles: Panels) -> Iterator[PanelBlock]:
    """Yield the blocks of B in their order: about equal ones, made of whole panels."""
    M, K, N = sizes
    depths, panels = -(-K // tiles.KC), -(-N // tiles.NR)
    across = -(-panels * tiles.NR * tiles.KC * itemsize // tiles.block_bytes)
    for n in range(across if M and K else 0):
        j = panels * n // across * tiles.NR
        columns = min(panels * (n + 1) // across * tiles.NR, N) - j
        for d in range(depths if columns else 0):  # with more blocks than panels some are empty
            k = K * d // depths
            yield PanelBlock(k, K * (d + 1) // depths - k, j, columns)


def simd(sizes: Sizes, tiles: Panels, at: Mapping[str, Matrix]) -> Chunks:
    """Yield the accesses of C = A @ B: the packing of each block, then its tiles sliver by sliver."""
    for block in blocks(sizes, at["C"].itemsize, tiles):
        yield joined(_dealt_out(block, tiles.NR, at["B"], at["packed B"]))
        for i in range(0, sizes[0], tiles.MR):
            yield joined(_sliver(i, min(tiles.MR, sizes[0] - i), block, tiles, at))


def _dealt_out(block: PanelBlock, NR: int, B: Matrix, packed: Matrix) -> list[Accesses]:
    """Deal each row of a block out to the panels, a vector at a time; the last panel may have an edge."""
    (k, depth, j, columns), item = block, B.itemsize
    panels, rest = divmod(columns, NR)
    start, row = corner(B, k, j), (B.row_stride, depth)
    source = addresses(start, row, (NR * item, panels), (item, NR))
    target = addresses(packed.start, (NR * item, depth), (depth * NR * item, panels), (item, NR))
    parts: list[Accesses] = [(np.stack([source, target], 2), [[False], [True]])]
    if rest:
        last = packed.start + panels * NR * depth * item
        source = addresses(start + panels * NR * item, row, (item, rest))
        target = addresses(last, (NR * item, depth), (item, rest))
        parts += [(addresses(last, (item, depth * NR)), True), copied(source, target)]
    return parts


def _sliver(i: int, rows: int, block: PanelBlock, tiles: Panels, at: Mapping[str, Matrix]) -> list[Accesses]:
    """Go along a sliver's tiles of C: micro-kernels, and at the edges the same work in spare memory."""
    A, C, spare, (MR, NR, KC, _) = at["A"], at["C"], at["spare"].start, tiles
    item, depth = C.itemsize, block.depth
    parts: list[Accesses] = []
    a, a_row = corner(A, i, block.k), A.row_stride
    first: list[Accesses] = []
    if rows < MR:  # a sliver at the edge is copied, and the rows that it lacks are zeros
        zeros = addresses(spare + rows * KC * item, (item, (MR - rows) * KC))
        given = addresses(a, (a_row, rows), (item, depth))
        first = [(zeros, True), copied(given, addresses(spare, (KC * item, rows), (item, depth)))]
        a, a_row = spare, KC * item
    for j in range(0, block.columns, NR):
        width = min(NR, block.columns - j)
        panel = addresses(at["packed B"].start + j * depth * item, (NR * item, depth), (item, NR))
        products = np.concatenate([panel, addresses(a, (item, depth), (a_row, MR))], 1)
        parts += [*first, (products, False)]
        c = addresses(corner(C, i, block.j + j), (C.row_stride, rows), (item, width))
        loaded = [c] if block.k else []  # from the second block of the depth on the tile is added to
        if rows == MR and width == NR:
            parts += [*((one, False) for one in loaded), (c, True)]
        else:
            tile = addresses(spare + MR * KC * item, (NR * item, MR), (item, NR))
            out = np.stack([tile[:rows, :width], *loaded, c], -1)
            parts += [(tile, True), (out, [False] * (1 + len(loaded)) + [True])]
    return parts


def simd_accesses(sizes: Sizes, itemsize: int, tiles: Panels) -> int:
    """Return how many accesses `simd` makes."""
    whole, left = divmod(sizes[0], tiles.MR)
    total = 0
    for block in blocks(sizes, itemsize, tiles):
        zeros = tiles.NR if block.columns % tiles.NR else 0  # the last panel is emptied first
        total += block.depth * (2 * block.columns + zeros) + whole * _of_sliver(tiles.MR, block, tiles)
        total += _of_sliver(left, block, tiles) if left else 0
    return total


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
