"""Faults that are none, of chapter 06."""

from __future__ import annotations

from collections.abc import Iterator

from course_lib.grading.mutation.equivalent import WHOLE_NUMBERS, Equivalent

LAST_AXIS = "The matrix has two axes, so its last axis is the one with number 1."
SAME_SHAPE = "The two arrays have this size in common in every input that the task allows."
MORE_ROOM = "More shared memory than is needed: no word of it is read or written."
MULTIPLE = "The number is a multiple of two and of four, so rounding it down to one changes nothing."
ONE_ZERO = (
    "Where one tile has run out of k, the other has as well: this number meets a 0 there. Where it has run "
    "out "
    "of rows or columns, the sum is not stored."
)
FROM_THE_END = (
    "A negative index counts from the end, in Numba as in NumPy: the blocks cover the matrix from behind, "
    "and "
    "what two of them write is the same number."
)
TWICE = "Some numbers are looked at twice, which changes no maximum, and it stays within the limit."
PERMUTED = "Index -1 is the last number: all are still there once, in another order."
OWN_MAXIMUM = "A lane that asks itself, or asks a second time, learns nothing new of the maximum."

OF_A = "a[r, c] = A[i, k0 + c] if i < M and k0 + c < K else float32(0)"
OF_B = "b[r, c] = B[k0 + r, j] if k0 + r < K and j < N else float32(0)"
OF_A_TWICE = "a[r + s, c] = A[i + s, k0 + c] if i + s < M and k0 + c < K else float32(0)"
OF_B_TWICE = "b[r + s, c] = B[k0 + r + s, j] if k0 + r + s < K and j < N else float32(0)"
TILE = "cuda.shared.array((16, 16), float32)"
PLACE = "i, j = (cuda.blockIdx.y * 16 + r, cuda.blockIdx.x * 16 + c)"
SIZES = "M, K, N = (A.shape[0], A.shape[1], B.shape[1])"
OF_LANE = "for j in range(lane, X.shape[1], 32):"
OF_ROW = "for k in range(1, X.shape[1]):"
ROWS = "for r in range(y, 32, 8):"
READ, WRITTEN = (
    "if i0 + r < A.shape[0] and j0 + x < A.shape[1]:",
    "if j0 + r < B.shape[0] and i0 + x < B.shape[1]:",
)
LARGEST = "largest = max(largest, cuda.shfl_xor_sync(4294967295, largest, 1 << n))"


def _of(task: str, operator: str, reason: str, line: str, *changes: tuple[str, ...]) -> Equivalent:
    """Return the entry for changes (old, new[, which one]) of one line."""
    return Equivalent((f"06.{task}",), operator, tuple(_changes(line, changes)), reason)


def _changes(line: str, changes: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    for old, new, *number in changes:
        if old not in line:
            raise ValueError(f"{old!r} does not stand in {line!r}.")
        yield f"{line} -> {line.replace(old, new)}{number[0] if number else ''}"


def _rounded(task: str, line: str, end: str, *numbers: str) -> Equivalent:
    """Return the entry for a loop's end that is rounded down to a multiple of two or four."""
    whole = f"range({end})" in line
    start = f"0, {end}" if whole else end
    changes = [
        (f"range({end}" if whole else f", {end}", text.replace("END", start), number)
        for text in (
            ("range(END // 2 * 2", "range(END // 4 * 4") if whole else (", END // 2 * 2", ", END // 4 * 4")
        )
        for number in numbers or ("",)
    ]
    return _of(task, "edge tile", MULTIPLE, line, *changes)


def _last_axis(task: str, line: str, *arrays: str) -> Equivalent:
    changes = [(f"{name[:1]}.shape[1]", f"{name[:1]}.shape[-1]", name[1:]) for name in arrays]
    return _of(task, "constant", LAST_AXIS, line, *changes)


_PRODUCTS = tuple(
    entry
    for task, lines in (("matmul", (OF_A, OF_B)), ("register", (OF_A_TWICE, OF_B_TWICE)))
    for entry in (
        _rounded(task, "for k in range(16):", "16"),
        *(_of(task, "constant", MORE_ROOM, f"{name} = {TILE}", ("(16,", "(17,")) for name in "ab"),
        _of(task, "constant", FROM_THE_END, PLACE, ("y * 16", "y * -16"), ("x * 16", "x * -16")),
        _last_axis(task, SIZES, "A", "B"),
        _of(task, "name", SAME_SHAPE, SIZES, ("A.shape[0]", "C.shape[0]"), ("B.shape[1]", "C.shape[1]")),
        *(
            _of(task, "constant", ONE_ZERO, line, ("float32(0)", "float32(1)"), ("float32(0)", "float32(-1)"))
            for line in lines
        ),
    )
)

ENTRIES: tuple[Equivalent, ...] = (
    _rounded("sectors", "return len({(start + lane * stride) * size // 32 for lane in range(32)})", "32"),
    Equivalent(
        ("06.sectors",),
        "result",
        ("no sign", "rounded", "whole number", "float32", "NaN is 0"),
        WHOLE_NUMBERS,
    ),
    _last_axis("index", "if i >= C.shape[0] or j >= C.shape[1]:", "C"),
    _of(
        "index",
        "name",
        SAME_SHAPE,
        "if i >= C.shape[0] or j >= C.shape[1]:",
        ("C.shape[0]", "A.shape[0]"),
        ("C.shape[1]", "A.shape[1]"),
    ),
    _of("barrier", "constant", MORE_ROOM, "row = cuda.shared.array(64, float32)", ("64", "65")),
    _of("barrier", "bounds", TWICE, OF_ROW, ("(1,", "(1 - 1,")),
    _of("barrier", "operand missing", TWICE, OF_ROW, ("(1, ", "(")),
    _of("barrier", "constant", TWICE, OF_ROW, ("(1,", "(0,")),
    _last_axis("barrier", OF_ROW, "X"),
    _of("barrier", "name", SAME_SHAPE, OF_ROW, ("X", "Y")),
    _of(
        "barrier",
        "name",
        SAME_SHAPE,
        "for i in range(cuda.blockIdx.x, X.shape[0], cuda.gridDim.x):",
        ("X", "Y"),
    ),
    _last_axis("barrier", "if j < X.shape[1]:", "X", "X (2)"),
    _of("barrier", "name", SAME_SHAPE, "if j < X.shape[1]:", ("X", "Y"), ("X", "Y", " (2)")),
    _of(
        "coalesce",
        "name",
        SAME_SHAPE,
        "for k in range(cuda.grid(1), len(x), cuda.gridsize(1)):",
        ("len(x)", "len(y)"),
        ("len(x)", "len(out)"),
    ),
    _rounded("banks", "for s in range(4):", "4"),
    _rounded("banks", "for c in range(4):", "4"),
    _of(
        "banks",
        "operator",
        MORE_ROOM,
        "tile = cuda.shared.array(256 + 8, float32)",
        ("256 + 8", "256 * 8"),
    ),
    _of(
        "banks",
        "constant",
        "The last word that is used is number 255 + 255 // 32 = 262, so 263 words are enough, and more do "
        "no harm.",
        "tile = cuda.shared.array(256 + 8, float32)",
        ("256", "257"),
        ("256", "255"),
        (" 8", " 9"),
        (" 8", " 7"),
    ),
    _of(
        "banks",
        "operator",
        "A fraction behind a whole number does not change whether that one is below another whole number.",
        "if first + e // 4 < X.shape[0]:",
        ("//", "/"),
    ),
    _of("banks", "name", SAME_SHAPE, "if first + t < X.shape[0]:", ("X", "y")),
    _of("banks", "name", SAME_SHAPE, "if first + e // 4 < X.shape[0]:", ("X", "y")),
    _of(
        "banks",
        "name",
        "The numbers e and t differ by a multiple of 64, which has no remainder modulo 4.",
        "tile[e + e // 32] = X[first + e // 4, e % 4]",
        ("e % 4", "t % 4"),
    ),
    _of(
        "banks",
        "constant",
        "The remainder modulo -4 is e % 4 or that less 4, and column c - 4 of four is column c.",
        "tile[e + e // 32] = X[first + e // 4, e % 4]",
        ("e % 4", "e % -4"),
    ),
    _of(
        "reduction",
        "index",
        PERMUTED,
        "part[t] = x[k] if k < len(x) else float32(0)",
        ("part[t]", "part[t - 1]"),
    ),
    _of("reduction", "comparison", "A thread's index is never below 0.", "if t == 0:", ("==", "<=")),
    _of("reduction", "constant", MORE_ROOM, "part = cuda.shared.array(256, float32)", ("256", "257")),
    _rounded("transpose", ROWS, "32", "", " (2)"),
    _of("transpose", "constant", MORE_ROOM, "tile = cuda.shared.array((32, 33), float32)", ("(32,", "(33,")),
    _last_axis("transpose", READ, "A"),
    _last_axis("transpose", WRITTEN, "B"),
    *_PRODUCTS,
    Equivalent(
        ("06.register",),
        "unpacking",
        ("low, high = (float32(0), float32(0)) -> high, low = (float32(0), float32(0))",),
        "Both are 0.",
    ),
    _of("register", "bounds", "Either way s is 0 and 8.", "for s in range(0, 16, 8):", ("16", "16 - 1")),
    _of("register", "constant", "Either way s is 0 and 8.", "for s in range(0, 16, 8):", ("16", "15")),
    _rounded("register", "for s in range(0, 16, 8):", "16"),
    *(
        _of(
            "register",
            operator,
            "Row r - 8 of a tile of 16 rows is row r + 8: it counts from the end.",
            line,
            change,
        )
        for operator, line, change in (
            ("operator", OF_A_TWICE, ("a[r + s", "a[r - s")),
            ("operator", OF_B_TWICE, ("b[r + s", "b[r - s")),
            ("operator", "high += a[r + 8, k] * of_b", ("r + 8", "r - 8")),
            ("constant", "high += a[r + 8, k] * of_b", ("r + 8", "r + -8")),
        )
    ),
    Equivalent(
        ("06.softmax",),
        "loop twice",
        (f"after {LARGEST} -> for n in range(5):; {LARGEST}",),
        OWN_MAXIMUM,
    ),
    _of("softmax", "bounds", OWN_MAXIMUM, "for n in range(5):", ("(5", "(0 - 1, 5"), ("(5", "(0, 5 + 1")),
    _of("softmax", "constant", OWN_MAXIMUM, "for n in range(5):", ("5", "6")),
    _of("softmax", "bounds", TWICE, OF_LANE, ("lane", "lane - 1"), ("lane", "lane - 1", " (3)")),
    _of("softmax", "constant", TWICE, OF_LANE, ("32", "31"), ("32", "31", " (3)")),
    _last_axis("softmax", OF_LANE, "X", "X (2)", "X (3)"),
    _of("softmax", "name", SAME_SHAPE, OF_LANE, ("X", "Y"), ("X", "Y", " (2)"), ("X", "Y", " (3)")),
    _of("softmax", "name", SAME_SHAPE, "if i >= X.shape[0]:", ("X", "Y")),
    _of("softmax", "index", PERMUTED, "largest = max(largest, X[i, j])", ("j]", "j - 1]")),
    _of("softmax", "index", PERMUTED, "total += math.exp(X[i, j] - largest)", ("j]", "j - 1]")),
)
