"""Task 02.strides: how far the innermost loop jumps in memory, for each loop order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task


def inner_bytes(order: str, M: int, K: int, N: int, itemsize: int) -> tuple[int, int, int]:
    """Return by how many bytes A, B and C move per step of the innermost loop, all in C order."""
    axes = {"A": ("i", "k", K), "B": ("k", "j", N), "C": ("i", "j", N)}
    inner = order[-1]
    moves = {
        name: columns * itemsize if inner == row else itemsize if inner == col else 0
        for name, (row, col, columns) in axes.items()
    }
    return moves["A"], moves["B"], moves["C"]


def _orders(rng: np.random.Generator) -> Iterator[Case]:
    for place, order in enumerate(("ijk", "ikj", "jki", "jik", "kij", "kji")):
        M, K, N = (int(n) for n in rng.choice(np.arange(2, 4000), 3, replace=False))
        itemsize = (4, 8)[place % 2]
        yield Case((order, M, K, N, itemsize), f"the order {order}")


def _fortran(order: str, M: int, K: int, N: int, itemsize: int) -> tuple[int, int, int]:
    """Return the jumps of column-major matrices: those of the transposed product, B^T A^T, in C order."""
    swapped = order.translate(str.maketrans("ij", "ji"))
    B, A, C = inner_bytes(swapped, N, K, M, itemsize)
    return A, B, C


TASK = Task(
    id="02.strides",
    title="How far does each step jump?",
    kind="predict",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="predicting which loop order is fast before running any of them",
    entry="inner_bytes",
    cases=_orders,
    reference=inner_bytes,
    comparison=exact(("A", "B", "C")),
    lookalikes=(
        Lookalike(
            "Those are numbers, not bytes: each of them takes itemsize bytes.",
            lambda order, M, K, N, itemsize: inner_bytes(order, M, K, N, 1),
        ),
        Lookalike(
            "A number need not take 8 bytes: use itemsize.",
            lambda order, M, K, N, itemsize: inner_bytes(order, M, K, N, 8),
        ),
        Lookalike(
            "A number need not take 4 bytes: use itemsize.",
            lambda order, M, K, N, itemsize: inner_bytes(order, M, K, N, 4),
        ),
        Lookalike(
            "That is the outermost loop. Which letter of the order is the innermost?",
            lambda order, M, K, N, itemsize: inner_bytes(order[::-1], M, K, N, itemsize),
        ),
        Lookalike(
            "That would be column-major (Fortran) order. In C order the last index is the contiguous one.",
            lambda order, M, K, N, itemsize: _fortran(order, M, K, N, itemsize),
        ),
        Lookalike(
            "A step along a column jumps over one row: count the numbers in a row, not the rows.",
            lambda order, M, K, N, itemsize: inner_bytes(order, K, M, K, itemsize),
        ),
    ),
    hints=(
        "C[i, j] of an M x N matrix in C order: at which byte, counted from the start, does it lie?",
        "At itemsize * (i * N + j). If the innermost index is j, that grows by itemsize; if it is i, by a "
        "row; "
        "if it is k, not at all. A (M, K) and B (K, N) in the same way.",
        "inner = order[-1]; A: {'i': K, 'k': 1}.get(inner, 0) * itemsize, and so on for B and C.",
    ),
)
