"""Who holds what: the shards of A, B and C as maps, and which of them a rank multiplies in each step."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from course_lib.arguments import whole
from course_lib.theme import INK, PAPER, SERIES
from course_lib.views.live import Steps, buttons
from course_lib.views.paper import Html, Sheet, card, plural, side_by_side

if TYPE_CHECKING:
    from course_lib.distributed.matmul import Cell, Shape, Shards

SIDE = 150.0  # of the longest dimension, in pixels
MOST_RANKS = 36  # more numbers would not be readable
BLOCK = 60.0  # side of a block that is stepped through
MOST_SIDE = 5  # of a grid that is stepped through: its labels must fit
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


def shard_steps(side: int = 3) -> ShardSteps:
    """Return a widget that steps through SUMMA and Cannon on side x side ranks: who multiplies which blocks.

    Rank (i, j) computes C[i, j] = sum of A[i, k] B[k, j]; the colour is k. Raises ValueError unless 2 to 5.
    """
    return ShardSteps(whole("side", side, least=2, most=MOST_SIDE))


class ShardSteps(Steps):
    """The walk: frame 0 shows the blocks at home, frame `step` whose product is added in that step."""

    def __init__(self, side: int) -> None:
        self.side = self.last = side
        self.algorithm = buttons(["SUMMA", "Cannon"], description="algorithm")
        super().__init__(choice=self.algorithm, interval_ms=1500)

    def inner(self, step: int) -> list[list[int]]:
        """Return the k that each rank (i, j) multiplies in a step from 1: side lists of side numbers."""
        own = self.algorithm.value == "Cannon"  # in SUMMA all have the same
        every = range(self.side)
        return [[(step - 1 + own * (i + j)) % self.side for j in every] for i in every]

    def said(self, step: int) -> str:
        """Return a step in words."""
        if step == 0:
            return (
                f"{self.algorithm.value}: before the first step every rank holds its own block of A and of B"
            )
        if self.algorithm.value == "SUMMA":
            k = step - 1
            return (
                f"SUMMA, step {step} of {self.last}: all multiply k = {k}, so column {k} of A goes along the "
                f"rows of ranks and row {k} of B along the columns"
            )
        move = "A's rows were skewed to the left, B's columns up" if step == 1 else "A moved left, B moved up"
        return f"Cannon, step {step} of {self.last}: {move}; each block is in one place only"

    def frame(self, step: int) -> str:
        """Return A and B with the blocks in use, and at each rank the product that it adds, as SVG."""
        every = range(self.side)
        inner = self.inner(step) if step else None
        used = {(i, inner[i][j]) for i in every for j in every} if inner else set()  # of A; of B (j, i)
        on = Sheet()
        for at, name in enumerate(("A", "B", "ranks, C")):
            left = at * (self.side * BLOCK + 36)
            on.write(left, 14, name, size=13.5, bold=True)
            for i, j in product(every, every):
                place = left + 1 + j * BLOCK, 22 + i * BLOCK
                if at < 2:
                    _block(on, *place, (j, i)[at], ((i, j), (j, i))[at] in used, f"{name}{i}{j}")
                elif inner:
                    k = inner[i][j]
                    _block(on, *place, k, True, f"A{i}{k}", f"B{k}{j}")
                else:
                    _block(on, *place, None, False, f"C{i}{j}")
        said = self.said(step)
        below = 44 + self.side * BLOCK
        for line, words in enumerate(textwrap.wrap(said, 78)):
            on.write(0, below + 18 * line, words, size=13)
        return on.svg(max(3 * self.side * BLOCK + 76, 590), below + 24, said)

    def static(self) -> Html:
        """Return all steps of the algorithm that is chosen, beneath each other."""
        steps = range(1, self.last + 1)
        told = ". ".join(map(self.said, steps)) + "."
        title = f"{self.algorithm.value} on {self.side} x {self.side} ranks; the colour is k"
        return Html(card(side_by_side([*map(self.frame, steps)]), told, title=title), told)


def _block(on: Sheet, x: float, y: float, k: int | None, is_used: bool, *words: str) -> None:
    fill = PAPER if k is None else SERIES[k][0]
    look = {"fill": fill, "fill_opacity": 0.45 if is_used else 0.1, "stroke": INK, "stroke_width": 1.2}
    on.tag("rect", x=x, y=y, width=BLOCK, height=BLOCK, **look)
    middle = y + BLOCK / 2 + 13 - 8 * len(words)
    for line, word in enumerate(words):
        on.write(x + BLOCK / 2, middle + 16 * line, word, size=12.5, anchor="middle", bold=is_used)
