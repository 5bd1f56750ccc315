"""The whole round with nbgrader's exchange and its form grader: all of them know the same grades."""

import copy
import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from grading_tools import nbgraders_environment
from short_course import NAME, RIGHT, ROOT, STUB, WRONG, answered, hand_in, make_course

from course_lib.grading.classroom.run import GradingOrder, grade

pytestmark = pytest.mark.needs("bubblewrap")  # and nbgrader's exchange is not for Windows either
HALF = {"01-count-answer": RIGHT["01-count-answer"]}


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course with nbgrader's configuration, an exchange and a student's folder beside it."""
    place = tmp_path_factory.mktemp("round")
    root = make_course(place / "course")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    (place / "student").mkdir()
    (place / "exchange").mkdir()
    (place / "exchange").chmod(0o777)  # nbgrader insists
    return root


def nbgrader(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words, f"--Exchange.root={folder.parent / 'exchange'}"],
        cwd=folder,
        env=nbgraders_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def graded(course) -> Path:
    """A class folder in which one submission came through the exchange and one from a folder."""
    student = course.parent / "student"
    nbgrader(course, "generate_assignment", NAME)
    nbgrader(course, "release_assignment", NAME)
    nbgrader(student, "fetch_assignment", NAME, "--course", "nine-circles")
    (student / NAME / f"{NAME}.ipynb").write_text(json.dumps(answered(course, HALF)))
    nbgrader(student, "submit", NAME, "--course", "nine-circles")
    nbgrader(course, "collect", NAME)
    grade(GradingOrder(course / "grading" / "submitted", course / "grading", course))
    return course


@pytest.mark.slow  # a minute of nbgrader alone; `both_ways` below is its short form
def test_feedback_goes_back_through_the_exchange(graded):
    student = graded.parent / "student"
    nbgrader(graded, "release_feedback", NAME)
    nbgrader(student, "fetch_feedback", NAME, "--course", "nine-circles")
    (page,) = (student / NAME / "feedback").rglob("*.html")
    (ours,) = (graded / "grading" / "feedback").rglob("*.html")
    assert page.read_bytes() == ours.read_bytes()
    assert "Count the operations" in page.read_text()


def form_grader(course: Path):
    """Return what is behind the form grader's pages and buttons."""
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", str(course)).load_config()
    return NbGraderAPI(CourseDirectory(config=config), Authenticator(config=config), config=config)


@pytest.mark.slow
def test_the_form_grader_shows_the_same_grades_and_its_button_gives_them(graded):
    from nbgrader.utils import get_username

    me = get_username()  # whom the exchange takes the submission from
    hand_in(graded, graded.parent / "more", "bob", WRONG)
    hand_in(graded, graded.parent / "more", "cleo", b"no notebook at all")
    grade(GradingOrder(graded.parent / "more", graded / "grading", graded))
    expected = {me: (1.0, False), "bob": (0.0, False), "cleo": (0.0, True)}
    for verdicts in ("kept", "made anew"):
        if verdicts == "made anew":
            shutil.rmtree(graded / "grading" / "verdicts")
        api, made = form_grader(graded), graded / "grading" / "autograded" / me
        shown = {
            one["student"]: (one["score"], one["needs_manual_grade"]) for one in api.get_submissions(NAME)
        }
        assert shown == expected
        shutil.rmtree(made)
        said = api.autograde(NAME, me)
        assert said["success"] and api.get_submission(NAME, me)["score"] == 1.0, said
        assert "Count the operations" in (made / NAME / f"{NAME}.ipynb").read_text()


# --- both ways give the same grades and make the same notebook, whatever was handed in ----------------------

POINTS = ("01-count-points", "01-dot-points")
HIDDEN_MAGIC = {**RIGHT, "01-dot-answer": "%run other.py\n" + RIGHT["01-dot-answer"]}


def marks(cell: dict) -> dict:
    return cell["metadata"].get("nbgrader", {})


def point_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if marks(cell).get("grade")]


def edited(notebook: dict) -> None:
    for cell in point_cells(notebook):
        cell["source"] = "100.0"


def deleted(notebook: dict) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if not marks(cell).get("grade")]


def duplicated(notebook: dict) -> None:
    notebook["cells"] += copy.deepcopy(notebook["cells"])


def retyped(notebook: dict) -> None:
    for cell in notebook["cells"]:
        if marks(cell).get("grade"):
            cell["cell_type"] = "markdown"
            del cell["outputs"], cell["execution_count"]


def more_points(notebook: dict) -> None:
    for cell in point_cells(notebook):
        marks(cell)["points"] = 1000


def swapped(notebook: dict) -> None:
    for cell, name in zip(point_cells(notebook), reversed(POINTS), strict=True):
        marks(cell)["grade_id"] = name


def foreign(notebook: dict) -> None:
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"]["nbgrader"] = {
            "grade": True,
            "solution": True,
            "grade_id": f"my{number}",
            "points": 5,
        }


def nonsense(notebook: dict) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {"nbgrader": ["grade", {"points": 9}]}
    notebook["metadata"] = {"kernelspec": 7}


def old_form(notebook: dict) -> None:
    cells = [{**cell, "input": cell.pop("source"), "language": "python"} for cell in notebook["cells"]]
    notebook |= {"nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}
    del notebook["cells"]


#: Change of the notebook, answers, points for count and dot, whether a person must look at them.
CASES = {
    "whole": (None, RIGHT, (1, 1), (False, False)),
    "half": (None, HALF, (1, 0), (False, False)),
    "edited": (edited, HALF, (1, 0), (False, False)),
    "deleted": (deleted, HALF, (1, 0), (False, False)),
    "duplicated": (duplicated, RIGHT, (1, 1), (False, False)),
    "retyped": (retyped, HALF, (1, 0), (False, False)),
    "more_points": (more_points, WRONG, (0, 0), (False, False)),
    "swapped": (swapped, HALF, (1, 0), (False, False)),
    "foreign": (foreign, HALF, (1, 0), (False, False)),
    "nonsense": (nonsense, RIGHT, (1, 1), (False, False)),
    "old_form": (old_form, HALF, (1, 0), (False, False)),
    "magic": (None, HIDDEN_MAGIC, (1, 1), (False, False)),
    "not_begun": (None, STUB, (0, 0), (False, False)),
    "truncated": (lambda notebook: json.dumps(notebook).encode()[:-20], RIGHT, (0, 0), (True, True)),
    "no_notebook": (lambda notebook: b"\xff\xfe nothing", RIGHT, (0, 0), (True, True)),
    "empty": (lambda notebook: b"", RIGHT, (0, 0), (True, True)),
}
JUDGED_TWICE = ("duplicated", "truncated", "empty", "link", "edited")


def grades(course: Path) -> dict[str, tuple]:
    """Return points and marks of all students, as the grade book has them."""
    from nbgrader.api import Gradebook

    found = {}
    with Gradebook(f"sqlite:///{course / 'grading' / 'gradebook.db'}", "nine-circles") as book:
        for one in book.assignment_submissions(NAME):
            rows = {row.name: (row.auto_score, row.needs_manual_grade) for row in one.notebooks[0].grades}
            found[one.student.id] = tuple(zip(*(rows[name] for name in POINTS), strict=True))
    return found


def made_of(course: Path, student: str) -> list[tuple]:
    """Return what the graded notebook of a student shows."""
    import nbformat

    path = course / "grading" / "autograded" / student / NAME / f"{NAME}.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    return [(cell.cell_type, cell.source, cell.get("outputs")) for cell in cells]


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory) -> tuple[Path, dict, dict, dict, dict]:
    """The course; grades and notebooks by the course's own command, then by nbgrader's."""
    course = make_course(tmp_path_factory.mktemp("hostile") / "course")
    shutil.copy(ROOT / "nbgrader_config.py", course)
    handed_in = course / "grading" / "submitted"
    for student, (change, answers, _, _) in CASES.items():
        notebook = answered(course, answers)
        data = change(notebook) if change else None
        hand_in(course, handed_in, student, data if data is not None else json.dumps(notebook).encode())
    hand_in_links(course, handed_in)
    grade(GradingOrder(handed_in, course / "grading", course))
    before = grades(course), {student: made_of(course, student) for student in CASES}
    forget(course)
    nbgrader(course, "autograde", NAME, "--force")
    return course, *before, grades(course), {student: made_of(course, student) for student in CASES}


def hand_in_links(course: Path, handed_in: Path) -> None:
    """Hand in a link to the solution, and one to the seed beside an honest notebook."""
    linked = hand_in(course, handed_in, "link", b"")
    linked.unlink()
    linked.symlink_to(course / "solutions" / NAME / f"{NAME}.ipynb")
    beside = hand_in(course, handed_in, "curious", HALF).parent
    (beside / f"{NAME}.html").symlink_to(course / "grading" / "secret_seed")
    (beside / "submission_secret.txt").symlink_to(course / "grading" / "secret_seed")


def forget(course: Path) -> None:
    """Take all points and marks out of the grade book, and some verdicts away. A grader settles one thing."""
    from nbgrader.api import Gradebook

    shutil.rmtree(course / "grading" / "autograded")
    for student in JUDGED_TWICE:
        (course / "grading" / "verdicts" / NAME / f"{student}.json").unlink()
    with Gradebook(f"sqlite:///{course / 'grading' / 'gradebook.db'}", "nine-circles") as book:
        for one in book.assignment_submissions(NAME):
            for row in one.notebooks[0].grades:
                if one.student.id == "no_notebook":
                    row.manual_score, row.needs_manual_grade = 0.5, False
                else:
                    row.auto_score, row.needs_manual_grade = None, False
        book.db.commit()


def test_both_ways_give_the_same_grades_and_make_the_same_notebook(both_ways):
    _, ours, our_notebooks, theirs, their_notebooks = both_ways
    settled = (False, False)  # by the grader, and the judge has found nothing new
    for student, (_, _, *expected) in CASES.items():
        assert ours[student] == tuple(expected), student
        points, looks = ours[student]
        assert theirs[student] == (points, settled if student == "no_notebook" else looks), student
        assert our_notebooks[student] == their_notebooks[student], student


def test_a_link_earns_nothing_and_brings_nothing_near_the_feedback(both_ways):
    course, ours, _, theirs, _ = both_ways
    assert ours["link"] == theirs["link"] == ((0, 0), (True, True))  # it led to the solution
    seed = (course / "grading" / "secret_seed").read_bytes().strip()
    beside = course / "grading" / "autograded" / "curious" / NAME
    assert [path.name for path in beside.iterdir() if path.suffix != ".ipynb"] == []
    assert seed not in (beside / f"{NAME}.ipynb").read_bytes()


def test_nbgraders_own_feedback_and_csv_have_the_same_grades(both_ways):
    course, _, _, theirs, _ = both_ways
    nbgrader(course, "generate_feedback", NAME, "--student", "more_points", "--force")
    page = (course / "grading" / "feedback" / "more_points" / NAME / f"{NAME}.html").read_text()
    assert "One addition too many" in re.sub("<[^>]*>", "", page)
    nbgrader(course, "export")
    with (course / "grades.csv").open() as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    by_judge = {student: sum(points) for student, (points, _) in theirs.items()}
    assert scores == {**by_judge, "no_notebook": 1.0}  # the grader gave half a point for each task


def test_links_are_collected_as_links(tmp_path):
    from nbgrader.coursedir import CourseDirectory

    from course_lib.grading.classroom.plugin import CollectWithoutLinks

    secret, inbound = tmp_path / "secret", tmp_path / "inbound"
    secret.write_text("seed")
    inbound.mkdir()
    (inbound / "honest.ipynb").write_text("{}")
    (inbound / "short.ipynb").symlink_to(secret)
    collect = CollectWithoutLinks(coursedir=CourseDirectory(root=str(tmp_path)))
    collect.do_copy(str(inbound), str(tmp_path / "submitted"))
    assert (tmp_path / "submitted" / "honest.ipynb").read_text() == "{}"
    assert (tmp_path / "submitted" / "short.ipynb").is_symlink()
    (tmp_path / "folder").symlink_to(inbound)
    collect.do_copy(str(tmp_path / "folder"), str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()
