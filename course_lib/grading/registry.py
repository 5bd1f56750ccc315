"""All tasks by id. A chapter's tasks are declared in one package, imported when first asked for."""

from __future__ import annotations

import difflib
import importlib
from types import ModuleType

from course_lib.grading.task import Task

#: chapter -> the package in `tasks/` that declares TASKS. A new chapter adds a line.
CHAPTERS = {
    "00": "start_here",
    "01": "python_loops",
    "02": "compiled_loops",
    "03": "strassen",
    "04": "cache_and_simd",
    "05": "threads",
    "06": "gpu",
    "07": "batched",
    "08": "distributed",
    "10": "fp8",
    "C": "training",
}


def tasks(chapter: str | None = None) -> tuple[Task, ...]:
    """Return the tasks of one chapter ("01"), or of all chapters, in order."""
    if chapter is None:
        return tuple(task for name in CHAPTERS for task in tasks(name))
    if chapter not in CHAPTERS:
        raise KeyError(f"There are no tasks for chapter {chapter!r}; chapters: {', '.join(CHAPTERS)}.")
    return _module(chapter).TASKS


def _module(chapter: str) -> ModuleType:
    return importlib.import_module(f"course_lib.grading.tasks.{CHAPTERS[chapter]}")


def task(id: str) -> Task:
    """Return the task `id`, like "01.rows"; KeyError with the nearest names if there is none."""
    chapter = str(id).partition(".")[0]
    known = tasks(chapter) if chapter in CHAPTERS else tasks()
    found = next((one for one in known if one.id == id), None)
    if found is None:
        raise KeyError(unknown("task", id, [one.id for one in tasks()]))
    return found


def unknown(what: str, id: object, names: list[str]) -> str:
    """Return the sentence for a name that does not exist, with the names nearest to it."""
    near = difflib.get_close_matches(str(id), names, n=3, cutoff=0.4) or names
    return f"There is no {what} {id!r}. Nearest: {', '.join(near)}."
