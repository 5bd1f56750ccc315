"""Judging one submission: every task on the secret inputs, and what the student may be told.

A verdict is plain data that is written as JSON. It is the unit of work of a class: made once, by any process
on any machine.

    format, assignment, student
    key, basis      what it depends on (see `SubmissionJob`): with another key it is made anew
    received        name, sha256 and bytes of the file
    reading, manual why a person should look at the submission: found in the file; that and what intake says
    tasks           of every task, in order: id, title, points, max_points, state,
                    feedback   the report for the student (`Report.to_json`): no secret input in it
                    teacher    the report with the secret inputs
                    why        one line that is the same for equal mistakes
                    manual     why a person should look at this task
                    answer     the text that was judged; lines: the number of each in its cell
                    seconds    kernel: how long the answer's processes lived; wall
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.metadata
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from course_lib.grading.check import PUBLIC_SEED
from course_lib.grading.classroom import assignment, submission
from course_lib.grading.classroom.assignment import Item
from course_lib.grading.classroom.oddities import oddities
from course_lib.grading.collect import Answer, collect
from course_lib.grading.judge import FIXED_WORDS, OTHER_INPUTS, judge, not_started, refused
from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, WRONG, Report
from course_lib.grading.sandbox.bubblewrap import NoSandbox, Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.sandbox.process import GraderFault
from course_lib.grading.task import Task

FORMAT = 1
UNJUDGED = "not judged"  # in place of a key
LIBRARIES = ("numpy", "numba", "numba-cuda", "llvmlite")
#: Folders of the library that grade or that references and inputs of tasks come from.
ROOMS = ("distributed", "fp8", "grading", "measure", "simulators", "training")
MOST_REASONS, LONGEST_REASON = 20, 300
Verdict = dict[str, Any]
LONGEST_ANSWER = 100_000  # characters of an answer that are kept for the pages
UNREADABLE = "What was handed in could not be read as a notebook: hand in the .ipynb file itself."
#: Ways to make a function that no cell shows.
RUN_TIME = re.compile(
    r"\b(exec|eval|globals|locals|setattr|__import__|importlib|vars)\b|^[ \t]*%", re.MULTILINE
)
FITTED = "Passes with the public inputs and fails with the secret ones: fitted to them, or right by luck?"
BY_LUCK = "Passes with the secret inputs alone: check() says that it is wrong, and so it has no points."
MISSING = re.compile("ModuleNotFoundError|FileNotFoundError")
SECRET = "Right on the secret inputs."
GRADED = "Right on the inputs of the grading, which differ from the visible ones."
OTHER = "The visible tests pass, but with other inputs the result is not right."
OTHER_NOTE = (
    "Which inputs those are is not told. Think of what may vary: shapes, dtypes, sizes, special values."
)


@cache
def course_mark() -> str:
    """Return a hash of what grades: the code, by name and content, and the versions it runs on."""
    folder = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(repr([sys.version_info[:3], *map(_version, LIBRARIES)]).encode())
    for room in ROOMS:
        for path in sorted((folder / room).rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # numba-cuda: not on macOS
        return "none"


@dataclass(frozen=True)
class SubmissionJob:
    """One submission to be judged. `data` are the notebook's bytes, None if there is no usable one."""

    assignment: str
    student: str
    items: tuple[Item, ...]
    data: bytes | None
    name: str
    problems: tuple[str, ...]
    seed: int
    sandbox: Sandbox
    course: str = field(default_factory=course_mark)  # found out once, not by every worker
    marks: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of all assignments
    received_at: str | None = None  # the text of nbgrader's timestamp.txt

    def basis(self) -> str:
        """Return what every verdict of this run depends on, as one word: tasks, seed, limits, course."""
        parts = [self.assignment, repr(self.items), repr(self.sandbox.limits), repr(self.sandbox.unsafe)]
        return _hash(*parts, str(self.seed), self.course)

    def key(self) -> str:
        """Return what this verdict depends on, as one word: one with the same key is still valid."""
        content = "none" if self.data is None else hashlib.sha256(self.data).hexdigest()
        return _hash(self.basis(), self.student, content)

    def cells(self) -> tuple[submission.Cell, ...]:
        """Return the cells that can be read of what was handed in."""
        return submission.read(self.data).cells


def place(folder: Path, assignment: str, student: str) -> Path:
    """Return where a verdict is kept in the class's folder."""
    return folder / "verdicts" / assignment / f"{student}.json"


def earlier(folder: Path, assignment: str, student: str) -> Verdict | None:
    """Return a student's verdict of an earlier run; None if there is none, or none that is whole."""
    try:
        verdict = json.loads(place(folder, assignment, student).read_text(encoding="utf-8"))
        whole = verdict["student"] == student and verdict["received"]["name"] is not None
        return verdict if whole and verdict["tasks"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def still_valid(folder: Path, job: SubmissionJob) -> Verdict | None:
    """Return the verdict of an earlier run, if nothing it depends on has changed."""
    verdict = earlier(folder, job.assignment, job.student)
    return verdict if verdict is not None and verdict.get("key") == job.key() else None


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def judged(job: SubmissionJob) -> Verdict:
    """Return the verdict on a submission."""
    read = submission.read(job.data)
    tasks = [_task(item, read.cells, job) for item in job.items]
    reading = [*read.problems]
    if other := _another_assignments(read.cells, job):
        reading.append(other)
    elif read.cells and not any(task["answer"] for task in tasks):
        told = f"none of the functions of {job.assignment} ({', '.join(item.entry for item in job.items)})"
        reading.append(f"The notebook has {told}: is it another assignment's?")
    verdict = {
        "format": FORMAT,
        "assignment": job.assignment,
        "student": job.student,
        "key": job.key(),
        "basis": job.basis(),
        "reading": reading,
        "tasks": tasks,
    }
    return received(verdict, job)


def _another_assignments(cells: Sequence[submission.Cell], job: SubmissionJob) -> str:
    """Say so if a notebook has more of another assignment than of this one."""
    told = assignment.told_by(cells, job.marks)
    name, most = max(told.items(), key=lambda one: one[1], default=("", 0))
    if most <= told[job.assignment]:
        return ""
    return (
        f"The notebook is of {name}, to judge by its cells, and was handed in as {job.assignment}: ask for "
        "the right file."
    )


def received(verdict: Verdict, job: SubmissionJob) -> Verdict:
    """Return the verdict with what is known of the file: its name and what is odd about it may change."""
    file = {
        "name": job.name,
        "sha256": hashlib.sha256(job.data).hexdigest() if job.data is not None else "",
        "bytes": len(job.data or b""),
    }
    return {**verdict, "received": file, "manual": _bounded([*job.problems, *verdict["reading"]])}


def _bounded(reasons: Sequence[str]) -> list[str]:
    """Return each reason once, and no more than anybody reads."""
    different = [reason[:LONGEST_REASON] for reason in dict.fromkeys(reasons)]
    more = len(different) - MOST_REASONS
    return [*different[:MOST_REASONS], *([f"… and {more} more."] if more > 0 else [])]


def unjudged(job: SubmissionJob, why: str) -> Verdict:
    """Return the verdict on a submission that could not be judged: no points, and a manual look.

    It has no valid key: the next run tries again.
    """
    verdict = judged(replace(job, data=None))
    unkeyed = {**verdict, "key": UNJUDGED, "basis": UNJUDGED, "reading": [why, *verdict["reading"]]}
    return received(unkeyed, job)


def _task(item: Item, cells: Sequence[submission.Cell], job: SubmissionJob) -> dict[str, Any]:
    """Judge one task so that whatever is odd about its answer costs no other one.

    What the machine lacks (GraderFault, OSError, MemoryError) is no answer's fault and goes on to the caller.
    """
    start, task = time.perf_counter(), item.task
    answer, process_s = Answer(), 0.0
    texts = [cell.text for cell in cells if cell.is_answer]
    try:
        answer = collect(texts, item.entry)
        report, feedback, process_s, manual = _judged_task(item, answer, texts if cells else None, job)
    except (GraderFault, NoSandbox, OSError, MemoryError):
        raise
    except Exception as problem:
        report = feedback = refused(task, "This answer could not be judged; a person will look at it.")
        answer, manual = Answer(), [f"Judging it failed ({type(problem).__name__}: {problem})."]
    return {
        "id": task.id,
        "title": task.title,
        "points": report.points,
        "max_points": report.max_points,
        "state": report.state,
        "feedback": feedback.to_json(),
        "teacher": report.to_json(),
        "why": _why(task, report),
        "manual": _bounded(manual),
        "answer": (answer.text or answer.cell)[:LONGEST_ANSWER],
        "lines": [*answer.lines[:LONGEST_ANSWER]],
        "seconds": {"kernel": round(process_s, 4), "wall": round(time.perf_counter() - start, 4)},
    }


def _judged_task(
    item: Item, answer: Answer, cells: Sequence[str] | None, job: SubmissionJob
) -> tuple[Report, Report, float, list[str]]:
    """Return the teacher's report, the student's, how long the answer's processes lived, and doubts.

    `cells` is None for what is no notebook.
    """
    task, entry = item.task, item.entry
    nothing = not_started(task, f"Not started: the notebook has no `{entry}` that was begun.")
    if cells is None:
        nothing = not_started(task, UNREADABLE)
        return nothing, nothing, 0.0, []
    if answer.problem:
        report = refused(task, answer.problem)
        is_slip = answer.problem.startswith(("SyntaxError", "IndentationError", "TabError"))
        return report, report, 0.0, [] if is_slip else [answer.problem]
    if not answer.text:
        return nothing, nothing, 0.0, _made_at_run_time(cells, entry)
    public, report, process_s, manual = _judge(item, answer, job)
    if public.state == WRONG and report.points:  # check() said so
        public = replace(public, max_points=report.max_points)
        return public, public, process_s, [*manual, BY_LUCK]
    report = nothing if report.state == NOT_STARTED else report
    feedback, doubts = _for_the_student(task, public, report)
    return _with_line(report, OTHER_INPUTS, SECRET), feedback, process_s, [*manual, *doubts]


def _with_line(report: Report, old: str, new: str) -> Report:
    return replace(report, lines=tuple(new if line == old else line for line in report.lines))


def _made_at_run_time(cells: Sequence[str], entry: str) -> list[str]:
    """Say so if a function that no cell defines may come into being in another way."""
    for text in cells:
        if RUN_TIME.search(text) and re.search(rf"\b{re.escape(entry)}\b", text):
            return [f"No cell defines {entry} in plain sight, but one may make it at run time."]
    return []


def _judge(item: Item, answer: Answer, job: SubmissionJob) -> tuple[Report, Report, float, list[str]]:
    """Return the reports on public and on secret inputs, how long its processes lived, what to look at.

    The public inputs come first. What an answer says of them its student reads; so there must be nothing yet
    that it could have learned from the secret ones, wherever it might have kept it.
    """
    task, entry = item.task, item.entry
    code = task.code(answer.text, entry)
    with SandboxedRunner(code, job.sandbox, answer.lines, oracle=task.oracle) as runner:
        public = judge(replace(task, speed=None), runner, answer.text, PUBLIC_SEED, entry)
        if public.state == WRONG:
            runner.close()  # what failed may have left something behind
        runner.begin_anew()
        report = judge(task, runner, answer.text, job.seed, entry)
    missing = [f"It needs something that is not here: {line}" for line in report.lines if MISSING.match(line)]
    odd = oddities(task, item.size, answer.text, report, runner.timing)
    return public, report, runner.process_seconds, [*runner.incidents, *missing, *odd]


def _for_the_student(task: Task, public: Report, report: Report) -> tuple[Report, list[str]]:
    """Return a report that gives no secret input away: the fault on the public inputs, if it shows there."""
    if report.state != WRONG or report.points:
        return _with_line(report, OTHER_INPUTS, GRADED), []
    if public.state != RIGHT:
        return replace(public, points=report.points, max_points=report.max_points), []
    return _redacted(task, report), [FITTED]


def _redacted(task: Task, report: Report) -> Report:
    """Keep of a report only words that are the same for all inputs, and a name of Python's own exceptions."""
    fixed = {*FIXED_WORDS, *task.lookalikes}
    kept = [line for line in report.lines if line in fixed]
    name = re.match(r"\w*", report.lines[0])[0] if report.lines else ""
    raised = getattr(builtins, name, None)
    if isinstance(raised, type) and issubclass(raised, BaseException):
        kept.append(f"It raised {name}.")
    return replace(report, lines=(OTHER, *kept), mismatch=None, notes=(OTHER_NOTE,))


def _why(task: Task, report: Report) -> str:
    """Return one line that is the same for equal mistakes; empty for a right answer."""
    if report.state == RIGHT or not report.lines:
        return ""
    if report.state == PARTLY:
        return "Right, but not fast enough for all points."
    named = next((line for line in report.lines if line in task.lookalikes), None)
    return named or re.sub(r"-?\d[\d.,]*(e[+-]?\d+)?", "…", report.lines[0])[:200]
