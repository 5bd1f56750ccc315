"""The survey: every systematic fault of every solution, judged with several seeds, and what came of it."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course_lib.grading.collect import collect
from course_lib.grading.judge import generator
from course_lib.grading.runner import clone
from course_lib.grading.task import Code, Task

from .faults import Fault, faults
from .judging import caught
from .operators import KERNEL_OPERATORS
from .workers import DIED, spread

ROOT = Path(__file__).resolve().parents[3]
#: Faults that are none, as no input can show them: tasks, fault, and one sentence why.
SURVIVORS = Path(__file__).with_name("survivors.tsv")


@dataclass
class Findings:
    """What became of the faults of one task."""

    task_id: str
    caught: int = 0
    survived: list[tuple[Fault, bool]] = field(default_factory=list)  # and whether some seed did show it
    equivalent: list[tuple[Fault, str]] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)  # keys in the table that stand for no survivor

    @property
    def total(self) -> int:
        """How many faults there are."""
        return self.caught + len(self.survived) + len(self.equivalent)


@functools.cache
def explained() -> tuple[tuple[frozenset[str], str, str], ...]:
    """Return the rows of survivors.tsv: the tasks, the key of the fault, the reason."""
    _, *lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return tuple((frozenset(tasks.split()), key, reason) for tasks, key, reason in rows)


def reasons(task_id: str) -> dict[str, str]:
    """Return the reason for each fault of a task that is none, by the key of the fault."""
    return {key: reason for tasks, key, reason in explained() if task_id in tasks}


def solution(task: Task) -> Code:
    """Return the solution of a task with what it needs."""
    (path,) = (ROOT / "solutions").glob(f"{task.chapter}_*/{task.chapter}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if _is_answer(cell)]
    return Code(collect(texts, task.entry).text, task.entry)


def _is_answer(cell: dict) -> bool:
    graded = cell["metadata"].get("nbgrader", {})
    given = cell["id"] == "setup" or cell["id"].endswith("-given")
    return cell["cell_type"] == "code" and (graded.get("solution", False) or given)


def faults_of(task: Task, code: Code) -> list[Fault]:
    """Return the systematic faults of an answer to a task."""
    first = next(iter(task.cases(generator(task, 0))))
    if task.launch:
        return faults(code, first.args, None, KERNEL_OPERATORS)
    helpers = ast.parse(task.rules[0].given).body
    given = frozenset(one.name for one in helpers if isinstance(one, ast.FunctionDef))
    return faults(code, first.args, task.reference(*clone(first.args)), given=given)


def survey(tasks: Iterable[Task], seeds: Sequence[int]) -> list[Findings]:
    """Judge all faults of the tasks' solutions; a fault is caught if every seed shows it.

    Raises ValueError if a solution itself is not right.
    """
    answers = {task.id: (task, solution(task)) for task in tasks}
    jobs: list[tuple[str, Fault | None]] = [(id, None) for id in answers]
    jobs += [(id, fault) for id, (task, code) in answers.items() for fault in faults_of(task, code)]
    texts = [(id, fault.source if fault else answers[id][1].text, tuple(seeds)) for id, fault in jobs]
    shown_by: dict[int, tuple[bool, ...]] = {}
    for number, shown in spread(caught, texts):
        shown_by[number] = (True,) * len(seeds) if shown == DIED else shown
        if number < len(answers) and any(shown_by[number]):
            raise ValueError(f"The solution of {jobs[number][0]} itself is not right.")
    found = {id: Findings(id) for id in answers}
    for number, (id, fault) in enumerate(jobs):
        if fault:
            _sort_in(found[id], fault, shown_by[number])
    for findings in found.values():
        used = {fault.key for fault, _ in findings.equivalent}
        findings.stale = [key for key in reasons(findings.task_id) if key not in used]
    return list(found.values())


def _sort_in(findings: Findings, fault: Fault, shown: tuple[bool, ...]) -> None:
    reason = reasons(findings.task_id).get(fault.key)
    if all(shown):
        findings.caught += 1
    elif reason and not any(shown):
        findings.equivalent.append((fault, reason))
    else:
        findings.survived.append((fault, any(shown)))


def table(found: Sequence[Findings]) -> str:
    """Return the survey as text: a line for each task, the sum, and what is not caught, with its reason."""
    rows = [("task", "faults", "caught", "equivalent", "survived")]
    rows += [*(_row(one.task_id, [one]) for one in found), _row("all", found)]
    lines = [f"{row[0]:16}" + "".join(f"{cell:>16}" for cell in row[1:]) for row in rows]
    return "\n".join([*lines, "", *_details(found)]).rstrip()


def _row(name: str, found: Sequence[Findings]) -> tuple[str, ...]:
    total, caught = sum(one.total for one in found), sum(one.caught for one in found)
    share = f"{caught} ({100 * caught / total:.1f} %)" if total else "0"
    rest = sum(len(one.equivalent) for one in found), sum(len(one.survived) for one in found)
    return (name, str(total), share, *map(str, rest))


def _details(found: Sequence[Findings]) -> Iterable[str]:
    for one in found:
        for fault, flaky in one.survived:
            yield f"SURVIVED {one.task_id}  {fault}  (shown by {'some seeds only' if flaky else 'no seed'})"
        for key in one.stale:
            yield f"STALE    {one.task_id}  {key}: explained as equivalent, but it is caught or gone."
        for fault, reason in one.equivalent:
            yield f"equal    {one.task_id}  {fault}  – {reason}"
