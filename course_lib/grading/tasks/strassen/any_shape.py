"""Task 03.any: the recursion for every shape, by peeling or by padding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.strassen.shared import ONLY_NUMPY, close_by_norm, matrix, pair, product

LEVELS = 4  # the most that any input of this task asks for


def peeled(M: int, K: int, N: int, cutoff: int) -> int:
    """Return the multiplications when odd rows and columns are peeled off at every level."""
    if min(M, K, N) <= cutoff:
        return M * K * N
    m, k, n = M // 2 * 2, K // 2 * 2, N // 2 * 2
    rest = (K - k) * m * n + (N - n) * m * K + (M - m) * K * N
    return 7 * peeled(m // 2, k // 2, n // 2, cutoff) + rest


def padded(M: int, K: int, N: int, cutoff: int) -> int:
    """Return the multiplications when odd sizes are made even at every level."""
    if min(M, K, N) <= cutoff:
        return M * K * N
    return 7 * padded(-(-M // 2), -(-K // 2), -(-N // 2), cutoff)


def padded_once(M: int, K: int, N: int, cutoff: int) -> int:
    """Return the multiplications when the sizes are padded once, so that they can be halved to the end."""
    levels = max(math.ceil(math.log2(min(M, K, N) / cutoff)), 0)
    sizes = [-(-size // 2**levels) for size in (M, K, N)]
    return 7**levels * math.prod(sizes)


@dataclass(frozen=True)
class SevenAtEveryLevel:
    """The answer multiplies no more than the most wasteful of the three known ways to treat odd sizes."""

    wanted: str = "seven products at every level, until a size is `cutoff` or less"

    def judge(self, args: tuple, multiplications: int, additions: int) -> str | None:
        """Return a sentence if it does more multiplications, or fewer than any of the ways can."""
        A, B, cutoff = args
        shape = (*A.shape, B.shape[1], cutoff)
        ways = [way(*shape) for way in (peeled, padded, padded_once)]
        if multiplications > max(ways):
            return (
                f"Your answer did {multiplications} multiplications on this input, but {max(ways)} are "
                "enough with seven products at every level, even with padding: does it recurse down to the "
                "cutoff?"
            )
        if multiplications < min(ways):
            return (
                f"Your answer did {multiplications} multiplications on this input, fewer than the "
                f"{min(ways)} of the recursion: does it stop at the cutoff?"
            )
        return None


def _shapes(rng: np.random.Generator) -> Iterator[Case]:
    fixed = ((1, 1, 1, 1), (2, 2, 2, 1), (3, 3, 3, 1), (8, 8, 8, 2), (1, 5, 4, 2), (7, 1, 3, 1), (7, 5, 3, 4))
    primes = (5, 7, 11, 13, 17, 19)
    for M, K, N, cutoff in (*fixed, (4, 5, 4, 2), (5, 4, 4, 2), (4, 4, 5, 2)):
        yield _case(rng, M, K, N, cutoff)
    for cutoff in (1, 2, 3):
        M, K, N = (int(one) for one in rng.choice(primes, 3, replace=False))
        yield _case(rng, M, K, N, cutoff)
    yield _case(rng, 16, 24, 16, 4)
    M, K, N = (int(one) for one in rng.permutation((41, 43, 47)))
    yield _case(rng, M, K, N, 12)  # odd, and even the most wasteful way multiplies less than the definition
    yield Case((*pair(rng, 9, 6, 7, "float32"), 2), "float32, A 9 x 6, B 6 x 7, cutoff 2", guard=True)
    views = matrix(rng, 10, 21)[::2, ::3], matrix(rng, 9, 7).T
    yield Case(
        (*views, 1), "views: A 5 x 7 (every 2nd row, 3rd column), B 7 x 9 transposed, cutoff 1", guard=True
    )


def _case(rng: np.random.Generator, M: int, K: int, N: int, cutoff: int) -> Case:
    return Case((*pair(rng, M, K, N), cutoff), f"A {M} x {K}, B {K} x {N}, cutoff {cutoff}", guard=True)


def reference(A: np.ndarray, B: np.ndarray, cutoff: int) -> np.ndarray:
    """Return A @ B; the cutoff changes only how."""
    return product(A, B)


def _without_the_last_k(got: np.ndarray, A: np.ndarray, B: np.ndarray, cutoff: int) -> bool:
    """Whether the even part of the result lacks the last step of k."""
    if A.shape[1] % 2 == 0 or A.shape[1] == 1:
        return False
    even = np.s_[: len(A) // 2 * 2, : B.shape[1] // 2 * 2]
    return np.allclose(got[even], product(A[:, :-1], B[:-1])[even], rtol=1e-3) and got[even].size > 0


TASK = Task(
    id="03.any",
    title="Any shape",
    kind="write",
    points=3,
    difficulty=4,
    minutes=25,
    good_for="turning an algorithm for powers of two into one that a library could offer",
    entry="strassen",
    cases=_shapes,
    reference=reference,
    comparison=close_by_norm(LEVELS),
    rules=ONLY_NUMPY,
    counts=SevenAtEveryLevel(),
    lookalikes=(
        Lookalike("This is B times A: the operands are swapped.", lambda A, B, cutoff: product(B, A)),
        Lookalike(
            "The last step of k is missing: with an odd K its last column of A and last row of B belong to "
            "every entry of C.",
            fits=_without_the_last_k,
        ),
        Lookalike(
            "The last row of C is 0: with an odd M it has to be computed too.",
            fits=lambda got, A, B, cutoff: len(A) % 2 == 1 and not np.any(got[-1]) and np.any(got),
        ),
        Lookalike(
            "The last column of C is 0: with an odd N it has to be computed too.",
            fits=lambda got, A, B, cutoff: (
                B.shape[1] % 2 == 1 and not np.any(got[: len(A) // 2 * 2, -1]) and np.any(got)
            ),
        ),
    ),
    hints=(
        "What is left of a 7 x 5 matrix when you have cut out four blocks of 3 x 2? And what of C is not yet "
        "right when those have been multiplied?",
        "Peel: the last step of k adds an outer product to the whole even part; the last column of C is A "
        "times the last column of B; the last row of C is the last row of A times B. Or pad every odd size "
        "with a row or column of zeros and cut the result back.",
        "Padding is shorter: A = np.pad(A, ((0, M % 2), (0, K % 2))), B likewise; one level with recursive "
        "calls strassen(A11 + A22, B11 + B22, cutoff), …; return C[:M, :N].copy().",
    ),
)
