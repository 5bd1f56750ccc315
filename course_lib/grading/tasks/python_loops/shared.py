"""What several tasks of chapter 01 use: the product by its definition, random matrices, common slips."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from course_lib.grading.task import Case, Lookalike

Rows = list[list[float]]


def product(A: Rows, B: Rows) -> Rows:
    """Return the product of two lists of lists, exactly as defined, each entry rounded once."""
    return [
        [exact_sum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*B, strict=True)] for row in A
    ]


def exact_sum(terms: Iterable[float]) -> float:
    """Return the sum, rounded once; with NaN or inf among the terms what adding them gives."""
    terms = list(terms)
    return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)


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
    """Yield square, rectangular, thin and empty matrices, small ones first, and some that are larger.

    One size comes twice, with other numbers; one has inf and 0; two have fixed shapes:
    K odd with N above 8, and M far above N.
    """
    wide, tall = sorted(sizes(rng, 2, 6)), sorted(sizes(rng, 2, 6))  # M < N, then M > N
    small = ((3, 3, 3), tuple(wide), (1, wide[2], 1), (tall[2], 1, tall[0]), (1, 1, 1))
    for M, K, N in small:  # short enough for a report: few digits
        yield Case(pair(rng, M, K, N, decimals=2), f"A {M} x {K}, B {K} x {N}")
    yield Case(([], rows(rng, 3, 2)), "A without rows, B 3 x 2: the result has no rows")
    yield Case((rows(rng, 3, 2), [[], []]), "A 3 x 2, B 2 x 0: the result has three empty rows")
    yield Case(_with_inf(rng), "A 3 x 5, B 5 x 6 with inf and 0: 0 * inf is NaN")
    again = sizes(rng, 5, 12)
    for M, K, N in (again, again, (4, 7, 10), (12, 3, 5), sizes(rng, 24, 41)):
        yield Case(pair(rng, M, K, N), f"A {M} x {K}, B {K} x {N}")


def _with_inf(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return matrices in which a 0 of A meets an inf of B and the other way round, in every column."""
    A, B = pair(rng, 3, 5, 6, decimals=2)
    A[0][1], B[1] = 0.0, [math.inf] * 6
    A[1][2], B[2] = math.inf, [0.0] * 6
    return A, B


def _skipping_zeros(A: Rows, B: Rows) -> Rows | None:
    """Return the product that leaves out the terms with a factor 0; None if they make no difference."""
    left = [
        [exact_sum(a * b for a, b in zip(row, col, strict=True) if a and b) for col in zip(*B, strict=True)]
        for row in A
    ]
    return None if str(left) == str(product(A, B)) else left


PRODUCT_SLIPS = (
    Lookalike(
        "Where a factor is 0 you skip the product, but 0 * inf is NaN: the definition has no exception.",
        _skipping_zeros,
    ),
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
