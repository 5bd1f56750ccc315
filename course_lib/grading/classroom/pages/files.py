"""Where pages are written: never outside their folder."""

from __future__ import annotations

import unicodedata
from urllib.parse import quote

LONGEST_NAME = 120
SEPARATORS = '/\\:*?"<>|'  # of paths, drives and streams on one system or another
#: What is written below the class's folder; nbgrader's release_feedback looks for the feedback there.
PLACES = {
    "feedback": "feedback/{student}/{assignment}/{assignment}.html",
    "teacher": "teacher/{assignment}/{student}.html",
    "summary": "{assignment}-summary.html",
    "grades": "{assignment}-grades.csv",
}


def is_safe(name: object) -> bool:
    """Whether a student's id or an assignment's name can be the name of a folder, on any system."""
    if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "replace")) <= LONGEST_NAME:
        return False
    hidden = any(unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") for one in name)
    return not hidden and not set(SEPARATORS) & set(name) and name.strip(". ") != "" and name[-1] not in ". "


def safe(name: object, what: str) -> str:
    """Return the name if it can be the name of a folder; ValueError with a sentence if not."""
    if not is_safe(name):
        raise ValueError(
            f"The {what} is {name!r}, but a folder takes its name: give it a name of at most {LONGEST_NAME} "
            f"bytes without {' '.join(SEPARATORS)}, control characters, and a dot or space at its end."
        )
    return str(name)


def place(what: str, assignment: str, student: str = "") -> str:
    """Return where one of PLACES lies below the class's folder; the names must be safe."""
    return PLACES[what].format(assignment=assignment, student=student)


def link_to(what: str, assignment: str, student: str, up: int = 0) -> str:
    """Return the relative address of a page, as seen from `up` folders below; "" where names make no path.

    No name in it can turn it into an address elsewhere.
    """
    if not is_safe(student) or not is_safe(assignment):
        return ""
    return "./" + "../" * up + quote(place(what, assignment, student))
