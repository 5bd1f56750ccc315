"""Strassen measured against what was predicted: time against size, error against the number of levels."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from course_lib import theme
from course_lib.theme import GREY, INK, SERIES, Picture

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
    _check(measured)
    guessed = getattr(guess, "value", guess)
    title = _gains(measured, intervals or {})
    with theme.figure(WIDTH, 4.6) as fig:
        axes = fig.subplots()
        axes.set(xscale="log", xlabel="N (N x N matrices)", ylabel="time / time of the classical product")
        axes.axhline(1.0, color=INK, linewidth=1.2)
        axes.axhline(7 / 8, color=GREY, linewidth=1.2, linestyle=":")
        _draw(axes, measured, predicted)
        _whiskers(axes, measured, intervals or {})
        sizes = sorted({n for curve in (*measured.values(), *predicted.values()) for n in curve})
        axes.set_xticks(sizes, [f"{n:g}" for n in sizes])
        axes.minorticks_off()
        low, high = axes.get_xlim()
        axes.text(low, 7 / 8, " 7/8: sums for nothing", va="bottom", fontsize=9.5, color=INK)
        if guessed is not None and low < guessed < high:
            axes.axvline(guessed, color=INK, linestyle=(0, (4, 2)), linewidth=1.3, label="your crossover")
        axes.set_ylim(bottom=0.8)
        axes.set_title(textwrap.fill(title, LETTERS))
        axes.legend(loc="upper right")
        return Picture.of(
            fig, f"Time against the classical product's, by N. {title}. {_words(measured, predicted)}"
        )


def error_levels(measured: Mapping[str, Curve], bounds: Mapping[str, Curve]) -> Picture:
    """Return the figure of max|C - exact| against the number of levels: measured, and the bounds.

    measured: {"normal": {0: 3e-5, 1: 9e-5}}; bounds under the same or other names, drawn without markers.
    """
    _check(measured)
    title = _growth(measured, bounds)
    with theme.figure(WIDTH, 4.6) as fig:
        axes = fig.subplots()
        axes.set(yscale="log", xlabel="levels of Strassen", ylabel="max |C \N{MINUS SIGN} exact| / max |C|")
        _draw(axes, measured, bounds)
        levels = sorted({n for curve in measured.values() for n in curve})
        axes.set_xticks(levels, [f"{n:g}" for n in levels])
        axes.set_title(textwrap.fill(title, LETTERS))
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
    last = next((place for place in reversed(range(len(sizes))) if highs[sizes[place]] > 1), None)
    late = math.inf if last == len(sizes) - 1 else sizes[0]
    if last is not None and last < len(sizes) - 1:
        late = crossover({n: highs[n] for n in sizes[last : last + 2]})
    return (sizes[0] if lows[sizes[0]] <= 1 else crossover(lows) or math.inf), late


def _whiskers(axes: Any, measured: Mapping[str, Curve], intervals: Intervals) -> None:
    for number, (name, curve) in enumerate(measured.items()):
        ends = intervals.get(name, {})
        sizes = [n for n in sorted(curve) if n in ends]
        if sizes:
            low, high = ([abs(ends[n][side] - curve[n]) for n in sizes] for side in (0, 1))
            values, colour = [curve[n] for n in sizes], SERIES[number % len(SERIES)][0]
            axes.errorbar(sizes, values, yerr=[low, high], fmt="none", ecolor=colour, capsize=4)


def _draw(axes: Any, measured: Mapping[str, Curve], expected: Mapping[str, Curve]) -> None:
    for number, (name, curve) in enumerate(measured.items()):
        colour, marker, style = SERIES[number % len(SERIES)]
        axes.plot(
            *zip(*sorted(curve.items()), strict=True),
            color=colour,
            marker=marker,
            linestyle=style,
            label=name,
        )
    for number, (name, curve) in enumerate(expected.items()):
        dashes = [(0, (7, 3)), (0, (2, 2)), (0, (7, 2, 2, 2))][number % 3]
        axes.plot(
            *zip(*sorted(curve.items()), strict=True), color=INK, linewidth=1.2, linestyle=dashes, label=name
        )


def _check(measured: Mapping[str, Curve]) -> None:
    if not measured or not all(measured.values()):
        raise ValueError(
            "measured is empty, but a curve of one point or more is needed, for example {'one': {1: 2.0}}."
        )


def _gains(measured: Mapping[str, Curve], intervals: Intervals) -> str:
    """Say at which of the measured sizes each curve gains, and where that cannot be told."""
    text = "; ".join(f"{name} {_gain(curve, intervals.get(name))}" for name, curve in measured.items())
    return text[:1].upper() + text[1:]


def _gain(curve: Curve, ends: Mapping[float, tuple[float, float]] | None) -> str:
    sizes = sorted(curve)
    highest, lowest = dict(curve), dict(curve)
    if ends is not None:
        highest = {n: max(ends[n][1], curve[n] * (1 + TOLD)) for n in sizes}
        lowest = {n: min(ends[n][0], curve[n] * (1 - TOLD)) for n in sizes}
    gains = [n for n in sizes if highest[n] < 1]
    told = [n for n in sizes if highest[n] < 1 or lowest[n] >= 1]
    if not told:
        return "cannot be told from 1 on this run"
    first = sizes.index(gains[0]) if gains else 0
    if len(gains) == len(sizes):
        said = "gains at every size"
    elif not gains:
        said = "loses at every size" if len(told) == len(sizes) else "gains nowhere for certain"
    elif gains == sizes[first:]:
        said = f"gains from N = {gains[0]:g} on"
    else:
        said = "gains at some sizes only" if len(told) == len(sizes) else f"gains at {_listed(gains)}"
    if len(told) == len(sizes):
        return said
    return f"{said} ({_listed(n for n in sizes if n not in told)} cannot be told: run again)"


def _listed(sizes: Iterable[float]) -> str:
    return "N = " + ", ".join(f"{n:g}" for n in sizes)


def _growth(measured: Mapping[str, Curve], bounds: Mapping[str, Curve]) -> str:
    grown = []
    for curve in measured.values():
        levels = sorted(curve)
        if len(levels) > 1 and curve[levels[0]] > 0:
            grown.append((curve[levels[-1]] / curve[levels[0]]) ** (1 / (levels[-1] - levels[0])))
    average = f"On average a level multiplies the error by {_span(grown)}"
    said = average if grown else "The error at one level"
    limits = [(max(curve), curve) for curve in bounds.values() if len(curve) > 1]
    if limits:
        factors = [
            (curve[max(curve)] / curve[min(curve)]) ** (1 / (max(curve) - min(curve))) for _, curve in limits
        ]
        growing = [factor for factor in factors if factor > 1]
        said += f", the bound by {_span(growing)}" if growing else ""
    return said


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
