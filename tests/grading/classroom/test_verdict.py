"""Verdicts: what a submission gets, and what its student may be told."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from short_course import NAME, RIGHT, WRONG, answered, make_course

from course_lib.grading.check import PUBLIC_SEED
from course_lib.grading.classroom import assignment as assignments
from course_lib.grading.classroom import secret, verdict
from course_lib.grading.classroom.verdict import GRADED, OTHER, SubmissionJob, judged, place, still_valid
from course_lib.grading.judge import generator
from course_lib.grading.registry import task
from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox

SEED = 987654321
SANDBOXED = pytest.mark.needs("bubblewrap")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def verdict_on(course):
    items = assignments.load(course, NAME).items

    def verdict_on(answers, seed=SEED, problems=()):
        data = (
            answers if isinstance(answers, bytes | None) else json.dumps(answered(course, answers)).encode()
        )
        sandbox = Sandbox(limits=AnswerLimits(call_s=2, task_s=15, memory_mb=600))
        return judged(SubmissionJob(NAME, "ada", items, data, "short.ipynb", problems, seed, sandbox))

    return verdict_on


def by_task(verdict) -> dict:
    return {one["id"]: one for one in verdict["tasks"]}


def numbers_in(feedback: dict) -> set[str]:
    return {*re.findall(r"-?[\d.]*\d", json.dumps(feedback))}


def secret_numbers(id: str) -> set[str]:
    """Return how the secret inputs of a task's cases look in print."""
    secret, public = (
        {
            repr(one)
            for case in task(id).cases(generator(task(id), seed))
            for argument in case.args
            for one in (argument if isinstance(argument, list) else [argument])
        }
        for seed in (SEED, PUBLIC_SEED)
    )
    return {number for number in secret - public if len(number) > 2}


@SANDBOXED
def test_a_right_answer_says_so_of_the_inputs_it_was_graded_on(verdict_on):
    tasks = by_task(verdict_on(RIGHT))
    assert [one["points"] for one in tasks.values()] == [1.0, 1.0]
    assert all(one["feedback"]["lines"] == [GRADED] for one in tasks.values())
    assert all(
        one["seconds"]["kernel"] > 0 and one["why"] == "" and not one["manual"] for one in tasks.values()
    )


@SANDBOXED
def test_a_wrong_answer_shows_the_public_inputs_to_the_student_and_the_secret_ones_to_the_teacher(verdict_on):
    dot = by_task(verdict_on(WRONG))["01.dot"]
    assert dot["state"] == "wrong" and dot["why"].startswith("Only the last pair")
    assert dot["feedback"]["lines"][0] == dot["teacher"]["lines"][0]
    assert dot["feedback"]["notes"] != dot["teacher"]["notes"]
    told = numbers_in(dot["feedback"])
    assert told and not told & secret_numbers("01.dot")


@SANDBOXED
def test_the_public_inputs_come_first_in_the_same_process(verdict_on, monkeypatch):
    seeds, started, real = [], [], verdict.judge

    def judge(task, runner, source, seed, entry):
        seeds.append(seed)
        report = real(task, runner, source, seed, entry)
        started.append(runner._process._inner)
        return report

    monkeypatch.setattr(verdict, "judge", judge)
    wrong = "def operations(M, K, N):\n    return M * N, M * N\n"
    found = by_task(verdict_on({**RIGHT, "01-count-answer": wrong}))
    assert [one["points"] for one in found.values()] == [0, 1]
    assert seeds == [PUBLIC_SEED, SEED] * 2
    assert started[0] != started[1] and started[2] == started[3]  # a process that failed is used no more


FITTED = {
    "wrong elsewhere": "return 7, 7",
    "raises what it sees": "raise ValueError(repr(size))",
    "prints what it sees": "print(size) or (7, 7)",
    "returns what it sees": "return size",
    "fails in a line of its own": "return {}[size]",
}


@SANDBOXED
def test_an_answer_fitted_to_the_visible_tests_fails_and_tells_its_student_nothing(verdict_on):
    counting = task("01.count")
    table = {
        case.args: counting.reference(*case.args) for case in counting.cases(generator(counting, PUBLIC_SEED))
    }
    assert secret_numbers("01.count")
    for how, line in FITTED.items():
        text = (
            f"TABLE = {table!r}\n\n\ndef operations(M, K, N):\n    size = M, K, N\n    if size in TABLE:\n"
            f"        return TABLE[size]\n    {line}\n"
        )
        count = by_task(verdict_on({"01-count-answer": text}))["01.count"]
        assert count["points"] == 0 and count["state"] == "wrong", how
        assert count["feedback"]["lines"][0] == OTHER and count["feedback"]["mismatch"] is None, how
        assert "fitted to them" in count["manual"][0], how
        assert not numbers_in(count["feedback"]) & secret_numbers("01.count"), how


def test_what_has_no_usable_notebook_gets_nothing_and_a_manual_look(verdict_on):
    for data in (None, b"", b"{", b'{"cells": 3}'):
        verdict = verdict_on(data, problems=("Handed in a link.",))
        assert [one["points"] for one in verdict["tasks"]] == [0.0, 0.0]
        assert all(one["state"] == "not started" for one in verdict["tasks"])
        assert verdict["manual"][0] == "Handed in a link." and (data is None or len(verdict["manual"]) > 1)


@SANDBOXED
def test_a_syntax_error_costs_its_own_task_only(verdict_on):
    tasks = by_task(verdict_on({**RIGHT, "01-dot-answer": "def dot(row, col:\n    return 3\n"}))
    assert [one["points"] for one in tasks.values()] == [1.0, 0.0]
    assert "SyntaxError in line 1" in tasks["01.dot"]["feedback"]["lines"][0]
    assert "def dot(row, col:" in tasks["01.dot"]["answer"]


def test_the_key_follows_everything_a_verdict_depends_on(course):
    items = assignments.load(course, NAME).items
    first = SubmissionJob(NAME, "ada", items, b"1", "a.ipynb", (), 1, Sandbox())
    changes = {"student": "bob"}, {"items": items[:1]}, {"data": b"2"}, {"data": None}, {"seed": 2}
    others = [replace(first, **change) for change in (*changes, {"sandbox": Sandbox(unsafe=True)})]
    assert len({one.key() for one in (first, *others)}) == 7
    renamed = replace(first, name="b.ipynb", problems=("late",), sandbox=Sandbox())
    assert first.key() == renamed.key()  # nothing that is judged has changed


def test_the_mark_of_the_course_follows_all_that_tasks_are_made_of():
    """What changes a reference must change the key: who is graded later is graded by the same."""
    told = (
        "import sys; from course_lib.grading import judge, registry; registry.tasks(); "
        "print(*(name.split('.')[1] for name in sys.modules if name.startswith('course_lib.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    others = {"arguments", "ladder", "theme", "whole_files"}  # texts, colours, the learner's own numbers
    assert {*loaded.stdout.split()} == {*verdict.ROOMS, *others}


UNFIT = (
    (lambda cell: cell.update(source="assert True"), "calls no check"),
    (lambda cell: cell["metadata"]["nbgrader"].update(points=5), "is worth 1"),
)


def test_an_assignment_that_cannot_be_judged_is_refused(tmp_path):
    for change, says in UNFIT:
        root = make_course(tmp_path / says)
        path = assignments.source_path(root, NAME)
        notebook = json.loads(path.read_text())
        change(next(cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")))
        path.write_text(json.dumps(notebook))
        with pytest.raises(assignments.AssignmentError, match=says):
            assignments.load(root, NAME)


def test_the_seed_is_made_once_and_only_its_owner_reads_it(tmp_path, monkeypatch):
    monkeypatch.delenv(secret.VARIABLE, raising=False)
    first = secret.seed(tmp_path / "class")
    assert secret.seed(tmp_path / "class") == first != secret.seed(tmp_path / "another")
    if os.name == "posix":
        assert (tmp_path / "class" / secret.FILE).stat().st_mode & 0o077 == 0
    monkeypatch.setenv(secret.VARIABLE, "words that nobody guesses")
    assert secret.seed(tmp_path / "class") != first
    monkeypatch.setenv(secret.VARIABLE, "short")
    with pytest.raises(secret.SeedError, match="5 characters"):
        secret.seed(tmp_path / "class")


def test_an_earlier_verdict_without_a_key_is_not_valid_and_stops_no_run(tmp_path):
    job = SubmissionJob(NAME, "ada", (), None, "", (), SEED, Sandbox())
    kept = {"student": "ada", "received": {"name": "short.ipynb"}, "tasks": [{}]}
    path = place(tmp_path, NAME, "ada")
    path.parent.mkdir(parents=True)
    for more, valid in (({}, False), ({"key": "another"}, False), ({"key": job.key()}, True)):
        path.write_text(json.dumps({**kept, **more}))
        assert (still_valid(tmp_path, job) is not None) is valid
