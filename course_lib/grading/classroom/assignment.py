"""An assignment as the grader sees it: which tasks it has, and the function that is handed in for each.

All of it comes from the instructor's source in solutions/, never from what a student hands in.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.grading import registry
from course_lib.grading.classroom.oddities import parts
from course_lib.grading.classroom.submission import Cell
from course_lib.grading.task import Task

DEFINED = re.compile(r"^def (\w{1,100})\(", re.MULTILINE)


class AssignmentError(ValueError):
    """The assignment does not exist or cannot be graded; the message says what to do."""


@dataclass(frozen=True)
class Item:
    """One task of an assignment: the cell that has its points, the function, and the size of its solution."""

    task_id: str
    entry: str
    grade_id: str
    points: float
    size: int = 0

    @property
    def task(self) -> Task:
        """The declaration."""
        return registry.task(self.task_id)


@dataclass(frozen=True)
class Assignment:
    """The tasks of an assignment, in the order of its notebook."""

    name: str
    items: tuple[Item, ...]

    @property
    def grade_ids(self) -> dict[str, str]:
        """The cell with the points of each task, by task id."""
        return {item.task_id: item.grade_id for item in self.items}


def names(root: Path) -> list[str]:
    """Return the names of the assignments in solutions/, in order."""
    sources = (root / "solutions").glob("*/*.ipynb")
    return sorted(path.stem for path in sources if path.stem == path.parent.name)


def source_path(root: Path, name: str) -> Path:
    """Return where the instructor's notebook of an assignment is."""
    return root / "solutions" / name / f"{name}.ipynb"


def load(root: Path, name: str) -> Assignment:
    """Read an assignment's tasks from its source; AssignmentError if there is none or a cell is no task."""
    known = names(root)
    if name not in known:
        raise AssignmentError(
            f"There is no assignment {name!r} in {root / 'solutions'}; found: {', '.join(known) or 'none'}."
        )
    cells = json.loads(source_path(root, name).read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if nbgrader_of(cell).get("solution")]
    items = tuple(_item(name, cell, texts) for cell in cells if nbgrader_of(cell).get("grade"))
    if not items:
        raise AssignmentError(f"The assignment {name} has no cell that gives points: mark one in nbgrader.")
    return Assignment(name, items)


def marks(root: Path) -> dict[str, frozenset[str]]:
    """Return what tells each assignment's notebooks: the ids of its cells with points, and its functions."""
    loaded = (load(root, name) for name in names(root))
    return {
        one.name: frozenset(mark for item in one.items for mark in (item.grade_id, f"{item.entry}()"))
        for one in loaded
    }


def told_by(cells: Sequence[Cell], known: Mapping[str, frozenset[str]]) -> Counter[str]:
    """Return how many marks of each assignment some cells have; what they have none of is not in it."""
    found = {cell.grade_id for cell in cells}
    found.update(f"{name}()" for cell in cells if cell.kind == "code" for name in DEFINED.findall(cell.text))
    return +Counter({name: len(found & its) for name, its in known.items()})


def task_in(source: str) -> tuple[str, str] | None:
    """Return (task id, function) of the first `check("id", function)` in a cell, None without one."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check":
            id, answer = node.args[:2] if len(node.args) >= 2 else (None, None)
            if isinstance(id, ast.Constant) and isinstance(answer, ast.Name):
                return str(id.value), answer.id
    return None


def _item(name: str, cell: dict[str, Any], solutions: Sequence[str]) -> Item:
    marks = nbgrader_of(cell)
    found = task_in("".join(cell["source"]))
    if found is None:
        raise AssignmentError(
            f"The cell {marks.get('grade_id')!r} of {name} gives points but calls no check(id, function): "
            "only a declared task can be judged outside the student's kernel; declare one."
        )
    task = registry.task(found[0])
    if float(marks["points"]) != task.points:
        raise AssignmentError(
            f"The cell {marks['grade_id']!r} of {name} gives {marks['points']} points, its task {task.id} is "
            f"worth {task.points:g}: make them equal."
        )
    size = max((parts(text) for text in solutions if f"def {found[1]}(" in text), default=0)
    return Item(task.id, found[1], marks["grade_id"], float(task.points), size)


def nbgrader_of(cell: dict[str, Any]) -> dict[str, Any]:
    """Return what nbgrader knows of a cell of the instructor's; empty if it is none of its own."""
    return cell.get("metadata", {}).get("nbgrader", {})
