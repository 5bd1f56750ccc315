"""Judging one faulty answer: by the judge of the course, for being right only."""

from __future__ import annotations

from dataclasses import replace

from course_lib.grading import registry
from course_lib.grading.judge import judge
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import NoSource, load
from course_lib.grading.task import Task


def caught(task_id: str, source: str, seeds: tuple[int, ...]) -> tuple[bool, ...]:
    """Return for each seed whether the answer is rejected."""
    task = without_speed(registry.task(task_id))
    function = None
    found = []
    for seed in seeds:
        try:
            if not hasattr(function, "py_func"):  # what is compiled keeps nothing, so once will do
                function = load(source, task.entry)
            found.append(not judge(task, InProcess(function), source, seed).passed)
        except (NoSource, NameError, TypeError):  # the text does not even define its function
            found.append(True)
    return tuple(found)


def without_speed(task: Task) -> Task:
    """Return the task for being right alone: an answer that is right and slow has no fault."""
    return replace(task, speed=None, points=task.points_for_being_right or task.points)
