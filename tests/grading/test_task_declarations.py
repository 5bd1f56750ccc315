"""A task is checked when it is declared, found by its id, and cheap to import."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from course_lib.grading import registry
from course_lib.grading.judge import generator
from course_lib.grading.runner import clone, unchanged
from course_lib.grading.task import Case, Code, Mutant, SpeedRule, Task
from course_lib.grading.tasks.batched import shared

TASKS = registry.tasks()
IDS = [task.id for task in TASKS]


def changed(**fields) -> Task:
    return dataclasses.replace(TASKS[0], **fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"id": "matmul"}, "id is 'matmul'"),
        ({"kind": "quiz"}, "kind is 'quiz'"),
        ({"points": 0}, "points is 0"),
        ({"points": float("nan")}, "points is nan"),
        ({"difficulty": 6}, "difficulty is 6"),
        ({"minutes": -1}, "minutes is -1"),
        ({"title": ""}, "title is ''"),
        ({"entry": "no name"}, "entry is 'no name'"),
        ({"hints": ("one", "two")}, "exactly three"),
        ({"hints": ("one", "", "three")}, "exactly three"),
        ({"mutants": TASKS[0].mutants[:2]}, "at least three"),
        ({"mutants": (TASKS[0].mutants[0],) * 3}, "different names"),
    ],
)
def test_a_bad_declaration_is_refused_with_a_sentence(fields, words):
    with pytest.raises(ValueError, match="but it must be") as caught:
        changed(**fields)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "thresholds",
    [(), ((2.0, 0.5), (1.5, 1.0)), ((1.5, 0.5), (3.0, 0.9)), ((1.5, 1.0), (3.0, 0.5)), ((1.5, 0.0),)],
)
def test_speed_thresholds_must_rise_to_all_points(thresholds):
    with pytest.raises(ValueError, match="thresholds"):
        SpeedRule(Code("", "f"), lambda rng: (), thresholds, 1)


def test_speed_points_are_part_of_the_points():
    rule = SpeedRule(Code("", "f"), lambda rng: (), ((2.0, 1.0),), points=2)
    with pytest.raises(ValueError, match=r"speed\.points"):
        changed(speed=rule, points=1)


def test_a_speed_rule_gives_points_in_steps():
    rule = SpeedRule(Code("", "f"), lambda rng: (), ((1.5, 0.5), (3.0, 1.0)), 2)
    assert [rule.share(speed) for speed in (1.49, 1.5, 2.99, 3.0, 99)] == [0, 0.5, 0.5, 1, 1]
    assert [rule.next_threshold(speed) for speed in (1.0, 1.5, 3.0)] == [1.5, 3.0, None]


def test_cases_and_mutants_are_checked_too():
    with pytest.raises(ValueError, match="args"):
        Case([1], "a list instead of a tuple")
    with pytest.raises(ValueError, match="label"):
        Case((1,), "")
    with pytest.raises(ValueError, match="expect"):
        Case((1,), "x", expect="ValueError")
    with pytest.raises(ValueError, match="says"):
        Mutant("m", "def f(): pass", "one word, not a tuple")


def test_unknown_ids_name_the_nearest():
    with pytest.raises(KeyError, match=r"01\.matmul"):
        registry.task("01.matmull")
    with pytest.raises(KeyError, match=r"Nearest"):
        registry.task("77.matmul")
    with pytest.raises(KeyError, match="chapter '42'"):
        registry.tasks("42")


def test_ids_are_unique_and_belong_to_their_chapter():
    assert len(set(IDS)) == len(IDS)
    for chapter in registry.CHAPTERS:
        tasks = registry.tasks(chapter)
        assert len(tasks) >= 4
        assert {task.chapter for task in tasks} == {chapter}
        assert len({task.kind for task in tasks}) >= 4


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_cases_depend_on_the_seed_and_on_nothing_else(task):
    first, again, other = ([case.args for case in task.cases(generator(task, seed))] for seed in (1, 1, 2))
    assert unchanged(first, again)
    assert not unchanged(first, other)


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_the_reference_leaves_its_inputs_alone_and_is_right_by_its_own_comparison(task):
    for case in task.cases(generator(task, 5)):
        args = clone(case.args)
        value = task.reference(*args)
        assert unchanged(case.args, args), case.label
        assert task.comparison.compare(value, task.reference(*args), args) is None, case.label


@pytest.mark.parametrize("id", ["01.matmul", "02.matmul"])
def test_inputs_would_show_swapped_operands_and_transposed_results(id):
    task = registry.task(id)
    square = 0
    for case in task.cases(generator(task, 3)):
        A, B = (np.asarray(X, dtype=float) for X in case.args)
        if A.ndim == 2 and A.shape == B.shape and A.shape[0] == A.shape[1] > 1:
            square += 1
            assert not np.allclose(A @ B, B @ A)
            assert not np.allclose(A @ B, (A @ B).T)
    assert square


def test_the_declarations_import_nothing_heavy():
    code = (
        "import sys; from course_lib.grading import registry; registry.tasks(); import "
        "course_lib.grading.check; "
        "print(sorted({'torch', 'numba', 'matplotlib', 'ipywidgets', 'IPython', 'nbgrader'} & "
        "set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_an_answer_is_only_changed_where_it_has_the_text():
    assert shared.changed("a + b", ("a", "c"), ("+", "-")) == "c - b"
    with pytest.raises(ValueError, match=r"'d' is not in the answer to change: copy a part of its text\."):
        shared.changed("a + b", ("d", "c"))
