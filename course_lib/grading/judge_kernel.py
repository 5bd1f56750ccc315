"""Judging a kernel: its launches in the tracer, on every case.

First comes what stopped it, then hazards, then arguments that it must not write, then the result, then what
it cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

from course_lib.grading import launched
from course_lib.grading.judge_words import argument, on, reported
from course_lib.grading.report import WRONG, Report
from course_lib.grading.runner import Outcome, Runner, Traced, clone, unchanged
from course_lib.grading.task import Case, Code, Task

Judged = Callable[[Task, Case, Outcome], Report | None]  # the report on a wrong result, or None


def fault_of_kernel(
    task: Task, runner: Runner, code: Code, cases: list[Case], judged: Judged
) -> Report | None:
    """Return the first thing that is wrong with the launches of a kernel; `judged` compares its results."""
    own = launched.parameters(code.text, code.entry) or []
    given = [*inspect.signature(task.reference).parameters]
    said = launched.wrong_number(code.entry, own, given)
    if said:
        return reported(task, 0.0, WRONG, [said])
    for case in cases:
        traced = runner.trace(task.launch.shape(case.args), clone(case.args))
        found = _fault_of_launch(task, case, traced, own, judged)
        if found:
            return found
    return None


def _fault_of_launch(task: Task, case: Case, traced: Traced, own: list[str], judged: Judged) -> Report | None:
    """Return the report on a launch that did not end, is unsafe, wrong, or costs too much; else None."""
    place, names = task.launch.result, [*inspect.signature(task.reference).parameters]
    if traced.fault:
        return reported(task, 0.0, WRONG, [launched.fault_line(traced.fault)], on(task, case))
    shape = task.launch.shape(case.args)
    notes = (*on(task, case), *launched.look_closer(task.entry, shape, own))
    if traced.counts.hazards:
        return reported(task, 0.0, WRONG, launched.hazard_lines(traced.counts.hazards), notes)
    before, after = case.args, traced.args_after
    for n, pair in enumerate(zip(before, after, strict=True)):
        if n != place and case.must_not_change and not unchanged(*pair):
            return reported(task, 0.0, WRONG, [launched.written(own[n], argument(n))], on(task, case))
    found = judged(task, replace(case, must_not_change=False), Outcome(after[place]))
    if found:
        said = launched.never_written(before[place], after[place], own[place], traced.counts.global_rows)
        said += launched.hazard_lines(traced.counts.undefined)
        return replace(found, lines=(*said, *found.lines))
    counts = traced.counts.called(own, names)
    costly = (launched.limit_lines(limit, counts, case.args) for limit in task.launch.limits)
    lines = next(filter(None, costly), None)
    return reported(task, 0.0, WRONG, lines, notes) if lines else None
