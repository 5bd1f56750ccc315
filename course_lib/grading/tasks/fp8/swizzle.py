"""Task 10.swizzle: where a byte of a tile lies in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.fp8.swizzle import PIECE, WIDTHS, swizzled
from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS

SOLUTION = source("""
    def address(row, column, width):
        offset = row * width + column
        return offset ^ (offset // 128 % (width // 16) * 16)
""")


def address(row: int, column: int, width: int) -> int:
    """Return where byte (row, column) of a tile with rows of `width` bytes lies, swizzled over that width."""
    return swizzled(row * width + column, width)


def _bytes(rng: np.random.Generator) -> Iterator[Case]:
    for row, column, width in (
        (0, 0, 128),
        (0, 77, 128),
        (1, 0, 128),
        (1, 16, 128),
        (3, 40, 128),
        (8, 5, 128),
    ):
        yield _case(row, column, width)
    for row in range(16):
        yield _case(row, int(rng.integers(0, 128)), 128)
    for width in (64, 32):
        for row in range(20):
            yield _case(row, int(rng.integers(0, width)), width)
    for _ in range(60):
        width = int(rng.choice(WIDTHS))
        yield _case(int(rng.integers(0, 256)), int(rng.integers(0, width)), width)


def _case(row: int, column: int, width: int) -> Case:
    return Case((row, column, width), f"row {row}, byte {column} of it, rows of {width} bytes")


def _different(found: int, *place: int) -> int | None:
    return None if found == address(*place) else found


TASK = Task(
    id="10.swizzle",
    title="The same bytes, another order",
    kind="write",
    points=2,
    difficulty=4,
    minutes=20,
    good_for="finding your own numbers again in a tile that the copy engine has put down",
    entry="address",
    cases=_bytes,
    reference=address,
    comparison=exact(),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "That is the address without swizzle: a column of pieces would lie in the same banks.",
            lambda row, column, width: _different(row * width + column, row, column, width),
        ),
        Lookalike(
            "With rows of 64 or 32 bytes several rows share a line of 128 bytes. The line counts, "
            "offset // 128, not the row.",
            lambda row, column, width: _different(
                row * width + (column ^ row % (width // PIECE) * PIECE), row, column, width
            ),
        ),
        Lookalike(
            "Pieces of 16 bytes change places, bytes do not: shift the number of the line by 4 bits.",
            lambda row, column, width: _different(
                (row * width + column) ^ row * width // 128 % (width // PIECE), row, column, width
            ),
        ),
        Lookalike(
            "A swizzle over 64 (or 32) bytes exchanges 4 (or 2) pieces only: the line counts modulo that.",
            lambda row, column, width: _different(
                (row * width + column) ^ row * width // 128 % 8 * PIECE, row, column, width
            ),
        ),
        Lookalike(
            "Pieces are exchanged by XOR, not shifted round.",
            lambda row, column, width: _different(
                row * width + (column + row * width // 128 * PIECE) % width, row, column, width
            ),
        ),
    ),
    hints=(
        "Rows of 128 bytes: row r puts its piece p (16 bytes) where piece p XOR (r mod 8) would lie. Which "
        "bits of an address say p, and which say r?",
        "The bits 4, 5, 6 of the offset row * width + column say the piece in a line of 128 bytes, "
        "the bits "
        "from 7 on the line. The swizzle XORs the lowest bits of the line into those of the piece: "
        "three for "
        "a width of 128, two for 64, one for 32.",
        "offset ^ (offset // 128 % (width // 16) * 16)",
    ),
)
