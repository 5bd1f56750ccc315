"""Task 01.faster: the same product, as fast as plain Python gets."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.rules import PRODUCTS, NoCalls, NoMemory, NoOperator, OnlyImports
from course_lib.grading.task import Code, SpeedRule, Task
from course_lib.grading.tasks.python_loops.shared import PRODUCT_SLIPS, pair, product, product_cases

INDEXED = Code(
    """\
def matmul_indexed(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = [[0.0] * N for _ in range(M)]
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i][j] += A[i][k] * B[k][j]
    return C
""",
    "matmul_indexed",
)


TASK = Task(
    id="01.faster",
    title="As fast as Python goes",
    kind="fast",
    points=3,
    difficulty=3,
    minutes=25,
    good_for="seeing what a loop costs besides its arithmetic, and where plain Python ends",
    entry="matmul_fast",
    cases=product_cases,
    reference=product,
    comparison=close_product(),
    rules=(OnlyImports(), NoOperator("@"), NoCalls(PRODUCTS), NoMemory()),
    speed=SpeedRule(
        baseline=INDEXED,
        make_inputs=lambda rng: pair(rng, 61, 67, 59),
        thresholds=((1.3, 0.5), (1.8, 1.0)),
        points=2,
        on_the_way="Reading rows and columns directly is worth about half; for the rest let one pass serve "
        "several columns: hint 2.",
        flops=lambda A, B: 2 * len(A) * len(B) * len(B[0]),
    ),
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "Per inner step the baseline looks up four lists by index to do one multiplication. Which "
        "look-ups give "
        "the same object again and again?",
        "Loop over the numbers, not over indices (zip), and keep the sum in a local name: that is about "
        "1.6x. "
        "Then let one pass over a row serve several columns, so that the cost of a loop step is shared.",
        "for a, b0, b1, b2, b3 in zip(row, *columns[j:j + 4]): c0 += a * b0; c1 += a * b1; … and the columns "
        "that are left over one by one.",
    ),
)
