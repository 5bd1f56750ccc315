"""The faults of chapter 04 that are none, each with its reason."""

from __future__ import annotations

from course_lib.grading.mutation.equivalent import WHOLE_NUMBERS, Equivalent

ROOT = "b = max(math.isqrt({}) // {} * 8, {})"
OTHER_ROOTS = (
    ("cache_bytes // (3 + 8)", 8, 8),
    ("cache_bytes // (4 * 8)", 8, 8),
    ("cache_bytes // (2 * 8)", 8, 8),
    ("cache_bytes // (3 * 9)", 8, 8),
    ("cache_bytes // (3 * 7)", 8, 8),
    ("cache_bytes // (3 * 8)", 9, 8),
    ("cache_bytes // (3 * 8)", 7, 8),
    ("cache_bytes // (3 * 8)", 8, 7),
    ("cache_bytes // (3 * 8)", 8, -8),
)
CROWD = "crowd[line % sets] += 1"
PACKED = "panel[k * NR + c] = B[k0 + k, j0 + c]"
TILED = "C[i, j], C[i + 1, j], C[i + 2, j], C[i + 3, j] = (c0, c1, c2, c3)"
TILE_ROWS = "for i in range(0, M - 3, 4):"
WRITTEN_AGAIN = "It computes and stores the same numbers in the same places once more."
EMPTY_BLOCKS = "The blocks behind the end are empty: min(start + b, end) ends them before they begin."

ENTRIES: tuple[Equivalent, ...] = (
    Equivalent(
        ("04.sets",),
        "precision",
        (
            f"{CROWD} -> crowd[line % sets] += float('%.7g' % 1)",
            f"{CROWD} -> crowd[line % sets] = float('%.7g' % (crowd[line % sets] + 1))",
            f"{CROWD} -> crowd[line % sets] += float('%.3g' % 1)",
            f"{CROWD} -> crowd[line % sets] = float('%.3g' % (crowd[line % sets] + 1))",
            f"{CROWD} -> crowd[line % sets] += round(1, 6)",
            f"{CROWD} -> crowd[line % sets] = round(crowd[line % sets] + 1, 6)",
            f"{CROWD} -> crowd[line % sets] += abs(1)",
            f"{CROWD} -> crowd[line % sets] += int(1)",
            f"{CROWD} -> crowd[line % sets] = abs(crowd[line % sets] + 1)",
        ),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("04.sets",),
        "index",
        (f"{CROWD} -> crowd[line % sets - 1] += 1",),
        "All sets move on by one, and neither how many are used nor how full the fullest is changes.",
    ),
    Equivalent(("04.block",), "result", ("no sign", "rounded", "whole number", "NaN is 0"), WHOLE_NUMBERS),
    Equivalent(
        ("04.visits",),
        "result",
        ("through float32", "whole numbers", "no sign", "NaN is 0"),
        WHOLE_NUMBERS,
    ),
    Equivalent(
        ("04.visits",),
        "result",
        ("rows reversed",),
        "Backwards the same steps meet the same blocks, and miss as seldom.",
    ),
    Equivalent(
        ("04.visits",),
        "bounds",
        tuple(
            f"for {n}0 in range(0, {size}, b): -> for {n}0 in range(0, {size} + 1, b):"
            for n, size in ("iM", "kK", "jN")
        ),
        EMPTY_BLOCKS,
    ),
    Equivalent(
        ("04.visits",),
        "name",
        tuple(
            f"for {n}0 in range(0, {size}, b): -> for {n}0 in range(0, cache_bytes, b):"
            for n, size in ("iM", "kK", "jN")
        ),
        EMPTY_BLOCKS,
    ),
    *(
        Equivalent(
            ("04.visits",),
            "operator" if "+" in root else "constant",
            (f"{ROOT.format('cache_bytes // (3 * 8)', 8, 8)} -> {ROOT.format(root, part, least)}",),
            "Blocks of about this size miss about as seldom: the task sets a target, not a block.",
        )
        for root, part, least in OTHER_ROOTS
    ),
    Equivalent(
        ("04.pack",),
        "loop twice",
        (
            f"after {PACKED} -> for k in range(depth):; for c in range(columns):; {PACKED}",
            f"after {PACKED} -> for c in range(columns):; {PACKED}",
        ),
        WRITTEN_AGAIN,
    ),
    Equivalent(
        ("04.pack",),
        "accumulate",
        (f"{PACKED} -> {PACKED.replace(' = ', ' += ')}",),
        "The panel begins with zeros, and each of its numbers is written once.",
    ),
    Equivalent(
        ("04.pack",),
        "constant",
        ("columns = min(NR, B.shape[1] - j0) -> columns = min(NR, B.shape[-1] - j0)",),
        "B has two axes, so its last axis is the one with number 1.",
    ),
    Equivalent(
        ("04.pack",),
        "result",
        ("transposed", "transposed copy", "flat"),
        "A panel has one axis, so there is nothing to transpose or to flatten.",
    ),
    Equivalent(
        ("04.tile",),
        "name",
        ("C = np.empty((4, NR), A.dtype) -> C = np.empty((4, NR), panel.dtype)",),
        "A and the panel have the same dtype in every input that this task allows.",
    ),
    Equivalent(
        ("04.tile",),
        "constant",
        (
            "c2 += A[2, k] * b -> c2 += A[-2, k] * b",
            "C[0, j], C[1, j], C[2, j], C[3, j] = (c0, c1, c2, c3) -> "
            "C[0, j], C[1, j], C[-2, j], C[3, j] = (c0, c1, c2, c3)",
        ),
        "A and C have four rows, so row -2 is row 2.",
    ),
    Equivalent(
        ("04.edge",),
        "loop twice",
        (
            f"after {TILED} -> {TILE_ROWS}; for j in range(N):; c0 = c1 = c2 = c3 = 0.0; for k in range(K):; "
            "b = B[k, j]; c0 += A[i, k] * b; c1 += A[i + 1, k] * b; c2 += A[i + 2, k] * b; "
            f"c3 += A[i + 3, k] * b; {TILED}",
            f"after {TILED} -> for j in range(N):; c0 = c1 = c2 = c3 = 0.0; for k in range(K):; "
            "b = B[k, j]; c0 += A[i, k] * b; c1 += A[i + 1, k] * b; c2 += A[i + 2, k] * b; "
            f"c3 += A[i + 3, k] * b; {TILED}",
        ),
        WRITTEN_AGAIN,
    ),
    *(
        Equivalent(
            (task,),
            "constant",
            (f"{sizes.format(1)} -> {sizes.format(-1)}",),
            "B has two axes, so its last axis is the one with number 1.",
        )
        for task, sizes in (
            ("04.edge", "N = B.shape[{}]"),
            ("04.fast", "(M, K), N = (A.shape, B.shape[{}])"),
        )
    ),
    Equivalent(
        ("04.edge", "04.fast"),
        "name",
        ("C = np.zeros((M, N), A.dtype) -> C = np.zeros((M, N), B.dtype)",),
        "A and B have the same dtype in every input that these tasks allow.",
    ),
)
