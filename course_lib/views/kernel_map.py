"""From the grid to a lane: which block, which warp of it, and which of its 32 threads take part in a step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from course_lib.simulators.gpu.counting import WARP
from course_lib.theme import DEEP_PINK, GREY, INK, LINE, PAPER, PINK, PINK_TINT, QUIET, VIOLET
from course_lib.views.kernel_window import fitting
from course_lib.views.paper import Sheet, plural

if TYPE_CHECKING:
    from course_lib.simulators.gpu.tally import WarpStep

WIDTH, HEIGHT = 372.0, 182.0
_SIDE, _TOP, _ARROW = 98.0, 38.0, 29.0
_ROOM = _SIDE + _ARROW - 4  # for the words of a panel
_LANE = 14.5  # width of a lane
_ACROSS, _DOWN = 8, 4  # lanes in the drawing
_GRIDDED = 32  # more columns or rows are not drawn one by one

Size = tuple[int, int, int]


def by(size: Size) -> str:
    """Return a size in words without what is 1: (4, 2, 1) is "4 × 2"."""
    used = size if size[2] > 1 else size[:2] if size[1] > 1 else size[:1]
    return " × ".join(f"{n:,}" for n in used)


def place(number: int, size: Size) -> tuple[int, ...]:
    """Return the coordinates (x, y, z) of a number that counts x first, as many as `size` has in use."""
    x, y, z = number % size[0], number // size[0] % size[1], number // (size[0] * size[1])
    return (x, y, z) if size[2] > 1 else (x, y) if size[1] > 1 else (x,)


def written(coordinates: tuple[int, ...]) -> str:
    """Return coordinates as the kernel's author writes them: 3, or (1, 0)."""
    if len(coordinates) == 1:
        return str(coordinates[0])
    return f"({', '.join(map(str, coordinates))})"


def hierarchy(grid: Size, block: Size, number: int, warp: int, step: WarpStep | None) -> str:
    """Return the drawing of where a warp is and which lanes are active."""
    on = Sheet()
    at, threads = place(number, grid), math.prod(block)
    first, last = warp * WARP, min(warp * WARP + WARP, threads) - 1
    lanes = active_lanes(step, last - first + 1)
    titles = (
        ("grid", by(grid) + (f", z = {at[2]}" if len(at) > 2 else ""), f"block {written(at)}"),
        ("block", by(block), f"warp {warp}"),
        (f"warp {warp}", "", f"{len(lanes)} of {WARP} active"),
    )
    for panel, (name, size, chosen) in enumerate(titles):
        x = panel * (_SIDE + _ARROW)
        on.write(x, 13, name, bold=True)
        on.write(x, 29, size, size=fitting(size, 11.5, _ROOM), fill=QUIET)
        on.write(x, _TOP + _SIDE + 17, chosen, size=fitting(chosen, 12.5, _ROOM), bold=True, fill=DEEP_PINK)
    _grid(on, grid, at)
    _block(on, block, first, last, _SIDE + _ARROW)
    _lanes(on, lanes, last - first + 1, 2 * (_SIDE + _ARROW))
    for panel in (1, 2):
        x = panel * (_SIDE + _ARROW) - _ARROW
        on.arrow(x + 6, _TOP + 49, x + _ARROW - 6, _TOP + 49, stroke=GREY)
    ends = f"threads {written(place(first, block))} to {written(place(last, block))}"
    on.write(0, HEIGHT - 6, f"lanes 0 to {last - first} are {ends}", size=11.5, fill=QUIET)
    label = (
        f"Grid of {by(grid)} blocks, block {written(at)} chosen; block of {by(block)} threads, warp {warp} "
        f"chosen: {ends}. {plural(len(lanes), 'lane')} of {WARP} active."
    )
    return on.svg(WIDTH, HEIGHT, label)


def active_lanes(step: WarpStep | None, threads: int) -> set[int]:
    """Return the lanes that take part in a step: of a barrier every thread of the warp."""
    if step is None:
        return set()
    if step.kind == "barrier":
        return set(range(threads))
    return {lane for lane, touched in enumerate(step.places) if touched is not None}


def _cells(columns: int, rows: int) -> tuple[float, float]:
    """Return width and height of a cell when so many stand in a square of _SIDE."""
    side = min(_SIDE / max(columns, rows), 24.0)
    return max(side, min(_SIDE / columns, 3.0)), max(side, min(_SIDE / rows, 3.0))


def _top(rows: int, high: float) -> float:
    """Return where a drawing of so many rows begins, so that it stands in the middle."""
    return _TOP + (_SIDE - rows * high) / 2


def _mesh(on: Sheet, x: float, columns: int, rows: int, wide: float, high: float) -> None:
    """Draw a frame with a cell for each member, or the frame alone when they are too many."""
    top = _top(rows, high)
    on.box(x, top, columns * wide, rows * high, fill=PAPER, stroke=GREY)
    lines = []
    if columns <= _GRIDDED:
        lines += [f"M{x + n * wide:.1f} {top:.1f}v{rows * high:.1f}" for n in range(1, columns)]
    if rows <= _GRIDDED:
        lines += [f"M{x:.1f} {top + n * high:.1f}h{columns * wide:.1f}" for n in range(1, rows)]
    if lines:
        on.tag("path", d="".join(lines), stroke=LINE, stroke_width=0.7)


def _grid(on: Sheet, grid: Size, at: tuple[int, ...]) -> None:
    """Draw the blocks of the chosen block's plane (z)."""
    wide, high = _cells(grid[0], grid[1])
    _mesh(on, 1.0, grid[0], grid[1], wide, high)
    column, row = (*at, 0)[:2]
    x = 1.0 + min(column * wide, max(0.0, grid[0] * wide - 4))
    y = _top(grid[1], high) + min(row * high, max(0.0, grid[1] * high - 4))
    _chosen(on, x, y, wide, high)


def _block(on: Sheet, block: Size, first: int, last: int, x: float) -> None:
    """Draw the block's threads, x across, y (and z) down; long rows go on in the next line."""
    columns = block[0] if block[0] <= 64 else WARP
    rows = -(-math.prod(block) // columns)
    wide, high = _cells(columns, rows)
    _mesh(on, x, columns, rows, wide, high)
    top = _top(rows, high)
    if first % columns == 0 and (last + 1) % columns == 0:  # whole rows
        tall = (last - first + 1) // columns * high
        _chosen(on, x, top + first // columns * high, columns * wide, tall)
        return
    for row in range(first // columns, last // columns + 1):
        start, end = max(first, row * columns), min(last, row * columns + columns - 1)
        left = x + start % columns * wide
        _chosen(on, left, top + row * high, (end - start + 1) * wide, high)


def _chosen(on: Sheet, x: float, y: float, wide: float, high: float) -> None:
    on.box(x, y, max(wide, 4.0), max(high, 2.5), fill=PINK, stroke=INK, stroke_width=1)


def _lanes(on: Sheet, active: set[int], threads: int, x: float) -> None:
    """Draw the 32 lanes with their numbers; idle ones stay pale, missing ones dashed."""
    wide, high = _LANE, 20.0
    for lane in range(WARP):
        left, top = x + lane % _ACROSS * wide, _top(_DOWN, high) + lane // _ACROSS * high
        is_active = lane in active
        dash = None if lane < threads else "2 2"
        ground = VIOLET if is_active else PINK_TINT if lane < threads else PAPER
        ink, edge = (PAPER, PAPER) if is_active else (QUIET, GREY)
        look = {"fill": ground, "stroke": edge, "dash": dash}
        on.cell((left, top, wide, high), 13.5, lane, ink=ink, size=9, bold=is_active, **look)
