"""What several tasks of chapter 02 use: the product by its definition, inputs, rules, common slips."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.rules import (
    PRODUCTS,
    WHOLE_ARRAY,
    FastmathOnly,
    MustBeCompiled,
    NoCalls,
    NoOperator,
    OnlyImports,
)
from course_lib.grading.task import Case, Lookalike, source

Array = np.ndarray

#: Loops only: no BLAS behind the scenes, no whole-array sums.
LOOPS_ONLY = (
    OnlyImports(("numba", "numpy", "math")),
    NoOperator("@"),
    NoCalls(PRODUCTS | WHOLE_ARRAY, "this task is to write the loops yourself"),
    MustBeCompiled(),
    FastmathOnly(),
)


def product(A: Array, B: Array) -> Array:
    """Return A @ B, summed in float64 by the definition, in the dtype of A; NaN and inf as IEEE has them."""
    C = np.zeros((A.shape[0], B.shape[1]))
    with np.errstate(invalid="ignore"):  # 0 * inf is meant
        for k in range(A.shape[1]):
            C += A[:, k, None].astype(np.float64) * B[k].astype(np.float64)
    return C.astype(A.dtype)


def skipping_zeros(A: Array, B: Array) -> Array:
    """Return the product that leaves out the terms in which A is 0: wrong where B is inf or NaN."""
    terms = np.where(A[:, :, None] == 0, 0.0, A[:, :, None] * B[None])  # (M, K, N)
    return terms.sum(axis=1)


def matrix(rng: np.random.Generator, M: int, N: int, dtype: str = "float64") -> Array:
    """Return M x N random numbers, none of them 0, C order."""
    values = rng.uniform(0.5, 2.0, (M, N)) * rng.choice([-1.0, 1.0], (M, N))
    return np.ascontiguousarray(values, dtype=dtype)


def pair(rng: np.random.Generator, M: int, K: int, N: int, dtype: str = "float64") -> tuple[Array, Array]:
    """Return A (M, K) and B (K, N)."""
    return matrix(rng, M, K, dtype), matrix(rng, K, N, dtype)


def sizes(rng: np.random.Generator, low: int, high: int) -> tuple[int, int, int]:
    """Return three different sizes from low to high - 1, in random order."""
    M, K, N = (int(n) for n in rng.choice(np.arange(low, high), 3, replace=False))
    return M, K, N


def shapes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield float64 matrices in C order: square, wide, thin, tall, empty, and two that are larger."""
    low, middle, high = sorted(sizes(rng, 2, 7))
    small = ((3, 3, 3), (low, middle, middle + 1), (1, 2 * middle + 1, 1), (high, 1, low))
    for M, K, N in small:
        yield Case(pair(rng, M, K, N), f"float64, A {M} x {K}, B {K} x {N}", guard=True)
    for M, K, N, what in ((3, 0, 2, "an empty sum is 0"), (0, 3, 2, "no rows"), (2, 3, 0, "no columns")):
        yield Case(pair(rng, M, K, N), f"float64, A {M} x {K}, B {K} x {N}: {what}", guard=True)
    for M, K, N in (sizes(rng, 11, 24), sizes(rng, 40, 80)):
        yield Case(pair(rng, M, K, N), f"float64, A {M} x {K}, B {K} x {N}", guard=True)


def all_inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield what `shapes` has, then NaN and inf, float32, and views that are not contiguous."""
    yield from shapes(rng)
    yield Case(_not_finite(rng), "float64 with NaN and inf: 0 * inf is NaN, and NaN stays NaN", guard=True)
    yield Case(_zero_meets_inf(rng), "float64, 0 in A meets inf in B and the other way round", guard=True)
    M, K, N = sizes(rng, 5, 14)
    label = f"float32, A {M} x {K}, B {K} x {N}: the result is float32"
    yield Case(pair(rng, M, K, N, "float32"), label, guard=True)
    M, K, N = sizes(rng, 4, 9)
    views = matrix(rng, 2 * M, 3 * K)[::2, ::3], matrix(rng, N, K).T
    yield Case(views, "views: every 2nd row and 3rd column of A, B transposed", guard=True)


def _not_finite(rng: np.random.Generator) -> tuple[Array, Array]:
    A, B = pair(rng, 5, 4, 6)
    A[0, 1], A[2, 2], A[3, 0] = 0.0, np.nan, np.inf
    B[1, 3], B[0, 5], B[3, 4] = np.inf, 0.0, -np.inf
    return A, B


def _zero_meets_inf(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return matrices in which 0 meets inf, from either side, at an even, an odd and the last k of 5."""
    A, B = pair(rng, 6, 5, 6)
    for n, k in enumerate((0, 1, 4)):
        A[n, k], B[k, n] = 0.0, (-1) ** n * np.inf
        A[3 + n, k], B[k, 3 + n] = (-1) ** n * np.inf, 0.0
    return A, B


PRODUCT_SLIPS = (
    Lookalike("This is B times A: the operands are swapped.", lambda A, B: product(B, A)),
    Lookalike("This is A times the transpose of B: B is indexed [j, k].", lambda A, B: product(A, B.T)),
    Lookalike(
        "The first product of every sum is missing: the sum over k begins at 0.",
        lambda A, B: product(A[:, 1:], B[1:]),
    ),
    Lookalike(
        "The last product of every sum is missing: the sum over k has K terms.",
        lambda A, B: product(A[:, :-1], B[:-1]),
    ),
    Lookalike(
        "Only the last product of every sum is there: add (+=) instead of replacing.",
        lambda A, B: product(A[:, -1:], B[-1:]),
    ),
    Lookalike(
        "Only the first product of every sum is there: does the function return inside a loop?",
        lambda A, B: product(A[:, :1], B[:1]),
    ),
    Lookalike(
        "After the first row all is 0: does the function return inside a loop?",
        fits=lambda got, A, B: len(got) > 1 and got[0].any() and not got[1:].any(),
    ),
    Lookalike(
        "Where A has a 0 you skip the product, but 0 * inf and 0 * NaN are NaN: the definition has no "
        "exception.",
        lambda A, B: skipping_zeros(A, B) if (A == 0).any() else None,
    ),
)

HEAD = source("""
    import numpy as np
    from numba import njit

""")
_LOOPS = (
    HEAD
    + """\
@njit{options}
def {name}(A, B):
    M, K = A.shape
    N = B.shape[1]
    C = {C}
    for {a} in range({A_range}):
        for {b} in range({B_range}):
            for {c} in range({C_range}):
                {step}
    return C
"""
)


def loops(name: str, order: str = "ikj", **changes: str) -> str:
    """Return compiled loops in an order, with some parts changed."""
    size = {"i": "M", "j": "N", "k": "K", **{n: changes.pop(n) for n in "ijk" if n in changes}}
    parts = {
        "options": "",
        "C": "np.zeros((M, N), A.dtype)",
        "step": "C[i, j] += A[i, k] * B[k, j]",
        **dict(zip("abc", order, strict=True)),
        **{f"{letter}_range": size[index] for letter, index in zip("ABC", order, strict=True)},
    }
    return _LOOPS.format(name=name, **{**parts, **changes})
