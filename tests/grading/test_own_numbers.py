"""What a learner has measured is one input more of their own check, and of nobody's grade."""

import pytest
from grading_tools import verdict

from course_lib import ladder
from course_lib.grading import registry
from course_lib.grading.check import examine
from course_lib.grading.collect import collect
from course_lib.grading.sources import load
from course_lib.measure import machine

TASKS = [task for task in registry.tasks() if task.yours]
#: Answers that are right for what is drawn: one that gives up at the sizes of the ladder is not right for it.
SHORT = "def {0}(*args):\n    return {1}(*args) if 2000 not in args else (1.0, 1.0)\n"


@pytest.fixture
def measured(monkeypatch):
    """A ladder with all that the five chapters measure, of a machine that can do 100 GFLOP/s."""

    class Limits:
        loads = 1.5
        gflops = staticmethod(lambda dtype: 100.0)
        gbps = staticmethod(lambda: 20.0)

    monkeypatch.setattr(machine, "known_peaks", Limits)
    kinds = [(n, dtype, 1) for n in (200, 1000, 2000) for dtype in ladder.FLOATS]
    for rung in (one.id for one in ladder.LADDER if 0 < one.circle < 6):
        for n, dtype, threads in [*kinds, (1000, "float64", max(2, machine.describe().threads))]:
            seconds = 2e-9 * n**3 / len(rung) / threads
            fields = ("2026-05-03T12:00:00+00:00", machine.key())
            ladder._added(
                [ladder.Result(rung, (n,) * 3, dtype, threads, seconds, 9.0, len(rung), None, *fields)]
            )


def answer(task, solutions, text="{0}") -> tuple:
    found = collect([solutions[task.chapter]], task.entry).text
    return load(text.format(found), task.entry)


def test_without_measurements_the_check_says_which_are_missing_and_passes(solutions):
    assert [task.chapter for task in TASKS] == ["01", "02", "03", "04", "05"]
    for task in TASKS:
        report = examine(task, answer(task, solutions))
        assert report.passed and f"chapter {task.chapter} measures " in str(report), str(report)


def test_with_them_it_says_what_a_right_answer_reads_there(measured, solutions):
    for task in TASKS:
        report = examine(task, answer(task, solutions))
        first = task.comparison.parts[0]
        assert report.passed and "Your own numbers" in str(report) and f": {first} " in report.notes[-1]


def test_an_answer_that_is_wrong_for_them_is_told_so_and_has_its_grade(measured, solutions):
    task = registry.task("03.yours")
    good = collect([solutions["03"]], task.entry).text
    text = good.replace(f"def {task.entry}(", "def right(") + SHORT.format(task.entry, "right")
    report = examine(task, load(text, task.entry))
    assert not report.passed and "simd at N = 1000 and 2000" in str(report)
    assert verdict(task, text).passed
