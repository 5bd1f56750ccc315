"""Writing all pages of a class from its verdict files, one file at a time, and its grades as a csv."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib import whole_files
from course_lib.grading.classroom.pages import files
from course_lib.grading.classroom.pages.render import feedback_page, summary_page, teacher_page
from course_lib.grading.classroom.pages.tally import ClassTally, StudentRow
from course_lib.grading.classroom.pages.text import LONG, name, number
from course_lib.grading.classroom.verdict import FORMAT
from course_lib.grading.report import PARTLY, RIGHT, WRONG

OLD = "Not judged as the others: another seed or version, or not at all. Grade this student again."

TOO_MANY = "{given:g} of {most:g} points were given by hand; {points:g} count: look at it in the form grader."


@dataclass(frozen=True)
class PublishedPages:
    """What was written: the teacher's page, the csv, how many students have a page, how many need a look.

    `notes` are sentences for the run's own output.
    """

    summary: Path
    grades: Path
    students: int
    looks: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ByHand:
    """What a person has decided in nbgrader's form grader: it counts more than the judge, on every page.

    Points given to tasks (task id -> points), and comments (task id, "" for no task -> words).
    """

    points: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)


def publish(
    paths: Iterable[Path],
    folder: Path,
    run: dict[str, Any],
    by_hand: Mapping[str, ByHand] | None = None,
) -> PublishedPages:
    """Write the pages of one assignment's verdicts under `folder`; return where the teacher looks first.

    Feedback goes where nbgrader's release_feedback finds it; `by_hand` has for some students what a person
    has decided. Equal verdicts and run give equal bytes, so it does no harm to publish twice. ValueError if a
    verdict cannot be read, is of another assignment, is the second on a student, or names no folder.
    """
    assignment = files.safe(run["assignment"], "assignment's name")
    tally, basis, notes = ClassTally(), run.get("basis"), []
    for path in sorted(paths):
        verdict = read(path, assignment)
        student = verdict["student"]
        if basis is not None and verdict.get("basis") not in (basis, None):
            verdict["manual"].append(OLD)
        verdict = amended(verdict, (by_hand or {}).get(student))
        by_person = [task for task in verdict["tasks"] if "judged_points" in task]
        notes += [f"{name(student)}, {task['id']}: {said}" for task in by_person for said in task["manual"]]
        tally.add(verdict)
        for what, page in (("feedback", feedback_page), ("teacher", teacher_page)):
            whole_files.write(folder / files.place(what, assignment, student), page(verdict))
    summary, grades = (folder / files.place(what, assignment) for what in ("summary", "grades"))
    whole_files.write(summary, summary_page(tally, run))
    write_csv(tally, grades)
    return PublishedPages(summary, grades, len(tally.rows), tally.looks, tuple(notes))


def read(path: Path, assignment: str) -> dict[str, Any]:
    """Return the verdict in a file; ValueError with a sentence if it cannot be published."""
    again = "remove it and grade this student again"
    try:
        verdict = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ValueError(f"The verdict {path} cannot be read ({problem}): {again}.") from problem
    form = verdict.get("format") if isinstance(verdict, dict) else None
    if form != FORMAT:
        raise ValueError(f"The verdict {path} has format {form!r}, but format {FORMAT} is needed: {again}.")
    if verdict["assignment"] != assignment:
        raise ValueError(
            f"The verdict {path} is about {verdict['assignment']!r}, but {assignment!r} is published: "
            "publish each assignment by itself."
        )
    files.safe(verdict["student"], "student's id")
    return verdict


def amended(verdict: dict[str, Any], by_hand: ByHand | None) -> dict[str, Any]:
    """Return the verdict with what a person has decided; what is scored by hand needs no look any more."""
    if by_hand is None:
        return verdict
    tasks = []
    for task in verdict["tasks"]:
        task = {**task, "comment": by_hand.comments.get(task["id"], "")}
        given, most = by_hand.points.get(task["id"]), task["max_points"]
        if given is not None:
            points = min(max(given, 0), most)
            state = RIGHT if points >= most else PARTLY if points > 0 else WRONG
            odd = [TOO_MANY.format(given=given, most=most, points=points)] if points != given else []
            task |= {"points": points, "state": state, "manual": odd, "judged_points": task["points"]}
        tasks.append(task)
    everywhere = all("judged_points" in task for task in tasks)
    manual = [] if everywhere else verdict["manual"]
    return {**verdict, "tasks": tasks, "manual": manual, "comment": by_hand.comments.get("", "")}


# --- the csv ------------------------------------------------------------------------------------------------
# It is UTF-8 with a byte order mark. Without it Excel reads a double-clicked csv in the system's old code
# page and ruins every name beyond ASCII; LibreOffice, pandas and Python's "utf-8-sig" skip the mark. Numbers
# have a decimal point: where a spreadsheet wants a comma, import the file instead of opening it.

BEFORE = ("student", "assignment", "points", "max_points")
AFTER = ("manual", "received")
#: What makes a spreadsheet take a cell for a formula: also in full width, and behind blanks.
FORMULA = re.compile(r"[\s'\"]*[=+\-@＝＋－＠]")
#: A program that separates cells elsewhere sees a new cell behind these.
CELL_WITHIN = re.compile(r"([;,|\t\"␉␊␍]\s*)(?=[=+\-@＝＋－＠])")


def write_csv(tally: ClassTally, path: Path) -> None:
    """Write one line a student: points, per task points and state, why a person must look, the file received.

    The task columns are `<id>` and `<id> state`. Old or new content, never half of it, is at `path`.
    """
    tasks = [*tally.tasks]
    columns = [column for id in tasks for column in (id, f"{id} state")]
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(harmless_cell(column) for column in (*BEFORE, *columns, *AFTER))
    writer.writerows(_cells(row, tasks) for row in tally.rows)
    whole_files.write(path, text.getvalue().encode("utf-8-sig"))


def harmless_cell(text: str) -> str:
    """Return text as one visible line; an apostrophe stops a spreadsheet from taking it for a formula."""
    line = CELL_WITHIN.sub(r"\1'", name(text, LONG))
    return f"'{line}" if FORMULA.match(line) or line.startswith(("␉", "␍", "␊")) else line


def _cells(row: StudentRow, tasks: list[str]) -> list[str]:
    cells = [harmless_cell(row.student), harmless_cell(row.assignment)]
    cells += [number(row.points), number(row.max_points)]
    for id in tasks:
        points, state = row.results.get(id, (None, ""))
        cells += ["" if points is None else number(points), state]
    reasons = "; ".join(f"{id}: {reason}" if id else reason for id, reason in row.manual)
    return [*cells, harmless_cell(reasons), harmless_cell(row.received)]
