"""Task 04.pack: a piece of B laid out as the micro-kernel reads it, with zeros behind the edge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.cache_and_simd.shared import LOOPS_ONLY
from course_lib.grading.tasks.compiled_loops.shared import matrix


def pack(B: np.ndarray, k0: int, j0: int, depth: int, NR: int) -> np.ndarray:
    """Return rows k0 … k0 + depth - 1, columns j0 … j0 + NR - 1 of B one behind the other; zeros behind B."""
    panel = np.zeros((depth, NR), B.dtype)
    columns = min(NR, B.shape[1] - j0)
    panel[:, :columns] = B[k0 : k0 + depth, j0 : j0 + columns]
    return panel.reshape(-1)


def _panels(rng: np.random.Generator) -> Iterator[Case]:
    B = matrix(rng, 9, 20)
    yield Case((B, 0, 0, 9, 4), "float64, the first panel, 4 columns", guard=True)
    yield Case((B, 3, 8, 5, 4), "float64, from row 3 and column 8 on", guard=True)
    yield Case((B, 2, 16, 7, 8), "float64, 8 columns wanted, 4 left", guard=True)
    yield Case((B, 0, 19, 9, 16), "float64, 16 columns wanted, one left", guard=True)
    yield Case((B, 4, 5, 0, 4), "no rows", guard=True)
    yield Case((matrix(rng, 11, 37, "float32"), 1, 32, 10, 16), "float32, 16 wanted, 5 left", guard=True)
    wide = matrix(rng, 14, 50)
    yield Case((wide[::2, ::3], 2, 12, 5, 8), "a view: every 2nd row and 3rd column", guard=True)
    yield Case((matrix(rng, 13, 7).T, 1, 8, 5, 6), "a transposed view, 6 wanted, 5 left", guard=True)
    k0, depth, NR = (int(n) for n in rng.integers((0, 2, 3), (5, 9, 13)))
    j0, left = NR * int(rng.integers(1, 4)), int(rng.integers(1, NR))
    label = f"row {k0}, column {j0}: {NR} columns wanted, {left} left"
    yield Case((matrix(rng, k0 + depth + 2, j0 + left), k0, j0, depth, NR), label, guard=True)
    with_nan = matrix(rng, 6, 10)
    with_nan[2, 9], with_nan[0, 8] = np.nan, np.inf
    yield Case(
        (with_nan, 0, 8, 6, 4), "NaN and inf: they are copied, and what is behind them is 0", guard=True
    )


def _shifted(B, k0, j0, depth, NR, width):
    """Return a panel whose rows are `width` numbers long, cut or filled with zeros to depth * NR."""
    rows = pack(B, k0, j0, depth, NR).reshape(depth, NR)[:, :width].reshape(-1)
    return np.concatenate([rows, np.zeros(depth * NR - len(rows), B.dtype)])


def _transposed(B, k0, j0, depth, NR):
    return pack(B, k0, j0, depth, NR).reshape(depth, NR).T.reshape(-1)


TASK = Task(
    id="04.pack",
    title="Pack a panel",
    kind="write",
    points=2,
    difficulty=2,
    minutes=15,
    good_for="a micro-kernel that never has to ask where it is",
    entry="pack",
    cases=_panels,
    reference=pack,
    comparison=exact(),
    rules=LOOPS_ONLY,
    lookalikes=(
        Lookalike(
            "The panel runs down the columns: the NR numbers of one row k must lie side by side.",
            lambda B, k0, j0, depth, NR: _transposed(B, k0, j0, depth, NR),
        ),
        Lookalike(
            "At the edge your rows are shorter: row k begins at k * NR, however many columns are left.",
            lambda B, k0, j0, depth, NR: _shifted(B, k0, j0, depth, NR, min(NR, B.shape[1] - j0)),
        ),
        Lookalike(
            "That is the panel from row 0 on: begin at row k0.",
            lambda B, k0, j0, depth, NR: pack(B, 0, j0, depth, NR) if k0 else None,
        ),
        Lookalike(
            "That is the panel from column 0 on: begin at column j0.",
            lambda B, k0, j0, depth, NR: pack(B, k0, 0, depth, NR) if j0 else None,
        ),
    ),
    hints=(
        "Where in the panel does the number of row k and column c (both counted inside the panel) lie?",
        "At k * NR + c. Make depth * NR zeros first; then copy only the columns that B still has.",
        "panel = np.zeros(depth * NR, B.dtype); columns = min(NR, B.shape[1] - j0); "
        "panel[k * NR + c] = B[k0 + k, j0 + c] for c in range(columns).",
    ),
)
