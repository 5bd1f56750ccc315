"""A list of lists is pointers to boxed floats; an array is the numbers themselves.

The addresses and sizes are the real ones, of the very objects passed in: `id` is an object's address in
CPython, `sys.getsizeof` what it occupies.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_lib.theme import DEEP_PINK, GREY, GREY_TINT, INK, PINK, PINK_TINT, QUIET, VIOLET, VIOLET_TINT
from course_lib.views.paper import Html, Sheet, card, in_bytes, note, plural

DRAWN_ROWS, DRAWN_COLUMNS = 3, 4
SIDE, LEFT = 46.0, 16.0  # of a pointer or a number; left margin
SHARED_LABEL = 270.0  # room beside a list that stands in several rows, for the words that say so


@dataclass(frozen=True)
class Footprint:
    """What the same numbers occupy as a list of lists and as one array, in bytes."""

    numbers: int
    lists: int  # the outer list and its rows, with their pointers
    floats: int  # the boxed numbers; an object that stands twice counts once
    objects: int  # how many different number objects there are
    array: int  # the array's buffer
    header: int  # the array object around the buffer


def footprint(rows: Sequence[Sequence[float]]) -> Footprint:
    """Return what `rows` occupies, measured, beside a NumPy array of the same numbers."""
    import numpy as np

    array = np.array(rows)
    objects = {id(x): x for row in rows for x in row}
    return Footprint(
        numbers=array.size,
        lists=sys.getsizeof(rows)
        + sum(sys.getsizeof(row) for row in {id(row): row for row in rows}.values()),
        floats=sum(map(sys.getsizeof, objects.values())),
        objects=len(objects),
        array=array.nbytes,
        header=sys.getsizeof(array) - array.nbytes,
    )


def memory(rows: Sequence[Sequence[float]]) -> Html:
    """Return a picture of a list of lists in memory, beside the one buffer of an array, with both totals."""
    import numpy as np

    rows = _checked(rows)
    size = footprint(rows)
    array = np.array(rows)
    shown = [list(row[:DRAWN_COLUMNS]) for row in rows[:DRAWN_ROWS]]
    on = Sheet()
    bottom, width = _lists(on, rows, shown)
    end = _array(on, array, bottom + 34)
    as_lists, as_array = size.lists + size.floats, size.array + size.header
    title = (
        f"{_fewer_lists(rows)}{plural(size.numbers, 'number')}: {in_bytes(as_lists)} as lists, "
        f"{in_bytes(as_array)} as an array, a ratio of {as_lists / as_array:.3g}"
    )
    words = (
        f"List of lists: {in_bytes(size.lists)} of lists and pointers + {in_bytes(size.floats)} in "
        f"{plural(size.objects, 'number object')} = {as_lists:,} bytes. "
        f"Array: {in_bytes(size.array)} of numbers + {in_bytes(size.header)} of header "
        f"= {as_array:,} bytes."
    )
    label = (
        f"{title}. {words} A number of the lists is two pointers away, those of the array lie side by side."
    )
    picture = on.svg(width, end + 6, label)
    corner = (
        ""
        if len(shown) == len(rows) and len(shown[0]) == len(rows[0])
        else " The corner is drawn, all is counted."
    )
    return Html(card(picture + note(words + corner), label, title=title), f"{title}. {words}")


def _fewer_lists(rows: list[list[Any]]) -> str:
    """Return how a title begins when some rows are the same list: "3 rows, but one list. "."""
    lists = len({id(row) for row in rows})
    if lists == len(rows):
        return ""
    return f"{len(rows):,} rows, but {'one list' if lists == 1 else plural(lists, 'list')}. "


def _lists(on: Sheet, rows: list[list[Any]], shown: list[list[Any]]) -> tuple[float, float]:
    """Draw the outer list, the lists its rows are and the number objects, in the order of their addresses.

    A list that stands in several rows is drawn once, with an arrow from each.
    """
    high, row_width, gap = 26.0, len(shown[0]) * SIDE, 48.0
    objects = sorted({id(x): x for row in shown for x in row}.items())
    first = objects[0][0]
    places: dict[int, list[int]] = {}  # list -> the rows it is, of all and not only of those drawn
    for n, row in enumerate(rows):
        places.setdefault(id(row), []).append(n)
    starts: dict[int, float] = {}  # row -> where the list begins that it is the first to be
    end = LEFT
    top, middle, bottom = 46.0, 122.0, 232.0
    on.write(LEFT, 22, "list of lists: pointers to rows, pointers to numbers", bold=True, fill=DEEP_PINK)
    words = f"list, {in_bytes(sys.getsizeof(rows))}"
    on.write(LEFT + len(shown) * SIDE + 10, top + 17, words, size=12, fill=QUIET)
    place = {address: LEFT + n * 62 + 27 for n, (address, _) in enumerate(objects)}
    for n, row in enumerate(shown):
        pointer = LEFT + (n + 0.5) * SIDE
        on.box(LEFT + n * SIDE, top, SIDE, high, fill=PINK_TINT, stroke=PINK)
        same = places[id(rows[n])]
        if same[0] == n:
            starts[n] = end
            end += row_width + (SHARED_LABEL if len(same) > 1 else gap)
        start = starts[same[0]]
        tip = start + 14 + 9 * same.index(n)
        on.arrow(pointer, top + high, tip, middle - 2, stroke=GREY)
        if same[0] != n:
            continue
        for k, value in enumerate(row):
            x = start + k * SIDE
            on.box(x, middle, SIDE, high, fill=PINK_TINT, stroke=PINK)
            on.arrow(x + SIDE / 2, middle + high, place[id(value)], bottom - 2, stroke=INK, width=1.1)
        size = in_bytes(sys.getsizeof(rows[n]))
        if len(same) == 1:
            on.write(start + 24, middle - 6, f"row {n}, {size}", size=12, fill=QUIET)
            continue
        beside = start + row_width + 10
        on.write(beside, middle + 11, f"{_row_names(same)}: the same list", bold=True, fill=DEEP_PINK)
        on.write(beside, middle + 27, size, size=12, fill=QUIET)
    for address, value in objects:
        x = place[address] - 27
        on.box(x, bottom, 54, high + 4, fill=GREY_TINT, stroke=INK, radius=4)
        _number(on, value, address - first, x + 27, bottom + 20, bottom + 46)
    kind = type(objects[0][1]).__name__
    each = in_bytes(sys.getsizeof(objects[0][1]))
    base = f"{kind} objects of {each} each, by address: bytes from {first:#x}"
    on.write(LEFT, bottom + 66, base, size=12, fill=QUIET)
    return bottom + 66, max(end, LEFT + len(objects) * 62, 560)


def _row_names(places: list[int]) -> str:
    """Return "rows 0, 1, 2", or for many "rows 0, 1, 2 and 5 more"."""
    named = ", ".join(map(str, places[:DRAWN_ROWS]))
    more = len(places) - DRAWN_ROWS
    return f"rows {named} and {more:,} more" if more > 0 else f"rows {named}"


def _array(on: Sheet, array: Any, top: float) -> float:
    """Draw the array's buffer: one row of numbers, each with its offset; return where it ends."""
    flat = array.reshape(-1)[: DRAWN_ROWS * DRAWN_COLUMNS].tolist()
    words = f"array: {array.dtype} numbers in one buffer, no pointers between"
    on.write(LEFT, top, words, bold=True, fill=VIOLET)
    for n, value in enumerate(flat):
        x = LEFT + n * SIDE
        on.box(x, top + 14, SIDE, 28, fill=VIOLET_TINT, stroke=VIOLET)
        _number(on, value, n * array.itemsize, x + SIDE / 2, top + 33, top + 58)
    if len(flat) < array.size:
        on.write(LEFT + len(flat) * SIDE + 8, top + 33, "…")
    base = f"bytes from {array.ctypes.data:#x}"
    on.write(LEFT, top + 78, base, size=12, fill=QUIET)
    return top + 82


def _number(on: Sheet, value: Any, distance: int, middle: float, y: float, below: float) -> None:
    """Write a number, as short as it can be, and below it how far its memory is from the first one's."""
    shown = str(value)[:6]
    if isinstance(value, float):
        shown = f"{value:.3g}" + (".0" if value.is_integer() and abs(value) < 1e3 else "")
    on.write(middle, y, shown, size=13, anchor="middle", bold=True)
    offset = f"{distance:,}" if distance < 10_000 else in_bytes(distance)
    on.write(middle, below, f"+{offset}", size=11, fill=QUIET, anchor="middle")


def _checked(rows: Any) -> list[list[Any]]:
    """Return rows unchanged if they are lists of numbers; a copy would have other addresses."""
    fits = isinstance(rows, list) and rows and all(isinstance(row, list) and row for row in rows)
    if not fits or len({len(row) for row in rows}) != 1:
        raise ValueError(
            "rows must be a list of lists of one length, not empty: for example [[1.0, 2.0], [3.0, 4.0]]."
        )
    if not all(isinstance(x, (int, float)) for row in rows for x in row):
        raise ValueError("rows must hold Python numbers (float or int): pass array.tolist() for an array.")
    return rows
