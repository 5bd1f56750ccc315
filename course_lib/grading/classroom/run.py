"""Grading a class from what a learning platform gives to grade book, feedback, csv and summary.

Every verdict is written before anything is made of it, and everything made of it can be made again. So the
run may be killed at any moment: the next one takes up what is there and does the rest.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.grading.classroom import assignment as assignments
from course_lib.grading.classroom import intake, secret, submission, team
from course_lib.grading.classroom.assignment import Assignment, AssignmentError
from course_lib.grading.classroom.gradebook import ClassBook
from course_lib.grading.classroom.pages.files import write
from course_lib.grading.classroom.pages.publish import Published, publish
from course_lib.grading.classroom.verdict import Job, Verdict, course_mark
from course_lib.grading.kernel.sandbox import COURSE, Limits, Sandbox
from course_lib.measure import hardware

LOCK = ".grading.lock"


class Busy(RuntimeError):
    """Another run is grading into the same folder."""


@dataclass(frozen=True)
class Order:
    """What to grade and how. `folder` is the class's: seed, grade book, verdicts and pages are in it."""

    source: Path
    folder: Path
    root: Path = COURSE
    assignment: str | None = None
    workers: int = 0  # 0: one for each core
    scheduler: str | None = None
    unsafe: bool = False
    limits: Limits = field(default_factory=Limits)

    def sandbox(self) -> Sandbox:
        """Return the sandbox that shows nothing of the class."""
        private = (self.folder.resolve(), self.source.resolve())
        return Sandbox(private=private, limits=self.limits, unsafe=self.unsafe)


@dataclass
class Done:
    """What a run did: how many submissions were judged now, how many verdicts were there already."""

    assignment: Assignment
    judged: int = 0
    kept: int = 0
    kernel_s: float = 0.0
    seconds: float = 0.0
    published: Published | None = None
    students: list[str] = field(default_factory=list)


def grade(order: Order, progress: Callable[[int, int], Any] = lambda done, total: None) -> Done:
    """Grade a class and return what was done.

    Raises IntakeError, AssignmentError, SeedError, NoSandbox, SchedulerError or Busy with one sentence each;
    what is judged by then is kept.
    """
    started = time.time()
    sandbox = order.sandbox()
    if order.scheduler is None:
        sandbox.check()
    assignment = _assignment(order)
    handed_in = intake.receive(order.source, assignment.name)
    order.folder.mkdir(parents=True, exist_ok=True)
    with _alone(order.folder):
        run = _Run(order, assignment, sandbox, secret.seed(order.folder))
        with ClassBook(order.root, order.folder, assignment) as book:
            for count, _ in enumerate(run.verdicts(handed_in, book), start=1):
                progress(count, len(handed_in))
        done = run.done
        done.seconds = time.time() - started
        done.published = publish(run.paths(), order.folder, _about(order, done, started))
    return done


class _Run:
    """One run over a class."""

    def __init__(self, order: Order, assignment: Assignment, sandbox: Sandbox, seed: int) -> None:
        self._order = order
        self._assignment = assignment
        self._sandbox = sandbox
        self._seed = seed
        self._folder = order.folder / "verdicts" / assignment.name
        self._open: dict[str, tuple[Job, str | None]] = {}
        self.done = Done(assignment)

    def paths(self) -> list[Path]:
        """Return the verdicts of all students of the class, in order."""
        return sorted(self._folder.glob("*.json"))

    def verdicts(self, handed_in: list[intake.Received], book: ClassBook) -> Iterator[Verdict]:
        """Yield a verdict for each submission as it is ready and recorded: first those of earlier runs."""
        missing = []
        for one in handed_in:
            job = self._job(one)
            verdict = self._kept(job)
            if verdict is None:
                missing.append(one)
                continue
            self.done.kept += 1
            book.record(verdict, _cells(job), one.received_at)
            yield verdict
        for verdict in self._team(self._jobs(missing)):
            job, handed_in_at = self._open.pop(verdict["student"])
            write(self._path(job.student), json.dumps(verdict, indent=1) + "\n")
            book.record(verdict, _cells(job), handed_in_at)
            self.done.judged += 1
            self.done.kernel_s += sum(task["seconds"]["kernel"] for task in verdict["tasks"])
            yield verdict

    def _team(self, jobs: Iterator[Job]) -> Iterator[Verdict]:
        if self._order.scheduler:
            return team.cluster(jobs, self._order.scheduler, self._sandbox)
        return team.local(jobs, self._order.workers or cores())

    def _jobs(self, handed_in: list[intake.Received]) -> Iterator[Job]:
        """Yield jobs as the team asks for them; only those in work are in memory."""
        for one in handed_in:
            job = self._job(one)
            self._open[job.student] = (job, one.received_at)
            yield job

    def _job(self, one: intake.Received) -> Job:
        data, problems = one.read()
        self._keep_what_was_handed_in(one.student, data)
        items = self._assignment.items
        name = self._assignment.name
        return Job(name, one.student, items, data, one.name, problems, self._seed, self._sandbox)

    def _keep_what_was_handed_in(self, student: str, data: bytes | None) -> None:
        """Put the notebook where nbgrader looks for it, unless it comes from there."""
        name = self._assignment.name
        target = self._order.folder / "submitted" / student / name / f"{name}.ipynb"
        if data is not None and not _lies_in(self._order.source, self._order.folder / "submitted"):
            write(target, data)

    def _path(self, student: str) -> Path:
        return self._folder / f"{student}.json"

    def _kept(self, job: Job) -> Verdict | None:
        """Return the verdict of an earlier run, if it is still valid."""
        try:
            verdict = json.loads(self._path(job.student).read_text(encoding="utf-8"))
            return verdict if verdict["key"] == job.key() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


def cores() -> int:
    """Return the number of cores this process may use: hyperthreads of one core disturb each other."""
    import psutil

    return max(1, min(hardware.threads(), psutil.cpu_count(logical=False) or 1))


def _assignment(order: Order) -> Assignment:
    """Return the assignment that was asked for, or the one that the notebooks' names tell."""
    if order.assignment:
        return assignments.load(order.root, order.assignment)
    known = assignments.names(order.root)
    fitting = [name for name in known if _fits(order.source, name)] if len(known) > 1 else known
    if len(fitting) != 1:
        raise AssignmentError(
            f"Which assignment is in {order.source}? Say --assignment NAME; there are {', '.join(known)}."
        )
    return assignments.load(order.root, fitting[0])


def _fits(source: Path, name: str) -> bool:
    """Whether a submission is named after the assignment."""
    return any(name in one.name for one in intake.receive(source, name))


def _cells(job: Job) -> tuple[submission.Cell, ...]:
    return submission.read(job.data).cells if job.data is not None else ()


def _lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


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


def _about(order: Order, done: Done, started: float) -> dict[str, Any]:
    stamp = "%Y-%m-%d %H:%M:%S"
    return {
        "assignment": done.assignment.name,
        "started": time.strftime(stamp, time.localtime(started)),
        "finished": time.strftime(stamp),
        "machine": f"{hardware.cpu_name()}, {platform.system()} {platform.release()}",
        "sandbox": not order.unsafe,
        "workers": order.scheduler or order.workers or cores(),
        "course_version": course_mark(),
        "seconds": round(done.seconds, 1),
    }
