"""FP8 products under the roofline of a Hopper GPU: as recorded by the course, or else as published."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from course_lib.fp8 import published
from course_lib.fp8.choose import H100, KNOWN, intensity
from course_lib.fp8.recordings import OURS, HopperRecording, HopperRow
from course_lib.measure import roofline
from course_lib.measure.roofline import Point, Roofs
from course_lib.measure.table import digits
from course_lib.theme import INK, PAPER, SERIES, Picture
from course_lib.views.figures import panel

CLOCK = f"e4m3 at {published.PEAK_CLOCK_HZ / 1e9:g} GHz"
LADDER = "the ladder"
NOT_OURS = "Names: N x K. Published figures, not measured by this course."


_Series = dict[str, list[Point]]  # products with as many rows, by "M = 64", and the rungs of the ladder


def fp8_roofline(recorded: HopperRecording | None = None) -> Picture:
    """Draw FP8 products under a Hopper GPU's roofline, TFLOP/s against FLOP per byte of memory.

    recorded: what `fp8.recordings.newest()` returned; its dense products and its ladder are drawn under the
    roofs of its GPU. None draws what DeepGEMM's authors published, under an H100's. The roofs are those of
    the data sheets. Raises ValueError for a recording without such products, or of a GPU whose roofs are not
    in `fp8.choose.KNOWN`.
    """
    if recorded and recorded.device not in KNOWN:
        raise ValueError(f"The roofs of {recorded.device} are not known: {', '.join(KNOWN)} can be drawn.")
    gpu = KNOWN[recorded.device] if recorded else H100
    roofs = Roofs(published.PEAK_FLOPS / 1e12, gpu.bytes_per_s / 1e12, None, f"{gpu.name}: {CLOCK}", "T")
    series = _recorded(recorded) if recorded else _published()
    if not series:
        raise ValueError("The recording has neither dense products nor a ladder: record anew.")
    points = [point for one in series.values() for point in one]
    title = _finding("This course" if recorded else "DeepGEMM", series, roofs)
    said = f"{recorded.origin}." if recorded else f"{published.SOURCE}. {published.CAVEAT} {NOT_OURS}"
    with panel(8.4, 5.6, title, 66) as (fig, axes):
        roofline.draw_roofs(axes, points, roofs)
        for number, (name, one) in enumerate(series.items()):
            colour, marker, _ = SERIES[number % len(SERIES)]
            x, y = [point.intensity for point in one], [point.gflops for point in one]
            look = {"color": colour, "markeredgecolor": PAPER, "markersize": 9, "linestyle": ""}
            axes.plot(x, y, marker, zorder=4, label=name, **look)
        legend = fig.legend(loc="outside lower left", ncols=len(series), fontsize=9.5, alignment="left")
        legend.set_title(textwrap.fill(said, 110), prop={"size": 9})
        legend.get_title().set_color(INK)
        fig.draw_without_rendering()  # places are known from here on
        taken = roofline.label(axes, points, roofs)
        name, last = list(series.items())[-1]
        if not recorded or name == LADDER:  # these have room for their names
            for point in last:
                if not _is_crowded(point, points):
                    roofline.name(axes, point, taken, points)
        placed = "; ".join(
            f"{name}, {point.name}: {digits(point.gflops)} TFLOP/s at {digits(point.intensity)} FLOP/byte"
            for name, one in series.items()
            for point in one
        )
        words = f"{title}. {roofline.in_words(roofs)} {placed}. {said}"
        return Picture.of(fig, f"Roofline ({roofs.what}). {words}")


def _published() -> _Series:
    series: _Series = {}
    for one in sorted(published.DEEPGEMM, key=lambda one: one.M):
        point = Point(f"{one.N} x {one.K}", one.tflops, one.intensity)
        series.setdefault(f"M = {one.M}", []).append(point)
    return series


def _recorded(recorded: HopperRecording) -> _Series:
    series: _Series = {}
    for row in sorted(recorded.of("dense"), key=lambda row: row.rows):
        if row.what == OURS:
            series.setdefault(f"M = {row.rows}", []).append(_point(row, f"{row.N} x {row.K}"))
    rungs = recorded.ladder()
    short = [row.what.split("_")[0] for row in rungs]
    names = [row.what if short.count(name) > 1 else name for row, name in zip(rungs, short, strict=True)]
    if rungs:
        series[LADDER] = [_point(row, name) for row, name in zip(rungs, names, strict=True)]
    return series


def _point(row: HopperRow, name: str) -> Point:
    return Point(name, row.tflops, intensity(row.rows, row.N, row.K, row.matrices))


def _finding(whose: str, series: _Series, roofs: Roofs) -> str:
    """Say how much of their roofs the products with the fewest and with the most rows reach."""
    shown = [name for name in series if name != LADDER] or [LADDER]
    said = [f"{_reached(series[name], roofs)} for {name}" for name in dict.fromkeys((shown[0], shown[-1]))]
    return f"{whose} reaches {', '.join(said)}"


def _reached(points: Sequence[Point], roofs: Roofs) -> str:
    places = [point.intensity for point in points]
    kinds = {roofline.limit(place, roofs.peak, roofs.gbps) for place in places}
    roof = f"the {kinds.pop()} roof" if len(kinds) == 1 else "its roof"
    tops = [roofline.attainable(place, roofs.peak, roofs.gbps) for place in places]
    shares = [round(100 * (point.gflops / top)) for point, top in zip(points, tops, strict=True)]
    least, most = min(shares), max(shares)
    share = f"{most} %" if least == most else f"{least}–{most} %"
    return f"{share} of {roof}"


def _is_crowded(point: Point, points: Sequence[Point]) -> bool:
    """Say whether another product lies so near that a name would not tell which is meant."""
    others = (one for one in points if one is not point)
    return any(
        max(point.gflops / one.gflops, one.gflops / point.gflops) < 1.15
        and max(point.intensity / one.intensity, one.intensity / point.intensity) < 1.15
        for one in others
    )
