"""Small tasks whose answers are kernels, with right answers, for the tests of the way they are graded."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from grading_tools import notebook_of

from course_lib.grading import registry
from course_lib.grading.classroom.assignment import Item
from course_lib.grading.classroom.verdict import SubmissionJob, judged
from course_lib.grading.compare import Values
from course_lib.grading.launch import Launch, SectorsPerRequest, WavefrontsPerRequest
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox
from course_lib.grading.task import Case, Task, source

Array = np.ndarray
TILE, BLOCK = 32, 128

TURNED = source("""
    from numba import cuda, float32

    TILE = 32
    SHAPE = (TILE, TILE + 1)

    @cuda.jit
    def turned(A, out):                        # A (M, N) -> out (N, M)
        tile = cuda.shared.array(SHAPE, float32)
        i, j = cuda.grid(2)
        if i < A.shape[1] and j < A.shape[0]:
            tile[cuda.threadIdx.y, cuda.threadIdx.x] = A[j, i]
        cuda.syncthreads()
        row = cuda.blockIdx.x * TILE + cuda.threadIdx.y
        column = cuda.blockIdx.y * TILE + cuda.threadIdx.x
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = tile[cuda.threadIdx.x, cuda.threadIdx.y]
""")
SCALED = source("""
    from numba import cuda

    FACTOR = 3


    @cuda.jit(device=True)
    def times(x):
        return FACTOR * x


    @cuda.jit
    def scaled(x, y):                          # x, y (n,)
        i = cuda.grid(1)
        if i < x.shape[0]:
            y[i] = times(x[i])
""")


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    for rows, columns in ((1, 1), (5, 37), (64, 32), (33, 70)):
        A = rng.standard_normal((rows, columns)).astype(np.float32)
        yield Case((A, np.full((columns, rows), np.nan, np.float32)), f"{rows} x {columns}")


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    for size in (1, 100, 128, int(rng.integers(300, 400))):
        x = rng.standard_normal(size).astype(np.float32)
        yield Case((x, np.full(size, np.nan, np.float32)), f"{size} numbers")


def _turned(A: Array, out: Array) -> Array:
    return np.ascontiguousarray(A.T)


def _scaled(x: Array, y: Array) -> Array:
    return np.float32(3) * x


def _exactly(want: Array, args: tuple) -> float:
    return 0.0


TURN = Task(
    id="99.turned",
    title="Transpose through shared memory",
    minutes=20,
    entry="turned",
    cases=_matrices,
    reference=_turned,
    comparison=Values(_exactly),
    hints=(
        "Which threads are neighbours?",
        "Turn a tile in shared memory.",
        "tile[threadIdx.x, threadIdx.y]",
    ),
    lookalikes={
        "It is 0 everywhere.": lambda A, out: np.zeros_like(out),
    },
    launch=Launch(
        grid=lambda A, out: (-(-A.shape[1] // TILE), -(-A.shape[0] // TILE)),
        block=(TILE, TILE),
        limits=(SectorsPerRequest(8), WavefrontsPerRequest(1)),
    ),
)
SCALE = Task(
    id="99.scaled",
    title="Three times a vector",
    points=1,
    difficulty=1,
    minutes=5,
    entry="scaled",
    cases=_vectors,
    reference=_scaled,
    comparison=Values(_exactly),
    hints=("Which thread?", "The grid's.", "i = cuda.grid(1)"),
    launch=Launch(
        grid=lambda x, y: (-(-x.size // BLOCK),),
        block=(BLOCK,),
        limits=(SectorsPerRequest(4),),
    ),
)
RIGHT = {TURN.id: TURNED, SCALE.id: SCALED}
#: Typical wrong answers, each with words of its report.
WRONG = {
    TURN.id: {
        TURNED.replace("    cuda.syncthreads()\n", ""): "no barrier is between them",
        TURNED.replace("TILE + 1", "TILE"): "wavefronts",
        TURNED.replace("tile[cuda.threadIdx.x, cuda.threadIdx.y]", "0.0"): "0 everywhere",
    },
    SCALE.id: {
        SCALED.replace("if i < x.shape[0]:", "if True:"): "Outside of the array",
        SCALED.replace("x.shape[0]", "x.shape[0] - 1"): "No thread wrote",
        SCALED.replace("FACTOR = 3", "FACTOR = 2"): "Yours is",
    },
}
TASKS = (TURN, SCALE)
CHAPTER = "99"


SEED = 4711  # of the secret inputs
ITEMS = tuple(Item(task.id, task.entry, f"{task.id}-points", task.points) for task in TASKS)
LIMITS = AnswerLimits(call_s=4, task_s=60, memory_mb=700, disk_mb=16, processes=16)


def graded(*texts: str, limits: AnswerLimits = LIMITS) -> dict:
    """Return the verdict on a notebook of these cells."""
    data = notebook_of(*texts)
    return judged(SubmissionJob("short", "ada", ITEMS, data, "short.ipynb", (), SEED, Sandbox(limits=limits)))


def declare(patch) -> None:
    """Have the registry know the tasks, as a chapter of their own."""
    real = registry._module
    patch.setitem(registry.CHAPTERS, CHAPTER, "kernel_examples")
    patch.setattr(registry, "_module", lambda one: sys.modules[__name__] if one == CHAPTER else real(one))
