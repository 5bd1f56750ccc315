"""The chapters' checkpoint questions: not graded, answered in a cell and explained at once."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_lib.grading.registry import unknown
from course_lib.grading.report import TextCard
from course_lib.theme import GREY, PINK, VIOLET

if TYPE_CHECKING:
    from course_lib.grading.questions.question import Question


_STATES = {None: ("○ Checkpoint", GREY), True: ("✓ Right", VIOLET), False: ("✗ Not quite", PINK)}


@dataclass(frozen=True, repr=False)
class Response(TextCard):
    """What the checkpoint says. `right` is None if nothing was answered yet."""

    right: bool | None = None
    says: str = ""


def checkpoint(id: str, answer: Any = None) -> Response:
    """Answer a checkpoint question; without an answer it shows the question and how to answer it."""
    known = _questions_by_id()
    if id not in known:
        raise KeyError(unknown("checkpoint", id, list(known)))
    question = known[id]
    if answer is None or answer is ...:
        return _response(question, None, _how_to(question))
    if question.matches(answer, question.answer):
        return _response(question, True, question.why)
    return _response(question, False, _what_is_wrong(question, answer))


def _response(question: Question, right: bool | None, says: str) -> Response:
    head, colour = _STATES[right]
    return Response(f"{head} · {question.id}", f"{question.text}\n{says}", colour, right, says)


def questions(chapter: str | None = None) -> tuple[Question, ...]:
    """Return the questions of a chapter ("01"), or all."""
    every = _questions_by_id().values()
    return tuple(question for question in every if chapter is None or question.id.startswith(f"{chapter}."))


@functools.cache
def _questions_by_id() -> dict[str, Question]:
    """Return all questions by id; they are read when the first is asked, for a grader asks none."""
    from course_lib.grading.questions import QUESTIONS

    return {question.id: question for question in QUESTIONS}


def _how_to(question: Question) -> str:
    if question.options:
        choice = ", ".join(f'"{option}"' for option in question.options)
        return f'Answer with one of {choice}: `checkpoint("{question.id}", "…")`'
    unit = f" in {question.unit}" if question.unit else ""
    return f'Answer with a number{unit}: `checkpoint("{question.id}", ...)`'


def _what_is_wrong(question: Question, answer: Any) -> str:
    from course_lib.grading.questions.question import number_of

    for one, says in question.wrong.items():
        if question.matches(answer, one):
            return says
    if question.options and not any(question.matches(answer, option) for option in question.options):
        return f"{answer!r} is not among the options. {_how_to(question)}"
    number = number_of(answer, question.unit)
    if not question.options and number is None:
        return f"{answer!r} is not a number. {_how_to(question)}"
    for low, high, says in question.between:
        if number is not None and low < number <= high:
            return says
    return "That is not the number. Write it as a formula first, then put the numbers in."
