"""Gantt charts of work on threads: who did which item when, and who had nothing to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def gantt(timelines: Timeline | Sequence[Timeline] | Mapping[str, Timeline]) -> Picture:
    """Draw timelines beneath each other on one time axis, a row per thread, a bar per item.

    `timelines` are measured (`scheduling.schedule`) or planned (`scheduling.plan`); the keys of a dict name
    them. The dashed line is the bound that no distribution of the same items can beat; idle time is labelled.
    """
    named = _named(timelines)
    first = next(iter(named.values()))
    is_measured = first.measured
    if any(one.measured != is_measured for one in named.values()):
        raise ValueError(
            "Some timelines are measured and some are plans: draw them apart, their units differ."
        )
    scale, unit = 1.0, "units of the costs"
    if is_measured:
        scale, unit = (1e3, "ms") if max(one.makespan for one in named.values()) < 1 else (1.0, "s")
    said = _finding(named)
    if is_measured and max(one.without_cpu for one in named.values()) > CAUTION:
        said += " – but the threads often had no CPU: other programs run here"
    rows = sum(one.threads for one in named.values())
    with theme.figure(8.8, 1.3 + 0.34 * rows + 0.62 * len(named)) as fig:
        heights = [one.threads + 0.8 for one in named.values()]
        every = stacked(fig, heights)
        end = max(max(one.makespan, one.bound) for one in named.values()) * scale
        every[0].set_xlim(0, 1.02 * end if end else 1)
        for axes, (name, timeline) in zip(every, named.items(), strict=True):
            _draw(axes, name, timeline, scale, unit if is_measured else "")
        every[-1].set_xlabel(f"time ({unit})" if is_measured else f"planned time ({unit})")
        headline(fig, said, 80)
        fig.draw_without_rendering()
        for axes, timeline in zip(every, named.values(), strict=True):
            _number(axes, timeline, scale)
        parts = []
        for name, one in named.items():
            shares = ", ".join(f"{100 * share:.0f} %" for share in one.busy_fraction)
            parts.append(
                f"{name}: {len(one.bars)} items done at {digits(one.makespan * scale)} {unit}, the bound is "
                f"{digits(one.bound * scale)}, threads busy {shares} of the time"
            )
        return Picture.of(fig, f"Gantt chart, a row per thread. {said}. {'; '.join(parts)}.")


def _named(timelines: Timeline | Sequence[Timeline] | Mapping[str, Timeline]) -> dict[str, Timeline]:
    named: dict[str, Timeline] = {}
    if isinstance(timelines, Mapping):
        named |= timelines
    else:
        for one in [timelines] if hasattr(timelines, "bars") else timelines:
            named[one.name if one.name not in named else f"{one.name} ({len(named) + 1})"] = one
    if not named or not all(hasattr(one, "bars") for one in named.values()):
        raise ValueError(
            "There is no timeline to draw: pass what scheduling.schedule or scheduling.plan returned."
        )
    return named


def _draw(axes: Axes, name: str, timeline: Timeline, scale: float, unit: str) -> None:
    for order, bar in enumerate(timeline.bars):
        in_thread = sum(other.thread == bar.thread for other in timeline.bars[:order])
        colour = PINK if (bar.thread + in_thread) % 2 == 0 else VIOLET
        look = {"color": colour, "alpha": 0.8, "edgecolor": PAPER, "linewidth": 0.8, "height": 0.66}
        look["hatch"] = HATCHES[in_thread % len(HATCHES)]
        axes.barh(bar.thread, (bar.end - bar.start) * scale, left=bar.start * scale, **look)
    _label_idle(axes, timeline, scale, unit)
    bound = timeline.bound * scale
    axes.axvline(bound, color=INK, linestyle=(0, (4, 2)), linewidth=1.3)
    axes.axvline(timeline.makespan * scale, color=GREY, linewidth=1.0)
    axes.set_yticks(range(timeline.threads), [f"thread {n}" for n in range(timeline.threads)])
    axes.set_ylim(timeline.threads - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    over = 100 * (timeline.makespan / timeline.bound - 1) if timeline.bound else 0.0
    ended = "" if timeline.ended == "done" else "  – stopped at the time limit"
    done = f"{digits(timeline.makespan * scale)} {unit}".strip()
    starved = ""
    if timeline.measured and timeline.without_cpu > STARVED:
        starved = f"; no CPU for {100 * timeline.without_cpu:.0f} % of the work"
    axes.set_title(f"{name}: done at {done}, {over:.0f} % after the bound{starved}{ended}", fontsize=10.5)


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


def _finding(named: Mapping[str, Timeline]) -> str:
    if len(named) == 1:
        ((name, one),) = named.items()
        over = 100 * (one.makespan / one.bound - 1) if one.bound else 0.0
        return f"{name}: {over:.0f} % longer than the bound"
    best = min(named, key=lambda name: named[name].makespan)
    worst = max(named, key=lambda name: named[name].makespan)
    ratio = named[worst].makespan / named[best].makespan if named[best].makespan else 1.0
    if ratio < 1.05:
        return "All distributions of these items take the same time, within 5 %"
    return f"The same items take {ratio:.2f}x as long with “{worst}” as with “{best}”"
