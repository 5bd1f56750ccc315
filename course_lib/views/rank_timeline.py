"""Ranks over time: who has a message under way, who computes, and who waits for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_lib import theme
from course_lib.measure.table import digits
from course_lib.theme import GREY_TINT, PAPER, PINK, VIOLET, Picture
from course_lib.views.figures import headline, stacked

if TYPE_CHECKING:
    from course_lib.distributed.wire import Rehearsal
    from course_lib.simulators.network import Network, Step

LOOK = {"height": 0.9, "alpha": 0.75, "edgecolor": PAPER, "linewidth": 0.4}
MOST_RANKS, MOST_BARS = 32, 400  # of one panel: rows, and steps


def rank_timeline(
    network: Network, runs: Mapping[str, Sequence[Step]], order: Sequence[int] | None = None
) -> Picture:
    """Draw runs beneath each other on one time axis, in milliseconds of the model, a row per rank.

    `runs` are {name: steps}, as `simulators.network.timeline` takes them. A bar is a message under way; the
    step then ends for all when its last message is through. Raises ValueError above 32 ranks or 400 steps.
    """
    steps = max((sum(step.times for step in run) for run in runs.values()), default=0)
    if network.ranks > MOST_RANKS or not 0 < steps <= MOST_BARS:
        raise ValueError(
            f"{network.ranks} ranks and {steps} steps cannot be drawn: at most {MOST_RANKS} ranks and 1 to "
            f"{MOST_BARS} steps can."
        )
    own = {name: _spans(network, run, order) for name, run in runs.items()}
    ends = {name: float(spans.max(axis=1).sum()) for name, spans in own.items()}  # ms
    share = {name: 100 * float(own[name].mean(axis=1).sum()) / ends[name] for name in own}
    told = ", ".join(f"{name} {digits(ends[name])} ms, {share[name]:.0f} % of it busy" for name in own)
    said = f"{network.ranks} ranks on {network.name}: {told}"
    with theme.figure(8.6, 1.2 + len(own) * (0.6 + 0.1 * network.ranks)) as fig:
        for axes, (name, spans) in zip(stacked(fig, [1] * len(own)), own.items(), strict=True):
            begins = np.cumsum([0, *spans.max(axis=1)[:-1]])  # (steps,)
            axes.barh(range(network.ranks), ends[name], color=GREY_TINT, height=0.9)
            for begin, lengths in zip(begins, spans, strict=True):
                axes.barh(range(network.ranks), lengths, left=begin, color=PINK, **LOOK)
            axes.set(ylim=(network.ranks - 0.5, -0.5), yticks=(0, network.ranks - 1), ylabel="rank")
            axes.set_title(f"{name}: grey waits for the others", fontsize=10.5)
            axes.grid(visible=False, axis="y")
        axes.set_xlabel("time by the model (ms)")
        headline(fig, said, 84)
        return Picture.of(fig, f"A row per rank over time, a bar per message. {said}.")


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
            axes.barh(range(ranks), [1e3 * end for end in run.ends], **LOOK | {"color": VIOLET})
            at, since, to = np.array(run.waits or [(0, 0, 0)]).T
            axes.barh(at, 1e3 * (to - since), left=1e3 * since, color=GREY_TINT, height=0.9)
            axes.set(ylim=(ranks - 0.5, -0.5), xlim=(0, 1.02 * longest))
            axes.set(yticks=(0, ranks - 1), ylabel="rank")
            axes.set_title(f"{name}: violet computes, grey waits", fontsize=10.5)
            axes.grid(visible=False, axis="y")
        axes.set_xlabel("time (ms)")
        headline(fig, said, 74)
        return Picture.of(fig, f"A row per rank over time. {said}.")


def _spans(network: Network, run: Sequence[Step], order: Sequence[int] | None) -> np.ndarray:
    """Return how long each rank is busy in each step, in milliseconds, (steps, ranks)."""
    from course_lib.simulators.network import busy

    return 1e3 * np.concatenate([np.tile(busy(network, step, order), (step.times, 1)) for step in run])
