"""An array as a matrix, or the part of it around the elements that a warp touches, and which of them.

Arrays of one dimension are shown in rows of 32 elements; of more than two, each row of the last dimension is
a row of the picture, labelled with its other indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from course_lib.simulators.gpu.counting import SECTOR_BYTES
from course_lib.theme import GREY, LINE, PAPER, QUIET, VIOLET, VIOLET_TINT
from course_lib.views.kernel_access import lanes_by_place, sectors
from course_lib.views.paper import Sheet, plural

if TYPE_CHECKING:
    from course_lib.simulators.gpu.tally import WarpStep

WRAP = 32  # elements in a row of an array of one dimension
MOST = 36  # rows and columns that are drawn: a padded tile of 32 x 33 fits
FEWEST_ROWS = 16  # of a larger array
LEFT, TOP = 44.0, 56.0
SIDE = 324.0  # of the drawn part
LARGEST_CELL, NUMBERED_CELL = 22.0, 16.0
GAP = 6.0

Cell = tuple[int, int]


class Layout:
    """Where the elements of an array are in the picture, and back."""

    def __init__(self, step: WarpStep) -> None:
        self.step = step
        self.shape = step.shape or (1,)
        self.strides = step.strides or (1,)
        self.is_wrapped = len(self.shape) == 1
        size = int(np.prod(self.shape))
        self.columns = min(WRAP, size) if self.is_wrapped else self.shape[-1]
        self.rows = -(-size // self.columns) if size else 0
        # the element at the lowest address: strides may be negative
        self._low = step.offset + sum(
            (n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s < 0
        )

    def index(self, place: int) -> tuple[int, ...]:
        """Return the indices of an element of the memory."""
        rest, found = place - self._low, [0] * len(self.shape)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis])):
            stride, size = self.strides[axis], self.shape[axis]
            if stride:
                at = min(rest // abs(stride), size - 1)
                rest -= at * abs(stride)
                found[axis] = at if stride > 0 else size - 1 - at
        return tuple(found)

    def cell(self, place: int) -> Cell:
        """Return row and column of an element in the picture."""
        index = self.index(place)
        if self.is_wrapped:
            return divmod(index[0], self.columns)
        return int(np.ravel_multi_index(index[:-1], self.shape[:-1])), index[-1]

    def place(self, row: int, column: int) -> int | None:
        """Return the element at a row and column of the picture, None if there is none."""
        if self.is_wrapped:
            number = row * self.columns + column
            return self.step.offset + number * self.strides[0] if number < self.shape[0] else None
        index = (*np.unravel_index(row, self.shape[:-1]), column)
        return int(self.step.offset + sum(i * s for i, s in zip(index, self.strides, strict=True)))

    def row_name(self, row: int) -> str:
        """Return how a row is labelled: its first element, its index, or all indices but the last."""
        if self.is_wrapped:
            return f"{row * self.columns}"
        return ",".join(map(str, np.unravel_index(row, self.shape[:-1])))

    def name(self, place: int) -> str:
        """Return an element in words: "A[3, 0]"."""
        return f"{self.step.array}[{', '.join(map(str, self.index(place)))}]"


def runs(wanted: set[int], mates: set[int], size: int, least: int = MOST) -> list[range]:
    """Return which of `size` rows or columns to draw, as runs: at most MOST, around those wanted.

    All if they fit; one piece (of `least` or more) if the wanted ones lie close together; else those wanted,
    with their mates if there is room, and if there are too many the first ones and the last.
    """
    if size <= MOST:
        return [range(size)]
    low, high = min(wanted), max(wanted)
    if high - low < MOST - 4:
        start = low // 8 * 8
        length = min(MOST, max(least, high + 5 - start))
        start = max(high + 1 - length, min(start, size - length))
        return [range(start, start + length)]
    ordered = sorted(wanted | mates if len(wanted | mates) <= MOST else wanted)
    kept = ordered if len(ordered) <= MOST else [*ordered[: MOST - 1], high]
    found: list[range] = []
    for number in kept:
        if found and number == found[-1].stop:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


@dataclass(frozen=True)
class Window:
    """The part of an array that is drawn for a step."""

    step: WarpStep

    @cached_property
    def layout(self) -> Layout:
        """Where elements are."""
        return Layout(self.step)

    @cached_property
    def touched(self) -> dict[Cell, tuple[int, ...]]:
        """Return the touched cells of the picture, each with its lanes."""
        return {self.layout.cell(place): lanes for place, lanes in lanes_by_place(self.step).items()}

    @cached_property
    def moved(self) -> set[Cell]:
        """Return the cells that move along in a sector, though no lane wants them."""
        if self.step.space != "global":
            return set()
        each = max(1, SECTOR_BYTES // self.step.item_bytes)
        size = int(np.prod(self.layout.shape))
        low = self.layout._low
        found = set()
        for sector in sectors(self.step):
            for place in range(sector * each, (sector + 1) * each):
                cell = self.layout.cell(place) if low <= place and size else None
                if cell and self.layout.place(*cell) == place:  # a view has holes
                    found.add(cell)
        return found - set(self.touched)

    @cached_property
    def rows(self) -> list[range]:
        """Return the rows that are drawn."""
        mates = {row for row, _ in self.moved}
        return runs({row for row, _ in self.touched}, mates, self.layout.rows, FEWEST_ROWS)

    @cached_property
    def columns(self) -> list[range]:
        """Return the columns that are drawn."""
        mates = {column for _, column in self.moved}
        return runs({column for _, column in self.touched}, mates, self.layout.columns)

    @cached_property
    def left_out(self) -> int:
        """Return how many touched elements lie outside of what is drawn."""
        rows, columns = {r for run in self.rows for r in run}, {c for run in self.columns for c in run}
        return sum(row not in rows or column not in columns for row, column in self.touched)

    @cached_property
    def cell(self) -> tuple[float, float]:
        """Return width and height of a cell: square, but where gaps take the room of one direction."""
        wide, high = (
            (SIDE - GAP * (len(pieces) - 1)) // max(sum(map(len, pieces)), 1)
            for pieces in (self.columns, self.rows)
        )
        stretch = 1.0 if len(self.rows) == len(self.columns) == 1 else 1.8
        wide, high = min(wide, stretch * high), min(high, stretch * wide)
        return min(LARGEST_CELL, max(6.0, wide)), min(LARGEST_CELL, max(6.0, high))

    @property
    def height(self) -> float:
        """Return how high the picture is."""
        return TOP + sum(map(len, self.rows)) * self.cell[1] + GAP * (len(self.rows) - 1) + 22

    @staticmethod
    def _starts(pieces: list[range], start: float, side: float) -> list[tuple[range, float]]:
        """Return where each piece begins in the drawing."""
        found = []
        for piece in pieces:
            found.append((piece, start))
            start += len(piece) * side + GAP
        return found

    def words(self) -> str:
        """Return the array and what is touched in words."""
        places = [place for place in self.step.places if place is not None]
        first, last = self.layout.name(places[0]), self.layout.name(places[-1])
        what = first if first == last else f"from {first} (first lane) to {last} (last lane)"
        return f"{self.heading()}. Touched: {what}."

    def heading(self) -> str:
        """Return name, shape, size of an element and memory."""
        shape = " × ".join(f"{n:,}" for n in self.step.shape) or "1"
        wrapped = f", in rows of {WRAP}" if self.layout.is_wrapped and self.layout.rows > 1 else ""
        each = plural(self.step.item_bytes, "byte")
        return f"{self.step.array}: {shape} elements of {each}, {self.step.space}{wrapped}"

    def draw(self, on: Sheet) -> None:
        """Draw the window."""
        wide, high = self.cell
        across, down = self._starts(self.columns, LEFT, wide), self._starts(self.rows, TOP, high)
        x = {c: start + (c - run.start) * wide for run, start in across for c in run}
        y = {r: start + (r - run.start) * high for run, start in down for r in run}
        name, _, what = self.heading().partition(": ")
        on.write(0, 14, name, size=fitting(name, 13.0, LEFT + SIDE), bold=True)
        on.write(0, 30, what, size=fitting(what, 11.5, LEFT + SIDE), fill=QUIET)
        self._ground(on, across, down)
        seen = [(x[c], y[r]) for r, c in sorted(self.moved) if r in y and c in x]
        hatched(on, seen, wide, high)
        for (row, column), lanes in self.touched.items():
            if row in y and column in x:
                self._touched_cell(on, x[column], y[row], lanes)
        self._labels(on, across, down)

    def _ground(self, on: Sheet, across: list, down: list) -> None:
        side, tall = self.cell
        for columns, x in across:
            for rows, y in down:
                wide, high = len(columns) * side, len(rows) * tall
                lines = [f"M{x + n * side:.1f} {y:.1f}v{high:.1f}" for n in range(1, len(columns))]
                lines += [f"M{x:.1f} {y + n * tall:.1f}h{wide:.1f}" for n in range(1, len(rows))]
                on.box(x, y, wide, high, stroke=GREY)
                on.tag("path", d="".join(lines) or "M0 0", stroke=LINE, stroke_width=0.6)

    def _touched_cell(self, on: Sheet, x: float, y: float, lanes: tuple[int, ...]) -> None:
        wide, high = self.cell
        on.box(x, y, wide, high, fill=VIOLET, stroke=PAPER, stroke_width=0.7)
        if min(wide, high) >= NUMBERED_CELL:
            lane_label(on, x + wide / 2, y + high / 2, lanes)
        elif 0 in lanes:
            on.tag("circle", cx=x + wide / 2, cy=y + high / 2, r=min(wide, high) / 4, fill=PAPER)

    def _labels(self, on: Sheet, across: list, down: list) -> None:
        wide, high = self.cell
        every = 1 if min(wide, high) >= NUMBERED_CELL else 8
        for number, at in _labelled(across, wide, every, lambda number: 9 + 6 * len(str(number))):
            on.write(at, TOP - 6, number, size=10.5, fill=QUIET, anchor="middle")
        every = 1 if self.layout.rows <= 8 else every
        for number, at in _labelled(down, high, every, lambda _: 12):
            name = self.layout.row_name(number)
            size = fitting(name, 10.5, LEFT - 8)
            on.write(LEFT - 6, at + 4, name, size=size, fill=QUIET, anchor="end")
        if self.left_out:
            bottom = self.height - 6
            said = f"{plural(self.left_out, 'touched element')} more not drawn"
            on.write(LEFT, bottom, said, size=11.5, fill=QUIET)


def _labelled(pieces: list, side: float, every: int, room: Callable) -> Iterator[tuple[int, float]]:
    """Yield the rows or columns that get a label, and their middles: first ones and every so many."""
    last = -100.0
    for run, start in pieces:
        for number in run:
            at = start + (number - run.start + 0.5) * side
            if (number == run.start or number % every == 0) and at - last >= room(number):
                yield number, at
                last = at


def fitting(text: str, size: float, room: float) -> float:
    """Return a size of letters, at most `size`, with which a text is no wider than `room`."""
    return min(size, room / (0.62 * max(1, len(text))))


def lane_label(on: Sheet, x: float, y: float, lanes: tuple[int, ...], size: float = 9.5) -> None:
    """Write a lane's number, or how many lanes there are ("32×"), centred in a dark cell."""
    said = str(lanes[0]) if len(lanes) == 1 else f"{len(lanes)}×"
    size *= 0.85 if len(said) > 2 else 1
    on.write(x, y + size * 0.36, said, size=size, fill=PAPER, anchor="middle", bold=True)


def hatched(on: Sheet, corners: list[tuple[float, float]], wide: float, high: float) -> None:
    """Draw light cells with a stroke through them: moved, but not wanted."""
    if not corners:
        return
    cells = "".join(f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h{-wide:.1f}z" for x, y in corners)
    strokes = "".join(f"M{x:.1f} {y + high:.1f}l{wide:.1f} {-high:.1f}" for x, y in corners)
    on.tag("path", d=cells, fill=VIOLET_TINT, stroke=LINE, stroke_width=0.6)
    on.tag("path", d=strokes, stroke=VIOLET, stroke_width=0.7, fill="none")
