"""The GPU's rungs beside cuBLAS: as recorded by this course, and as others have published."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.measure.gpu_published import BOEHM, PublishedLadder
from course_lib.measure.recordings import BASELINE, Recording
from course_lib.measure.table import digits
from course_lib.theme import GREY, INK, PAPER, PINK, SERIES, VIOLET, Picture
from course_lib.views.figures import beside, hollow, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOT_OURS = "published, not measured by this course"


def gpu_ladder(
    recording: Recording | None = None, size: int | None = None, published: PublishedLadder = BOEHM
) -> Picture:
    """Draw every GPU rung's speed as a share of cuBLAS's, on a logarithmic axis.

    recording: what this course recorded, drawn as full points at `size` (None: the recorded one nearest to
    the published size). `published` is drawn hollow, with its source below. Without a recording the title
    says so.
    """
    names = [rung for rung in published.gflops if rung != published.baseline]
    recorded = _shares(recording, size or _nearest(recording, published.size), names)
    title = _finding(recording, recorded, published, names)
    with theme.figure(8.2, 2.0 + 0.42 * len(names)) as fig:
        axes = fig.subplots()
        axes.set_xscale("log")
        for row, name in enumerate(names):
            label = f"{published.gpu}, N = {published.size:,}: {NOT_OURS}" if row == 0 else None
            look = hollow(VIOLET, 9, 1.8)
            axes.plot([100 * published.share(name)], [row], "D", label=label, **look)
            _write(axes, 100 * published.share(name), row, below=name in recorded)
        for place, (name, share) in enumerate(recorded.items()):
            label = f"{recording.origin}" if place == 0 else None
            axes.plot([100 * share], [names.index(name)], "o", color=PINK, markersize=9, label=label)
            _write(axes, 100 * share, names.index(name), below=False)
        axes.axvline(100, color=GREY, linewidth=1.2)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(0.5, 160)
        axes.set_xticks([1, 10, 100], ["1 %", "10 %", "100 %"])
        source = textwrap.fill(f"hollow: {published.source}", 84)
        axes.set_xlabel(f"share of cuBLAS, float32 (logarithmic)\n{source}")
        fig.legend(loc="outside lower center", fontsize=9)
        axes.set_title(textwrap.fill(title, 58))
        return Picture.of(fig, _alt(title, recording, recorded, published, names))


def _write(axes: Axes, percent: float, row: int, below: bool) -> None:
    is_right = percent > 50  # then there is no room to the right of it
    beside(
        axes,
        f"{digits(percent)} %",
        (percent, row),
        (-9 if is_right else 9, -11 if below else 0),
        ha="right" if is_right else "left",
        va="center",
        fontsize=9,
        color=INK,
        bbox={"boxstyle": "square,pad=0.1", "facecolor": PAPER, "edgecolor": "none"},
    )


def _shares(recording: Recording | None, size: int | None, names: list[str]) -> dict[str, float]:
    if recording is None or size is None:
        return {}
    shares = {name: recording.share(name, size) for name in names}
    return {name: share for name, share in shares.items() if share is not None}


def _nearest(recording: Recording | None, size: int) -> int | None:
    """Return the recorded size nearest to `size` at which there is more than the baseline."""
    if recording is None:
        return None
    sizes = {row.shape[0] for row in recording.rows if row.rung != BASELINE}
    return min(sizes, key=lambda one: abs(one - size), default=None)


def _finding(
    recording: Recording | None, recorded: dict[str, float], published: PublishedLadder, names: list[str]
) -> str:
    if recorded:
        best = max(recorded, key=recorded.__getitem__)
        return f"{best} reaches {digits(100 * recorded[best])} % of cuBLAS on the {recording.device}"
    low, high = (digits(100 * published.share(name)) for name in (names[0], names[-1]))
    return f"From {low} to {high} % of cuBLAS, as published; not yet recorded with this course's kernels"


def _alt(
    title: str,
    recording: Recording | None,
    recorded: dict[str, float],
    published: PublishedLadder,
    names: list[str],
) -> str:
    theirs = ", ".join(f"{name} {100 * published.share(name):.1f} %" for name in names)
    said = f"Shares of cuBLAS in float32. {title}. {NOT_OURS.capitalize()} ({published.source}): {theirs}."
    if recorded:
        ours = ", ".join(f"{name} {100 * share:.1f} %" for name, share in recorded.items())
        said += f" {recording.origin.capitalize()}: {ours}."
    return said


def gpu_sizes(recording: Recording) -> Picture:
    """Draw the TFLOP/s of every rung of a recording against N, on logarithmic axes."""
    rungs = list(dict.fromkeys(row.rung for row in recording.rows))
    title = _small_against_large(recording)
    with theme.figure(8.4, 4.8) as fig:
        axes = fig.subplots()
        axes.set(xscale="log", yscale="log")
        for number, rung in enumerate(rungs):
            rows = [row for row in recording.rows if row.rung == rung]
            look = series(number) | ({"marker": "*"} if number >= len(SERIES) else {})
            if rung == BASELINE:
                look["color"] = INK
            sizes, speeds = [row.shape[0] for row in rows], [row.tflops for row in rows]
            name = "cuBLAS (torch)" if rung == BASELINE else rung
            axes.plot(sizes, speeds, markersize=6, label=name, **look)
        axes.set_xticks(recording.sizes, [str(size) for size in recording.sizes])
        axes.minorticks_off()
        axes.set(xlabel=f"N\n{recording.origin}", ylabel="TFLOP/s (float32)")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        axes.set_title(textwrap.fill(title, 66))
        points = "; ".join(
            f"{row.rung} {row.shape[0]}: {digits(row.tflops)} TFLOP/s" for row in recording.rows
        )
        return Picture.of(fig, f"TFLOP/s against N, {recording.origin}. {title}. {points}.")


def _small_against_large(recording: Recording) -> str:
    small, large = recording.sizes[0], recording.sizes[-1]
    low, high = recording.row(BASELINE, small), recording.row(BASELINE, large)
    if low is None or high is None:
        return "The rungs against the size of the matrices"
    slow = digits(high.tflops / low.tflops, 2)
    return f"At N = {small} even cuBLAS is {slow} times as slow per operation as at N = {large:,}"
