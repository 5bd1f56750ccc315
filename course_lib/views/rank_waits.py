"""Ranks over time, by the clock: who computes, and who waits for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from course_lib import theme
from course_lib.theme import GREY_TINT, PAPER, VIOLET, Picture
from course_lib.views.figures import headline, stacked

if TYPE_CHECKING:
    from course_lib.distributed.wire import Rehearsal

LOOK = {"height": 0.9, "alpha": 0.75, "edgecolor": PAPER, "linewidth": 0.4, "color": VIOLET}
MOST_RANKS = 32


def rank_waits(runs: Mapping[str, Rehearsal]) -> Picture:
    """Draw rehearsals beneath each other by the clock: when each rank computed, and when it waited.

    Raises ValueError above 32 ranks.
    """
    if (most := max((len(run.ends) for run in runs.values()), default=0)) not in range(1, MOST_RANKS + 1):
        raise ValueError(f"{most} ranks cannot be drawn: 1 to {MOST_RANKS} can.")
    waited = {
        name: sum(to - since for _, since, to in run.waits) / sum(run.ends) for name, run in runs.items()
    }
    each = (
        f"{name} {1e3 * max(run.ends):.0f} ms, {waited[name]:.0%} of it waiting" for name, run in runs.items()
    )
    said = f"Ranks by the clock: {', '.join(each)}"
    rows = [len(run.ends) for run in runs.values()]
    with theme.figure(8.6, 1.2 + 0.6 * len(rows) + 0.16 * sum(rows)) as fig:
        longest = 1e3 * max(max(run.ends) for run in runs.values())
        for axes, (name, run) in zip(stacked(fig, rows), runs.items(), strict=True):
            ranks = len(run.ends)
            axes.barh(range(ranks), [1e3 * end for end in run.ends], **LOOK)
            at, since, to = np.array(run.waits or [(0, 0, 0)]).T
            axes.barh(at, 1e3 * (to - since), left=1e3 * since, color=GREY_TINT, height=0.9)
            axes.set(ylim=(ranks - 0.5, -0.5), xlim=(0, 1.02 * longest))
            axes.set(yticks=(0, ranks - 1), ylabel="rank")
            axes.set_title(f"{name}: violet computes, grey waits", fontsize=10.5)
            axes.grid(visible=False, axis="y")
        axes.set_xlabel("time (ms)")
        headline(fig, said, 74)
        return Picture.of(fig, f"A row per rank over time. {said}.")
