"""Measured speed-ups over threads: with Amdahl's law through them, or of several programs in one picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from course_lib.measure.table import digits, times
from course_lib.theme import GREY, PINK, VIOLET, Picture
from course_lib.views.figures import beside, curves, hollow, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.amdahl import Fit, Speedups

AHEAD = 4  # the law is drawn up to so many times the largest thread count
NOTHING = 5e-4  # a serial fraction that the times may hide: then no limit can be told


def amdahl(measured: Speedups) -> Picture:
    """Draw what `amdahl.speedups` measured, the fitted law with its 95 % band, the ideal line, the limit."""
    law = measured.fit()
    base = law.times.get(1, law.time(1))
    gains = {p: base / seconds for p, seconds in measured.times.items()}
    last = max(8, AHEAD * max(law.times))
    title = _finding(law, gains, measured.cores)
    with panel(8.0, 4.8, title, 74) as (fig, axes):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        how = "through both points" if law.exact else "fitted"
        share = f"{digits(100 * law.serial_fraction, 2)} %" if law.is_told else "cannot be told on this run"
        named = f"Amdahl, {how}: serial fraction {share}"
        curve = [2 ** (step / 16) for step in range(int(16 * math.log2(last)) + 1)]
        ideal = {"linestyle": ":", "linewidth": 1.6, "label": "ideal: p threads, p times as fast"}
        axes.plot(curve, curve, color=GREY, **ideal)
        axes.plot(curve, [law.speedup(p) for p in curve], color=VIOLET, linestyle="--", label=named)
        if law.interval is not None:
            low, high = law.interval
            ends = [[1 / (s + (1 - s) / p) for p in curve] for s in (high, low)]
            look = {"color": VIOLET, "alpha": 0.12, "linewidth": 0}
            axes.fill_between(curve, *ends, label="95 % of what the times allow", **look)
        _points(axes, gains, measured.cores)
        _limit(axes, law, last)
        ticks = [2**n for n in range(int(math.log2(last)) + 1)]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_yticks(ticks, [f"{tick}x" for tick in ticks])
        axes.minorticks_off()
        axes.set(xlabel="threads p", ylabel="speed-up T(1) / T(p)", xlim=(0.93, last * 1.05))
        axes.set_ylim(min(0.8, 0.8 * min(gains.values())), last * 1.05)
        axes.legend(loc="upper left", fontsize=9)
        points = ", ".join(f"{p}: {digits(gain)}x" for p, gain in gains.items())
        alt = f"Speed-up against threads on log-log axes. {title}. Measured: {points}. {law}"
        return Picture.of(fig, alt)


def thread_curves(measured: Mapping[str, Speedups], predicted: Mapping[str, Mapping[int, float]]) -> Picture:
    """Draw the speed-ups of several programs over threads, and dashed what was predicted for some."""
    gains = {
        name: {p: one.times[min(one.times)] / seconds for p, seconds in one.times.items()}
        for name, one in measured.items()
    }
    last = max(max(gained) for gained in gains.values())
    ends = {name: gained[max(gained)] for name, gained in gains.items()}
    said = ", ".join(f"{name} {times(ends[name])}" for name in sorted(ends, key=ends.get, reverse=True))
    title = f"Speed-up on {last} threads: {said}"
    if any(one.comparison and one.comparison.held for one in measured.values()):
        title = f"This machine was busy: run again ({said})"
    with panel(8.0, 4.4, title, 74) as (fig, axes):
        expected = {f"{name}, predicted": curve for name, curve in predicted.items()}
        curves(axes, gains, expected)
        axes.plot([1, last], [1, last], color=GREY, linestyle=":", label="ideal: p threads, p times as fast")
        axes.set_xticks(sorted({p for gained in gains.values() for p in gained}))
        axes.set(xlabel="threads p", ylabel="speed-up T(1) / T(p)", ylim=(0, None))
        axes.legend(fontsize=9)
        points = "; ".join(
            f"{name} {', '.join(f'{p}: {times(gain)}' for p, gain in gained.items())}"
            for name, gained in {**gains, **expected}.items()
        )
        return Picture.of(fig, f"Speed-up against threads. {title}. {points}.")


def _points(axes: Axes, gains: dict[int, float], cores: int) -> None:
    inside = [p for p in gains if p <= cores]
    beyond = [p for p in gains if p > cores]
    axes.plot(inside, [gains[p] for p in inside], "o", color=PINK, markersize=8, label="measured", zorder=4)
    if beyond:
        label = f"more threads than the {cores} cores (not in the fit)"
        look = hollow(PINK, 8, 1.8)
        axes.plot(beyond, [gains[p] for p in beyond], "s", label=label, zorder=4, **look)


def _limit(axes: Axes, law: Fit, last: int) -> None:
    if law.limit < last and law.is_told:
        axes.axhline(law.limit, color=VIOLET, linewidth=1.0, alpha=0.7)
        words = f"never more than {digits(law.limit)}x"
        beside(axes, words, (last, law.limit), (-4, 4), ha="right", fontsize=9.5)


def _finding(law: Fit, gains: dict[int, float], cores: int) -> str:
    top = max(p for p in gains if p <= cores)
    said = f"{top} threads are {digits(gains[top])}x as fast"
    if not law.is_told:
        low, high = (digits(100 * end, 2) for end in law.interval)
        return f"The serial part cannot be told on this run ({low} to {high} %): run again"
    if law.serial_fraction >= 0.9995:
        return f"{said}: nothing of it is divided, or other programs held the cores (then run again)"
    if math.isinf(law.limit):
        return f"{said}: no serial part shows"
    serial = f"{digits(100 * law.serial_fraction, 2)} % serial"
    if law.exact:  # two counts cannot test the law
        return f"{said}: if Amdahl's law holds, {serial} and never more than {digits(law.limit)}x"
    if law.interval is not None and law.interval[0] < NOTHING:
        return f"{said}: perhaps {serial}, perhaps nothing"
    return f"{said}: {serial}, so never more than {digits(law.limit)}x"
