"""What a learner calls in a notebook: check, total, hint, baseline."""

from __future__ import annotations

import ast
import functools
import re
import reprlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from course_lib.grading import own_numbers, registry
from course_lib.grading.cells import python
from course_lib.grading.collect import Answer, collect
from course_lib.grading.judge import judge
from course_lib.grading.report import Report, TextCard, not_started, refused, source_html
from course_lib.grading.runner import InProcess
from course_lib.grading.sources import NoSource, cells_around, plain_function
from course_lib.grading.task import HINTS, Code, Task

#: The seed of the visible tests. Everybody may know it: grading takes another one.
PUBLIC_SEED = 9

_hints_given: dict[str, int] = {}
_latest: dict[str, Report] = {}


def check(id: str, answer: Any = None, brief: bool = False) -> Report:
    """Check an answer, show the report and return it (`.points`, `.passed`).

    `answer` is the function itself: check("01.rows", by_rows). With None, ..., or a function that is still
    a stub, the report says that the task is not started. `brief` shows one line if there is nothing to mend.
    What was found is added to the learner's record, which `views.progress()` shows.
    """
    if not isinstance(id, str):
        raise TypeError(
            f'check begins with the task\'s name, as in check("01.rows", by_rows); got {id!r} first.'
        )
    from course_lib.grading import record  # the learner's: who grades a class keeps none

    report, text = _examined(registry.task(id), answer, PUBLIC_SEED)
    _latest[report.task_id] = report
    report.show(brief)
    record.remember_check(report, text)
    return report


def total(chapter: str) -> TextCard:
    """Return the sum of the points of a chapter's tasks: of the latest check of each in this session.

    What was passed in earlier sessions does not count here; `views.progress(chapter)` shows it.
    """
    tasks = registry.tasks(chapter)
    reports = [_latest.get(task.id) for task in tasks]
    points = sum(report.points for report in reports if report)
    open_tasks = [task.id for task, one in zip(tasks, reports, strict=True) if not (one and one.started)]
    rest = f"Not started: {', '.join(open_tasks)}." if open_tasks else "Every task is started."
    counted = (
        "Counted is the latest check of each task since this kernel was started. "
        f'`views.progress("{chapter}")` shows earlier ones too (`from course_lib import views`).'
    )
    return TextCard(f"{points:g} of {sum(task.points for task in tasks):g} points", f"{rest}\n{counted}")


def examine(task: Task, answer: Any, seed: int = PUBLIC_SEED) -> Report:
    """Return the report on a live answer without showing it."""
    return _examined(task, answer, seed)[0]


def _examined(task: Task, answer: Any, seed: int) -> tuple[Report, str]:
    """Return the report, and the text of the answer or why it has none: what tells two answers apart."""
    if answer is None or answer is ...:
        return not_started(task), ""
    try:
        found = as_handed_in(answer, task.entry)
    except NoSource as problem:
        return refused(task, str(problem)), str(problem)
    code = Code(found.text, task.entry)
    runner = in_process(task, code, found.lines)
    task, yours = own_numbers.added(task)
    report = judge(task, runner, code.text, seed, task.entry)
    if yours and report.passed:
        report = replace(report, notes=(*report.notes, yours))
    return _with_constants(report, found, runner, answer), found.text


def in_process(task: Task, code: Code, lines: Sequence[int]) -> InProcess:
    """Return the runner for an answer in the learner's own process."""
    if not task.oracle:
        return InProcess(task.code(code.text), lines=lines)
    from course_lib.grading.sandbox.questions import AskingInProcess  # two tasks need it

    return AskingInProcess(code, task.oracle, lines)


def as_handed_in(answer: Any, entry: str) -> Answer:
    """Return what a class is graded by: the function of this name as it stands in the cells.

    NoSource says in a sentence what is wrong with an answer that has no such text.
    """
    live = plain_function(answer)
    cells = cells_around(live)
    found = collect(cells, entry)
    if found.problem:
        raise NoSource(found.problem)
    named = live.__globals__.get(entry) is answer
    if live.__name__ == "<lambda>" and not (named and found.text):
        raise NoSource("Your answer is a lambda: write a function with `def`, so that errors have a line.")
    if live.__name__ not in (entry, "<lambda>"):
        by_name = f"call it `{entry}`, for a class is graded by that name"
        raise NoSource(f"Your answer is called {live.__name__}: {by_name}.")
    if not found.text:
        raise NoSource(
            f"No cell defines `{entry}` in plain sight: write it with `def {entry}(...)` in a cell."
        )
    if _was_replaced(live, found, cells, entry):
        raise NoSource(
            f"Your cell defines `{entry}` again below, and a class is graded by the last one: write each try "
            "in a cell of its own."
        )
    return found


def _was_replaced(live: FunctionType, found: Answer, cells: Sequence[str], entry: str) -> bool:
    """Whether a cell defines the function twice, and this one stands above the last."""
    define = re.compile(rf"^(?:async )?def {re.escape(entry)}\b", re.MULTILINE)
    text = python(next(filter(define.search, reversed(cells)), ""))
    if len(define.findall(text)) < 2:
        return False
    not_run = text[: len(text) - len(text.lstrip())].count("\n")  # the notebook counts from behind them
    node = next((one for one in ast.parse(found.text).body if getattr(one, "name", "") == entry), None)
    if node is None:  # bound by an assignment
        return False
    first = min((one.lineno for one in node.decorator_list), default=node.lineno)
    return live.__code__.co_firstlineno < found.lines[first - 1] - not_run


def _with_constants(report: Report, found: Answer, runner: InProcess, answer: Any) -> Report:
    """Say in a report that is not right which constants are others in the session than in the cells."""
    if report.passed or not report.started or "function" not in vars(runner):
        return report
    here, there = (getattr(one, "py_func", one).__globals__ for one in (runner.function, answer))
    notes = [
        f"Judged with {name} = {reprlib.repr(here[name])}, as your cells say; by now it is "
        f"{reprlib.repr(there[name])} in this session."
        for name in found.constants
        if name in here and name in there and repr(here[name]) != repr(there[name])
    ]
    return replace(report, notes=(*report.notes, *notes))


def hint(id: str) -> TextCard:
    """Return the next hint of a task: a question, then the idea, then nearly the line."""
    from course_lib.grading import record

    task = registry.task(id)
    number = min(_hints_given.get(task.id, 0), len(HINTS) - 1)
    _hints_given[task.id] = number + 1
    record.remember_hint(task.id, number + 1)
    last = number == len(HINTS) - 1
    more = "That was the last hint." if last else f'Call `hint("{task.id}")` again for {HINTS[number + 1]}.'
    return TextCard(
        f"Hint {number + 1} of {len(HINTS)} for {task.id}, {HINTS[number]}", f"{task.hints[number]}\n{more}"
    )


class Baseline:
    """The function that a speed task is timed against: call it, or look at it."""

    def __init__(self, code: Code) -> None:
        self.code = code

    @functools.cached_property
    def _function(self) -> Callable:
        return self.code.load()

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __repr__(self) -> str:
        return self.code.text.strip()

    def _repr_html_(self) -> str:
        return source_html(self.code.text.strip())


def baseline(id: str) -> Baseline:
    """Return the baseline of a speed task; ValueError if the task has none."""
    task = registry.task(id)
    if task.speed is None:
        raise ValueError(f"Task {task.id} has no baseline: it is not about speed.")
    return Baseline(task.speed.baseline)
