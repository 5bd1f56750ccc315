"""Task 04.fast: several rows and several k at once, where B is larger than the second cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.rules import NoMemory
from course_lib.grading.task import Case, Code, SpeedRule, Task
from course_lib.grading.tasks.cache_and_simd.shared import LOOPS_ONLY
from course_lib.grading.tasks.compiled_loops.shared import (
    PRODUCT_SLIPS,
    all_inputs,
    loops,
    pair,
    product,
)

FUSE = '(fastmath={"contract", "reassoc"})'
PLAIN_IKJ = Code(loops("matmul_ikj", "ikj", options=FUSE), "matmul_ikj")

LARGE = 2**24  # multiply-adds from which on the definition would take seconds


def reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A @ B, summed in float64, in the dtype of A; the large inputs are finite."""
    if A.shape[0] * A.shape[1] * B.shape[1] < LARGE:
        return product(A, B)
    return (A.astype(np.float64) @ B.astype(np.float64)).astype(A.dtype)


def _inputs(rng: np.random.Generator) -> Iterator[Case]:
    yield from all_inputs(rng)
    for M in range(8, 16):  # two tiles of four, and every number of rows and of k left over
        K, N = 23 - M, M - 3
        left = f"in fours {M % 4} rows and {K % 4} k are left over"
        yield Case(pair(rng, M, K, N), f"float64, A {M} x {K}, B {K} x {N}: {left}", guard=True)
    yield Case(_zero_and_inf(rng), "0 and inf at each of four k, in each of four rows", guard=True)


def _zero_and_inf(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return A (12, 16) and B (16, 12) with a 0 and an inf at each place in a tile of four rows and four k.

    In A, rows 0 to 3 have a 0 at each of four k; rows 4 to 11 have inf and -inf, which make NaN, and without
    either of them the row would be infinite. B has a 0 at each of four k in columns 0 to 3, an inf in 4 to 7.
    """
    A, B = pair(rng, 12, 16, 12)
    for n in range(4):
        A[:4, 5 * n] = 0.0
        B[n, n], B[4 + n, 4 + n] = 0.0, np.inf
        A[4 + n, [0, 5]] = A[8 + n, [10, 15]] = np.inf, -np.inf
    return A, B


TASK = Task(
    id="04.fast",
    title="Two dozen numbers in flight",
    kind="fast",
    points=4,
    difficulty=4,
    minutes=30,
    good_for="doubling the speed of good loops with nothing but plain Python",
    entry="matmul_fast",
    cases=_inputs,
    reference=reference,
    comparison=close_product(),
    rules=(*LOOPS_ONLY, NoMemory()),
    speed=SpeedRule(
        baseline=PLAIN_IKJ,
        make_inputs=lambda rng: pair(rng, 1000, 1000, 1000, "float32"),
        thresholds=((1.3, 1 / 3), (1.6, 2 / 3), (1.9, 1.0)),
        points=3,
        flops=lambda A, B: 2.0 * A.shape[0] * A.shape[1] * B.shape[1],
        on_the_way="More rows of A for each pass over B, and more k for each store of C, bring the rest.",
    ),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "In the order i, k, j one FMA needs two loads and a store. Which of these could serve several FMAs?",
        "A number of B serves several rows of C; a number of C takes several k before it is stored. Four "
        "rows by four k is 16 FMAs for 8 loads and 4 stores. Take the rows out as slices: c0 = C[i], "
        "b0 = B[k].",
        "for i in range(0, M - 3, 4): for k in range(0, K - 3, 4): 16 numbers of A into locals, then for j: "
        "c0[j] += p0 * b0[j] + p1 * b1[j] + p2 * b2[j] + p3 * b3[j], and c1, c2, c3 the same; then plain "
        "loops for the k and the rows that are left.",
    ),
)
