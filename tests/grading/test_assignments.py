"""The assignments as files: solutions run, points agree, exercises follow from solutions, no work is lost."""

import json
import re
import shutil

import pytest
from grading_tools import ASSIGNMENTS, ROOT, execute, grader_of, noise, points_by_task, read_notebook, text_of
from grading_tools import solution_path as source_of

from course_lib.__main__ import main
from course_lib.commands import exercises
from course_lib.grading import registry
from course_lib.notebook_form import is_canonical

CHAPTERS = list(ASSIGNMENTS)


#: What sort of task it is, as assignments call it.
KINDS = (
    "work it out|complete a line|complete the function|write a function|make it fast|find the bug|open-ended"
)


def slug(id: str) -> str:
    return id.replace(".", "-").replace("_", "-")


def run(*arguments: str) -> int:
    return main(["exercises", *arguments])


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The exercises, generated afresh from solutions/ into a folder of their own."""
    folder = tmp_path_factory.mktemp("generated")
    assert run("--into", str(folder)) == 0
    return folder


@pytest.fixture
def released(generated, tmp_path):
    """A copy of one released notebook, and the text that would be released."""
    path = tmp_path / "01_python_loops.ipynb"
    shutil.copy(generated / "01_python_loops" / path.name, path)
    return path, path.read_text(encoding="utf-8")


# --- solutions ---


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_assignment_is_the_one_that_is_declared(chapter):
    cells = read_notebook(source_of(chapter))["cells"]
    by_id = {cell["id"]: cell for cell in cells}
    tasks = registry.tasks(chapter)
    title = text_of(cells[0])
    assert f"{best(chapter):g} points" in title
    assert f"about {sum(task.minutes for task in tasks)} minutes" in title
    graded = {cell["id"] for cell in cells if grader_of(cell).get("grade")}
    assert graded == {f"{slug(task.id)}-points" for task in tasks}
    for task in tasks:
        name = slug(task.id)
        points = grader_of(by_id[f"{name}-points"])
        assert points["points"] == task.points and points["locked"] and not points["solution"], task.id
        text = text_of(by_id[f"{name}-points"])
        assert f'check("{task.id}", {task.entry}, brief=True)' in text and text.endswith("report.points")
        assert text_of(by_id[f"{name}-check"]) == f'check("{task.id}", {task.entry})'
        assert grader_of(by_id[f"{name}-answer"])["solution"], task.id
        answer = text_of(by_id[f"{name}-answer"])
        assert answer.count("### BEGIN SOLUTION") == answer.count("### END SOLUTION") == 1, task.id
        statement = text_of(by_id[f"{name}-task"])
        assert re.search(rf"\*({KINDS}) · .* · good for: ", statement), task.id
        for fact in (task.title, f"{task.minutes} minutes", f"{task.points:g} point"):
            assert fact in statement, task.id
        assert "●" * task.difficulty + "○" * (5 - task.difficulty) in statement, task.id
    assert is_canonical(source_of(chapter))
    for cell in cells:
        lines = text_of(cell).splitlines()
        # one whole function, to be written or to be mended, stays in one cell
        is_answer = grader_of(cell).get("solution") or cell["id"].endswith("-given")
        assert len(lines) <= (25 if is_answer else 15), cell["id"]
        assert max(map(len, lines)) <= 110 or cell["cell_type"] == "markdown", cell["id"]


def best(chapter: str) -> float:
    return sum(task.points for task in registry.tasks(chapter))


def total_shown(executed: dict) -> str:
    """Return what the last cell of an executed assignment says: the sum of the points."""
    last = executed["cells"][-1]
    assert last["id"] == "total" and not grader_of(last)["grade"]
    return last["outputs"][0]["data"]["text/plain"]


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["once", "whole"])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_executed_solution_has_its_points_and_makes_no_noise(chapter, whole, tmp_path):
    """Each answer is checked once, in the cell for its points; `make proof` runs the cells before it, too."""
    leave_out = "-none" if whole else "-check"
    executed = execute(source_of(chapter), tmp_path, leave_out)
    assert noise(executed) == []
    points = points_by_task(executed)
    assert total_shown(executed).startswith(f"{sum(points.values()):g} of {best(chapter):g} points\nEvery")
    for task in registry.tasks(chapter):  # how many speed points, the timing tests tell
        assert task.points_for_being_right <= points[slug(task.id)] <= task.points
        if not task.speed:
            assert points[slug(task.id)] == task.points


# --- exercises ---


def test_exercises_follow_from_solutions(generated):
    """`make exercises` was run after the last change of a solution."""
    for name in ASSIGNMENTS.values():
        fresh, kept = (root / name / f"{name}.ipynb" for root in (generated, ROOT / "exercises"))
        assert kept.is_file(), "run `make exercises`"
        assert fresh.read_bytes() == kept.read_bytes(), f"{name} differs: run `make exercises`"
    folders = {path.name for path in (ROOT / "exercises").iterdir() if path.is_dir()}
    assert folders == set(ASSIGNMENTS.values())


def test_generating_twice_gives_the_same_bytes_and_leaves_no_database(generated, tmp_path, capsys):
    assert run("01_python_loops", "--into", str(tmp_path)) == 0
    path = tmp_path / "01_python_loops" / "01_python_loops.ipynb"
    assert path.read_bytes() == (generated / "01_python_loops" / path.name).read_bytes()
    assert is_canonical(path)
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == [path.name]
    assert run("01_python_loops", "--into", str(tmp_path)) == 0
    assert "already up to date" in capsys.readouterr().out


def test_released_notebooks_hold_no_solution_and_run_from_top_to_bottom_as_not_started(generated, tmp_path):
    for chapter, name in ASSIGNMENTS.items():
        path = generated / name / f"{name}.ipynb"
        for cell in read_notebook(path)["cells"]:
            assert "SOLUTION" not in text_of(cell), chapter
            if grader_of(cell).get("solution"):
                assert "raise NotImplementedError" in text_of(cell), chapter
        executed = execute(path, tmp_path)
        assert noise(executed) == [], chapter
        assert set(points_by_task(executed).values()) == {0.0}, chapter
        total = f"0 of {best(chapter):g} points\nNot started: {chapter}."
        assert total_shown(executed).startswith(total), chapter
        outputs = {cell["id"]: cell["outputs"] for cell in executed["cells"] if "outputs" in cell}
        for task in registry.tasks(chapter):
            (shown,) = outputs[f"{slug(task.id)}-check"]
            assert "Not started" in shown["data"]["text/plain"], task.id


# --- a learner's work is never lost ---


def changed(text: str, change) -> bytes:
    """Return a released notebook after `change(notebook)`."""
    notebook = json.loads(text)
    change(notebook)
    return json.dumps(notebook).encode()


def answered(text: str):
    def change(notebook):
        next(cell for cell in notebook["cells"] if grader_of(cell).get("solution"))["source"] = text

    return change


def run_once(notebook) -> None:
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    code["execution_count"] = 7
    code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "hello"}]


def test_what_somebody_worked_in_is_set_aside_before_the_new_one_is_written(released):
    """Several in one second, too; and what is no notebook any more."""
    path, text = released
    mine = [changed(text, answered(f"x = {n}")) for n in range(3)]
    mine += [changed(text, lambda book: book["cells"].append({**book["cells"][-1], "id": "new"}))]
    mine += [changed(text, lambda book: book["cells"].pop(3))]
    mine += [b"", b"half a noteb", b"[]", b'{"cells": 3, "metadata": {}}', b"\xff"]
    for number, content in enumerate(mine, start=1):
        path.write_bytes(content)
        said = exercises.release(path, text)
        aside = sorted(path.parent.glob(f"{path.stem}.mine-*.ipynb"))
        assert len(aside) == number and path.read_text(encoding="utf-8") == text, content[:40]
        assert number > 1 or (aside[0].name in said and "you have worked in it" in said)
    assert sorted(one.read_bytes() for one in aside) == sorted(mine)


def test_outputs_alone_are_no_edit(released):
    path, text = released
    path.write_bytes(changed(text, run_once))
    assert "held no work of yours" in exercises.release(path, text)
    assert len(list(path.parent.iterdir())) == 1 and path.read_text(encoding="utf-8") == text
