"""The roofline model (Williams, Waterman, Patterson 2009): which limit holds for a computation here.

A computation that does `intensity` floating-point operations for each byte it moves can reach at most the
smaller of the peak FLOP/s and intensity x bandwidth. Where the two are equal is the ridge.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.arguments import is_number, number, whole
from course_lib.measure.comparison import TITLE_WIDTH
from course_lib.measure.table import digits

if TYPE_CHECKING:
    import numpy as np
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
PIXELS_A_POINT = 100 / 72
NAME_SIZE = 10
LEADER = {"arrowstyle": "-", "color": theme.GREY, "linewidth": 0.7}  # from a name to its far point
LABEL_WIDTH = 0.05  # of the axes: so far apart stand the names of the caches' roofs
EDGE = 1.75  # pixels that are kept free around a marker


@dataclass(frozen=True)
class Point:
    """A measured computation: its rate, and its work per byte moved from or to memory."""

    name: str
    gflops: float
    intensity: float  # flop/byte
    marker: float = 9.0  # diameter of what is drawn for it, in points

    @property
    def at(self) -> tuple[float, float]:
        """Its place in the figure."""
        return self.intensity, self.gflops


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
    caches: Mapping[str, float] = field(default_factory=dict)  # those that are drawn, and what a core reads

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
        caches = {name: gbps for name, gbps in peaks.reads.items() if name.startswith("L")}
        return cls(peak, peaks.gbps(threads), narrow, what, caches=caches)


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
    points: Sequence[Point],
    dtype: Any = "float64",
    threads: int = 1,
    peaks: Peaks | None = None,
    caches: bool = False,
) -> theme.Picture:
    """Draw the machine's roofline for `dtype` and `threads` with the points under it.

    `peaks` None takes this machine's (measured the first time: a few seconds). On a CPU with 512-bit vectors
    a second, lower roof shows the peak with 256-bit ones: compilers often use no wider ones there. `caches`
    draws a roof for each cache, too: what a loop reaches whose bytes come from there. Raises ValueError if
    they are wanted for several threads: the caches are measured on one core.
    """
    points = _checked(points)
    roofs = Roofs.of(dtype, threads, peaks)
    if not caches:
        roofs = replace(roofs, caches={})
    elif threads > 1:
        raise ValueError(f"caches are drawn for {threads} threads, but they are measured on one: leave them.")
    title = _finding(points, roofs.peak, roofs.gbps)
    with theme.figure(8.0, 4.8 + 0.13 * len(points)) as fig:
        axes = fig.subplots()
        axes.set_title(textwrap.fill(title, TITLE_WIDTH))
        draw_roofs(axes, points, roofs)
        for place, point in enumerate(points):
            colour, marker, _ = theme.SERIES[place % len(theme.SERIES)]
            share = _percent(_share(point, roofs.peak, roofs.gbps))
            said = f"{point.name}: {digits(point.gflops)} GFLOP/s, {share} of its roof"
            look = {"color": colour, "markersize": point.marker, "zorder": 4, "label": said, "ls": ""}
            axes.plot(*point.at, marker, **look)
        if points:
            columns = 2 if max(len(point.name) for point in points) <= LONGEST_IN_TWO_COLUMNS else 1
            fig.legend(loc="outside lower center", ncols=columns, fontsize=9.5)
        fig.draw_without_rendering()  # places are known from here on
        taken = label(axes, points, roofs)
        for point in points:
            name(axes, point, taken, points)
        return theme.Picture.of(fig, _alt(points, title, roofs))


def draw_roofs(axes: Axes, points: Sequence[Point], roofs: Roofs) -> None:
    """Draw the roofs into axes that have room for the points."""
    axes.set(xscale="log", yscale="log")
    axes.set(
        xlabel="arithmetic intensity (flop per byte moved)", ylabel=f"{roofs.prefix}FLOP/s ({roofs.what})"
    )
    peak, gbps = roofs.peak, roofs.gbps
    ridge = peak / gbps
    low = min(
        [
            peak / max([gbps, *roofs.caches.values()]) / 4,
            ridge / 16,
            *(point.intensity / 3 for point in points),
        ]
    )
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
        narrow = [roofs.narrow / gbps, high], [roofs.narrow, roofs.narrow]
        axes.plot(*narrow, color=theme.PINK, linewidth=1.2, alpha=0.6)
    said = "from a cache, GB/s"
    room, at = math.log(high / low), 0.0
    for level, reads in sorted(roofs.caches.items(), key=lambda cache: -cache[1]):
        ends = [low, peak / reads]
        axes.plot(ends, [low * reads, peak], color=theme.VIOLET, linewidth=1, alpha=0.6, label=said)
        said = None  # once in the legend
        look = {"ha": "center", "va": "bottom", "fontsize": 8.5, "color": theme.VIOLET, "linespacing": 1}
        at = max(math.log(ends[1] / low) / room, at + LABEL_WIDTH)  # roofs may end near each other, names not
        place = (low * math.exp(at * room), peak)
        theme.beside(axes, f"{level}\n{digits(reads, 2)}", place, (0, 4), **look)


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
        share = _percent(_share(highest, peak, gbps))
        return f"{highest.name} reaches {share} of its {roofs[highest]} roof"
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
    read = ", ".join(f"{level} {digits(gbps)} GB/s" for level, gbps in roofs.caches.items())
    lower = f"One core reads from {read}. " if read else ""
    lower += "" if roofs.narrow is None else f"Peak with 256-bit vectors: {digits(roofs.narrow)} GFLOP/s. "
    return (
        f"{lower}Memory roof {digits(roofs.gbps)} {roofs.prefix}B/s, "
        f"peak {digits(roofs.peak)} {roofs.prefix}FLOP/s, "
        f"ridge at {digits(roofs.peak / roofs.gbps)} flop/byte."
    )


# -- where words stand: along the roofs, and beside their points without covering anything -------------------


def label(axes: Axes, points: Sequence[Point], roofs: Roofs) -> list[Bbox]:
    """Write the roofs' numbers along them in a figure that is laid out; return the places that are taken.

    They stand in the middle of their line if no marker is there.
    """
    peak, gbps, ridge = roofs.peak, roofs.gbps, roofs.peak / roofs.gbps
    low, high = axes.get_xlim()
    markers = [_around(axes, point) for point in points]
    (x0, y0), (x1, y1), (x2, y2) = axes.transData.transform([(low, low * gbps), (ridge, peak), (high, peak)])
    said = f"peak: {digits(peak)} {roofs.prefix}FLOP/s"
    places = ((math.sqrt(ridge * high), "center"), (high, "right"), (ridge, "left"))
    look = {"color": theme.PINK, "weight": "bold"}
    flat = _best(
        [theme.beside(axes, said, (x, peak), (0, 5), ha=side, **look) for x, side in places], markers
    )
    said = f"memory: {digits(gbps)} {roofs.prefix}B/s"
    look = {"ha": "center", "va": "bottom", "color": theme.VIOLET, "weight": "bold"}
    look |= {"rotation_mode": "anchor", "rotation": math.degrees(math.atan2(y1 - y0, x1 - x0))}
    middles = [low * (ridge / low) ** part for part in (0.5, 0.7, 0.3)]
    slanted = _best([theme.beside(axes, said, (x, x * gbps), (-5, 5), **look) for x in middles], markers)
    named = theme.beside(axes, f"ridge: {digits(ridge)} flop/byte", (ridge, axes.get_ylim()[0]), (4, 5))
    lines = [*_boxes_along((x0, y0), (x1, y1), 8), *_boxes_along((x1, y1), (x2, y2), 8)]
    taken = [flat.get_window_extent(), named.get_window_extent(), *_slanted_boxes(slanted), *lines]
    if roofs.narrow is not None:  # under its line
        look = {"va": "top", "fontsize": 9.5, "color": theme.PINK}
        said = f"peak with 256-bit vectors: {digits(roofs.narrow)} GFLOP/s"
        tries = [
            theme.beside(axes, words, (at, roofs.narrow), (dx, -4), ha=side, **look)
            for words in (said, said.replace(": ", ":\n"))
            for at, dx, side in ((high, -5, "right"), (ridge, 5, "left"))
        ]
        best = _best(tries, [*markers, *taken], axes.bbox)
        ends = axes.transData.transform([(roofs.narrow / gbps, roofs.narrow), (high, roofs.narrow)])
        taken += [best.get_window_extent(), *_boxes_along(*ends, 8)]
    return taken


def _best(tries: Sequence[Annotation], obstacles: Sequence[Bbox], within: Bbox | None = None) -> Annotation:
    """Keep the label that covers least of the obstacles and stays `within`; take the others away."""
    covered = [
        sum(overlap(part, other) for part in _slanted_boxes(label) for other in obstacles)
        + (outside(label.get_window_extent(), within) if within else 0)
        for label in tries
    ]
    best = tries[covered.index(min(covered))]
    for label in tries:
        if label is not best:
            label.remove()
    return best


def _around(axes: Axes, point: Point) -> Bbox:
    """Return the box that a point's marker covers."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform(point.at)
    radius = point.marker / 2 * PIXELS_A_POINT + EDGE
    return Bbox.from_bounds(x - radius, y - radius, 2 * radius, 2 * radius)


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


def _offsets(up: int, radius: float, reach: float) -> Iterator[tuple[float, float, str]]:
    """Yield where to try a name, in points from the marker's middle: `up` (1 or -1) and near ones first."""
    near = [(0, radius + 9.5, "center"), (radius + 5.5, 0, "left"), (-radius - 5.5, 0, "right")]
    yield from [(dx, dy * up, side) for dx, dy, side in (*near, (0, -radius - 9.5, "center"))]
    yield from [(dx, dy * up, side) for dy in (12, -12) for dx, _, side in near[1:]]
    for distance in range(int(radius) + 16, int(radius + reach) + 1, 6):
        for turn in (*range(2, 16, 4), *range(1, 16, 2), *range(0, 16, 4)):  # of 16, corners first
            dx, dy = distance * math.cos(turn * math.pi / 8), distance * math.sin(turn * math.pi / 8)
            yield dx, dy * up, "center" if abs(dx) < 1 else "left" if dx > 0 else "right"


def name(axes: Axes, point: Point, taken: list[Bbox], points: Sequence[Point], reach: float = 0) -> None:
    """Write a point's name where it covers nothing, if there is such a place; `taken` gets its box.

    A name goes up to `reach` points away from its marker, with a line that leads there.
    """
    import numpy as np
    from matplotlib.transforms import Bbox

    own_x, own_y = axes.transData.transform(point.at)
    others = [other for other in points if other is not point]
    markers = [axes.transData.transform(other.at) for other in others]
    obstacles = [*taken, *(_around(axes, other) for other in others)]
    nearest = min(markers, key=lambda at: math.dist(at, (own_x, own_y)), default=(own_x, own_y + 1))
    up = 1 if nearest[1] < own_y else -1  # away from the neighbour
    radius = point.marker / 2
    width, height = _size(axes, point.name)
    corners = np.array([obstacle.extents for obstacle in obstacles]).reshape(-1, 4)
    tries = list(_offsets(up, radius, reach))
    for may_cross in (False, True):  # the line to a name had better cross nothing
        for dx, dy, side in tries:
            is_far = math.hypot(dx, dy) > radius + 13
            if may_cross and not is_far:
                continue
            x, y = own_x + dx * PIXELS_A_POINT, own_y + dy * PIXELS_A_POINT
            left = x - {"left": 0, "center": width / 2, "right": width}[side]
            extent = Bbox.from_bounds(left, y - height / 2, width, height)
            line = _boxes_along((own_x, own_y), (x, y), 2) if is_far else []
            if outside(extent, axes.bbox) >= 1 or _covers([extent], corners):
                continue
            if may_cross or not _covers(line, corners):
                look = {"va": "center", "ha": side}
                if is_far:  # below all names, which stand on paper: a line never strikes one through
                    theme.beside(axes, "", point.at, (dx, dy), arrowprops=LEADER, zorder=3.5, **look)
                look |= {"bbox": {"facecolor": theme.PAPER, "edgecolor": "none", "pad": 0.4}}
                theme.beside(axes, point.name, point.at, (dx, dy), fontsize=NAME_SIZE, zorder=5, **look)
                taken += [extent, *line]
                return


def _size(axes: Axes, words: str) -> tuple[float, float]:
    """Return width and height of a name in pixels."""
    written = axes.annotate(words, (0.5, 0.5), xycoords="axes fraction", fontsize=NAME_SIZE)
    extent = written.get_window_extent()
    written.remove()
    return extent.width, extent.height


def _covers(boxes: Sequence[Bbox], corners: np.ndarray) -> bool:
    """Whether a box overlaps one of those whose corners are x0, y0, x1, y1 (N, 4)."""
    import numpy as np

    for x0, y0, x1, y1 in (box.extents for box in boxes):
        if np.any((corners[:, 0] < x1) & (corners[:, 2] > x0) & (corners[:, 1] < y1) & (corners[:, 3] > y0)):
            return True
    return False


def overlap(one: Bbox, other: Bbox) -> float:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(0.0, width) * max(0.0, height)


def outside(inner: Bbox, outer: Bbox) -> float:
    return inner.width * inner.height - overlap(inner, outer)
