"""Task 02.bug: two bugs that compiled code does not report."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.task import Task
from course_lib.grading.tasks.compiled_loops.shared import (
    HEAD,
    LOOPS_ONLY,
    PRODUCT_SLIPS,
    all_inputs,
    product,
)

BROKEN = (
    HEAD
    + """\
@njit
def broken(A, B):
    M, K = A.shape
    N = B.shape[1]
    C = np.empty((M, N), A.dtype)
    for i in range(M):
        for k in range(0, K, 2):
            for j in range(N):
                C[i, j] += A[i, k] * B[k, j] + A[i, k + 1] * B[k + 1, j]
    return C
"""
)


TASK = Task(
    id="02.bug",
    title="Right by luck",
    kind="debug",
    points=2,
    difficulty=3,
    minutes=20,
    good_for="two bugs that compiled code never reports",
    entry="repaired",
    cases=all_inputs,
    reference=product,
    comparison=close_product(),
    rules=LOOPS_ONLY,
    lookalikes=PRODUCT_SLIPS,
    hints=(
        "What stands in C before the first += ? And which k does the last step of the loop use when K is 3?",
        "np.empty gives memory with whatever was in it. A loop in steps of two needs an even number of "
        "steps, or "
        "a step of one for the rest.",
        "np.zeros, range(0, K - 1, 2), and after it: if K % 2 == 1, add A[i, K - 1] * B[K - 1, j] for "
        "every j.",
    ),
)
