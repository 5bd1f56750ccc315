"""Simulated misses against size or block, level by level, with the speed that was measured beside them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.theme import GREY, INK, Picture
from course_lib.views.figures import curves as draw_curves
from course_lib.views.paper import in_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.simulators.cache import CacheCounts

Curve = Mapping[float, float]
WIDE = 8.0  # from this ratio of largest to smallest on, an axis is logarithmic
ALIKE = 1.1  # curves that nowhere lie further apart than this are called alike
PANEL_WIDTH = 3.9


def miss_curves(
    simulated: Mapping[str, Mapping[float, CacheCounts]],
    measured: Mapping[str, Curve] | None = None,
    *,
    x: str = "N",
    expected: Mapping[str, Mapping[str, Curve]] | None = None,
) -> Picture:
    """Return a figure: one panel of misses for each cache level, one of measured speed.

    simulated: {"ikj": {256: result, 512: result}, …}, results of `cache.simulate`, all with the same levels.
    measured: GFLOP/s under the same names: {"ikj": {256: 3.1, 512: 2.9}}; None leaves the panel out.
    x: what the numbers are: "N", "block size", "leading dimension".
    expected: what a formula says, by level: {"L1": {"1 / 2b·8": {8: 0.0078, …}}}; drawn as thin grey lines.

    Raises ValueError in one sentence for curves that cannot stand in one figure.
    """
    measured, expected = measured or {}, expected or {}
    _checked(simulated, measured, expected)
    first = next(iter(next(iter(simulated.values())).values()))
    names = list(map(first.name, range(len(first.levels))))
    levels = {
        name: {
            curve: {at: result.misses_per_flop[level] for at, result in sorted(of.items())}
            for curve, of in simulated.items()
        }
        for level, name in enumerate(names)
    }
    finding = _finding(levels[names[0]], names[0], measured, x)
    panels = len(names) + bool(measured)
    width = max(PANEL_WIDTH * panels, 6.0)
    with theme.figure(width, 4.3) as fig:
        axes = fig.subplots(1, panels, squeeze=False)[0]
        for level, (place, name) in enumerate(zip(axes, names, strict=False)):
            _draw(place, levels[name], list(simulated), expected.get(name, {}))
            size = in_bytes(first.levels[level].size_bytes)
            place.set_title(f"{name} ({size}), simulated", fontsize=11)
            place.set_ylabel("misses per FLOP")
        if measured:
            _draw(axes[-1], measured, list(simulated), {})
            axes[-1].set_title("speed, measured here", fontsize=11)
            axes[-1].set_ylabel("GFLOP/s")
            axes[-1].set_facecolor("#faf7fc")
        _same_x(axes, [*levels.values(), measured], x)
        fig.suptitle("\n".join(textwrap.wrap(finding, int(width * 9.5))), x=0.01, ha="left", weight="bold")
        handles = {}
        for place in axes:
            lines, labels = place.get_legend_handles_labels()
            handles.update(zip(labels, lines, strict=True))
        fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)
        words = [f"{finding}."]
        for level, curves in levels.items():
            words.append(f"{level} misses per FLOP, simulated: {_in_words(curves, x)}.")
        if measured:
            words.append(f"GFLOP/s, measured: {_in_words(measured, x)}.")
        return Picture.of(fig, " ".join(words))


def _draw(
    axes: Axes, curves: Mapping[str, Curve], names: Sequence[str], expected: Mapping[str, Curve]
) -> None:
    """Draw curves; a name has the same colour, marker and line in every panel."""
    from matplotlib.ticker import LogLocator, NullLocator

    draw_curves(axes, curves, expected, names)
    drawn = [y for curve in (*curves.values(), *expected.values()) for y in curve.values() if y > 0]
    if drawn and max(drawn) / min(drawn) > WIDE:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)


def _same_x(axes: Sequence[Axes], groups: Sequence[Mapping[str, Curve]], x: str) -> None:
    places = sorted({at for group in groups for curve in group.values() for at in curve})
    is_wide = len(places) > 1 and places[0] > 0 and places[-1] / places[0] >= WIDE
    shown = places if len(places) <= 8 else places[:: math.ceil(len(places) / 8)]
    for place in axes:
        if is_wide:
            place.set_xscale("log")
            place.minorticks_off()
        place.set_xticks(shown, [f"{at:g}" for at in shown])
        place.set_xlabel(x)
        place.tick_params(colors=INK)
        place.spines[["left", "bottom"]].set_color(GREY)


def _finding(curves: Mapping[str, Curve], level: str, measured: Mapping[str, Curve], x: str) -> str:
    """Return what the figure shows: where the curves lie furthest apart, or where a single one is lowest."""
    if len(curves) == 1:
        ((name, curve),) = curves.items()
        best = min(curve, key=curve.get)
        said = f"{name}: fewest {level} misses at {x} {best:g} ({curve[best]:.3g} per FLOP)"
        speeds = measured.get(name)
        return f"{said}, fastest at {max(speeds, key=speeds.get):g}" if speeds else said
    common = set.intersection(*(set(curve) for curve in curves.values()))
    at = max(sorted(common), key=lambda place: _spread(curves, place))
    ranking = sorted(curves, key=lambda name: curves[name][at])
    few, many = ranking[0], ranking[-1]
    factor = _spread(curves, at)
    if factor < ALIKE:
        return f"{', '.join(curves)}: {level} misses differ by less than {100 * (ALIKE - 1):.0f} %"
    said = f"{x} = {at:g}: {many} misses {level} {_number(factor)} times as often as {few}"
    if all(at in measured.get(name, {}) for name in (few, many)):
        slower = measured[few][at] / measured[many][at]
        how = f"{_number(slower)} times slower" if slower >= 1 else f"{_number(1 / slower)} times faster"
        said += f", and was {how}"
    return said


def _number(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}"


def _spread(curves: Mapping[str, Curve], at: float) -> float:
    """Return how many times as often the worst curve misses at a place as the best one."""
    values = [curve[at] for curve in curves.values()]
    return max(values) / min(values) if min(values) > 0 else 1.0


def _in_words(curves: Mapping[str, Curve], x: str) -> str:
    said = []
    for name, curve in curves.items():
        ends = sorted({min(curve), max(curve)})
        said.append(f"{name} " + ", ".join(f"{curve[at]:.3g} at {x} {at:g}" for at in ends))
    return "; ".join(said)


def _checked(simulated, measured, expected) -> None:
    if not simulated or not all(simulated.values()):
        raise ValueError("simulated holds no results: give {name: {N: simulate(trace, levels)}}.")
    results = [result for of in simulated.values() for result in of.values()]
    if len({result.levels for result in results}) > 1:
        raise ValueError("The results come from different caches: simulate all of them with the same levels.")
    if len(simulated) > 1 and not set.intersection(*(set(of) for of in simulated.values())):
        raise ValueError(
            "The curves have no x in common, so nothing can be compared: simulate at the same values."
        )
    if unknown := set(measured) - set(simulated):
        raise ValueError(f"{', '.join(sorted(unknown))} was measured but not simulated: use the same names.")
    levels = set(map(results[0].name, range(len(results[0].levels))))
    if strangers := set(expected) - levels:
        raise ValueError(
            f"expected names {', '.join(sorted(strangers))}, but the levels are {', '.join(sorted(levels))}."
        )
