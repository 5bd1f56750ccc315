"""Task 06.index: which element is a thread's, where the grid does not divide the matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.launch import Launch
from course_lib.grading.limits import BusiestWarp, SectorsPerRequest, TotalSectors
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.gpu.shared import (
    ANYWHERE,
    exact_sectors,
    numbers,
    pieces,
    unwritten,
)

BLOCK = (32, 8)


def add_row(alpha: float, A: np.ndarray, b: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return alpha * A + b (M, N), float32, for A (M, N) and b (N,), a row that is added to every row."""
    return (alpha * A.astype(np.float64) + b).astype(np.float32)


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, said in (
        (40, 40, "square"),
        (37, 53, "no multiples of the block"),
        (8, 96, "whole blocks"),
        (1, 70, "a single row"),
        (33, 1, "a single column"),
        (1, 1, "a single element"),
        (int(rng.integers(9, 30)), int(rng.integers(65, 100)), "more columns than rows"),
        (int(rng.integers(65, 100)), int(rng.integers(9, 30)), "more rows than columns"),
    ):
        args = (float(rng.uniform(2, 3)), numbers(rng, M, N), numbers(rng, N), unwritten(M, N))
        yield Case(args, f"A {M} x {N}, {said}")


#: A warp of a block (32, 8) is 32 neighbours along x. Three arrays, each read or written in such pieces. (Who
#: numbers the elements one after the other has warps that go on in the next row: one sector of b more.)
LIMITS = (
    SectorsPerRequest(ANYWHERE + 1),
    TotalSectors(
        lambda alpha, A, b, C: 2 * exact_sectors(*A.shape) + len(A) * exact_sectors(1, len(b)),
        "A, b and C once for every row, 32 neighbours at a time",
    ),
    BusiestWarp(lambda alpha, A, b, C: 4, "three do, one for each array, if each thread has one element"),
)

TASK = Task(
    id="06.index",
    title="One thread, one element",
    kind="complete",
    points=2,
    difficulty=1,
    minutes=10,
    good_for="the three lines that nearly every kernel begins with",
    entry="add_row",
    cases=_matrices,
    reference=add_row,
    comparison=close(rtol=1e-5, atol=1e-5),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda alpha, A, b, C: (pieces(A.shape[1], BLOCK[0]), pieces(A.shape[0], BLOCK[1])),
        block=lambda alpha, A, b, C: BLOCK,
        result=3,
        limits=LIMITS,
    ),
    lookalikes=(
        Lookalike(
            "You add b along the rows: every row of C gets b[i] instead of the whole b.",
            lambda alpha, A, b, C: alpha * A + b[:, None] if A.shape[0] == A.shape[1] else None,
        ),
        Lookalike("b is multiplied by alpha too.", lambda alpha, A, b, C: alpha * (A + b)),
    ),
    hints=(
        "Which of the thread's coordinates, x or y, should run along a row? Think of what a warp reads.",
        "x runs fastest within a warp, so x is the column. A coordinate is block index times block size plus "
        "thread index. Threads behind the last row or column leave.",
        "j = blockIdx.x * blockDim.x + threadIdx.x, i the same with y; if i or j is at or behind the shape: "
        "return. (`cuda.grid(2)` gives the pair (j, i).)",
    ),
)
