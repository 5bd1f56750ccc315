"""Task 06.coalesce: bands of numbers, good for the threads of a CPU, cost a warp eight times the sectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.launch import Launch
from course_lib.grading.limits import BusiestWarp, SectorsPerRequest, TotalSectors
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.gpu.shared import ALIGNED, PER_SECTOR, numbers, pieces, unwritten

BLOCKS, THREADS = 2, 64
GRID = BLOCKS * THREADS


def coalesced(alpha: float, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return alpha * x + y for x and y (n,), float32."""
    return (alpha * x.astype(np.float64) + y).astype(np.float32)


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    for n in (1000, 1, 127, 128, 129, 1024, int(rng.integers(1500, 2500))):
        args = (float(rng.uniform(2, 3)), numbers(rng, n), numbers(rng, n), unwritten(n))
        yield Case(args, f"{n} numbers, two blocks of 64 threads")


#: Pieces of 32 numbers that begin with number 0, 32, 64 … begin with a sector: 4 sectors, and in all each
#: sector of x, y and out once. In one turn the whole grid does 128 numbers; a turn more
#: for those that give a thread two at a time.
LIMITS = (
    BusiestWarp(
        lambda alpha, x, y, out: 3 * (pieces(len(x), GRID) + 1),
        "the four warps of the grid share the numbers, three requests for 32 of them",
    ),
    SectorsPerRequest(ALIGNED),
    TotalSectors(
        lambda alpha, x, y, out: 3 * pieces(len(x), PER_SECTOR), "every sector of x, y and out once"
    ),
)

TASK = Task(
    id="06.coalesce",
    title="Eight times too much",
    kind="fast",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="unlearning the bands of circle 5: on a GPU neighbours in memory belong to neighbours in a warp",
    entry="coalesced",
    cases=_vectors,
    reference=coalesced,
    comparison=close(rtol=1e-5, atol=1e-5),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda alpha, x, y, out: (BLOCKS,),
        block=lambda alpha, x, y, out: (THREADS,),
        result=3,
        limits=LIMITS,
    ),
    lookalikes=(
        Lookalike(
            "One number for each thread is done. There are more numbers than threads: each goes on to "
            "others.",
            fits=lambda got, alpha, x, y, out: len(x) > GRID and bool(np.isnan(got[GRID:]).all()),
        ),
        Lookalike("alpha multiplies y too; it belongs to x alone.", lambda a, x, y, out: a * (x + y)),
        Lookalike("x and y have changed places.", lambda a, x, y, out: a * y + x),
    ),
    hints=(
        "In one turn of the loop lanes 0, 1, 2 … of a warp read x[0], x[8], x[16] … How many sectors is "
        "that, and which 32 numbers would be four?",
        "Let the threads take turns: in the first turn thread t of the whole grid takes number t, in the "
        "next one the grid steps on by as many numbers as it has threads (a grid-stride loop).",
        "The loop's range begins at cuda.grid(1), ends at len(x), and its step is cuda.gridsize(1).",
    ),
)
