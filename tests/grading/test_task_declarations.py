"""A task is checked when it is declared, found by its id, and cheap to import."""

import dataclasses
import subprocess
import sys

import pytest

from course_lib.grading import registry
from course_lib.grading.judge import generator
from course_lib.grading.runner import clone, unchanged
from course_lib.grading.task import Code, SpeedRule

TASKS = registry.tasks()


def test_a_bad_declaration_is_refused_with_a_sentence():
    rule = SpeedRule(Code("", "f"), lambda rng: (), ((2.0, 1.0),), points=2)
    for fields, words in (
        ({"id": "matmul"}, "id is 'matmul'"),
        ({"points": 0}, "points is 0"),
        ({"points": float("nan")}, "points is nan"),
        ({"difficulty": 6}, "difficulty is 6"),
        ({"minutes": -1}, "minutes is -1"),
        ({"title": ""}, "title is ''"),
        ({"entry": "no name"}, "entry is 'no name'"),
        ({"hints": ("one", "two")}, "exactly three"),
        ({"hints": ("one", "", "three")}, "exactly three"),
        ({"speed": rule, "points": 1}, "speed.points"),  # they are part of the points
    ):
        with pytest.raises(ValueError, match="but it must be") as caught:
            dataclasses.replace(TASKS[0], **fields)
        assert words in str(caught.value), fields


def test_unknown_ids_name_the_nearest():
    with pytest.raises(KeyError, match=r"01\.rows"):
        registry.task("01.rowss")
    with pytest.raises(KeyError, match=r"Nearest"):
        registry.task("77.matmul")
    with pytest.raises(KeyError, match="chapter '42'"):
        registry.tasks("42")


def test_ids_are_unique_and_belong_to_their_chapter():
    assert len({task.id for task in TASKS}) == len(TASKS)
    for chapter in registry.CHAPTERS:
        tasks = registry.tasks(chapter)
        assert len(tasks) >= 4
        assert {task.chapter for task in tasks} == {chapter}


def test_the_first_rule_of_every_task_is_the_language_of_its_answers():
    from course_lib.grading.language import KERNEL, Language

    assert all(isinstance(task.rules[0], Language) for task in TASKS)
    assert all((task.rules[0] == KERNEL) == bool(task.launch) for task in TASKS)


def test_cases_depend_on_the_seed_alone_and_the_reference_is_right_and_leaves_them_alone():
    for task in TASKS:
        cases, again, others = (list(task.cases(generator(task, seed))) for seed in (1, 1, 2))
        first, second, third = ([case.args for case in made] for made in (cases, again, others))
        assert unchanged(first, second) and not unchanged(first, third), task.id
        for case in cases:
            args = clone(case.args)
            value = task.reference(*args)
            assert unchanged(case.args, args), (task.id, case.label)
            assert task.comparison.compare(value, value, args) is None, (task.id, case.label)


def test_the_declarations_import_nothing_heavy_and_not_the_learners_record():
    heavy = "torch numba matplotlib ipywidgets IPython nbgrader course_lib.grading.record"
    code = (
        "import sys; from course_lib.grading import registry; registry.tasks(); "
        f"import course_lib.grading.check; print(sorted(set('{heavy}'.split()) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
