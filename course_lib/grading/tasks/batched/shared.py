"""What several tasks of chapter 07 use: what an answer may import, and how wrong answers are made."""

from __future__ import annotations

from course_lib.grading.rules import OnlyImports

#: What the assignment's setup cell imports, and what Python has for counting. No PyTorch, nor this course.
USUAL_IMPORTS = OnlyImports(("numpy", "numba", "math", "collections", "itertools"))
