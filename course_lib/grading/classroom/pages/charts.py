"""The two charts of a class as inline SVG: how the points are distributed, and which tasks are hard.

Both are narrow enough to be read on a phone. Nothing is told by colour alone: numbers and signs stand in
the bars.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from course_lib.grading.classroom.pages.tally import STATES, TaskTally
from course_lib.grading.classroom.pages.text import escape, name, number, percent, plural
from course_lib.grading.report import SIGNS

WIDTH = 460
MOST_BINS = 14
LETTER = 7.4  # the width of a character, in the units of the drawing


def chart(finding: str, alt: str, height: float, drawing: str) -> str:
    """Return a figure: the finding above, the drawing, and in words what it shows."""
    return (
        f'<figure class="chart"><figcaption>{escape(finding)}</figcaption>'
        f'<svg role="img" viewBox="0 0 {WIDTH} {height:g}" aria-label="{escape(alt)}">'
        f"<title>{escape(alt)}</title>{drawing}</svg></figure>"
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", kind: str = "", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"{more}>{escape(text)}</text>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _bar(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


# --- the points of the class --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bins:
    """How many totals lie in each interval of `width` points, from 0 on; full marks are in the last one."""

    width: float
    counts: tuple[int, ...]

    @classmethod
    def of(cls, totals: list[float], most: float) -> Bins:
        """Count the totals in at most MOST_BINS intervals of a round width."""
        width = next(width for width in _round_widths() if most <= width * MOST_BINS)
        counts = [0] * max(1, math.ceil(round(most / width, 6)))
        for total in totals:
            counts[max(0, min(int(total / width + 1e-9), len(counts) - 1))] += 1
        return cls(width, tuple(counts))

    @property
    def end(self) -> float:
        """Where the last interval ends."""
        return self.width * len(self.counts)

    def words(self) -> str:
        """Return the intervals that hold somebody: "0 to 1: 3; 5 to 6: 12"."""
        held = [(place * self.width, count) for place, count in enumerate(self.counts) if count]
        return "; ".join(f"{number(low)} to {number(low + self.width)}: {count}" for low, count in held)


def _round_widths() -> Iterator[float]:
    """Yield 0.25, 0.5, 1, 2, 5, 10, 20, 50 …"""
    yield from (0.25, 0.5)
    for power in itertools.count():
        yield from (10**power, 2 * 10**power, 5 * 10**power)


@dataclass(frozen=True)
class Frame:
    """Where points and students lie in the drawing of the histogram."""

    points: float
    students: int
    left: float = 46
    right: float = WIDTH - 10
    top: float = 40
    bottom: float = 216

    def x(self, points: float) -> float:
        return self.left + (self.right - self.left) * min(points, self.points) / self.points

    def y(self, students: float) -> float:
        return self.bottom - (self.bottom - self.top) * students / self.students


def histogram(totals: list[float], most: float, median: float) -> str:
    """Return the distribution of the points of at least one student, with the median."""
    bins = Bins.of(totals, most)
    frame = Frame(bins.end, max(bins.counts))
    drawing = [
        *_grid(frame),
        *_columns(frame, bins),
        *_edges(frame, bins),
        *_median(frame, median),
        *_counts(frame, bins),
        *_axes(frame, most),
    ]
    alt = (
        f"Histogram of the points of {plural(len(totals), 'student')}, out of {number(most)}. "
        f"Students by interval: {bins.words()}. The median is {number(median)}."
    )
    return chart(finding(totals, most, median), alt, 262, "".join(drawing))


def finding(totals: list[float], most: float, median: float) -> str:
    """Return what the distribution says, in one sentence that holds for every class."""
    if len(totals) == 1:
        return f"The only student has {number(totals[0])} of {number(most)} points"
    if totals[0] == totals[-1]:
        return f"All {len(totals)} students have {number(totals[0])} of {number(most)} points"
    return (
        f"At least half of the {len(totals)} students have {number(median)} of {number(most)} points or more"
    )


def _grid(frame: Frame) -> Iterator[str]:
    step = next(step for step in _round_widths() if step >= 1 and frame.students <= 5 * step)
    for students in range(0, frame.students + 1, int(step)):
        y = frame.y(students)
        yield _line("grid", frame.left, y, frame.right, y)
        yield _text(frame.left - 6, y + 4, str(students), "end", "small")


def _columns(frame: Frame, bins: Bins) -> Iterator[str]:
    for place, count in enumerate(bins.counts):
        x, width = frame.x(place * bins.width), frame.x(bins.width) - frame.left
        if count:
            yield _bar("bar", x + 1.5, frame.y(count), width - 3, frame.bottom - frame.y(count))


def _counts(frame: Frame, bins: Bins) -> Iterator[str]:
    for place, count in enumerate(bins.counts):
        if count:
            yield _text(frame.x((place + 0.5) * bins.width), frame.y(count) - 5, str(count), kind="halo")


def _edges(frame: Frame, bins: Bins) -> Iterator[str]:
    """Yield the numbers under the axis, as many as there is room for."""
    labels = [number(place * bins.width) for place in range(len(bins.counts) + 1)]
    room = (frame.right - frame.left) / len(bins.counts)
    every = math.ceil((max(map(len, labels)) + 1) * LETTER / room)
    for place in range(0, len(labels), every):
        yield _text(frame.x(place * bins.width), frame.bottom + 17, labels[place], kind="small")


def _median(frame: Frame, median: float) -> Iterator[str]:
    x = frame.x(median)
    yield _line("median", x, frame.top - 22, x, frame.bottom)
    left = x > (frame.left + frame.right) / 2
    yield _text(
        x + (-6 if left else 6),
        frame.top - 22,
        f"median {number(median)}",
        "end" if left else "start",
        "halo",
    )


def _axes(frame: Frame, most: float) -> Iterator[str]:
    middle = (frame.top + frame.bottom) / 2
    yield _line("axis", frame.left, frame.bottom, frame.right, frame.bottom)
    yield _text((frame.left + frame.right) / 2, frame.bottom + 38, f"points (of {number(most)})")
    yield _text(12, middle, "number of students", more=f' transform="rotate(-90 12 {middle:g})"')


# --- the tasks ----------------------------------------------------------------------------------------------

ROW, BAR = 48, 22
_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6" stroke-width="2.2"/>'
    "</pattern></defs>"
)


def stacked(tasks: list[TaskTally]) -> str:
    """Return for each task how many students have it right, partly, wrong or not started; hardest first."""
    drawing = [
        _HATCH,
        *itertools.chain.from_iterable(_task_row(task, ROW * n) for n, task in enumerate(tasks)),
    ]
    bottom = ROW * len(tasks) + 4
    for share in (0, 0.25, 0.5, 0.75, 1):
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        drawing.append(_text(1 + share * (WIDTH - 2), bottom + 10, percent(share), anchor, "small"))
    drawing.append(_text(WIDTH / 2, bottom + 30, "share of the students"))
    return chart(hardest(tasks), _tasks_alt(tasks), bottom + 38, "".join(drawing))


def hardest(tasks: list[TaskTally]) -> str:
    """Return which task is the hardest, in one sentence that holds for every class."""
    lowest, highest = tasks[0], tasks[-1]
    if round(lowest.share, 3) == round(highest.share, 3):
        return f"The class has {percent(lowest.share)} of the points of each task"
    return f"Hardest is {name(lowest.id)}: the class has {percent(lowest.share)} of its points"


def _task_row(task: TaskTally, top: float) -> Iterator[str]:
    yield _text(1, top + 15, _fitting(f"{name(task.id, 24)} · {name(task.title)}", 40), "start")
    yield _text(WIDTH - 1, top + 15, f"{percent(task.share)} of the points", "end")
    x = 1.0
    for state in STATES:
        count = task.states[state]
        width = (WIDTH - 2) * count / task.judged
        if count:
            yield from _segment(state, count, x, top + 21, width)
        x += width


def _segment(state: str, count: int, x: float, y: float, width: float) -> Iterator[str]:
    kind = state.split()[0]
    yield _bar(kind, x + 0.5, y, max(width - 1, 0.5), BAR)
    label = f"{SIGNS[state]} {count}"
    if width >= LETTER * (len(label) + 1):
        look = f"on-{kind}" if state in ("right", "wrong") else "halo"
        yield _text(x + width / 2, y + 16, label, kind=look)


def _fitting(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def _tasks_alt(tasks: list[TaskTally]) -> str:
    said = [
        f"{name(task.id)}: {', '.join(f'{task.states[state]} {state}' for state in STATES)}" for task in tasks
    ]
    return f"Stacked bars, hardest task first. {'; '.join(said)}."
