"""Task 06.index: which element is a thread's, where the grid does not divide the matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.launch import Launch
from course_lib.grading.limits import BusiestWarp, SectorsPerRequest, TotalSectors
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Mutant, Task
from course_lib.grading.tasks.gpu.shared import (
    ANYWHERE,
    exact_sectors,
    kernel,
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


def _answer(where: str, leave: str, does: str = "C[i, j] = alpha * A[i, j] + b[j]") -> str:
    lines = [*where.split("; "), leave and f"if {leave}:\n            return", does]
    body = "\n        ".join(line for line in lines if line)
    return kernel(f"""
    @cuda.jit
    def add_row(alpha, A, b, C):
        {body}
""")


_WHERE = (
    "i = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y; "
    "j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x"
)
_LEAVE = "i >= C.shape[0] or j >= C.shape[1]"

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
    mutants=(
        Mutant("no guard", _answer(_WHERE, ""), ("Outside of the array",)),
        Mutant("one too many", _answer(_WHERE, _LEAVE.replace(">=", ">")), ("Outside of the array",)),
        Mutant(
            "and instead of or", _answer(_WHERE, _LEAVE.replace(" or ", " and ")), ("Outside of the array",)
        ),
        Mutant("x is the row", _answer("i, j = cuda.grid(2)", _LEAVE), ("sectors",)),
        Mutant(
            "thread index alone",
            _answer("i = cuda.threadIdx.y; j = cuda.threadIdx.x", _LEAVE),
            ("No thread wrote",),
        ),
        Mutant(
            "size of the grid instead of the block",
            _answer(_WHERE.replace("blockDim", "gridDim"), _LEAVE),
            ("No thread wrote",),
        ),
        Mutant(
            "shape swapped", _answer(_WHERE, "i >= C.shape[1] or j >= C.shape[0]"), ("Outside of the array",)
        ),
        Mutant(
            "row of b",
            _answer(_WHERE, _LEAVE, "C[i, j] = alpha * A[i, j] + b[i]"),
            ("instead of the whole b",),
        ),
        Mutant(
            "alpha times both",
            _answer(_WHERE, _LEAVE, "C[i, j] = alpha * (A[i, j] + b[j])"),
            ("multiplied by alpha too",),
        ),
        Mutant(
            "one thread does it all",
            kernel("""
                @cuda.jit
                def add_row(alpha, A, b, C):
                    j, i = cuda.grid(2)
                    if i == 0 and j == 0:
                        for row in range(C.shape[0]):
                            for column in range(C.shape[1]):
                                C[row, column] = alpha * A[row, column] + b[column]
            """),
            ("sectors",),
        ),
        Mutant(
            "one warp does all",
            kernel("""
                @cuda.jit
                def add_row(alpha, A, b, C):
                    if cuda.blockIdx.x == 0 and cuda.blockIdx.y == 0 and cuda.threadIdx.y == 0:
                        for i in range(C.shape[0]):
                            for j in range(cuda.threadIdx.x, C.shape[1], 32):
                                C[i, j] = alpha * A[i, j] + b[j]
            """),
            ("if each thread has one element",),
        ),
    ),
)
