"""Task 10.promotion: a new sum every so many products, and the sums in float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.fp8.formats import E4M3
from course_lib.grading.compare import exact
from course_lib.grading.rules_given import GivenAsItIs
from course_lib.grading.sources import load
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import TENSOR_CORE, USUAL_IMPORTS
from course_lib.simulators.tensor_core import ADA, BLACKWELL, HOPPER, TensorCore, gemm_e4m3

SOLUTION = source("""
    def two_level(A, B, every, core):
        total = np.zeros((len(A), len(B)), np.float32)
        for start in range(0, A.shape[1], every):
            a, b = A[:, start : start + every], B[:, start : start + every]
            fresh = np.zeros((len(A), len(B)), np.float32)
            total = total + tensor_core(a, b, fresh, core)
        return total
""")


def two_level(A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int]) -> np.ndarray:
    """Return A (M, K) times B (N, K) transposed, float32, with a new sum every `every` products."""
    return gemm_e4m3(A, B, promote_every=every, core=TensorCore("", *core))


def _products(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, K, every, core in (
        (2, 3, 256, 128, HOPPER),
        (13, 15, 512, 32, HOPPER),
        (14, 13, 896, 256, HOPPER),
        (1, 1, 128, 128, HOPPER),
        (5, 2, 300, 128, HOPPER),
        (4, 3, 129, 128, HOPPER),
        (32, 32, 32, 32, HOPPER),
        (2, 4, 97, 64, HOPPER),
        (3, 2, 40, 128, HOPPER),
        (3, 3, 0, 128, HOPPER),
        (3, 4, 384, 128, ADA),
        (2, 5, 320, 64, BLACKWELL),
        (int(rng.integers(3, 7)), int(rng.integers(3, 7)), int(rng.integers(700, 999)), 128, HOPPER),
    ):
        A, B = (_e4m3(rng, rows, K) for rows in (M, N))
        if rng.integers(2):
            A, B = np.abs(A), np.abs(B)
        key = core.terms, core.sum_bits, core.result_bits
        yield Case((A, B, every, key), f"A {M} x {K}, B {N} x {K}, a new sum every {every}, as {core.name}")


def _e4m3(rng: np.random.Generator, rows: int, K: int) -> np.ndarray:
    """Return numbers whose size changes every 64 columns, so that the outer sums are rounded."""
    sizes = np.exp2(rng.integers(-5, 7, K // 64 + 1))
    return E4M3.round(rng.standard_normal((rows, K)) * np.repeat(sizes, 64)[:K])


def _counted_twice(A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int]) -> np.ndarray:
    """Return what comes out if each inner sum begins with the total, to which it is added then."""
    tensor_core = load(TENSOR_CORE, "tensor_core")
    total = np.zeros((len(A), len(B)), np.float32)
    for k in range(0, A.shape[1], every):
        total = total + tensor_core(A[:, k : k + every], B[:, k : k + every], total, core)
    return total


def _is_exact(got: np.ndarray, A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int]) -> bool:
    """Whether all is a product in float32 or better, and the right result is further from it."""
    A, B = A.astype(np.float64), B.astype(np.float64)
    exact, size = A @ B.T, np.abs(A) @ np.abs(B).T
    near, far = (np.abs(one - exact) <= 2.0**-20 * size for one in (got, two_level(A, B, every, core)))
    return bool(near.all() and not far.all())


TASK = Task(
    id="10.promotion",
    title="Begin again every 128",
    kind="complete",
    points=2,
    difficulty=2,
    minutes=15,
    good_for="the two levels of DeepGEMM and kernels like it, in four lines",
    entry="two_level",
    cases=_products,
    reference=two_level,
    comparison=exact(),
    rules=(USUAL_IMPORTS, GivenAsItIs(TENSOR_CORE)),
    lookalikes=(
        Lookalike(
            "That is one sum from beginning to end: the tensor core's sum must begin anew, from "
            "zero, every "
            "`every` products.",
            fits=lambda got, A, B, every, core: _is(got, _one_sum(A, B, core), A, B, every, core),
        ),
        Lookalike(
            "That sum is exact: the product must go through `tensor_core`, with all it cuts off.",
            fits=_is_exact,
        ),
        Lookalike(
            "The old total is counted twice: the tensor core adds `c` already. Hand it zeros.",
            fits=lambda got, A, B, every, core: _is(
                got, _counted_twice(A, B, every, core), A, B, every, core
            ),
        ),
        Lookalike(
            "Only the last of the inner sums is there: add them up.",
            fits=lambda got, A, B, every, core: _is(got, _last_sum(A, B, every, core), A, B, every, core),
        ),
        Lookalike(
            "The last inner sum is missing: it has fewer products than the others.",
            fits=lambda got, A, B, every, core: _is(
                got,
                two_level(*(X[:, : X.shape[1] // every * every] for X in (A, B)), every, core),
                A,
                B,
                every,
                core,
            ),
        ),
        Lookalike(
            "A last bit is different here and there: the outer sum is float32, rounded after each "
            "addition, "
            "from the first block to the last.",
            fits=lambda got, A, B, every, core: bool(
                np.allclose(got, two_level(A, B, every, core), rtol=3e-6, atol=1e-6)
            ),
        ),
    ),
    hints=(
        "`tensor_core(a, b, c, core)` gives c plus a product. Which c does each run of `every` "
        "products begin "
        "with, and who adds up the results?",
        "Begin each run with zeros. What comes back is float32, and so is the total: `total + part` "
        "is then "
        "one rounded addition of float32, as the kernel does it. Slices end by themselves where K ends.",
        "total = total + tensor_core(A[:, start : start + every], B[:, start : start + every], "
        "np.zeros_like(total), core)",
    ),
)


def _one_sum(A: np.ndarray, B: np.ndarray, core: tuple[int, int, int]) -> np.ndarray:
    return gemm_e4m3(A, B, core=TensorCore("", *core))


def _last_sum(A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int]) -> np.ndarray:
    last = (A.shape[1] - 1) // every * every
    return _one_sum(A[:, last:], B[:, last:], core)


def _is(got: np.ndarray, wrong: np.ndarray, *args) -> bool:
    return np.array_equal(got, wrong) and not np.array_equal(wrong, two_level(*args))
