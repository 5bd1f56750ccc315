"""What sharing a cache line costs: simulated, with the measurement beside it; and one line, step by step."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.measure.table import digits, times
from course_lib.theme import INK, PAPER, PINK, PINK_TINT, QUIET, VIOLET, VIOLET_TINT, Picture
from course_lib.views.figures import beside, centred, headline
from course_lib.views.paper import Html, Sheet, card, plural
from course_lib.views.prediction import TOO_WIDE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from course_lib.measure.counters import Counting
    from course_lib.simulators.coherence import Events, Transition

SIMULATED = 1000  # increments of each thread in the simulator
MOST_SHOWN, LINE_BYTES = 24, 64
#: How each state is drawn: fill, ink, dashes of the edge; and what the letter stands for.
STATES = {
    "M": (PINK, PAPER, None, "modified: the only copy, newer than memory"),
    "E": (VIOLET_TINT, INK, None, "exclusive: the only copy, as in memory"),
    "S": (PINK_TINT, INK, None, "shared: others may have it too"),
    "I": (PAPER, QUIET, "3 3", "invalid: not here"),
}


def false_sharing(counting: Counting) -> Picture:
    """Draw the simulated coherence misses of private counters at each distance beside their measured times.

    `counting` comes from `measure.counters.false_sharing`. In the simulator the threads take turns after
    every increment, the worst case. Where nothing was measured the picture says why.
    """
    from course_lib.simulators import coherence

    threads = max(2, counting.threads)
    results = [
        coherence.simulate(coherence.counters(threads, SIMULATED, stride, locked=True))
        for stride in counting.strides
    ]
    misses = [(r.true_sharing_misses + r.false_sharing_misses) / (threads * SIMULATED) for r in results]
    title = _finding(counting, misses)
    with theme.figure(8.6, 1.9 + 0.52 * len(misses)) as fig:
        left, right = fig.subplots(1, 2, sharey=True)
        headline(fig, title, 78)
        missed = [digits(value, 2) for value in misses]
        _bars(left, misses, missed, VIOLET, "//")
        left.set_xlim(0, 1.25 * max(*misses, 0.8))
        left.set(title="simulated (MESI)", xlabel="coherence misses per increment")
        left.set_yticks(range(len(misses)), [f"{stride} bytes\napart" for stride in counting.strides])
        left.set_ylim(len(misses) - 0.5, -0.5)
        _measured(right, counting)
        right.set(title="measured here", xlabel="time of an increment (ns), all threads at once")
        for axes in (left, right):
            axes.title.set_fontsize(11)
            axes.grid(visible=False, axis="y")
            axes.set_axisbelow(True)
        parts = []
        for stride, said in zip(counting.strides, missed, strict=True):
            measured = ""
            if counting.comparison is not None:
                measured = f" and {digits(counting.seconds(stride) * 1e9)} ns measured"
            parts.append(f"{stride} bytes apart {said} misses simulated{measured}")
        note = f" {counting.note}" if counting.note else ""
        every = f"Per increment of {counting.threads} threads: {'; '.join(parts)}.{note}"
        return Picture.of(fig, f"Two bar charts: {title}. {every}")


def _bars(axes: Axes, values: Sequence[float], labels: Sequence[str], colour: str, hatch: str) -> None:
    places = range(len(values))
    axes.barh(places, values, height=0.5, color=colour, alpha=0.85, hatch=hatch, edgecolor=PAPER)
    for place, value, label in zip(places, values, labels, strict=True):
        beside(axes, label, (value, place), (6, 0), va="center")


def _measured(axes: Axes, counting: Counting) -> None:
    if counting.comparison is None:
        centred(axes, 0.5, 0.5, textwrap.fill(counting.note, 34), transform=axes.transAxes)
        axes.set_xticks([])
        return
    seconds = [counting.seconds(stride) * 1e9 for stride in counting.strides]
    labels = [
        f"{digits(value)} ns"
        + (f"  ({times(counting.ratio(stride))})" if stride != max(counting.strides) else "")
        for value, stride in zip(seconds, counting.strides, strict=True)
    ]
    _bars(axes, seconds, labels, PINK, "")
    axes.set_xlim(0, 1.6 * max(seconds))


def _finding(counting: Counting, misses: Sequence[float]) -> str:
    from course_lib.measure.counters import name_of

    near, missed = min(zip(counting.strides, misses, strict=True))
    said = f"{digits(missed, 2)} coherence misses per increment"
    if counting.comparison is None:
        return f"Counters {near} bytes apart: {said} in the simulator; not measured here"
    row = counting.comparison.row(name_of(near))
    if counting.comparison.held:
        return f"Counters {near} bytes apart: {said}. {counting.comparison.conditions.held.rstrip('.')}"
    if not row.differs and row.ratio >= 1.3:
        return f"Counters {near} bytes apart: {said}; too noisy to tell what it costs, so run the cell again"
    if not row.differs or row.ratio < 1.1:
        return f"Counters {near} bytes apart: {said} in the simulator, but no cost measured here"
    took = times(row.ratio)
    if not row.ratio_high <= TOO_WIDE * row.ratio_low:  # the verdict says no single number then, either
        took = f"{times(row.ratio_low)} to {times(row.ratio_high)}"
    return f"Counters {near} bytes apart take {took} as long: {said}, although nothing is shared"


# -- one line ----------------------------------------------------------------------------------------------


def line_states(events: Events) -> Html:
    """Draw what the first 24 accesses did to the first cache line: its state in every cache, and the bus."""
    from course_lib.simulators import coherence

    steps = coherence.history(events, LINE_BYTES, MOST_SHOWN)
    if not steps:
        raise ValueError("No access touches the first cache line: nothing can be drawn.")
    count = len(steps[0].states)
    drawing = _grid(steps, count)
    bus = sum(bool(step.bus) for step in steps)
    accesses = f"{plural(len(steps), 'access')} of {plural(count, 'core')}"
    words = f"One cache line, {accesses}: {bus} of them needed the bus."
    for step in steps:
        states = ", ".join(f"core {core} {letter}" for core, letter in enumerate(step.states))
        what = "writes" if step.write else "reads"
        words += f" Core {step.core} {what}: {_on_the_bus(step)}; then {states}."
    title = f"{bus} of {len(steps)} accesses to this line need the bus"
    legend = ";  ".join(f"{letter}: {meaning}" for letter, (*_, meaning) in STATES.items())
    return Html(card(drawing, words, title=title), f"{title}\n{words}\n{legend}")


def _grid(steps: Sequence[Transition], cores: int) -> str:
    on = Sheet()
    left, column, row, top = 210.0, 78.0, 25.0, 34.0
    right = left + cores * column
    on.write(12, 20, "access", fill=QUIET)
    on.write(right + 18, 20, "on the bus", fill=QUIET)
    for core in range(cores):
        on.write(left + core * column + column / 2, 20, f"core {core}", anchor="middle", bold=True)
    for number, step in enumerate(steps):
        y = top + number * row
        what = "writes" if step.write else "reads"
        on.write(12, y + 17, f"core {step.core} {what} byte {step.address % LINE_BYTES}", bold=step.write)
        for core, letter in enumerate(step.states):
            fill, ink, dash, _ = STATES[letter]
            area = left + core * column + 8, y + 2, column - 16, row - 4
            on.cell(area, 15, letter, ink=ink, bold=letter != "I", fill=fill, dash=dash, radius=3)
            if core == step.core:
                on.box(*area, fill="none", stroke=INK, stroke_width=2, radius=3)
        on.write(right + 18, y + 17, _on_the_bus(step), size=12.5)
    y = top + len(steps) * row + 28
    for number, (letter, (fill, ink, dash, meaning)) in enumerate(STATES.items()):
        x, at = 12 + (number % 2) * 330, y + (number // 2) * 22
        on.cell((x, at - 14, 22, 18), 14, letter, ink=ink, size=12, bold=True, fill=fill, dash=dash)
        on.write(x + 30, at, meaning, size=12, fill=QUIET)
    return on.svg(max(right + 300, 680), y + 34, f"States of one cache line over {len(steps)} accesses.")


def _on_the_bus(step: Transition) -> str:
    if not step.bus:
        return "–"
    names = {"BusRd": "read", "BusRdX": "read to own", "BusUpgr": "upgrade: others drop it"}
    source = f", from {step.source}" if step.source else ""
    return f"{names[step.bus]}{source}{', written back' if step.written_back else ''}"
