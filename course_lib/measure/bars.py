"""The figure of a comparison: a bar per function, in multiples of the baseline, and the learner's guess."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.measure.table import seconds_in_words, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.comparison import Comparison, Row

WIDE_RANGE = 20.0  # from this ratio on a linear axis would hide the short bars
TELLING = 0.1  # an interval that reaches further than this from 1 leaves a difference open
TITLE_WIDTH = 68
LABEL_WIDTH = 80


def draw(comparison: Comparison, guess: Any, guess_label: str, speed: bool) -> theme.Picture:
    """Draw the bars; `speed` shows times as fast instead of times as long."""
    if len(comparison.rows) < 2:
        raise ValueError(
            "The figure compares functions, and this comparison has only one: look at its table."
        )
    guessed = value_of(guess)
    title = finding(comparison, speed)
    values = [1 / row.ratio if speed else row.ratio for row in comparison.rows]
    everything = [*values, 1.0, *([guessed] if guessed and guessed > 0 else [])]
    with theme.figure(8.0, 1.5 + 0.55 * len(values)) as fig:
        axes = fig.subplots()
        is_log = max(everything) / min(everything) > WIDE_RANGE
        if is_log:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        for place, (row, value) in enumerate(zip(comparison.rows, values, strict=True)):
            _bar(axes, place, row, value, comparison, speed, is_log)
        ends = [_whiskers(row, value)[1] for row, value in zip(comparison.rows, values, strict=True)]
        low, high = min(everything), max(*everything, *ends)  # the labels stand behind the whiskers
        axes.set_xlim((low / 2.5, high * 12) if is_log else (0, high * 1.3))
        names = [_name(row, comparison) for row in comparison.rows]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.95 if guessed is not None else -0.6)
        what = "speed" if speed else "time"
        scale = ", logarithmic" if is_log else ""
        label = f"{what} relative to {comparison.baseline}{scale} (whiskers: middle half of the samples)"
        axes.set_xlabel(textwrap.fill(label, LABEL_WIDTH))
        axes.grid(False, axis="y")
        axes.set_axisbelow(True)
        # of the figure, not of the axes: long names beside the bars would push it over the right edge
        fig.suptitle(textwrap.fill(title, TITLE_WIDTH), x=0.01, ha="left", fontsize=13, fontweight="bold")
        if guessed is not None:
            _draw_guess(axes, guessed, guess_label, is_log)
        return theme.Picture.of(fig, _alt(comparison, title, values, what, guessed, guess_label))


def value_of(guess: Any) -> float | None:
    """Return the number in a guess: a number, an object with a `.value`, or None."""
    value = getattr(guess, "value", guess)
    return None if value is None else float(value)


def finding(comparison: Comparison, speed: bool = False) -> str:
    """Say in one sentence what the comparison found."""
    base = comparison.baseline
    others = [row for row in comparison.rows if row.name != base]
    if len(others) == 1:
        return _versus(others[0], base, speed)
    faster = [row for row in others if row.differs and row.ratio < 1]
    best = min(faster, key=lambda row: row.ratio, default=None)
    rivals = [row for row in others if is_open(row) and row.ratio_low < (best.ratio if best else 1)]
    if rivals:
        return _left_open(best, rivals, base)
    if best is None:
        return f"Nothing beats {base}; {_versus(max(others, key=lambda row: row.ratio), base, speed)}"
    return f"{best.name} {_verb(best.name, 'is', 'are')} fastest: {times(1 / best.ratio)} as fast as {base}"


def is_open(row: Row) -> bool:
    """Say whether the row may be as fast as the baseline, and may as well be much faster or slower."""
    return not row.differs and max(row.ratio_high - 1, 1 - row.ratio_low) > TELLING


def _left_open(best: Row | None, rivals: list[Row], base: str) -> str:
    names = ", ".join(row.name for row in rivals)
    said = f"No difference between {base} and {names} can be told in this run: run it again"
    return said if best is None else f"{_versus(best, base, True)}. {said}"


def _versus(row: Row, base: str, speed: bool) -> str:
    if is_open(row):
        span = f"{times(row.ratio_low)} to {times(row.ratio_high)} of its time"
        return f"No difference between {base} and {row.name} can be told in this run ({span}): run it again"
    if not row.differs:
        return f"{row.name} and {base} take the same time, as far as can be told here"
    if row.ratio > 1 and not speed:
        return f"{row.name} {_verb(row.name, 'takes', 'take')} {times(row.ratio)} as long as {base}"
    return f"{row.name} {_verb(row.name, 'is', 'are')} {times(1 / row.ratio)} as fast as {base}"


def _verb(name: str, singular: str, plural: str) -> str:
    """Choose the verb: names such as "rows" or "python-lists" are plurals, "blas" and "class" are not."""
    return plural if name.endswith("s") and not name.endswith(("ss", "as", "us", "is")) else singular


def _name(row: Row, comparison: Comparison) -> str:
    name = textwrap.fill(row.name, 26)
    return f"{name}\n(baseline)" if row.name == comparison.baseline else name


def _bar(
    axes: Axes, place: int, row: Row, value: float, comparison: Comparison, speed: bool, is_log: bool
) -> None:
    is_baseline = row.name == comparison.baseline
    colour = theme.VIOLET if is_baseline else theme.PINK
    if is_log:  # a logarithmic axis has no zero: bars begin at the baseline's 1
        axes.barh(place, value - 1, left=1, height=0.5, color=colour, alpha=0.85)
        axes.plot([value], [place], "o", color=colour, markersize=7)
    else:
        axes.barh(place, value, height=0.5, color=colour, alpha=0.85)
    low, high = _whiskers(row, value)
    axes.errorbar(
        value, place, xerr=[[value - low], [high - value]], color=theme.INK, capsize=4, linewidth=1.2
    )
    said = "1x" if is_baseline else times(value)
    axes.annotate(
        f"{said}  ({seconds_in_words(row.seconds)})",
        (max(high, value, 1.0 if is_log else 0), place),
        xytext=(9, 0),
        textcoords="offset points",
        va="center",
        # the guess's line may pass behind a label
        bbox={"boxstyle": "square,pad=0.1", "facecolor": theme.PAPER, "edgecolor": "none"},
        zorder=4,
    )


def _whiskers(row: Row, value: float) -> tuple[float, float]:
    share = min(0.9, row.spread_s / row.seconds)
    return value * (1 - share), value * (1 + share)


def _draw_guess(axes: Axes, guessed: float, label: str, is_log: bool) -> None:
    if is_log and guessed <= 0:
        return
    axes.axvline(guessed, color=theme.INK, linestyle=(0, (4, 2)), linewidth=1.6, zorder=2.5)
    low, high = axes.get_xlim()
    is_right = guessed > ((low * high) ** 0.5 if is_log else (low + high) / 2)
    axes.annotate(
        f"{label}: {guessed:,.4g}x",
        (guessed, axes.get_ylim()[1]),
        xytext=(-5 if is_right else 5, -3),
        textcoords="offset points",
        ha="right" if is_right else "left",
        va="top",
        style="italic",
    )


def _alt(
    comparison: Comparison,
    title: str,
    values: list[float],
    what: str,
    guessed: float | None,
    guess_label: str,
) -> str:
    bars = ", ".join(
        f"{row.name} {times(value)} ({seconds_in_words(row.seconds)})"
        for row, value in zip(comparison.rows, values, strict=True)
    )
    marked = "" if guessed is None else f" A dashed line marks {guess_label}: {guessed:,.4g}x."
    return f"Bar chart: {title}. Bars of {what} relative to {comparison.baseline}: {bars}.{marked}"
