"""Task 06.barrier: a kernel that lacks two barriers, and is right in lockstep all the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.launch import Launch
from course_lib.grading.limits import Barriers, BusiestWarp, TotalSectors
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Mutant, Task, source
from course_lib.grading.tasks.gpu.shared import HEAD, WARP, kernel, numbers, pieces, row_sectors, unwritten

THREADS, BLOCKS = 64, 2
WARPS = THREADS // WARP

BROKEN = source("""
    @cuda.jit
    def broken(X, Y):
        row = cuda.shared.array(64, float32)
        j = cuda.threadIdx.x
        for i in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
            if j < X.shape[1]:
                row[j] = X[i, j]
                largest = row[0]
                for k in range(1, X.shape[1]):
                    largest = max(largest, row[k])
                Y[i, j] = row[j] - largest
""")


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


def _body(text: str) -> str:
    return kernel(f"""
        @cuda.jit
        def repaired(X, Y):
            row = cuda.shared.array(64, float32)
            j = cuda.threadIdx.x
            for i in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
{text}
    """)


def _with(after_write: str = "pass", at_end: str = "pass") -> str:
    return _body(f"""
                if j < X.shape[1]:
                    row[j] = X[i, j]
                {after_write}
                if j < X.shape[1]:
                    largest = row[0]
                    for k in range(1, X.shape[1]):
                        largest = max(largest, row[k])
                    Y[i, j] = row[j] - largest
                {at_end}
    """)


_SYNC = "cuda.syncthreads()"

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
    mutants=(
        Mutant(
            "nothing repaired",
            HEAD + BROKEN.replace("broken", "repaired"),
            ("Data race", "no barrier is between them"),
        ),
        Mutant("only the first", _with(after_write=_SYNC), ("Data race", "row[j] = X[i, j]")),
        Mutant("only the second", _with(at_end=_SYNC), ("Data race", "row[k]")),
        Mutant(
            "both inside the if",
            _body(f"""
                if j < X.shape[1]:
                    row[j] = X[i, j]
                    {_SYNC}
                    largest = row[0]
                    for k in range(1, X.shape[1]):
                        largest = max(largest, row[k])
                    Y[i, j] = row[j] - largest
                    {_SYNC}
            """),
            ("A barrier that not every thread reaches",),
        ),
        Mutant(
            "syncwarp instead", _with("cuda.syncwarp()", "cuda.syncwarp()"), ("Data race", "of another warp")
        ),
        Mutant("threadfence instead", _with("cuda.threadfence_block()", _SYNC), ("Data race",)),
        Mutant(
            "a third barrier",
            _with(_SYNC, f"{_SYNC}\n                {_SYNC}"),
            ("two barriers for each row",),
        ),
        Mutant(
            "a barrier for every number",
            _body(f"""
                if j < X.shape[1]:
                    row[j] = X[i, j]
                {_SYNC}
                largest = row[0]
                for k in range(1, X.shape[1]):
                    largest = max(largest, row[k])
                    {_SYNC}
                if j < X.shape[1]:
                    Y[i, j] = row[j] - largest
                {_SYNC}
            """),
            ("two barriers for each row",),
        ),
        Mutant(
            "everything from global memory",
            _body("""
                if j < X.shape[1]:
                    largest = X[i, 0]
                    for k in range(1, X.shape[1]):
                        largest = max(largest, X[i, k])
                    Y[i, j] = X[i, j] - largest
            """),
            ("from global memory once",),
        ),
        Mutant(
            "Y as a notepad",
            _body(f"""
                if j < X.shape[1]:
                    Y[i, j] = X[i, j]
                {_SYNC}
                if j < X.shape[1]:
                    largest = Y[i, 0]
                    for k in range(1, X.shape[1]):
                        largest = max(largest, Y[i, k])
                {_SYNC}
                if j < X.shape[1]:
                    Y[i, j] = X[i, j] - largest
            """),
            ("from global memory once",),
        ),
        Mutant(
            "one lane alone on Y",
            _body("""
                for k in range(j, X.shape[1], 32):
                    if j < 32:
                        Y[i, k] = X[i, k]
                cuda.syncwarp()
                if j == 0:
                    largest = Y[i, 0]
                    for k in range(1, X.shape[1]):
                        largest = max(largest, Y[i, k])
                    for k in range(X.shape[1]):
                        Y[i, k] -= largest
            """),
            ("from global memory once",),
        ),
        Mutant(
            "the first number is left out",
            _with(_SYNC, _SYNC).replace("row[0]", "row[1]"),
            ("wrong",),
        ),
        Mutant(
            "one warp, and syncwarp",
            kernel("""
                @cuda.jit
                def repaired(X, Y):
                    row = cuda.shared.array(64, float32)
                    j = cuda.threadIdx.x
                    if j >= 32:
                        return
                    for i in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):
                        for k in range(j, X.shape[1], 32):
                            row[k] = X[i, k]
                        cuda.syncwarp()
                        largest = row[0]
                        for k in range(1, X.shape[1]):
                            largest = max(largest, row[k])
                        for k in range(j, X.shape[1], 32):
                            Y[i, k] = row[k] - largest
                        cuda.syncwarp()
            """),
            ("0 warps come to a barrier",),
        ),
        Mutant(
            "block 0 has all rows",
            kernel("""
                @cuda.jit
                def repaired(X, Y):
                    row = cuda.shared.array(64, float32)
                    j = cuda.threadIdx.x
                    if cuda.blockIdx.x == 0:
                        for i in range(X.shape[0]):
                            if j < X.shape[1]:
                                row[j] = X[i, j]
                            cuda.syncthreads()
                            if j < X.shape[1]:
                                largest = row[0]
                                for k in range(1, X.shape[1]):
                                    largest = max(largest, row[k])
                                Y[i, j] = row[j] - largest
                            cuda.syncthreads()
            """),
            ("if the two blocks share the rows",),
        ),
    ),
)
