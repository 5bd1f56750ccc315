"""The report on an answer, as text and as HTML: first in words, then the numbers."""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch
from course_lib.grading.sources import notebook_shell
from course_lib.grading.task import Case, Task
from course_lib.theme import GREY, PINK, VIOLET

WRONG, RIGHT, PARTLY, NOT_STARTED = "wrong", "right", "partly", "not started"
COLOURS = {WRONG: PINK, RIGHT: VIOLET, PARTLY: VIOLET, NOT_STARTED: GREY}
SIGNS = {WRONG: "✗", RIGHT: "✓", PARTLY: "◐", NOT_STARTED: "○"}
OTHER_INPUTS = "The visible tests pass. Grading may run the same task with other inputs."
LARGEST_MAP = 24  # cells along a side; larger maps show the worst error of each block


@dataclass(frozen=True)
class Report:
    """What the check found. `points` of `max_points`; `lines` say it in words; `state` sums it up."""

    task_id: str
    title: str
    points: float
    max_points: float
    state: str
    lines: tuple[str, ...]
    mismatch: Mismatch | None = None
    notes: tuple[str, ...] = ()
    _shown_in: list = field(default_factory=list, compare=False, repr=False)

    @property
    def passed(self) -> bool:
        """Whether the answer has all points."""
        return self.state == RIGHT

    @property
    def started(self) -> bool:
        """Whether there is an answer at all."""
        return self.state != NOT_STARTED

    @property
    def headline(self) -> str:
        """The first line: sign, task, points."""
        return f"{SIGNS[self.state]} {self.task_id} · {self.title} · {self.score}"

    @property
    def score(self) -> str:
        """The points in words: "2 of 3 points"."""
        if not self.max_points:
            return "optional"
        return f"{self.points:g} of {self.max_points:g} point{'' if self.max_points == 1 else 's'}"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data; `from_json` gives an equal report back."""
        kept = ("task_id", "title", "points", "max_points", "state")
        plain = {name: getattr(self, name) for name in kept}
        mismatch = self.mismatch.to_json() if self.mismatch else None
        return {**plain, "lines": [*self.lines], "notes": [*self.notes], "mismatch": mismatch}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Report:
        """Return the report that `to_json` wrote down."""
        mismatch = Mismatch.from_json(plain["mismatch"]) if plain["mismatch"] else None
        given = {**plain, "lines": tuple(plain["lines"]), "notes": tuple(plain["notes"])}
        return cls(**{**given, "mismatch": mismatch})

    def __str__(self) -> str:
        return "\n".join([self.headline, *self._text_lines()])

    def __repr__(self) -> str:
        return f"<Report {self.task_id}: {self.score}, {self.state}>"

    def _text_lines(self) -> Iterator[str]:
        yield from (f"  {line}" for line in self.lines)
        if self.mismatch:
            yield from _text_details(self.mismatch)
        yield from (f"  {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        return render_html(self)

    def show(self, brief: bool = False) -> None:
        """Show the report now, as HTML in a notebook, as text elsewhere.

        `brief` shows only the first line of a report that is passed or not started.
        """
        cell = _current_cell()
        self._shown_in[:] = [cell]
        short = brief and (self.passed or not self.started)
        if cell is None:
            print(self.headline if short else self)
            return
        from IPython.display import display

        display(
            {"text/html": render_html(self, short), "text/plain": self.headline if short else str(self)},
            raw=True,
        )

    def _ipython_display_(self) -> None:
        """Show a report that ends a cell, unless this very cell has shown it already."""
        if _current_cell() not in self._shown_in:
            self.show()


def _current_cell() -> Any:
    """Return a token for the cell that is running in a notebook, or None outside of one."""
    shell = notebook_shell()
    return None if shell is None else ("cell", shell.execution_count)


# --- reports on an answer -----------------------------------------------------------------------------------


def make_report(
    task: Task,
    points: float,
    state: str,
    lines: list[str],
    notes: tuple[str, ...] = (),
    mismatch: Mismatch | None = None,
) -> Report:
    """Return the report on an answer to the task."""
    return Report(
        task.id, task.title, float(points), task.points, state, tuple(lines), mismatch, tuple(notes)
    )


def not_started(task: Task, why: str = "", source: str = "") -> Report:
    """Return the report on an answer that does not exist yet, or that `source` never comes to."""
    lines = [why or f"Not started: write `{task.entry}` in the cell above, run it, then run this cell."]
    if "NotImplementedError" in source:
        lines.append("Or does `raise NotImplementedError()` still stand there? Delete it.")
    return make_report(task, 0.0, NOT_STARTED, [*lines, f'`hint("{task.id}")` helps, one step at a time.'])


def wrong(
    task: Task, lines: list[str], notes: tuple[str, ...] = (), mismatch: Mismatch | None = None
) -> Report:
    """Return the report on a wrong answer."""
    return make_report(task, 0.0, WRONG, lines, notes, mismatch)


def refused(task: Task, why: str) -> Report:
    """Return the report on something that cannot be judged."""
    return wrong(task, [why])


def input_note(task: Task, case: Case) -> tuple[str, ...]:
    """Say which input showed it, and the input itself if it is small."""
    names = inspect.signature(task.reference).parameters
    values = ", ".join(f"{name} = {_in_full(value)}" for name, value in zip(names, case.args, strict=False))
    show = len(values) <= 160 and not any(isinstance(argument, np.ndarray) for argument in case.args)
    return (f"Input ({case.label}): {values}" if show else f"Input: {case.label}.",)


def _in_full(argument: Any) -> str:
    """Return an argument as text; a float by itself with all its digits: a tie must look like one."""
    return repr(float(argument)) if isinstance(argument, float) else _short(argument)


def _short(argument: Any) -> str:
    if isinstance(argument, float):
        return f"{argument:.6g}"
    if isinstance(argument, list):
        return "[" + ", ".join(_short(item) for item in argument) + "]"
    return repr(argument)


def argument_name(place: int) -> str:
    """Return how a report calls an argument: "the second argument"."""
    names = ("first", "second", "third", "fourth", "fifth", "sixth")
    return f"the {names[place]} argument" if place < len(names) else f"argument {place + 1}"


# --- text ---------------------------------------------------------------------------------------------------


def _text_details(found: Mismatch) -> Iterator[str]:
    if found.rows:
        table = [("index", "yours", "expected"), *found.rows]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        for row in table:
            yield "    " + "   ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        hidden = found.wrong - len(found.rows)
        if hidden > 0:
            yield f"    … and {hidden} more"
    if found.got and found.got != found.want:
        yield f"  yours: {found.got}; expected: {found.want}"
    elif found.rows:
        yield f"  yours and expected are both {found.got}"


# --- HTML ---------------------------------------------------------------------------------------------------

_CARD = (
    "border-left:4px solid {colour};padding:.4em .9em .5em;margin:.3em 0;max-width:52em;"
    "font-size:var(--jp-ui-font-size1,14px);line-height:1.5;color:inherit;background:transparent"
)
_CELL = "padding:.1em 1.1em .1em 0;text-align:right;border:0;background:transparent;color:inherit"
_ROW = "background:transparent;border:0"
_PRE = "line-height:1.35;margin:.3em 0;background:transparent;color:inherit"
_MONO = "font-family:var(--jp-code-font-family,monospace);font-variant-numeric:tabular-nums"


def card(colour: str, body: str) -> str:
    """Return HTML in a box with a coloured edge that reads well on light and dark pages."""
    return f'<div class="nine-circles-report" style="{_CARD.format(colour=colour)}">{body}</div>'


@dataclass(frozen=True)
class TextCard:
    """A short text for the learner that shows itself as a card."""

    head: str
    body: str
    colour: str = GREY

    def __str__(self) -> str:
        return f"{self.head}\n{self.body}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body = code_html(self.body).replace("\n", "<br>")
        return card(self.colour, f"<strong>{html.escape(self.head)}</strong><br>{body}")


def render_html(report: Report, brief: bool = False) -> str:
    """Return the report as one HTML card; `brief` gives its first line alone."""
    colour = COLOURS[report.state]
    sign = f'<span style="color:{colour};font-weight:700">{SIGNS[report.state]}</span>'
    head = (
        f"<div>{sign} <strong>{report.task_id}</strong> · {_text(report.title)} "
        f'<span style="float:right;margin-left:1.5em"><strong>{report.score}</strong></span></div>'
    )
    body = "" if brief else "".join(_html_lines(report))
    return card(colour, head + body)


def _html_lines(report: Report) -> Iterator[str]:
    for line in report.lines:
        yield f'<div style="margin-top:.25em">{code_html(line)}</div>'
    if report.mismatch:
        yield _html_details(report.mismatch)
    for note in report.notes:
        yield f'<div style="margin-top:.35em;opacity:.75;font-size:.92em">{code_html(note)}</div>'


def _html_details(found: Mismatch) -> str:
    parts = []
    if found.rows:
        parts.append(_html_table(found))
    if found.errors is not None and heat_map_teaches(found.errors):
        parts.append(heat_map(found.errors))
    row = f'<div style="display:flex;flex-wrap:wrap;gap:1em 2.5em;margin-top:.4em">{"".join(parts)}</div>'
    kinds = ""
    if found.got and found.got != found.want:
        kinds = f"yours: {_text(found.got)}; expected: {_text(found.want)}"
    elif found.got and found.total > 1:
        kinds = f"yours and expected are both {_text(found.got)}"
    return row + (f'<div style="margin-top:.3em;opacity:.75;font-size:.92em">{kinds}</div>' if kinds else "")


def _html_table(found: Mismatch) -> str:
    heads = "".join(
        f'<th style="{_CELL};opacity:.7;font-weight:600">{name}</th>'
        for name in ("index", "yours", "expected")
    )
    rows = "".join(
        f'<tr style="{_ROW}">'
        + "".join(f'<td style="{_CELL};{_MONO}">{_text(text)}</td>' for text in row)
        + "</tr>"
        for row in found.rows
    )
    hidden = found.wrong - len(found.rows)
    more = f'<div style="opacity:.7;font-size:.92em">… and {hidden} more</div>' if hidden > 0 else ""
    return (
        '<div><table style="border-collapse:collapse;margin:0;border:0;font-size:inherit">'
        f'<thead><tr style="{_ROW}">{heads}</tr></thead><tbody>{rows}</tbody></table>'
        f"{more}</div>"
    )


def source_html(text: str) -> str:
    """Return text as HTML in which every letter is as wide as the others."""
    return f'<pre style="{_PRE};{_MONO}">{_text(text)}</pre>'


def heat_map_teaches(errors: np.ndarray) -> bool:
    """Whether the picture shows more than the words: some entries are wrong and some are not."""
    wrong = np.isnan(errors) | (errors > 1e-6)
    return errors.ndim == 2 and min(errors.shape) >= 2 and 0 < wrong.sum() < wrong.size


def heat_map(errors: np.ndarray) -> str:
    """Return an SVG of a 2-D error: pink where it is wrong (stronger is worse), violet where it is NaN."""
    blocks = _shrink(errors)
    rows, columns = blocks.shape
    side = max(7, min(18, 200 // max(rows, columns)))
    cells = "".join(_square(blocks[i, j], side, i, j) for i in range(rows) for j in range(columns))
    wrong = int((np.isnan(errors) | (errors > 1e-6)).sum())
    alt = (
        f"Map of the error over the {errors.shape[0]} x {errors.shape[1]} result: {wrong} entries are wrong."
    )
    legend = "error by position: pink wrong" + (", violet NaN or inf" if np.isnan(errors).any() else "")
    return (
        f'<figure style="margin:0"><svg role="img" aria-label="{alt}" width="{columns * side}" '
        f'height="{rows * side}" style="display:block"><title>{alt}</title>{cells}</svg>'
        f'<figcaption style="opacity:.7;font-size:.85em;text-align:left">{legend}</figcaption></figure>'
    )


def _square(error: float, side: int, i: int, j: int) -> str:
    missing = math.isnan(error)
    colour = VIOLET if missing else PINK if error > 1e-6 else GREY
    strength = 1.0 if missing else 0.35 + 0.65 * min(1.0, error) if error > 1e-6 else 0.18
    return (
        f'<rect x="{j * side}" y="{i * side}" width="{side - 1}" height="{side - 1}" rx="1.5" '
        f'fill="{colour}" fill-opacity="{strength:.2f}"/>'
    )


def _shrink(errors: np.ndarray) -> np.ndarray:
    """Return a map of at most LARGEST_MAP cells a side; a cell holds the worst error of its block, or NaN."""
    for axis in (0, 1):
        parts = min(errors.shape[axis], LARGEST_MAP)
        blocks = np.array_split(errors, parts, axis=axis)
        errors = np.stack([block.max(axis=axis) for block in blocks], axis=axis)
    return errors


def _text(text: str) -> str:
    return html.escape(str(text), quote=False)


def code_html(line: str) -> str:
    """Return a line as HTML, with its `quoted` parts set as code."""
    parts = _text(line).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    style = f"{_MONO};font-size:.95em;background:rgba(128,128,128,.14);padding:0 .25em;border-radius:3px"
    return "".join(
        f'<code style="{style};color:inherit">{part}</code>' if place % 2 else part
        for place, part in enumerate(parts)
    )
