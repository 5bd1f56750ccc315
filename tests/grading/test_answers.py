"""Every solution passes its task, every typical wrong answer is rejected with words that name the fault."""

import functools
from dataclasses import replace

import pytest
from grading_tools import shows_in_one_of

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED, examine
from course_lib.grading.judge import judge
from course_lib.grading.rules import MustBeCompiled
from course_lib.grading.runner import InProcess, Timing
from course_lib.grading.sources import answer_source, load

pytestmark = pytest.mark.usefixtures("tracer_compiled")
TASKS = registry.tasks()
IDS = [task.id for task in TASKS]
MUTANTS = [(task, mutant) for task in TASKS for mutant in task.mutants]
SEEDS = (9, 2025)
EACH_SEED = (9, pytest.param(2025, marks=pytest.mark.slow))
MOST_S = 60.0  # of a call: the first one compiles, and other tests may be running
TRIES = 3  # of a measurement, on a machine whose other guests may take a core away
SLOW_MUTANT = "the baseline itself"  # right, so what is wrong with it has to be measured


class Timeless(InProcess):
    """A runner whose clock always says the same, so that tests of right and wrong measure nothing."""

    speedup = 100.0

    def time(self, speed, args):
        return Timing(self.speedup, self.speedup * 0.97, self.speedup * 1.03, 1e-3, 1e-3 * self.speedup)


@functools.cache
def loaded(text: str, entry: str):
    """Return the function; Numba compiles it once, whatever number of tests call it."""
    return load(text, entry)


def is_compiled(task) -> bool:
    return any(isinstance(rule, MustBeCompiled) for rule in task.rules)


def to_be_solved() -> list:
    """Return all tasks; of a chapter's compiled answers the first is judged in every run.

    All of them are judged in every run on the same inputs by test_assignments.py, which executes them.
    """
    seen, found = set(), []
    for task in TASKS:
        long = is_compiled(task) and task.chapter in seen
        seen |= {task.chapter} if is_compiled(task) else set()
        found.append(pytest.param(task, id=task.id, marks=[pytest.mark.slow] if long else []))
    return found


def verdict(task, text: str, seed: int, speedup: float = 100.0):
    runner = Timeless(loaded(text, task.entry), MOST_S)
    runner.speedup = speedup
    return judge(task, runner, text, seed)


@pytest.mark.parametrize("seed", EACH_SEED)
@pytest.mark.parametrize("task", to_be_solved())
def test_the_solution_gets_all_points(task, seed, solutions):
    report = verdict(task, solutions[task.chapter], seed)
    assert report.points == task.points, str(report)
    assert report.passed
    assert "The visible tests pass" in str(report)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("task", "mutant"), MUTANTS, ids=[f"{task.id}-{m.name}" for task, m in MUTANTS])
def test_a_wrong_answer_is_rejected_and_its_fault_named(task, mutant):
    speedup = 1.0 if mutant.name == SLOW_MUTANT else 100.0
    for seed in SEEDS if task.chapter == "01" else SEEDS[:1]:
        report = verdict(task, mutant.source, seed, speedup)
        assert not report.passed, str(report)
        assert report.points <= (task.points_for_being_right if mutant.name == SLOW_MUTANT else 0)
        for words in mutant.says:
            assert words in str(report), str(report)
        assert "visible tests pass" not in str(report)


@pytest.mark.sample(3)
@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_the_solution_is_right_through_its_collected_source_too(task, solutions):
    live = loaded(solutions[task.chapter], task.entry)
    code = answer_source(live)
    assert judge(task, Timeless(live, MOST_S), code.text, PUBLIC_SEED, code.entry).points == task.points


RETURNING = [task for task in TASKS if not task.launch]  # a kernel returns nothing


@pytest.mark.parametrize("task", RETURNING, ids=lambda task: task.id)
def test_no_return_is_all_that_is_said(task):
    head = ("from numba import njit\n@njit\n" if is_compiled(task) else "") + "def NAME(*args):\n"
    loops = "    for k in range(1):\n        for i in range(1):\n            for j in range(1):\n"
    report = verdict(task, (head + loops + "                x = 2\n").replace("NAME", task.entry), 9)
    (said,) = report.lines
    assert said.startswith("Your function returned None")
    assert said.endswith("is a `return` missing?")


def test_a_row_slice_may_stand_for_the_third_loop_where_the_text_says_so():
    from course_lib.grading.tasks.compiled_loops.shared import loops

    inner = "            for j in range(N):\n                C[i, j] += A[i, k] * B[k, j]"
    sliced = loops("matmul").replace(inner, "            C[i, :] += A[i, k] * B[k, :]")
    assert "for j" not in sliced
    task = registry.task("02.matmul")
    assert verdict(replace(task, cases=lambda rng: list(task.cases(rng))[:1]), sliced, 9).passed


def test_sentences_for_slips_end_like_sentences():
    assert all(one.says[-1] in ".?" for task in TASKS for one in task.lookalikes)


@pytest.mark.timing
@pytest.mark.parametrize("id", [task.id for task in TASKS if task.speed])
def test_speed_points_as_measured(id, solutions):
    """Judged on the input that is timed alone: the tests above judge the others."""
    task = replace(registry.task(id), cases=lambda rng: [])
    slow = next(mutant for mutant in task.mutants if mutant.name == SLOW_MUTANT).source
    for text, points in (
        (solutions[task.chapter], task.points),
        (slow, task.points_for_being_right),
    ):
        answer, reports = loaded(text, task.entry), []

        def as_wanted(points=points, answer=answer, reports=reports) -> bool:
            reports.append(examine(task, answer))
            return reports[-1].points == points

        assert shows_in_one_of(TRIES, as_wanted), "\n".join(map(str, reports))
    assert "x as fast as the baseline" in str(reports[-1])


def test_partial_speed_points_follow_the_thresholds():
    task = registry.task("01.faster")
    text = next(m for m in task.mutants if m.name == SLOW_MUTANT).source
    for speedup, points in (
        (1.0, 1.0),
        (1.27, 2.0),
        (1.5, 2.0),
        (1.9, 3.0),
    ):  # 1.27 * 1.03: noise in your favour
        report = verdict(task, text, 9, speedup)
        assert report.points == points
        on_the_way = 1.3 <= speedup * 1.03 < 1.8
        assert ("1.8x gives 3 of 3 points" in str(report)) == on_the_way
        assert ("let one pass serve several columns: hint 2" in str(report)) == on_the_way


@pytest.mark.sample(2)
@pytest.mark.parametrize("id", [task.id for task in TASKS if task.speed])
def test_the_given_baselines_are_right_themselves(id):
    task = registry.task(id)
    renamed = task.speed.baseline.text.replace(task.speed.baseline.entry, task.entry)
    assert verdict(task, renamed, 4).passed
