"""The talk's two ratios, from what the GPU's peak would allow down to what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_lib.measure.table import digits
from course_lib.theme import GREY, PINK, VIOLET, Picture
from course_lib.views.figures import at_the_side, beside, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.speech.two_whys import Why

STEPS = ("at the GPU's peak", "in tiles", "in tiles, with the host's calls")


def two_whys(whys: Sequence[Why]) -> Picture:
    """Draw what the model says of each family, step by step, beside the ratios that the talk measured.

    whys: `two_whys.predict`'s. The axis is logarithmic: CPU time over GPU time.
    """
    if not whys:
        raise ValueError("There is nothing to draw: give what two_whys.predict returns.")
    said = " and ".join(f"{digits(why.predicted.ratio)}x" for why in whys)
    measured = " and ".join(f"{digits(why.talk.ratio)}x" for why in whys)
    title = f"The model says {said}, the talk {measured}"
    with panel(8.2, 1.6 + 1.5 * len(whys), title, 62) as (fig, axes):
        axes.set_xscale("log")
        for place, why in enumerate(whys):
            _draw(axes, why, 4 * place)
        rows = [4 * place + step for place in range(len(whys)) for step in range(3)]
        axes.set_yticks(rows, STEPS * len(whys))
        least = min(min(why.predicted.ratio, why.talk.ratio) for why in whys)
        most = max(why.at_peak for why in whys)
        axes.set(ylim=(max(rows) + 0.7, -1.2), xlim=(least / 1.6, 2 * most))
        axes.set_xticks([5, 10, 20, 50, 100], ["5x", "10x", "20x", "50x", "100x"])
        axes.minorticks_off()
        axes.set_xlabel("time on the CPU / time on the GPU (logarithmic)")
        fig.legend(loc="outside lower center", ncols=2)
        parts = [
            f"{why.name}: {digits(why.at_peak)}x at the GPU's peak, {digits(why.predicted.device_ratio)}x in "
            f"tiles (the talk: {digits(why.talk.device_ratio)}x), {digits(why.predicted.ratio)}x with the "
            f"host's calls (the talk: {digits(why.talk.ratio)}x)"
            for why in whys
        ]
        return Picture.of(fig, f"{title}. CPU time over GPU time. {'; '.join(parts)}.")


def _draw(axes: Axes, why: Why, top: int) -> None:
    said = (why.at_peak, why.predicted.device_ratio, why.predicted.ratio)
    measured = (None, why.talk.device_ratio, why.talk.ratio)
    look = {"weight": "bold", "va": "center", "xycoords": ("axes fraction", "data")}
    beside(axes, f"{why.name}: {why.calls:,} calls on the GPU", (0, top - 0.6), (4, 0), **look)
    axes.plot(said, range(top, top + 3), color=PINK, linewidth=1, linestyle=":", zorder=2)
    for row, (model, talk) in enumerate(zip(said, measured, strict=True), start=top):
        labels = ("the model", "the talk measured") if row == 1 else (None, None)
        axes.plot([model], [row], "o", color=PINK, markersize=10, zorder=3, label=labels[0])
        values = [model]
        if talk is not None:
            axes.plot([model, talk], [row, row], color=GREY, linewidth=1.2, zorder=1)
            axes.plot([talk], [row], "s", color=VIOLET, markersize=9, zorder=3, label=labels[1])
            values.append(talk)
        for value, colour in zip(values, (PINK, VIOLET), strict=False):
            look = {"fontsize": 10, "color": colour, "weight": "bold"}
            at_the_side(axes, f"{digits(value)}x", (value, row), value == max(values), **look)
