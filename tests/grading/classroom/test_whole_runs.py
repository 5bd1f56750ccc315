"""A class from hand-in to grade book: the same grades by every way, and after every kind of accident."""

import argparse
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from short_course import NAME, POINTS, RIGHT, ROOT, answered, hand_in, make_class, make_course, read_notebook

from course_lib.commands import grade as grade_command
from course_lib.grading.classroom import gradebook, run, team, verdict
from course_lib.grading.classroom.assignment import AssignmentError
from course_lib.grading.classroom.intake import IntakeError
from course_lib.grading.classroom.run import Busy, GradingOrder, grade
from course_lib.grading.classroom.verdict import UNJUDGED

pytestmark = [pytest.mark.usefixtures("form_of_grade_books"), pytest.mark.needs("bubblewrap")]
STUDENTS = 4  # one of each kind, and one more for an accident of its own


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    return make_course(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def graded(course, tmp_path_factory, form_of_grade_books) -> tuple[Path, Path]:
    """A class, graded once: (submissions, class folder)."""
    submissions = make_class(course, tmp_path_factory.mktemp("handed-in"), STUDENTS)
    folder = tmp_path_factory.mktemp("class")
    done = grade(GradingOrder(submissions, folder, course))
    assert (done.judged, done.kept) == (STUDENTS, 0)
    return submissions, folder


@pytest.fixture
def copied(graded, tmp_path) -> tuple[Path, Path]:
    """The same with a class folder of one's own."""
    return graded[0], shutil.copytree(graded[1], tmp_path / "class")


def points_in_csv(folder: Path) -> dict[str, float]:
    rows = csv.DictReader((folder / f"{NAME}-grades.csv").open(encoding="utf-8-sig"))
    return {row["student"]: float(row["points"]) for row in rows}


def points_in_book(folder: Path) -> dict[str, float]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as book:
        return {one.student.id: one.score for one in book.assignment_submissions(NAME)}


def expected(students: int) -> dict[str, float]:
    return {f"student{number:03d}": POINTS[number % 3] for number in range(students)}


def test_csv_grade_book_verdicts_and_the_form_graders_notebook_agree(graded):
    import nbformat
    from nbgrader.utils import determine_grade, is_grade

    _, folder = graded
    assert points_in_csv(folder) == points_in_book(folder) == expected(STUDENTS)
    for path in (folder / "verdicts" / NAME).glob("*.json"):
        verdict = json.loads(path.read_text())
        assert sum(task["points"] for task in verdict["tasks"]) == expected(STUDENTS)[verdict["student"]]
    shown = nbformat.read(folder / "autograded" / "student001" / NAME / f"{NAME}.ipynb", as_version=4)
    nbformat.validate(shown)
    cells = [cell for cell in shown.cells if is_grade(cell)]
    assert [determine_grade(cell)[0] for cell in cells] == [0.0, 0.0]
    assert "One addition too many" in cells[0].outputs[0].data["text/plain"]
    answer = next(cell for cell in shown.cells if cell.metadata.get("nbgrader", {}).get("solution"))
    assert "M * N * K, M * N * K" in answer.source


def test_a_second_run_by_the_command_judges_nothing_anew_and_changes_no_byte(course, graded):
    submissions, folder = graded
    before = {path: path.read_bytes() for path in (folder / "feedback").rglob("*.html")}
    done = subprocess.run(
        command(course, submissions, folder), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and f"0 judged, {STUDENTS} kept" in done.stdout
    for name in (f"{NAME}-summary.html", f"{NAME}-grades.csv", "feedback"):
        assert str(folder / name) in done.stdout
    assert before == {path: path.read_bytes() for path in (folder / "feedback").rglob("*.html")}
    assert points_in_csv(folder) == points_in_book(folder) == expected(STUDENTS)


def test_what_a_person_decides_is_on_every_page_and_stays(course, copied):
    from nbgrader.api import Gradebook

    submissions, copy = copied
    with Gradebook(f"sqlite:///{copy / 'gradebook.db'}") as book:
        page = book.find_submission_notebook(NAME, NAME, "student001")
        grade_of = {one.name: one for one in page.grades}
        grade_of["01-count-points"].manual_score = 0.5
        grade_of["01-count-points"].needs_manual_grade = False
        grade_of["01-dot-points"].manual_score = 99  # a slip of the finger
        {one.name: one for one in page.comments}["01-count-answer"].manual_comment = "Nearly: <K - 1>"
        book.db.commit()
    for notes in ("student001, 01.dot: 99 of 1 points were given by hand; 1 count: look", ""):
        done = grade(GradingOrder(submissions, copy, course))
        assert done.judged == 0 and " ".join(done.notes).startswith(notes) and bool(notes) == bool(done.notes)
        assert points_in_csv(copy)["student001"] == points_in_book(copy)["student001"] == 1.5
        assert ("99 of 1 points" in (copy / f"{NAME}-summary.html").read_text()) == bool(notes)
        page = (copy / "feedback" / "student001" / NAME / f"{NAME}.html").read_text()
        assert "A person gave these points" in page and "Nearly: &lt;K - 1&gt;" in page
        assert "99 points were entered by hand; this task gives at most 1." in page
        with Gradebook(f"sqlite:///{copy / 'gradebook.db'}") as book:
            (page,) = book.find_submission("short", "student001").notebooks
            assert not next(one for one in page.grades if one.name == "01-count-points").needs_manual_grade


def moodle(course: Path, folder: Path, person: str, number: int, answers) -> None:
    place = folder / f"{person}_{number}_assignsubmission_file_"
    place.mkdir(parents=True)
    (place / "my notebook.ipynb").write_text(json.dumps(answered(course, answers)))


@pytest.mark.slow
def test_people_keep_their_own_grades_over_several_downloads(course, tmp_path):
    """Two of one name, what was collected, an older file, another assignment's notebook."""
    moodle(course, tmp_path / "a", "Ada Lovelace", 111, RIGHT)
    moodle(course, tmp_path / "b", "Ada Lovelace", 999, {})
    folder, table = tmp_path / "class", tmp_path / "class" / f"{NAME}-grades.csv"
    shutil.copytree(tmp_path / "a", tmp_path / "both")
    shutil.copytree(tmp_path / "b", tmp_path / "both", dirs_exist_ok=True)
    told = ""
    for source, judged in (("a", 1), ("b", 1), ("both", 0), ("class/submitted", 0), ("both", 0)):
        assert grade(GradingOrder(tmp_path / source, folder, course)).judged == judged, source
        told += table.read_text(encoding="utf-8-sig")
    expected = {"Ada_Lovelace": 2.0, "Ada_Lovelace_999": 0.0}
    assert points_in_csv(folder) == points_in_book(folder) == expected
    assert "Somebody else of this name" in told
    assert "Ada Lovelace_111_assignsubmission_file_/my notebook.ipynb" in told
    moodle(course, tmp_path / "old", "Ada Lovelace", 111, {})
    other = read_notebook(ROOT / "exercises" / "02_compiled_loops" / "02_compiled_loops.ipynb")
    bobs = hand_in(course, tmp_path / "old", "bob", json.dumps(other).encode())
    bobs.rename(bobs.with_name("Ada Lovelace_999_assignsubmission_file_.ipynb"))
    grade(GradingOrder(tmp_path / "old", folder, course))
    assert points_in_csv(folder)["Ada_Lovelace"] == points_in_csv(folder)["bob"] == 0.0
    told = (folder / f"{NAME}-summary.html").read_text()
    assert "was graded before with 2 points" in told and "none of the functions of short" in told


def test_a_damaged_verdict_is_set_aside_and_a_folder_may_be_relative(course, copied, tmp_path, monkeypatch):
    submissions, copy = copied
    (copy / "verdicts" / NAME / "gone.json").write_text("{")
    (copy / "verdicts" / NAME / "odd.json").write_text("[1]")
    (left := copy / "feedback" / ".page.html.0a.unfinished").touch()  # by a run that was killed
    monkeypatch.chdir(tmp_path)
    done = grade(GradingOrder(submissions, Path("class"), course))
    assert "gone.json was damaged" in done.notes[0] and "odd.json" in done.notes[1] and done.kept == STUDENTS
    assert not left.exists()


def test_a_locked_grade_book_is_one_sentence_and_loses_nothing(course, copied, tmp_path, monkeypatch):
    import sqlite3

    _, copy = copied
    monkeypatch.setattr(gradebook, "PATIENCE_MS", 50)
    other = sqlite3.connect(copy / "gradebook.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    hand_in(course, tmp_path / "more", "zoe", RIGHT)
    with pytest.raises(gradebook.BookLocked, match="run the same command again"):
        grade(GradingOrder(tmp_path / "more", copy, course))
    other.execute("ROLLBACK")
    assert grade(GradingOrder(tmp_path / "more", copy, course)).kept == 1
    assert points_in_csv(copy) == points_in_book(copy) == {**expected(STUDENTS), "zoe": 2.0}


def test_an_order_that_cannot_be_done_is_one_sentence_and_judges_nothing(
    course, graded, tmp_path, monkeypatch
):
    submissions, folder = graded
    with run._alone(folder), pytest.raises(Busy, match="Another run"):
        grade(GradingOrder(submissions, folder, course))
    (tmp_path / "in" / "photos").mkdir(parents=True)
    (tmp_path / "in" / "photos" / "a.jpg").write_bytes(b"jpeg")
    new = tmp_path / "class"
    with pytest.raises(IntakeError, match="There is no notebook"):
        grade(GradingOrder(tmp_path / "in", new, course, assignment=NAME))
    with pytest.raises(IntakeError):
        grade(GradingOrder(tmp_path / "nowhere", new, course))
    with pytest.raises(AssignmentError, match=r"There is no assignment 'long'.*found: short"):
        grade(GradingOrder(tmp_path, new, course, assignment="long"))
    assert not new.exists()
    monkeypatch.setattr(team, "PATIENCE", "1s")
    with pytest.raises(team.SchedulerError, match=r"There is no Dask scheduler at tcp://127\.0\.0\.1:9"):
        grade(GradingOrder(submissions, new, course, scheduler="tcp://127.0.0.1:9"))


def test_a_wrong_upload_stops_nobody_and_is_told(tmp_path):
    def handed_in(student: str, name: str, *foreign: str) -> None:
        notebook = read_notebook(ROOT / "exercises" / name / f"{name}.ipynb")
        cells = [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("points")]
        for cell, mark in zip(cells, foreign, strict=False):
            cell["metadata"]["nbgrader"]["grade_id"] = mark
        path = tmp_path / "in" / f"{student}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(notebook))

    handed_in("ada", "02_compiled_loops", "01-rows-points")  # the first to be looked at
    handed_in("bob", "01_python_loops")
    order = GradingOrder(tmp_path / "in", tmp_path / "class")
    with pytest.raises(AssignmentError, match=r"like 01_p.*: bob\.ipynb; 02_c.*: ada\.ipynb\."):
        run._assignment(order)
    handed_in("cy", "02_compiled_loops")
    assignment = run._assignment(order)
    assert assignment.name == "02_compiled_loops"
    jobs = run._Run(order, assignment, order.sandbox(), 7)._jobs(run.intake.receive(order.source, "02"))
    told = {job.student: verdict._another_assignments(job.cells(), job) for job in jobs}
    assert told["ada"] == told["cy"] == "" and "is of 01_python_loops" in told["bob"]


def test_two_who_share_a_participants_number_have_a_row_each(course, tmp_path):
    person = "Ada Lovelace_111_assignsubmission_file_"
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for name in (f"{person}/x.ipynb", f"../{person}/x.ipynb", f"Ada Lovelace-2_5{person[-23:]}/x.ipynb"):
            archive.writestr(name, "{}")
    for judged in (3, 0):
        done = grade(GradingOrder(tmp_path / "in.zip", tmp_path / "class", course))
        assert (done.judged, len(points_in_csv(tmp_path / "class"))) == (judged, 3)


# --- accidents ---


def deadly(job):
    if job.student == "student001":
        re.match("(a+)+$", "a" * 60 + "b")  # for ages, in C
    if job.student == "student002":
        os.kill(os.getpid(), signal.SIGKILL)
    if job.student == "student003":
        raise RuntimeError("something nobody thought of")
    return team.judged(job)


def test_what_kills_or_stops_the_grader_costs_nobody_else_a_grade(course, graded, monkeypatch):
    submissions, folder = graded
    monkeypatch.setattr(team, "OWN_S", 5.0)
    order = GradingOrder(submissions, folder, course)
    assignment = run._assignment(order)
    jobs = run._Run(order, assignment, order.sandbox(), 7)._jobs(run.intake.receive(submissions, NAME))
    verdicts = {one["student"]: one for one in team.local(jobs, 2, deadly)}
    got = {student: sum(task["points"] for task in one["tasks"]) for student, one in verdicts.items()}
    assert got == {**expected(STUDENTS), "student001": 0, "student002": 0, "student003": 0}
    assert "more than 5 s of the grader's own time" in verdicts["student001"]["manual"][0]
    assert verdicts["student003"]["key"] == UNJUDGED  # so the next run tries again
    assert "ended the grader's own process" in verdicts["student002"]["manual"][0]
    assert "something nobody thought of" in verdicts["student003"]["manual"][0]


def command(course: Path, submissions: Path, folder: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "course_lib", "grade", str(submissions)),
        *("--class-folder", str(folder), "--root", str(course), "--workers", "2", *more),
    ]


@pytest.mark.slow
def test_killed_at_twenty_moments_it_resumes_with_the_same_grades(course, tmp_path):
    """Kill twenty runs after random times, then let one finish: nothing lost, nothing doubled."""
    students, rng = 60, random.Random(5)
    submissions = make_class(course, tmp_path / "submissions", students)
    folder = tmp_path / "class"
    words = command(course, submissions, folder)
    for _ in range(20):
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 6.0))
        process.kill()
        process.wait()
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert points_in_csv(folder) == points_in_book(folder) == expected(students)
    assert len(list((folder / "feedback").glob(f"*/{NAME}/{NAME}.html"))) == students
    assert not [path for path in folder.rglob("*") if "unfinished" in path.name]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_run_ends_at_once_and_leaves_no_process_behind(course, tmp_path, end):
    """One Ctrl-C is enough, whatever the answers do."""
    import psutil

    endless = {"01-count-answer": "def operations(M, K, N):\n    while True:\n        pass\n"}
    for number in range(4):
        hand_in(course, tmp_path / "in", f"student{number}", endless)
    words = command(course, tmp_path / "in", tmp_path / "class")
    process = psutil.Popen(
        words,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it is ignored
    )
    children, give_up = [], time.perf_counter() + 60
    begun = tmp_path / "class" / "submitted"  # a sandbox before that is the one that is tried out
    while not any(map(_is_in_its_loop, children)) or not begun.exists():
        children = process.children(recursive=True)
        assert time.perf_counter() < give_up
    process.send_signal(end)
    said = process.communicate(timeout=8)[1]  # a call has 10 s
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not [one for one in alive if _name(one)]
    if end == signal.SIGINT:
        assert process.returncode == 130 and "Traceback" not in said
        assert "the same command goes on from here. Not judged yet: student0, student1" in said


def test_a_second_ctrl_c_while_hands_are_ended_ends_them_all_the_same(monkeypatch):
    kill, asked = team._Hand.kill, []

    def interrupted(hand):
        asked.append(hand)
        if len(asked) == 1:
            raise KeyboardInterrupt
        kill(hand)

    monkeypatch.setattr(team._Hand, "kill", interrupted)
    verdicts = team.local([0, 30], 1, time.sleep)
    assert next(verdicts) is None
    with pytest.raises(KeyboardInterrupt):
        verdicts.close()
    assert asked[0]._process.poll() is not None


def _is_in_its_loop(process) -> bool:
    """Whether an answer has computed for longer than it takes to start: no end of its wire ends it then."""
    import psutil

    try:
        above = process.parent()
        return above is not None and _name(above) == "bwrap" and process.cpu_times().user > 3
    except psutil.Error:
        return False


def _name(process) -> str:
    import psutil

    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else process.name()
    except psutil.Error:
        return ""


# --- a cluster, the command ---


def test_a_cluster_gives_the_same_grades(course, graded, tmp_path):
    from distributed import LocalCluster

    submissions, _ = graded
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        order = GradingOrder(submissions, tmp_path / "class", course, scheduler=cluster.scheduler_address)
        assert grade(order).judged == STUDENTS
    assert points_in_csv(tmp_path / "class") == points_in_book(tmp_path / "class") == expected(STUDENTS)


def test_the_command_refuses_with_one_sentence(course, graded, capsys):
    parser = argparse.ArgumentParser()
    grade_command.add_arguments(parser)
    submissions, folder = graded
    for more, says in (
        (("--assignment", "long"), "There is no assignment 'long'"),
        (("--workers", "-1"), "--workers is -1"),
    ):
        words = command(course, submissions, folder)[4:]
        assert grade_command.run(parser.parse_args([*words, *more])) == 2
        told = capsys.readouterr().err
        assert says in told and told.startswith("grade: ") and told.count("\n") == 1, more
