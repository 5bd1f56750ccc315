"""nbgrader's own collecting and autograding, made safe: its commands and the form grader's buttons.

nbgrader opens a submission, repairs its cells, runs it, and reads the points from its outputs. Here it opens
the released notebook instead; what was handed in is read by the intake and judged as `python -m course_lib
grade` does, and both ways enter the same points and marks and make the same graded notebook.
`nbgrader_config.py` puts these classes in place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.exchange.default.collect import ExchangeCollect
from nbgrader.exchange.default.exchange import ignore_patterns
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Bool, Unicode

from course_lib.grading.classroom import assignment as assignments
from course_lib.grading.classroom import gradebook, intake, notebook, secret, team
from course_lib.grading.classroom.assignment import Assignment, AssignmentError
from course_lib.grading.classroom.verdict import SubmissionJob, still_valid
from course_lib.grading.sandbox.bubblewrap import COURSE, Sandbox

ROOT = "The folder that holds solutions/ and exercises/."
FOLDER = "The class's folder: seed, verdicts, submitted/, release/."


class CollectWithoutLinks(ExchangeCollect):
    """Collects links as links: followed, one would bring in a file that only the teacher can read."""

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy what one student handed in."""
        if os.path.islink(src):
            self.log.error("Not collected, as it is a link instead of a folder: %s", src)
            return
        limit = 1000 * self.coursedir.max_dir_size
        if self.get_size(src) > limit:
            self.log.error("Not collected, as it is larger than %s bytes: %s", limit, src)
            return
        ignored = ignore_patterns(
            exclude=self.coursedir.ignore,
            include=self.coursedir.include,
            max_file_size=self.coursedir.max_file_size,
            log=self.log,
        )
        shutil.copytree(src, dest, symlinks=True, ignore=ignored)


class ReleasedNotebookExporter(NotebookExporter):
    """Reads the released notebook in place of the submission: nbgrader trips over many a broken one."""

    root = Unicode(str(COURSE), help=ROOT).tag(config=True)
    class_folder = Unicode("", help=FOLDER).tag(config=True)

    def from_filename(self, filename: str, resources: Any = None, **more: Any) -> tuple[Any, Any]:
        """Return the notebook with every cell that gives points; the file is not opened."""
        import nbformat

        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as book:
            known = book.find_notebook(about["notebook"], about["assignment"])
            points = {cell.name: cell.max_score for cell in known.grade_cells}
            marks = {cell.name: points.get(cell.name) for cell in known.source_cells}
        for folder in (Path(self.class_folder, "release"), Path(self.root, "exercises")):
            with suppress(OSError, ValueError):
                path = folder / about["assignment"] / f"{about['notebook']}.ipynb"
                released = nbformat.read(path, as_version=4)
                if _marks(released) == marks:
                    return self.from_notebook_node(released, resources, **more)
        raise _unfit(about["assignment"], points)


def _marks(released: dict[str, Any]) -> dict[str, float | None]:
    """Return the names of all cells that nbgrader knows, with their points."""
    marks = [cell["metadata"]["nbgrader"] for cell in released["cells"] if "nbgrader" in cell["metadata"]]
    return {one["grade_id"]: one.get("points") if one["grade"] else None for one in marks}


def _unfit(assignment: str, known: Iterable[str]) -> AssignmentError:
    return AssignmentError(
        f"The grade book knows other cells with points of {assignment} than its source has "
        f"({', '.join(sorted(known)) or 'none'}): run nbgrader generate_assignment, or grade with the "
        "course's own command."
    )


class JudgeSubmission(NbGraderPreprocessor):
    """Judges what was handed in in a sandbox and makes the graded notebook from the released one."""

    root = Unicode(str(COURSE), help=ROOT).tag(config=True)
    class_folder = Unicode("", help=FOLDER).tag(config=True)
    unsafe_no_sandbox = Bool(False, help="Run the answers with all of your own rights.").tag(config=True)

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the graded notebook; the verdict goes on to `SaveVerdict`.

        Raises AssignmentError if the grade book knows other cells with points than the assignment has.
        """
        import nbformat

        about = resources["nbgrader"]
        assignment = assignments.load(Path(self.root), about["assignment"])
        known = {cell.metadata.nbgrader.grade_id for cell in nb.cells if utils.is_grade(cell)}
        if known != {item.grade_id for item in assignment.items}:
            raise _unfit(assignment.name, known)
        self._remove_copies(about["student"], assignment.name)
        job = self._job(assignment, about["student"])
        verdict = still_valid(Path(self.class_folder), job) or team.apart(job)  # it may know more of the file
        about["verdict"] = verdict
        about["tasks"] = {assignment.grade_ids[task["id"]]: task for task in verdict["tasks"]}
        made = notebook.graded(nb, job.cells(), verdict, assignment.grade_ids)
        return nbformat.from_dict(made), resources

    def _job(self, assignment: Assignment, student: str) -> SubmissionJob:
        """Return the job for what was handed in, as the intake sees it: links lead nowhere."""
        name, folder = assignment.name, Path(self.class_folder)
        missing = intake.Received(student, "", (f"There is no submission of {student}.",))
        handed_in = {one.student: one for one in intake.receive(folder / "submitted", name)}
        sandbox = Sandbox(private=(folder.resolve(),), unsafe=self.unsafe_no_sandbox)
        one = handed_in.get(student, missing)
        data, problems = one.read()
        seed = secret.seed(folder)
        marks = assignments.marks(Path(self.root))
        return SubmissionJob(
            name, student, assignment.items, data, one.name, problems, seed, sandbox, marks=marks
        )

    def _remove_copies(self, student: str, name: str) -> None:
        """Take away what nbgrader copied from beside the submission: it follows links, and gives it back."""
        given, made = (
            Path(self.class_folder) / step / student / name for step in ("submitted", "autograded")
        )
        kept = {f"{name}.ipynb", *(note.name for note in gradebook.exchange_notes(given))}
        for path in made.iterdir() if made.is_dir() else ():
            if path.name not in kept:
                utils.rmtree(path) if path.is_dir() else utils.remove(path)


class SaveVerdict(SaveAutoGrades):
    """Enters the verdict into the grade book: nbgrader's own step would take every mark for a look away."""

    def _add_score(self, cell: Any, resources: dict[str, Any]) -> None:
        about = resources["nbgrader"]
        mark = cell.metadata.nbgrader.grade_id
        grade = self.gradebook.find_grade(mark, self.notebook_id, self.assignment_id, self.student_id)
        gradebook.enter(grade, about["tasks"][mark], about["verdict"])
        self.gradebook.db.commit()
