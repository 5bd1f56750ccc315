"""Faults that are none: for every input that a task allows, the answer with the change is as right as before.

Each stands here with its reason. An entry whose fault no longer exists, or is caught, is an error: then the
solution or the inputs have changed, and the reason must be thought over.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equivalent:
    """Faults of some tasks, by the operator and the change, that are none, and one sentence why."""

    tasks: tuple[str, ...]
    operator: str
    changes: tuple[str, ...]
    reason: str


PAIRS = "for a, b in zip(row, col):"
COLUMNS = "for j in range(0, len(columns) - 3, 4):"
REST = "C.append(out + [dot({}) for col in columns[len(out):]])"
SIZES = "M, K, N = (len(A), len(B), len(B[{}]))"
COMPILED = ("02.order", "02.matmul", "02.fast", "02.bug")
COMMUTES = "a * b is b * a, so it does not matter which of the two lists gives the first factor."
ONE_AT_A_TIME = (
    "The columns that are not served four at a time are served one at a time, so the product is the same and "
    "only its speed, which is judged apart, suffers."
)

EQUIVALENTS: tuple[Equivalent, ...] = (
    Equivalent(
        ("01.dot", "01.matmul", "01.faster"),
        "unpacking",
        (f"{PAIRS} -> for b, a in zip(row, col):",),
        COMMUTES,
    ),
    Equivalent(
        ("01.dot", "01.matmul", "01.faster"),
        "operands",
        (f"{PAIRS} -> for a, b in zip(col, row):",),
        COMMUTES,
    ),
    Equivalent(
        ("01.matmul",),
        "operands",
        (
            "return [[dot(row, col) for col in columns] for row in A] -> "
            "return [[dot(col, row) for col in columns] for row in A]",
        ),
        COMMUTES,
    ),
    Equivalent(
        ("01.faster",), "operands", (f"{REST.format('row, col')} -> {REST.format('col, row')}",), COMMUTES
    ),
    Equivalent(
        ("01.alias",),
        "index",
        (f"{SIZES.format(0)} -> {SIZES.format('0 - 1')}",),
        "All rows of a matrix have the same length, so the last row tells the number of columns as well.",
    ),
    Equivalent(
        ("01.alias",),
        "constant",
        (f"{SIZES.format(0)} -> {SIZES.format('-1')}",),
        "All rows of a matrix have the same length, so the last row tells the number of columns as well.",
    ),
    Equivalent(("01.faster",), "early end", ("after out += [c0, c1, c2, c3] -> break",), ONE_AT_A_TIME),
    Equivalent(
        ("01.faster",),
        "bounds",
        (f"{COLUMNS} -> for j in range(0, len(columns) - 3 - 1, 4):",),
        ONE_AT_A_TIME,
    ),
    Equivalent(
        ("01.faster",),
        "edge tile",
        (
            f"{COLUMNS} -> for j in range(0, (len(columns) - 3) // 2 * 2, 4):",
            f"{COLUMNS} -> for j in range(0, (len(columns) - 3) // 4 * 4, 4):",
        ),
        ONE_AT_A_TIME,
    ),
    Equivalent(
        ("01.faster",), "constant", (f"{COLUMNS} -> for j in range(0, len(columns) - 4, 4):",), ONE_AT_A_TIME
    ),
    Equivalent(("01.faster",), "name", (f"{COLUMNS} -> for j in range(0, len(out) - 3, 4):",), ONE_AT_A_TIME),
    Equivalent(
        ("01.faster",),
        "deleted",
        (
            "out += [c0, c1, c2, c3] -> nothing",
            f"{COLUMNS}; c0 = c1 = c2 = c3 = 0.0; for a, b0, b1, b2, b3 in zip(row, *columns[j:j + 4]):; "
            "c0 += a * b0; c1 += a * b1; c2 += a * b2; c3 += a * b3; out += [c0, c1, c2, c3] -> nothing",
        ),
        ONE_AT_A_TIME,
    ),
    Equivalent(
        COMPILED,
        "constant",
        ("N = B.shape[1] -> N = B.shape[-1]",),
        "B has two axes, so its last axis is the one with number 1.",
    ),
    Equivalent(
        COMPILED,
        "name",
        ("C = np.zeros((M, N), A.dtype) -> C = np.zeros((M, N), B.dtype)",),
        "A and B have the same dtype in every input that these tasks allow.",
    ),
    Equivalent(
        ("02.bug",),
        "comparison",
        ("if K % 2 == 1: -> if K % 2 >= 1:",),
        "The remainder of a division by 2 is 0 or 1, so it is at least 1 exactly when it is 1.",
    ),
)


def reasons(task_id: str) -> dict[str, str]:
    """Return the reason for each fault of a task that is none, by the key of the fault."""
    return {
        f"{entry.operator} | {change}": entry.reason
        for entry in EQUIVALENTS
        if task_id in entry.tasks
        for change in entry.changes
    }
