"""Every operator of a profile under the machine's roofline: how much of the time lies under which roof."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.measure import roofline
from course_lib.measure.roofline import Point, Roofs
from course_lib.measure.table import digits
from course_lib.theme import PAPER, PINK, SERIES, VIOLET
from course_lib.views.figures import beside, stacked
from course_lib.views.operator_lines import kind, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.peaks import Peaks

BRIEF_US = 10.0  # a call shorter than that is mostly bookkeeping: torch's own and the profiler's
SMALLEST, AREA = 6.0, 1500.0  # points: a mark's least diameter, and the area of one that has all the time
REACH = 90  # points that a name may stand away from its mark
LOOKS = {  # colour, marker, words
    "product": (PINK, "o", "matrix products"),
    "convolution": (VIOLET, "s", "convolutions"),
    "other": (SERIES[2][0], "^", "other operators"),
}
LEAST = 0.001  # of the time: what takes less is named below the figure
NOTE = (
    "Area: share of the time. Bytes are counted as if nothing stayed in a cache between two operators, so "
    "what finds its data there may lie above the memory roof. Hollow: calls below "
    f"{BRIEF_US:g} µs, most of which is torch's and the profiler's bookkeeping."
)


@dataclass(frozen=True)
class DrawnOperator:
    """An operator that moves data: its rates, its share of all self time, and the time of a call."""

    name: str
    kind: str
    gflops: float
    gbps: float
    intensity: float
    share: float
    call_us: float

    @property
    def is_brief(self) -> bool:
        """Whether a call is so short that its time says little about the work."""
        return self.call_us < BRIEF_US

    @property
    def marker(self) -> float:
        """The diameter of its mark, in points."""
        return max(SMALLEST, math.sqrt(AREA * self.share))

    @property
    def said(self) -> str:
        """Its name and share."""
        return f"{self.name} {_percent(self.share)}" if self.share >= 0.005 else self.name


def operators_roofline(rows: Iterable[Any], threads: int = 2, peaks: Peaks | None = None) -> theme.Picture:
    """Draw every operator of a CPU profile that moves data under the roofline of this machine.

    rows: what `profile_encoder` returned for as many `threads`. Operators without floating-point operations
    (copy_, fill_) have no place on an axis of FLOP/s: they stand in a strip of their own against the
    bandwidth. Rates are of the self time. peaks None takes this machine's (measured the first time: a few
    seconds). Raises ValueError for rows in which no operator moves data.
    """
    every = [row for row in rows if row.kind == "operator" and row.self_cpu_us > 0]
    works = [_work(row, sum(one.self_cpu_us for one in every)) for row in every if row.bytes > 0]
    if not works:
        raise ValueError(
            "No operator of the profile has a time and bytes: give what profile_encoder returned."
        )
    roofs = replace(Roofs.of("float32", threads, peaks), narrow=None)  # names need the room
    shown = [work for work in works if work.share >= LEAST]
    computing = [work for work in shown if work.gflops > 0]
    moving = sorted((work for work in shown if not work.gflops), key=lambda work: -work.share)
    title = _finding(works, roofs)
    with theme.figure(8.8, 6.4 + 0.27 * len(moving)) as fig:
        heights = [16, 1.2 + 0.9 * len(moving)] if moving else [1]
        every_axes = stacked(fig, heights, sharex=False)
        axes = every_axes[0]
        axes.set_title(textwrap.fill(title, 64))
        points = [Point(work.said, work.gflops, work.intensity, work.marker) for work in computing]
        roofline.draw_roofs(axes, points, roofs)
        for work in computing:
            _mark(axes, work, work.intensity, work.gflops)
        if moving:
            _strip(every_axes[1], moving, roofs)
        said = NOTE + _left_out([work for work in works if work.share < LEAST])
        _legend(fig, shown, said)
        fig.draw_without_rendering()  # places are known from here on
        taken = roofline.label(axes, points, roofs)
        for point in sorted(points, key=lambda point: -point.marker):
            roofline.name(axes, point, taken, points, reach=REACH)
        placed = "; ".join(_in_words(work, roofs) for work in sorted(shown, key=lambda work: -work.share))
        return theme.Picture.of(
            fig,
            f"Roofline of this machine with every operator of the profile ({roofs.what}). {title}. "
            f"{roofline.in_words(roofs)} {placed}. {said}",
        )


def _work(row: Any, whole_us: float) -> DrawnOperator:
    return DrawnOperator(
        short(row.name),
        kind(row.name),
        row.flops / row.self_cpu_us / 1e3,
        row.bytes / row.self_cpu_us / 1e3,
        row.flops / row.bytes,
        row.self_cpu_us / whole_us,
        row.self_cpu_us / row.calls,
    )


def _mark(axes: Axes, work: DrawnOperator, x: float, y: float) -> None:
    colour, marker, _ = LOOKS[work.kind]
    face, edge, width, alpha = (PAPER, colour, 1.3, None) if work.is_brief else (colour, PAPER, 0.7, 0.85)
    look = {"markerfacecolor": face, "markeredgecolor": edge, "markeredgewidth": width, "alpha": alpha}
    axes.plot([x], [y], marker, markersize=work.marker, zorder=4, **look)


def _strip(axes: Axes, moving: Sequence[DrawnOperator], roofs: Roofs) -> None:
    """Draw what only moves bytes, a line each, against the bandwidth."""
    from matplotlib.ticker import LogLocator

    for place, work in enumerate(moving):
        _mark(axes, work, work.gbps, place)
    axes.axvline(roofs.gbps, color=VIOLET, linestyle="--")
    rates = [*(work.gbps for work in moving), roofs.gbps]
    axes.set(xscale="log", xlabel="GB/s: operators without floating-point operations")
    axes.set(ylim=(len(moving) - 0.4, -0.6), xlim=(min(rates) / 3, max(rates) * 3))
    axes.set_yticks(range(len(moving)), [work.said for work in moving])
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    look = {"color": VIOLET, "weight": "bold", "fontsize": 9.5, "xycoords": ("data", "axes fraction")}
    beside(axes, f"memory: {digits(roofs.gbps)} GB/s", (roofs.gbps, 1), (4, 2), **look)


def _legend(fig: Any, works: Sequence[DrawnOperator], said: str) -> None:
    from matplotlib.lines import Line2D

    kinds = {work.kind for work in works}
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", markersize=8, label=words)
        for name, (colour, marker, words) in LOOKS.items()
        if name in kinds
    ]
    look = {"ncols": 3, "fontsize": 9.5, "title_fontsize": 9, "alignment": "left"}
    fig.legend(handles=handles, loc="outside lower left", title=textwrap.fill(said, 122), **look)


def _left_out(works: Sequence[DrawnOperator]) -> str:
    """Say which operators are not drawn: a handful of numbers would stretch the axes over many decades."""
    if not works:
        return ""
    names = ", ".join(work.name for work in sorted(works, key=lambda work: -work.share))
    share = digits(100 * sum(work.share for work in works), 2)
    return f" Not drawn: {names}, together {share} % of the time."


def _finding(works: Sequence[DrawnOperator], roofs: Roofs) -> str:
    """Return how much of the time lies under which roof; what does no arithmetic has only the memory's."""
    under = {"compute": 0.0, "memory": 0.0}
    for work in works:
        under[roofline.limit(work.intensity, roofs.peak, roofs.gbps)] += work.share
    compute, memory, rest = _percent(under["compute"]), _percent(under["memory"]), 1 - sum(under.values())
    said = f"{compute} of the time lies under the arithmetic roof, {memory} under the memory roof"
    return f"{said}; {_percent(rest)} moves no data" if rest >= 0.005 else said


def _in_words(work: DrawnOperator, roofs: Roofs) -> str:
    brief = f", {digits(work.call_us, 2)} µs a call" if work.is_brief else ""
    if not work.gflops:
        return f"{work.said}: {digits(work.gbps)} GB/s without arithmetic{brief}"
    roof = roofline.limit(work.intensity, roofs.peak, roofs.gbps)
    reached = work.gflops / roofline.attainable(work.intensity, roofs.peak, roofs.gbps)
    return (
        f"{work.said}: {digits(work.gflops)} GFLOP/s at {digits(work.intensity)} flop/byte, "
        f"{_percent(reached)} of its {roof} roof{brief}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{digits(100 * share, 2)} %"
