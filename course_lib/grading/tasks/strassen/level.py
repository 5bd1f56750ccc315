"""Task 03.level: one level of Strassen, on blocks, with seven products."""

from __future__ import annotations

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
)
