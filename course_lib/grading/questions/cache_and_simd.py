"""The questions of chapter 04."""

from __future__ import annotations

from course_lib.grading.questions.question import Question

QUESTIONS: tuple[Question, ...] = ()
