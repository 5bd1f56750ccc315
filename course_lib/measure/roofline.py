"""The roofline model (Williams, Waterman, Patterson 2009): which limit holds for a computation here.

A computation that does `intensity` floating-point operations for each byte it moves can reach at most the
smaller of the peak FLOP/s and intensity x bandwidth. Where the two are equal is the ridge.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.arguments import is_number, number, whole
from course_lib.measure import roofline_labels
from course_lib.measure.comparison import TITLE_WIDTH
from course_lib.measure.table import digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    marker: float = 9.0  # diameter of what is drawn for it, in points


@dataclass(frozen=True)
class Roofs:
    """The limits of a machine for one dtype and number of threads, which `what` names.

    prefix "T" counts everything in TFLOP/s and TB/s, the points' `gflops`, too.
    """

    peak: float  # GFLOP/s; as all below, or in what `prefix` says
    gbps: float
    narrow: float | None  # with 256-bit vectors, where that is a lower roof
    what: str
    prefix: str = "G"

    @classmethod
    def of(cls, dtype: Any = "float64", threads: int = 1, peaks: Peaks | None = None) -> Roofs:
        """Return the limits out of `peaks`; None takes this machine's (measured the first time: seconds)."""
        import numpy as np

        if peaks is None:
            from course_lib.measure import machine

            peaks = machine.peaks()
        peak, narrow = peaks.gflops(dtype, threads), peaks.gflops_256(dtype, threads)
        if narrow is not None and narrow > SAME * peak:
            narrow = None
        what = f"{np.dtype(dtype).name}, {threads} thread{'s' if threads > 1 else ''}"
        return cls(peak, peaks.gbps(threads), narrow, what)


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
    sizes = {"M": M, "K": K, "N": N, "itemsize": itemsize}
    M, K, N, itemsize = (whole(name, value) for name, value in sizes.items())  # NumPy's would overflow
    return 2 * M * K * N / (itemsize * (M * K + K * N + M * N))


def _check_roofs(intensity: float, peak_gflops: float, gbps: float) -> None:
    number("peak_gflops", peak_gflops, above=0)
    number("gbps", gbps, above=0)
    number("intensity in flop per byte", intensity, least=0)


def figure(
    points: Sequence[Point], dtype: Any = "float64", threads: int = 1, peaks: Peaks | None = None
) -> theme.Picture:
    """Draw the machine's roofline for `dtype` and `threads` with the points under it.

    `peaks` None takes this machine's (measured the first time: a few seconds). On a CPU with 512-bit vectors
    a second, lower roof shows the peak with 256-bit ones: compilers often use no wider ones there.
    """
    points = _checked(points)
    roofs = Roofs.of(dtype, threads, peaks)
    title = _finding(points, roofs.peak, roofs.gbps)
    with theme.figure(8.0, 4.8 + 0.13 * len(points)) as fig:
        axes = fig.subplots()
        axes.set_title(textwrap.fill(title, TITLE_WIDTH))
        low, high = draw_roofs(axes, points, roofs)
        for place, point in enumerate(points):
            colour, marker, _ = theme.SERIES[place % len(theme.SERIES)]
            share = _percent(_share(point, roofs.peak, roofs.gbps))
            said = f"{point.name}: {digits(point.gflops)} GFLOP/s, {share} of its roof"
            axes.plot(
                [point.intensity],
                [point.gflops],
                marker,
                color=colour,
                markersize=point.marker,
                zorder=4,
                label=said,
                ls="",
            )
        if points:
            columns = 2 if max(len(point.name) for point in points) <= LONGEST_IN_TWO_COLUMNS else 1
            fig.legend(loc="outside lower center", ncols=columns, fontsize=9.5)
        fig.draw_without_rendering()  # places are known from here on
        taken = label(axes, points, roofs, low, high)
        for point in points:
            roofline_labels.name(axes, point, taken, points)
        return theme.Picture.of(fig, _alt(points, title, roofs))


def draw_roofs(axes: Axes, points: Sequence[Point], roofs: Roofs) -> tuple[float, float]:
    """Draw the roofs into axes that have room for the points; return the range of intensities drawn."""
    axes.set(xscale="log", yscale="log")
    axes.set(
        xlabel="arithmetic intensity (flop per byte moved)", ylabel=f"{roofs.prefix}FLOP/s ({roofs.what})"
    )
    peak, gbps = roofs.peak, roofs.gbps
    ridge = peak / gbps
    low = min([ridge / 16, *(point.intensity / 3 for point in points)])
    high = max([ridge * 16, *(point.intensity * 6 for point in points)])
    bottom = min([attainable(low, peak, gbps), *(point.gflops for point in points)]) / 3
    axes.set_xlim(low, high)
    above = [2 * point.gflops for point in points]  # what did fewer operations than were counted
    axes.set_ylim(bottom, max([peak * (peak / bottom) ** 0.12, *above]))  # room for the peak's number
    axes.plot([low, ridge], [low * gbps, peak], color=theme.VIOLET, linestyle="--")
    axes.plot([ridge, high], [peak, peak], color=theme.PINK)
    axes.plot([ridge, ridge], [bottom, peak], color=theme.GREY, linewidth=1, linestyle=":")
    axes.plot([ridge], [peak], "o", color=theme.INK, markersize=5, zorder=4)
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    axes.grid(True, which="major")
    axes.minorticks_off()
    if roofs.narrow is not None:
        narrow = [roofs.narrow, roofs.narrow]
        axes.plot([roofs.narrow / roofs.gbps, high], narrow, color=theme.PINK, linewidth=1.2, alpha=0.6)
    return low, high


def label(axes: Axes, points: Sequence[Point], roofs: Roofs, low: float, high: float) -> list[Bbox]:
    """Name the roofs of a figure that is laid out; return what is taken, for the points' names."""
    peak, gbps, narrow = roofs.peak, roofs.gbps, roofs.narrow
    taken = roofline_labels.label_roofs(axes, peak, gbps, low, high, points, roofs.prefix)
    if narrow is not None:
        roofline_labels.label_narrow(axes, narrow, gbps, peak / gbps, high, points, taken)
    return taken


def _checked(points: Any) -> list[Point]:
    if isinstance(points, str | Point) or not isinstance(points, Iterable):
        raise TypeError(f"points is {points!r}, but it must be a list of Point(name, gflops, intensity).")
    points = list(points)
    for place, point in enumerate(points):
        if not isinstance(point, Point):
            raise TypeError(f"points[{place}] is {point!r}, but it must be a Point(name, gflops, intensity).")
        if not all(is_number(value) and value > 0 for value in (point.gflops, point.intensity)):
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


def _plain(value: float, _: int) -> str:
    return f"{value:g}" if 1e-4 < value < 1e5 else f"{value:.0e}"


def _alt(points: Sequence[Point], title: str, roofs: Roofs) -> str:
    peak, gbps = roofs.peak, roofs.gbps
    placed = "; ".join(
        f"{point.name} at {digits(point.intensity)} flop/byte reaches {digits(point.gflops)} GFLOP/s, "
        f"under the {limit(point.intensity, peak, gbps)} roof of "
        f"{digits(attainable(point.intensity, peak, gbps))}"
        for point in points
    )
    said = f"Roofline of this machine ({roofs.what}). {title}. {in_words(roofs)}"
    return f"{said} {placed}." if placed else said


def in_words(roofs: Roofs) -> str:
    """Return the limits in words."""
    lower = "" if roofs.narrow is None else f"Peak with 256-bit vectors: {digits(roofs.narrow)} GFLOP/s. "
    return (
        f"{lower}Memory roof {digits(roofs.gbps)} {roofs.prefix}B/s, "
        f"peak {digits(roofs.peak)} {roofs.prefix}FLOP/s, "
        f"ridge at {digits(roofs.peak / roofs.gbps)} flop/byte."
    )
