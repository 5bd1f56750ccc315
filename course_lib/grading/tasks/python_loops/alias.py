"""Task 01.alias: a product with two bugs, one of them a list that is there only once."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.rules import PRODUCTS, NoCalls, NoOperator, OnlyImports
from course_lib.grading.task import Task
from course_lib.grading.tasks.python_loops.shared import PRODUCT_SLIPS, product, product_cases

BROKEN = """\
def broken(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = [[0.0] * M] * N
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i][j] += A[i][k] * B[k][j]
    return C
"""


TASK = Task(
    id="01.alias",
    title="Find the two bugs",
    kind="debug",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="names and objects: what managed memory does behind your back",
    entry="repaired",
    cases=product_cases,
    reference=product,
    comparison=close_product(),
    rules=(OnlyImports(), NoOperator("@"), NoCalls(PRODUCTS)),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "Take A and B of 2 x 2. Print C after every change of one element: how many elements change?",
        "[x] * n does not make n lists, it makes n references to one list. And which of M and N is the "
        "number "
        "of rows?",
        "C = [[0.0] * N for _ in range(M)]",
    ),
)
