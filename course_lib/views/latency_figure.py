"""The latency curve: nanoseconds for one read against the working set, with the caches marked."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from course_lib.measure.table import digits
from course_lib.theme import GREY, INK, PAPER, Picture
from course_lib.views.figures import beside, panel, series
from course_lib.views.paper import in_bytes, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.latency import LatencyCurve


def latency(curves: LatencyCurve | Mapping[str, LatencyCurve], title: str | None = None) -> Picture:
    """Return the figure of one curve of `measure.latency`, or of several by name.

    Dotted lines stand at the sizes of the caches as the system tells them, bars at the plateaus that were
    found in the curve, if it is a single one; a line below says if it does not reach memory. Raises
    ValueError if there is no curve.
    """
    named = {"measured": curves} if hasattr(curves, "plateaus") else dict(curves)
    if not named:
        raise ValueError("There is no curve to draw: give what measure.latency.measure returned.")
    first, is_single = next(iter(named.values())), len(named) == 1
    said = title or _finding(first)
    with panel(8.4, 4.6, said, 68) as (fig, axes):
        axes.set(xscale="log", yscale="log")
        for number, (name, curve) in enumerate(named.items()):
            look = {**series(number), "markersize": 5, "zorder": 3}
            axes.plot(curve.sizes, curve.nanoseconds, label=name, **look)
        _ticks(axes, named.values())
        _mark_caches(axes, first)
        if is_single:
            _mark_plateaus(axes, first)
        below = ["working set (one random read in each line, in a cycle)"]
        below += textwrap.wrap(first.where_it_ends, 84) if is_single else []
        axes.set(xlabel="\n".join(below), ylabel="ns for one read")
        if not is_single:
            axes.legend(loc="lower right")
        parts = [f"Latency against working set: {said}."]
        for name, curve in named.items():
            ends = [f"{digits(curve.nanoseconds[n], 2)} ns at {in_bytes(curve.sizes[n])}" for n in (0, -1)]
            parts.append(f"{name}: {ends[0]}, {ends[1]}.")
        if is_single:
            levels = ", ".join(f"{one.name} {digits(one.nanoseconds, 2)} ns" for one in first.plateaus())
            parts += [f"Plateaus: {levels}.", first.where_it_ends]
        return Picture.of(fig, " ".join(filter(None, parts)))


def _finding(curve: LatencyCurve) -> str:
    plateaus = curve.plateaus()
    if len(plateaus) < 2:
        return f"One read takes {digits(curve.nanoseconds[0], 2)} ns in the smallest working set"
    near, far = plateaus[0], plateaus[-1]
    ratio = times(far.nanoseconds / near.nanoseconds)
    values = f"{digits(far.nanoseconds, 2)} ns against {digits(near.nanoseconds, 2)} ns"
    if curve.reaches_memory:
        return f"A number from memory takes {ratio} as long as one from {near.name}: {values}"
    first, last = in_bytes(far.first_bytes), in_bytes(far.last_bytes)
    where = first if first == last else f"{first} to {last}"
    where += f", inside {far.level}" if far.size_bytes and far.last_bytes <= far.size_bytes else ""
    base = f"in {near.name}" if near.size_bytes else "on the first"
    return f"On the last plateau ({where}) a read takes {ratio} as long as {base}: {values}"


def _ticks(axes: Axes, curves) -> None:
    low = min(curve.sizes[0] for curve in curves)
    high = max(curve.sizes[-1] for curve in curves)
    places = [2**n for n in range(10, 40, 2) if low <= 2**n <= high]
    axes.set_xticks(places, [in_bytes(place) for place in places])
    axes.minorticks_off()
    axes.set_xlim(low / 1.3, high * 1.3)
    drawn = [ns for curve in curves for ns in curve.nanoseconds]
    low, high = min(drawn) / 1.6, max(drawn) * 2.2
    axes.set_ylim(low, high)
    marks = [step * 10**power for power in range(-1, 4) for step in (1, 2, 5)]
    marks = [mark for mark in marks if low <= mark <= high]
    axes.set_yticks(marks, [f"{mark:g}" for mark in marks])


def _mark_caches(axes: Axes, curve: LatencyCurve) -> None:
    low, high = axes.get_xlim()
    for cache in curve.caches:
        if low < cache.size_bytes < high:
            axes.axvline(cache.size_bytes, color=INK, linestyle=(0, (1, 2)), linewidth=1.3, zorder=1)
            words, at = f"{in_bytes(cache.size_bytes)} (L{cache.level})", (cache.size_bytes, 1.0)
            beside(axes, words, at, (-3, -4), ha="right", va="top", xycoords=("data", "axes fraction"))


def _mark_plateaus(axes: Axes, curve: LatencyCurve) -> None:
    """Draw each plateau as a bar over the working sets it was found in, with its value above it."""
    for one in curve.plateaus():
        begin, end = one.first_bytes, one.last_bytes
        axes.hlines(one.nanoseconds, begin, end, color=GREY, linewidth=7, alpha=0.35, zorder=2)
        at = end, max(one.nanoseconds, curve.at(end))  # up and left of it there is nothing
        ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
        look = {"ha": "right", "fontweight": "bold", "bbox": ground, "zorder": 2.5}
        beside(axes, f"{one.name}: {digits(one.nanoseconds, 2)} ns", at, (0, 8), **look)
