"""Ranks over time: who has a message under way, and who waits for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_lib import theme
from course_lib.measure.table import digits
from course_lib.theme import GREY_TINT, PAPER, PINK, Picture
from course_lib.views.figures import headline, stacked

if TYPE_CHECKING:
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


def _spans(network: Network, run: Sequence[Step], order: Sequence[int] | None) -> np.ndarray:
    """Return how long each rank is busy in each step, in milliseconds, (steps, ranks)."""
    from course_lib.simulators.network import busy

    return 1e3 * np.concatenate([np.tile(busy(network, step, order), (step.times, 1)) for step in run])
