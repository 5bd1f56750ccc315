"""Where the words in a roofline stand: along the roofs, and beside their points without covering anything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from course_lib import theme
from course_lib.measure.table import digits

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox


PIXELS_A_POINT = 100 / 72
SIZE = 10  # of a name
EDGE = 1.75  # pixels that are kept free around a marker


class NamedPoint(Protocol):
    """A point of a roofline; `marker` is the diameter of its mark, in points."""

    name: str
    gflops: float
    intensity: float
    marker: float


def label_roofs(
    axes: Axes,
    peak: float,
    gbps: float,
    low: float,
    high: float,
    points: Sequence[NamedPoint],
    prefix: str = "G",
) -> list[Bbox]:
    """Write the roofs' numbers along them, away from markers; return the places that are taken."""
    ridge = peak / gbps
    markers = [_around(axes, point) for point in points]
    flat = _peak_label(axes, f"{digits(peak)} {prefix}FLOP/s", peak, ridge, high, markers)
    (x0, y0), (x1, y1) = axes.transData.transform([(low, low * gbps), (ridge, peak)])
    slope = math.degrees(math.atan2(y1 - y0, x1 - x0))
    slanted = _memory_label(axes, f"{digits(gbps)} {prefix}B/s", gbps, low, ridge, slope, markers)
    named = axes.annotate(
        f"ridge: {digits(ridge)} flop/byte",
        (ridge, axes.get_ylim()[0]),
        xytext=(4, 5),
        textcoords="offset points",
    )
    x2, y2 = axes.transData.transform((high, peak))
    roofs = [*_boxes_along((x0, y0), (x1, y1), 8), *_boxes_along((x1, y1), (x2, y2), 8)]
    return [flat.get_window_extent(), named.get_window_extent(), *_slanted_boxes(slanted), *roofs]


def _peak_label(
    axes: Axes, said: str, peak: float, ridge: float, high: float, markers: Sequence[Bbox]
) -> Annotation:
    """Name the peak above its line: in the middle if no marker is there."""
    words = {"color": theme.PINK, "weight": "bold", "textcoords": "offset points", "xytext": (0, 5)}
    places = ((math.sqrt(ridge * high), "center"), (high, "right"), (ridge, "left"))
    tries = [axes.annotate(f"peak: {said}", (x, peak), ha=side, **words) for x, side in places]
    return _best(tries, markers)


def _memory_label(
    axes: Axes, said: str, gbps: float, low: float, ridge: float, slope: float, markers: Sequence[Bbox]
) -> Annotation:
    """Name the memory's roof along its line: in the middle if no marker is there."""
    words = {"color": theme.VIOLET, "weight": "bold", "textcoords": "offset points", "xytext": (-5, 5)}
    along = {"ha": "center", "va": "bottom", "rotation": slope, "rotation_mode": "anchor"}
    places = [low * (ridge / low) ** part for part in (0.5, 0.7, 0.3)]
    return _best([axes.annotate(f"memory: {said}", (x, x * gbps), **words, **along) for x in places], markers)


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


def label_narrow(
    axes: Axes,
    narrow: float,
    gbps: float,
    ridge: float,
    high: float,
    points: Sequence[NamedPoint],
    taken: list[Bbox],
) -> None:
    """Name the lower roof under its line, away from markers where there is room; note what is taken."""
    start, end = axes.transData.transform([(narrow / gbps, narrow), (high, narrow)])
    tries = [
        axes.annotate(
            f"peak with 256-bit vectors:{between}{digits(narrow)} GFLOP/s",
            (at, narrow),
            xytext=(dx, -4),
            textcoords="offset points",
            ha=side,
            va="top",
            fontsize=9.5,
            color=theme.PINK,
        )
        for between in (" ", "\n")
        for at, dx, side in ((high, -5, "right"), (ridge, 5, "left"))
    ]
    best = _best(tries, [*(_around(axes, point) for point in points), *taken], axes.bbox)
    taken += [best.get_window_extent(), *_boxes_along(start, end, 8)]


def _around(axes: Axes, point: NamedPoint) -> Bbox:
    """Return the box that a point's marker covers."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform((point.intensity, point.gflops))
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


def name(
    axes: Axes, point: NamedPoint, taken: list[Bbox], points: Sequence[NamedPoint], reach: float = 0
) -> None:
    """Write a point's name where it covers nothing, if there is such a place; `taken` gets its box.

    A name goes up to `reach` points away from its marker, with a line that leads there.
    """
    import numpy as np
    from matplotlib.transforms import Bbox

    own_x, own_y = axes.transData.transform((point.intensity, point.gflops))
    markers = [axes.transData.transform((p.intensity, p.gflops)) for p in points if p is not point]
    obstacles = [*taken, *(_around(axes, other) for other in points if other is not point)]
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
                axes.annotate(
                    point.name,
                    (point.intensity, point.gflops),
                    xytext=(dx, dy),
                    textcoords="offset points",
                    ha=side,
                    va="center",
                    fontsize=SIZE,
                    arrowprops={"arrowstyle": "-", "color": theme.GREY, "linewidth": 0.7} if is_far else None,
                    zorder=5,
                )
                taken += [extent, *line]
                return


def _size(axes: Axes, words: str) -> tuple[float, float]:
    """Return width and height of a name in pixels."""
    written = axes.annotate(words, (0.5, 0.5), xycoords="axes fraction", fontsize=SIZE)
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
