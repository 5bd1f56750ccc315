"""Task 02.order: the loops in the order k, i, j."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.rules import LoopOrder
from course_lib.grading.task import Mutant, Task
from course_lib.grading.tasks.compiled_loops.shared import (
    LOOPS_ONLY,
    PRODUCT_SLIPS,
    all_inputs,
    loops,
    product,
)


def _returning_in(loop: str) -> str:
    """Return the loops with `return C` at the end of the body of one of them."""
    depth = 2 + "kij".index(loop)
    return loops("matmul_kij", "kij").replace("    return C", "    " * depth + "return C")


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
    mutants=(
        Mutant("another order", loops("matmul_kij", "ikj"), ("i, k, j", "wants k, i, j")),
        Mutant(
            "replaces instead of adding",
            loops("matmul_kij", "kij", step="C[i, j] = A[i, k] * B[k, j]"),
            ("last product", "+="),
        ),
        Mutant("returns in the outer loop", _returning_in("k"), ("return inside a loop",)),
        Mutant("returns in the middle loop", _returning_in("i"), ("return inside a loop",)),
        Mutant("returns in the inner loop", _returning_in("j"), ("return inside a loop",)),
        Mutant(
            "a name that is not there",
            loops("matmul_kij", "kij", j="n_columns"),
            ("NameError", "line 11", "`for j in range(n_columns):`"),
        ),
        Mutant("forgets to return", loops("matmul_kij", "kij").replace("    return C\n", ""), ("`return`",)),
        Mutant("stops a column early", loops("matmul_kij", "kij", j="N - 1"), ("last column",)),
        Mutant(
            "runs over the rows of B",
            loops("matmul_kij", "kij", j="K", step="C[i, j % N] += A[i, k] * B[k, j % N]"),
            ("wrong",),
        ),
        Mutant("not compiled", loops("matmul_kij", "kij").replace("@njit\n", ""), ("not compiled", "@njit")),
        Mutant(
            "B read transposed",
            loops("matmul_kij", "kij", step="C[i, j] += A[i, k] * B[j, k]"),
            ("transpose of B",),
        ),
    ),
)
