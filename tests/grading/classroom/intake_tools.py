"""What the tests of intake share: making submissions, and taking them in."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path

import pytest

from course_lib.grading.classroom.intake import receive

HERE = "01_python_loops"
NOTEBOOK = b'{"cells": []}'
GOOD = (NOTEBOOK, "")


def put(path: Path, content: bytes = NOTEBOOK) -> Path:
    """Write a file, with the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def packed(*members, method=zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of (name, content) or (name, content, mode) in memory."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # a name twice is wanted
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name, (2024, 1, 31, 12, 0, 0))
            info.filename = name  # as given, without what ZipInfo makes of it
            info.compress_type = method
            info.external_attr = (mode[0] if mode else 0o100644) << 16
            archive.writestr(info, content)
    return file.getvalue()


def taken(source: Path) -> dict[str, tuple[bytes | None, str]]:
    """Return {student: (data, all problems in one text)}."""
    found = {}
    for one in receive(source, HERE):
        assert one.student not in found
        data, problems = one.read()
        assert all(problem.endswith(".") and "\n" not in problem for problem in problems)
        found[one.student] = (data, " ".join(problems))
    return found


def link(path: Path, target: str | Path) -> None:
    """Make a symbolic link, or skip the test where there are none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("this system makes no links")
