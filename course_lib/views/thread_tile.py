"""Which elements of C a thread keeps in its registers, and which numbers of A and B it needs for them.

The block's piece of C with its threads in it, as `circles.cuda_1d` and `cuda_2d` number them:
row = t // (BN // TN) * TM, column = t % (BN // TN) * TN.
"""

from __future__ import annotations

from typing import Any

from course_lib.arguments import whole
from course_lib.theme import DEEP_PINK, GREY_TINT, INK, LINE, PINK, PINK_TINT, QUIET, VIOLET_TINT
from course_lib.views.paper import Html, Sheet, card, note, plural

SIDE = 384.0  # the longer side of the block's piece in the drawing
STRIP, GAP, LEFT, TOP = 40.0, 16.0, 96.0, 40.0
ROOM = 15.0  # from this width on, a thread's box holds its number
WARP = 32


def register_tile(tile: Any, thread: int = 37) -> Html:
    """Draw a block's piece of C (BM x BN) with its threads: what `thread` computes, and what its warp does.

    tile: the `CudaTile` of `cuda-1d` or `cuda-2d`. Raises ValueError for a thread that the block lacks.
    """
    whole("thread", thread, least=0, most=tile.threads - 1)
    loads = f"{tile.TM} + {tile.TN} = {plural(tile.TM + tile.TN, 'number')} loaded"
    sums = f"{tile.TM} x {tile.TN} sums"
    said = f"Thread {thread} of {tile.threads}: {sums}, {loads} for {plural(tile.TM * tile.TN, 'FMA')}"
    row, column = corner(tile, thread)
    rows, columns = _span(row, tile.TM), _span(column, tile.TN)
    words = (
        f"A block computes {tile.BM} x {tile.BN} elements of C. Thread {thread} has rows {rows} and column"
        f"{'s' * (tile.TN > 1)} {columns} of them; for each k it needs a[{rows}, k] and b[k, {columns}]."
    )
    below = note(f"{words} Tinted: the {WARP} threads of its warp.")
    return Html(card(_drawn(tile, thread, f"{said}. {words}") + below, f"{said}. {words}", title=said), words)


def corner(tile: Any, thread: int) -> tuple[int, int]:
    """Return the first row and column that a thread computes, in the block's piece of C."""
    return thread // (tile.BN // tile.TN) * tile.TM, thread % (tile.BN // tile.TN) * tile.TN


def _span(first: int, count: int) -> str:
    return f"{first}" if count == 1 else f"{first} to {first + count - 1}"


def _drawn(tile: Any, thread: int, label: str) -> str:
    on = Sheet()
    scale = SIDE / max(tile.BM, tile.BN)
    high, wide = tile.TM * scale, tile.TN * scale
    x0, y0 = LEFT + STRIP + GAP, TOP + STRIP + GAP
    for t in range(tile.threads):
        row, column = corner(tile, t)
        area = (x0 + column * scale, y0 + row * scale, wide, high)
        is_of_warp = t // WARP == thread // WARP
        fill, ink = (DEEP_PINK, PINK_TINT) if t == thread else (VIOLET_TINT if is_of_warp else GREY_TINT, INK)
        number = t if wide >= ROOM else ""
        on.cell(area, high / 2 + 3, number, size=8.5, ink=ink, fill=fill, stroke=LINE, stroke_width=0.5)
    if wide < ROOM:  # numbers at the ends of the rows instead
        in_row = tile.BN // tile.TN
        for first in range(0, tile.threads, in_row):
            y = y0 + corner(tile, first)[0] * scale + high / 2 + 4
            words = f"threads {first} to {first + in_row - 1}"
            on.write(x0 + tile.BN * scale + 6, y, words, size=11, fill=QUIET)
    _operands(on, tile, thread, scale)
    on.write(x0, TOP - 14, f"b (BK x BN): row k, {tile.TN} of {tile.BN} numbers", size=12, bold=True)
    on.write(LEFT + STRIP, y0 - 6, "a (BM x BK)", size=12, bold=True, anchor="end")
    for line, words in enumerate(("column k,", f"{tile.TM} of {tile.BM}", "numbers")):
        on.write(LEFT - 8, y0 + 14 + 15 * line, words, size=12, anchor="end")
    below = f"C: {tile.BM} x {tile.BN} of a block, {tile.TM} x {tile.TN} a thread"
    on.write(x0, y0 + tile.BM * scale + 20, below, size=12, bold=True)
    return on.svg(x0 + tile.BN * scale + 116, y0 + tile.BM * scale + 32, label)


def _operands(on: Sheet, tile: Any, thread: int, scale: float) -> None:
    """Draw the strips of A and B beside C, and what the thread needs of them for one k."""
    row, column = corner(tile, thread)
    x0, y0 = LEFT + STRIP + GAP, TOP + STRIP + GAP
    deep = STRIP / tile.BK  # of one k
    k = tile.BK // 2
    on.box(LEFT, y0, STRIP, tile.BM * scale, fill=GREY_TINT, stroke=LINE)
    on.box(x0, TOP, tile.BN * scale, STRIP, fill=GREY_TINT, stroke=LINE)
    on.box(LEFT + k * deep, y0 + row * scale, deep, tile.TM * scale, fill=PINK, stroke=None)
    on.box(x0 + column * scale, TOP + k * deep, tile.TN * scale, deep, fill=PINK, stroke=None)
    across, down = y0 + (row + tile.TM / 2) * scale, x0 + (column + tile.TN / 2) * scale
    on.arrow(LEFT + (k + 1) * deep, across, x0 - 1, across, stroke=DEEP_PINK)
    on.arrow(down, TOP + (k + 1) * deep, down, y0 - 1, stroke=DEEP_PINK)
