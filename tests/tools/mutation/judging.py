"""Judging one faulty answer: by the judge of the course, for being right only, and which check it fell to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from course_lib.grading import registry
from course_lib.grading.judge import GUARD_NOTE, judge
from course_lib.grading.judge_launch import NOT_KEPT
from course_lib.grading.launch import Shape
from course_lib.grading.report import Report
from course_lib.grading.runner import Counted, InProcess, Outcome, Timing, Traced
from course_lib.grading.sources import NoSource, load
from course_lib.grading.task import Code, SpeedRule, Task

SURVIVED = ""
#: The checks by which a fault is caught, in the order of the report.
CHECKS = (
    "rule",
    "exception",
    "type",
    "shape",
    "dtype",
    "value",
    "input changed",
    "input returned",
    "guard",
    "count",
    "hazard",
    "cost",
    "time",
    "crash",
)


@dataclass(frozen=True)
class Job:
    """An answer to a task, to be judged with each of the seeds."""

    task_id: str
    source: str
    seeds: tuple[int, ...]


def caught_by(job: Job) -> tuple[str, ...]:
    """Return for each seed the check that rejects the answer, or SURVIVED."""
    task = without_speed(registry.task(job.task_id))
    runner = None
    found = []
    for seed in job.seeds:
        try:
            if runner is None or not runner.compiled:  # what is compiled keeps nothing, so once will do
                runner = Watched(InProcess(load(job.source, task.entry)))
            report = judge(task, runner, job.source, seed)
        except (NoSource, NameError, TypeError):  # the text does not even define its function
            found.append("exception")
            continue
        found.append(SURVIVED if report.passed else _check(task, job.source, report, runner))
    return tuple(found)


def without_speed(task: Task) -> Task:
    """Return the task for being right alone: an answer that is right and slow has no fault."""
    return replace(task, speed=None, points=task.points_for_being_right or task.points)


class Watched:
    """A runner that remembers the last outcome, and compiles a guarded variant only once."""

    def __init__(self, runner: InProcess, last: list | None = None) -> None:
        self._runner = runner
        self._guarded: dict[str, Watched] = {}
        self.last = [] if last is None else last  # shared with the guarded variants

    @property
    def compiled(self) -> bool:
        """Whether the answer is compiled by Numba."""
        return hasattr(self._runner._function, "py_func")

    def call(self, args: tuple) -> Outcome:
        """Call the answer."""
        outcome = self._runner.call(args)
        self.last[:] = [outcome]
        return outcome

    def guarded(self, code: Code) -> Watched:
        """Return a runner for the text, the same one for the same text."""
        if code.text not in self._guarded:
            self._guarded[code.text] = Watched(self._runner.guarded(code), self.last)
        return self._guarded[code.text]

    def count(self, args: tuple) -> Counted:
        """Call the answer on operands that write down what is done with them."""
        counted = self._runner.count(args)
        self.last[:] = [counted]
        return counted

    def trace(self, shape: Shape, args: tuple) -> Traced:
        """Launch the answer in the tracer."""
        found = self._runner.trace(shape, args)
        self.last[:] = [found]
        return found

    def time(self, speed: SpeedRule, args: tuple) -> Timing:
        """Time the answer; the survey never asks for it."""
        return self._runner.time(speed, args)


def _check(task: Task, source: str, report: Report, runner: Watched) -> str:
    """Return which of CHECKS rejected the answer."""
    if any(rule.judge(source, task.entry) for rule in task.rules):
        return "rule"
    last: Any = runner.last[-1] if runner.last else None
    if isinstance(last, Counted):
        return "count"
    if GUARD_NOTE in report.notes:
        return "guard"
    if last is None or last.fault:
        return "time" if last and "TimeLimit" in last.fault.kinds else "exception"
    if isinstance(last, Traced) and last.counts.hazards:
        return "hazard"
    if NOT_KEPT in report.lines:
        return "cost"
    if report.mismatch is None and isinstance(last, Traced):
        return "input changed"
    if report.mismatch is None:
        return "input returned" if last.owner is not None else "input changed"
    said = report.mismatch.says[0].lower()
    if not report.mismatch.form:
        return "value"
    return "dtype" if "dtype" in said else "shape" if "shape" in said or "row" in said else "type"
