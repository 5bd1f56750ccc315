"""Task 04.tile: four rows of C in local variables, so that a number of B is read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.task import Case, Lookalike, Mutant, Task
from course_lib.grading.tasks.cache_and_simd.shared import LOOPS_ONLY, ReadOnce, zero_meets_inf
from course_lib.grading.tasks.compiled_loops.shared import HEAD, PRODUCT_SLIPS, pair, product


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


_GIVEN = """\
@njit(fastmath={"contract", "reassoc"})
def tile(A, panel):  # (4, K), (K, NR) -> (4, NR)
    K, NR = panel.shape
    C = np.empty((4, NR), A.dtype)
    for j in range(NR):
        c0 = c1 = c2 = c3 = A.dtype.type(0)
        for k in range(K):
"""
_BODY = """\
            b = panel[k, j]
            c0 += A[0, k] * b
            c1 += A[1, k] * b
            c2 += A[2, k] * b
            c3 += A[3, k] * b
        C[0, j], C[1, j], C[2, j], C[3, j] = c0, c1, c2, c3
    return C
"""


def _answer(*changes: tuple[str, str]) -> str:
    text = HEAD + _GIVEN.replace("A.dtype.type(0)", "0.0") + _BODY
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


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
    mutants=(
        Mutant(
            "reads B for each row",
            _answer(("            b = panel[k, j]\n", ""), (" * b", " * panel[k, j]")),
            ("one element of panel[...] in several places", "read the number once"),
        ),
        Mutant(
            "a loop over the rows",
            HEAD
            + """\
@njit
def tile(A, panel):
    C = np.zeros((4, panel.shape[1]), A.dtype)
    for i in range(4):
        for k in range(len(panel)):
            for j in range(panel.shape[1]):
                C[i, j] += A[i, k] * panel[k, j]
    return C
""",
            ("under 3 loops", "Write the four rows out"),
        ),
        Mutant(
            "two loops in one",
            HEAD
            + """\
@njit
def tile(A, panel):
    C = np.zeros((4, panel.shape[1]), A.dtype)
    for i, j in np.ndindex(4, panel.shape[1]):
        for k in range(len(panel)):
            C[i, j] += A[i, k] * panel[k, j]
    return C
""",
            ("under 3 loops",),
        ),
        Mutant(
            "a column of the panel for each row",
            HEAD
            + """\
@njit
def tile(A, panel):
    C = np.zeros((4, panel.shape[1]), A.dtype)
    for i in range(4):
        for j in range(panel.shape[1]):
            column = panel[:, j]
            for k in range(len(column)):
                C[i, j] += A[i, k] * column[k]
    return C
""",
            ("uses panel in another way",),
        ),
        Mutant(
            "a function of its own, for each row",
            HEAD
            + """\
@njit
def add(A, i, B, j, k, c):
    return c + A[i, k] * B[k, j]


@njit
def tile(A, panel):
    C = np.zeros((4, panel.shape[1]), A.dtype)
    for i in range(4):
        for j in range(panel.shape[1]):
            for k in range(len(panel)):
                C[i, j] = add(A, i, panel, j, k, C[i, j])
    return C
""",
            ("under 3 loops",),
        ),
        Mutant(
            "another name for the panel",
            _answer(
                ("    K, NR = panel.shape\n", "    K, NR = panel.shape\n    p = panel\n"),
                ("            b = panel[k, j]\n", ""),
                (" * b", " * p[k, j]"),
            ),
            ("uses panel in another way",),
        ),
        Mutant(
            "another name for the parameter",
            _answer(("panel", "B"), ("b = B[k, j]\n            ", ""), (" * b", " * B[k, j]")),
            ("keep the parameters",),
        ),
        Mutant("a row twice", _answer(("A[3, k]", "A[2, k]")), ("One row of the tile is wrong",)),
        Mutant(
            "replaces instead of adding", _answer((" += ", " = ")), ("Only the last product of every sum",)
        ),
        Mutant(
            "stores too few rows",
            _answer(("C[2, j], C[3, j] = c0, c1, c2, c3", "C[2, j] = c0, c1, c2")),
            ("never written",),
        ),
        Mutant("first product missing", _answer(("range(K)", "range(1, K)")), ("first product",)),
        Mutant(
            "sums carried on",
            _answer(
                (
                    "    for j in range(NR):\n        c0 = c1 = c2 = c3 = 0.0\n",
                    "    c0 = c1 = c2 = c3 = 0.0\n    for j in range(NR):\n",
                ),
            ),
            ("wrong",),
        ),
        Mutant(
            "always float64",
            _answer(("np.empty((4, NR), A.dtype)", "np.empty((4, NR))")),
            ("dtype is float64",),
        ),
        Mutant("full fastmath", _answer(('{"contract", "reassoc"}', "True")), ("fastmath=True",)),
    ),
)


def _wrong_rows(got: np.ndarray, A: np.ndarray, panel: np.ndarray) -> int:
    want = product(A, panel)
    with np.errstate(invalid="ignore"):
        return int((~np.isclose(got, want, rtol=1e-3, equal_nan=True)).any(axis=1).sum())
