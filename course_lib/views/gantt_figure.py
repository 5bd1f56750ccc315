"""Gantt charts of work on threads: who did which item when, and who had nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.measure.table import digits
from course_lib.theme import GREY, INK, PAPER, PINK, QUIET, VIOLET, Picture
from course_lib.views.figures import centred, headline, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.scheduling import Timeline

HATCHES = ("", "//", "..", "xx")  # neighbours on a thread differ, and so do neighbouring threads
NARROW = 0.022  # of the axis: a bar must be so wide to hold its number
STARVED = 0.1  # of the bars: more time without a CPU than this is said in the title
CAUTION = 0.2  # and from this on the finding above all charts is doubted
IDLE_SHOWN = 0.09  # of the axis: a shorter wait has no room for its label


def gantt(timelines: Sequence[Timeline]) -> Picture:
    """Draw timelines beneath each other on one time axis, a row per thread, a bar per item.

    All are measured (`scheduling.schedule`) or all planned (`scheduling.plan`). The dashed line is the bound
    that no distribution of the same items can beat; idle time is labelled.
    """
    if not timelines:
        raise ValueError("There is no timeline to draw: pass what scheduling.schedule returned, in a list.")
    is_measured = timelines[0].measured
    scale, unit = 1.0, "units of the costs"
    if is_measured:
        scale, unit = (1e3, "ms") if max(one.makespan for one in timelines) < 1 else (1.0, "s")
    said = _finding(timelines)
    if is_measured and max(one.without_cpu for one in timelines) > CAUTION:
        said += " – but the threads often had no CPU: other programs run here"
    rows = sum(one.threads for one in timelines)
    with theme.figure(8.8, 1.3 + 0.34 * rows + 0.62 * len(timelines)) as fig:
        heights = [one.threads + 0.8 for one in timelines]
        every = stacked(fig, heights)
        end = max(max(one.makespan, one.bound) for one in timelines) * scale
        every[0].set_xlim(0, 1.02 * end if end else 1)
        for axes, timeline in zip(every, timelines, strict=True):
            _draw(axes, timeline, scale, unit if is_measured else "")
        every[-1].set_xlabel(f"time ({unit})" if is_measured else f"planned time ({unit})")
        headline(fig, said, 80)
        fig.draw_without_rendering()
        for axes, timeline in zip(every, timelines, strict=True):
            _number(axes, timeline, scale)
        parts = []
        for one in timelines:
            shares = ", ".join(f"{100 * share:.0f} %" for share in one.busy_fraction)
            parts.append(
                f"{one.policy}: {len(one.bars)} items done at {digits(one.makespan * scale)} {unit}, the "
                f"bound is {digits(one.bound * scale)}, threads busy {shares} of the time"
            )
        return Picture.of(fig, f"Gantt chart, a row per thread. {said}. {'; '.join(parts)}.")


def _draw(axes: Axes, timeline: Timeline, scale: float, unit: str) -> None:
    look = {"alpha": 0.8, "edgecolor": PAPER, "linewidth": 0.8, "height": 0.66}
    for thread in range(timeline.threads):
        for number, bar in enumerate(timeline.of(thread)):
            look["color"] = VIOLET if (thread + number) % 2 else PINK
            look["hatch"] = HATCHES[number % len(HATCHES)]
            axes.barh(thread, (bar.end - bar.start) * scale, left=bar.start * scale, **look)
    _label_idle(axes, timeline, scale, unit)
    bound = timeline.bound * scale
    axes.axvline(bound, color=INK, linestyle=(0, (4, 2)), linewidth=1.3)
    axes.axvline(timeline.makespan * scale, color=GREY, linewidth=1.0)
    axes.set_yticks(range(timeline.threads), [f"thread {n}" for n in range(timeline.threads)])
    axes.set_ylim(timeline.threads - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    over = 100 * (timeline.makespan / timeline.bound - 1) if timeline.bound else 0.0
    done = f"{digits(timeline.makespan * scale)} {unit}".strip()
    starved = ""
    if timeline.measured and timeline.without_cpu > STARVED:
        starved = f"; no CPU for {100 * timeline.without_cpu:.0f} % of the work"
    axes.set_title(f"{timeline.policy}: done at {done}, {over:.0f} % after the bound{starved}", fontsize=10.5)


def _label_idle(axes: Axes, timeline: Timeline, scale: float, unit: str) -> None:
    """Write how long each thread had nothing to do at its end."""
    for thread in range(timeline.threads):
        end = max((bar.end for bar in timeline.of(thread)), default=0.0)
        idle = timeline.makespan - end
        if idle * scale > IDLE_SHOWN * axes.get_xlim()[1]:
            middle = (end + idle / 2) * scale
            said = f"idle {digits(idle * scale, 2)} {unit}".strip()
            look = {"fontsize": 8.5, "color": QUIET, "style": "italic"}
            centred(axes, middle, thread, said, {"boxstyle": "square,pad=0.1"}, **look)


def _number(axes: Axes, timeline: Timeline, scale: float) -> None:
    """Write the item's number into every bar that is wide enough."""
    low, high = axes.get_xlim()
    for bar in timeline.bars:
        if (bar.end - bar.start) * scale > NARROW * (high - low):
            ground = {"boxstyle": "round,pad=0.12", "alpha": 0.85}
            centred(axes, (bar.start + bar.end) / 2 * scale, bar.thread, bar.item, ground, fontsize=8)


def _finding(timelines: Sequence[Timeline]) -> str:
    if len(timelines) == 1:
        one = timelines[0]
        over = 100 * (one.makespan / one.bound - 1) if one.bound else 0.0
        return f"{one.policy}: {over:.0f} % longer than the bound"
    best = min(timelines, key=lambda one: one.makespan)
    worst = max(timelines, key=lambda one: one.makespan)
    ratio = worst.makespan / best.makespan if best.makespan else 1.0
    if ratio < 1.05:
        return "All distributions of these items take the same time, within 5 %"
    return f"The same items take {ratio:.2f}x as long with “{worst.policy}” as with “{best.policy}”"
