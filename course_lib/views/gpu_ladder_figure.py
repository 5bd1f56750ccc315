"""The GPU's rungs beside cuBLAS: as recorded by this course, and as others have published."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from course_lib.measure.gpu_published import BOEHM
from course_lib.measure.recordings import BASELINE, Recording
from course_lib.measure.table import digits
from course_lib.theme import GREY, INK, PAPER, PINK, SERIES, VIOLET, Picture
from course_lib.views.figures import at_the_side, hollow, panel, series
from course_lib.views.paper import upper

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOT_OURS = "published, not measured by this course"


def gpu_ladder(recording: Recording | None = None) -> Picture:
    """Draw every GPU rung's speed as a share of cuBLAS's, on a logarithmic axis.

    recording: what this course recorded, drawn as full points at the size nearest to the published one. What
    S. Boehm published is drawn hollow, with its source below. Without a recording the title says so.
    """
    names = [rung for rung in BOEHM.gflops if rung != BOEHM.baseline]
    recorded = _shares(recording, names)
    title = _finding(recording, recorded, names)
    with panel(8.2, 2.0 + 0.42 * len(names), title, 58) as (fig, axes):
        axes.set_xscale("log")
        for row, name in enumerate(names):
            label = f"{BOEHM.gpu}, N = {BOEHM.size:,}: {NOT_OURS}" if row == 0 else None
            percents = {VIOLET: 100 * BOEHM.share(name)}
            axes.plot([percents[VIOLET]], [row], "D", label=label, **hollow(VIOLET, 9, 1.8))
            if name in recorded:
                percents = {PINK: 100 * recorded[name], **percents}
            _write(axes, percents, row)
        for place, (name, share) in enumerate(recorded.items()):
            label = recording.origin if place == 0 else None
            axes.plot([100 * share], [names.index(name)], "o", color=PINK, markersize=9, label=label)
        axes.axvline(100, color=GREY, linewidth=1.2)
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(0.5, 160))
        axes.set_xticks([1, 10, 100], ["1 %", "10 %", "100 %"])
        source = textwrap.fill(f"hollow: {BOEHM.source}", 84)
        axes.set_xlabel(f"share of cuBLAS, float32 (logarithmic)\n{source}")
        fig.legend(loc="outside lower center", fontsize=9)
        theirs = ", ".join(f"{name} {100 * BOEHM.share(name):.1f} %" for name in names)
        said = f"{upper(NOT_OURS)} ({BOEHM.source}): {theirs}."
        if recorded:
            ours = ", ".join(f"{name} {100 * share:.1f} %" for name, share in recorded.items())
            said += f" {upper(recording.origin)}: {ours}."
        return Picture.of(fig, f"Shares of cuBLAS in float32. {title}. {said}")


def _write(axes: Axes, percents: dict[str, float], row: int) -> None:
    """Write the figures of a row below each other beside its marks, each in the colour of its own."""
    ground = {"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none"}
    is_left = max(percents.values()) > 50  # then there is no room to the right of them
    at = (min if is_left else max)(percents.values())
    for place, (colour, percent) in enumerate(percents.items()):
        lower = 11 * (place - (len(percents) - 1) / 2)
        words = f"{digits(percent)} %"
        at_the_side(axes, words, (at, row), not is_left, lower, bbox=ground, fontsize=9, color=colour)


def _shares(recording: Recording | None, names: list[str]) -> dict[str, float]:
    """Return the shares at the recorded size nearest to the published one that has more than the baseline."""
    sizes = {row.shape[0] for row in recording.rows if row.rung != BASELINE} if recording else ()
    if not sizes:
        return {}
    size = min(sizes, key=lambda one: abs(one - BOEHM.size))
    shares = {name: recording.share(name, size) for name in names}
    return {name: share for name, share in shares.items() if share is not None}


def _finding(recording: Recording | None, recorded: dict[str, float], names: list[str]) -> str:
    if recorded:
        best = max(recorded, key=recorded.__getitem__)
        return f"{best} reaches {digits(100 * recorded[best])} % of cuBLAS on the {recording.device}"
    low, high = (digits(100 * BOEHM.share(name)) for name in (names[0], names[-1]))
    return f"From {low} to {high} % of cuBLAS, as published; not yet recorded with this course's kernels"


def gpu_sizes(recording: Recording) -> Picture:
    """Draw the TFLOP/s of every rung of a recording against N, on logarithmic axes."""
    rungs = list(dict.fromkeys(row.rung for row in recording.rows))
    small, large = recording.sizes[0], recording.sizes[-1]
    low, high = recording.row(BASELINE, small), recording.row(BASELINE, large)
    title = "The rungs against the size of the matrices"
    if low and high:
        slow = digits(high.tflops / low.tflops, 2)
        title = f"Per operation, cuBLAS at N = {small} is {slow} times as slow as at {large:,}"
    with panel(8.4, 4.8, title, 66) as (fig, axes):
        axes.set(xscale="log", yscale="log")
        for number, rung in enumerate(rungs):
            rows = [row for row in recording.rows if row.rung == rung]
            look = series(number) | ({"marker": "*"} if number >= len(SERIES) else {})
            if rung == BASELINE:
                look["color"] = INK
            sizes, speeds = [row.shape[0] for row in rows], [row.tflops for row in rows]
            name = "cuBLAS (torch)" if rung == BASELINE else rung
            axes.plot(sizes, speeds, markersize=6, label=name, **look)
        ticks = [  # a size that stands just below another one goes without: their names would meet
            size for size in recording.sizes if not any(size < one < 1.1 * size for one in recording.sizes)
        ]
        axes.set_xticks(ticks, [str(size) for size in ticks])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set(xlabel=f"N\n{recording.origin}", ylabel="TFLOP/s (float32)")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        points = "; ".join(
            f"{row.rung} {row.shape[0]}: {digits(row.tflops)} TFLOP/s" for row in recording.rows
        )
        return Picture.of(fig, f"TFLOP/s against N, {recording.origin}. {title}. {points}.")
