"""One student's pages: the feedback, and the same student's full reports for the teacher."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from course_lib.grading.classroom.pages import files
from course_lib.grading.classroom.pages.answer import answer_html
from course_lib.grading.classroom.pages.style import COURSE, facts, page
from course_lib.grading.classroom.pages.text import (
    duration,
    escape,
    harmless,
    name,
    name_html,
    number,
    points,
)
from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, SIGNS, WRONG, Report, code_html, render_html

IN_WORDS = {RIGHT: "right", PARTLY: "partly right", WRONG: "wrong", NOT_STARTED: "not started"}
LATER = "A person will look at this submission as well. The points may still change."
OTHER_INPUTS = (
    "Grading calls your functions with other inputs of the same kind as the check in the notebook. If a task "
    "passes its check there and is not right here, look for an input that the check does not try: one row, "
    "one column, nothing at all, unequal sizes."
)


def feedback_page(verdict: dict, course: str = COURSE) -> str:
    """Return the student's page as HTML. It is made from the `feedback` reports alone: no hidden input."""
    tasks = verdict["tasks"]
    body = [
        _head(verdict, "Feedback"),
        _total(tasks),
        f'<p class="note">{LATER}</p>' if needs_a_look(verdict) else "",
        f'<p class="note">Comment: {name_html(verdict["comment"], 2000)}</p>'
        if verdict.get("comment")
        else "",
        _what_next(tasks),
        *(_task(task, task["feedback"]) for task in tasks),
        _judged(verdict),
    ]
    return page(f"{verdict['assignment']} · {verdict['student']} · feedback", "\n".join(body), course)


def teacher_page(verdict: dict, course: str = COURSE) -> str:
    """Return the full reports on one student as HTML, with the secret inputs: for the teacher only."""
    tasks = verdict["tasks"]
    body = [
        _head(verdict, "Full reports"),
        '<p class="warning">For the teacher only: this page shows secret inputs of the grading.</p>',
        _total(tasks),
        _reasons(verdict),
        *(_task(task, task["teacher"], _for_the_teacher(task)) for task in tasks),
        _judged(verdict),
        _links(verdict),
    ]
    return page(f"{verdict['assignment']} · {verdict['student']} · full reports", "\n".join(body), course)


def needs_a_look(verdict: dict) -> bool:
    """Whether a person has to look at this submission."""
    return bool(verdict["manual"]) or any(task["manual"] for task in verdict["tasks"])


def sign(state: str) -> str:
    """Return the sign of a state as HTML; its word is there for those who do not see it."""
    kind = state.split()[0]
    return f'<span class="sign {kind}" role="img" aria-label="{IN_WORDS[state]}">{SIGNS[state]}</span>'


def _head(verdict: dict, what: str) -> str:
    return f"<h1>{what}: {name_html(verdict['assignment'])} · {name_html(verdict['student'])}</h1>"


def _total(tasks: list[dict]) -> str:
    total = sum(task["points"] for task in tasks)
    most = sum(task["max_points"] for task in tasks)
    return f'<p class="total"><strong>{points(total, most)}</strong></p>'


def _task(task: dict, report: dict, more: str = "") -> str:
    """Return a task: its heading, the report, the answer that was judged."""
    head = (
        f"<h2>{sign(task['state'])} <span>{name_html(task['id'])} · {name_html(task['title'])}</span> "
        f'<span class="score">{points(task["points"], task["max_points"])}</span></h2>'
    )
    shown = render_html(Report.from_json(harmless(report)))
    source = answer_html(task["answer"], task.get("lines") or ())
    answer = f"<details><summary>The answer that was judged</summary>{source}</details>"
    report_html = f'<div class="report">{shown}</div>'
    return f'<section class="task">{head}{_by_hand(task)}{report_html}{more}{answer}</section>'


def _by_hand(task: dict) -> str:
    """Return what a person has decided about a task, and why."""
    said = []
    if "judged_points" in task:
        judged = points(task["judged_points"], task["max_points"])
        said.append(f"A person gave these points; judged automatically it had {judged}.")
    if task.get("comment"):
        said.append(f"Comment: {name_html(task['comment'], 2000)}")
    return "".join(f'<p class="note">{words}</p>' for words in said)


def _what_next(tasks: list[dict]) -> str:
    """Return what to do now: the tasks with points still open, most points first."""
    open_ = [task for task in tasks if task["state"] != RIGHT]
    if not open_:
        return "<h2>What next</h2><p>Every task is right. Nothing is left to mend.</p>"
    open_.sort(key=lambda task: task["points"] - task["max_points"])
    steps = "".join(f"<li>{_step(task)}</li>" for task in open_)
    hint = code_html(f'`hint("{name(open_[0]["id"])}")` in the notebook helps, one step at a time.')
    other = (
        "" if all(task["state"] == NOT_STARTED for task in open_) else f'<p class="soft">{OTHER_INPUTS}</p>'
    )
    return f"<h2>What next</h2><ol>{steps}</ol><p>{hint}</p>{other}"


def _step(task: dict) -> str:
    missing = number(task["max_points"] - task["points"])
    verb = {NOT_STARTED: "Start", PARTLY: "Go on with", WRONG: "Mend"}[task["state"]]
    unit = "point" if missing == "1" else "points"
    title = f"{name_html(task['id'])} · {name_html(task['title'])}"
    return f"{verb} {title}: {missing} more {unit}."


def _judged(verdict: dict) -> str:
    """Return which file was judged, so that a wrong upload is seen at once."""
    received = verdict["received"]
    size = f"{received['bytes']:,}".replace(",", " ") if isinstance(received["bytes"], int) else "?"
    return "<h2>What was judged</h2>" + facts(
        [
            ("File", name_html(received["name"])),
            ("Size", f"{size} bytes"),
            ("SHA-256", f"<code>{name_html(received['sha256'])}</code>"),
        ]
    )


def _reasons(verdict: dict) -> str:
    reasons = [name_html(reason, 500) for reason in verdict["manual"]]
    reasons += [
        f"{name_html(task['id'])}: {name_html(reason, 500)}"
        for task in verdict["tasks"]
        for reason in task["manual"]
    ]
    if not reasons:
        return ""
    return "<h2>Needs a manual look</h2><ul>" + "".join(f"<li>{reason}</li>" for reason in reasons) + "</ul>"


def _for_the_teacher(task: dict) -> str:
    seconds: dict[str, Any] = task.get("seconds") or {}
    lines = [f"Kernel {duration(seconds.get('kernel'))}, wall {duration(seconds.get('wall'))}."]
    if task["why"]:
        lines.insert(0, f"Counted as: {name_html(task['why'], 300)}")
    return f'<p class="soft">{"<br>".join(lines)}</p>'


def _links(verdict: dict) -> str:
    """Return links to the class and to the student's own page; none where the names make no path."""
    student, assignment = verdict["student"], verdict["assignment"]
    if not files.is_safe(student) or not files.is_safe(assignment):
        return ""
    here = files.teacher_place(student, assignment)
    up = PurePosixPath(*[".."] * (len(here.parts) - 1))
    places = {
        "All students": files.summary_place(assignment),
        "This student's feedback": files.feedback_place(student, assignment),
    }
    links = [
        f'<a href="{escape(files.link(up / place.as_posix()))}">{words}</a>'
        for words, place in places.items()
    ]
    return f"<p>{' · '.join(links)}</p>"
