"""Task 06.barrier: a kernel that lacks two barriers, and is right in lockstep all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.launch import Launch
from course_lib.grading.limits import Barriers, BusiestWarp, TotalSectors
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.gpu.shared import WARP, numbers, pieces, row_sectors, unwritten

THREADS, BLOCKS = 64, 2
WARPS = THREADS // WARP


def repaired(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return X (M, N) float32, N at most 64, less the largest number of each row."""
    return X - X.max(axis=1, keepdims=True)


def _rows(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, said in (
        (7, 50, "the last threads have no column"),
        (5, 64, "a column for every thread"),
        (4, 33, "one column more than a warp"),
        (1, 64, "one row"),
        (3, 1, "one column"),
        (int(rng.integers(6, 12)), int(rng.integers(34, 64)), "any size"),
    ):
        X = numbers(rng, M, N) - np.float32(6)  # nothing above 0: a maximum must not begin there
        for i, j in ((M // 2, min(1, N - 1)), (0, 0), (-1, -1)):  # it may be a row's first, second or last
            X[i, j] = -rng.uniform(0.5, 1)
        yield Case((X, unwritten(M, N)), f"X {M} x {N}, two blocks of 64 threads: {said}")


#: Two barriers for each row, both warps. X is read once into shared memory and, if you like, once more; Y is
#: written once: three times the sectors of the rows. Y as a notepad for what all threads read costs N more.
LIMITS = (
    TotalSectors(
        lambda X, Y: 3 * row_sectors(*X.shape),
        "the block reads its row of X from global memory once or twice and writes that of Y once; the other "
        "reads go to shared memory",
    ),
    Barriers(
        lambda X, Y: 2 * WARPS * X.shape[0],
        "two barriers for each row (one, with two buffers), and both warps come to each",
        least=lambda X, Y: WARPS * X.shape[0],
    ),
    BusiestWarp(
        lambda X, Y: (X.shape[1] + 16) * pieces(X.shape[0], BLOCKS),
        "one for each number of a row, and a few more, if the two blocks share the rows",
    ),
)

TASK = Task(
    id="06.barrier",
    title="Right in lockstep, wrong on a GPU",
    kind="debug",
    points=3,
    difficulty=3,
    minutes=15,
    good_for="finding races by asking who wrote last, as a right result proves nothing",
    entry="repaired",
    cases=_rows,
    reference=repaired,
    comparison=exact(),
    rules=(KernelOnly(),),
    launch=Launch(grid=lambda X, Y: (BLOCKS,), block=lambda X, Y: (THREADS,), result=1, limits=LIMITS),
    lookalikes=(
        Lookalike("That is X itself: the largest of each row is not taken off.", lambda X, Y: X),
        Lookalike(
            "You take off the row's first number: is the largest looked for behind it?",
            lambda X, Y: X - X[:, :1],
        ),
    ),
    hints=(
        "Thread 40 reads `row[0]`. Which thread wrote it, in which warp, and what makes thread 40 wait for "
        "it? And who still reads while a fast warp begins the next row?",
        "One barrier between writing `row` and reading it, one between reading it and the next turn's "
        "writing. All threads must come to a barrier, also those without a column: it cannot stand inside "
        "`if j < X.shape[1]`.",
        "Part the `if` in two: write under the first; cuda.syncthreads(); search and store under the second; "
        "at the end of the loop's body cuda.syncthreads() again.",
    ),
)
