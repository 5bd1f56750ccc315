"""A class in small: two students hand in the first assignment; nbgrader grades, writes feedback and a csv.

test_nbgrader_round.py has the short form: an assignment of two tasks.
"""

import csv
import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from grading_tools import ROOT, grader_of, nbgraders_environment, read_notebook, solution_path, text_of

from course_lib.grading import registry

NAME = "01_python_loops"
SLOW, SLOW_CELL = "01.faster", "01-faster-answer"  # what the second student answers there is right, and slow

#: What the second student hands in, and the points each answer is worth.
BAD = {
    "01-count-answer": (
        "def operations(M, K, N):\n    return M * N * K, M * N * K",
        0,
    ),  # an addition too many
    "01-dot-answer": (None, 1),  # right
    "01-matmul-answer": ("def matmul(A, B:\n    return 3", 0),  # a syntax error
    "01-alias-answer": ("stub", 0),  # not started
    SLOW_CELL: (
        "slow",
        1,
    ),  # slow
    "01-predict-time-answer": (
        "import warnings\nwarnings.warn('noise')\n",
        2,
    ),  # right, in front of it a warning
}


pytestmark = [pytest.mark.slow, pytest.mark.needs("bubblewrap")]


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A course in a folder of its own, graded from release to csv."""
    folder = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "solutions" / NAME, folder / "solutions" / NAME)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    nbgrader(folder, "generate_assignment", NAME)
    hand_in(folder, "ada", lambda cell, solution: solution)
    hand_in(folder, "bob", bad_answer)
    nbgrader(folder, "autograde", NAME)
    nbgrader(folder, "generate_feedback", NAME)
    nbgrader(folder, "export")
    return folder


def nbgrader(folder: Path, *arguments: str) -> None:
    """Run an nbgrader command in the course."""
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=folder,
        env=nbgraders_environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def hand_in(course: Path, student: str, answer) -> None:
    """Hand in the released notebook; `answer(cell id, solution)` gives an answer, None keeps the stub."""
    released = read_notebook(course / "exercises" / NAME / f"{NAME}.ipynb")
    solutions = {cell["id"]: without_marks(cell) for cell in read_notebook(solution_path("01"))["cells"]}
    for cell in released["cells"]:
        if grader_of(cell).get("solution"):
            cell["source"] = answer(cell["id"], solutions[cell["id"]]) or text_of(cell)
    target = course / "grading" / "submitted" / student / NAME
    target.mkdir(parents=True)
    (target / f"{NAME}.ipynb").write_text(json.dumps(released), encoding="utf-8")


def without_marks(cell: dict) -> str:
    return "\n".join(line for line in text_of(cell).splitlines() if "### " not in line)


def bad_answer(cell: str, solution: str) -> str | None:
    text, _ = BAD[cell]
    if text == "slow":
        return registry.task(SLOW).speed.baseline.text.replace("_indexed", "_fast")
    if text == "stub":
        return None
    if cell == "01-predict-time-answer":
        return text + solution
    return text or solution


def test_grade_book_csv_and_feedback_have_each_tasks_points(course):
    from nbgrader.api import Gradebook

    speed = registry.task(SLOW).speed.points  # noise may cost ada some of these, and give bob some
    tasks = registry.tasks("01")
    best, bad = sum(task.points for task in tasks), sum(points for _, points in BAD.values())
    with (course / "grades.csv").open() as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"ada", "bob"}
    assert float(rows["ada"]["max_score"]) == float(rows["bob"]["max_score"]) == best
    assert best - speed <= float(rows["ada"]["score"]) <= best
    assert bad <= float(rows["bob"]["score"]) <= bad + speed
    with Gradebook(f"sqlite:///{course / 'grading' / 'gradebook.db'}") as book:
        grades = book.find_submission_notebook(NAME, NAME, "bob").grades
        points = {grade.name.removesuffix("-points") + "-answer": grade.auto_score for grade in grades}
    wanted = {cell: points for cell, (_, points) in BAD.items()}
    slow, at_least = points.pop(SLOW_CELL), wanted.pop(SLOW_CELL)
    assert points == wanted and at_least <= slow <= at_least + speed
    feedback, of_ada = feedback_of(course, "bob"), feedback_of(course, "ada")
    for words in ("K - 1 additions", "SyntaxError", "Not started", "as fast as the baseline"):
        assert words in feedback
    line = "zip(row, *columns[j : j + 4])"  # a student sees their own answers only
    assert line in of_ada and line not in feedback


def feedback_of(course: Path, student: str) -> str:
    """Return the words of a feedback page, without its markup."""
    page = course / "grading" / "feedback" / student / NAME / f"{NAME}.html"
    return html.unescape(re.sub("<[^>]*>", "", page.read_text(encoding="utf-8")))
