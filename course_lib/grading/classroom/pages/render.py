"""The three pages of a class as HTML: the student's, the teacher's about a student, the one about the class.

The words and the look are in the templates beside this file (*.j2). They escape whatever they show; names and
other words that students wrote go through `text.name` before.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from course_lib import theme
from course_lib.grading.classroom.pages import files, text
from course_lib.grading.classroom.pages.charts import PointsChart, TasksChart
from course_lib.grading.classroom.pages.tally import STATES, ClassTally
from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, SIGNS, WRONG, Report, code_html, render_html

#: Of an answer, so much is shown: nobody reads on.
CHARACTERS, LINES = 12_000, 400
#: What the templates know besides what a page is about.
GLOBALS = {
    "IN_WORDS": {RIGHT: "right", PARTLY: "partly right", WRONG: "wrong", NOT_STARTED: "not started"},
    "VERBS": {NOT_STARTED: "Start", PARTLY: "Go on with", WRONG: "Mend"},
    "SIGNS": SIGNS,
    "STATES": STATES,
    "SHOWN_MISTAKES": 40,
    "SHOWN_NAMES": 15,
    "SHOWN_LOOKS": 25,
    "EXAMPLE_LINES": 40,
    "theme": theme,
}


def feedback_page(verdict: dict[str, Any]) -> str:
    """Return the student's page as HTML. It is made from the `feedback` reports alone: no hidden input."""
    still_open = [task for task in verdict["tasks"] if task["state"] != RIGHT]
    still_open.sort(key=lambda task: task["points"] - task["max_points"])  # what is worth most comes first
    title = f"{verdict['assignment']} · {verdict['student']} · feedback"
    return _page("feedback.j2", title, verdict=verdict, open=still_open, needs_a_look=needs_a_look(verdict))


def teacher_page(verdict: dict[str, Any]) -> str:
    """Return the full reports on one student as HTML, with the secret inputs: for the teacher only."""
    title = f"{verdict['assignment']} · {verdict['student']} · full reports"
    links = _links(verdict["student"], verdict["assignment"])
    return _page("teacher.j2", title, verdict=verdict, links=links, needs_a_look=needs_a_look(verdict))


def summary_page(tally: ClassTally, run: dict[str, Any]) -> str:
    """Return the teacher's page about a class as HTML; `run` says when, where and with what it was graded."""
    assignment, rows = run.get("assignment", ""), tally.rows
    return _page(
        "summary.j2",
        f"{assignment} · summary",
        assignment=assignment,
        run=run,
        tally=tally,
        rows=rows,
        looks=[(row, task, reason) for row in rows for task, reason in row.manual],
        mistakes=tally.common_mistakes,
        points_chart=PointsChart(tally) if rows else None,
        tasks_chart=TasksChart(tally.hardest_first) if rows else None,
    )


def needs_a_look(verdict: dict[str, Any]) -> bool:
    """Whether a person has to look at this submission."""
    return bool(verdict["manual"]) or any(task["manual"] for task in verdict["tasks"])


def _links(student: str, assignment: str) -> list[tuple[str, str]]:
    """Return (address, words) of the class and of the student's own page, as seen from the teacher's page."""
    if not files.is_safe(student) or not files.is_safe(assignment):
        return []
    depth = len(files.teacher_place(student, assignment).parts) - 1
    up = PurePosixPath(*[".."] * depth)
    places = {
        "All students": files.summary_place(assignment),
        "This student's feedback": files.feedback_place(student, assignment),
    }
    return [(files.link(up / place.as_posix()), words) for words, place in places.items()]


def _link_to(place: str, student: str, assignment: str) -> str:
    """Return the address of a student's page as seen from the summary; "" where the names make no path."""
    if not files.is_safe(student) or not files.is_safe(assignment):
        return ""
    where = {"teacher": files.teacher_place, "feedback": files.feedback_place}[place]
    return files.link(where(student, assignment))


# --- an answer's source -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownSource:
    """The beginning of an answer: (number, highlighted HTML) of each line. `taken` lines were looked at."""

    lines: list[tuple[str, Any]]
    taken: int
    characters: int
    all_characters: int
    is_cut: bool


def shown_source(source: Any, numbers: Sequence[int] | None = None, lines: int = LINES) -> ShownSource:
    """Return what is shown of an answer; `lines` is empty if there is none.

    `numbers` are the lines' numbers in their cells, which reports speak of; 0 for a line without one.
    """
    source = str(source)
    if not source.strip():
        return ShownSource([], 0, 0, len(source), False)
    beginning = source[:CHARACTERS].replace("\r\n", "\n").split("\n")[:lines]
    shown = "\n".join(beginning).rstrip("\n")
    rows = _highlighted(text.visible(shown))
    named = [str(int(number) or "") for number in (numbers or ())[: len(rows)]]
    named += [""] * (len(rows) - len(named)) if named else [str(n + 1) for n in range(len(rows))]
    is_cut = len(source.rstrip()) > len(shown)
    return ShownSource([*zip(named, rows, strict=True)], len(beginning), len(shown), len(source), is_cut)


def _highlighted(source: str) -> list[Any]:
    """Return the lines as HTML; no element goes over a line end."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    lexer = PythonLexer(stripnl=False, ensurenl=False)
    coloured = highlight(source, lexer, HtmlFormatter(nowrap=True)).removesuffix("\n")
    return [Markup(line) for line in coloured.split("\n")]


# --- the templates ------------------------------------------------------------------------------------------


def _page(template: str, title: str, **about: Any) -> str:
    return _templates().get_template(template).render(title=title, **about)


@functools.cache
def _templates() -> Any:
    """Return the templates, which escape everything that is not said to be HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("course_lib.grading.classroom", "pages")
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {**GLOBALS, "shown_source": shown_source, "link_to": _link_to}
    for words in (text.name, text.number, text.percent, text.plural, text.duration, text.spaced):
        made.filters[words.__name__] = words
    made.filters["tenths"] = "{:.1f}".format
    made.filters["with_code"] = lambda line: Markup(code_html(line))
    made.filters["as_report"] = lambda plain: Markup(render_html(Report.from_json(text.harmless(plain))))
    return made
