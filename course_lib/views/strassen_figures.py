"""Chapter 03: products of sums of blocks as grids of terms, and what they gain in time and lose in error.

A product (A11 + A22)(B11 + B22) is a set of terms A_ik B_lj. On a 4 x 4 grid – a row for each block of A,
a column for each block of B – it is a rectangle of signs. An algorithm is a list of rectangles whose sums
leave just the two terms of its definition for every block of C (so drawn by Fawzi et al., Nature 610, 2022).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_lib.arguments import one_of
from course_lib.theme import GREY, GREY_TINT, INK, PINK_TINT, QUIET, VIOLET_TINT, Picture
from course_lib.views.figures import curves, panel, series
from course_lib.views.paper import Html, Sheet, card, note, upper

Rows = Sequence[Sequence[int]]

BLOCKS = ("11", "12", "21", "22")
CELL = 22  # px
LABEL = 28  # room for the names of rows and columns
GRID = LABEL + 4 * CELL
GAP = 46
LINE_HEIGHT = 16
SIGNS = {1: "+", -1: "\N{MINUS SIGN}"}


def block_products(left: Rows, right: Rows, into: Rows, *, name: str = "M") -> Html:
    """Return the picture of an algorithm for 2 x 2 blocks: one grid of terms for each of its products.

    left, right, into: a row for each product with the signs (-1, 0, 1) of the blocks 11, 12, 21, 22 of A, of
    B, and of C into which it goes. Raises ValueError for tables that do not fit together.
    """
    _check_tables(left, right, into)
    grids, words = [], []
    for number, (a, b, c) in enumerate(zip(left, right, into, strict=True)):
        factors = _factor("A", a), _factor("B", b)
        grids.append((np.outer(a, b), f"{name}{number + 1}", (_goes(c), *factors)))
        words.append(f"{name}{number + 1} = {' '.join(factors)}, {_goes(c)}")
    label = f"{len(grids)} products of sums of blocks, each as a grid of its terms. " + "; ".join(words) + "."
    drawing = _lay_out(grids, label, columns=4)
    title = f"{len(grids)} products of sums of blocks, and the terms that each of them makes"
    hint = "A row for each block of A, a column for each block of B: + and \N{MINUS SIGN} mark the terms."
    return Html(card(drawing + note(hint), label, title=title), "\n".join(words))


def cancellation(left: Rows, right: Rows, into: Rows, block: str = "22") -> Html:
    """Return the picture of one block of C: the products that go into it, and what is left of their terms.

    block: "11", "12", "21" or "22"; the tables as for `block_products`. Raises ValueError for another block.
    """
    _check_tables(left, right, into)
    place = BLOCKS.index(one_of("block", block, BLOCKS))
    total = np.zeros((4, 4), int)
    grids, words = [], []
    for number, (a, b, c) in enumerate(zip(left, right, into, strict=True)):
        if not c[place]:
            continue
        terms = c[place] * np.outer(a, b)
        total = total + terms
        words.append(f"{SIGNS[c[place]]} M{number + 1}")
        grids.append((terms, words[-1], ()))
    rest = _terms(total)
    grids.append((total, f"C{block} = {rest}", ()))
    says = f"C{block} = {' '.join(words).removeprefix('+ ')} leaves {rest}"
    label = f"{says}: all other terms of these products cancel."
    return Html(card(_lay_out(grids, label, columns=5, has_result=True), label, title=says), label)


def _check_tables(left: Rows, right: Rows, into: Rows) -> None:
    rows = [*left, *right, *into]
    good = len(left) == len(right) == len(into) and all(len(row) == 4 for row in rows)
    if not good or any(sign not in (-1, 0, 1) for row in rows for sign in row):
        raise ValueError(
            "The tables left, right and into must have a row for each product, each of four signs "
            "-1, 0 or 1 (blocks 11, 12, 21, 22)."
        )


def _factor(matrix: str, signs: Sequence[int]) -> str:
    """Return a factor: A11, or a sum in parentheses."""
    text = _sum(matrix, signs)
    return f"({text})" if " " in text or text.startswith(SIGNS[-1]) else text


def _sum(matrix: str, signs: Sequence[int]) -> str:
    """Return "A11 + A22", the blocks with a + first."""
    named = sorted(zip(signs, BLOCKS, strict=True), key=lambda pair: -pair[0])
    text = " ".join(f"{SIGNS[sign]} {matrix}{block}" for sign, block in named if sign)
    return text[2:] if text.startswith("+") else text.replace(" ", "", 1)


def _goes(signs: Sequence[int]) -> str:
    """Return where a product goes: "into C21, -C22"."""
    named = zip(signs, BLOCKS, strict=True)
    return "into " + ", ".join(f"{SIGNS[-1] if s < 0 else ''}C{block}" for s, block in named if s)


def _terms(total: np.ndarray) -> str:
    """Return a grid's terms in words: A11 B11 + A12 B21."""
    parts = [
        f"{SIGNS.get(count, f'{count:+d}')} A{BLOCKS[a]} B{BLOCKS[b]}"
        for (a, b), count in np.ndenumerate(total)
        if count
    ]
    return " ".join(parts).removeprefix("+ ") or "nothing"


def _lay_out(grids: Sequence[tuple], label: str, columns: int, has_result: bool = False) -> str:
    """Return the grids in rows of `columns`; the last one is the sum of the others if it `has_result`."""
    on = Sheet()
    lines = max(len(said) for _, _, said in grids)
    width, height = GRID + GAP + (44 if lines else 0), GRID + 28 + LINE_HEIGHT * lines
    for number, (terms, title, said) in enumerate(grids):
        x, y = number % columns * width + 4, number // columns * height + 16
        is_result = has_result and number == len(grids) - 1
        _grid(on, x, y, terms, title, said, framed=is_result)
        if is_result:
            on.write(x - GAP / 2, y + LABEL + 2 * CELL + 6, "=", size=20, anchor="middle")
    extra = 60 if has_result else 0  # its title is long
    across, down = min(len(grids), columns), -(-len(grids) // columns)
    return on.svg(across * width - GAP / 2 + extra, down * height - 6, label)


def _grid(
    on: Sheet, x: float, y: float, terms: np.ndarray, title: str, said: Sequence[str], framed: bool
) -> None:
    """Draw one grid of signs: its title, lines of what it is, then a cell for each term."""
    on.write(x, y, title, size=13, bold=True)
    for number, line in enumerate(said):
        if number == 0:
            on.write(x + LABEL, y, line, size=11.5, fill=QUIET)
        else:
            on.write(x, y + number * LINE_HEIGHT, line, size=12)
    top, side = y + LABEL + LINE_HEIGHT * max(len(said) - 1, 0), x + LABEL
    for place, block in enumerate(BLOCKS):
        middle = (place + 0.5) * CELL
        on.write(side + middle, top - 6, f"B{block}", size=9, fill=QUIET, anchor="middle")
        on.write(side - 5, top + middle + 4, f"A{block}", size=9, fill=QUIET, anchor="end")
    for (a, b), count in np.ndenumerate(terms):
        area = side + b * CELL, top + a * CELL, CELL, CELL
        if count:
            fill = PINK_TINT if count > 0 else VIOLET_TINT
            on.cell(area, CELL / 2 + 5, SIGNS.get(count, f"{count:+d}"), size=15, bold=True, fill=fill)
        else:
            on.box(*area, fill=GREY_TINT)
    if framed:
        on.box(side, top, 4 * CELL, 4 * CELL, fill="none", stroke=INK, stroke_width=2)


Curve = Mapping[float, float]
Intervals = Mapping[str, Mapping[float, tuple[float, float]]]
TOLD = 0.02  # a difference smaller than this is not told apart from none
WIDTH = 8.0
LETTERS = 64  # of a title, in a line


def time_ratios(
    measured: Mapping[str, Curve],
    predicted: Mapping[str, Curve],
    *,
    guess: Any = None,
    intervals: Intervals | None = None,
) -> Picture:
    """Return the figure of time / time of the classical product against N: measured, and predicted.

    measured, predicted: {"one level": {512: 1.4, 1024: 1.1}}, below 1 is a gain. The predicted curves are
    drawn without markers. guess: the N (number, prediction or None) at which the learner saw the crossover.
    intervals: under the same names, the 95 % interval of each ratio, {512: (1.3, 1.5)}; only a ratio whose
    interval, and at least 2 % on either side, lies below 1 is called a gain.
    """
    _check_measured(measured)
    guessed = getattr(guess, "value", guess)
    told = (f"{name} {_gain(curve, (intervals or {}).get(name))}" for name, curve in measured.items())
    title = upper("; ".join(told))
    with panel(WIDTH, 4.6, title, LETTERS) as (fig, axes):
        axes.set(xscale="log", xlabel="N (N x N matrices)", ylabel="time / time of the classical product")
        axes.axhline(1.0, color=INK, linewidth=1.2)
        axes.axhline(7 / 8, color=GREY, linewidth=1.2, linestyle=":")
        curves(axes, measured, predicted)
        _whiskers(axes, measured, intervals or {})
        sizes = sorted({n for curve in (*measured.values(), *predicted.values()) for n in curve})
        axes.set_xticks(sizes, [f"{n:g}" for n in sizes])
        axes.minorticks_off()
        low, high = axes.get_xlim()
        axes.text(low, 7 / 8, " 7/8: sums for nothing", va="bottom", fontsize=9.5, color=INK)
        if guessed is not None and low < guessed < high:
            axes.axvline(guessed, color=INK, linestyle=(0, (4, 2)), linewidth=1.3, label="your crossover")
        axes.set_ylim(bottom=0.8)
        axes.legend(loc="upper right")
        return Picture.of(
            fig, f"Time against the classical product's, by N. {title}. {_words(measured, predicted)}"
        )


def error_levels(measured: Mapping[str, Curve], bounds: Mapping[str, Curve]) -> Picture:
    """Return the figure of max|C - exact| against the number of levels: measured, and the bounds.

    measured: {"normal": {0: 3e-5, 1: 9e-5}}; bounds under the same or other names, drawn without markers.
    """
    _check_measured(measured)
    title = _growth(measured, bounds)
    with panel(WIDTH, 4.6, title, LETTERS) as (fig, axes):
        axes.set(yscale="log", xlabel="levels of Strassen", ylabel="max |C \N{MINUS SIGN} exact| / max |C|")
        curves(axes, measured, bounds)
        levels = sorted({n for curve in measured.values() for n in curve})
        axes.set_xticks(levels, [f"{n:g}" for n in levels])
        axes.legend(loc="upper left", fontsize=9.5)
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.35)  # room for the legend
        return Picture.of(fig, f"Error by levels of Strassen. {title}. {_words(measured, bounds)}")


def crossover(ratios: Curve) -> float | None:
    """Return the N at which the ratios pass 1 on the way down, between the two sizes; None if they do not."""
    points = sorted(ratios.items())
    for (n, before), (m, after) in itertools.pairwise(points):
        if before > 1 >= after:
            share = (before - 1) / (before - after)
            return math.exp(math.log(n) + share * (math.log(m) - math.log(n)))
    return None


def crossover_interval(intervals: Mapping[float, tuple[float, float]]) -> tuple[float, float]:
    """Return the sizes between which the ratios pass 1, as far as their intervals {N: (low, high)} tell.

    The smallest size if it may be below 1 already, inf if the largest may still be above.
    """
    sizes = sorted(intervals)
    lows, highs = ({n: ends[side] for n, ends in intervals.items()} for side in (0, 1))
    above = [n for n in sizes if highs[n] > 1]
    late = math.inf if sizes[-1] in above else sizes[0]
    if above and late < math.inf:
        late = crossover({n: highs[n] for n in sizes if n >= above[-1]})
    return (sizes[0] if lows[sizes[0]] <= 1 else crossover(lows) or math.inf), late


def _whiskers(axes: Any, measured: Mapping[str, Curve], intervals: Intervals) -> None:
    for number, (name, curve) in enumerate(measured.items()):
        ends = intervals.get(name, {})
        sizes = [n for n in sorted(curve) if n in ends]
        if sizes:
            values = np.array([curve[n] for n in sizes])
            arms = np.abs(np.transpose([ends[n] for n in sizes]) - values)
            axes.errorbar(sizes, values, yerr=arms, fmt="none", ecolor=series(number)["color"], capsize=4)


def _check_measured(measured: Mapping[str, Curve]) -> None:
    if not measured or not all(measured.values()):
        raise ValueError(
            "measured is empty, but a curve of one point or more is needed, for example {'one': {1: 2.0}}."
        )


def _gain(curve: Curve, ends: Mapping[float, tuple[float, float]] | None) -> str:
    sizes = sorted(curve)
    highest, lowest = dict(curve), dict(curve)
    if ends is not None:
        highest = {n: max(ends[n][1], curve[n] * (1 + TOLD)) for n in sizes}
        lowest = {n: min(ends[n][0], curve[n] * (1 - TOLD)) for n in sizes}
    gains = [n for n in sizes if highest[n] < 1]
    untold = [n for n in sizes if lowest[n] < 1 <= highest[n]]
    if untold == sizes:
        return "cannot be told from 1 on this run"
    if gains == sizes:
        said = "gains at every size"
    elif not gains:
        said = "gains nowhere for certain" if untold else "loses at every size"
    elif gains == sizes[-len(gains) :]:
        said = f"gains from N = {gains[0]:g} on"
    else:
        said = f"gains at {_listed(gains)}" if untold else "gains at some sizes only"
    return f"{said} ({_listed(untold)} cannot be told: run again)" if untold else said


def _listed(sizes: Sequence[float]) -> str:
    return "N = " + ", ".join(f"{n:g}" for n in sizes)


def _growth(measured: Mapping[str, Curve], bounds: Mapping[str, Curve]) -> str:
    grown, bound = _a_level(measured), [factor for factor in _a_level(bounds) if factor > 1]
    said = f"On average a level multiplies the error by {_span(grown)}" if grown else "The error at one level"
    return said + (f", the bound by {_span(bound)}" if bound else "")


def _a_level(several: Mapping[str, Curve]) -> list[float]:
    """Return by what each curve grows from one level to the next, on average."""
    ends = [(curve, min(curve), max(curve)) for curve in several.values() if len(curve) > 1]
    return [(curve[b] / curve[a]) ** (1 / (b - a)) for curve, a, b in ends if curve[a] > 0]


def _span(factors: list[float]) -> str:
    low, high = f"{min(factors):.1f}", f"{max(factors):.1f}"
    return low if low == high else f"{low} to {high}"


def _words(measured: Mapping[str, Curve], expected: Mapping[str, Curve]) -> str:
    lines = [
        f"{kind} {name}: " + ", ".join(f"{y:.3g} at {x:g}" for x, y in sorted(curve.items()))
        for kind, curves in (("measured", measured), ("predicted", expected))
        for name, curve in curves.items()
    ]
    return "; ".join(lines) + "."
