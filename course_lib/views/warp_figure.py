"""What a warp scheduler does with its warps: who waits when, and how many warps hide a latency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from course_lib import theme
from course_lib.measure.comparison import value_of
from course_lib.measure.table import digits
from course_lib.simulators.gpu.warp_scheduler import STATES
from course_lib.theme import GREY, INK, PAPER, PINK, SERIES, VIOLET, Picture
from course_lib.views.figures import beside, headline, hollow, panel, stacked
from course_lib.views.paper import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.parallel_chase import InFlight
    from course_lib.simulators.gpu.warp_scheduler import OccupancyCurve, SchedulerRun

#: Colour, height, hatch and words of each state ("finished" is left empty); heights tell them apart, too.
LOOKS = {
    "selected": (PINK, 0.86, "", "issues an instruction"),
    "not selected": ("#ffc2df", 0.6, "", "could, another was taken"),
    "wait": ("#c9b6dd", 0.34, "", "waits for arithmetic"),
    "short scoreboard": ("#b583e0", 0.34, "////", "waits for shared memory"),
    "long scoreboard": (VIOLET, 0.16, "", "waits for global memory"),
    "MIO throttle": ("#cfc9d8", 0.5, "xxx", "its turn at shared memory"),
    "LG throttle": ("#cfc9d8", 0.5, "...", "its turn on the way to global memory"),
}
SHOWN = 600  # cycles that a picture can hold


def warps(named: SchedulerRun | Mapping[str, SchedulerRun], cycles: int = 160) -> Picture:
    """Draw what each warp does in each of the first `cycles` cycles, a row per warp.

    named: what `warp_scheduler.simulate` returned, or several by name, drawn below each other. Raises
    ValueError for none, or for more cycles than a picture holds.
    """
    named = named if isinstance(named, Mapping) else {"": named}
    if not named:
        raise ValueError("There is nothing to draw: give what warp_scheduler.simulate returned.")
    if not 1 <= cycles <= SHOWN:
        raise ValueError(f"cycles is {cycles}, but a picture holds 1 to {SHOWN}.")
    used = [100 * result.utilisation for result in named.values()]
    if len(used) == 1:
        said = f"The scheduler issues an instruction in {digits(used[0])} % of the cycles"
    else:
        low, high = digits(min(used)), digits(max(used))
        said = f"From {low} to {high} % of the issue slots, with the same latencies"
    rows = sum(result.warps for result in named.values())
    with theme.figure(8.8, 1.7 + 0.42 * len(named) + 0.2 * rows) as fig:
        every = stacked(fig, [result.warps + 1 for result in named.values()])
        for axes, (name, result) in zip(every, named.items(), strict=True):
            _draw(axes, result, cycles)
            axes.set_title(_subtitle(name, result), fontsize=10.5)
        every[-1].set_xlabel("cycle")
        every[0].set_xlim(0, cycles)
        _legend(fig, named.values(), cycles)
        headline(fig, said, 80)
        parts = []
        for name, result in named.items():
            shares = {state: result.share(state) for state in STATES}
            each = ", ".join(f"{state} {100 * share:.0f} %" for state, share in shares.items() if share > 0)
            parts.append(f"{_subtitle(name, result)} ({each})")
        what = f"The states of warps in the first {cycles} cycles, a row per warp"
        return Picture.of(fig, f"{what}. {said}. {'; '.join(parts)}.")


def _draw(axes: Axes, result: SchedulerRun, cycles: int) -> None:
    for warp, states in enumerate(result.timeline[:, :cycles]):
        edges = np.flatnonzero(np.diff(states)) + 1
        for start, stop in zip([0, *edges], [*edges, len(states)], strict=True):
            colour, height, hatch, _ = LOOKS[STATES[states[start]]]
            look = {"facecolors": colour, "hatch": hatch, "edgecolor": PAPER, "linewidth": 0.3}
            axes.broken_barh([(start, stop - start)], (warp - height / 2, height), **look)
    axes.set_ylim(result.warps - 0.4, -0.6)
    axes.set_yticks(range(result.warps), [f"warp {n}" for n in range(result.warps)], fontsize=8.5)
    axes.grid(visible=False)


def _legend(fig: Any, results: Any, cycles: int) -> None:
    from matplotlib.patches import Patch

    seen = {STATES[state] for result in results for state in np.unique(result.timeline[:, :cycles])}
    patches = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=PAPER, label=words)
        for state, (colour, _, hatch, words) in LOOKS.items()
        if state in seen
    ]
    fig.legend(handles=patches, loc="outside lower center", ncols=3, fontsize=9)


def _subtitle(name: str, result: SchedulerRun) -> str:
    used = digits(100 * result.utilisation)
    return f"{name}{': ' if name else ''}{plural(result.warps, 'warp')}: {used} % of the issue slots used"


# -- against the number of warps ---------------------------------------------------------------------------


def latency_hiding(
    named: OccupancyCurve | Mapping[str, OccupancyCurve],
    measured: Mapping[str, Mapping[float, float]] | None = None,
    guess: Any = None,
) -> Picture:
    """Draw simulated issue-slot utilisation against warps per scheduler, with its two bounds.

    named: what `warp_scheduler.occupancy_curve` returned, one or several by name. measured: for a name the
    measured utilisation (0 to 1) by warps per scheduler; the name says where it comes from. guess: a guessed
    number of warps (a number, an object with a `.value`, or None). Raises ValueError for no curve.
    """
    named, measured = named if isinstance(named, Mapping) else {"simulated": named}, measured or {}
    if not named:
        raise ValueError("There is no curve to draw: give what warp_scheduler.occupancy_curve returned.")
    name, first = next(iter(named.items()))
    used = f"{first.warps[-1]} warps use {digits(100 * first.simulated[-1])} % of the issue slots"
    said = f"{name}: {used}, {first.knee:.3g} would be needed"
    if first.knee <= max(first.warps):
        said = f"{name}: from {first.knee:.3g} warps on the latency is hidden"
        if first.ceiling < 1:
            most = f"{100 * first.ceiling:.3g} % of the issue slots"
            said = f"{name}: from {first.knee:.3g} warps on more bring nothing; {first.limit} allows {most}"
    with panel(8.2, 4.6 + 0.9 * bool(measured), said, 68) as (fig, axes):
        for number, (name, curve) in enumerate(named.items()):
            colour, marker, _ = SERIES[number % len(SERIES)]
            ends = sorted({curve.warps[0], min(curve.knee, curve.warps[-1]), curve.warps[-1]})
            bound = [curve.ceiling * min(warps / curve.knee, 1) for warps in ends]
            axes.plot(ends, _percent(bound), color=colour, linewidth=1.2, linestyle=":")
            axes.plot(curve.warps, _percent(curve.simulated), marker, color=colour, markersize=6, label=name)
        axes.plot(
            [], [], color=GREY, linewidth=1.2, linestyle=":", label="at most: Little's law, then the limit"
        )
        for number, (name, points) in enumerate(measured.items(), len(named)):
            colour, marker, _ = SERIES[number % len(SERIES)]
            axes.plot(list(points), _percent(points.values()), marker, label=name, **hollow(colour, 8, 1.6))
        guessed = value_of(guess)
        if guessed is not None:
            axes.axvline(guessed, color=INK, linewidth=1.2, linestyle=(0, (4, 2)))
            beside(axes, f"your guess: {guessed:g}", (guessed, 3), (4, 0), fontsize=9.5)
        most = max(max(curve.warps) for curve in named.values())
        limits = {"xlim": (0, max(most, guessed or 0) * 1.04), "ylim": (0, 106)}
        axes.set(xlabel="warps on a scheduler", ylabel="% of the issue slots used", **limits)
        if measured:  # their names are long
            fig.legend(loc="outside lower left", fontsize=9, ncols=1)
        else:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        lines = [(name, zip(curve.warps, curve.simulated, strict=True)) for name, curve in named.items()]
        lines += [(name, points.items()) for name, points in measured.items()]
        parts = []
        for name, points in lines:
            shown = ", ".join(f"{warps:g} {100 * share:.0f} %" for warps, share in points)
            knee = f", knee at {named[name].knee:.3g}, {named[name].limit}" if name in named else ""
            parts.append(f"{name}: {shown}{knee}")
        what = "Issue-slot utilisation against warps per scheduler"
        return Picture.of(fig, f"{what}. {said}. {'; '.join(parts)}.")


def _percent(shares: Any) -> list[float]:
    return [100 * share for share in shares]


# -- the same law on a CPU ---------------------------------------------------------------------------------


def in_flight(found: InFlight) -> Picture:
    """Draw what a read costs a CPU core against the number of independent pointer chases."""
    said = f"One core keeps about {digits(found.most, 2)} reads in flight: more chases do not help"
    with panel(8.0, 4.2, said, 68) as (fig, axes):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        alone = [found.latency_ns / count for count in found.chases]
        nobody = "latency / chases: nobody waits for room"
        axes.plot(found.chases, alone, color=GREY, linestyle=":", label=nobody)
        axes.plot(found.chases, found.nanoseconds, "o-", color=PINK, markersize=6, label="measured")
        axes.axvline(found.most, color=VIOLET, linewidth=1.2, linestyle="--")
        axes.set_xticks(found.chases, [str(count) for count in found.chases])
        ticks = [2**n for n in range(-3, 12) if alone[-1] / 1.5 < 2**n < 1.5 * max(found.nanoseconds)]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set(xlabel="independent chases at once", ylabel=f"ns for one read ({found.where})")
        axes.legend(loc="upper right")
        points = ", ".join(
            f"{count}: {digits(ns)}" for count, ns in zip(found.chases, found.nanoseconds, strict=True)
        )
        return Picture.of(fig, f"Nanoseconds for a read against independent chases. {said}. {points}.")
