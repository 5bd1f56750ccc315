"""Your guess beside the measurement, on one number line."""

from __future__ import annotations

from typing import Any

from course_lib import theme

WHAT_TO_DO = "lock one in above and run this cell again"
WIDE_RANGE = 20.0  # from this ratio on, a linear axis would squeeze the smaller number against zero


def verdict(guess: Any, measured: float, unit: str = "", what: str = "measured") -> theme.Picture:
    """Draw a locked guess and the measured value of `what` on one axis.

    `guess` is a Prediction, a number or None (nothing was locked in: then the picture says so).
    """
    guessed = getattr(guess, "value", guess)
    finding = _finding(guessed, measured, unit, what)
    title = finding if guessed is not None else f"{finding}\n{WHAT_TO_DO}"
    with theme.figure(8.0, 1.9 if guessed is not None else 2.15) as fig:
        axes = fig.subplots()
        axes.axhline(0, color=theme.GREY, linewidth=1)
        _mark(axes, measured, unit, "measured", theme.PINK, "o", above=True)
        if guessed is not None:
            _mark(axes, guessed, unit, "your guess", theme.VIOLET, "D", above=False)
        _scale(axes, [measured, *([] if guessed is None else [guessed])], unit)
        axes.set(title=title, yticks=[], ylim=(-1, 1), xlabel=f"{what} ({unit})" if unit else what)
        axes.spines["left"].set_visible(False)
        axes.grid(False)
        return theme.Picture.of(fig, f"Number line. {title.replace(chr(10), ': ')}.")


def _finding(guessed: float | None, measured: float, unit: str, what: str) -> str:
    said = f"{what}: {_say(measured, unit)}"
    if guessed is None:
        return f"{said} (no guess was locked in)"
    if guessed <= 0 or measured <= 0:
        return f"{said}, you guessed {_say(guessed, unit)}"
    apart = max(guessed / measured, measured / guessed)
    if apart < 1.1:
        return f"{said}, and you guessed it"
    if unit == "%":
        return f"{said}, you guessed {_say(guessed, unit)}"
    return f"{said}, your guess was {apart:.2g} times too {'high' if guessed > measured else 'low'}"


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
