"""What training on many ranks comes to: losses against steps or time, and what each rank has to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_lib.measure.table import digits
from course_lib.theme import INK, PAPER, PINK, SERIES, VIOLET, Picture
from course_lib.views.figures import panel, series

if TYPE_CHECKING:
    from course_lib.training.zero import RankMemory

Curve = Sequence[float] | tuple[Sequence[float], Sequence[float]]  # losses, or (x, losses)
KINDS = ("parameters", "gradients", "states")
HATCHES = ("", "//", "..")


def losses(runs: Mapping[str, Curve], x: str = "step", what: str = "loss") -> Picture:
    """Draw losses of runs: {name: losses}, one for each step, or {name: (x, losses)}.

    Raises ValueError for no run, or one of fewer than two points.
    """
    curves = {
        name: curve if isinstance(curve, tuple) else (range(len(curve)), curve)
        for name, curve in runs.items()
    }
    if not curves or any(len(of_x) != len(y) or len(y) < 2 for of_x, y in curves.values()):
        raise ValueError("Losses need at least one run of two points or more, with an x for each.")
    last = {name: float(np.median(y[-max(1, len(y) // 20) :])) for name, (_, y) in curves.items()}  # noisy
    said = "; ".join(f"{name} {digits(end)}" for name, end in sorted(last.items(), key=lambda one: one[1]))
    title = f"At the end the {what} is: {said}"
    with panel(8.0, 4.0, title, 62) as (fig, axes):
        for number, (name, (of_x, y)) in enumerate(curves.items()):
            look = series(number) | {"markevery": (number, max(1, len(y) // 8)), "markersize": 6}
            axes.plot(of_x, y, **look, label=name, alpha=0.85)
        if min(float(np.min(y)) for _, y in curves.values()) > 0:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set(xlabel=x, ylabel=what)
        axes.legend()
        return Picture.of(fig, f"{what.capitalize()} against {x}. {title}.")


def rank_memory(
    kept: Mapping[str, RankMemory], limit: float | None = None, limit_name: str = "memory"
) -> Picture:
    """Draw what a rank keeps at the end of backward as bars: {name: RankMemory}; a line at `limit` bytes."""
    if not kept:
        raise ValueError("There is nothing to draw: give one RankMemory or more by name.")
    names = list(kept)
    said = ", ".join(f"{name} {_gb(kept[name].total)}" for name in names)
    title = f"A rank keeps: {said}"
    with panel(8.0, 1.5 + 0.5 * len(names), title, 62) as (fig, axes):
        left = np.zeros(len(names))
        for kind, colour, hatch in zip(KINDS, (VIOLET, PINK, SERIES[2][0]), HATCHES, strict=True):
            widths = np.array([getattr(kept[name], kind) for name in names]) / 1e9
            look = {"color": colour, "alpha": 0.75, "edgecolor": PAPER, "hatch": hatch, "height": 0.62}
            axes.barh(range(len(names)), widths, left=left, label=kind, **look)
            left += widths
        if limit:
            axes.axvline(limit / 1e9, color=INK, linestyle=(0, (4, 2)), label=limit_name)
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.5, -0.5), xlabel="GB kept by a rank")
        axes.grid(visible=False, axis="y")
        axes.legend(loc="best", ncols=2, fontsize=9.5)
        each = "; ".join(
            f"{name}: " + ", ".join(f"{kind} {_gb(getattr(one, kind))}" for kind in KINDS)
            for name, one in kept.items()
        )
        return Picture.of(fig, f"Bytes that a rank keeps at the end of backward. {title}. {each}.")


def _gb(size: float) -> str:
    return f"{digits(size / 1e9)} GB"
