"""What a rank sends against the number of ranks: as counted, as the formulas say, and the lower bound."""

from __future__ import annotations

from collections.abc import Mapping

from course_lib.measure.table import digits
from course_lib.theme import GREY_TINT, Picture
from course_lib.views.figures import panel, series


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
            look = {**series(number), "marker": ""}
            axes.plot(*zip(*sorted(curve.items()), strict=True), **look, label=f"{name}, formula")
            points = sorted(counted.get(name, {}).items())
            look = {"linestyle": "", "markerfacecolor": "none", "markersize": 9, "markeredgewidth": 1.8}
            if points:
                named = {"label": f"{name}, counted"}
                axes.plot(*zip(*points, strict=True), **{**series(number), **look}, **named)
        x, y = zip(*sorted(bound.items()), strict=True)
        axes.fill_between(x, [min(y) / 4] * len(y), y, color=GREY_TINT, label="no algorithm")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(x, [str(ranks) for ranks in x])
        axes.minorticks_off()
        axes.set(xlabel="ranks P", ylabel="matrices sent by a rank", ylim=(min(y) / 4, 3))
        axes.legend(fontsize=9, loc="lower left")
        points = "; ".join(
            f"{name} {', '.join(f'{ranks}: {digits(sent)}' for ranks, sent in sorted(curve.items()))}"
            for name, curve in {**predicted, "the bound": bound}.items()
        )
        return Picture.of(fig, f"Matrices sent by a rank against ranks, log-log. {title}. {points}.")
