"""What the two charts of a class say: how the points are distributed, which tasks are hard.

`charts.j2` draws them, narrow enough to be read on a phone.
"""

from __future__ import annotations

import math
from typing import Any

from course_lib.grading.classroom.pages.tally import STATES, ClassTally
from course_lib.grading.classroom.pages.text import name, number, percent, plural

MOST_BINS, MOST_LINES = 14, 5
WIDTH = 460
LETTER = 7.4  # the width of a character, in the units of the drawing
LEFT, RIGHT, TOP, BOTTOM = 46, WIDTH - 10, 40, 216  # of the histogram's bars
ROUND = (0.25, 0.5, *(digit * 10**power for power in range(12) for digit in (1, 2, 5)))


def bins(totals: list[float], most: float) -> tuple[float, list[int]]:
    """Count totals in at most MOST_BINS intervals of a round width, from 0 on; return the width and counts.

    Full marks are in the last one.
    """
    width = next(width for width in ROUND if most <= width * MOST_BINS)
    counts = [0] * max(1, math.ceil(round(most / width, 6)))
    for total in totals:
        counts[max(0, min(int(total / width + 1e-9), len(counts) - 1))] += 1
    return width, counts


def points_chart(tally: ClassTally) -> dict[str, Any]:
    """Return the histogram of the points of at least one student; x and y are places in the drawing."""
    totals, most, median = tally.totals, tally.most, tally.median
    width, counts = bins(totals, most)
    end, highest = width * len(counts), max(counts)
    edges = [*enumerate(number(place * width) for place in range(len(counts) + 1))]
    held = [(place, count) for place, count in enumerate(counts) if count]  # that hold somebody
    words = "; ".join(f"{edges[place][1]} to {edges[place + 1][1]}: {count}" for place, count in held)
    room = (RIGHT - LEFT) / len(counts)
    every = math.ceil((max(len(edge) for _, edge in edges) + 1) * LETTER / room)
    return {
        "finding": finding(totals, most, median),
        "alt": f"Histogram of the points of {plural(len(totals), 'student')}, out of {number(most)}. "
        f"Students by interval: {words}. The median is {number(median)}.",
        "most": most,
        "median": median,
        "bin": width,
        "held": held,
        "edges": edges[::every],  # as many as there is room for
        "grid": range(
            0, highest + 1, next(step for step in ROUND if step >= 1 and highest <= MOST_LINES * step)
        ),
        "box": (LEFT, RIGHT, TOP, BOTTOM),
        "x": lambda points: LEFT + (RIGHT - LEFT) * min(points, end) / end,
        "y": lambda students: BOTTOM - (BOTTOM - TOP) * students / highest,
    }


def finding(totals: list[float], most: float, median: float) -> str:
    """Return what the distribution says, in one sentence that holds for every class."""
    if len(totals) == 1:
        return f"The only student has {number(totals[0])} of {number(most)} points"
    if totals[0] == totals[-1]:
        return f"All {len(totals)} students have {number(totals[0])} of {number(most)} points"
    return (
        f"At least half of the {len(totals)} students have {number(median)} of {number(most)} points or more"
    )


def tasks_chart(tally: ClassTally) -> dict[str, Any]:
    """Return for each task how many students have it right, partly, wrong or not started; hardest first."""
    tasks = tally.hardest_first
    lowest, highest = tasks[0], tasks[-1]
    finding = f"Hardest is {name(lowest.id)}: the class has {percent(lowest.share)} of its points"
    if round(lowest.share, 3) == round(highest.share, 3):
        finding = f"The class has {percent(lowest.share)} of the points of each task"
    counts = [
        f"{name(task.id)}: {', '.join(f'{task.states[state]} {state}' for state in STATES)}" for task in tasks
    ]
    alt = f"Stacked bars, hardest task first. {'; '.join(counts)}."
    return {"finding": finding, "alt": alt, "tasks": tasks}
