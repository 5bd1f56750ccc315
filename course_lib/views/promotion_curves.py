"""The error of long FP8 sums against their length, for promotion every so many products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.fp8.promotion import BOTH_SIGNS, ONE_SIGN, PromotionError
from course_lib.theme import GREY, Picture
from course_lib.views.figures import headline, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {ONE_SIGN: "All products ≥ 0", BOTH_SIGNS: "Products of both signs"}


def promotion_figure(table: Sequence[PromotionError]) -> Picture:
    """Draw relative errors against K, a panel for each kind of data and a line for each promotion.

    table: what `fp8.promotion.promotion_errors` returned. Raises ValueError for an empty one.
    """
    table = list(table)
    if not table or not all(isinstance(one, PromotionError) for one in table):
        raise ValueError(
            "The table must hold PromotionErrors, one or more: give what promotion_errors() gave."
        )
    kinds = [kind for kind in NAMES if any(one.kind == kind for one in table)]
    said = finding(table)
    with theme.figure(8.2, 4.4) as fig:
        panels = fig.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for axes, kind in zip(panels, kinds, strict=True):
            _draw(axes, [one for one in table if one.kind == kind])
            axes.set_title(NAMES[kind], fontsize=10.5)
            axes.set_xlabel("K: products in a sum")
        panels[0].set_ylabel("RMS error, % of the RMS result (model)")
        panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        fig.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
        headline(fig, said, 70)
        return Picture.of(fig, f"{said}. {in_words(table)}")


def finding(table: Sequence[PromotionError]) -> str:
    """Say what the longest sums lose without promotion and with the one that is nearest to every 128."""
    kind = ONE_SIGN if any(one.kind == ONE_SIGN for one in table) else table[0].kind
    longest = max(one.K for one in table if one.kind == kind)
    at_end = {one.promote_every: one for one in table if one.kind == kind and longest == one.K}
    what = f"{NAMES[kind]}: sums of {longest:,}"
    promoted = [every for every in at_end if every]
    best = min(promoted, key=lambda every: abs(every - 128)) if promoted else None
    parts = []
    if None in at_end:
        parts.append(f"{percent(at_end[None].relative_error)} wrong without promotion")
    if best:
        parts.append(f"{percent(at_end[best].relative_error)} with one every {best}")
    return f"{what} are {', '.join(parts)}"


def in_words(table: Sequence[PromotionError]) -> str:
    """Return every line of the figure as a sentence, and where its figures come from."""
    said = ["A model's figures, not measured on a GPU."]
    for kind in NAMES:
        for every in dict.fromkeys(one.promote_every for one in table):
            points = [one for one in table if one.kind == kind and one.promote_every == every]
            if points:
                figures = ", ".join(f"{one.K}: {percent(one.relative_error)}" for one in points)
                said.append(f"{NAMES[kind]}, {name(every)}: {figures}.")
    rounding = percent(max(one.bfloat16_error for one in table))
    return " ".join([*said, f"Rounding to bfloat16 alone: {rounding}."])


def name(every: int | None) -> str:
    """Return the name of a line."""
    return f"promotion every {every}" if every else "no promotion"


def percent(share: float) -> str:
    """Return a share with two digits."""
    return f"{float(f'{100 * share:.2g}'):g} %"


def _draw(axes: Axes, points: Sequence[PromotionError]) -> None:
    for number, every in enumerate(dict.fromkeys(one.promote_every for one in points)):
        mine = [one for one in points if one.promote_every == every]
        sizes, errors = [one.K for one in mine], [100 * one.relative_error for one in mine]
        axes.plot(sizes, errors, **series(number), markersize=6, label=name(every))
    rounding = sorted({one.K: 100 * one.bfloat16_error for one in points}.items())
    sizes, errors = zip(*rounding, strict=True)
    look = {"color": GREY, "linewidth": 1.2, "linestyle": (0, (1, 1))}
    axes.plot(sizes, errors, label="rounding to bfloat16 alone", **look)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    shown = sizes[:: max(1, len(sizes) // 4)]
    axes.set_xticks(shown, [f"{K:,}" for K in shown])
    axes.minorticks_off()
