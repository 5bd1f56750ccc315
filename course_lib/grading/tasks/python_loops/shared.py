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


def rows(rng: np.random.Generator, M: int, N: int, decimals: int = 17) -> Rows:
    """Return M rows of N random floats, none of them 0, in no order that a mistake could keep."""
    return (rng.uniform(0.5, 2.0, (M, N)) * rng.choice([-1.0, 1.0], (M, N))).round(decimals).tolist()


def pair(rng: np.random.Generator, M: int, K: int, N: int, decimals: int = 17) -> tuple[Rows, Rows]:
    """Return A (M, K) and B (K, N)."""
    return rows(rng, M, K, decimals), rows(rng, K, N, decimals)


def sizes(rng: np.random.Generator, low: int, high: int) -> tuple[int, int, int]:
    """Return three different sizes from low to high - 1, in random order."""
    M, K, N = (int(n) for n in rng.choice(np.arange(low, high), 3, replace=False))
    return M, K, N


def product_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield square, rectangular, thin and empty matrices, small ones first, and one that is larger."""
    wide, tall = sorted(sizes(rng, 2, 6)), sorted(sizes(rng, 2, 6))  # M < N, then M > N
    small = ((3, 3, 3), tuple(wide), (1, wide[2], 1), (tall[2], 1, tall[0]), (1, 1, 1))
    for M, K, N in small:  # short enough for a report: few digits
        yield Case(pair(rng, M, K, N, decimals=2), f"A {M} x {K}, B {K} x {N}")
    yield Case(([], rows(rng, 3, 2)), "A without rows, B 3 x 2: the result has no rows")
    yield Case((rows(rng, 3, 2), [[], []]), "A 3 x 2, B 2 x 0: the result has three empty rows")
    for M, K, N in (sizes(rng, 5, 12), sizes(rng, 24, 41)):
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
    Lookalike(
        "After the first row all is 0: does the function return inside a loop?",
        fits=lambda got, A, B: len(got) > 1 and any(got[0]) and not any(map(any, got[1:])),
    ),
)
