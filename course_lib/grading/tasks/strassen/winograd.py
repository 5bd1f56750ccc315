"""Task 03.winograd: seven products with fifteen sums, because several sums have a part in common."""

from __future__ import annotations

import numpy as np

from course_lib.grading.rules import CountsOperations
from course_lib.grading.task import Mutant, Task
from course_lib.grading.tasks.strassen.shared import (
    BLOCK_SLIPS,
    ONLY_NUMPY,
    STRASSEN_LEVEL,
    WINOGRAD_LEVEL,
    close_by_norm,
    even_shapes,
    product,
    seven,
)


def additions(A: np.ndarray, B: np.ndarray) -> int:
    """Return the additions: those inside seven products, and 4 + 4 + 7 sums of blocks."""
    m, k, n = A.shape[0] // 2, A.shape[1] // 2, B.shape[1] // 2
    return 7 * m * n * (k - 1) + 4 * m * k + 4 * k * n + 7 * m * n


TASK = Task(
    id="03.winograd",
    title="Fifteen sums are enough",
    kind="write",
    points=3,
    difficulty=3,
    minutes=15,
    good_for="finding common sums: less memory traffic for the same seven products",
    entry="winograd_level",
    cases=even_shapes,
    reference=product,
    comparison=close_by_norm(1),
    rules=ONLY_NUMPY,
    counts=CountsOperations(
        seven, additions, "exactly seven products and fifteen sums of blocks", "that are enough"
    ),
    lookalikes=BLOCK_SLIPS,
    hints=(
        "Which sums does the chapter's list of Winograd's variant use twice? Where could you keep them?",
        "Four sums of blocks of A: two of them are built on earlier ones (S2 = S1 - A11, and S4 on S2), two "
        "are not. Four of B likewise, then seven products. After them P1 + P6 stands in three of the four "
        "blocks of C: add it up once.",
        "U = P1 + P6; V = U + P7; W = U + P5; then C11 = P1 + P2, C12 = W + P3, C21 = V - P4, C22 = V + P5.",
    ),
    mutants=(
        Mutant(
            "Strassen's own eighteen sums",
            STRASSEN_LEVEL.replace("strassen_level", "winograd_level"),
            ("18 additions on this input, more than the 15 that are enough",),
        ),
        Mutant(
            "the common sum twice",
            WINOGRAD_LEVEL.replace("W = U + P5", "W = P1 + P6 + P5"),
            ("additions", "more than"),
        ),
        Mutant("S2 from scratch", WINOGRAD_LEVEL.replace("S1 - A11", "A21 + A22 - A11"), ("more than",)),
        Mutant("T4 from scratch", WINOGRAD_LEVEL.replace("T2 - B21", "B22 - T1 - B21"), ("more than",)),
        Mutant("a sign before P4", WINOGRAD_LEVEL.replace("V - P4", "V + P4"), ("Only the block C21",)),
        Mutant("P5 left out of C22", WINOGRAD_LEVEL.replace("V + P5]", "V]"), ("Only the block C22",)),
        Mutant("P3 left out of C12", WINOGRAD_LEVEL.replace("W + P3", "W"), ("Only the block C12",)),
        Mutant("P2 left out of C11", WINOGRAD_LEVEL.replace("P1 + P2,", "P1,"), ("Only the block C11",)),
        Mutant("a sign in S4", WINOGRAD_LEVEL.replace("A12 - S2", "A12 + S2"), ("Only the block C12",)),
        Mutant("a sign in T2", WINOGRAD_LEVEL.replace("B22 - T1", "B22 + T1"), ("wrong",)),
        Mutant(
            "an eighth product",
            WINOGRAD_LEVEL.replace("P1 + P2,", "A11 @ B11 + P2,"),
            ("multiplications", "more than"),
        ),
        Mutant(
            "blocks in the wrong places",
            WINOGRAD_LEVEL.replace(
                "[[P1 + P2, W + P3], [V - P4, V + P5]]", "[[P1 + P2, V - P4], [W + P3, V + P5]]"
            ),
            ("changed places",),
        ),
    ),
)
