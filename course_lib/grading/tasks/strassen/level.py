"""Task 03.level: one level of Strassen, on blocks, with seven products."""

from __future__ import annotations

from course_lib.grading.rules import CountsOperations
from course_lib.grading.task import Mutant, Task, source
from course_lib.grading.tasks.strassen.shared import (
    BLOCK_SLIPS,
    ONLY_NUMPY,
    STRASSEN_LEVEL,
    close_by_norm,
    even_shapes,
    product,
    seven,
)

TASK = Task(
    id="03.level",
    title="Seven products",
    kind="write",
    points=3,
    difficulty=2,
    minutes=15,
    good_for="having done it once by hand: seven products, 18 sums, four blocks",
    entry="strassen_level",
    cases=even_shapes,
    reference=product,
    comparison=close_by_norm(1),
    rules=ONLY_NUMPY,
    counts=CountsOperations(
        multiplications=seven, wanted="exactly seven products of blocks", whose="of Strassen's level"
    ),
    lookalikes=BLOCK_SLIPS,
    hints=(
        "Which blocks of A and of B go into the first product, and into which blocks of C does it go?",
        "Cut A into A[:m, :k], A[:m, k:], A[m:, :k], A[m:, k:] with m, k half its size, B likewise; write "
        "down the seven products from the picture in the chapter, then the four sums, and join them with "
        "np.block.",
        "M1 = (A11 + A22) @ (B11 + B22), M2 = (A21 + A22) @ B11, … ; C12 = M3 + M5, C21 = M2 + M4, "
        "C11 = M1 + M4 - M5 + M7, C22 = M1 - M2 + M3 + M6; return np.block([[C11, C12], [C21, C22]]).",
    ),
    mutants=(
        Mutant(
            "eight products",
            source("""
                import numpy as np
                def strassen_level(A, B):
                    m, k, n = A.shape[0] // 2, A.shape[1] // 2, B.shape[1] // 2
                    C11 = A[:m, :k] @ B[:k, :n] + A[:m, k:] @ B[k:, :n]
                    C12 = A[:m, :k] @ B[:k, n:] + A[:m, k:] @ B[k:, n:]
                    C21 = A[m:, :k] @ B[:k, :n] + A[m:, k:] @ B[k:, :n]
                    C22 = A[m:, :k] @ B[:k, n:] + A[m:, k:] @ B[k:, n:]
                    return np.block([[C11, C12], [C21, C22]])
            """),
            ("8 multiplications on this input, more than the 7 of Strassen's level",),
        ),
        Mutant(
            "A @ B",
            source("""
                def strassen_level(A, B):
                    return A @ B
            """),
            ("more than",),
        ),
        Mutant("a sign in C11", STRASSEN_LEVEL.replace("M4 - M5", "M4 + M5"), ("Only the block C11",)),
        Mutant("a sign in C22", STRASSEN_LEVEL.replace("M1 - M2", "M1 + M2"), ("Only the block C22",)),
        Mutant("C12 without M5", STRASSEN_LEVEL.replace("M3 + M5", "M3"), ("Only the block C12",)),
        Mutant("C21 without M2", STRASSEN_LEVEL.replace("M2 + M4\n", "M4\n"), ("Only the block C21",)),
        Mutant("a sign in M6", STRASSEN_LEVEL.replace("(A21 - A11)", "(A11 - A21)"), ("Only the block C22",)),
        Mutant("a sign in M7", STRASSEN_LEVEL.replace("(A12 - A22)", "(A12 + A22)"), ("Only the block C11",)),
        Mutant("a wrong block in M1", STRASSEN_LEVEL.replace("(A11 + A22)", "(A11 + A12)"), ("wrong",)),
        Mutant(
            "blocks in the wrong places",
            STRASSEN_LEVEL.replace("[[C11, C12], [C21, C22]]", "[[C11, C21], [C12, C22]]"),
            ("changed places",),
        ),
        Mutant(
            "element by element",
            STRASSEN_LEVEL.replace("@", "*"),
            ("wrong",),
        ),
        Mutant(
            "blocks as if everything were square",
            STRASSEN_LEVEL.replace(
                "m, k, n = A.shape[0] // 2, A.shape[1] // 2, B.shape[1] // 2", "m = k = n = len(A) // 2"
            ),
            ("ValueError",),
        ),
        Mutant(
            "never written",
            STRASSEN_LEVEL.replace(
                "    return np.block([[C11, C12], [C21, C22]])",
                "    C = np.empty((2 * m, 2 * n), A.dtype)\n"
                "    C[:m, :n], C[:m, n:], C[m:, :n] = C11, C12, C21\n"
                "    return C",
            ),
            ("never written",),
        ),
        Mutant(
            "always float64",
            STRASSEN_LEVEL.replace(
                "return np.block([[C11, C12], [C21, C22]])",
                "return np.block([[C11, C12], [C21, C22]]).astype(np.float64)",
            ),
            ("float32",),
        ),
        Mutant(
            "works in place",
            STRASSEN_LEVEL.replace("    M1 =", "    A11 += A22\n    M1 =").replace("(A11 + A22)", "A11"),
            ("changed its input",),
        ),
    ),
)
