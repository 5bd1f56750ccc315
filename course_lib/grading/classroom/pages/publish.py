"""Writing all pages of a class from its verdict files, one file at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from course_lib.grading.classroom.pages import files
from course_lib.grading.classroom.pages.by_hand import ByHand, amended
from course_lib.grading.classroom.pages.feedback import feedback_page, teacher_page
from course_lib.grading.classroom.pages.summary import summary_of
from course_lib.grading.classroom.pages.table import write_tally
from course_lib.grading.classroom.pages.tally import Tally

FORMAT = 1
OLD = "Not judged as the others: another seed or version, or not at all. Grade this student again."


@dataclass(frozen=True)
class Published:
    """What was written: the teacher's page, the csv, how many students have a page, how many need a look."""

    summary: Path
    grades: Path
    students: int
    looks: int


def publish(
    paths: Iterable[Path],
    folder: Path,
    run: dict[str, Any],
    by_hand: Mapping[str, ByHand] = MappingProxyType({}),
) -> Published:
    """Write the pages of one assignment's verdicts under `folder`; return where the teacher looks first.

    Feedback goes where nbgrader's release_feedback finds it; `by_hand` has for some students what a person
    has decided. Equal verdicts and run give equal bytes, so it does no harm to publish twice. ValueError if a
    verdict cannot be read, is of another assignment, is the second on a student, or names no folder.
    """
    assignment = files.safe(run["assignment"], "assignment's name")
    tally = Tally()
    for path in sorted(paths):
        verdict = read(path, assignment)
        student = verdict["student"]
        verdict = amended(_dated(verdict, run.get("basis")), by_hand.get(student))
        tally.add(verdict)
        files.write(folder / files.feedback_place(student, assignment), feedback_page(verdict))
        files.write(folder / files.teacher_place(student, assignment), teacher_page(verdict))
    done = Published(
        folder / files.summary_place(assignment),
        folder / files.grades_place(assignment),
        len(tally.rows),
        tally.looks,
    )
    files.write(done.summary, summary_of(tally, run))
    write_tally(tally, done.grades)
    return done


def _dated(verdict: dict[str, Any], basis: str | None) -> dict[str, Any]:
    """Return the verdict with a word to the teacher if it was made under another seed, course or task."""
    if basis is None or verdict.get("basis") in (basis, None):
        return verdict
    return {**verdict, "manual": [*verdict["manual"], OLD]}


def read(path: Path, assignment: str) -> dict[str, Any]:
    """Return the verdict in a file; ValueError with a sentence if it cannot be published."""
    try:
        verdict = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ValueError(
            f"The verdict {path} cannot be read ({problem}): remove it and grade this student again."
        ) from problem
    found = verdict.get("format") if isinstance(verdict, dict) else None
    if found != FORMAT:
        raise ValueError(
            f"The verdict {path} has format {found!r}, but format {FORMAT} is needed: "
            "remove it and grade this student again."
        )
    if verdict["assignment"] != assignment:
        raise ValueError(
            f"The verdict {path} is about {verdict['assignment']!r}, but {assignment!r} is published: "
            "publish each assignment by itself."
        )
    files.safe(verdict["student"], "student's id")
    return verdict
