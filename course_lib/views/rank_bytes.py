"""What a rank sends against the number of ranks: as counted, as the formulas say, and the lower bound."""

from __future__ import annotations

import math
from collections.abc import Mapping

from course_lib.measure.table import digits
from course_lib.theme import GREY_TINT, INK, Picture
from course_lib.views.figures import at_the_side, panel, series

NEAR = 1.2  # ends whose ratio is less are named together


def rank_bytes(
    predicted: Mapping[str, Mapping[int, float]],
    counted: Mapping[str, Mapping[int, float]],
    bound: Mapping[int, float],
) -> Picture:
    """Draw formulas as lines, counts as marks on them, and what no algorithm beats as a grey area.

    All are {name: {ranks: sent}}, `sent` in whole matrices: bytes of a rank over those of one matrix.
    """
    last = max(max(curve) for curve in predicted.values())
    ends = {name: curve[last] for name, curve in predicted.items() if last in curve}
    said = ", ".join(f"{name} {digits(ends[name])}" for name in sorted(ends, key=ends.get))
    title = f"Matrices that each of {last} ranks sends: {said}; at least {digits(bound[last])}"
    with panel(8.0, 4.8, title, 66) as (fig, axes):
        for number, (name, curve) in enumerate(predicted.items()):
            axes.plot(*zip(*sorted(curve.items()), strict=True), **{**series(number), "marker": ""})
            if points := sorted(counted.get(name, {}).items()):
                look = {"linestyle": "", "markerfacecolor": "none", "markersize": 9, "markeredgewidth": 1.8}
                axes.plot(*zip(*points, strict=True), **{**series(number), **look})
        named: list[str] = []
        for name in sorted(ends, key=ends.get):  # from below
            if name not in named:
                beside = [one for one in ends if one not in named and 1 <= ends[one] / ends[name] < NEAR]
                named += beside
                at_the_side(axes, ", ".join(beside), (last, ends[name]), True, color=INK, fontsize=10)
        x, y = zip(*sorted(bound.items()), strict=True)
        axes.fill_between(x, [min(y) / 4] * len(y), y, color=GREY_TINT)
        middle = math.sqrt(x[0] * x[-1]), min(y) / 2
        axes.text(*middle, "no algorithm that shares the work evenly", ha="center", color=INK, fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(x, [str(ranks) for ranks in x])
        axes.minorticks_off()
        labels = {"xlabel": "ranks P (marks: counted in a rehearsal)", "ylabel": "matrices sent by a rank"}
        axes.set(ylim=(min(y) / 4, 3), xlim=(x[0] / 1.2, 2.2 * x[-1]), **labels)
        points = "; ".join(
            f"{name} {', '.join(f'{ranks}: {digits(sent)}' for ranks, sent in sorted(curve.items()))}"
            for name, curve in {**predicted, "the bound": bound}.items()
        )
        return Picture.of(fig, f"Matrices sent by a rank against ranks, log-log. {title}. {points}.")
