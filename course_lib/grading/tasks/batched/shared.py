"""What an answer to chapter 07 may import."""

from __future__ import annotations

from course_lib.grading.language import Language

#: What the assignment's setup cell imports, and what Python has for counting. No PyTorch, nor this course.
USUAL_IMPORTS = Language(("numpy", "numba", "math", "collections", "itertools"))
