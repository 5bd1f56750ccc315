"""Task 02.matmul: a compiled product that is right for every input."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.task import Task
from course_lib.grading.tasks.compiled_loops.shared import (
    LOOPS_ONLY,
    PRODUCT_SLIPS,
    all_inputs,
    product,
)

TASK = Task(
    id="02.matmul",
    title="Compile your own matmul",
    kind="write",
    points=3,
    difficulty=3,
    minutes=20,
    good_for="a compiled product that is right for every input, not only for squares of float64",
    entry="matmul",
    cases=all_inputs,
    reference=product,
    comparison=close_product(),
    rules=LOOPS_ONLY,
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "Which shape and which dtype has the result, and what must stand in it before the first += ?",
        "np.zeros((M, N), A.dtype), then three loops. fastmath may fuse and reorder, but it must not "
        "promise that "
        "there are no NaN and inf.",
        '@njit(fastmath={"contract", "reassoc"}), then for i, for k, for j: C[i, j] += A[i, k] * B[k, j].',
    ),
)
