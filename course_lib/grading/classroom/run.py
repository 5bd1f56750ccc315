"""Grading a class from what a learning platform gives to grade book, feedback, csv and summary.

Every verdict is written before anything is made of it, and everything made of it can be made again. So the
run may be killed at any moment: the next one takes up what is there and does the rest.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from course_lib.grading.classroom import assignment as assignments
from course_lib.grading.classroom import intake, secret, submission, team
from course_lib.grading.classroom.assignment import Assignment, AssignmentError
from course_lib.grading.classroom.gradebook import ClassBook
from course_lib.grading.classroom.intake import IntakeError
from course_lib.grading.classroom.names import fold, free_id, safe_id, shown, some
from course_lib.grading.classroom.pages.publish import PublishedPages, publish
from course_lib.grading.classroom.verdict import (
    UNJUDGED,
    SubmissionJob,
    Verdict,
    course_mark,
    earlier,
    place,
    received,
    still_valid,
)
from course_lib.grading.sandbox.bubblewrap import COURSE, AnswerLimits, Sandbox
from course_lib.measure import hardware
from course_lib.whole_files import clear, write

LOCK = ".grading.lock"
LOOKED_AT = 20  # notebooks that tell which assignment it is
#: A participant's name and number in the folder that Moodle made; a file may have any name.
PLATFORM = re.compile(r"([^/]*_[0-9]+)_assignsubmission_[^/]*/")
PRIVATE = ("verdicts", "teacher")  # they show secret inputs


class Busy(RuntimeError):
    """Another run is grading into the same folder."""


@dataclass(frozen=True)
class GradingOrder:
    """What to grade and how. `folder` is the class's: seed, grade book, verdicts and pages are in it."""

    source: Path
    folder: Path
    root: Path = COURSE
    assignment: str | None = None
    workers: int = 0  # 0: one for each core
    scheduler: str | None = None
    unsafe: bool = False
    limits: AnswerLimits = field(default_factory=AnswerLimits)

    def sandbox(self) -> Sandbox:
        """Return the sandbox that shows nothing of the class."""
        return Sandbox(private=(self.folder, self.source), limits=self.limits, unsafe=self.unsafe)


@dataclass
class Done:
    """What a run did: how many submissions were judged now, how many verdicts were there already."""

    assignment: Assignment
    judged: int = 0
    kept: int = 0
    seconds: float = 0.0
    published: PublishedPages | None = None
    notes: list[str] = field(default_factory=list)


def grade(order: GradingOrder, progress: Callable[[int, int], Any] = lambda done, total: None) -> Done:
    """Grade a class and return what was done.

    Raises IntakeError, AssignmentError, SeedError, NoSandbox, SchedulerError, BookLocked or Busy with one
    sentence each; what is judged by then is kept. A KeyboardInterrupt has the students not yet judged.
    """
    started = time.time()
    order = replace(order, **{name: getattr(order, name).resolve() for name in ("source", "folder", "root")})
    sandbox = order.sandbox()
    if order.scheduler is None:
        sandbox.check()
    assignment = _assignment(order)
    handed_in = intake.receive(order.source, assignment.name)
    if not any(one.read()[0] is not None for one in handed_in):
        raise IntakeError(
            f"There is no notebook in {order.source}, though it holds {len(handed_in)} things that might be "
            "submissions: give the folder or zip with the students' .ipynb files."
        )
    order.folder.mkdir(parents=True, exist_ok=True)
    for name in PRIVATE:
        (order.folder / name).mkdir(mode=0o700, exist_ok=True)
    with _alone(order.folder):
        clear(order.folder, "**/.*.unfinished")
        run = _Run(order, assignment, sandbox, secret.seed(order.folder))
        with ClassBook(order.root, order.folder, assignment) as book:
            try:
                with closing(run.verdicts(run.apart(handed_in), book)) as verdicts:
                    for count, _ in enumerate(verdicts, start=1):
                        progress(count, len(handed_in))
            except KeyboardInterrupt:
                raise KeyboardInterrupt(*run.in_work) from None
            by_hand = book.by_hand()
        done = run.done
        done.seconds = time.time() - started
        about = {**_about(order, done, started), "basis": run.common.basis()}
        done.published = publish(run.paths(), order.folder, about, by_hand)
        done.notes += done.published.notes
    return done


class _Run:
    def __init__(self, order: GradingOrder, assignment: Assignment, sandbox: Sandbox, seed: int) -> None:
        self._order = order
        marks = assignments.marks(order.root)
        #: What all jobs of this run have in common.
        self.common = SubmissionJob(
            assignment.name, "", assignment.items, None, "", (), seed, sandbox, marks=marks
        )
        self._folder = order.folder / "verdicts" / assignment.name
        self._from_nbgrader = order.source.is_relative_to((order.folder / "submitted").resolve())
        self.in_work: dict[str, SubmissionJob] = {}  # by student
        self.done = Done(assignment)

    def paths(self) -> list[Path]:
        """Return the verdicts of all students of the class, in order; one that is damaged is set aside."""
        for path in sorted(self._folder.glob("*.json")):
            if self._earlier(path) is None:
                os.replace(path, path.with_suffix(".damaged"))
                self.done.notes.append(
                    f"The verdict {path} was damaged and is set aside: grade {path.stem} again."
                )
        return sorted(self._folder.glob("*.json"))

    def _earlier(self, path: Path) -> Verdict | None:
        return earlier(self._order.folder, self.common.assignment, path.stem)

    def apart(self, handed_in: list[intake.Received]) -> list[intake.Received]:
        """Return the records so that each person of the platform has one id, whatever the download.

        Two people of one name get two ids, and whoever was graded before keeps theirs.
        """
        verdicts = filter(None, (self._earlier(path) for path in sorted(self._folder.glob("*.json"))))
        people = {one["student"]: _person(one["received"]["name"]) for one in verdicts}
        ids = {person: student for student, person in people.items() if person}
        return _unshared([_with_own_id(one, people, ids) for one in handed_in], ids)

    def verdicts(self, handed_in: list[intake.Received], book: ClassBook) -> Iterator[Verdict]:
        """Yield a verdict for each submission as it is ready and recorded: first those of earlier runs."""
        missing = []
        for one in handed_in:
            job = self._job(one)
            verdict = still_valid(self._order.folder, job)
            if verdict is None:
                missing.append(one)
                continue
            self.done.kept += 1
            verdict = self._as_received(verdict, job)
            book.record(verdict, job)
            yield verdict
        with closing(self._team(self._jobs(missing))) as made:
            for verdict in made:
                job = self.in_work.pop(verdict["student"])
                verdict = self._after_an_earlier_one(verdict, job)
                self._keep(verdict)
                book.record(verdict, job)
                self.done.judged += 1
                if verdict["key"] == UNJUDGED:
                    self.done.notes.append(
                        f"{shown(job.student)} ({shown(job.name)}): {verdict['reading'][0]}"
                    )
                yield verdict

    def _team(self, jobs: Iterator[SubmissionJob]) -> Iterator[Verdict]:
        if self._order.scheduler:
            return team.cluster(jobs, self._order.scheduler, self.common.sandbox)
        # hyperthreads of one core would disturb each other
        return team.local(jobs, self._order.workers or hardware.cores())

    def _jobs(self, handed_in: list[intake.Received]) -> Iterator[SubmissionJob]:
        """Yield jobs as the team asks for them; only those in work are in memory."""
        for one in handed_in:
            job = self._job(one)
            self.in_work[job.student] = job
            yield job

    def _job(self, one: intake.Received) -> SubmissionJob:
        data, problems = one.read()
        name = self.common.assignment
        target = self._order.folder / "submitted" / one.student / name / f"{name}.ipynb"
        if self._from_nbgrader:
            pass  # it lies where nbgrader looks for it
        elif data is None:
            target.unlink(missing_ok=True)  # an older upload must not stand for this one
        else:
            write(target, data)
        found = {"student": one.student, "name": one.name, "received_at": one.received_at}
        return replace(self.common, **found, data=data, problems=problems)

    def _as_received(self, verdict: Verdict, job: SubmissionJob) -> Verdict:
        """Return a kept verdict with the file's name and problems of today, which nbgrader does not know."""
        if self._from_nbgrader:
            return verdict
        now = received(verdict, job)
        if now != verdict:
            self._keep(now)
        return now

    def _keep(self, verdict: Verdict) -> None:
        path = place(self._order.folder, verdict["assignment"], verdict["student"])
        write(path, json.dumps(verdict, indent=1) + "\n", lasting=True)

    def _after_an_earlier_one(self, verdict: Verdict, job: SubmissionJob) -> Verdict:
        """Tell the teacher if another file of this student had more points: an old download, perhaps."""
        before = earlier(self._order.folder, job.assignment, job.student)
        if before is None or before.get("basis") != verdict["basis"]:
            return verdict
        had, has = (sum(task["points"] for task in one["tasks"]) for one in (before, verdict))
        if had <= has:
            return verdict
        name = before["received"]["name"]
        sentence = f"Another file, {name}, was graded before with {had:g} points; this one counts."
        return received({**verdict, "reading": [*verdict["reading"], sentence]}, job)


def _person(name: str) -> str:
    """Return what Moodle calls a participant, number included, from a file's name; "" for any other file."""
    found = PLATFORM.match(name)
    return found[1] if found else ""


def _with_own_id(one: intake.Received, people: dict[str, str], ids: dict[str, str]) -> intake.Received:
    """Return a record under the id its person has, or under a new one if another person has it."""
    person = _person(one.name)
    other = people.get(one.student)
    if person in ids and other != person:
        return replace(one, student=ids[person])
    if not person or other in (None, "", person):
        return one
    sentence = f"Somebody else of this name was graded before ({other}; this is {person})."
    number = person.rpartition("_")[2]
    return replace(one, student=safe_id(f"{one.student}_{number}"), problems=(*one.problems, sentence))


def _unshared(records: list[intake.Received], ids: dict[str, str]) -> list[intake.Received]:
    """Return the records with an id each; of those that share one, whoever was graded before keeps it."""
    taken: dict[str, intake.Received] = {}
    for one in sorted(records, key=lambda one: _person(one.name) not in ids):
        own = free_id(one.student, taken)
        if own != one.student:
            other = shown(taken[fold(one.student)].name)
            sentence = f"Another submission here has the id {one.student} ({other}): see which is whose."
            one = replace(one, student=own, problems=(*one.problems, sentence))
        taken[fold(own)] = one
    return [*taken.values()]


def _assignment(order: GradingOrder) -> Assignment:
    """Return the assignment that was asked for, or the one that the notebooks themselves tell."""
    known = assignments.names(order.root)
    if order.assignment or len(known) == 1:
        return assignments.load(order.root, order.assignment or known[0])
    marks = assignments.marks(order.root)
    by_name = {name: _kinds(order.source, name, marks) for name in known}
    fitting = [name for name, kinds in by_name.items() if _most(kinds) == [name]]
    if len(fitting) == 1:
        return assignments.load(order.root, fitting[0])
    seen = {kind: files for kinds in by_name.values() for kind, files in kinds.items()}
    told = "; ".join(f"{kind}: {some(files)}" for kind, files in sorted(seen.items()))
    raise AssignmentError(
        f"Which assignment is in {order.source}? Say --assignment NAME; there are {', '.join(known)}"
        + (f". Its first notebooks look like {told}." if told else ".")
    )


def _kinds(source: Path, assignment: str, marks: dict[str, frozenset[str]]) -> dict[str, list[str]]:
    """Return of which assignments the first notebooks are that would be graded, each with its files."""
    contents = ((one.name, one.read()[0]) for one in intake.receive(source, assignment))
    first = itertools.islice(((name, data) for name, data in contents if data is not None), LOOKED_AT)
    kinds: dict[str, list[str]] = {}
    for name, data in first:
        told = assignments.told_by(submission.read(data).cells, marks).most_common(1)
        for kind, _ in told:
            kinds.setdefault(kind, []).append(name)
    return kinds


def _most(kinds: dict[str, list[str]]) -> list[str]:
    """Return the assignments of which most notebooks are: a wrong upload decides nothing."""
    most = max(map(len, kinds.values()), default=0)
    return [kind for kind, files in kinds.items() if len(files) == most]


def _alone(folder: Path):
    """Return the lock of a class's folder; Busy if another run has it. A killed run leaves it open."""
    from filelock import FileLock, Timeout

    lock = FileLock(str(folder / LOCK))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise Busy(
            f"Another run is grading into {folder}: wait for it, or grade into another folder."
        ) from None
    return lock


def _about(order: GradingOrder, done: Done, started: float) -> dict[str, Any]:
    stamp = "%Y-%m-%d %H:%M:%S"
    return {
        "assignment": done.assignment.name,
        "started": time.strftime(stamp, time.localtime(started)),
        "finished": time.strftime(stamp),
        "machine": f"{hardware.cpu_name()}, {platform.system()} {platform.release()}",
        "sandbox": not order.unsafe,
        "workers": order.scheduler or order.workers or hardware.cores(),
        "course_version": course_mark(),
        "seconds": round(done.seconds, 1),
    }
