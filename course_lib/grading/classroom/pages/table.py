"""The grades as a csv for spreadsheets and learning platforms.

The file is UTF-8 with a byte order mark. Without it Excel reads a double-clicked csv in the system's old code
page and ruins every name beyond ASCII; LibreOffice, pandas and Python's "utf-8-sig" skip the mark. Numbers
have a decimal point: where a spreadsheet wants a comma, import the file instead of opening it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from course_lib.grading.classroom.pages import files
from course_lib.grading.classroom.pages.tally import Row, Tally
from course_lib.grading.classroom.pages.text import LONG, name, number

BEFORE = ("student", "assignment", "points", "max_points")
AFTER = ("manual", "received")
#: What makes a spreadsheet take a cell for a formula: also in full width, and behind blanks.
FORMULA = re.compile(r"[\s'\"]*[=+\-@＝＋－＠]")
#: A program that separates cells elsewhere sees a new cell behind these.
CELL_WITHIN = re.compile(r"([;,|\t\"␉␊␍]\s*)(?=[=+\-@＝＋－＠])")


def write_csv(verdicts: Iterable[dict], path: Path) -> None:
    """Write one line a student: points, per task points and state, why a person must look, the file received.

    The task columns are `<id>` and `<id> state`. Old or new content, never half of it, is at `path`.
    """
    write_tally(Tally(verdicts), path)


def write_tally(tally: Tally, path: Path) -> None:
    """Write the csv of a class that is added up already."""
    files.write(path, _csv(tally.rows, list(tally.tasks)).encode("utf-8-sig"))


def harmless_cell(text: str) -> str:
    """Return text as one visible line; an apostrophe stops a spreadsheet from taking it for a formula."""
    line = CELL_WITHIN.sub(r"\1'", name(text, LONG))
    return f"'{line}" if FORMULA.match(line) or line.startswith(("␉", "␍", "␊")) else line


def _csv(rows: list[Row], tasks: list[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    columns = [column for id in tasks for column in (id, f"{id} state")]
    writer.writerow(harmless_cell(column) for column in (*BEFORE, *columns, *AFTER))
    writer.writerows(map(_cells, rows, [tasks] * len(rows)))
    return text.getvalue()


def _cells(row: Row, tasks: list[str]) -> list[str]:
    cells = [
        harmless_cell(row.student),
        harmless_cell(row.assignment),
        number(row.points),
        number(row.max_points),
    ]
    for id in tasks:
        points, state = row.results.get(id, (None, ""))
        cells += ["" if points is None else number(points), state]
    reasons = "; ".join(f"{id}: {reason}" if id else reason for id, reason in row.manual)
    return [*cells, harmless_cell(reasons), harmless_cell(row.received)]
