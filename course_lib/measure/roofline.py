"""The roofline model (Williams, Waterman, Patterson 2009): which limit holds for a computation here.

A computation that does `intensity` floating-point operations for each byte it moves can reach at most the
smaller of the peak FLOP/s and intensity x bandwidth. Where the two are equal is the ridge.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.measure.bars import TITLE_WIDTH
from course_lib.measure.table import digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

    from course_lib.measure.peaks import Peaks

#: A point so many times above its roof has another reason than a disturbed measurement. The memory roof
#: counts 24 bytes per element of the triad, and most CPUs move 32 (write-allocate): a kernel that only reads
#: may come to 32/24 = 1.33 of it with no cache helping.
ABOVE = {"memory": 1.35, "compute": 1.15}
SAME = 0.95  # a 256-bit peak at this share of the other or above is the same roof: the CPU has no more units
LONGEST_IN_TWO_COLUMNS = 16  # letters of a name in the legend


@dataclass(frozen=True)
class Point:
    """A measured computation: its rate, and its work per byte moved from or to memory."""

    name: str
    gflops: float
    intensity: float  # flop/byte


def attainable(intensity: float, peak_gflops: float, gbps: float) -> float:
    """Return the GFLOP/s that a computation of this intensity can reach at most."""
    _check_roofs(intensity, peak_gflops, gbps)
    return min(peak_gflops, intensity * gbps)


def limit(intensity: float, peak_gflops: float, gbps: float) -> str:
    """Return which roof is over this intensity: "memory" or "compute"."""
    _check_roofs(intensity, peak_gflops, gbps)
    return "memory" if intensity * gbps < peak_gflops else "compute"


def matmul_intensity(M: int, K: int, N: int, itemsize: int) -> float:
    """Return flop/byte of (M, K) @ (K, N) when each matrix moves once: A and B are read, C is written.

    No program moves less, so this is the largest intensity a product of this shape can have.
    """
    for name, value in {"M": M, "K": K, "N": N, "itemsize": itemsize}.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(
                f"{name} is {value!r}, but something must be moved: give a whole number from 1 on."
            )
    M, K, N = int(M), int(K), int(N)  # NumPy's integers would overflow
    return 2 * M * K * N / (int(itemsize) * (M * K + K * N + M * N))


def _check_roofs(intensity: float, peak_gflops: float, gbps: float) -> None:
    for name, value in {"peak_gflops": peak_gflops, "gbps": gbps}.items():
        if not _is_number(value) or not 0 < value < math.inf:
            raise ValueError(f"{name} is {value!r}, but it must be a finite number above 0.")
    if not _is_number(intensity) or not 0 <= intensity < math.inf:
        raise ValueError(f"intensity is {intensity!r}, but flop per byte must be a finite number from 0 on.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def figure(
    points: Sequence[Point], dtype: Any = "float64", threads: int = 1, peaks: Peaks | None = None
) -> theme.Picture:
    """Draw the machine's roofline for `dtype` and `threads` with the points under it.

    `peaks` None takes this machine's (measured the first time: a few seconds). On a CPU with 512-bit vectors
    a second, lower roof shows the peak with 256-bit ones: compilers often use no wider ones there.
    """
    points = _checked(points)
    if peaks is None:
        from course_lib.measure import machine

        peaks = machine.peaks()
    peak, gbps = peaks.gflops(dtype, threads), peaks.gbps(threads)
    narrow = peaks.gflops_256(dtype, threads)
    if narrow is not None and narrow > SAME * peak:
        narrow = None
    what = f"{dtype_name(dtype)}, {threads} thread{'s' if threads > 1 else ''}"
    title = _finding(points, peak, gbps)
    with theme.figure(8.0, 4.8 + 0.13 * len(points)) as fig:
        axes = fig.subplots()
        axes.set(xscale="log", yscale="log", title=textwrap.fill(title, TITLE_WIDTH))
        axes.set(xlabel="arithmetic intensity (flop per byte moved)", ylabel=f"GFLOP/s ({what})")
        low, high = _draw_roofs(axes, points, peak, gbps)
        if narrow is not None:
            axes.plot([narrow / gbps, high], [narrow, narrow], color=theme.PINK, linewidth=1.2, alpha=0.6)
        for number, point in enumerate(points):
            colour, marker, _ = theme.SERIES[number % len(theme.SERIES)]
            share = _percent(_share(point, peak, gbps))
            said = f"{point.name}: {digits(point.gflops)} GFLOP/s, {share} of its roof"
            axes.plot(
                [point.intensity],
                [point.gflops],
                marker,
                color=colour,
                markersize=9,
                zorder=4,
                label=said,
                ls="",
            )
        if points:
            columns = 2 if max(len(point.name) for point in points) <= LONGEST_IN_TWO_COLUMNS else 1
            fig.legend(loc="outside lower center", ncols=columns, fontsize=9.5)
        fig.draw_without_rendering()  # places are known from here on
        taken = _label_roofs(axes, peak, gbps, low, high)
        if narrow is not None:
            _label_narrow(axes, narrow, gbps, peak / gbps, high, points, taken)
        for point in points:
            _name(axes, point, taken, points)
        return theme.Picture.of(fig, _alt(points, title, what, peak, gbps, narrow))


def dtype_name(dtype: Any) -> str:
    """Return a dtype's name, however it was given."""
    import numpy as np

    return np.dtype(dtype).name


def _checked(points: Any) -> list[Point]:
    if isinstance(points, str | Point) or not isinstance(points, Iterable):
        raise TypeError(f"points is {points!r}, but it must be a list of Point(name, gflops, intensity).")
    points = list(points)
    for number, point in enumerate(points):
        if not isinstance(point, Point):
            raise TypeError(
                f"points[{number}] is {point!r}, but it must be a Point(name, gflops, intensity)."
            )
        values = (point.gflops, point.intensity)
        if not all(_is_number(value) and 0 < value < math.inf for value in values):
            raise ValueError(f"{point} cannot be drawn: gflops and intensity must be positive and finite.")
    return points


def _finding(points: Sequence[Point], peak: float, gbps: float) -> str:
    if not points:
        return f"From {digits(peak / gbps, 2)} flop per byte on, arithmetic is the limit"
    roofs = {point: limit(point.intensity, peak, gbps) for point in points}
    highest = max(points, key=lambda point: _share(point, peak, gbps) / ABOVE[roofs[point]])
    if _share(highest, peak, gbps) > ABOVE[roofs[highest]]:
        if roofs[highest] == "memory":
            return f"{highest.name} lies above its roof: memory did not move that many bytes"
        return f"{highest.name} lies above the peak: it did fewer operations than were counted"
    if len(points) == 1:
        point = points[0]
        share = _share(point, peak, gbps)
        return f"{point.name} reaches {_percent(share)} of its {limit(point.intensity, peak, gbps)} roof"
    shares = {point.name: _share(point, peak, gbps) for point in points}
    best, worst = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    return f"{best} reaches {_percent(shares[best])} of its roof, {worst} {_percent(shares[worst])}"


def _share(point: Point, peak: float, gbps: float) -> float:
    return point.gflops / attainable(point.intensity, peak, gbps)


def _percent(share: float) -> str:
    return f"{digits(100 * share, 2)} %"


def _draw_roofs(axes: Axes, points: Sequence[Point], peak: float, gbps: float) -> tuple[float, float]:
    """Draw the two roofs and the ridge; return the range of intensities drawn."""
    ridge = peak / gbps
    low = min([ridge / 16, *(point.intensity / 3 for point in points)])
    high = max([ridge * 16, *(point.intensity * 6 for point in points)])
    bottom = min([attainable(low, peak, gbps), *(point.gflops for point in points)]) / 3
    axes.set_xlim(low, high)
    axes.set_ylim(bottom, peak * (peak / bottom) ** 0.12)  # room for the peak's number
    axes.plot([low, ridge], [low * gbps, peak], color=theme.VIOLET, linestyle="--")
    axes.plot([ridge, high], [peak, peak], color=theme.PINK)
    axes.plot([ridge, ridge], [bottom, peak], color=theme.GREY, linewidth=1, linestyle=":")
    axes.plot([ridge], [peak], "o", color=theme.INK, markersize=5, zorder=4)
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    axes.grid(True, which="major")
    axes.minorticks_off()
    return low, high


def _plain(value: float, _: int) -> str:
    return f"{value:g}" if 1e-4 < value < 1e5 else f"{value:.0e}"


def _label_roofs(axes: Axes, peak: float, gbps: float, low: float, high: float) -> list[Bbox]:
    """Write the roofs' numbers along them; return the places that are taken."""
    ridge = peak / gbps
    flat = axes.annotate(
        f"peak: {digits(peak)} GFLOP/s",
        (math.sqrt(ridge * high), peak),
        xytext=(0, 5),
        textcoords="offset points",
        ha="center",
        color=theme.PINK,
        weight="bold",
    )
    middle = math.sqrt(low * ridge)
    (x0, y0), (x1, y1) = axes.transData.transform([(low, low * gbps), (ridge, peak)])
    slanted = axes.annotate(
        f"memory: {digits(gbps)} GB/s",
        (middle, middle * gbps),
        xytext=(-5, 5),
        textcoords="offset points",
        ha="center",
        va="bottom",
        rotation=math.degrees(math.atan2(y1 - y0, x1 - x0)),
        rotation_mode="anchor",
        color=theme.VIOLET,
        weight="bold",
    )
    named = axes.annotate(
        f"ridge: {digits(ridge)} flop/byte",
        (ridge, axes.get_ylim()[0]),
        xytext=(4, 5),
        textcoords="offset points",
    )
    x2, y2 = axes.transData.transform((high, peak))
    roofs = [*_boxes_along((x0, y0), (x1, y1), 8), *_boxes_along((x1, y1), (x2, y2), 8)]
    return [flat.get_window_extent(), named.get_window_extent(), *_slanted_boxes(slanted), *roofs]


def _label_narrow(
    axes: Axes,
    narrow: float,
    gbps: float,
    ridge: float,
    high: float,
    points: Sequence[Point],
    taken: list[Bbox],
) -> None:
    """Name the lower roof under its line, away from markers where there is room; note what is taken."""
    start, end = axes.transData.transform([(narrow / gbps, narrow), (high, narrow)])
    markers = [_around(axes, point) for point in points]
    tries = []
    for between in (" ", "\n"):
        for at, dx, side in ((high, -5, "right"), (ridge, 5, "left")):
            label = axes.annotate(
                f"peak with 256-bit vectors:{between}{digits(narrow)} GFLOP/s",
                (at, narrow),
                xytext=(dx, -4),
                textcoords="offset points",
                ha=side,
                va="top",
                fontsize=9.5,
                color=theme.PINK,
            )
            extent = label.get_window_extent()
            covered = sum(_overlap(extent, other) for other in [*markers, *taken])
            tries.append((covered + _outside(extent, axes.bbox), len(tries), label))
    _, _, best = min(tries)
    for *_, label in tries:
        if label is not best:
            label.remove()
    taken += [best.get_window_extent(), *_boxes_along(start, end, 8)]


def _around(axes: Axes, point: Point) -> Bbox:
    """Return the box that a point's marker covers."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform((point.intensity, point.gflops))
    return Bbox.from_bounds(x - 8, y - 8, 16, 16)


def _slanted_boxes(label: Annotation) -> list[Bbox]:
    """Return small boxes that cover a slanted label; the box around all of it would cover much else."""
    around = label.get_window_extent()
    is_flat = abs(label.get_rotation()) < 1
    return [around] if is_flat else _boxes_along(around.min, around.max, 16)


def _boxes_along(start: Sequence[float], end: Sequence[float], size: float, count: int = 40) -> list[Bbox]:
    """Return small boxes that cover a line."""
    from matplotlib.transforms import Bbox

    (x0, y0), (x1, y1) = start, end
    centres = [(x0 + (x1 - x0) * k / count, y0 + (y1 - y0) * k / count) for k in range(count + 1)]
    return [Bbox.from_bounds(x - size / 2, y - size / 2, size, size) for x, y in centres]


def _offsets(up: int) -> list[tuple[int, int, str]]:
    """Return where to try a name, in points from its marker: `up` (1 or -1) first."""
    near = [(0, 14 * up, "center"), (10, 0, "left"), (-10, 0, "right"), (0, -14 * up, "center")]
    corners = [(dx, dy * up, side) for dy in (12, -12) for dx, _, side in near[1:3]]
    return near + corners


def _name(axes: Axes, point: Point, taken: list[Bbox], points: Sequence[Point]) -> None:
    """Write a point's name where it covers nothing; where there is no such place the legend has to do."""
    own_x, own_y = axes.transData.transform((point.intensity, point.gflops))
    markers = [axes.transData.transform((p.intensity, p.gflops)) for p in points if p is not point]
    obstacles = [*taken, *(_around(axes, other) for other in points if other is not point)]
    nearest = min(markers, key=lambda at: math.dist(at, (own_x, own_y)), default=(own_x, own_y + 1))
    for dx, dy, side in _offsets(up=1 if nearest[1] < own_y else -1):  # away from the neighbour
        name = axes.annotate(
            point.name,
            (point.intensity, point.gflops),
            xytext=(dx, dy),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=10,
        )
        extent = name.get_window_extent()
        if not any(_overlap(extent, other) for other in obstacles) and _outside(extent, axes.bbox) < 1:
            taken.append(extent)
            return
        name.remove()


def _overlap(one: Bbox, other: Bbox) -> float:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(0.0, width) * max(0.0, height)


def _outside(inner: Bbox, outer: Bbox) -> float:
    return inner.width * inner.height - _overlap(inner, outer)


def _alt(
    points: Sequence[Point], title: str, what: str, peak: float, gbps: float, narrow: float | None
) -> str:
    lower = "" if narrow is None else f"Peak with 256-bit vectors: {digits(narrow)} GFLOP/s. "
    placed = "; ".join(
        f"{point.name} at {digits(point.intensity)} flop/byte reaches {digits(point.gflops)} GFLOP/s, "
        f"under the {limit(point.intensity, peak, gbps)} roof of "
        f"{digits(attainable(point.intensity, peak, gbps))}"
        for point in points
    )
    return (
        f"Roofline of this machine ({what}). {title}. "
        f"{lower}Memory roof {digits(gbps)} GB/s, peak {digits(peak)} GFLOP/s, "
        f"ridge at {digits(peak / gbps)} flop/byte.{' ' + placed + '.' if placed else ''}"
    )
