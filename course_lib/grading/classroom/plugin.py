"""nbgrader's own autograding, made safe: its command and the form grader's button judge outside, too.

nbgrader runs a list of preprocessors over each submission. This one stands in for the one that executes the
notebook: it runs no cell, has every task judged as `python -m course_lib grade` does, and writes the points
where nbgrader reads them. What was judged already is taken over, so that both ways give the same grades.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Unicode

from course_lib.grading.classroom import assignment as assignments
from course_lib.grading.classroom import notebook, secret
from course_lib.grading.classroom.verdict import Job, Verdict, judged
from course_lib.grading.kernel.sandbox import COURSE, Sandbox


class JudgeOutside(NbGraderPreprocessor):
    """Judges the answers of one notebook in a sandbox and gives each grade cell its points."""

    root = Unicode(str(COURSE), help="The folder that holds solutions/.").tag(config=True)
    class_folder = Unicode("", help="The class's folder: seed, verdicts, submitted/.").tag(config=True)
    unsafe_no_sandbox = Bool(False, help="Run the answers with all of your own rights.").tag(config=True)

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Replace the outputs of all cells by what the judge says."""
        import nbformat

        about = resources["nbgrader"]
        assignment = assignments.load(Path(self.root), about["assignment"])
        job = self._job(assignment, about["student"], nbformat.writes(nb).encode("utf-8", "replace"))
        verdict = self._kept(job) or judged(job)
        tasks = {item.grade_id: task for item, task in zip(assignment.items, verdict["tasks"], strict=True)}
        for cell in nb.cells:
            notebook.without_output(cell)
            task = tasks.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if task is not None:
                notebook.write_points(cell, task)
        return nbformat.from_dict(nb), resources

    def _job(self, assignment: assignments.Assignment, student: str, data: bytes) -> Job:
        """Return the job for what was handed in; if that is not there, for nbgrader's clean copy of it."""
        name, folder = assignment.name, Path(self.class_folder)
        raw = folder / "submitted" / student / name / f"{name}.ipynb"
        data = raw.read_bytes() if raw.is_file() else data
        sandbox = Sandbox(private=(folder.resolve(),), unsafe=self.unsafe_no_sandbox)
        return Job(name, student, assignment.items, data, f"{name}.ipynb", (), secret.seed(folder), sandbox)

    def _kept(self, job: Job) -> Verdict | None:
        """Return the verdict of an earlier run on these very bytes, under this seed and this course."""
        path = Path(self.class_folder) / "verdicts" / job.assignment / f"{job.student}.json"
        try:
            verdict = json.loads(path.read_text(encoding="utf-8"))
            same = verdict["received"]["sha256"] == hashlib.sha256(job.data).hexdigest()
            return verdict if same and verdict["basis"] == job.basis() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None
