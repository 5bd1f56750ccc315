"""The survey: every systematic fault of every solution, judged with several seeds, and what came of it."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course_lib.grading import registry
from course_lib.grading.judge import generator
from course_lib.grading.rules_given import GivenAsItIs, helpers_of
from course_lib.grading.runner import clone
from course_lib.grading.task import Code, Task

from .faults import Fault, faults, needed
from .judging import CHECKS, SURVIVED, Job, caught_by
from .operators import KERNEL_OPERATORS
from .workers import CRASH, TIME, spread

ROOT = Path(__file__).resolve().parents[3]
#: Faults that are none, as no input can show them: tasks, fault, and one sentence why.
SURVIVORS = Path(__file__).with_name("survivors.tsv")


class SurveyError(ValueError):
    """The survey cannot be made, or its table of equivalent faults is stale; the message says why."""


@dataclass(frozen=True)
class Survivor:
    """A fault that some seed did not show; `checks` are those of each seed, empty where it passed."""

    fault: Fault
    checks: tuple[str, ...]

    @property
    def flaky(self) -> bool:
        """Whether other seeds did show it."""
        return any(self.checks)


@dataclass
class Findings:
    """What became of the faults of one task."""

    task_id: str
    caught: Counter = field(default_factory=Counter)  # by check
    survived: list[Survivor] = field(default_factory=list)
    equivalent: list[tuple[Fault, str]] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)  # keys in the table that stand for no survivor

    @property
    def total(self) -> int:
        """How many faults there are."""
        return self.caught.total() + len(self.survived) + len(self.equivalent)

    def to_json(self) -> dict:
        """Return all of it as plain data."""
        return {
            "id": self.task_id,
            "faults": self.total,
            "caught": dict(self.caught),
            "survived": [{"fault": one.fault.key, "seeds": list(one.checks)} for one in self.survived],
            "equivalent": [{"fault": one.key, "reason": why} for one, why in self.equivalent],
            "stale": self.stale,
        }


@functools.cache
def explained() -> tuple[tuple[frozenset[str], str, str], ...]:
    """Return the rows of survivors.tsv: the tasks, the key of the fault, the reason."""
    _, *lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return tuple((frozenset(tasks.split()), key, reason) for tasks, key, reason in rows)


def reasons(task_id: str) -> dict[str, str]:
    """Return the reason for each fault of a task that is none, by the key of the fault."""
    return {key: reason for tasks, key, reason in explained() if task_id in tasks}


def solution(task: Task, root: Path = ROOT) -> Code:
    """Return the solution of a task with what it needs; SurveyError where there are no solutions."""
    paths = sorted((root / "solutions").glob(f"{task.chapter}_*/{task.chapter}_*.ipynb"))
    if not paths:
        raise SurveyError(
            f"There is no solution of {task.id} in {root / 'solutions'}: the survey needs the course's "
            "repository, not only the installed package."
        )
    cells = json.loads(paths[0].read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if _is_answer(cell)]
    return needed("\n\n\n".join(texts) + "\n", task.entry)


def _is_answer(cell: dict) -> bool:
    graded = cell["metadata"].get("nbgrader", {})
    given = cell["id"] == "setup" or cell["id"].endswith("-given")
    return cell["cell_type"] == "code" and (graded.get("solution", False) or given)


def faults_of(task: Task, code: Code) -> list[Fault]:
    """Return the systematic faults of an answer to a task."""
    first = next(case for case in task.cases(generator(task, 0)) if case.expect == "value")
    if task.launch:
        return faults(code, first.args, None, KERNEL_OPERATORS)
    rules = (rule for rule in task.rules if isinstance(rule, GivenAsItIs))
    given = frozenset(name for rule in rules for name in helpers_of(rule.given))
    return faults(code, first.args, task.reference(*clone(first.args)), given=given)


def survey(
    tasks: Iterable[Task],
    seeds: Sequence[int],
    workers: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
    root: Path = ROOT,
) -> list[Findings]:
    """Judge all faults of the tasks' solutions; a fault is caught if every seed shows it.

    `progress(done, total)` is told after each answer. Raises SurveyError if a solution itself is not right.
    """
    tasks = list(tasks)
    answers = [(task, solution(task, root)) for task in tasks]
    known = [(task, fault) for task, code in answers for fault in faults_of(task, code)]
    jobs = [Job(task.id, code.text, tuple(seeds)) for task, code in answers]
    jobs += [Job(task.id, fault.source, tuple(seeds)) for task, fault in known]
    results: dict[int, tuple[str, ...]] = {}
    for number, checks in spread(caught_by, jobs, workers):
        results[number] = (checks,) * len(seeds) if checks in (TIME, CRASH) else checks
        if number < len(tasks) and any(results[number]):
            raise SurveyError(f"The solution of {jobs[number].task_id} itself is not right: {checks}.")
        progress(len(results), len(jobs))
    found = {task.id: Findings(task.id) for task in tasks}
    for number, (task, fault) in enumerate(known, start=len(tasks)):
        _sort_in(found[task.id], fault, results[number])
    for findings in found.values():
        used = {fault.key for fault, _ in findings.equivalent}
        findings.stale = [key for key in reasons(findings.task_id) if key not in used]
    return list(found.values())


def _sort_in(findings: Findings, fault: Fault, checks: tuple[str, ...]) -> None:
    reason = reasons(findings.task_id).get(fault.key)
    if SURVIVED not in checks:
        findings.caught[checks[0]] += 1
    elif reason and not any(checks):
        findings.equivalent.append((fault, reason))
    else:
        findings.survived.append(Survivor(fault, checks))


def chosen(ids: Sequence[str]) -> tuple[Task, ...]:
    """Return these tasks, or all of them; KeyError for an id that does not exist."""
    return tuple(registry.task(id) for id in ids) if ids else registry.tasks()


def table(found: Sequence[Findings]) -> str:
    """Return the survey as text: a line for each task, the sum, and what is not caught, with its reason."""
    used = [check for check in CHECKS if any(one.caught[check] for one in found)]
    heads = ["task", "faults", "caught", "equivalent", "survived", *used]
    rows = [heads, *(_row(one.task_id, [one], used) for one in found), _row("all", found, used)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = ["  ".join(_fit(row, widths)) for row in rows]
    return "\n".join([*lines, "", *_details(found)]).rstrip()


def _row(name: str, found: Sequence[Findings], used: Sequence[str]) -> list[str]:
    total = sum(one.total for one in found)
    caught = sum(one.caught.total() for one in found)
    share = f"{caught} ({100 * caught / total:.1f} %)" if total else "0"
    rest = [sum(len(one.equivalent) for one in found), sum(len(one.survived) for one in found)]
    by_check = [sum(one.caught[check] for one in found) for check in used]
    return [name, str(total), share, *map(str, rest), *(str(n) if n else "·" for n in by_check)]


def _fit(row: list[str], widths: list[int]) -> Iterable[str]:
    yield row[0].ljust(widths[0])
    yield from (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))


def _details(found: Sequence[Findings]) -> Iterable[str]:
    for one in found:
        for survivor in one.survived:
            seeds = "some seeds only" if survivor.flaky else "no seed"
            yield f"SURVIVED {one.task_id}  {survivor.fault}  (shown by {seeds})"
        for key in one.stale:
            yield f"STALE    {one.task_id}  {key}: explained as equivalent, but it is caught or gone."
        for fault, reason in one.equivalent:
            yield f"equal    {one.task_id}  {fault}  – {reason}"
