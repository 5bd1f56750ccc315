"""Task 01.dot: the innermost loop, one element of the product."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.rules import CountsOperations, NoOperator, OnlyImports
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.python_loops.shared import exact_sum, rows


def dot(row: list[float], col: list[float]) -> float:
    """Return the sum of the products of the pairs in (row, col)."""
    return exact_sum(a * b for a, b in zip(row, col, strict=True))


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    for K in (2, 3, 1, 7, 7, 31):  # one length comes twice, with other numbers
        row, col = rows(rng, 2, K, decimals=2 if K < 7 else 17)
        yield Case((row, col), f"two lists of {K}")
    yield Case(([], []), "two empty lists: an empty sum is 0")
    yield Case(([2.5, 0.0], [1.5, math.inf]), "a 0 that meets inf: 0 * inf is NaN")
    yield Case(([math.inf, 2.5], [0.0, 1.5]), "inf that meets a 0: inf * 0 is NaN")


TASK = Task(
    id="01.dot",
    title="For pair in (row, col)",
    kind="complete",
    points=1,
    difficulty=1,
    minutes=5,
    good_for="the innermost loop, the one that takes all the time",
    entry="dot",
    cases=_vectors,
    reference=dot,
    comparison=close(rtol=1e-12, atol=1e-12),
    rules=(OnlyImports(), NoOperator("@")),
    counts=CountsOperations(
        multiplications=lambda row, col: len(row), wanted="one multiplication for each pair"
    ),
    lookalikes=(
        Lookalike(
            "Only the last pair is in the result: add to the total (+=) instead of replacing it.",
            lambda row, col: row[-1] * col[-1] if len(row) > 1 else None,
        ),
        Lookalike(
            "Only the first pair is in the result: does the function return inside the loop?",
            lambda row, col: row[0] * col[0] if len(row) > 1 else None,
        ),
        Lookalike("The pairs are added; they have to be multiplied.", lambda row, col: sum(row) + sum(col)),
        Lookalike(
            "The products are multiplied with each other; they have to be added up.",
            lambda row, col: math.prod(row) * math.prod(col),
        ),
        Lookalike("The total stays 0: is anything added to it?", lambda row, col: 0.0),
        Lookalike(
            "Where a factor is 0 you skip the product, but 0 * inf is NaN: the definition has no exception.",
            lambda row, col: 3.75 if math.inf in row + col else None,
        ),
    ),
    hints=(
        "What happens to one pair (a, b), and where does the result of it go?",
        "Multiply the two numbers of the pair and add the product to the running total.",
        "total += a * b",
    ),
)
