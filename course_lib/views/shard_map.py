"""Who holds what: the shards of A, B and C as maps, with each rank's colour and number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_lib.theme import INK, SERIES
from course_lib.views.paper import Html, Sheet, card, plural, side_by_side

if TYPE_CHECKING:
    from course_lib.distributed.matmul import Cell, Shape, Shards

SIDE = 150.0  # of the longest dimension, in pixels
MOST_RANKS = 36  # more numbers would not be readable
BEYOND = 6  # colours; then they begin again, and the numbers tell ranks apart


def shards(layout: Shards, shape: Shape, name: str = "") -> Html:
    """Return three maps: A (M, K), B (K, N) and C (M, N), cut as the layout says.

    Raises ValueError above 36 ranks.
    """
    if len(layout.A) > MOST_RANKS:
        raise ValueError(f"{len(layout.A)} ranks cannot be drawn: at most {MOST_RANKS} can, so cut coarser.")
    M, K, N = shape
    scale = SIDE / max(shape)
    sizes = {"A": (M, K), "B": (K, N), "C": (M, N)}
    maps = {one: getattr(layout, one) for one in sizes}
    panels = [_map(one, maps[one], sizes[one], scale) for one in sizes]
    title = f"{name}: {plural(len(layout.A), 'rank')}".removeprefix(": ")
    told = f"{title}. " + " ".join(f"{one}: {_in_words(maps[one])}." for one in maps)
    return Html(card(side_by_side(panels), told, title=title), told)


def _map(name: str, cells: Sequence[Cell], size: tuple[int, int], scale: float) -> str:
    on = Sheet()
    on.write(0, 14, f"{name} ({size[0]} × {size[1]})", size=13.5, bold=True)
    for rank, (rows, columns) in enumerate(cells):
        height, width = (rows.stop - rows.start) * scale, (columns.stop - columns.start) * scale
        if not height or not width:
            continue
        x, y = columns.start * scale + 1, 22 + rows.start * scale
        fill = SERIES[rank % BEYOND][0]
        look = {"fill": fill, "fill_opacity": 0.22, "stroke": INK, "stroke_width": 1.2}
        on.tag("rect", x=x, y=y, width=width, height=height, **look)
        on.write(x + width / 2, y + height / 2 + 5, rank, size=13, anchor="middle", bold=True)
    return on.svg(size[1] * scale + 2, size[0] * scale + 26, f"{name}: {_in_words(cells)}")


def _in_words(cells: Sequence[Cell]) -> str:
    """Return whose rows and columns are whose: "rank 0 rows 0–1, columns 0–7"."""
    return "; ".join(
        f"rank {rank} rows {rows.start} to {rows.stop - 1}, columns {columns.start} to {columns.stop - 1}"
        for rank, (rows, columns) in enumerate(cells)
        if rows.stop > rows.start and columns.stop > columns.start
    )
