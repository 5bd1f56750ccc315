"""The chapters' checkpoint questions and fill-ins, in order: a module a chapter, one for the first three."""

from __future__ import annotations

from course_lib.grading.questions import (
    batched,
    cache_and_simd,
    distributed,
    foundation,
    fp8,
    gpu,
    strassen,
    threads,
    training,
)
from course_lib.grading.questions.question import Fill, Question

QUESTIONS: tuple[Question, ...] = (
    *foundation.QUESTIONS,
    *strassen.QUESTIONS,
    *cache_and_simd.QUESTIONS,
    *threads.QUESTIONS,
    *gpu.QUESTIONS,
    *batched.QUESTIONS,
    *distributed.QUESTIONS,
    *fp8.QUESTIONS,
    *training.QUESTIONS,
)

FILLS: tuple[Fill, ...] = (
    *foundation.FILLS,
    *strassen.FILLS,
    *cache_and_simd.FILLS,
    *threads.FILLS,
    *distributed.FILLS,
    *training.FILLS,
)
