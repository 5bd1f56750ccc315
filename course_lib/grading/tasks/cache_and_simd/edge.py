"""Task 04.edge: tiles of four rows, and what goes wrong where fewer are left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.task import Case, Lookalike, Mutant, Task
from course_lib.grading.tasks.cache_and_simd.shared import LOOPS_ONLY, zero_meets_inf
from course_lib.grading.tasks.compiled_loops.shared import HEAD, PRODUCT_SLIPS, all_inputs, pair, product

BROKEN = (
    HEAD
    + """\
@njit
def broken(A, B):
    M, K = A.shape
    N = B.shape[1]
    C = np.zeros((M, N), A.dtype)
    for start in range(0, M, 4):
        i = min(start, M - 4)  # the last tile moves up until four rows are there
        for j in range(N):
            c0 = c1 = c2 = c3 = 0.0
            for k in range(K):
                b = B[k, j]
                c0 += A[i, k] * b
                c1 += A[i + 1, k] * b
                c2 += A[i + 2, k] * b
                c3 += A[i + 3, k] * b
            C[i, j] += c0
            C[i + 1, j] += c1
            C[i + 2, j] += c2
            C[i + 3, j] += c3
    return C
"""
)
_REPAIRED = BROKEN.replace("broken", "repaired")
_ONCE = _REPAIRED.replace("] += c", "] = c")
_REST = """\
    for i in range({first}, M):
        for j in range(N):
            total = 0.0
            for k in range({K}):
                total += A[i, k] * B[k, j]
            C[i, j] {adds} total
    return C
"""


def _with_rest(
    first: str = "M // 4 * 4", K: str = "K", tiles: str = "range(0, M - 3, 4)", adds: str = "="
) -> str:
    """Return tiles where four rows are left, and single rows for the rest."""
    text = _ONCE.replace("for start in range(0, M, 4):\n", f"for i in {tiles}:\n")
    text = text.replace(
        "        i = min(start, M - 4)  # the last tile moves up until four rows are there\n", ""
    )
    return text.replace("    return C\n", _REST.format(first=first, K=K, adds=adds))


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
    mutants=(
        Mutant("nothing repaired", _REPAIRED, ("twice what they should be",)),
        Mutant("only stored once", _ONCE, ("outside an array",)),
        Mutant(
            "starts at 0",
            _REPAIRED.replace("min(start, M - 4)", "max(min(start, M - 4), 0)"),
            ("outside an array",),
        ),
        Mutant("drops the rest", _with_rest(first="M"), ("wrong",)),
        Mutant("one row too few", _with_rest(first="M // 4 * 4 + 1"), ("wrong",)),
        Mutant("the rest adds twice", _with_rest(first="0", adds="+="), ("twice what they should be",)),
        Mutant("the rest is shorter", _with_rest(K="K - 1"), ("last product",)),
        Mutant("one tile too few", _with_rest(tiles="range(0, M - 4, 4)"), ("wrong",)),
        Mutant("forgets to return", _with_rest().replace("    return C\n", ""), ("is a `return` missing?",)),
    ),
)
