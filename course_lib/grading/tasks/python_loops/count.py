"""Task 01.count: how many operations a product takes, before running it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task


def operations(M: int, K: int, N: int) -> tuple[int, int]:
    """Return (multiplications, additions) of an M x K by K x N product, by the definition."""
    return M * N * K, M * N * max(K - 1, 0)


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    for M, K, N in ((2, 3, 4), (1, 1, 1), (5, 1, 2), (100, 200, 300), (4, 0, 3), (0, 5, 2)):
        yield Case((M, K, N), f"{M} x {K} by {K} x {N}")
    for zero in range(3):  # nothing of something: in every place, in sizes that nobody can know
        M, K, N = (0 if place == zero else int(rng.integers(2, 500)) for place in range(3))
        yield Case((M, K, N), f"{M} x {K} by {K} x {N}")
    for _ in range(4):
        M, K, N = (int(n) for n in rng.choice(np.arange(2, 500), 3, replace=False))
        yield Case((M, K, N), f"{M} x {K} by {K} x {N}")


TASK = Task(
    id="01.count",
    title="Count the operations",
    kind="predict",
    points=1,
    difficulty=1,
    minutes=5,
    good_for="knowing the work before you run it",
    entry="operations",
    cases=_sizes,
    reference=operations,
    comparison=exact(("multiplications", "additions")),
    lookalikes=(
        Lookalike(
            "One addition too many per element: the first product has nothing to be added to, so K products "
            "need K - 1 additions.",
            lambda M, K, N: (M * N * K, M * N * K),
        ),
        Lookalike(
            "The two numbers are swapped: multiplications come first.",
            lambda M, K, N: operations(M, K, N)[::-1],
        ),
        Lookalike(
            "The number of additions is negative: with K = 0 there is nothing to add, and that is 0.",
            lambda M, K, N: (M * N * K, M * N * (K - 1)) if K == 0 else None,
        ),
        Lookalike(
            "Your additions are 0, but the K products of an element are joined by plus signs: K - 1 of them.",
            fits=lambda got, M, K, N: got[1] == 0 < operations(M, K, N)[1],
        ),
        Lookalike(
            "That is the work for one element. The result has M * N of them.",
            lambda M, K, N: (K, K - 1) if K else None,
        ),
        Lookalike(
            "Those are the elements of the result. Each of them is a sum of K products.",
            lambda M, K, N: (M * N, M * N),
        ),
    ),
    hints=(
        "How many elements has the result, and how many products are summed for one of them?",
        "M * N elements, K products each. Put plus signs between K products: how many do you need? And if "
        "K is 0?",
        "Return M * N * K and M * N * max(K - 1, 0).",
    ),
)
