"""`python -m course_lib exercises`: generate exercises/ from solutions/ with nbgrader.

What is generated is in the course's own form and carries a fingerprint of its cells, so that a file which a
learner has worked on is recognised: it is set aside under a new name before the new one is written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from course_lib.grading.classroom import assignment
from course_lib.notebook_form import canonical
from course_lib.whole_files import free_name, write

ROOT = Path(__file__).resolve().parents[2]
METADATA = "nine_circles"
RELEASE = "release"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="such as 01_python_loops")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="folder that holds solutions/")
    parser.add_argument("--into", type=Path, metavar="DIR", help="write here instead of exercises/")


def run(args: argparse.Namespace) -> int:
    """Generate the assignments, say what happened to each, and return the exit code."""
    sources = assignment.names(args.root)
    unknown = [name for name in args.assignments if name not in sources]
    if unknown or not sources:
        wanted = f"there is no assignment {unknown[0]!r}" if unknown else "there is no assignment at all"
        print(f"exercises: {wanted} in {args.root / 'solutions'}; found: {', '.join(sources) or 'nothing'}.")
        return 2
    target = args.into or args.root / "exercises"
    for name in args.assignments or sources:
        for path, text in generate(args.root, name).items():
            print(release(target / name / path, text))
    return 0


def generate(root: Path, name: str) -> dict[str, str]:
    """Return the released notebooks of one assignment, by file name; nothing is written in the tree."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="nine-circles-") as folder:
        config = Config()
        config.CourseDirectory.root = str(root.resolve())
        config.CourseDirectory.source_directory = "solutions"
        config.CourseDirectory.release_directory = str(Path(folder) / "release")
        config.CourseDirectory.assignment_id = name
        config.CourseDirectory.db_url = f"sqlite:///{Path(folder) / 'gradebook.db'}"
        course = CourseDirectory(config=config)
        converter = GenerateAssignment(coursedir=course, config=config, no_database=True)
        converter.preprocessors = [one for one in converter.preprocessors if one.__name__ != "SaveCells"]
        converter.log.setLevel(logging.ERROR)
        converter.start()
        released = sorted((Path(folder) / "release" / name).glob("*.ipynb"))
        return {path.name: with_release_mark(path.read_text(encoding="utf-8")) for path in released}


def with_release_mark(text: str) -> str:
    """Return a notebook in the course's form with the fingerprint of its cells in its metadata."""
    notebook = json.loads(canonical(text))
    notebook["metadata"].setdefault(METADATA, {})[RELEASE] = fingerprint(notebook)
    return canonical(json.dumps(notebook))


def fingerprint(notebook: dict[str, Any]) -> str:
    """Return a hash of the kinds and sources of all cells; outputs and trailing white space do not count."""
    cells = [[cell["cell_type"], _plain(cell["source"])] for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def _cells_and_mark(path: Path) -> tuple[str | None, str | None]:
    """Return the fingerprint of a file's cells and the one it was released with; None where there is none."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        return fingerprint(notebook), notebook["metadata"].get(METADATA, {}).get(RELEASE)
    except (AttributeError, ValueError, KeyError, TypeError):
        return None, None


def release(path: Path, text: str) -> str:
    """Write a released notebook to `path` and say so; a file with a learner's work is set aside first."""
    if not path.exists():
        write(path, text)
        return f"{path.name}: written."
    if path.read_bytes() == text.encode():
        return f"{path.name}: already up to date."
    cells, mark = _cells_and_mark(path)
    if cells and cells in (mark, fingerprint(json.loads(text))):  # what was once released, or is now
        write(path, text)
        return f"{path.name}: replaced (it held no work of yours)."
    aside = free_name(path, "mine")
    os.replace(path, aside)
    write(path, text)
    return (
        f"{path.name}: you have worked in it, so it was set aside as {aside.name} and a new one was written."
    )


def _plain(source: str | list[str]) -> str:
    text = source if isinstance(source, str) else "".join(source)
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())
