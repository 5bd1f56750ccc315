"""Task 02.order: the loops in the order k, i, j."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.rules import LoopOrder
from course_lib.grading.task import Task
from course_lib.grading.tasks.compiled_loops.shared import (
    LOOPS_ONLY,
    PRODUCT_SLIPS,
    all_inputs,
    product,
)

TASK = Task(
    id="02.order",
    title="Turn the loops around",
    kind="complete",
    points=1,
    difficulty=1,
    minutes=10,
    good_for="seeing that a product can be built by rows as well as by elements",
    entry="matmul_kij",
    cases=all_inputs,
    reference=product,
    comparison=close_product(),
    rules=(*LOOPS_ONLY, LoopOrder("kij")),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "k and i are given. Which numbers of A, B and C have to do with this pair (k, i)?",
        "A[i, k] is one number; it scales the whole row k of B, and the result is added to row i of C. "
        "The loop "
        "that is missing runs along those rows.",
        "for j in range(N): C[i, j] += A[i, k] * B[k, j]",
    ),
)
