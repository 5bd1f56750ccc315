"""The learner's own page: which tasks are passed, what each gave, and what to do next.

It shows what `check` found with the visible inputs and claims no more than that. Nothing in it has to be
operated, and each colour stands beside a sign or a word.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.theme import DEEP_PINK, GREY_TINT, INK, LINE, PAPER, PINK_TINT, QUIET, VIOLET, VIOLET_TINT
from course_lib.views.nine_circles import BEFORE, BELOW, BESIDE, CIRCLES, Chapter
from course_lib.views.paper import MONO, Html, Sheet, card, escape, note, plural, table_of

if TYPE_CHECKING:
    from course_lib.grading.record import CheckResult, Record
    from course_lib.grading.task import Task

PASSED, PARTLY, WRONG, AGAIN, OPEN = "passed", "partly", "not right yet", "check again", "open"
SIGNS = {PASSED: "✓", PARTLY: "◐", WRONG: "✗", AGAIN: "↻", OPEN: "○"}
#: What a state is drawn in: the ground of its piece of the bar, the ink of its sign there, and in the table.
COLOURS = {
    PASSED: (VIOLET, PAPER, "#7a00d1"),
    PARTLY: (VIOLET_TINT, INK, "#7a00d1"),
    WRONG: (PINK_TINT, DEEP_PINK, DEEP_PINK),
    AGAIN: (PINK_TINT, DEEP_PINK, DEEP_PINK),
    OPEN: (GREY_TINT, QUIET, QUIET),
}
HONEST = (
    "✓ says that the visible tests passed when you checked; grading may use other inputs. Points are the "
    "best of your checks on this computer."
)
EXERCISES = Path(__file__).resolve().parents[2] / "exercises"
BAR, HEIGHT = 560, 24  # pixels


@dataclass(frozen=True)
class TaskRow:
    """One task and what is known of it."""

    task: Task
    record: Record

    @property
    def best(self) -> CheckResult | None:
        """The best result, if there is one."""
        return self.record.best

    @property
    def state(self) -> str:
        """One of SIGNS. A result from when the task had other points has to be checked again."""
        if self.best is None:
            return OPEN
        if self.best.max_points != self.task.points:
            return AGAIN
        return {"right": PASSED, "partly": PARTLY}.get(self.best.state, WRONG)

    @property
    def points(self) -> float:
        """The points that count now."""
        return self.best.points if self.best and self.state != AGAIN else 0.0

    @property
    def score(self) -> str:
        """The points as a cell says them: "2 of 3"; a dash for a task without a result that counts."""
        return f"{'–' if self.state in (OPEN, AGAIN) else f'{self.points:g}'} of {self.task.points:g}"

    @property
    def remark(self) -> str:
        """What the columns do not say: when it was passed, and how the latest check differs."""
        if self.best is None:
            return ""
        if self.state == AGAIN:
            was = f"{self.best.points:g} of {self.best.max_points:g} points on {_day(self.best)}"
            return f"{was}; the task is worth {self.task.points:g} now: check it again"
        latest = self.record.latest
        first = f"passed on {_day(self.best)}" if self.state == PASSED else ""
        if (latest.state, latest.points) == (self.best.state, self.best.points):
            return first
        found = (
            "found a fault" if latest.state == "wrong" else f"gave {latest.points:g} of {latest.max_points:g}"
        )
        later = "" if _day(latest) == _day(self.best) else f" on {_day(latest)}"
        return f"{first or f'best on {_day(self.best)}'}; the latest check{later} {found}"


@dataclass(frozen=True)
class ChapterTasks:
    """The tasks of one chapter."""

    number: str
    rows: tuple[TaskRow, ...]

    @property
    def chapter(self) -> Chapter:
        """The chapter: its file and its title."""
        known = (BEFORE, *CIRCLES, BELOW, *BESIDE)
        return next(chapter for chapter in known if chapter.file.startswith(self.number))

    @property
    def heading(self) -> str:
        """Number and title; the titles of interludes begin with their letter."""
        title = self.chapter.title
        return title if title.startswith(f"{self.number}:") else f"{self.number} {title}"

    @property
    def begun(self) -> bool:
        """Whether anything was checked or asked."""
        return any(row.best or row.record.hints for row in self.rows)

    @property
    def open_rows(self) -> tuple[TaskRow, ...]:
        """The tasks that are not passed."""
        return tuple(row for row in self.rows if row.state != PASSED)

    def finding(self) -> str:
        """Return in words how far the learner is."""
        minutes = sum(row.task.minutes for row in self.open_rows)
        left = f"about {plural(minutes, 'minute')} left" if self.open_rows else "no task open"
        return f"{_sum(self.rows)}, {left}"


def progress(chapter: str | None = None) -> Html:
    """Return the page of tasks passed so far: of one chapter ("01"), or of all chapters.

    Raises KeyError for a chapter without tasks. A record that cannot be read counts as empty, and the page
    says so.
    """
    from course_lib.grading import record, registry

    chapters = (chapter,) if chapter is not None else tuple(registry.CHAPTERS)
    known, unreadable = record.records()
    parts = [
        ChapterTasks(
            name,
            tuple(TaskRow(task, known.get(task.id, record.Record())) for task in registry.tasks(name)),
        )
        for name in chapters
    ]
    gone = sorted(known.keys() - {task.id for task in registry.tasks()})
    asides = [*record.problems(), *_asides(gone, unreadable)]
    title = f"Your tasks: {_sum([row for part in parts for row in part.rows])}"
    following = _what_next(parts, in_order=not record.problems())
    shown = {part.number for part in parts if part.begun or chapter is not None}
    return Html(
        _page(title, following, parts, shown, asides),
        "\n".join(_text(title, following, parts, shown, asides)),
    )


def _sum(rows: Iterable[TaskRow]) -> str:
    rows = tuple(rows)
    passed = sum(row.state == PASSED for row in rows)
    points, best = sum(row.points for row in rows), sum(row.task.points for row in rows)
    return f"{passed} of {len(rows)} passed, {points:g} of {best:g} points"


def _what_next(parts: list[ChapterTasks], in_order: bool) -> str:
    """Name the next open task: in the chapter that was worked on last, else the first there is.

    Where the record is not `in_order`, nothing is claimed about what was tried.
    """
    last = max(parts, key=_last_checked)
    row = next((row for part in (last, *parts) for row in part.open_rows), None)
    if row is None:
        return "Next: every task here is passed with the visible inputs; the chapter's last section leads on."
    task = row.task
    name = f"{task.id}, {task.title}: about {plural(task.minutes, 'minute')}"
    if not any(part.begun for part in parts):
        where = _path(next(part for part in parts if row in part.rows))
        tried = "No task is tried yet." if in_order else "No task is on record."
        return f"{tried} Begin with {name}, in {where}."
    return f"Next: {name}."


def _last_checked(part: ChapterTasks) -> float:
    return max((row.record.latest.day.timestamp() for row in part.rows if row.best), default=0.0)


def _asides(gone: list[str], unreadable: int) -> Iterator[str]:
    if gone:
        names = ", ".join(gone[:5]) + (", …" if len(gone) > 5 else "")
        what = "a task that is" if len(gone) == 1 else f"{len(gone)} tasks that are"
        yield f"The record also holds {what} not in this version of the course: {names}."
    if unreadable:
        what = "One entry" if unreadable == 1 else f"{unreadable} entries"
        yield f"{what} of the record cannot be read and counts as nothing."


def _day(result: CheckResult) -> str:
    day = result.day
    return f"{day.day} {day:%B %Y}"


def _dots(task: Task) -> str:
    return "●" * task.difficulty + "○" * (5 - task.difficulty)


def _path(part: ChapterTasks) -> str:
    return f"exercises/{part.chapter.file}/{part.chapter.file}.ipynb"


# --- text ---------------------------------------------------------------------------------------------------


def _text(
    title: str, following: str, parts: list[ChapterTasks], shown: set[str], asides: list[str]
) -> Iterator[str]:
    yield from (title, following)
    for part in parts:
        yield from ("", f"{part.heading}: {part.finding()}")
        if part.number in shown:
            yield f"   {_path(part)}"
            yield from _text_rows(part.rows)
    yield from ("", HONEST, *asides)


def _text_rows(rows: tuple[TaskRow, ...]) -> Iterator[str]:
    cells = [
        (f"{SIGNS[row.state]} {row.state}", row.task.id, row.task.title, row.score, _dots(row.task))
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, line in zip(rows, cells, strict=True):
        told = "   ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        yield f"   {told}   {row.task.minutes:g} min{_counts(row)}"
        if row.remark:
            yield f"      {row.remark}"


def _counts(row: TaskRow) -> str:
    counts = (row.record.tries, "try"), (row.record.hints, "hint")
    return "".join(f", {plural(count, noun)}" for count, noun in counts if count)


# --- HTML ---------------------------------------------------------------------------------------------------

_CELL = f"padding:4px 14px 4px 4px;color:{INK};border:0;border-bottom:1px solid {LINE};vertical-align:top"


def _page(title: str, following: str, parts: list[ChapterTasks], shown: set[str], asides: list[str]) -> str:
    lead = f'<div style="margin:0 0 4px;color:{INK}">{escape(following)}</div>'
    body = "".join(_section(part, part.number in shown) for part in parts)
    notes = "".join(note(line) for line in (HONEST, *asides))
    return card(lead + body + notes, f"{title}. {following}", title=title)


def _section(part: ChapterTasks, in_full: bool) -> str:
    finding = f'<span style="margin-right:10px">{escape(part.finding())}</span>'
    title = f"<b>{escape(part.heading)}</b>"
    head = f'<div style="margin:14px 0 5px;color:{INK}">{title} · {finding} {_link(part)}</div>'
    return head + _bar(part) + (_table(part) if in_full else "")


def _link(part: ChapterTasks) -> str:
    """Return the assignment's path: as a link, if the notebook stands in the project too."""
    words = escape(_path(part))
    there = _from_here(EXERCISES / part.chapter.file / f"{part.chapter.file}.ipynb")
    style = f"font:12.5px {MONO}"
    if there is None:
        return f'<span style="{style};color:{QUIET}">{words}</span>'
    return f'<a href="{escape(there)}" style="{style};color:#7a00d1;text-decoration:underline">{words}</a>'


def _from_here(file: Path) -> str | None:
    """Return the way to the file from the present folder; None from outside the project."""
    try:
        here = Path.cwd().resolve()
    except OSError:  # the folder was deleted
        return None
    if not file.is_file() or EXERCISES.parent not in (here, *here.parents):
        return None
    return Path(os.path.relpath(file, here)).as_posix()


def _bar(part: ChapterTasks) -> str:
    """Draw a piece for each task, as wide as its points, filled as far as it is earned."""
    on = Sheet()
    unit = BAR / sum(row.task.points for row in part.rows)
    x = 0.0
    for row in part.rows:
        wide = unit * row.task.points
        _piece(on, row, x, wide)
        x += wide
    said = "; ".join(f"{row.task.id} {row.state}, {row.score}" for row in part.rows)
    return on.svg(BAR, HEIGHT, f"Bar of chapter {part.number}: {part.finding()}. {said}.")


def _piece(on: Sheet, row: TaskRow, x: float, wide: float) -> None:
    ground, ink, _ = COLOURS[row.state]
    edge = None if row.state == PASSED else LINE
    on.box(x + 1, 1, wide - 2, HEIGHT - 2, fill=ground, stroke=edge, radius=3)
    if row.state == PARTLY:
        share = row.points / row.task.points
        on.box(x + 1, HEIGHT - 6, (wide - 2) * share, 5, fill=VIOLET, stroke=None, radius=2)
    on.write(x + wide / 2, HEIGHT / 2 + 4.5, SIGNS[row.state], fill=ink, anchor="middle", bold=True)


def _table(part: ChapterTasks) -> str:
    names = ("task", "state", "points", "difficulty", "minutes", "tries", "hints")
    rule = f"{_CELL};border-bottom:1px solid {INK};background:{PAPER};font-weight:600"
    head = "".join(f'<th scope="col" style="{rule};text-align:{_side(name)}">{name}</th>' for name in names)
    # the layout, because JupyterLab makes all columns equally wide
    style = "table-layout:auto;width:100%;margin:6px 0 0;font-size:13px"
    return table_of(head, map(_table_row, part.rows), style)


def _side(name: str) -> str:
    return "left" if name in ("task", "state", "difficulty") else "right"


def _table_row(row: TaskRow) -> str:
    task, colour = row.task, COLOURS[row.state][2]
    remark = f'<div style="color:{QUIET};font-size:12px">{escape(row.remark)}</div>' if row.remark else ""
    name = f'<span style="font-family:{MONO};font-size:12.5px">{escape(task.id)}</span> {escape(task.title)}'
    cells = (
        (
            "state",
            f'<span style="color:{colour};white-space:nowrap"><b>{SIGNS[row.state]}</b> {row.state}</span>',
        ),
        ("points", row.score),
        ("difficulty", f'<span role="img" aria-label="{task.difficulty} of 5">{_dots(task)}</span>'),
        ("minutes", f"{task.minutes:g}"),
        ("tries", str(row.record.tries or "–")),
        ("hints", str(row.record.hints or "–")),
    )
    style = f"{_CELL};background:{PAPER}"
    told = "".join(
        f'<td style="{style};text-align:{_side(name)};white-space:nowrap">{content}</td>'
        for name, content in cells
    )
    wide = f"{style};width:60%;white-space:normal;text-align:left;font-weight:400"
    first = f'<th scope="row" style="{wide}">{name}{remark}</th>'
    return f'<tr style="background:{PAPER}">{first}{told}</tr>'
