"""The graded notebook that nbgrader's form grader shows: the student's cells, the points, the report.

It is built from the released notebook, so that every cell that gives points is there as the instructor wrote
it, whatever became of it in the submission. The student's words are shown as text; nothing of the student's
outputs or metadata is kept.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from typing import Any

from course_lib.grading.classroom.submission import Cell
from course_lib.grading.report import Report, render_html

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


def graded(
    release: dict[str, Any], cells: Sequence[Cell], verdict: dict[str, Any], grade_ids: dict[str, str]
):
    """Return the notebook (nbformat 4, plain data); `grade_ids` maps task ids to cells with points."""
    notebook = copy.deepcopy(release)
    tasks = {grade_ids[task["id"]]: task for task in verdict["tasks"]}
    own = _by_place(release["cells"], cells)
    shown = []
    for place, cell in enumerate(notebook["cells"]):
        mark = _grade_id(cell)
        if mark in tasks:
            write_points(cell, tasks[mark])
        elif _is_answer(cell) and own[place]:
            cell["source"] = _clean(own[place][0].text)
            own[place] = own[place][1:]
        without_output(cell) if mark not in tasks else None
        shown += [cell, *(_extra(one, f"own-{place}-{n}") for n, one in enumerate(own[place]))]
    notebook["cells"] = shown
    return notebook


def _by_place(released: list[dict[str, Any]], cells: Sequence[Cell]) -> list[list[Cell]]:
    """For each released cell return the student's that belong to it: its answer first, then what follows."""
    places = {name: place for place, cell in enumerate(released) for name in _names(cell)}
    own: list[list[Cell]] = [[] for _ in released]
    texts = {_plain(_text(cell)) for cell in released}
    here = 0
    for cell in cells:
        found = next((places[name] for name in (cell.grade_id, cell.id) if name in places), None)
        here = here if found is None else found
        if cell.is_grade or _plain(cell.text) in texts:
            continue
        if found is not None and not _is_answer(released[found]):
            continue  # an edited cell of ours: ours counts
        own[here].append(cell)
    return own


def _names(cell: dict[str, Any]) -> Iterable[str]:
    return (name for name in (_grade_id(cell), cell.get("id")) if name)


def _grade_id(cell: dict[str, Any]) -> str | None:
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def _is_answer(cell: dict[str, Any]) -> bool:
    return bool(cell["metadata"].get("nbgrader", {}).get("solution"))


def _text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _clean(text: str) -> str:
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def without_output(cell: dict[str, Any]) -> None:
    """Take away what a code cell has shown."""
    if cell["cell_type"] == "code":
        cell["outputs"], cell["execution_count"] = [], None


def _extra(cell: Cell, id: str) -> dict[str, Any]:
    kind = cell.kind if cell.kind in ("code", "markdown", "raw") else "raw"
    made = {"cell_type": kind, "id": id, "metadata": {}, "source": _clean(cell.text)}
    without_output(made)
    return made


def write_points(cell: dict[str, Any], task: dict[str, Any]) -> None:
    """Put the report and the points where nbgrader looks for them: the value of the cell."""
    report = Report.from_json(task["feedback"])
    told = {"text/plain": _clean(str(report)), "text/html": _clean(render_html(report))}
    points = {"text/plain": repr(float(task["points"]))}
    cell["execution_count"] = 1
    cell["outputs"] = [
        {"output_type": "display_data", "data": told, "metadata": {}},
        {"output_type": "execute_result", "data": points, "metadata": {}, "execution_count": 1},
    ]
