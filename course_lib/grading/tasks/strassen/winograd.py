"""Task 03.winograd: seven products with fifteen sums, because several sums have a part in common."""

from __future__ import annotations

import numpy as np

from course_lib.grading.rules import CountsOperations
from course_lib.grading.task import Task
from course_lib.grading.tasks.strassen.shared import (
    BLOCK_SLIPS,
    ONLY_NUMPY,
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
)
