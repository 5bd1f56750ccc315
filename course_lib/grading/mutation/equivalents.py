"""Faults that are none: for every input that a task allows, the answer with the change is as right as before.

Each stands here with its reason. An entry whose fault no longer exists, or is caught, is an error: then the
solution or the inputs have changed, and the reason must be thought over.
"""

from __future__ import annotations

from course_lib.grading.mutation import (
    equivalents_batched,
    equivalents_cache,
    equivalents_fp8,
    equivalents_fp8_experiments,
    equivalents_gpu,
)
from course_lib.grading.mutation.equivalent import WHOLE_NUMBERS, Equivalent

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

NEAR_ENOUGH = "A little less exact, the distribution is as good: 10 % are allowed."

#: Of the tasks of chapter 03 that cut A and B into blocks.
HALVES = "({0}11, {0}12), ({0}21, {0}22) = (np.split(rows, 2, axis={1}) for rows in np.split({0}, 2))"
TENSOR = "product = np.einsum('{}', one, one, one).reshape({}, {}, {})"
SIX = "return product - np.einsum('{}', left, right, into)"

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
    Equivalent(
        ("03.level", "03.winograd", "03.bug", "03.any"),
        "constant",
        tuple(f"{HALVES.format(X, 1)} -> {HALVES.format(X, -1)}" for X in "AB"),
        "A and B have two axes, so their last axis is the one with number 1.",
    ),
    Equivalent(
        ("03.level", "03.winograd", "03.bug", "03.any"),
        "edge tile",
        tuple(
            f"{HALVES.format(X, 1)} -> "
            + HALVES.format(X, 1).replace(halves, f"list({halves})[:len(list({halves})) // 2 * 2]")
            for X, halves in (("A", "np.split(A, 2)"), ("B", "np.split(B, 2)"))
        ),
        "Two halves, rounded down to a multiple of two, are two halves.",
    ),
    Equivalent(
        ("03.any",),
        "constant",
        ("(M, K), N = (A.shape, B.shape[1]) -> (M, K), N = (A.shape, B.shape[-1])",),
        "A and B have two axes, so their last axis is the one with number 1.",
    ),
    Equivalent(
        ("03.lost",),
        "constant",
        (
            f"{TENSOR.format('im,kl,jn->ikljmn', 4, 4, 4)} -> {TENSOR.format('IM,KL,JN->IKLJMN', 4, 4, 4)}",
            f"{SIX.format('pa,pb,pc->abc')} -> {SIX.format('PA,PB,PC->ABC')}",
        ),
        "The letters of einsum are names: capitals serve as well.",
    ),
    Equivalent(
        ("03.lost",),
        "constant",
        (
            f"{TENSOR.format('im,kl,jn->ikljmn', 4, 4, 4)} -> {TENSOR.format('im,kl,jn->ikljmn', -4, 4, 4)}",
            f"{TENSOR.format('im,kl,jn->ikljmn', 4, 4, 4)} -> {TENSOR.format('im,kl,jn->ikljmn', 4, -4, 4)}",
            f"{TENSOR.format('im,kl,jn->ikljmn', 4, 4, 4)} -> {TENSOR.format('im,kl,jn->ikljmn', 4, 4, -4)}",
        ),
        "NumPy takes a negative size as the one that follows from the others: 64 / 16 = 4.",
    ),
    Equivalent(
        ("03.crossover",),
        "result",
        ("no sign", "NaN is 0"),
        "All rates and sizes are numbers above 0, so the result is one, too.",
    ),
    Equivalent(("05.bands",), "result", ("rows sorted",), "The bands lie in rising order already."),
    Equivalent(("05.bands",), "result", ("rows are tuples",), "A pair may be a tuple, as in the chapter."),
    Equivalent(
        ("05.bands",),
        "result",
        (
            "no sign",
            "rounded",
            "whole numbers",
            "float32",
            "NaN is 0",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.race",),
        "precision",
        (
            "done[tile] += 1 -> done[tile] += round(1, 6)",
            "done[tile] += 1 -> done[tile] = round(done[tile] + 1, 6)",
            "done[tile] += 1 -> done[tile] += abs(1)",
            "done[tile] += 1 -> done[tile] += int(1)",
            "done[tile] += 1 -> done[tile] = abs(done[tile] + 1)",
            "mine += 1 -> mine += round(1, 6)",
            "mine += 1 -> mine = round(mine + 1, 6)",
            "mine += 1 -> mine += abs(1)",
            "mine += 1 -> mine += int(1)",
            "mine += 1 -> mine = abs(mine + 1)",
            "following[0] += 1 -> following[0] += round(1, 6)",
            "following[0] += 1 -> following[0] = round(following[0] + 1, 6)",
            "following[0] += 1 -> following[0] += abs(1)",
            "following[0] += 1 -> following[0] += int(1)",
            "following[0] += 1 -> following[0] = abs(following[0] + 1)",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.race",),
        "index",
        (
            "tile = following[0] -> tile = following[0 - 1]",
            "following[0] += 1 -> following[0 - 1] += 1",
        ),
        "The list has one entry, so its last one is its first.",
    ),
    Equivalent(
        ("05.race",),
        "constant",
        (
            "tile = following[0] -> tile = following[-1]",
            "following[0] += 1 -> following[-1] += 1",
        ),
        "The list has one entry, so its last one is its first.",
    ),
    Equivalent(
        ("05.race",),
        "result",
        (
            "no sign",
            "rounded",
            "whole number",
            "NaN is 0",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.transfer",),
        "precision",
        (
            "balance[giver] -= amount -> balance[giver] -= round(amount, 6)",
            "balance[giver] -= amount -> balance[giver] = round(balance[giver] - amount, 6)",
            "balance[giver] -= amount -> balance[giver] -= abs(amount)",
            "balance[giver] -= amount -> balance[giver] -= int(amount)",
            "balance[giver] -= amount -> balance[giver] = abs(balance[giver] - amount)",
            "balance[taker] += amount -> balance[taker] += round(amount, 6)",
            "balance[taker] += amount -> balance[taker] = round(balance[taker] + amount, 6)",
            "balance[taker] += amount -> balance[taker] += abs(amount)",
            "balance[taker] += amount -> balance[taker] += int(amount)",
            "balance[taker] += amount -> balance[taker] = abs(balance[taker] + amount)",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.transfer",),
        "name",
        (
            "with lock_of(giver): -> with lock_of(taker):",
            "return amount if balance[giver] >= amount else 0 -> return amount if balance[taker] >= amount "
            "else 0",
        ),
        "In this branch giver and taker are the same account.",
    ),
    Equivalent(
        ("05.transfer",),
        "result",
        (
            "no sign",
            "rounded",
            "whole number",
            "NaN is 0",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.pool",),
        "accumulate",
        ("busy[buffer] = 1 -> busy[buffer] += 1",),
        "Whoever looks asks only whether the entry is 0, and it is made 0 again in the end.",
    ),
    Equivalent(
        ("05.pool",),
        "precision",
        (
            "buffer += 1 -> buffer += round(1, 6)",
            "buffer += 1 -> buffer = round(buffer + 1, 6)",
            "buffer += 1 -> buffer += abs(1)",
            "buffer += 1 -> buffer += int(1)",
            "buffer += 1 -> buffer = abs(buffer + 1)",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.pool",),
        "constant",
        (
            "busy[buffer] = 1 -> busy[buffer] = 2",
            "busy[buffer] = 1 -> busy[buffer] = -1",
        ),
        "Whoever looks asks only whether the entry is 0, and it is made 0 again in the end.",
    ),
    Equivalent(
        ("05.pool",),
        "result",
        (
            "no sign",
            "rounded",
            "whole number",
            "NaN is 0",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.invalidations",),
        "precision",
        (
            "lost += len(others) -> lost += float('%.7g' % len(others))",
            "lost += len(others) -> lost = float('%.7g' % (lost + len(others)))",
            "lost += len(others) -> lost += float('%.3g' % len(others))",
            "lost += len(others) -> lost += round(len(others), 6)",
            "lost += len(others) -> lost = round(lost + len(others), 6)",
            "lost += len(others) -> lost += abs(len(others))",
            "lost += len(others) -> lost += int(len(others))",
            "lost += len(others) -> lost = abs(lost + len(others))",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.invalidations",),
        "result",
        (
            "no sign",
            "rounded",
            "whole number",
            "float32",
            "NaN is 0",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("05.balance",),
        "accumulate",
        ("after busy[free] += costs[tile] -> busy[free] += costs[tile]",),
        "Every sum is doubled, which does not change which of them is least.",
    ),
    Equivalent(
        ("05.balance",),
        "precision",
        (
            "busy[free] += costs[tile] -> busy[free] += float('%.7g' % costs[tile])",
            "busy[free] += costs[tile] -> busy[free] = float('%.7g' % (busy[free] + costs[tile]))",
            "busy[free] += costs[tile] -> busy[free] += float('%.3g' % costs[tile])",
            "busy[free] += costs[tile] -> busy[free] = float('%.3g' % (busy[free] + costs[tile]))",
            "busy[free] += costs[tile] -> busy[free] += round(costs[tile], 6)",
            "busy[free] += costs[tile] -> busy[free] = round(busy[free] + costs[tile], 6)",
            "busy[free] += costs[tile] -> busy[free] += abs(costs[tile])",
            "busy[free] += costs[tile] -> busy[free] = abs(busy[free] + costs[tile])",
        ),
        NEAR_ENOUGH,
    ),
    Equivalent(
        ("05.balance",),
        "constant",
        (
            "busy, owner = ([0.0] * threads, {}) -> busy, owner = ([1.0] * threads, {})",
            "busy, owner = ([0.0] * threads, {}) -> busy, owner = ([-1.0] * threads, {})",
        ),
        "All threads begin with the same number, so it does not change which of them has least.",
    ),
    *equivalents_cache.ENTRIES,
    *equivalents_gpu.ENTRIES,
    *equivalents_batched.ENTRIES,
    *equivalents_fp8.ENTRIES,
    *equivalents_fp8_experiments.ENTRIES,
)


def reasons(task_id: str) -> dict[str, str]:
    """Return the reason for each fault of a task that is none, by the key of the fault."""
    return {
        f"{entry.operator} | {change}": entry.reason
        for entry in EQUIVALENTS
        if task_id in entry.tasks
        for change in entry.changes
    }
