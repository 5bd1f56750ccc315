"""Task 04.sets: into how many sets of a cache a column falls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task


def column_sets(
    rows: int, row_bytes: int, size_bytes: int, ways: int, line_bytes: int
) -> tuple[int, int, str]:
    """Return (sets that a column uses, most lines in one of them, "fits" or "conflict").

    The column's elements lie at bytes 0, row_bytes, 2 * row_bytes, …; line n belongs to set n % sets.
    """
    return _crowded(rows, row_bytes, size_bytes // line_bytes // ways, ways, line_bytes)


def _crowded(
    rows: int,
    row_bytes: int,
    sets: int,
    ways: int,
    line_bytes: int,
    by_lines: bool = True,
    room: int | None = None,
    stride: int | None = None,
) -> tuple[int, int, str]:
    """Return the same for a number of sets; `by_lines` False counts elements, `room` is what a set holds.

    With a `stride` every row lies that many lines behind the one before.
    """
    lines = [row * row_bytes // line_bytes if stride is None else row * stride for row in range(rows)]
    crowd = [0] * sets
    for line in set(lines) if by_lines else lines:
        crowd[line % sets] += 1
    most = max(crowd)
    return sum(1 for one in crowd if one), most, "fits" if most <= (room or ways) else "conflict"


def _columns(rng: np.random.Generator) -> Iterator[Case]:
    geometry = ((32768, 8, 64), (49152, 12, 64), (65536, 4, 128), (15 * 3 * 64, 3, 64))
    size, ways, line = geometry[int(rng.integers(2))]
    yield Case((512, 4096, size, ways, line), "512 rows of 512 float64")
    yield Case((512, 4104, size, ways, line), "512 rows of 513 float64")
    yield Case((512, 4160, size, ways, line), "512 rows of 512 float64 and a line of padding")
    yield Case((1, 4096, size, ways, line), "a single row")
    yield Case((12, 4096, size, 12 if ways == 12 else 8, line), "few rows")
    yield Case((100, 8, size, ways, line), "rows of one float64: several share a line")
    yield Case((96, 24, size, ways, line), "rows of three float64: some lines hold two of them")
    yield Case((45, 64, 15 * 3 * 64, 3, 64), "an odd number of sets, all of them full")
    for size, ways, line in geometry:
        rows = int(rng.integers(20, 700))
        row_bytes = 8 * int(rng.integers(1, 1200))
        yield Case((rows, row_bytes, size, ways, line), f"{rows} rows of {row_bytes // 8} float64")
        yield Case((ways + 1, size // ways * int(rng.integers(1, 4)), size, ways, line), "one line too many")
        yield Case((ways, size // ways * int(rng.integers(1, 4)), size, ways, line), "just enough ways")


TASK = Task(
    id="04.sets",
    title="Where does a column lie?",
    kind="predict",
    points=2,
    difficulty=2,
    minutes=15,
    good_for="seeing why one more column can make a matrix product several times as fast",
    entry="column_sets",
    cases=_columns,
    reference=column_sets,
    comparison=exact(("sets used", "most lines in one set", "fits or conflict")),
    rules=(OnlyImports(("math", "collections", "numpy")),),
    lookalikes=(
        Lookalike(
            "You took every line for a set: a set has room for `ways` lines, so there are fewer sets.",
            lambda *args: _crowded(*args[:2], args[2] // args[4], *args[3:]),
        ),
        Lookalike(
            "Elements that share a line count once: a set holds lines, not numbers.",
            lambda *args: _crowded(*args[:2], args[2] // args[3] // args[4], *args[3:], by_lines=False),
        ),
        Lookalike(
            "The step from row to row need not be a whole number of lines: row r lies in line "
            "r * row_bytes // line_bytes, so multiply first and divide then.",
            lambda *args: _crowded(
                *args[:2], args[2] // args[3] // args[4], *args[3:], stride=args[1] // args[4]
            ),
        ),
        Lookalike(
            "`ways` lines still fit into a set: a conflict begins with one more.",
            lambda *args: _crowded(*args[:2], args[2] // args[3] // args[4], *args[3:], room=args[3] - 1),
        ),
    ),
    hints=(
        "How many sets has the cache, and in which line does row r of the column lie?",
        "sets = size_bytes / (ways * line_bytes). Line number = r * row_bytes // line_bytes, the same for "
        "several rows if these are short. Its set is the line number modulo sets.",
        "lines = {r * row_bytes // line_bytes for r in range(rows)}; count line % sets in a list; the column "
        'fits if the largest count is at most `ways`; return used, largest, "fits" or "conflict".',
    ),
)
