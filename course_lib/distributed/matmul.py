"""C = A B on P ranks that hold a shard of each matrix: what travels, and how much of it.

A is (M, K), B (K, N), C (M, N). Each algorithm says who holds what (`Shards`), and has a function that every
rank calls with its shards of A and B; it returns the rank's shard of C. Shapes need not divide by anything.
In the docstrings A, B and C stand for the bytes of whole matrices; bytes are what a rank sends on average.

Sources: Cannon's thesis (1969); van de Geijn and Watts, "SUMMA: scalable universal matrix multiplication
algorithm" (1997); Solomonik and Demmel, "Communication-optimal parallel 2.5D matrix multiplication" (2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from course_lib.arguments import number, whole
from course_lib.distributed.collectives import (
    ring_all_gather,
    ring_reduce_scatter,
    tree_broadcast,
    tree_reduce,
)
from course_lib.distributed.wire import Array, Wire

Shape = tuple[int, int, int]  # M, K, N
Cell = tuple[slice, slice]


def like(x: Array, *shape: int) -> Array:
    """Return what says the shape and dtype of an array that is to come, and holds a single number."""
    return np.broadcast_to(np.zeros((), x.dtype), shape)


def cuts(length: int, parts: int) -> list[slice]:
    """Return `parts` slices of a dimension that differ by one at most, the longer ones first."""
    edges = [0, *np.cumsum([len(part) for part in np.array_split(range(length), parts)]).tolist()]
    return [slice(begin, end) for begin, end in pairwise(edges)]


@dataclass(frozen=True)
class Shards:
    """Who holds what: for each rank its part of A, of B, and of C."""

    A: list[Cell]
    B: list[Cell]
    C: list[Cell]


# -- one dimension: every rank has a band --------------------------------------------------------------------


def _banded(*dimensions: int) -> Callable[[Shape, int], Shards]:
    """Return the layout in which each rank has a band of A, B and C, cut along these of their dimensions."""

    def layout(shape: Shape, ranks: int) -> Shards:
        M, K, N = shape
        sizes = (M, K), (K, N), (M, N)
        return Shards(*map(bands, sizes, dimensions, (ranks,) * 3))

    def bands(size: tuple[int, int], dimension: int, ranks: int) -> list[Cell]:
        rows, columns = slice(0, size[0]), slice(0, size[1])
        parts = cuts(size[dimension], ranks)
        return [(rows, part) if dimension else (part, columns) for part in parts]

    return layout


row_layout = _banded(0, 0, 0)
column_layout = _banded(1, 1, 1)
inner_layout = _banded(1, 0, 0)


def row(wire: Wire, A: Array, B: Array, shape: Shape) -> Array:
    """Gather B, band by band; the rows are each rank's own. Bytes: B (P − 1) / P; memory: B, twice."""
    bands = [like(B, band.stop - band.start, shape[2]) for band in cuts(shape[1], wire.size)]
    bands[wire.rank] = B
    return A @ np.concatenate(ring_all_gather(wire, bands))  # (m, K) @ (K, N)


def column(wire: Wire, A: Array, B: Array, shape: Shape) -> Array:
    """Gather A, band by band; the columns are each rank's own. Bytes: A (P − 1) / P; memory: A, twice."""
    bands = [like(A, shape[0], band.stop - band.start) for band in cuts(shape[1], wire.size)]
    bands[wire.rank] = A
    return np.concatenate(ring_all_gather(wire, bands), axis=1) @ B  # (M, K) @ (K, n)


def inner(wire: Wire, A: Array, B: Array, shape: Shape) -> Array:
    """Multiply what one has, then add up over the ranks. Bytes: C (P − 1) / P; memory: all of C."""
    part = A @ B  # (M, k) @ (k, N): a summand of all of C
    return ring_reduce_scatter(wire, [part[band] for band in cuts(shape[0], wire.size)])


# -- two dimensions: every rank has a block -----------------------------------------------------------------


def grid(ranks: int) -> tuple[int, int]:
    """Return rows and columns of the grid of ranks that is nearest to a square."""
    whole("ranks", ranks)
    rows = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


def grid_layout(shape: Shape, ranks: int) -> Shards:
    """Rank r = row * columns + column has a block of each matrix."""
    M, K, N = shape
    rows, columns = grid(ranks)
    return Shards(
        [(m, k) for m in cuts(M, rows) for k in cuts(K, columns)],
        [(k, n) for k in cuts(K, rows) for n in cuts(N, columns)],
        [(m, n) for m in cuts(M, rows) for n in cuts(N, columns)],
    )


def side_of(ranks: int) -> int:
    """Return q of q² ranks. ValueError if they are no square."""
    if math.isqrt(whole("ranks", ranks)) ** 2 != ranks:
        raise ValueError(f"There are {ranks} ranks, but Cannon's grid is a square: 1, 4, 9, 16 …")
    return math.isqrt(ranks)


def square_layout(shape: Shape, ranks: int) -> Shards:
    """A block of each matrix for each rank, of a grid that must be a square."""
    return grid_layout(shape, side_of(ranks) ** 2)


def panels(K: int, rows: int, columns: int, width: int | None = None) -> list[tuple[slice, int, int]]:
    """Return the panels of K, each with the column of the grid that holds A's part and the row with B's.

    A panel ends where a block of A or of B ends, or after `width`.
    """
    of_A, of_B = cuts(K, columns), cuts(K, rows)
    edges = {0, K, *(k.stop for k in of_A), *(k.stop for k in of_B), *range(0, K, width or K or 1)}
    ends = sorted(edges)
    return [(slice(begin, end), _owner(of_A, begin), _owner(of_B, begin)) for begin, end in pairwise(ends)]


def _owner(parts: list[slice], at: int) -> int:
    return next(number for number, part in enumerate(parts) if part.start <= at < part.stop)


def summa(
    wire: Wire,
    A: Array,
    B: Array,
    shape: Shape,
    broadcast: Callable = tree_broadcast,
    width: int | None = None,
) -> Array:
    """Panel by panel of K: its owners broadcast A's along the rows of the grid, B's along its columns.

    Bytes: A (columns − 1) / P + B (rows − 1) / P; memory: three blocks, two panels, a summand of C's block.
    """
    rows, columns = grid(wire.size)
    i, j = divmod(wire.rank, columns)
    my_row = wire.among([i * columns + column for column in range(columns)])
    my_column = wire.among([row * columns + j for row in range(rows)])
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    first_A, first_B = cuts(shape[1], columns)[j].start, cuts(shape[1], rows)[i].start
    for k, column, row in panels(shape[1], rows, columns, width):
        a, b = like(A, A.shape[0], k.stop - k.start), like(B, k.stop - k.start, B.shape[1])  # (m, k), (k, n)
        if column == j:
            a = A[:, k.start - first_A : k.stop - first_A]
        if row == i:
            b = B[k.start - first_B : k.stop - first_B]
        C += broadcast(my_row, a, column) @ broadcast(my_column, b, row)
    return C


def summa_pipelined(wire: Wire, A: Array, B: Array, shape: Shape) -> Array:
    """The same, each panel passed on from neighbour to neighbour: the next follows before the last has it.

    A broadcast by a tree costs log2 P steps for each panel; here all panels together cost as many as there
    are panels and neighbours. Bytes are SUMMA's; memory: panels are a quarter as wide.
    """
    return summa(wire, A, B, shape, pass_along, width=-(-shape[1] // (4 * grid(wire.size)[1])))


def pass_along(wire: Wire, x: Array, root: int = 0) -> Array:
    """Return the root's x: each rank gets it from its left and gives it to its right. P − 1 steps."""
    if wire.rank != root:
        x = wire.receive(x, source=(wire.rank - 1) % wire.size)
    if (wire.rank + 1) % wire.size != root:
        wire.send(x, to=(wire.rank + 1) % wire.size)
    return x


def cannon(wire: Wire, A: Array, B: Array, shape: Shape) -> Array:
    """Skew A's rows and B's columns, then shift: every rank always has two blocks that belong together.

    P is a square, q² ranks. Bytes: (A + B) (q − 1) (1 + 1 / q) / P; memory: six blocks, and no broadcast.
    """
    return _shift_and_multiply(wire, A, B, shape, side_of(wire.size), range(side_of(wire.size)))


def _shift_and_multiply(wire: Wire, A: Array, B: Array, shape: Shape, q: int, turns: range) -> Array:
    """Multiply blocks k = i + j + turn for each turn, shifting A to the left and B up between them."""
    i, j = divmod(wire.rank, q)
    length = [part.stop - part.start for part in cuts(shape[1], q)]
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    way = i + turns.start, j + turns.start  # how far A goes to the left and B goes up, first of all
    for turn in turns:
        k = length[(i + j + turn) % q]
        A = _moved(wire, A, (A.shape[0], k), [i * q + (j - way[0]) % q, i * q + (j + way[0]) % q])
        B = _moved(wire, B, (k, B.shape[1]), [(i - way[1]) % q * q + j, (i + way[1]) % q * q + j])
        C += A @ B
        way = 1, 1
    return C


def _moved(wire: Wire, block: Array, shape: tuple[int, int], to_and_source: list[int]) -> Array:
    """Send one's block away and return what comes in its place; at home if that is where it goes."""
    to, source = to_and_source
    return block if to == wire.rank else wire.exchange(block, to, source, like(block, *shape))


# -- copies: memory for bytes -------------------------------------------------------------------------------


def layers_of(ranks: int) -> int:
    """Return c, the copies of A and B that 2.5D keeps: P = c q² with the greatest c that is at most q."""
    for layers in range(round(ranks ** (1 / 3)) + 1, 0, -1):
        q = math.isqrt(ranks // layers)
        if layers * q * q == ranks and layers <= q:
            return layers
    raise ValueError(
        f"There are {ranks} ranks, but 2.5D needs c q² of them with c at most q, as 4, 8, 9, 16, 18 or 27."
    )


def layered_layout(shape: Shape, ranks: int) -> Shards:
    """The first layer has a block of each matrix, the other layers have nothing yet."""
    q2 = ranks // layers_of(ranks)
    first, nothing = square_layout(shape, q2), [(slice(0, 0), slice(0, 0))] * (ranks - q2)
    return Shards(first.A + nothing, first.B + nothing, first.C + nothing)


def two_and_a_half(wire: Wire, A: Array, B: Array, shape: Shape) -> Array:
    """Copy A and B to c layers, let each do its share of Cannon's shifts, and add up.

    Bytes: ((A + B) (c − 1 + c (q − 1) / q + q − c) + C (c − 1)) / P; memory: c times Cannon's.
    """
    layers = layers_of(wire.size)
    q = side_of(wire.size // layers)
    layer, place = divmod(wire.rank, q * q)
    cell = square_layout(shape, q * q)
    copies = wire.among([at * q * q + place for at in range(layers)])
    mine = wire.among(range(layer * q * q, (layer + 1) * q * q))
    if layer:  # what comes from the first
        here = ((A, cell.A[place]), (B, cell.B[place]))
        A, B = (like(x, *(part.stop - part.start for part in parts)) for x, parts in here)
    A, B = tree_broadcast(copies, A), tree_broadcast(copies, B)
    turns = cuts(q, layers)[layer]
    C = _shift_and_multiply(mine, A, B, shape, q, range(turns.start, turns.stop))
    return tree_reduce(copies, C) if layer == 0 else tree_reduce(copies, C)[:0, :0]


# -- what they send and hold ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Algorithm:
    """One way to multiply: who holds what, what a rank does, what it sends on average and holds at its peak.

    `sends` and `holds` take the elements that a rank has of A, B and C, and P. What is held counts the shards
    of A and B and all that NumPy makes on the way; what the transport keeps for itself comes on top.
    """

    name: str
    layout: Callable[[Shape, int], Shards]
    multiply: Callable[[Wire, Array, Array, Shape], Array]
    sends: Callable[[float, float, float, int], float]
    holds: Callable[[float, float, float, int], float]

    def words(self, shape: Shape, P: int) -> float:
        """Return the elements that a rank sends, on average."""
        return self.sends(*_sizes(shape, P), P)

    def memory(self, shape: Shape, P: int) -> float:
        """Return the elements that a rank holds at its peak."""
        return self.holds(*_sizes(shape, P), P)


def lower_bound(shape: Shape, ranks: int, memory: float | None = None) -> float:
    """Return how many elements a rank sends at least on average, if all compute equally much.

    Each can hold `memory` elements (None: any number). The greater of two: M K N / (2 sqrt(2) P sqrt(memory))
    − memory, which memory makes smaller: Irony, Toledo, Tiskin, "Communication lower bounds for
    distributed-memory matrix multiplication" (2004). And 3 (M K N / P)^(2/3) − (M K + K N + M N) / P, which
    no memory does, for shapes near a cube or many ranks: Al Daas, Ballard, Grigori, Kumar, Rouse, "Tight
    memory-independent parallel matrix multiplication communication lower bounds" (2022).

    They bound what *some* rank receives of A and B and sends of C. Where the work is shared evenly that is
    each rank, and all that is received somebody sends: so it bounds what is sent on average, too.
    """
    M, K, N = sorted(shape, reverse=True)
    work, held = M * K * N / whole("ranks", ranks), (M * K + K * N + M * N) / ranks
    limited = 0.0
    if memory is not None:
        limited = work / math.sqrt(8 * number("memory", memory, above=0)) - memory
    free = 3 * work ** (2 / 3) - held if ranks > M * K / N**2 else 0.0
    return max(0.0, limited, free)


def _sizes(shape: Shape, P: int) -> tuple[float, float, float]:
    """Return the elements that a rank has of A, B and C."""
    M, K, N = shape
    return M * K / P, K * N / P, M * N / P


def _gathers(gathered: float, stays: float, C: float, P: int) -> float:
    return stays + P * gathered + max(P * gathered, gathered + C)  # bands and then the whole; or C


def _summa_sends(A: float, B: float, C: float, P: int) -> float:
    rows, columns = grid(P)
    return A * (columns - 1) + B * (rows - 1)


def _summa_holds(A: float, B: float, C: float, P: int, finer: int = 1) -> float:
    rows, columns = grid(P)
    width = 1 / max(columns * finer, rows)  # of a panel, as part of K
    return A + B + 2 * C + A * columns * width * (columns > 1) + B * rows * width * (rows > 1)


def _layered_sends(A: float, B: float, C: float, P: int, layers: Callable = layers_of) -> float:
    c, q = layers(P), side_of(P // layers(P))
    return (A + B) * (c - 1 + c * (q - 1) / q + q - c) + C * (c - 1)


def _layered_holds(A: float, B: float, C: float, P: int, layers: Callable = layers_of) -> float:
    c, q = layers(P), side_of(P // layers(P))
    beside = max(A, B, C) if q > c else C  # a block that comes, or a summand
    return c * (A + B + 2 * C if q == 1 else 2 * (A + B) + C + beside)  # at home, and here


ALGORITHMS = {
    one.name: one
    for one in (
        Algorithm(
            "row", row_layout, row, lambda A, B, C, P: B * (P - 1), lambda A, B, C, P: _gathers(B, A, C, P)
        ),
        Algorithm("column", column_layout, column, lambda A, B, C, P: A * (P - 1), _gathers),
        Algorithm(
            "inner",
            inner_layout,
            inner,
            lambda A, B, C, P: C * (P - 1),
            lambda A, B, C, P: A + B + C * (P + min(P - 1, 2)),
        ),
        Algorithm("summa", grid_layout, summa, _summa_sends, _summa_holds),
        Algorithm(
            "summa-pipelined", grid_layout, summa_pipelined, _summa_sends, partial(_summa_holds, finer=4)
        ),
        Algorithm(
            "cannon",
            square_layout,
            cannon,
            partial(_layered_sends, layers=lambda P: 1),
            partial(_layered_holds, layers=lambda P: 1),
        ),
        Algorithm("2.5d", layered_layout, two_and_a_half, _layered_sends, _layered_holds),
    )
}


# -- a whole product -----------------------------------------------------------------------------------------


def shards(wire: Wire, name: str, A: Array, B: Array) -> tuple[Array, Array]:
    """Return this rank's shards of A and B for an algorithm."""
    at = ALGORITHMS[name].layout((*A.shape, B.shape[1]), wire.size)
    return np.ascontiguousarray(A[at.A[wire.rank]]), np.ascontiguousarray(B[at.B[wire.rank]])


def on_rank(wire: Wire, name: str, A: Array, B: Array) -> Array:
    """Return this rank's shard of A B by an algorithm; of A and B it uses its own shards only."""
    return ALGORITHMS[name].multiply(wire, *shards(wire, name, A, B), (*A.shape, B.shape[1]))


def joined(name: str, parts: Sequence[Array], shape: Shape) -> Array:
    """Return C (M, N) from the ranks' shards of it."""
    C = np.empty((shape[0], shape[2]), parts[0].dtype)
    for cell, part in zip(ALGORITHMS[name].layout(shape, len(parts)).C, parts, strict=True):
        C[cell] = part
    return C
