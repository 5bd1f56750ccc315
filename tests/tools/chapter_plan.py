"""A chapter's plan as the tags of its cells say it: the core path, and what waits for a second evening.

Each cell has exactly one of the tags `core` and `more`; `fill` marks one whose heart the learner types
(`course_lib/grading/fills.py`). What is tagged `more` stands in sections that JupyterLab folds: they begin
with a heading "Second evening: …" (the sources with theirs) and end with the next heading of the same or a
higher level.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_lib.notebook_form import is_second_evening

TAGS = CORE, MORE, FILL = "core", "more", "fill"
MOST_CELLS, MOST_WORDS, MOST_MINUTES, FEWEST_FILLS = 60, 2000, 60, 2
#: Six chapters (00 to 05) took their first readers 38 to 85 minutes; this pace gives each within 21 %.
WORDS_A_MINUTE, LINES_A_MINUTE = 50, 10

_HEADING = re.compile(r"^(#+) +(.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SOURCES = re.compile(r"#+ Sources\b")


@dataclass(frozen=True)
class PlannedCell:
    """A cell as the plan sees it."""

    id: str
    text: str
    is_code: bool
    tags: tuple[str, ...]

    @property
    def is_core(self) -> bool:
        """Whether the cell is on the core path."""
        return CORE in self.tags

    @property
    def level(self) -> int | None:
        """The level of the cell's highest heading (1 for `#`), or None: what ends a folded section."""
        headings = [] if self.is_code else _HEADING.findall(_FENCED.sub("", self.text))
        return min((len(marks) for marks, _ in headings), default=None)


def planned(path: Path) -> list[PlannedCell]:
    """Return the cells of a notebook in order."""
    return [
        PlannedCell(
            cell["id"],
            "".join(cell["source"]),
            cell["cell_type"] == "code",
            tuple(cell["metadata"].get("tags", ())),
        )
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]


def faults(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield in sentences what the tags of a chapter's cells do not keep; nothing if all is well.

    The minutes that its core path takes are an estimate, by the pace of the first readers.
    """
    core = [cell for cell in cells if cell.is_core]
    words = sum(len(cell.text.split()) for cell in core if not cell.is_code)
    lines = sum(cell.text.count("\n") + 1 for cell in core if cell.is_code)
    minutes = round(words / WORDS_A_MINUTE + lines / LINES_A_MINUTE)
    counted = {"cells": len(core), "words of text": words, "minutes": minutes}
    for (what, have), most in zip(counted.items(), (MOST_CELLS, MOST_WORDS, MOST_MINUTES), strict=True):
        if have > most:
            yield f"The core path has {have} {what}, and {most} is the limit: tag a section `more` or cut."
    if (fills := sum(FILL in cell.tags for cell in core)) < FEWEST_FILLS:
        yield f"The core path has {fills} fill-ins, and {FEWEST_FILLS} is the least: add a `fill(…)`."
    fold = None  # the level of the heading that folds the present section
    for cell in cells:
        if len({CORE, MORE} & {*cell.tags}) != 1 or not {*cell.tags} <= {*TAGS}:
            yield f"Cell {cell.id} is tagged {cell.tags}: give it one of core and more, and none but {TAGS}."
        if cell.level is not None and (fold is None or cell.level <= fold):
            fold = cell.level if is_second_evening(cell.text) or _SOURCES.match(cell.text) else None
        if cell.is_core and fold is not None:
            yield f"Core cell {cell.id} is folded away: put a heading of level {fold} or higher before it."
        elif not cell.is_core and fold is None:
            yield f"Cell {cell.id} is tagged more and not folded: begin with “Second evening: …”."
