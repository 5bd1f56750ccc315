"""Task 02.fast: the same three loops, several times as fast."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.task import Code, SpeedRule, Task
from course_lib.grading.tasks.compiled_loops.shared import (
    LOOPS_ONLY,
    PRODUCT_SLIPS,
    all_inputs,
    loops,
    pair,
    product,
)

PLAIN_IJK = Code(loops("matmul_ijk", "ijk"), "matmul_ijk")


TASK = Task(
    id="02.fast",
    title="Let the hardware walk straight",
    kind="fast",
    points=4,
    difficulty=3,
    minutes=15,
    good_for="getting an order of magnitude out of the same three loops",
    entry="matmul_fast",
    cases=all_inputs,
    reference=product,
    comparison=close_product(),
    rules=LOOPS_ONLY,
    speed=SpeedRule(
        baseline=PLAIN_IJK,
        make_inputs=lambda rng: pair(rng, 384, 384, 384, "float32"),
        thresholds=((3.0, 1 / 3), (8.0, 1.0)),
        points=3,
    ),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "The baseline walks down a column of B: how many of the 16 numbers in each fetched cache line "
        "does it use?",
        "Put j innermost: then B and C are walked contiguously and the compiler can use whole vector "
        "registers. "
        "Allow it to fuse a product and a sum into one instruction.",
        '@njit(fastmath={"contract", "reassoc"}) and the order i, k, j, with a = A[i, k] taken out of the '
        "inner loop.",
    ),
)
