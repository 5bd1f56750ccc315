"""What several tasks of chapter 03 use: inputs that can be halved, the allowed error, the slips."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import Values
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike
from course_lib.grading.tasks.compiled_loops.shared import matrix, pair, product

Array = np.ndarray

ONLY_NUMPY = (OnlyImports(("numpy", "math")),)
SLACK = 4.0


def close_by_norm(levels: int) -> Values:
    """Return the comparison for a product by up to so many levels of seven products.

    The allowed error of every entry is `SLACK` times a bound of the form of Higham 2002, theorem 23.2:
    12^levels (K^2 + 5 K) eps max|A| max|B|. There is none in terms of the entry's own row and column.
    """

    def allowed(want: Array, args: tuple) -> float:
        A, B = args[:2]
        K = A.shape[1]
        largest = float(np.abs(A).max(initial=0.0)) * float(np.abs(B).max(initial=0.0))
        return SLACK * 12.0**levels * (K**2 + 5 * K) * float(np.finfo(want.dtype).eps) * largest

    return Values(allowed)


def seven(A: Array, B: Array) -> int:
    """Return the multiplications of one level of seven products."""
    return 7 * (A.shape[0] // 2) * (A.shape[1] // 2) * (B.shape[1] // 2)


def even_shapes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield operands that can be halved in every direction: the smallest, wide, tall, float32 and views."""
    m, k, n = (2 * int(one) for one in rng.choice(np.arange(2, 8), 3, replace=False))
    for M, K, N in ((2, 2, 2), (4, 4, 4), (2, 6, 4), (m, k, n), (10, 4, 14)):
        yield Case(pair(rng, M, K, N), f"float64, A {M} x {K}, B {K} x {N}", guard=True)
    label = "float32, A 6 x 4, B 4 x 8: the result is float32"
    yield Case(pair(rng, 6, 4, 8, "float32"), label, guard=True)
    views = matrix(rng, 8, 18)[::2, ::3], matrix(rng, 8, 6).T
    yield Case(views, "views: every 2nd row and 3rd column of A, B transposed", guard=True)


def quarters(X: Array) -> tuple[Array, Array, Array, Array]:
    """Return the blocks 11, 12, 21, 22 of X."""
    rows, columns = X.shape[0] // 2, X.shape[1] // 2
    return X[:rows, :columns], X[:rows, columns:], X[rows:, :columns], X[rows:, columns:]


def with_blocks_swapped(A: Array, B: Array) -> Array:
    """Return the product with its blocks 12 and 21 exchanged, where they have one shape (else unchanged)."""
    C = product(A, B)
    C11, C12, C21, C22 = quarters(C)
    return np.block([[C11, C21], [C12, C22]]) if C12.shape == C21.shape else C


def _wrong_blocks(got: Array, A: Array, B: Array) -> tuple[bool, ...]:
    """Say for each of the four blocks whether it is wrong."""
    pairs = zip(quarters(np.asarray(got, np.float64)), quarters(product(A, B)), strict=True)
    return tuple(not np.allclose(mine, right, rtol=1e-3, atol=1e-3) for mine, right in pairs)


def only_block(place: int, says: str) -> Lookalike:
    """Return the recogniser of a result of which one block alone is wrong."""
    wanted = tuple(block == place for block in range(4))
    return Lookalike(says, fits=lambda got, A, B: _wrong_blocks(got, A, B) == wanted)


def _blocks_touch(got: Array, A: Array, B: Array) -> bool:
    """Whether every block is right but for what was lost of A12 or A21: then blocks were mixed up."""
    return all(_wrong_blocks(got, A, B))


BLOCK_SLIPS = (
    Lookalike("This is B times A: the operands are swapped.", lambda A, B: product(B, A)),
    Lookalike(
        "The blocks C12 and C21 have changed places.",
        lambda A, B: with_blocks_swapped(A, B) if A.shape == B.shape else None,
    ),
    *(
        only_block(place, f"Only the block C{name} is wrong: which products go into it, with which signs?")
        for place, name in enumerate(("11", "12", "21", "22"))
    ),
    Lookalike(
        "All four blocks are wrong: look for a slip in a sum that several products or blocks share.",
        fits=_blocks_touch,
    ),
)
