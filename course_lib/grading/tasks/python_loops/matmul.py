"""Task 01.matmul: the triple loop."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.rules import PRODUCTS, CountsOperations, NoCalls, NoOperator, OnlyImports
from course_lib.grading.task import Mutant, Task, source
from course_lib.grading.tasks.python_loops.shared import PRODUCT_SLIPS, product, product_cases

_LOOPS = """\
def matmul(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = {C}
    for i in range({M}):
        for j in range({N}):
            for k in range({K}):
                {step}
    return {result}
"""


def _loops(**changes: str) -> str:
    """Return a triple loop with some of its parts changed."""
    parts = {
        "C": "[[0.0] * N for _ in range(M)]",
        "M": "M",
        "N": "N",
        "K": "K",
        "step": "C[i][j] += A[i][k] * B[k][j]",
        "result": "C",
    }
    return _LOOPS.format(**{**parts, **changes})


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
    mutants=(
        Mutant("rows by rows", _loops(step="C[i][j] += A[i][k] * B[j % K][k % N]"), ("wrong",)),
        Mutant(
            "A times B transposed",
            source("""
                def matmul(A, B):
                    return [[sum(a * b for a, b in zip(row, other)) for other in B] for row in A]
            """),
            ("rows by rows",),
        ),
        Mutant(
            "transposed result",
            source("""
                def matmul(A, B):
                    return [[sum(a * b for a, b in zip(row, col)) for row in A] for col in zip(*B)]
            """),
            ("transposed",),
        ),
        Mutant("B times A", _loops(step="C[i][j] += B[i % K][k % N] * A[k % M][j % K]"), ("swapped",)),
        Mutant("one list for all rows", _loops(C="[[0.0] * N] * M"), ("rows of your result are the same",)),
        Mutant("sum starts at 1", _loops(K="1, K"), ("first product", "missing")),
        Mutant("sum stops early", _loops(K="K - 1"), ("last product", "missing")),
        Mutant(
            "replaces instead of adding", _loops(step="C[i][j] = A[i][k] * B[k][j]"), ("last product", "+=")
        ),
        Mutant(
            "rounds",
            _loops(result="[[round(c, 2) for c in row] for row in C]"),
            ("right to 2 digits", "round"),
        ),
        Mutant(
            "returns in the loop",
            _loops().replace("    return C", "            return C"),
            ("return inside a loop",),
        ),
        Mutant(
            "prints instead of returning",
            _loops().replace("return C", "print(C)"),
            ("is a `return` missing?", "Printing is not returning"),
        ),
        Mutant("one flat list", _loops(result="sum(C, [])"), ("begin a new list for every row",)),
        Mutant("forgets the last column", _loops(N="N - 1"), ("last column",)),
        Mutant("forgets to return", _loops(result="None"), ("None", "return")),
        Mutant("shape from A", _loops(N="K"), ("column",)),
        Mutant(
            "uses up its input",
            source("""
                def matmul(A, B):
                    C = []
                    for row in A:
                        C.append([sum(a * b for a, b in zip(row, col)) for col in zip(*B)])
                        row.reverse()
                    return C
            """),
            ("changed its input",),
        ),
        Mutant(
            "returns tuples",
            source("""
                def matmul(A, B):
                    return tuple(tuple(sum(a * b for a, b in zip(row, col)) for col in zip(*B)) for row in A)
            """),
            ("tuple", "list of lists"),
        ),
        Mutant(
            "NumPy does it",
            source("""
                import numpy as np
                def matmul(A, B):
                    return (np.array(A) @ np.array(B)).tolist()
            """),
            ("imports numpy",),
        ),
        Mutant(
            "twice the work",
            source("""
                def matmul(A, B):
                    C = []
                    for row in A:
                        C.append([sum(a * b for a, b in zip(row, col)) for col in zip(*B)])
                        [a * b for a, b in zip(row, row)]
                    return C
            """),
            ("multiplications", "more than"),
        ),
        Mutant(
            "no rows, no answer",
            source("""
                def matmul(A, B):
                    K = len(A[0])
                    return [[sum(row[k] * B[k][j] for k in range(K)) for j in range(len(B[0]))] for row in A]
            """),
            ("IndexError", "without rows"),
        ),
    ),
)
