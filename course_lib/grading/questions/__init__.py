"""The chapters' checkpoint questions, in order: one module for a chapter (the first three share one)."""

from __future__ import annotations

from course_lib.grading.questions import batched, cache_and_simd, foundation, fp8, gpu, strassen, threads
from course_lib.grading.questions.question import Question

QUESTIONS: tuple[Question, ...] = (
    *foundation.QUESTIONS,
    *strassen.QUESTIONS,
    *cache_and_simd.QUESTIONS,
    *threads.QUESTIONS,
    *gpu.QUESTIONS,
    *batched.QUESTIONS,
    *fp8.QUESTIONS,
)
