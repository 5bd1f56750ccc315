"""Task 01.matmul: the triple loop."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.rules import PRODUCTS, CountsOperations, NoCalls, NoOperator, OnlyImports
from course_lib.grading.task import Task
from course_lib.grading.tasks.python_loops.shared import PRODUCT_SLIPS, product, product_cases

TASK = Task(
    id="01.matmul",
    title="Write the triple loop",
    kind="write",
    points=3,
    difficulty=2,
    minutes=15,
    good_for="having written, once, what every later circle makes fast",
    entry="matmul",
    cases=product_cases,
    reference=product,
    comparison=close_product(),
    rules=(OnlyImports(), NoOperator("@"), NoCalls(PRODUCTS)),
    counts=CountsOperations(
        multiplications=lambda A, B: len(A) * len(B) * len(B[0]),
        wanted="exactly M * N * K multiplications",
    ),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "Which numbers of A and B does the one element C[i][j] need? Say it in words before you write a "
        "loop.",
        "For row in A, for col in B: each element is the sum over the pairs in (row, col). zip(*B) gives the "
        "columns of B; your `dot` adds up the pairs.",
        "return [[dot(row, col) for col in zip(*B)] for row in A]  (or three loops over indices i, j, k).",
    ),
)
