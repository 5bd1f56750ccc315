"""Task 03.lost: of seven products one is lost; what the other six leave over says which one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task, source

Row = list[int]
Table = list[Row]

#: Strassen's tables (as in `circles.strassen`, which would load the compiler).
LEFT = ((1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (-1, 0, 1, 0), (0, 1, 0, -1))
RIGHT = ((1, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, -1), (-1, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1))
INTO = ((1, 0, 0, 1), (0, 0, 1, -1), (0, 1, 0, 1), (1, 0, 1, 0), (-1, 1, 0, 0), (0, 0, 0, 1), (1, 0, 0, 0))

GIVEN = source("""
    import numpy as np

    def left_over(left, right, into):
        # rest[a, b, c]: is block a of A times block b of B still missing in block c of C?
        one = np.eye(2, dtype=int)
        # a_ik times b_kj belongs to c_ij
        product = np.einsum("im,kl,jn->ikljmn", one, one, one).reshape(4, 4, 4)
        return product - np.einsum("pa,pb,pc->abc", left, right, into)
""")
SOLUTION = (
    GIVEN
    + """
def lost_product(left, right, into):
    rest = left_over(left, right, into)
    a, b, c = np.argwhere(rest)[0]
    l = rest[:, b, c] * rest[a, b, c]
    r = rest[a, :, c] * rest[a, b, c]
    return l.tolist(), r.tolist(), rest[a, b, :].tolist()
"""
)


def left_over(left: Table, right: Table, into: Table) -> np.ndarray:
    """Return the matmul tensor (4, 4, 4) less the products of the table."""
    rest = np.zeros((4, 4, 4), int)
    for i, k, j in np.ndindex(2, 2, 2):
        rest[2 * i + k, 2 * k + j, 2 * i + j] = 1
    return rest - np.einsum("pa,pb,pc->abc", left, right, into)


def lost_product(left: Table, right: Table, into: Table) -> tuple[Row, Row, Row]:
    """Return the rows of the seventh product; the first sign of its left and of its right row is +."""
    rest = left_over(left, right, into)
    a, b, c = np.argwhere(rest)[0]
    sign = rest[a, b, c]
    return (rest[:, b, c] * sign).tolist(), (rest[a, :, c] * sign).tolist(), rest[a, b, :].tolist()


def _disguised(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return another set of seven products: rows and columns of A, B and C renamed and their signs changed.

    With X, Y, Z signed permutations, (X A Y^-1)(Y B Z^-1) = X A B Z^-1, so the products stay seven.
    """
    X, Y, Z = (rng.permutation(np.eye(2, dtype=int)) * rng.choice([-1, 1], (2, 1)) for _ in range(3))
    renamed = np.kron(X, Y), np.kron(Y, Z), np.kron(X, Z)  # inverse = transpose for these
    return tuple(np.array(table) @ change for table, change in zip((LEFT, RIGHT, INTO), renamed, strict=True))


def _tables(rng: np.random.Generator) -> Iterator[Case]:
    full = tuple(np.array(table) for table in (LEFT, RIGHT, INTO))
    for lost in (5, 0):
        yield _without(full, lost, f"the chapter's products without M{lost + 1}")
    turned = np.array((1, -1, 1, -1))  # B12, B22, C12 and C22 with the other sign: right as well
    mirrored = full[0], full[1] * turned, full[2] * turned
    yield _without(mirrored, 5, "the same with the signs of B12, B22, C12, C22 turned round, without M6")
    for lost in rng.permutation(7):
        order = rng.permutation(7)
        shuffled = tuple(table[order] for table in _disguised(rng))
        yield _without(shuffled, int(lost), "seven other products, one of them lost")


def _without(tables: tuple, lost: int, label: str) -> Case:
    return Case(tuple(np.delete(table, lost, axis=0).tolist() for table in tables), label)


def _other_sign(got: tuple, left: Table, right: Table, into: Table) -> bool:
    """Whether the result is the lost product, with the signs of two of its rows turned round."""
    want = lost_product(left, right, into)
    same = [np.array_equal(np.abs(mine), np.abs(row)) for mine, row in zip(got, want, strict=True)]
    rest = left_over(left, right, into)
    return all(same) and np.array_equal(np.einsum("a,b,c->abc", *got), rest)


TASK = Task(
    id="03.lost",
    title="The lost product",
    kind="complete",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="seeing an algorithm as a sum of simple tensors: the game that AlphaTensor plays",
    entry="lost_product",
    cases=_tables,
    reference=lost_product,
    comparison=exact(("row for A", "row for B", "row for C")),
    rules=(OnlyImports(("numpy", "math")),),
    lookalikes=(
        Lookalike(
            "The product is right, but not its signs: make the first number that is not 0 in the row for A "
            "and in the row for B positive, and let the row for C carry the sign.",
            fits=_other_sign,
        ),
        Lookalike(
            "The rows for A and B have changed places.",
            lambda left, right, into: (lambda l, r, c: (r, l, c))(*lost_product(left, right, into)),
        ),
        Lookalike(
            "The sign is lost: the product of your three rows must be what is left over, "
            "not its absolute value.",
            fits=lambda got, left, right, into: all(
                np.array_equal(np.abs(mine), np.abs(row))
                for mine, row in zip(got, lost_product(left, right, into), strict=True)
            ),
        ),
        Lookalike(
            "That is one of the six products that are there.",
            fits=lambda got, left, right, into: any(
                list(map(list, got)) == [l, r, c] for l, r, c in zip(left, right, into, strict=True)
            ),
        ),
    ),
    hints=(
        "rest[a, b, c] = left[a] * right[b] * into[c] for the one product that is lost. If you hold b and c "
        "fixed and let a run, what do you see?",
        "Take any place (a, b, c) where rest is not 0 (np.argwhere(rest)[0] is the first one). rest[:, b, c] "
        "is the left row, rest[a, :, c] the right one and rest[a, b, :] the one for C, each up to a sign.",
        "At the first place that is not 0, with sign = rest[a, b, c]: return "
        "(sign * rest[:, b, c]).tolist(), (sign * rest[a, :, c]).tolist(), rest[a, b, :].tolist().",
    ),
)
