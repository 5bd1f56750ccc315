"""What several tasks of chapter 04 use, on top of what chapter 02 has: the products, inputs and rules."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import numpy as np

from course_lib.grading.program import Program
from course_lib.grading.rules import (
    PRODUCTS,
    WHOLE_ARRAY,
    FastmathOnly,
    MustBeCompiled,
    NoCalls,
    NoOperator,
    OnlyImports,
)
from course_lib.grading.tasks.compiled_loops.shared import pair

#: Compiled loops without a product or a sum from a library.
LOOPS_ONLY = (
    OnlyImports(("numba", "numpy", "math")),
    NoOperator("@"),
    NoCalls(PRODUCTS | WHOLE_ARRAY, "this task is to write the loops yourself"),
    MustBeCompiled(),
    FastmathOnly(),
)


def zero_meets_inf(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return A (rows, 5) and B (5, rows + 3): in each row of A a 0 meets inf, inf a 0, and B holds a NaN."""
    A, B = pair(rng, rows, 5, rows + 3)
    for row in range(rows):
        A[row, 1], A[row, 3] = 0.0, np.inf if row % 2 else -np.inf
    B[1, rows], B[3, rows + 1], B[0, rows + 2] = np.inf, 0.0, np.nan
    return A, B


@dataclass(frozen=True)
class ReadOnce:
    """The answer reads elements of this argument in one place of its text: ReadOnce("B")."""

    name: str

    @property
    def wanted(self) -> str:
        return f"{self.name}[...] read in one place"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence if the name is subscripted for reading in more than one place."""
        found = [
            node
            for node in Program(source, entry).nodes()
            if isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Name)
            and node.value.id == self.name
        ]
        if len(found) <= 1:
            return None
        return (
            f"Your answer reads {self.name}[...] in {len(found)} places: read the number once, keep it in a "
            "local variable, and use it for all rows of the tile. That is what the tile is for."
        )
