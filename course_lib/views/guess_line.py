"""Your guess beside the measurement, on one number line."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from course_lib import theme

WHAT_TO_DO = "lock one in above and run this cell again"
MEASURE_AGAIN = "measure again, with a guess locked in above"
WIDE_RANGE = 20.0  # from this ratio on, a linear axis would squeeze the smaller number against zero
TOO_WIDE = 1.5  # an interval whose ends are further apart than this tells no number
TITLE_WIDTH = 72


def verdict(
    guess: Any,
    measured: float,
    unit: str = "",
    what: str = "measured",
    *,
    interval: tuple[float, float] | None = None,
    busy: bool = False,
    source: str = "measured",
) -> theme.Picture:
    """Draw a locked guess and the measured value of `what` on one axis.

    `guess` is a Prediction, a number or None (nothing was locked in: then the picture says so). `interval` is
    the 95 % interval of `measured` (an end may be inf); `busy` says that other programs held the cores.
    `source` is what stands at the point, "by a model" where nothing was measured.
    A guess is not judged by a measurement that tells nothing, nor refuted while it lies in the interval.
    """
    guessed = getattr(guess, "value", guess)
    is_open = busy or bool(interval and not 0 < interval[1] <= TOO_WIDE * interval[0])
    said = [_finding(guessed, measured, unit, what, interval, busy, is_open)]
    if guessed is None:
        said.append(MEASURE_AGAIN if is_open else WHAT_TO_DO)
    title = "\n".join(textwrap.fill(line, TITLE_WIDTH) for line in said)
    with theme.figure(8.0, 1.65 + 0.25 * len(title.splitlines())) as fig:
        axes = fig.subplots()
        axes.axhline(0, color=theme.GREY, linewidth=1)
        ends = [end for end in interval or () if math.isfinite(end)]
        values = [measured, *ends, *([] if guessed is None else [guessed])]
        if ends:  # an open end runs to the edge
            span = [ends[0], interval[1] if len(ends) == 2 else 10 * max(values)]
            axes.plot(span, [0, 0], color=theme.PINK, linewidth=7, alpha=0.35, solid_capstyle="butt")
        _mark(axes, measured, unit, source, theme.PINK, "o", above=True)
        if guessed is not None:
            _mark(axes, guessed, unit, "your guess", theme.VIOLET, "D", above=False)
        _scale(axes, values, unit)
        axes.set(title=title, yticks=[], ylim=(-1, 1), xlabel=f"{what} ({unit})" if unit else what)
        axes.spines["left"].set_visible(False)
        axes.grid(False)
        return theme.Picture.of(fig, f"Number line. {': '.join(said)}.")


def _finding(
    guessed: float | None,
    measured: float,
    unit: str,
    what: str,
    interval: tuple[float, float] | None,
    busy: bool,
    is_open: bool,
) -> str:
    if is_open:
        why = f"{what}: {_why_open(unit, interval, busy)}"
        return why if guessed is None else f"{why}: run again{_outside(guessed, unit, interval, busy)}"
    said = f"{what}: {_say(measured, unit)}"
    if guessed is None:
        return f"{said} (no guess was locked in)"
    if guessed <= 0 or measured <= 0:
        return f"{said}, you guessed {_say(guessed, unit)}"
    apart = max(guessed / measured, measured / guessed)
    if apart < 1.1 or (interval and interval[0] <= guessed <= interval[1]):
        return f"{said}, and you guessed it"
    if unit == "%":
        return f"{said}, you guessed {_say(guessed, unit)}"
    return f"{said}, your guess was {apart:.2g} times too {'high' if guessed > measured else 'low'}"


def _why_open(unit: str, interval: tuple[float, float] | None, busy: bool) -> str:
    if busy:
        return "this machine was busy, so it cannot be told on this run"
    low, high = interval
    span = f"{_say(low, unit)} to {_say(high, unit)}" if math.isfinite(high) else f"{_say(low, unit)} or more"
    return f"cannot be told on this run ({span})"


def _outside(guessed: float | None, unit: str, interval: tuple[float, float] | None, busy: bool) -> str:
    if guessed is None or busy or interval[0] <= guessed <= interval[1]:
        return ""
    return (
        f" (your guess, {_say(guessed, unit)}, is {'above' if guessed > interval[1] else 'below'} all of it)"
    )


def _say(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{number}{'' if unit == 'x' else ' '}{unit}".strip()


def _mark(axes, value: float, unit: str, name: str, colour: str, marker: str, above: bool) -> None:
    axes.plot([value], [0], marker, color=colour, markersize=11, zorder=3)
    height, anchor = (0.3, "bottom") if above else (-0.3, "top")
    axes.text(
        value, height, f"{name}\n{_say(value, unit)}", ha="center", va=anchor, color=colour, fontsize=10
    )


def _scale(axes, values: list[float], unit: str) -> None:
    low, high = min(values), max(values)
    if unit == "%":
        axes.set_xlim(-4, 104)
    elif low > 0 and high / low > WIDE_RANGE:
        axes.set_xscale("log")
        axes.set_xlim(low / 4, high * 4)
    else:
        axes.set_xlim(min(0, low) - 0.05 * abs(high), max(high, 0) * 1.25 or 1)
