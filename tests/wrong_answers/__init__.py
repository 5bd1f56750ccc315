"""The wrong answers that students typically give to each task, and words that the report on them contains.

One file a chapter. A wrong answer is mostly a change of the right one:

    # 01.dot                                  the task
    | def dot(row, col): …                    the text that is changed, where that is not the solution
    ## replaces the total | last pair         a wrong answer: its name, and words of the report on it
    ~ total += a * b => total = a * b         what is changed: this text, which stands there once, into that
    - several                                 the same for lines
    - lines
    + into these
    ## another | words
    | def dot(row, col): …                    or the whole function; what stands above it stays

The solution is taken without its comments and empty lines.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.mutation.survey import solution

from course_lib.grading import registry
from course_lib.grading.task import Task

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class WrongAnswer:
    """A typical wrong answer: its source text, and words that the report on it must contain."""

    task: Task
    name: str
    source: str
    says: str

    def __str__(self) -> str:
        return f"{self.task.id}, {self.name}"


@functools.cache
def wrong_answers(task_id: str) -> tuple[WrongAnswer, ...]:
    """Return the wrong answers to a task, in the order of the file."""
    task = registry.task(task_id)
    _, *sections = re.split(r"^## ", _section(task), flags=re.MULTILINE)
    return tuple(_wrong(task, start(task_id), section) for section in sections)


def start(task_id: str) -> str:
    """Return the text that the wrong answers change: the solution, or one that is easier to change."""
    task = registry.task(task_id)
    head, _, _ = _section(task).partition("## ")
    return _marked(head, "|") or without_comments(solution(task).text)


def wrong_answer(task_id: str, name: str) -> WrongAnswer:
    """Return the wrong answer of this name."""
    return next(answer for answer in wrong_answers(task_id) if answer.name == name)


def without_comments(text: str) -> str:
    """Return the text without its comments and empty lines."""
    lines = (re.sub(r"(^|\s+)# .*$", "", line).rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line.strip() and "### " not in line) + "\n"


def _section(task: Task) -> str:
    """Return what the chapter's file says of the task."""
    text = (FOLDER / f"{registry.CHAPTERS[task.chapter]}.txt").read_text(encoding="utf-8")
    _, *parts = re.split(r"^# (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True)).get(task.id, "")


def _wrong(task: Task, text: str, section: str) -> WrongAnswer:
    title, _, body = section.partition("\n")
    name, _, says = title.partition(" | ")
    whole = _marked(body, "|")
    if whole:
        above = re.split(rf"^(?:@.*\n)*def {task.entry}\b", text, flags=re.MULTILINE)[0]
        return WrongAnswer(task, name, above + whole, says)
    for old, new in _changes(body):
        if text.count(old) != 1:
            raise ValueError(f"{task.id}, {name}: {old!r} stands {text.count(old)} times in\n{text}")
        text = text.replace(old, new)
    return WrongAnswer(task, name, text, says)


def _changes(body: str) -> Iterator[tuple[str, str]]:
    """Yield what is to be replaced, and by what."""
    blocks = re.finditer(r"^~ (.*) =>(.*)\n|((?:^-(?: .*)?\n)+)((?:^\+(?: .*)?\n)+)", body, re.MULTILINE)
    for old, new, old_lines, new_lines in (block.groups() for block in blocks):
        yield (old, new.strip()) if old else (_marked(old_lines, "-")[:-1], _marked(new_lines, "+")[:-1])


def _marked(text: str, mark: str) -> str:
    """Return the lines that begin with the mark, without it."""
    return "".join(line[2:] or "\n" for line in text.splitlines(keepends=True) if line.startswith(mark))
