"""The graded notebook that nbgrader's form grader shows: the student's cells, the points, the report.

It is built from the released notebook, so that every cell that gives points is there as the instructor wrote
it, whatever became of it in the submission. Of the student's cells only the texts are kept, and no word of
them is markup: the form grader would put a script into the teacher's own page.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

from course_lib.grading.classroom.assignment import nbgrader_of
from course_lib.grading.classroom.submission import Cell
from course_lib.grading.classroom.verdict import UNREADABLE
from course_lib.grading.report import Report, render_html

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
BACKTICKS = re.compile("`+")
#: Pages look for formulas everywhere but in here, and a formula may be a link.
NO_FORMULAS = '<div class="tex2jax_ignore mathjax_ignore">{}</div>'


def graded(
    release: dict[str, Any], cells: Sequence[Cell], verdict: dict[str, Any], grade_ids: dict[str, str]
):
    """Return the notebook (nbformat 4, plain data); `grade_ids` maps task ids to cells with points.

    Without any cell of the student's it begins with a sentence that says so.
    """
    notebook = copy.deepcopy(release)
    tasks = {grade_ids[task["id"]]: task for task in verdict["tasks"]}
    own = _by_place(release["cells"], cells)
    shown = [] if cells else [_text_cell("unreadable", f"**{UNREADABLE}**")]
    for place, cell in enumerate(notebook["cells"]):
        marks = nbgrader_of(cell)
        if marks.get("grade_id") in tasks:
            write_points(cell, tasks[marks["grade_id"]])
        else:
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None
            if marks.get("solution") and own[place]:
                cell["source"] = _shown(own[place].pop(0).text, cell["cell_type"])
        shown += [cell, *(_extra(one, f"own-{place}-{n}") for n, one in enumerate(own[place]))]
    notebook["cells"] = shown
    return notebook


def answer_cells(release: dict[str, Any], entry: str) -> list[str]:
    """Return the grade ids of the released cells in which a function is to be written."""
    begun = re.compile(rf"^\s*def {re.escape(entry)}\b", re.MULTILINE)
    answers = [cell for cell in release["cells"] if nbgrader_of(cell).get("solution")]
    return [nbgrader_of(cell).get("grade_id") for cell in answers if begun.search("".join(cell["source"]))]


def _by_place(released: list[dict[str, Any]], cells: Sequence[Cell]) -> list[list[Cell]]:
    """For each released cell return the student's that belong to it: its answer first, then what follows."""
    places = {
        name: place
        for place, cell in enumerate(released)
        for name in (nbgrader_of(cell).get("grade_id"), cell.get("id"))
    }
    places.pop(None, None)
    own: list[list[Cell]] = [[] for _ in released]
    texts = {_plain("".join(cell["source"])) for cell in released}
    here = 0
    for cell in cells:
        found = places.get(cell.grade_id, places.get(cell.id))
        here = here if found is None else found
        if cell.is_grade or _plain(cell.text) in texts:
            continue
        is_ours = found is not None and not nbgrader_of(released[found]).get("solution")
        if cell.kind == "code" or not is_ours:  # code counts wherever it stands, as an answer, too
            own[here].append(cell)
    return own


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _clean(text: str) -> str:
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _extra(cell: Cell, id: str) -> dict[str, Any]:
    if cell.kind != "code":  # raw text, too: pages are made with a raw cell's text as HTML
        return _text_cell(id, _shown(cell.text, "markdown"))
    source = _shown(cell.text, "code")
    nothing = {"outputs": [], "execution_count": None}
    return {"cell_type": "code", "id": id, "metadata": {}, "source": source, **nothing}


def _text_cell(id: str, source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": id, "metadata": {}, "source": source}


def _shown(text: str, kind: str) -> str:
    """Return a student's text for a cell; in a text cell it stands in a fence that it cannot close."""
    text = _clean(text)
    if kind == "code" or not text.strip():
        return text
    fence = "`" * max(3, 1 + max(map(len, BACKTICKS.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def write_points(cell: dict[str, Any], task: dict[str, Any]) -> None:
    """Put the report and the points where nbgrader looks for them: the value of the cell."""
    report = Report.from_json(task["feedback"])
    told = {"text/plain": _clean(str(report)), "text/html": NO_FORMULAS.format(_clean(render_html(report)))}
    points = {"text/plain": repr(float(task["points"]))}
    cell["execution_count"] = 1
    cell["outputs"] = [
        {"output_type": "display_data", "data": told, "metadata": {}},
        {"output_type": "execute_result", "data": points, "metadata": {}, "execution_count": 1},
    ]
