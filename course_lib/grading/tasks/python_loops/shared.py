"""What several tasks of chapter 01 use: the product by its definition, random matrices, common slips."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.grading.task import Case, Lookalike

Rows = list[list[float]]


def product(A: Rows, B: Rows) -> Rows:
    """Return the product of two lists of lists, exactly as defined, each entry rounded once."""
    return [
        [math.fsum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*B, strict=True)] for row in A
    ]


def rows(rng: np.random.Generator, M: int, N: int) -> Rows:
    """Return M rows of N random floats, none of them 0, in no order that a mistake could keep."""
    return (rng.uniform(0.5, 2.0, (M, N)) * rng.choice([-1.0, 1.0], (M, N))).round(2).tolist()


def pair(rng: np.random.Generator, M: int, K: int, N: int) -> tuple[Rows, Rows]:
    """Return A (M, K) and B (K, N)."""
    return rows(rng, M, K), rows(rng, K, N)


def product_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield rectangular, square, thin and empty matrices, small ones first."""
    yield Case(pair(rng, 3, 3, 3), "A 3 x 3, B 3 x 3")
    yield Case(pair(rng, 2, 3, 4), "A 2 x 3, B 3 x 4")
    yield Case(pair(rng, 1, 5, 1), "A 1 x 5, B 5 x 1")
    yield Case(pair(rng, 4, 1, 3), "A 4 x 1, B 1 x 3")
    yield Case(pair(rng, 1, 1, 1), "A 1 x 1, B 1 x 1")
    yield Case(([], rows(rng, 3, 2)), "A without rows, B 3 x 2: the result has no rows")
    yield Case((rows(rng, 3, 2), [[], []]), "A 3 x 2, B 2 x 0: the result has three empty rows")
    M, K, N = (int(n) for n in rng.permutation([5, 7, 11]))
    yield Case(pair(rng, M, K, N), f"A {M} x {K}, B {K} x {N}")


PRODUCT_SLIPS = (
    Lookalike("This is B times A: the operands are swapped.", lambda A, B: product(B, A)),
    Lookalike(
        "This is A times the transpose of B: you multiply rows by rows, but the definition pairs a row of A "
        "with a column of B.",
        lambda A, B: product(A, [list(col) for col in zip(*B, strict=True)]),
    ),
    Lookalike(
        "The first product of every sum is missing: the sum over k begins at 0.",
        lambda A, B: product([row[1:] for row in A], B[1:]),
    ),
    Lookalike(
        "The last product of every sum is missing: the sum over k has K terms.",
        lambda A, B: product([row[:-1] for row in A], B[:-1]),
    ),
    Lookalike(
        "Only the last product of every sum is there: add to the sum (+=) instead of replacing it.",
        lambda A, B: product([row[-1:] for row in A], B[-1:]),
    ),
    Lookalike(
        "Only the first product of every sum is there: does the function return too early?",
        lambda A, B: product([row[:1] for row in A], B[:1]),
    ),
)
