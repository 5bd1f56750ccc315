"""What a class did, added up verdict by verdict; little is kept of each, so memory stays flat."""

from __future__ import annotations

import hashlib
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

STATES = ("right", "partly", "wrong", "not started")
EXAMPLE = 1_500  # characters kept of an answer
#: Fewer or shorter answers may well be the same by themselves.
ALIKE_TASKS, ALIKE_LENGTH = 2, 600


class StudentRow(NamedTuple):
    """What the summary and the csv say of one student; `results` is task id -> (points, state)."""

    student: str
    assignment: str
    points: float
    max_points: float
    results: dict[str, tuple[float, str]]
    manual: list[tuple[str, str]]  # (task id or "" for the whole submission, reason)
    received: str


@dataclass
class TaskTally:
    """One task over the class."""

    id: str
    title: str
    max_points: float
    points: float = 0.0
    states: Counter = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """The share of its points that the class has."""
        most = self.max_points * self.states.total()
        return self.points / most if most else 0.0


class Mistake(NamedTuple):
    """One wrong answer that several students may have given, with the first one's source."""

    task: str
    why: str
    example: str
    students: list[str]


class ClassTally:
    """A class, added up."""

    def __init__(self, verdicts: Iterable[dict] = ()) -> None:
        self._rows: dict[str, StudentRow] = {}
        self.tasks: dict[str, TaskTally] = {}
        self._mistakes: dict[tuple[str, str], Mistake] = {}
        self._by_text: dict[bytes, list[str]] = {}
        for verdict in verdicts:
            self.add(verdict)

    def add(self, verdict: dict) -> None:
        """Add a student's verdict; ValueError if that student was added before."""
        student, tasks = verdict["student"], verdict["tasks"]
        if student in self._rows:
            raise ValueError(
                f"There are two verdicts on {student!r}, but a student has one: remove one of them."
            )
        manual = [("", reason) for reason in verdict["manual"]]  # few and short: the verdict sees to it
        manual += [(task["id"], reason) for task in tasks for reason in task["manual"]]
        self._rows[student] = StudentRow(
            student,
            verdict["assignment"],
            sum(task["points"] for task in tasks),
            sum(task["max_points"] for task in tasks),
            {task["id"]: (task["points"], task["state"]) for task in tasks},
            manual,
            verdict["received"]["name"],
        )
        started = [task["answer"] for task in tasks if task["state"] != "not started"]
        if len(started) >= ALIKE_TASKS and sum(map(len, started)) >= ALIKE_LENGTH:
            text = hashlib.sha256("\0".join(started).encode("utf-8", "replace")).digest()
            self._by_text.setdefault(text, []).append(student)
        for task in tasks:
            id, state = task["id"], task["state"]
            tally = self.tasks.setdefault(id, TaskTally(id, task["title"], task["max_points"]))
            tally.points += task["points"]
            tally.states[state] += 1
            why = task["why"].strip()
            if why and state != "not started":
                mistake = Mistake(id, why, task["answer"][:EXAMPLE], [])
                self._mistakes.setdefault((id, why), mistake).students.append(student)

    @property
    def rows(self) -> list[StudentRow]:
        """The students by name, numbers in it by their size."""
        return sorted(self._rows.values(), key=lambda row: (_natural(row.student), row.student))

    @property
    def alike(self) -> list[list[str]]:
        """Students all of whose answers are the same, letter for letter; for the teacher's eyes, no grade."""
        return [students for students in self._by_text.values() if len(students) > 1]

    @property
    def looks(self) -> int:
        """How many students need a manual look."""
        return sum(bool(row.manual) for row in self._rows.values())

    @property
    def most(self) -> float:
        """The points that the assignment gives."""
        return max((row.max_points for row in self._rows.values()), default=0.0)

    @property
    def totals(self) -> list[float]:
        """The points of each student, lowest first."""
        return sorted(row.points for row in self._rows.values())

    @property
    def median(self) -> float:
        """Half of the class has as many points or more."""
        return statistics.median(self.totals)

    @property
    def hardest_first(self) -> list[TaskTally]:
        """The tasks, the one of which the class has the smallest share of the points first."""
        return sorted(self.tasks.values(), key=lambda task: task.share)

    @property
    def mistakes(self) -> tuple[list[Mistake], int]:
        """What more than one student has wrong, most common first, and how many mistakes were made once."""
        shared = [mistake for mistake in self._mistakes.values() if len(mistake.students) > 1]
        shared.sort(key=lambda one: (-len(one.students), one.task, one.why))
        return shared, len(self._mistakes) - len(shared)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key in which "ada 2" comes before "ada 10"."""
    parts = re.split(r"([0-9]+)", name.casefold())
    return [(0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part) for part in parts]
