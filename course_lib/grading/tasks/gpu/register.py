"""Task 06.register: a thread computes two elements of C, and a number of B serves both from a register."""

from __future__ import annotations

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.launch import Launch
from course_lib.grading.limits import BusiestWarp, SectorsPerRequest, SharedRequests, WavefrontsPerRequest
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Task
from course_lib.grading.tasks.gpu import matmul
from course_lib.grading.tasks.gpu.matmul import READS, REQUEST, SIDE, SLIPS, shapes, steps
from course_lib.grading.tasks.gpu.shared import WARP, pieces

ROWS = 8  # of threads in a block: half of the tile's
WARPS = SIDE * ROWS // WARP


def product(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return A @ B (M, N) for A (M, K), B (K, N), summed in float64, as float32."""
    return matmul.product(A, B, C)


def most_requests(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> int:
    """Return the requests to shared memory with a register tile of two rows.

    In each step a warp (of four) stores 2 + 2 times to fill the tiles, or twice as often if it writes zeros
    first, and then loads, for each of 16 k, one number of B and two of A: 4 * (8 + 16 * 3) = 224 for 4 * 32
    FMA instructions. Without the register it loads four numbers for two FMAs: 272 and more. A number that
    comes from another lane by a shuffle counts as one that is loaded.
    """
    return WARPS * (2 * 2 * SIDE // ROWS + SIDE * 3) * steps(A, B, C)


LIMITS = (
    SectorsPerRequest(REQUEST),
    READS,
    WavefrontsPerRequest(1),
    SharedRequests(
        most_requests,
        "for two FMAs three loads (or shuffles), two of A's tile and one of B's",
    ),
    BusiestWarp(
        lambda A, B, C: 72 * pieces(A.shape[1], SIDE) + 4,
        "56 for each step do, if all four warps of a block fill the tiles and multiply",
    ),
)


TASK = Task(
    id="06.register",
    title="Two for one",
    kind="fast",
    points=2,
    difficulty=4,
    minutes=15,
    good_for="raising FMAs per load once more, the step that each kernel higher up the ladder repeats",
    entry="two_rows",
    cases=shapes,
    reference=product,
    comparison=close_product(),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda A, B, C: (pieces(B.shape[1], SIDE), pieces(A.shape[0], SIDE)),
        block=lambda A, B, C: (SIDE, ROWS),
        result=2,
        limits=LIMITS,
    ),
    lookalikes=SLIPS,
    hints=(
        "A thread has C[i, j] and C[i + 8, j]. Which numbers do their sums share at step k?",
        "B[k, j]. Read it from the tile into a variable and use it twice. With half the threads each fills "
        "two places of each tile: rows r and r + 8, with guards of their own. So has C.",
        "of_b = b[k, c]; low += a[r, k] * of_b; high += a[r + 8, k] * of_b. At the end store low if i < M "
        "and high if i + 8 < M (and j < N).",
    ),
)
