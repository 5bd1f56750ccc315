"""Task 07.bmm: a batched product in compiled loops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import Values, product_tolerance
from course_lib.grading.rules import NestedLoops
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.compiled_loops.shared import LOOPS_ONLY, product


def bmm(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the products of A (batch, M, K) and B (batch, K, N), one for one, in the dtype of A."""
    C = np.zeros((len(A), A.shape[1], B.shape[2]), A.dtype)
    for n in range(len(A)):
        C[n] = product(A[n], B[n])
    return C


def _tolerance(want: np.ndarray, args: tuple) -> np.ndarray:
    """Return the allowed error of each entry: that of each product in the batch."""
    A, B = args
    allowed = np.zeros(want.shape)
    for n in range(len(A)):
        allowed[n] = product_tolerance(want.dtype, A[n], B[n])
    return allowed


def _stack(rng: np.random.Generator, *shape: int, dtype: str = "float64") -> np.ndarray:
    """Return random numbers, none of them 0, C order."""
    values = rng.uniform(0.5, 2.0, shape) * rng.choice([-1.0, 1.0], shape)
    return np.ascontiguousarray(values, dtype=dtype)


def _batches(rng: np.random.Generator) -> Iterator[Case]:
    batch, M, K, N = (int(n) for n in rng.choice(np.arange(3, 9), 4, replace=False))
    for b, m, k, n, said in (
        (3, 3, 3, 3, "three products of squares"),
        (batch, M, K, N, "all four sizes different"),
        (1, N, M, K, "a batch of one"),
        (0, M, K, N, "a batch of none"),
        (batch, M, 0, N, "an empty sum is 0"),
        (batch, 0, K, N, "no rows"),
        (batch, M, K, 0, "no columns"),
        (K, 1, 2 * N + 1, 1, "dot products"),
    ):
        pair = _stack(rng, b, m, k), _stack(rng, b, k, n)
        yield Case(pair, f"float64, A {b} x {m} x {k}, B {b} x {k} x {n}: {said}", guard=True)
    pair = _stack(rng, batch, M, K, dtype="float32"), _stack(rng, batch, K, N, dtype="float32")
    yield Case(pair, "float32: the result is float32", guard=True)
    q, k = _stack(rng, M, batch, K), _stack(rng, N, batch, K)  # (T, heads, D), as a projection leaves them
    yield Case(
        (q.transpose(1, 0, 2), k.transpose(1, 2, 0)), "views: heads of q, and of k transposed", guard=True
    )
    A, B = _stack(rng, 3, 4, 5), _stack(rng, 3, 5, 4)
    for n in range(3):
        A[n, 1, 2 * n], B[n, 2 * n, 1] = 0.0, np.inf
        A[n, 2, 4 - 2 * n], B[n, 4 - 2 * n, 3] = -np.inf, 0.0
    A[1, 3, 3] = np.nan
    yield Case((A, B), "0 meets inf, from either side, and a NaN: 0 * inf is NaN", guard=True)


TASK = Task(
    id="07.bmm",
    title="Many small products, one call",
    kind="write",
    points=3,
    difficulty=2,
    minutes=15,
    good_for="seeing that a batched product is one more loop, and that nothing is shared between its passes",
    entry="bmm",
    cases=_batches,
    reference=bmm,
    comparison=Values(_tolerance),
    rules=(
        *LOOPS_ONLY,
        NestedLoops(
            3, "write four, over the batch, rows, columns and sum (a slice of a row may stand for one)"
        ),
    ),
    lookalikes=(
        Lookalike(
            "Every product in the batch is the first one: index A and B with the number in the batch.",
            lambda A, B: np.repeat(bmm(A[:1], B[:1]), len(A), 0) if len(A) > 1 else None,
        ),
        Lookalike(
            "A goes on through the batch, but B is always the first one: B is indexed [b, k, j].",
            lambda A, B: bmm(A, np.repeat(B[:1], len(B), 0)) if len(A) > 1 else None,
        ),
        Lookalike(
            "B goes on through the batch, but A is always the first one: A is indexed [b, i, k].",
            lambda A, B: bmm(np.repeat(A[:1], len(A), 0), B) if len(A) > 1 else None,
        ),
        Lookalike(
            "Only the first product of the batch is there: does the function return inside the loop?",
            fits=lambda got, A, B: len(got) > 2 and got[0].any() and not got[1:].any(),
        ),
        Lookalike(
            "The last product of the batch is missing: the outermost loop has `batch` passes.",
            fits=lambda got, A, B: len(got) > 1 and got[:-1].any() and not got[-1].any(),
        ),
        Lookalike(
            "The sums go on from one product to the next: nothing is shared between them.",
            lambda A, B: np.cumsum(bmm(A, B), 0) if len(A) > 1 else None,
        ),
        Lookalike("This is B times A: the operands are swapped.", lambda A, B: bmm(B, A)),
        Lookalike(
            "This is A times the transpose of B: B is indexed [b, k, j].",
            lambda A, B: bmm(A, B.transpose(0, 2, 1)),
        ),
        Lookalike(
            "The first product of every sum is missing: the sum over k begins at 0.",
            lambda A, B: bmm(A[:, :, 1:], B[:, 1:]),
        ),
        Lookalike(
            "Only the last product of every sum is there: add (+=) instead of replacing.",
            lambda A, B: bmm(A[:, :, -1:], B[:, -1:]),
        ),
    ),
    hints=(
        "You have written the product of two matrices in assignment 2. Which of the three arrays get one "
        "index more?",
        "All three, and it is the same one: C[b] is A[b] times B[b]. One loop around the others; every "
        "element of C "
        "begins with 0, in the dtype of A.",
        "C = np.zeros((batch, M, N), A.dtype); for b, for i, for k, for j: "
        "C[b, i, j] += A[b, i, k] * B[b, k, j].",
    ),
)
