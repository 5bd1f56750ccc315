"""The page about a class: who needs a look, the points, the tasks, what went wrong, every student."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from course_lib.grading.classroom.pages import files
from course_lib.grading.classroom.pages.answer import answer_html
from course_lib.grading.classroom.pages.charts import histogram, stacked
from course_lib.grading.classroom.pages.feedback import sign
from course_lib.grading.classroom.pages.style import COURSE, facts, page, scroll
from course_lib.grading.classroom.pages.tally import STATES, Mistake, Row, Tally, TaskTally
from course_lib.grading.classroom.pages.text import (
    duration,
    escape,
    name,
    name_html,
    number,
    percent,
    plural,
    points,
)
from course_lib.grading.report import code_html

SHOWN_MISTAKES, SHOWN_NAMES, SHOWN_LOOKS = 40, 15, 25
EXAMPLE_LINES = 40
NO_SANDBOX = (
    "These grades were made without a sandbox: the students' code ran with your rights on your files. "
    "Do not rely on them where somebody may cheat."
)


def summary_page(verdicts: Iterable[dict], run: dict, course: str = COURSE) -> str:
    """Return the teacher's page about a class as HTML; the verdicts are read once, one by one."""
    return summary_of(Tally(verdicts), run, course)


def summary_of(tally: Tally, run: dict, course: str = COURSE) -> str:
    """Return the page about a class that is added up already."""
    assignment = run.get("assignment", "")
    rows = tally.rows
    body = [
        f"<h1>{name_html(assignment)} · summary of the class</h1>",
        "" if run.get("sandbox") is True else f'<p class="warning"><strong>{NO_SANDBOX}</strong></p>',
        _looks(rows),
        _in_short(tally),
        *(_tasks(tally) if rows else ()),
        _mistakes(tally, assignment),
        _students(rows, list(tally.tasks)),
        _about(run),
    ]
    return page(f"{assignment} · summary", "\n".join(body), course)


# --- who needs a manual look --------------------------------------------------------------------------------


def _looks(rows: list[Row]) -> str:
    """Return a line for each reason why a person must look; nothing if there is none."""
    lines = [_look(row, id, reason) for row in rows for id, reason in row.manual]
    if not lines:
        return ""
    students = sum(bool(row.manual) for row in rows)
    verb = "needs" if students == 1 else "need"
    first, rest = lines[:SHOWN_LOOKS], lines[SHOWN_LOOKS:]
    more = f"<details><summary>{len(rest)} more</summary>{_look_table(rest)}</details>" if rest else ""
    return f"<h2>{plural(students, 'student')} {verb} a manual look</h2>{_look_table(first)}{more}"


def _look_table(lines: list[str]) -> str:
    heads = '<th scope="col">student</th><th scope="col">task</th><th scope="col">why</th>'
    table = f'<table class="list"><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    return scroll("Who needs a manual look, and why", table)


def _look(row: Row, id: str, reason: str) -> str:
    task = f'<span class="id">{name_html(id)}</span>' if id else "all of it"
    return (
        f'<tr><th scope="row" class="student">{_to_reports(row.student, row.assignment)}</th><td>{task}</td>'
        f'<td class="words">{name_html(reason, 300)}</td></tr>'
    )


def _to_reports(student: str, assignment: str) -> str:
    """Return the student's name, linked to the full reports."""
    return _linked(files.teacher_place, student, assignment, name_html(student))


def _linked(place: Any, student: str, assignment: str, words: str) -> str:
    if not files.is_safe(student) or not files.is_safe(assignment):
        return words
    return f'<a href="{escape(files.link(place(student, assignment)))}">{words}</a>'


# --- points and tasks ---------------------------------------------------------------------------------------


def _in_short(tally: Tally) -> str:
    totals, most = tally.totals, tally.most
    if not totals:
        return "<h2>Points</h2><p>No submission has been graded yet.</p>"
    mean = sum(totals) / len(totals)
    known = facts(
        [
            ("Submissions graded", str(len(totals))),
            ("Mean", points(round(mean, 2), most)),
            ("Median", points(tally.median, most)),
            ("Lowest and highest", f"{number(totals[0])} and {number(totals[-1])}"),
            ("Full marks", plural(sum(total >= most for total in totals), "student")),
        ]
    )
    return f"<h2>Points</h2>{known}{histogram(totals, most, tally.median)}"


def _tasks(tally: Tally) -> Iterable[str]:
    tasks = tally.hardest_first
    yield f"<h2>Tasks, hardest first</h2>{stacked(tasks)}{_key()}"
    columns = ("share of the points", *STATES)
    heads = "".join(f'<th scope="col" class="n">{column}</th>' for column in columns)
    lines = "".join(map(_task_line, tasks))
    head = f'<thead><tr><th scope="col">task</th>{heads}</tr></thead>'
    table = f'<table class="list">{head}<tbody>{lines}</tbody></table>'
    yield scroll("Results by task", table)


def _key() -> str:
    words = ("all points", "some of the points", "no points", "no answer")
    keys = (
        f'<span class="key">{sign(state)} {state}: {said}</span> '
        for state, said in zip(STATES, words, strict=True)
    )
    return f'<p class="soft">{"".join(keys)}</p>'


def _task_line(task: TaskTally) -> str:
    counts = "".join(f'<td class="n">{task.states[state]}</td>' for state in STATES)
    return (
        f'<tr><th scope="row" class="task">{name_html(task.id)} · {name_html(task.title)}</th>'
        f'<td class="n">{percent(task.share)}</td>{counts}</tr>'
    )


# --- what went wrong ----------------------------------------------------------------------------------------


def _mistakes(tally: Tally, assignment: str) -> str:
    shared, lone = tally.common_mistakes, tally.lone_mistakes
    if not shared and not lone:
        return ""
    shown = "".join(_mistake(mistake, assignment) for mistake in shared[:SHOWN_MISTAKES])
    rest = len(shared) - SHOWN_MISTAKES
    said = [f"{plural(rest, 'rarer mistake')} not shown." if rest > 0 else ""]
    said.append(
        f"{plural(lone, 'mistake was', 'mistakes were')} made once: see the full reports." if lone else ""
    )
    return f'<h2>Common wrong answers</h2>{shown}<p class="soft">{" ".join(said).strip()}</p>'


def _mistake(mistake: Mistake, assignment: str) -> str:
    count, first = len(mistake.students), mistake.students[0]
    names = ", ".join(_to_reports(student, assignment) for student in mistake.students[:SHOWN_NAMES])
    more = f" and {count - SHOWN_NAMES} more" if count > SHOWN_NAMES else ""
    return (
        f"<h3>{count} × {name_html(mistake.task)}: <bdi>{code_html(name(mistake.why, 300))}</bdi></h3>"
        f"<p>{names}{more}</p><details><summary>Example: the answer of {name_html(first)}</summary>"
        f"{answer_html(mistake.example, lines=EXAMPLE_LINES)}</details>"
    )


# --- every student ------------------------------------------------------------------------------------------


def _students(rows: list[Row], tasks: list[str]) -> str:
    if not rows:
        return ""
    heads = "".join(f'<th scope="col" class="n id">{name_html(id)}</th>' for id in tasks)
    lines = "".join(_student(row, tasks) for row in rows)
    table = (
        '<table class="list"><thead><tr><th scope="col">student</th><th scope="col" class="n">points</th>'
        f'{heads}<th scope="col">look</th><th scope="col" class="links">pages</th></tr></thead>'
        f"<tbody>{lines}</tbody></table>"
    )
    said = '<p class="soft">By name. The csv beside this page can be sorted.</p>'
    return f"<h2>All students</h2>{said}{scroll('All students', table)}"


def _student(row: Row, tasks: list[str]) -> str:
    results = "".join(_result(row.results.get(id)) for id in tasks)
    look = '<strong title="needs a manual look">look</strong>' if row.manual else ""
    pages = " · ".join(
        _linked(place, row.student, row.assignment, words)
        for words, place in (("reports", files.teacher_place), ("feedback", files.feedback_place))
    )
    return (
        f'<tr><th scope="row" class="student">{name_html(row.student)}</th>'
        f'<td class="n"><strong>{number(row.points)}</strong></td>{results}'
        f'<td>{look}</td><td class="links">{pages}</td></tr>'
    )


def _result(result: tuple[float, str] | None) -> str:
    if result is None:
        return '<td class="n"></td>'
    return f'<td class="n">{number(result[0])} {sign(result[1])}</td>'


def _about(run: dict) -> str:
    """Return when, where and with what the grades were made."""
    words = [("Started", "started"), ("Finished", "finished"), ("Machine", "machine"), ("Workers", "workers")]
    pairs = [(said, name_html(run[key])) for said, key in words if run.get(key) is not None]
    if run.get("seconds") is not None:
        pairs.append(("Time", duration(run["seconds"])))
    pairs.append(("Sandbox", "yes" if run.get("sandbox") is True else "<strong>no</strong>"))
    if run.get("course_version") is not None:
        pairs.append(("Course", name_html(f"version {name(run['course_version'])}")))
    return f"<h2>About this run</h2>{facts(pairs)}"
