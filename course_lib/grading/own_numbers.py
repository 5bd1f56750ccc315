"""What a learner has measured, as the last input of a task that reads it.

Such a task is graded on numbers of the same kind that are drawn: a class knows nobody's measurements. Only
the learner's own check adds these, and says what a right answer makes of them.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from course_lib import ladder
from course_lib.grading.compare import counted
from course_lib.grading.runner import clone
from course_lib.grading.task import Task

if TYPE_CHECKING:
    from course_lib.ladder import Result
    from course_lib.measure.peaks import Peaks


def added(task: Task) -> tuple[Task, str]:
    """Return the task with the learner's numbers as its last input, and what is to be said of them.

    Where nothing was measured yet, that says so, and the task is what it was.
    """
    if task.yours is None:
        return task, ""
    try:
        with warnings.catch_warnings():  # what is wrong with a file is said where it is written
            warnings.simplefilter("ignore")
            case = task.yours()
    except LookupError as missing:
        return task, f"Not held against your own numbers yet: chapter {task.chapter} measures {missing}."
    found = zip(task.comparison.parts, task.reference(*clone(case.args)), strict=True)
    said = ", ".join(
        f"{name} {one:.4g}" if isinstance(one, float) else f"{name} {one}" for name, one in found
    )
    with_yours = replace(task, cases=lambda rng: [*task.cases(rng), case])
    return with_yours, f"Your own numbers, {case.label}: {said}. These are not graded."


def result(rung: str, n: int, dtype: str = "float64", threads: int = 1) -> Result:
    """Return what stands on the learner's ladder for N x N x N, its spread smaller than its time.

    LookupError, in a few words, if nothing does.
    """
    wanted = (rung, (n, n, n), dtype, threads)
    for one in ladder.results():
        if (one.rung, one.shape, one.dtype, one.threads) == wanted:
            return replace(one, spread_s=min(one.spread_s, 0.9 * one.seconds))
    raise LookupError(f"`{rung}` at N = {n} in {dtype} on {counted(threads, 'thread')}")


def limits() -> Peaks:
    """Return the limits that were measured of this machine; LookupError if none were."""
    from course_lib.measure import machine

    if (known := machine.known_peaks()) is None:
        raise LookupError("what this machine can do at best (`machine.peaks()`)")
    return known
