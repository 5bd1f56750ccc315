"""Task 03.any: the recursion for every shape, by peeling or by padding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from course_lib.grading.task import Case, Lookalike, Mutant, Task, source
from course_lib.grading.tasks.strassen.shared import ONLY_NUMPY, close_by_norm, matrix, pair, product

LEVELS = 4  # the most that any input of this task asks for

_BODY = """
def strassen(A, B, cutoff):
    (M, K), N = A.shape, B.shape[1]
    if min(M, K, N) <= cutoff:
        return A @ B
    m, k, n = M // 2, K // 2, N // 2
    A11, A12, A21, A22 = A[:m, :k], A[:m, k:2*k], A[m:2*m, :k], A[m:2*m, k:2*k]
    B11, B12, B21, B22 = B[:k, :n], B[:k, n:2*n], B[k:2*k, :n], B[k:2*k, n:2*n]
    M1 = strassen(A11 + A22, B11 + B22, cutoff)
    M2 = strassen(A21 + A22, B11, cutoff)
    M3 = strassen(A11, B12 - B22, cutoff)
    M4 = strassen(A22, B21 - B11, cutoff)
    M5 = strassen(A11 + A12, B22, cutoff)
    M6 = strassen(A21 - A11, B11 + B12, cutoff)
    M7 = strassen(A12 - A22, B21 + B22, cutoff)
"""
PEELED = (
    "import numpy as np\n\n"
    + _BODY.lstrip()
    + """\
    C = np.empty((M, N), A.dtype)
    C[:m, :n] = M1 + M4 - M5 + M7
    C[:m, n:2*n] = M3 + M5
    C[m:2*m, :n] = M2 + M4
    C[m:2*m, n:2*n] = M1 - M2 + M3 + M6
    if K % 2 == 1:
        C[:2*m, :2*n] += A[:2*m, K-1:] @ B[K-1:, :2*n]
    if N % 2 == 1:
        C[:2*m, N-1:] = A[:2*m] @ B[:, N-1:]
    if M % 2 == 1:
        C[M-1:] = A[M-1:] @ B
    return C
"""
)
PADDED = source("""
    import numpy as np

    def strassen(A, B, cutoff):
        (M, K), N = A.shape, B.shape[1]
        if min(M, K, N) <= cutoff:
            return A @ B
        A = np.pad(A, ((0, M % 2), (0, K % 2)))
        B = np.pad(B, ((0, K % 2), (0, N % 2)))
        m, k, n = A.shape[0] // 2, A.shape[1] // 2, B.shape[1] // 2
        A11, A12, A21, A22 = A[:m, :k], A[:m, k:], A[m:, :k], A[m:, k:]
        B11, B12, B21, B22 = B[:k, :n], B[:k, n:], B[k:, :n], B[k:, n:]
        M1 = strassen(A11 + A22, B11 + B22, cutoff)
        M2 = strassen(A21 + A22, B11, cutoff)
        M3 = strassen(A11, B12 - B22, cutoff)
        M4 = strassen(A22, B21 - B11, cutoff)
        M5 = strassen(A11 + A12, B22, cutoff)
        M6 = strassen(A21 - A11, B11 + B12, cutoff)
        M7 = strassen(A12 - A22, B21 + B22, cutoff)
        C = np.block([[M1 + M4 - M5 + M7, M3 + M5], [M2 + M4, M1 - M2 + M3 + M6]])
        return C[:M, :N].copy()
""")


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
    mutants=(
        Mutant(
            "only even sizes",
            PEELED.replace("if K % 2 == 1", "if False")
            .replace("if N % 2 == 1", "if False")
            .replace("if M % 2 == 1", "if False"),
            ("never written",),
        ),
        Mutant("the last k forgotten", PEELED.replace("if K % 2 == 1", "if False"), ("last step of k",)),
        Mutant(
            "the last row stays 0",
            PEELED.replace("np.empty", "np.zeros").replace("if M % 2 == 1", "if False"),
            ("last row of C",),
        ),
        Mutant(
            "the last column stays 0",
            PEELED.replace("np.empty", "np.zeros").replace("if N % 2 == 1", "if False"),
            ("last column of C",),
        ),
        Mutant(
            "the last column without the last k",
            PEELED.replace("= A[:2*m] @ B[:, N-1:]", "= A[:2*m, :2*k] @ B[:2*k, N-1:]"),
            ("wrong",),
        ),
        Mutant(
            "the last k twice",
            PEELED.replace("C[:2*m, :2*n] += A[:2*m, K-1:]", "C[:2*m, :2*n] += 2 * A[:2*m, K-1:]"),
            ("wrong",),
        ),
        Mutant("not cut back", PADDED.replace("C[:M, :N].copy()", "C"), ("shape",)),
        Mutant(
            "square blocks",
            PADDED.replace(
                "m, k, n = A.shape[0] // 2, A.shape[1] // 2, B.shape[1] // 2", "m = k = n = M // 2"
            ),
            ("RecursionError",),
        ),
        Mutant(
            "no recursion at all",
            source("""
                def strassen(A, B, cutoff):
                    return A @ B
            """),
            ("does it recurse",),
        ),
        Mutant(
            "one level only",
            PADDED.replace("strassen(A", "np.matmul(A")
            .replace(", cutoff)\n    M", ")\n    M")
            .replace("def np.matmul", "def strassen")
            .replace("B21 + B22, cutoff)", "B21 + B22)"),
            ("does it recurse",),
        ),
        Mutant(
            "ignores the cutoff",
            PADDED.replace("min(M, K, N) <= cutoff", "min(M, K, N) == 1"),
            ("stop at the cutoff",),
        ),
        Mutant(
            "never ends",
            PADDED.replace("min(M, K, N) <= cutoff", "min(M, K, N) < cutoff"),
            ("RecursionError",),
        ),
        Mutant(
            "gives up on odd sizes",
            PADDED.replace(
                "if min(M, K, N) <= cutoff", "if min(M, K, N) <= cutoff or M % 2 or K % 2 or N % 2"
            ),
            ("does it recurse",),
        ),
        Mutant("a sign", PADDED.replace("M4 - M5", "M4 + M5"), ("wrong",)),
    ),
)
