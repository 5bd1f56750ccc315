"""nbgrader's side of a class: its grade book and the graded notebooks that its form grader shows."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from course_lib.grading.classroom import notebook
from course_lib.grading.classroom.assignment import Assignment, AssignmentError, source_path
from course_lib.grading.classroom.pages.publish import ByHand
from course_lib.grading.classroom.verdict import SubmissionJob, Verdict
from course_lib.whole_files import write

COURSE_ID = "nine-circles"
BOOK = "gradebook.db"
EXCHANGE_FILES = ("timestamp.txt", "submission_secret.txt")
PATIENCE_MS = 60_000  # the form grader may be writing
LARGEST_EXCHANGE_FILE = 4096  # bytes


class BookLocked(RuntimeError):
    """The grade book cannot be written now; the message says what to do."""


class ClassBook:
    """The grade book of one assignment in the class's folder; use it as a context.

    nbgrader takes some seconds to enter a new assignment. That goes on beside the judging of the first
    submissions; AssignmentError, if it fails, comes from the first `record`.
    """

    def __init__(self, root: Path, folder: Path, assignment: Assignment) -> None:
        self._root = root
        self._folder = folder
        self._assignment = assignment
        self._entering: Future = Future()
        # not waited for when a run ends early: what it leaves is whole or unfinished, as after a kill
        threading.Thread(target=self._enter_assignment, daemon=True).start()

    def __enter__(self) -> ClassBook:
        return self

    def __exit__(self, kind: type | None, *problem: object) -> None:
        if kind is None:
            self._entering.exception()  # waits
        if "_book" in self.__dict__:
            self._book.close()

    @cached_property
    def _book(self) -> Any:
        self._entering.result()  # first of all: two threads must not import nbgrader at once
        import sqlalchemy
        from nbgrader.api import Gradebook

        book = Gradebook(_url(self._folder / BOOK), COURSE_ID)
        book.db.execute(sqlalchemy.text(f"PRAGMA busy_timeout = {PATIENCE_MS}"))
        return book

    def record(self, verdict: Verdict, job: SubmissionJob) -> None:
        """Write a verdict into the grade book and the graded notebook beside it. Twice changes nothing.

        A score that a grader has given by hand stays. BookLocked if another program keeps the book locked.
        """
        name, student = self._assignment.name, verdict["student"]
        with self._writing():
            self._enter(verdict, job.received_at)
        shown = notebook.graded(self._entering.result(), job.cells(), verdict, self._assignment.grade_ids)
        target = self._folder / "autograded" / student / name
        write(target / f"{name}.ipynb", json.dumps(shown, indent=1, ensure_ascii=False) + "\n")
        # what the exchange wrote beside the submission nbgrader wants beside what is made of it
        for note in exchange_notes(self._folder / "submitted" / student / name):
            for step in ("autograded", "feedback"):
                write(self._folder / step / student / name / note.name, note.read_bytes())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Tell a locked grade book in one sentence."""
        try:
            yield
        except Exception as problem:
            if "database is locked" not in str(problem):
                raise
            raise BookLocked(
                f"Another program has locked the grade book {self._folder / BOOK}: end it, and run the same "
                "command again; what is judged is kept."
            ) from None

    def _enter(self, verdict: Verdict, handed_in: str | None) -> None:
        book, name, student = self._book, self._assignment.name, verdict["student"]
        book.update_or_create_student(student)
        when = {"timestamp": handed_in} if handed_in else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SQLAlchemy's, about how nbgrader builds a submission
            book.update_or_create_submission(name, student, **when)
        grades = {grade.name: grade for grade in book.find_submission_notebook(name, name, student).grades}
        for task in verdict["tasks"]:
            enter(grades[self._assignment.grade_ids[task["id"]]], task, verdict)
        book.db.commit()

    def by_hand(self) -> dict[str, ByHand]:
        """Return the scores and comments that graders have given in the form grader, by student.

        A score above the task's points is returned as it was given; the grade book has all points from then
        on, and a comment that says what was entered. BookLocked as in `record`.
        """
        items, release = self._assignment.items, self._entering.result()
        tasks = {item.grade_id: item.task_id for item in items}
        answers = {cell: one.task_id for one in items for cell in notebook.answer_cells(release, one.entry)}
        by_student = {}
        with self._writing():
            for submission in self._book.assignment_submissions(self._assignment.name):
                (page,) = submission.notebooks
                given = [grade for grade in page.grades if grade.manual_score is not None]
                points = {tasks[grade.name]: grade.score for grade in given}
                told = {answers.get(one.name): one for one in page.comments}
                for grade in given:
                    if grade.manual_score > grade.max_score:
                        refuse(grade, told.get(tasks[grade.name]))
                comments = {
                    answers.get(comment.name, ""): comment.manual_comment
                    for comment in page.comments
                    if comment.manual_comment
                }
                if points or comments:
                    by_student[submission.student.id] = ByHand(points, comments)
            self._book.db.commit()
        return by_student

    def _enter_assignment(self) -> None:
        try:
            self._entering.set_result(self._released())
        except BaseException as problem:
            self._entering.set_exception(problem)

    def _released(self) -> dict[str, Any]:
        """Return the released notebook; nbgrader is asked for it when the source has changed."""
        kept = self._folder / "release" / self._assignment.name / f"{self._assignment.name}.ipynb"
        mark = kept.with_name("source.sha256")
        source = hashlib.sha256(source_path(self._root, self._assignment.name).read_bytes()).hexdigest()
        if not (kept.exists() and mark.exists() and mark.read_text() == source and self._is_known()):
            write(kept, self._entered())
            write(mark, source)
        return json.loads(kept.read_text(encoding="utf-8"))

    def _is_known(self) -> bool:
        from nbgrader.api import Gradebook, MissingEntry

        if not (self._folder / BOOK).exists():
            return False
        with Gradebook(_url(self._folder / BOOK), COURSE_ID) as book:
            try:
                cells = book.find_notebook(self._assignment.name, self._assignment.name).grade_cells
            except MissingEntry:
                return False
            return {cell.name for cell in cells} == set(self._assignment.grade_ids.values())

    def _entered(self) -> str:
        """Have nbgrader enter the assignment into the grade book; return the released notebook.

        A new grade book gets its name when it is whole: nbgrader could not go on with half of one.
        """
        from nbgrader.converters import GenerateAssignment
        from nbgrader.converters.base import NbGraderException
        from nbgrader.coursedir import CourseDirectory
        from traitlets.config import Config

        name, book = self._assignment.name, self._folder / BOOK
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = book.with_name(f".{BOOK}.unfinished")
        unfinished.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="nine-circles-") as release, _quiet_nbgrader():
            places = {
                "root": str(self._root.resolve()),
                "course_id": COURSE_ID,
                "source_directory": "solutions",
                "release_directory": release,
                "assignment_id": name,
                "db_url": _url(book if book.exists() else unfinished),
            }
            config = Config(CourseDirectory=places)
            converter = GenerateAssignment(
                coursedir=CourseDirectory(config=config), config=config, force=True
            )
            converter.log.setLevel(logging.ERROR)
            try:
                converter.start()
            except (NbGraderException, SystemExit) as problem:
                raise AssignmentError(
                    f"nbgrader cannot take {name} into the grade book ({problem}): does it hold grades of an "
                    "older form of it? Then grade into a new folder."
                ) from None
            text = (Path(release) / name / f"{name}.ipynb").read_text(encoding="utf-8")
        if unfinished.exists():
            os.replace(unfinished, book)
        return text


def exchange_notes(submitted: Path) -> list[Path]:
    """Return what the exchange wrote beside a submission: small files; a link is a student's trick."""
    notes = [submitted / name for name in EXCHANGE_FILES]
    if submitted.is_symlink() or submitted.parent.is_symlink():
        return []
    return [
        note
        for note in notes
        if not note.is_symlink() and note.is_file() and note.stat().st_size <= LARGEST_EXCHANGE_FILE
    ]


def enter(grade: Any, task: dict[str, Any], verdict: Verdict) -> None:
    """Give nbgrader's grade of one cell the judge's points, and the mark that a person should look at it."""
    settled = grade.manual_score is not None and grade.auto_score == task["points"]
    if not settled:  # what a grader has settled stays so, until the judge finds something new
        doubtful = bool(task["manual"] or verdict["manual"])
        grade.needs_manual_grade = doubtful or grade.manual_score is not None
    grade.auto_score = task["points"]


def refuse(grade: Any, comment: Any | None) -> None:
    """Give nbgrader's grade all points of its cell in place of more, and say so in the answer's comment."""
    entered, grade.manual_score = grade.manual_score, grade.max_score
    said = f"{entered:g} points were entered by hand; this task gives at most {grade.max_score:g}."
    if comment is not None:
        comment.manual_comment = f"{comment.manual_comment or ''}\n{said}".strip()


def _url(book: Path) -> str:
    return f"sqlite:///{book.as_posix()}"


@contextmanager
def _quiet_nbgrader() -> Iterator[None]:
    """Let nbgrader find the program alembic, which lies beside this Python's own programs."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before
