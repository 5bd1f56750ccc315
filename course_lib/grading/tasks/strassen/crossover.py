"""Task 03.crossover: from GFLOP/s and GB/s to the size from which one level pays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task, source

SOLUTION = source("""
    def crossover(gflops, gbps, itemsize, sums):
        flops_saved = 1 / 4
        bytes_moved = sums * 3 * itemsize / 4
        return bytes_moved / gbps * gflops / flops_saved
""")


def crossover(gflops: float, gbps: float, itemsize: int, sums: int) -> float:
    """Return N for which the saved 2 N^3 / 8 operations take as long as the sums of blocks.

    A sum reads two blocks of (N / 2)^2 numbers and writes one, at `gbps`; products run at `gflops`.
    """
    return 3 * sums * itemsize * gflops / gbps


def _machines(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((100.0, 20.0, 4, 18), "100 GFLOP/s, 20 GB/s, float32, Strassen's 18 sums")
    yield Case((100.0, 20.0, 8, 18), "the same machine, float64")
    yield Case((100.0, 20.0, 8, 15), "the same machine, float64, Winograd's 15 sums")
    yield Case((100.0, 20.0, 2, 15), "the same machine, float16, Winograd's 15 sums")
    yield Case((1.0, 20.0, 8, 18), "a slow product: Strassen's own time")
    for _ in range(6):
        gflops, gbps = round(float(rng.uniform(5, 400)), 3), round(float(rng.uniform(4, 300)), 3)
        itemsize, sums = int(rng.choice([2, 4, 8])), int(rng.choice([12, 15, 18]))
        yield Case(
            (gflops, gbps, itemsize, sums), f"{gflops} GFLOP/s, {gbps} GB/s, {itemsize} bytes, {sums} sums"
        )


def _times(factor: float):
    return lambda *args: crossover(*args) * factor


TASK = Task(
    id="03.crossover",
    title="From which size on?",
    kind="predict",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="deciding on paper whether fewer operations can pay on a given machine",
    entry="crossover",
    cases=_machines,
    reference=crossover,
    comparison=close(rtol=1e-9),
    rules=(OnlyImports(("math", "numpy")),),
    lookalikes=(
        Lookalike(
            "A block has (N / 2)^2 numbers, a quarter of the matrix: you count whole matrices.", _times(4)
        ),
        Lookalike("A sum moves three blocks: it reads two and writes one. You count two.", _times(2 / 3)),
        Lookalike("A sum moves three blocks: it reads two and writes one. You count one.", _times(1 / 3)),
        Lookalike(
            "Half of what is saved is missing: a block product has as many additions as multiplications, "
            "2 (N / 2)^3 operations.",
            _times(2),
        ),
        Lookalike(
            "You count all the operations of the product as saved. Of eight block products only one is.",
            _times(1 / 8),
        ),
        Lookalike(
            "The numbers have itemsize bytes each.",
            lambda gflops, gbps, itemsize, sums: crossover(gflops, gbps, 1, sums),
        ),
        Lookalike(
            "The number of sums is an argument: Winograd's variant has fewer.",
            lambda gflops, gbps, itemsize, sums: (
                crossover(gflops, gbps, itemsize, 18) if sums != 18 else None
            ),
        ),
        Lookalike(
            "The rates are swapped: the faster the products are, the less there is to save.",
            lambda gflops, gbps, itemsize, sums: crossover(gbps, gflops, itemsize, sums),
        ),
    ),
    hints=(
        "How many operations does one level save at size N? How many bytes does one sum of blocks move?",
        "Saved: one block product, 2 (N / 2)^3 = N^3 / 4 operations, at gflops. Paid: sums * 3 blocks of "
        "(N / 2)^2 numbers, at gbps. Set the two times equal.",
        "N^3 / 4 / gflops = sums * 3 * itemsize * N^2 / 4 / gbps. Solve for N.",
    ),
)
