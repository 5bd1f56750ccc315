"""Task 05.pool: a semaphore counts the free buffers, a mutex guards the list that says which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules_threads import Asks, AtOnce, Scenario, UnderAllSchedules
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.threads.shared import CHECKED_LOCKS, LOCKS, THREADING_ONLY
from course_lib.simulators.interleavings import Lock, Semaphore

SOLUTION = source("""
    def borrow(busy, uses):
        with slots_of("free"):
            with lock_of("busy"):
                buffer = 0
                while busy[buffer]:
                    buffer += 1
                busy[buffer] = 1
            use(buffer, uses)
            with lock_of("busy"):
                busy[buffer] = 0
        return buffer
""")
TOGETHER = AtOnce("uses", "is inside `use`")


def borrow(busy: list[int], uses: list[int]) -> int:
    """Return the buffer that a thread alone gets: the first that is free."""
    return busy.index(0)


def _one_free(rng: np.random.Generator) -> Iterator[Case]:
    for buffers in (1, 2, 2, 3, 5, 8):
        free = int(rng.integers(0, buffers))
        busy = [int(place != free) for place in range(buffers)]
        uses = [int(n) for n in rng.integers(0, 9, buffers)]
        label = f"{buffers} buffer{'s' * (buffers > 1)}, only number {free} is free"
        yield Case((busy, uses), label, must_not_change=False)


def _borrowed(before: list[int]):
    def right(final: dict[str, Any]) -> bool | str:
        if final["busy"] != before:
            return f"busy ends as {final['busy']} instead of {before}"
        if any(buffer not in range(len(before)) for buffer in final["results"]):
            return f"borrow returns {final['results']}, which are no numbers of buffers"
        used = [final["results"].count(buffer) for buffer in range(len(before))]
        if final["uses"] != used:
            return f"borrow returns {final['results']}, but the buffers were used {final['uses']} times"
        return True

    return right


def _pool(said: str, threads: int, busy: list[int], at_once: AtOnce | None = None) -> Scenario:
    return Scenario(
        said,
        ("{entry}(busy, uses)",) * threads,
        {
            "busy": busy,
            "uses": [0] * len(busy),
            "locks": {"busy": Lock()},
            "slots": {"free": Semaphore(busy.count(0))},
        },
        _borrowed(busy),
        CHECKED_LOCKS,
        at_once,
    )


SCENARIOS = (
    _pool("one thread and two buffers", 1, [0, 0]),
    _pool("one thread and one free buffer", 1, [1, 0]),
    _pool("two threads and one free buffer", 2, [0, 1]),
    _pool("three threads and two buffers", 3, [0, 0]),
    _pool("two threads that must use their buffers at the same time", 2, [0, 0], TOGETHER),
)

TASK = Task(
    id="05.pool",
    title="Two buffers for many threads",
    kind="write",
    points=3,
    difficulty=4,
    minutes=20,
    good_for="telling what a semaphore is for and what a mutex is for, by needing both",
    entry="borrow",
    cases=_one_free,
    reference=borrow,
    comparison=exact(),
    rules=(
        THREADING_ONLY,
        UnderAllSchedules(SCENARIOS, LOCKS),
        Asks("slots_of", "whoever finds no free buffer asks again and again instead of sleeping"),
    ),
    lookalikes=(
        Lookalike(
            "That buffer is busy: look for one whose entry is 0.",
            fits=lambda got, busy, uses: got in range(len(busy)) and busy[int(got)] == 1,
        ),
    ),
    hints=(
        "Who lets a third thread wait until a buffer is free? And who keeps two threads from finding the "
        "same "
        "free buffer?",
        "The semaphore counts: take a slot first, give it back last. The mutex guards `busy`: hold it "
        "while you "
        "look for a 0 and make it 1, and again while you make it 0. Never while you use the buffer, and "
        "never "
        "while you wait for a slot.",
        'with slots_of("free"): with lock_of("busy"): find the first 0, make it 1 – then use(buffer, uses) '
        'without the mutex – then with lock_of("busy"): busy[buffer] = 0.',
    ),
)
