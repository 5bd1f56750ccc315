"""The three pages of a class as HTML: the student's, the teacher's about a student, the one about the class.

The words and the look are in the templates beside this file (*.j2). They escape whatever they show; names and
other words that students wrote go through `text.name` before.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from course_lib import theme
from course_lib.grading.classroom.pages import charts, files, text
from course_lib.grading.classroom.pages.tally import STATES, ClassTally
from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, SIGNS, WRONG, Report, code_html, render_html

#: Of an answer, so much is shown: nobody reads on.
CHARACTERS, LINES = 12_000, 400
#: Behind `match` their number squared is the time that colours take.
BLANKS = re.compile(r"[^\S\n]{200}")
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
    "WIDTH": charts.WIDTH,
    "LETTER": charts.LETTER,
    "points_chart": charts.points_chart,
    "tasks_chart": charts.tasks_chart,
    "link_to": files.link_to,
    "theme": theme,
}


def feedback_page(verdict: dict[str, Any]) -> str:
    """Return the student's page as HTML. It is made from the `feedback` reports alone: no hidden input."""
    still_open = [task for task in verdict["tasks"] if task["state"] != RIGHT]
    still_open.sort(key=lambda task: task["points"] - task["max_points"])  # what is worth most comes first
    return _templates().get_template("feedback.j2").render(verdict=verdict, open=still_open)


def teacher_page(verdict: dict[str, Any]) -> str:
    """Return the full reports on one student as HTML, with the secret inputs: for the teacher only."""
    return _templates().get_template("teacher.j2").render(verdict=verdict)


def summary_page(tally: ClassTally, run: dict[str, Any]) -> str:
    """Return the teacher's page about a class as HTML; `run` says when, where and with what it was graded."""
    rows = tally.rows
    looks = [(row, task, reason) for row in rows for task, reason in row.manual]
    template = _templates().get_template("summary.j2")
    return template.render(assignment=run.get("assignment", ""), run=run, tally=tally, rows=rows, looks=looks)


def needs_a_look(verdict: dict[str, Any]) -> bool:
    """Whether a person has to look at this submission."""
    return bool(verdict["manual"]) or any(task["manual"] for task in verdict["tasks"])


def shown_source(source: Any, numbers: Sequence[int] | None = None, lines: int = LINES) -> dict[str, Any]:
    """Return the beginning of an answer: `lines` as (number, highlighted HTML), `taken` lines looked at.

    `numbers` are the lines' numbers in their cells, which reports speak of; 0 for a line without one.
    """
    source = str(source)
    beginning = source[:CHARACTERS].replace("\r\n", "\n").split("\n")[:lines]
    shown = "\n".join(beginning).rstrip("\n")
    rows = _highlighted(text.visible(shown)) if source.strip() else []
    named = [number or "" for number in numbers or range(1, len(rows) + 1)]
    return {
        "lines": [*zip([*named, *[""] * len(rows)], rows, strict=False)],
        "taken": len(beginning),
        "characters": len(shown),
        "all_characters": len(source),
        "is_cut": len(source.rstrip()) > len(shown),
    }


def _highlighted(source: str) -> list[Any]:
    """Return the lines as HTML; no element goes over a line end."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer, TextLexer

    lexer = (TextLexer if BLANKS.search(source) else PythonLexer)(stripnl=False, ensurenl=False)
    coloured = highlight(source, lexer, HtmlFormatter(nowrap=True)).removesuffix("\n")
    return [Markup(line) for line in coloured.split("\n")]


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
    made.globals |= {**GLOBALS, "shown_source": shown_source}
    for words in (
        text.name,
        text.number,
        text.percent,
        text.plural,
        text.duration,
        text.spaced,
        needs_a_look,
    ):
        made.filters[words.__name__] = words
    made.filters["tenths"] = "{:.1f}".format
    made.filters["with_code"] = lambda line: Markup(code_html(line))
    made.filters["as_report"] = lambda plain: Markup(render_html(Report.from_json(text.harmless(plain))))
    return made
