"""Where everything lies in the two charts of a class: how the points are distributed, which tasks are hard.

`charts.j2` draws them, narrow enough to be read on a phone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from course_lib.grading.classroom.pages.tally import STATES, ClassTally, TaskTally
from course_lib.grading.classroom.pages.text import name, number, percent, plural
from course_lib.grading.report import SIGNS

WIDTH = 460
MOST_BINS = 14
LETTER = 7.4  # the width of a character, in the units of the drawing


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

    @property
    def held(self) -> list[tuple[int, int]]:
        """(place, count) of the intervals that hold somebody."""
        return [(place, count) for place, count in enumerate(self.counts) if count]

    def words(self) -> str:
        """Return the intervals that hold somebody: "0 to 1: 3; 5 to 6: 12"."""
        limits = [(place * self.width, (place + 1) * self.width, count) for place, count in self.held]
        return "; ".join(f"{number(low)} to {number(high)}: {count}" for low, high, count in limits)


def _round_widths() -> Iterator[float]:
    """Yield 0.25, 0.5, 1, 2, 5, 10, 20, 50 …"""
    yield from (0.25, 0.5)
    for power in itertools.count():
        yield from (10**power, 2 * 10**power, 5 * 10**power)


class PointsChart:
    """The histogram of the points of at least one student, with the median."""

    WIDTH = WIDTH
    LEFT, RIGHT, TOP, BOTTOM = 46, WIDTH - 10, 40, 216

    def __init__(self, tally: ClassTally) -> None:
        totals = tally.totals
        self.most, self.median = tally.most, tally.median
        self.bins = Bins.of(totals, self.most)
        self.finding = finding(totals, self.most, self.median)
        self.alt = (
            f"Histogram of the points of {plural(len(totals), 'student')}, out of {number(self.most)}. "
            f"Students by interval: {self.bins.words()}. The median is {number(self.median)}."
        )

    def x(self, points: float) -> float:
        """Return where so many points lie."""
        return self.LEFT + (self.RIGHT - self.LEFT) * min(points, self.bins.end) / self.bins.end

    def y(self, students: float) -> float:
        """Return where so many students lie."""
        return self.BOTTOM - (self.BOTTOM - self.TOP) * students / max(self.bins.counts)

    @property
    def grid(self) -> range:
        """The numbers of students at which a line is drawn."""
        highest = max(self.bins.counts)
        step = next(step for step in _round_widths() if step >= 1 and highest <= 5 * step)
        return range(0, highest + 1, int(step))

    @property
    def edges(self) -> list[tuple[int, str]]:
        """(place, number) under the axis, as many as there is room for."""
        labels = [number(place * self.bins.width) for place in range(len(self.bins.counts) + 1)]
        room = (self.RIGHT - self.LEFT) / len(self.bins.counts)
        every = math.ceil((max(map(len, labels)) + 1) * LETTER / room)
        return [*enumerate(labels)][::every]


def finding(totals: list[float], most: float, median: float) -> str:
    """Return what the distribution says, in one sentence that holds for every class."""
    if len(totals) == 1:
        return f"The only student has {number(totals[0])} of {number(most)} points"
    if totals[0] == totals[-1]:
        return f"All {len(totals)} students have {number(totals[0])} of {number(most)} points"
    return (
        f"At least half of the {len(totals)} students have {number(median)} of {number(most)} points or more"
    )


@dataclass(frozen=True)
class BarPart:
    """A part of a task's bar: the students of one state. `label` is empty where there is no room for it."""

    kind: str
    x: float
    width: float
    label: str


class TasksChart:
    """For each task how many students have it right, partly, wrong or not started; hardest first."""

    WIDTH, ROW = WIDTH, 48

    def __init__(self, hardest_first: list[TaskTally]) -> None:
        self.tasks = hardest_first
        self.finding = hardest(hardest_first)
        counts = [
            f"{name(task.id)}: {', '.join(f'{task.states[state]} {state}' for state in STATES)}"
            for task in hardest_first
        ]
        self.alt = f"Stacked bars, hardest task first. {'; '.join(counts)}."

    def title(self, task: TaskTally, letters: int = 40) -> str:
        """Return the words above a bar, cut to the room there is."""
        words = f"{name(task.id, 24)} · {name(task.title)}"
        return words if len(words) <= letters else words[: letters - 1].rstrip() + "…"

    def parts(self, task: TaskTally) -> Iterator[BarPart]:
        """Yield the parts of a task's bar from left to right."""
        x = 1.0
        for state in STATES:
            count = task.states[state]
            width = (WIDTH - 2) * count / task.judged
            label = f"{SIGNS[state]} {count}"
            if count:
                has_room = width >= LETTER * (len(label) + 1)
                yield BarPart(state.split()[0], x, width, label if has_room else "")
            x += width


def hardest(tasks: list[TaskTally]) -> str:
    """Return which task is the hardest, in one sentence that holds for every class."""
    lowest, highest = tasks[0], tasks[-1]
    if round(lowest.share, 3) == round(highest.share, 3):
        return f"The class has {percent(lowest.share)} of the points of each task"
    return f"Hardest is {name(lowest.id)}: the class has {percent(lowest.share)} of its points"
