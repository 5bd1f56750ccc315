"""Task 04.edge: tiles of four rows, and what goes wrong where fewer are left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.cache_and_simd.shared import LOOPS_ONLY, zero_meets_inf
from course_lib.grading.tasks.compiled_loops.shared import PRODUCT_SLIPS, all_inputs, pair, product


def _inputs(rng: np.random.Generator) -> Iterator[Case]:
    yield from all_inputs(rng)
    for M in (4, 8):
        yield Case(pair(rng, M, 5, 7), f"float64, {M} rows: whole tiles and no rest", guard=True)
    yield Case(zero_meets_inf(rng, 9), "0 meets inf in every row, from either side: NaN", guard=True)
    yield Case(pair(rng, 5, 3, 0), "float64, a tile and a row left over, but no columns", guard=True)


def _counted_twice(got, A, B) -> bool:
    """Whether rows at the end are twice what they should be."""
    want = product(A, B)
    twice = (abs(got - 2 * want) <= 1e-3 * abs(want)).all(axis=1) & want.any(axis=1)
    return bool(twice.any())


TASK = Task(
    id="04.edge",
    title="The last tile",
    kind="debug",
    points=3,
    difficulty=3,
    minutes=20,
    good_for="the place where fast kernels are wrong: the edge",
    entry="repaired",
    cases=_inputs,
    reference=product,
    comparison=close_product(),
    rules=LOOPS_ONLY,
    lookalikes=(
        Lookalike(
            "Some rows are twice what they should be: they lie in two tiles, and both add.",
            fits=_counted_twice,
        ),
        *PRODUCT_SLIPS,
    ),
    hints=(
        "Take M = 6: which rows does the first tile compute, which the second? And M = 3: what is M - 4?",
        "Rows 2 and 3 are in both tiles, and each adds. With fewer than four rows, i is negative: the tile "
        "begins before the matrix, and Python's meaning of -1 even makes that look harmless.",
        "Tiles only in range(0, M - 3, 4), stored with = ; then `for i in range(M // 4 * 4, M)` one row at a "
        "time.",
    ),
)
