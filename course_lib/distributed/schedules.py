"""Who sends to whom in each step, as arrays: what thousands of ranks would do, for `simulators.network`.

The algorithms of `collectives` and `matmul` tell the same when they are rehearsed (a test compares them); but
a rehearsal has a thread for each rank, and these have a line for each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from course_lib.arguments import whole
from course_lib.distributed.matmul import Shape, grid, side_of
from course_lib.simulators.network import Step

ITEMSIZE = 4  # bytes of an element of the products' matrices, float32


def ring_step(ranks: int, nbytes: float, times: int = 1) -> Step:
    """Every rank sends so many bytes to its right."""
    here = np.arange(whole("ranks", ranks))
    return Step(here, (here + 1) % ranks, np.full(ranks, nbytes), times)


def ring_all_reduce(ranks: int, nbytes: float) -> list[Step]:
    """2 (P − 1) times a P-th of the array to the right."""
    return [ring_step(ranks, nbytes / ranks, 2 * (ranks - 1))] if ranks > 1 else []


def tree_broadcast(ranks: int, nbytes: float, stride: int = 1, groups: int = 1, apart: int = 0) -> list[Step]:
    """A binomial tree from rank 0; or one in each of `groups`, whose first ranks are `apart` from each other.

    `stride` is the distance between the ranks of a group: a column of a grid has that of its columns.
    """
    steps, have = [], 1
    while have < ranks:
        here = np.arange(min(have, ranks - have))
        starts = apart * np.arange(groups)[:, None]
        senders, receivers = (starts + stride * here).ravel(), (starts + stride * (here + have)).ravel()
        steps.append(Step(senders, receivers, np.full(len(senders), nbytes)))
        have *= 2
    return steps


def tree_all_reduce(ranks: int, nbytes: float) -> list[Step]:
    """Up the tree and down again."""
    down = tree_broadcast(ranks, nbytes)
    return [Step(step.receivers, step.senders, step.nbytes) for step in reversed(down)] + down


def doubling_all_reduce(ranks: int, nbytes: float) -> list[Step]:
    """The partner is one bit away; ranks beyond the power of two give theirs first and get it last."""
    core = 1 << (whole("ranks", ranks).bit_length() - 1)
    here, beyond = np.arange(core), np.arange(core, ranks)
    before = [Step(beyond, beyond - core, np.full(len(beyond), nbytes))] if len(beyond) else []
    after = [Step(beyond - core, beyond, np.full(len(beyond), nbytes))] if len(beyond) else []
    middle = [Step(here, here ^ (1 << bit), np.full(core, nbytes)) for bit in range(core.bit_length() - 1)]
    return before + middle + after


def row(shape: Shape, ranks: int) -> list[Step]:
    """B goes round: P − 1 steps of a P-th of it."""
    return [ring_step(ranks, shape[1] * shape[2] * ITEMSIZE / ranks, ranks - 1)] if ranks > 1 else []


def summa(shape: Shape, ranks: int) -> list[Step]:
    """For each panel a broadcast along all rows of the grid, then one along all its columns.

    Panels are those of a square grid, or of one whose shorter side divides the longer.
    """
    M, K, N = shape
    rows, columns = grid(ranks)
    count = math.lcm(rows, columns)
    along_rows = tree_broadcast(columns, M / rows * K / count * ITEMSIZE, 1, rows, columns)
    along_columns = tree_broadcast(rows, K / count * N / columns * ITEMSIZE, columns, columns, 1)
    return [
        Step(step.senders, step.receivers, step.nbytes, count) for step in along_rows + along_columns
    ]  # the root of a panel moves on, which shifts the picture but not its load on a symmetric network


def cannon(shape: Shape, ranks: int) -> list[Step]:
    """The skew of A and of B, then q − 1 shifts of both."""
    M, K, N = shape
    q = side_of(ranks)
    i, j = np.divmod(np.arange(ranks), q)
    block_A, block_B = M * K * ITEMSIZE / ranks, K * N * ITEMSIZE / ranks

    def move(way_A: np.ndarray, way_B: np.ndarray, times: int) -> list[Step]:
        """Blocks of A go to the left, blocks of B go up."""
        here = np.arange(ranks)
        ways = ((here, i * q + (j - way_A) % q, block_A), (here, (i - way_B) % q * q + j, block_B))
        return [
            Step(here[here != to], to[here != to], np.full((here != to).sum(), size), times)
            for here, to, size in ways
        ]

    one = np.ones(ranks, int)
    return move(i, j, 1) + (move(one, one, q - 1) if q > 1 else [])


#: The schedule of each algorithm that has one.
PRODUCTS: dict[str, Callable[[Shape, int], list[Step]]] = {"row": row, "summa": summa, "cannon": cannon}
