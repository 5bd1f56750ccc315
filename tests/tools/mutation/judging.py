"""Judging one faulty answer: by the judge of the course, for being right only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from course_lib.grading import registry
from course_lib.grading.judge import judge
from course_lib.grading.language import LOOPS
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import NoSource, load
from course_lib.grading.task import Case, Task

#: What compiled code does not raise: there a name without a value is 0, and numbers have their limits.
OTHERWISE = ("TimeLimit", "UnboundLocalError", "ZeroDivisionError", "OverflowError")
#: Python's loops go through inputs of fewer numbers; those of more are left to the compiled ones.
MOST_NUMBERS = 20_000


def caught(task_id: str, source: str, seeds: tuple[int, ...]) -> tuple[bool, ...]:
    """Return for each seed whether the answer is rejected."""
    task = without_speed(registry.task(task_id))
    function = None
    found = []
    for seed in seeds:
        try:
            if is_compiled(task) and _is_wrong_in_python(task, source, seed):
                found.append(True)  # compiling takes a second, and would show the same
                continue
            if not hasattr(function, "py_func"):  # what is compiled keeps nothing, so once will do
                function = task.code(source).load()
            found.append(not judge(task, InProcess(function), source, seed).passed)
        except (NoSource, NameError, TypeError):  # the text does not even define its function
            found.append(True)
    return tuple(found)


def _is_wrong_in_python(task: Task, source: str, seed: int) -> bool:
    def cases(rng: np.random.Generator) -> Iterator[Case]:
        return (case for case in task.cases(rng) if sum(map(np.size, case.args)) < MOST_NUMBERS)

    small = replace(task, cases=cases)
    with uncompiled(task):
        report = judge(small, InProcess(load(source, task.entry)), source, seed)
    return not report.passed and not report.lines[0].startswith(OTHERWISE)


def is_compiled(task: Task) -> bool:
    return task.rules[0] == LOOPS


@contextmanager
def uncompiled(task: Task) -> Iterator[None]:
    """Let `@njit` leave functions of the task as they are: its wrong answers are as wrong in Python."""
    from numba import config

    config.DISABLE_JIT = is_compiled(task)
    try:
        yield
    finally:
        config.DISABLE_JIT = False


def without_speed(task: Task) -> Task:
    """Return the task for being right alone: an answer that is right and slow has no fault."""
    return replace(task, speed=None, points=task.points_for_being_right or task.points)
