"""Task 07.bmm: a batched product in compiled loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from course_lib.grading.compare import Values, product_tolerance
from course_lib.grading.rules import NestedLoops
from course_lib.grading.task import Case, Lookalike, Mutant, Task
from course_lib.grading.tasks.batched.shared import changed
from course_lib.grading.tasks.compiled_loops.shared import HEAD, LOOPS_ONLY, product


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


_TEXT = (
    HEAD
    + """\
@njit
def bmm(A, B):
    batch, M, K = A.shape
    N = B.shape[2]
    C = np.zeros((batch, M, N), A.dtype)
    for b in range(batch):
        for i in range(M):
            for k in range(K):
                for j in range(N):
                    C[b, i, j] += A[b, i, k] * B[b, k, j]
    return C
"""
)
_answer = partial(changed, _TEXT)


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
    mutants=(
        Mutant(
            "the first pair",
            _answer(("A[b, i, k] * B[b, k, j]", "A[0, i, k] * B[0, k, j]")),
            ("is the first one",),
        ),
        Mutant("the first B", _answer(("B[b, k, j]", "B[0, k, j]")), ("B is always the first",)),
        Mutant("the first A", _answer(("A[b, i, k]", "A[0, i, k]")), ("A is always the first",)),
        Mutant(
            "one sum for all",
            _answer(
                (
                    "                for j in range(N):\n                    C",
                    "                for j in range(N):\n                    S",
                ),
                ("    for b in", "    S = np.zeros((M, N), A.dtype)\n    for b in"),
                ("S[b, i, j]", "S[i, j]"),
                ("    return C", "        C[b] = S\n    return C"),
            ),
            ("from one product to the next",),
        ),
        Mutant(
            "returns after the first",
            _answer(("    return C", "        return C\n    return C")),
            ("inside the loop",),
        ),
        Mutant(
            "last of the batch", _answer(("range(batch)", "range(batch - 1)")), ("last product of the batch",)
        ),
        Mutant("first of the sum", _answer(("range(K)", "range(1, K)")), ("first product of every sum",)),
        Mutant("replaces", _answer((" += ", " = ")), ("Only the last product of every sum",)),
        Mutant("room without zeros", _answer(("np.zeros", "np.empty")), ("never written",)),
        Mutant("always float64", _answer(("N), A.dtype", "N)")), ("dtype is float64",)),
        Mutant("square only", _answer(("N = B.shape[2]", "N = M")), ("The shape is",)),
        Mutant(
            "a library does it",
            _answer(
                (
                    "        for i in range(M):\n            for k in range(K):\n"
                    "                for j in range(N):\n",
                    "",
                ),
                (
                    "                    C[b, i, j] += A[b, i, k] * B[b, k, j]",
                    "        C[b] = np.dot(A[b], B[b])",
                ),
            ),
            ("numpy.dot",),
        ),
        Mutant(
            "whole arrays at once",
            _answer(
                (
                    "    for b in range(batch):\n        for i in range(M):\n            for k in range(K):\n"
                    "                for j in range(N):\n"
                    "                    C[b, i, j] += A[b, i, k] * B[b, k, j]",
                    "    for k in range(K):\n        C += A[:, :, k : k + 1] * B[:, k : k + 1, :]",
                ),
            ),
            ("nest of loops in your answer has 1", "write four"),
        ),
        Mutant("not compiled", _answer(("@njit\n", "")), ("not compiled",)),
        Mutant(
            "contiguous inputs only",
            _answer(
                ("A[b, i, k] *", "A.ravel()[(b * M + i) * K + k] *"),
                ("B[b, k, j]", "B.reshape(batch * K * N)[(b * K + k) * N + j]"),
            ),
            ("views",),
        ),
        Mutant("full fastmath", _answer(("@njit\n", "@njit(fastmath=True)\n")), ("fastmath=True",)),
    ),
)
