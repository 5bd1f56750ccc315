"""What a class did, added up verdict by verdict; little is kept of each, so memory stays flat."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from course_lib.grading.classroom.pages.text import LONG

STATES = ("right", "partly", "wrong", "not started")
EXAMPLE, WHY, REASON = 1_500, 300, 300  # characters kept


@dataclass(frozen=True)
class StudentRow:
    """What the summary and the csv say of one student; `results` is task id -> (points, state)."""

    student: str
    assignment: str
    points: float
    max_points: float
    results: dict[str, tuple[float, str]]
    manual: tuple[tuple[str, str], ...]  # (task id or "" for the whole submission, reason)
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
    def judged(self) -> int:
        """The number of students."""
        return self.states.total()

    @property
    def share(self) -> float:
        """The share of its points that the class has."""
        return self.points / (self.max_points * self.judged) if self.judged and self.max_points else 0.0


@dataclass
class Mistake:
    """One wrong answer that several students may have given, with the first one's source."""

    task: str
    why: str
    example: str
    students: list[str] = field(default_factory=list)


class ClassTally:
    """A class, added up."""

    def __init__(self, verdicts: Iterable[dict] = ()) -> None:
        self._rows: dict[str, StudentRow] = {}
        self.tasks: dict[str, TaskTally] = {}
        self._mistakes: dict[tuple[str, str], Mistake] = {}
        for verdict in verdicts:
            self.add(verdict)

    def add(self, verdict: dict) -> None:
        """Add a student's verdict; ValueError if that student was added before."""
        student = verdict["student"]
        if student in self._rows:
            raise ValueError(
                f"There are two verdicts on {student!r}, but a student has one: remove one of them."
            )
        self._rows[student] = row(verdict)
        for task in verdict["tasks"]:
            self._add_task(student, task)

    def _add_task(self, student: str, task: dict) -> None:
        fresh = TaskTally(task["id"], task["title"], task["max_points"])
        tally = self.tasks.setdefault(task["id"], fresh)
        tally.points += task["points"]
        tally.states[task["state"]] += 1
        why = task["why"][:WHY].strip()
        if why and task["state"] != "not started":
            mistake = Mistake(task["id"], why, task["answer"][:EXAMPLE])
            self._mistakes.setdefault((task["id"], why), mistake).students.append(student)

    @property
    def rows(self) -> list[StudentRow]:
        """The students by name, numbers in it by their size."""
        return sorted(self._rows.values(), key=lambda row: (_natural(row.student), row.student))

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
    def mean(self) -> float:
        """The points of a student on average."""
        return sum(self.totals) / len(self.totals)

    @property
    def full_marks(self) -> int:
        """How many students have all points."""
        return sum(total >= self.most for total in self.totals)

    @property
    def hardest_first(self) -> list[TaskTally]:
        """The tasks, the one of which the class has the smallest share of the points first."""
        return sorted(self.tasks.values(), key=lambda task: task.share)

    @property
    def common_mistakes(self) -> list[Mistake]:
        """The mistakes that more than one student made, most common first."""
        shared = [mistake for mistake in self._mistakes.values() if len(mistake.students) > 1]
        return sorted(shared, key=lambda mistake: (-len(mistake.students), mistake.task, mistake.why))

    @property
    def lone_mistakes(self) -> int:
        """How many mistakes were made once."""
        return sum(len(mistake.students) == 1 for mistake in self._mistakes.values())


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key in which "ada 2" comes before "ada 10"."""
    parts = re.split(r"([0-9]+)", name.casefold())
    return [(0, int(part), "") if part.isdecimal() and part.isascii() else (1, 0, part) for part in parts]


def row(verdict: dict) -> StudentRow:
    """Return what the summary and the csv say of a student."""
    tasks = verdict["tasks"]
    manual = [("", reason) for reason in verdict["manual"]]
    manual += [(task["id"], reason) for task in tasks for reason in task["manual"]]
    return StudentRow(
        verdict["student"],
        verdict["assignment"],
        sum(task["points"] for task in tasks),
        sum(task["max_points"] for task in tasks),
        {task["id"]: (task["points"], task["state"]) for task in tasks},
        tuple((id, reason[:REASON]) for id, reason in manual),
        str(verdict["received"]["name"])[:LONG],
    )
