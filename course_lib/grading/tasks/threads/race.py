"""Task 05.race: threads that hand themselves out tiles; two of them may get the same one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules_threads import AtOnce, Scenario, UnderAllSchedules
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.threads.shared import CHECKED_LOCKS, LOCKS, THREADING_ONLY
from course_lib.simulators.interleavings import Lock


def repaired(tiles: int, following: list[int], done: list[int]) -> int:
    """Return how many tiles one thread does alone: all that are left."""
    return max(0, tiles - following[0])


def _alone(rng: np.random.Generator) -> Iterator[Case]:
    """Yield what a single thread finds: nothing done yet, some done, all done, no tiles at all."""
    for tiles, first in ((1, 0), (int(rng.integers(4, 30)), 0), (9, int(rng.integers(1, 8))), (5, 5), (0, 0)):
        args = (tiles, [first], [1] * first + [0] * (tiles - first))
        yield Case(args, f"one thread alone, tile {first} of {tiles} is the next", must_not_change=False)


BEFORE = 4  # how often the tiles that are left were done in earlier rounds: each must end one higher


def _each_once(tiles: int, already: int):
    def right(final: dict[str, Any]) -> bool | str:
        left = final["done"][already:]
        if final["done"][:already] != [1] * already:
            return f"a tile before number {already} is done again"
        for tile, times in enumerate(left, start=already):
            if times != BEFORE + 1:
                return f"tile {tile} is done {times - BEFORE} times instead of once"
        if sum(final["results"]) != len(left):
            return f"the threads say they did {sum(final['results'])} tiles, but {len(left)} were left"
        return True

    return right


TOGETHER = AtOnce("done", "does its tile (`done[tile] += 1`)")


def _team(threads: int, tiles: int, already: int = 0) -> Scenario:
    return Scenario(
        f"{threads} thread{'s' * (threads > 1)} and {tiles} tile{'s' * (tiles > 1)}",
        (f"{{entry}}({tiles}, following, done)",) * threads,
        {
            "following": [already],
            "done": [1] * already + [BEFORE] * (tiles - already),
            "locks": {"following": Lock()},
            "slots": {"none": 0},
        },
        _each_once(tiles, already),
        CHECKED_LOCKS,
    )


SCENARIOS = (
    _team(1, 3),
    _team(2, 1),
    _team(2, 2),
    _team(2, 3, already=1),
    _team(3, 2),
    replace(_team(2, 4), said="2 threads that must be able to work at the same time", at_once=TOGETHER),
)

TASK = Task(
    id="05.race",
    title="Every tile exactly once",
    kind="debug",
    points=3,
    difficulty=3,
    minutes=20,
    good_for="seeing which steps must not be parted, and making the lock cover just these",
    entry="repaired",
    cases=_alone,
    reference=repaired,
    comparison=exact(),
    rules=(THREADING_ONLY, UnderAllSchedules(SCENARIOS, LOCKS)),
    lookalikes=(
        Lookalike(
            "One tile too few: is the last one left out?",
            lambda tiles, following, done: tiles - following[0] - 1 if tiles > following[0] else None,
        ),
        Lookalike(
            "That counts from tile 0: others may have done some before this thread came.",
            fits=lambda got, tiles, following, done: following[0] > 0 and got == tiles,
        ),
    ),
    hints=(
        "Thread 0 has read following[0] and is interrupted before it takes the lock. What does thread 1 "
        "read?",
        "Reading the number, comparing it and counting it up belong together: take the number inside the "
        "lock, "
        "decide afterwards with the number you took. The work itself stays outside, or nobody works at the "
        "same "
        "time.",
        'while True: with lock_of("following"): tile = following[0]; following[0] += 1 – and then: if tile '
        ">= "
        "tiles: return mine.",
    ),
)
