"""Task 02.matmul: a compiled product that is right for every input."""

from __future__ import annotations

from course_lib.grading.compare import close_product
from course_lib.grading.task import Mutant, Task, source
from course_lib.grading.tasks.compiled_loops.shared import (
    HEAD,
    LOOPS_ONLY,
    PRODUCT_SLIPS,
    all_inputs,
    loops,
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
    mutants=(
        Mutant("full fastmath", loops("matmul", options="(fastmath=True)"), ("fastmath=True", "NaN")),
        Mutant(
            "room without zeros",
            loops("matmul", C="np.empty((M, N), A.dtype)"),
            ("never written", "np.empty"),
        ),
        Mutant("always float64", loops("matmul", C="np.zeros((M, N))"), ("dtype is float64", "float32")),
        Mutant(
            "always float32",
            loops("matmul", C="np.zeros((M, N), np.float32)"),
            ("dtype is float32", "float64"),
        ),
        Mutant(
            "sums in float32",
            loops("matmul", step="C[i, j] += np.float32(A[i, k]) * np.float32(B[k, j])"),
            ("wrong",),
        ),
        Mutant(
            "skips zeros",
            loops("matmul").replace(
                "            for j",
                "            if A[i, k] == 0.0:\n                continue\n            for j",
            ),
            ("skip the product", "0 * inf"),
        ),
        Mutant("square only", loops("matmul", j="K"), ("last column",)),
        Mutant(
            "shape swapped",
            loops("matmul", C="np.zeros((N, M), A.dtype)"),
            ("outside an array", "`C` has ", " rows of ", " are needed."),
        ),
        Mutant("sum starts at 1", loops("matmul", k="1, K"), ("first product", "missing")),
        Mutant(
            "fixed types",
            loops("matmul", options='("float64[:, ::1](float64[:, ::1], float64[:, ::1])")'),
            ("Remove the types from @njit(...)",),
        ),
        Mutant(
            "BLAS does it",
            HEAD
            + source("""
            @njit
            def matmul(A, B):
                return np.dot(A, B)
        """),
            ("numpy.dot",),
        ),
        Mutant(
            "the operator does it",
            HEAD
            + source("""
                @njit
                def matmul(A, B):
                    return A @ B
            """),
            ("operator @",),
        ),
        Mutant("not compiled", loops("matmul").replace("@njit\n", ""), ("not compiled",)),
        Mutant(
            "contiguous inputs only",
            loops("matmul", step="C[i, j] += A.ravel()[i * K + k] * B.reshape(K * N)[k * N + j]"),
            ("views",),
        ),
        Mutant(
            "works in A",
            loops("matmul").replace("    for i", "    A *= 1.0000001\n    for i", 1),
            ("changed its input",),
        ),
    ),
)
