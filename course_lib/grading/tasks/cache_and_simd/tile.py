"""Task 04.tile: four rows of C in local variables, so that a number of B is read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.cache_and_simd.shared import LOOPS_ONLY, ReadOnce, zero_meets_inf
from course_lib.grading.tasks.compiled_loops.shared import PRODUCT_SLIPS, pair, product


def tile(A: np.ndarray, panel: np.ndarray) -> np.ndarray:
    """Return A (4, K) times the panel (K, NR), in the dtype of A."""
    return product(A, panel)


def _tiles(rng: np.random.Generator) -> Iterator[Case]:
    for K, NR, dtype in ((3, 8, "float64"), (1, 1, "float64"), (7, 5, "float64"), (16, 16, "float32")):
        yield Case(pair(rng, 4, K, NR, dtype), f"{dtype}, K = {K}, NR = {NR}", guard=True)
    yield Case(pair(rng, 4, 0, 6), "K = 0: an empty sum is 0", guard=True)
    K, NR = (int(n) for n in rng.integers(20, 60, 2))
    yield Case(pair(rng, 4, K, NR, "float32"), f"float32, K = {K}, NR = {NR}", guard=True)
    yield Case(pair(rng, 4, 4, 9), "K = 4: the panel is as large as the result", guard=True)
    yield Case(zero_meets_inf(rng, 4), "0 meets inf in every row, from either side: NaN", guard=True)
    A, panel = pair(rng, 8, 9, 12)
    yield Case((A[::2, :], panel[:, ::2]), "views: every 2nd row, every 2nd column", guard=True)
    yield Case(pair(rng, 4, 3, 0), "NR = 0: no columns, and none to store", guard=True)


TASK = Task(
    id="04.tile",
    title="Four rows at once",
    kind="complete",
    points=2,
    difficulty=2,
    minutes=15,
    good_for="the heart of every fast matrix product: load once, use several times",
    entry="tile",
    cases=_tiles,
    reference=tile,
    comparison=close_product(),
    rules=(*LOOPS_ONLY, ReadOnce("panel", loops=2)),
    lookalikes=(
        Lookalike(
            "One row of the tile is wrong and the others are right: look at its index and its local sum.",
            fits=lambda got, A, panel: _wrong_rows(got, A, panel) == 1,
        ),
        *PRODUCT_SLIPS,
    ),
    hints=(
        "For one k and one j: which number do all four rows need, and which four do they not share?",
        "Read panel[k, j] once into a local b. Row r adds A[r, k] * b to its own local sum.",
        "b = panel[k, j]; c0 += A[0, k] * b; c1 += A[1, k] * b; … and after the loop over k: "
        "C[0, j], C[1, j], C[2, j], C[3, j] = c0, c1, c2, c3",
    ),
)


def _wrong_rows(got: np.ndarray, A: np.ndarray, panel: np.ndarray) -> int:
    want = product(A, panel)
    with np.errstate(invalid="ignore"):
        return int((~np.isclose(got, want, rtol=1e-3, equal_nan=True)).any(axis=1).sum())
