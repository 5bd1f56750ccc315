"""The words around a verdict: which input showed it, which argument is meant, and the report itself."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch
from course_lib.grading.report import NOT_STARTED, WRONG, Report
from course_lib.grading.task import Case, Task

OTHER_INPUTS = "The visible tests pass. Grading may run the same task with other inputs."


def reported(
    task: Task,
    points: float,
    state: str,
    lines: list[str],
    notes: tuple[str, ...] = (),
    mismatch: Mismatch | None = None,
) -> Report:
    """Return the report on an answer to the task."""
    return Report(
        task.id, task.title, float(points), task.points, state, tuple(lines), mismatch, tuple(notes)
    )


def not_started(task: Task, why: str = "") -> Report:
    """Return the report on an answer that does not exist yet."""
    line = why or f"Not started: write `{task.entry}` in the cell above, run it, then run this cell."
    return reported(task, 0.0, NOT_STARTED, [line, f'`hint("{task.id}")` helps, one step at a time.'])


def refused(task: Task, why: str) -> Report:
    """Return the report on something that cannot be judged."""
    return reported(task, 0.0, WRONG, [why])


def on(task: Task, case: Case) -> tuple[str, ...]:
    """Say which input showed it, and the input itself if it is small."""
    names = inspect.signature(task.reference).parameters
    values = ", ".join(f"{name} = {_in_full(value)}" for name, value in zip(names, case.args, strict=False))
    show = len(values) <= 160 and not any(isinstance(argument, np.ndarray) for argument in case.args)
    return (f"Input ({case.label}): {values}" if show else f"Input: {case.label}.",)


def _in_full(argument: Any) -> str:
    """Return an argument as text; a float by itself with all its digits: a tie must look like one."""
    return repr(float(argument)) if isinstance(argument, float) else _short(argument)


def _short(argument: Any) -> str:
    if isinstance(argument, float):
        return f"{argument:.6g}"
    if isinstance(argument, list):
        return "[" + ", ".join(_short(item) for item in argument) + "]"
    return repr(argument)


def argument(place: int) -> str:
    names = ("first", "second", "third", "fourth", "fifth", "sixth")
    return f"the {names[place]} argument" if place < len(names) else f"argument {place + 1}"
