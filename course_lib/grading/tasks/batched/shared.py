"""What several tasks of chapter 07 use: what an answer may import, and how wrong answers are made."""

from __future__ import annotations

from course_lib.grading.rules import OnlyImports

#: What the assignment's setup cell imports, and what Python has for counting. No PyTorch, nor this course.
USUAL_IMPORTS = OnlyImports(("numpy", "numba", "math", "collections", "itertools"))


def changed(text: str, *changes: tuple[str, str]) -> str:
    """Return an answer with some parts replaced; each must be there, or a mutant would be no mutant."""
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{old!r} is not in the answer to change: copy a part of its text.")
        text = text.replace(old, new)
    return text
