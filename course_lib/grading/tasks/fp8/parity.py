"""Task 10.parity: which stage, and which parity, producer and consumer wait for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.protocol import DEADLOCK, NOT_THERE, OVERWRITTEN, outcome
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS

SOLUTION = source("""
    def waits(visits, stages):
        table = []
        for visit in range(visits):
            lap = visit // stages % 2
            table.append([visit % stages, 1 - lap, lap])
        return table
""")


def waits(visits: int, stages: int) -> list[list[int]]:
    """Return [stage, parity the producer waits for, parity the consumer waits for] of each visit.

    As the kernels have it: barriers begin in phase 0; the phase before it counts as over (PTX ISA, mbarrier).
    """
    laps = [visit // stages % 2 for visit in range(visits)]
    return [[visit % stages, 1 - lap, lap] for visit, lap in enumerate(laps)]


def _rings(rng: np.random.Generator) -> Iterator[Case]:
    for visits, stages in ((3, 4), (8, 4), (12, 4), (7, 2), (9, 3), (5, 1), (1, 1), (1, 8), (0, 3), (13, 5)):
        yield _case(visits, stages)
    for _ in range(4):
        yield _case(int(rng.integers(20, 60)), int(rng.integers(2, 9)))


def _case(visits: int, stages: int) -> Case:
    words = f"{visits} visit{'s' * (visits != 1)}, {stages} stage{'s' * (stages > 1)}"
    return Case((visits, stages), words)


def _goes_wrong(how: str):
    return lambda got, visits, stages: outcome(got, stages) == how


TASK = Task(
    id="10.parity",
    title="Odd and even laps",
    kind="predict",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="the one bit that keeps a pipeline from hanging, and from computing with half a tile",
    entry="waits",
    cases=_rings,
    reference=waits,
    comparison=exact(),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "The columns of producer and consumer are exchanged: at the start nothing is there to "
            "be consumed, "
            "and every stage is free.",
            fits=lambda got, visits, stages: got == [[s, c, p] for s, p, c in waits(visits, stages)],
        ),
        Lookalike(
            "With this table everybody waits for ever: a wait asks for the phase that is over, and "
            "a barrier "
            "that nobody has touched is in phase 0, so that the phase before it, of parity 1, "
            "counts as over.",
            fits=_goes_wrong(DEADLOCK),
        ),
        Lookalike(
            "With this table the producer overwrites a stage that is still to be read: in lap n it must "
            "wait until phase n - 1 of `empty` is over, of parity 1 or 0 by turns.",
            fits=_goes_wrong(OVERWRITTEN),
        ),
        Lookalike(
            "With this table the consumer reads a stage before the copy has come: in lap n it must wait "
            "until phase n of `full` is over, of parity 0 or 1 by turns.",
            fits=_goes_wrong(NOT_THERE),
        ),
        Lookalike(
            "The stages are not visited in turn, 0, 1, 2 … and again 0.",
            fits=lambda got, visits, stages: [row[0] for row in got] != [v % stages for v in range(visits)],
        ),
    ),
    hints=(
        "Every barrier begins in phase 0. A wait for parity p returns once the last phase that is over has "
        "parity p; before anything has happened, that is phase -1, of parity 1. Which of the two "
        "waits must "
        "return at once in the first lap?",
        "Visit v uses stage v % stages, in lap v // stages. The copy of lap n ends phase n of `full`: the "
        "consumer waits for the parity of n. The producer waits until the stage was emptied in lap n - 1, "
        "phase n - 1 of `empty`: the other parity; for n = 0 that is phase -1, and it passes.",
        "lap = visit // stages % 2; table.append([visit % stages, 1 - lap, lap])",
    ),
)
