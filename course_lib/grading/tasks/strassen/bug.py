"""Task 03.bug: two signs in a table that one kind of test can never show."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from course_lib.grading.rules import CountsOperations
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.strassen.shared import (
    BLOCK_SLIPS,
    ONLY_NUMPY,
    close_by_norm,
    even_shapes,
    matrix,
    product,
    seven,
)

#: Wrong in the second line: the signs of A21 and of B12.
BROKEN = source("""
    import numpy as np

    # One line for each product: the signs of the blocks 11, 12, 21, 22 of A, of B, and of C.
    PRODUCTS = [
        ((1, -1, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0)),
        ((1, 0, -1, 0), (1, 1, 0, 0), (1, 0, 0, 0)),
        ((0, 1, 1, 0), (0, 1, 1, 0), (1, 0, 0, 1)),
        ((0, 1, 0, 1), (0, 0, -1, 1), (0, 0, 0, 1)),
        ((0, 0, 1, 0), (1, 0, 1, 0), (-1, 0, 1, 0)),
        ((0, 1, 0, 0), (0, 1, 0, 1), (0, 1, 0, -1)),
        ((0, 0, -1, 1), (0, 0, 1, 0), (0, 0, 1, 1)),
    ]


    def blocks(X):
        return [block for rows in np.split(X, 2) for block in np.split(rows, 2, axis=1)]


    def add_up(signs, parts):
        total = 0
        for sign, part in zip(signs, parts):
            total = total + part if sign > 0 else total - part if sign else total
        return total


    def broken(A, B):
        products = [add_up(a, blocks(A)) @ add_up(b, blocks(B)) for a, b, _ in PRODUCTS]
        C11, C12, C21, C22 = [add_up(c, products) for c in zip(*[c for _, _, c in PRODUCTS])]
        return np.block([[C11, C12], [C21, C22]])
""")
_BROKEN = BROKEN.replace("broken", "repaired")
_A = ("((1, 0, -1, 0),", "((1, 0, 1, 0),")
_B = ("(1, 1, 0, 0), (1, 0, 0, 0))", "(1, -1, 0, 0), (1, 0, 0, 0))")


def _inputs(rng: np.random.Generator) -> Iterator[Case]:
    X = matrix(rng, 2, 2)
    yield Case((X, X.T.copy()), "a 2 x 2 matrix times its own transpose, which is what was tested")
    yield from even_shapes(rng)


def _tensor(text: str) -> np.ndarray:
    """Return what the tables of a text compute, as a tensor (4, 4, 4)."""
    (table,) = (node.value for node in ast.parse(text).body if isinstance(node, ast.Assign))
    return np.einsum("pa,pb,pc->abc", *np.array(ast.literal_eval(table)).swapaxes(0, 1))


def _result(text: str, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return what an answer with these tables gives, in float64."""
    parts = [
        [block.astype(np.float64) for rows in np.split(X, 2) for block in np.split(rows, 2, axis=1)]
        for X in (A, B)
    ]
    tensor = _tensor(text)
    C = [
        sum(tensor[a, b, c] * (parts[0][a] @ parts[1][b]) for a in range(4) for b in range(4))
        for c in range(4)
    ]
    return np.block([[C[0], C[1]], [C[2], C[3]]])


TASK = Task(
    id="03.bug",
    title="A test that proves nothing",
    kind="debug",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="checking an algorithm by its tensor instead of by examples that are too friendly",
    entry="repaired",
    cases=_inputs,
    reference=product,
    comparison=close_by_norm(1),
    rules=ONLY_NUMPY,
    counts=CountsOperations(
        multiplications=seven, wanted="exactly seven products of blocks", whose="that seven products take"
    ),
    lookalikes=(
        Lookalike(
            "That is what `broken` gives: wrong as soon as B is not the transpose of A.",
            lambda A, B: _result(_BROKEN, A, B),
        ),
        Lookalike(
            "One sign is mended, a second one is still wrong, in the same line of the table.",
            fits=lambda got, A, B: any(
                np.allclose(got, _result(text, A, B), rtol=1e-3)
                for text in (_BROKEN.replace(*_A), _BROKEN.replace(*_B))
            ),
        ),
        *BLOCK_SLIPS,
    ),
    hints=(
        "Which entries of A and B stand in the result, and in which block of C is the wrong one? Try it "
        "with matrices that hold a single 1.",
        "Form the tensor of the table, np.einsum('pa,pb,pc->abc', *zip(*PRODUCTS)), and compare "
        "it with that of the product. It differs in C11 alone, so look at the products that go there.",
        "The second product: it must be (A11 + A21) (B11 - B12), and the tables say (A11 - A21) (B11 + B12).",
    ),
)
