"""Every solution passes its task, every typical wrong answer is rejected with words that name the fault."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from golden import corpus
from grading_tools import shows_in_one_of, verdict
from test_answers_by_others import ANSWERS
from tools.mutation.judging import is_compiled, uncompiled, without_speed

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED, examine
from course_lib.grading.collect import collect
from course_lib.grading.compare import asks_for_the_result
from course_lib.grading.judge import judge
from course_lib.grading.runner import Outcome, clone
from course_lib.grading.sources import load

TASKS = registry.tasks()
TRIES = 3  # of a measurement, on a machine whose other guests may take a core away


loaded = functools.cache(load)  # Numba compiles it once, whatever number of tests call it


def expect_all_points(task, text: str, seed: int) -> None:
    report = verdict(task, text, seed, load=loaded)
    assert report.points == task.points, str(report)
    assert report.passed
    assert "The visible tests pass" in str(report)


# --- right answers ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("tracer_compiled")
def test_the_solutions_get_all_points_with_other_inputs(solutions):
    for task in TASKS:
        found = collect([solutions[task.chapter]], task.entry)
        for seed in (2025, PUBLIC_SEED):
            expect_all_points(task, found.text, seed)


@pytest.mark.parametrize("id", [task.id for task in TASKS if task.speed])
def test_the_given_baselines_are_right_themselves_and_have_no_points_for_speed(id):
    task = registry.task(id)
    renamed = task.speed.baseline.text.replace(task.speed.baseline.entry, task.entry)
    slow = verdict(task, renamed, 4, speedup=1.0, load=loaded)
    assert slow.points == task.points_for_being_right and not slow.passed
    assert f"{task.speed.thresholds[0][0]:g}x" in str(slow)


# --- wrong answers ------------------------------------------------------------------------------------------


class Returns:
    """A runner of an answer that gives what `make` makes, and what is right where that makes nothing."""

    def __init__(self, task, make):
        self._task, self._make = task, make

    def call(self, args):
        right = self._task.reference(*clone(args))
        try:
            with np.errstate(all="ignore"):
                value = self._make(*clone(args))
        except (ArithmeticError, LookupError, ValueError):  # the slip is not possible on these inputs
            value = None
        possible = value is not None and _shape(value) == _shape(right)
        return Outcome(value if possible else right, None, args)

    def guarded(self, code):
        return self.call


def _shape(value) -> tuple:
    """Return the shape; of a tuple, that of each of its entries."""
    return tuple(map(np.shape, value)) if isinstance(value, tuple) else np.shape(value)


#: Slips that are not named by their result alone, and why.
NOT_BY_RESULT = {
    ("06.reduction", "Each block continues the"): "a block alone is right, and several have another shape",
    ("06.softmax", "Every lane divides by"): "in a row of 32 numbers all are 1, which is told as equal rows",
}


def test_every_slip_that_is_known_by_its_result_is_named():
    not_named = set()
    for task in map(without_speed, TASKS):
        value_alone = replace(task, rules=(), counts=None, launch=None)
        for says, make in task.lookalikes.items():
            if asks_for_the_result(make):
                continue
            report = judge(value_alone, Returns(task, make), f"def {task.entry}(): return 0\n", 9)
            if says not in report.lines:
                not_named.add((task.id, " ".join(says.split()[:4])))
    assert not_named == set(NOT_BY_RESULT)


def test_every_rule_that_tasks_declare_refuses_some_answer(solutions):
    """Those that only some chapter needs are met by its known answers, the common ones by one line more."""
    refused, declared, known = set(), set(), list(corpus.answers())
    for task in TASKS:
        texts = [f"{solutions[task.chapter]}\n{line.replace('NAME', task.entry)}" for line in REFUSED]
        texts += [one["text"] for one in known if one["task"] == task.id]
        texts += [text for _, id, _, text in ANSWERS if id == task.id]
        for rule in task.rules:
            declared.add(repr(rule))
            if repr(rule) not in refused and any(rule.judge(text, task.entry) for text in texts):
                refused.add(repr(rule))
    assert refused == declared


#: Lines that no task allows: a module that none needs, and results that are kept between calls.
REFUSED = (
    "import ctypes\n\n\ndef NAME(*given):\n    return ctypes.c_int(0)",
    "KEPT = {}\n\n\ndef NAME(*given):\n    return KEPT.setdefault(0, given)",
)


def test_no_return_is_all_that_is_said():
    loops = "    for k in range(1):\n        for i in range(1):\n            for j in range(1):\n"
    for task in TASKS:
        if task.launch:  # a kernel returns nothing
            continue
        head = (
            "from numba import njit\n@njit\n" if is_compiled(task) else ""
        ) + f"def {task.entry}(*args):\n"
        with uncompiled(task):
            (said,) = verdict(task, f"{head}{loops}                x = 2\n").lines
        assert said.startswith("Your function returned None"), task.id
        assert said.endswith("is a `return` missing?"), task.id


# --- speed --------------------------------------------------------------------------------------------------


@pytest.mark.timing
@pytest.mark.parametrize("id", [task.id for task in TASKS if task.speed])
def test_speed_points_as_measured(id, solutions):
    """Judged on the input that is timed alone: the tests above judge the others."""
    task = replace(registry.task(id), cases=lambda rng: [])
    slow = task.speed.baseline.text.replace(task.speed.baseline.entry, task.entry)
    for text, points in ((solutions[task.chapter], task.points), (slow, task.points_for_being_right)):
        answer, reports = loaded(text, task.entry), []

        def as_wanted(points=points, answer=answer, reports=reports) -> bool:
            reports.append(examine(task, answer))
            return reports[-1].points == points

        assert shows_in_one_of(TRIES, as_wanted), "\n".join(map(str, reports))
    assert "x as fast as the baseline" in str(reports[-1])


def test_partial_speed_points_follow_the_thresholds():
    task = registry.task("01.faster")
    text = task.speed.baseline.text.replace(task.speed.baseline.entry, task.entry)
    for speedup, points in ((1.0, 1.0), (1.29, 1.0), (1.296, 2.0), (1.79, 2.0), (1.8, 3.0)):
        report = verdict(task, text, speedup=speedup)  # the ends of its interval count for nothing
        assert report.points == points
        assert ("1.8x gives 3 of 3 points. Points follow the first number" in str(report)) == (points == 2)
        assert ("let one pass serve several columns: hint 2" in str(report)) == (points < 3)
