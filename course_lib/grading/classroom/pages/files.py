"""Where pages are written: never outside their folder."""

from __future__ import annotations

import unicodedata
from pathlib import Path, PurePath
from urllib.parse import quote

from course_lib.whole_files import write as write

LONGEST_NAME = 120
SEPARATORS = '/\\:*?"<>|'  # of paths, drives and streams on one system or another


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


def feedback_place(student: str, assignment: str) -> Path:
    """Return where a student's page lies, where nbgrader's release_feedback looks for it."""
    return Path("feedback", student, assignment, f"{assignment}.html")


def teacher_place(student: str, assignment: str) -> Path:
    """Return where the full reports on a student lie."""
    return Path("teacher", assignment, f"{student}.html")


def summary_place(assignment: str) -> Path:
    """Return where the page about the class lies."""
    return Path(f"{assignment}-summary.html")


def grades_place(assignment: str) -> Path:
    """Return where the table of the grades lies."""
    return Path(f"{assignment}-grades.csv")


def link(place: PurePath) -> str:
    """Return a relative path as it stands in a link; no name in it can turn it into an address elsewhere."""
    return "./" + quote(place.as_posix())
