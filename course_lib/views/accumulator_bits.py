"""One step of a tensor core, bit by bit: products under each other, and the line behind which all is cut.

The numbers are those of `simulators.tensor_core.one_step`, a model; this only draws them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from course_lib.simulators.tensor_core import HOPPER, SumStep, one_step
from course_lib.theme import DEEP_PINK, GREY, INK, PINK, PINK_TINT, QUIET, VIOLET, VIOLET_TINT
from course_lib.views.paper import Html, Sheet, card, note

MOST = 12  # products that fit into a picture
CELL, ROW = 14.0, 22.0
TOP, VALUE = 52.0, 112.0  # of the first row; width of the column of values
CUT_PLACES = 12  # places behind the line that are drawn at most
EXPLAINED = (
    f"A model of {HOPPER.name}: every term moves to its place under the largest exponent, and what lies "
    f"behind the line, beyond {HOPPER.sum_bits} bits after the leading place, is dropped before the sum. "
    f"The sum then keeps {1 + HOPPER.result_bits} significant bits. An exponent is that of the two factors "
    "together: a product may reach one place further to the left."
)


@dataclass(frozen=True)
class BitRow:
    """A row of bits: its label, the number, the places from which it is cut, and what it is drawn as."""

    label: str
    value: Fraction
    exponent: int | None = None
    unit: int | None = None  # bits below 2^unit are cut
    is_sum: bool = False
    lost: Fraction = Fraction(0)


def accumulator_figure(a: Sequence[float], b: Sequence[float], c: float = 0.0) -> Html:
    """Return one step of Hopper's tensor core for c + a . b as a picture of bits: what is kept, what cut off.

    a and b hold up to 12 numbers of e4m3 each, c is the old sum, float32. Raises ValueError for what cannot
    be a step.
    """
    count = len(np.atleast_1d(a))
    if count > MOST:
        raise ValueError(f"a has {count} numbers, but the picture has room for 1 to {MOST}.")
    step = one_step(a, b, c, HOPPER)
    said = finding(step)
    label = f"{said}. {in_words(step)}"
    return Html(card(_drawing(step, label) + note(EXPLAINED), label, title=said), label)


def finding(step: SumStep) -> str:
    """Say what the step gives and what exact arithmetic gives."""
    if step.result == step.exact:
        return f"The step gives {_short(step.exact)}, as exact arithmetic does: nothing is lost"
    error = abs(step.exact - Fraction(step.result))
    share = f": an error of {float(f'{100 * float(error / abs(step.exact)):.2g}'):g} %" if step.exact else ""
    return f"The step gives {_short(step.result)}, exact arithmetic {_short(step.exact)}{share}"


def in_words(step: SumStep) -> str:
    """Return every row of the picture as a sentence."""
    said = [
        f"The largest exponent is {step.unit + HOPPER.sum_bits}; bits below 2^{step.unit} are cut off."
        if any(term.exponent is not None for term in step.terms)
        else "All terms are 0."
    ]
    for row in rows(step)[:-3]:
        tail = f", of which {_short(row.lost)} is cut off" if row.lost else ", kept whole"
        said.append(f"{row.label}: {_short(row.value)}{tail}.")
    said.append(
        f"Sum of what is kept: {_short(step.total)}; with {1 + HOPPER.result_bits} significant bits "
        f"{_short(step.result)}. Exact: {_short(step.exact)}."
    )
    return " ".join(said)


def rows(step: SumStep) -> list[BitRow]:
    """Return the rows of the picture: the terms, the sum of what is kept, the result, the exact sum."""
    found = []
    for term in step.terms:
        if term.factors is None and not term.value:
            continue  # an old sum of 0 is not worth a row
        label = " × ".join(f"{x:.6g}" for x in term.factors) if term.factors else "old sum c"
        lost = term.value - term.kept
        found.append(BitRow(label, term.value, term.exponent, step.unit, lost=lost))
    leading = math.frexp(float(step.total))[1] - 1
    unit = max(leading - HOPPER.result_bits, step.unit)
    return [
        *found,
        BitRow("sum of what is kept", step.total, unit=unit, is_sum=True),
        BitRow("result", Fraction(step.result), is_sum=True),
        BitRow("exact sum", step.exact, is_sum=True),
    ]


@dataclass(frozen=True)
class Grid:
    """Where the bits stand: the first has the exponent `top` and begins at x = `left`, the last has `low`."""

    left: float
    top: int
    low: int

    @classmethod
    def of(cls, drawn: Sequence[BitRow], unit: int) -> Grid:
        sizes = [abs(row.value) for row in drawn if row.value]
        top = max([math.frexp(float(size))[1] - 1 for size in sizes], default=0)
        low = unit
        while low > unit - CUT_PLACES and any((size / Fraction(2) ** low).denominator > 1 for size in sizes):
            low -= 1
        return cls(max(7.3 * len(row.label) for row in drawn) + 76, max(top, unit), low)

    def at(self, exponent: int) -> float:
        """Return the x at which the cell of 2^exponent begins."""
        return self.left + (self.top - exponent) * CELL

    @property
    def right(self) -> float:
        return self.at(self.low - 1)


def _drawing(step: SumStep, label: str) -> str:
    on = Sheet()
    drawn = rows(step)
    grid = Grid.of(drawn, step.unit)
    line = grid.at(step.unit - 1)  # behind it all is cut
    high = (len(drawn) - 3) * ROW  # of the terms
    on.box(grid.left, TOP - 4, line - grid.left, high + 2, fill=VIOLET_TINT, stroke=None)
    if grid.right > line:
        on.box(line, TOP - 4, grid.right - line, high + 2, fill=PINK_TINT, stroke=None)
        on.write(line + 5, TOP - 14, "cut off", size=12, fill=DEEP_PINK, bold=True)
    on.write(grid.left - 26, TOP - 14, "exponent", size=12, fill=QUIET, anchor="end")
    largest = step.unit + HOPPER.sum_bits
    for exponent in (largest, step.unit):
        x = grid.at(exponent) + CELL / 2
        on.write(x, 22, f"2^{exponent}", size=12, anchor="middle", bold=True)
        on.line(x, 27, x, TOP - 6, stroke=GREY, width=1)
    for number, row in enumerate(drawn):
        _row(on, row, TOP + number * ROW + (12 if row.is_sum else 0), grid, row.exponent == largest)
    y = TOP + high + 5
    on.line(8, y, grid.right + VALUE, y, stroke=INK, width=1.2)
    on.line(line, TOP - 10, line, y - 5, stroke=DEEP_PINK, width=2.5)
    return on.svg(max(grid.right + VALUE + 6, 480), TOP + len(drawn) * ROW + 18, label)


def _row(on: Sheet, row: BitRow, y: float, grid: Grid, is_largest: bool) -> None:
    base = y + 12
    on.write(8, base, row.label, size=12.5, bold=row.is_sum)
    if row.exponent is not None:
        look = {"bold": True, "fill": VIOLET} if is_largest else {}
        on.write(grid.left - 30, base, str(row.exponent), size=12.5, anchor="end", **look)
    if row.value < 0:
        on.write(grid.left - 10, base, "−", size=14, anchor="middle", bold=True)
    places = abs(row.value) / Fraction(2) ** grid.low
    text = f"{int(places):0{grid.top - grid.low + 1}b}"  # what is below the last place is left out
    first, last = text.find("1"), text.rfind("1")
    for place, bit in enumerate(text):
        exponent = grid.top - place
        is_inside = first <= place <= last if row.value else exponent == 0
        _bit(on, bit if is_inside else "·", grid.at(exponent), y, row, exponent)
    if places.denominator > 1:
        on.write(grid.right + 2, base, "…", fill=DEEP_PINK)
    on.write(grid.right + VALUE, base, _short(row.value), size=12.5, anchor="end", bold=row.is_sum)


def _bit(on: Sheet, shown: str, x: float, y: float, row: BitRow, exponent: int) -> None:
    """Draw one place of a row: a bit, or a dot where the number has none; a cut bit is struck through."""
    is_bit = shown != "·"
    is_cut = is_bit and row.unit is not None and exponent < row.unit
    if is_cut:
        on.box(x, y - 3, CELL, ROW - 4, fill=PINK_TINT, stroke=None)
    fill = DEEP_PINK if is_cut else INK if is_bit else GREY
    on.write(x + CELL / 2, y + 12, shown, mono=True, anchor="middle", bold=is_bit, fill=fill)
    if is_cut:
        on.line(x + 1, y + 7, x + CELL - 1, y + 7, stroke=PINK, width=1.5)


def _short(value: Fraction | float) -> str:
    return f"{float(value):.8g}"
