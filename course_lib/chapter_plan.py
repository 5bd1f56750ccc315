"""A chapter's plan as the tags of its cells say it: the core path, and what waits for a second evening.

Each cell has exactly one of the tags `core` and `more`. Besides, `lecture` marks what one shows a class, and
`fill` a cell whose heart the learner types (`course_lib/grading/fills.py`). What is tagged `more` stands in
sections that JupyterLab folds: they begin with a heading "Second evening: …" (the sources with theirs) and
end with the next heading of the same or a higher level.
"""

from __future__ import annotations

import json
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CORE, MORE, LECTURE, FILL = "core", "more", "lecture", "fill"
MOST_CELLS, MOST_WORDS, MOST_MINUTES, FEWEST_FILLS = 60, 2000, 60, 2
#: Six chapters (00 to 05) took their first readers 38 to 85 minutes; this pace gives each within 21 %.
WORDS_A_MINUTE, LINES_A_MINUTE = 50, 10

_HEADING = re.compile(r"^(#+) +(.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SECOND_EVENING = re.compile(r"#+ Second evening: \S")
_SOURCES = re.compile(r"#+ Sources\b")
_FILL_IN = re.compile(r"\bfill\(")


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
        if self.is_code:
            return None
        return min((len(marks) for marks, _ in _HEADING.findall(_FENCED.sub("", self.text))), default=None)


@dataclass(frozen=True)
class ChapterPlan:
    """The cells of a chapter in order."""

    name: str
    cells: tuple[PlannedCell, ...]

    @property
    def core(self) -> tuple[PlannedCell, ...]:
        """The cells of the core path."""
        return tuple(cell for cell in self.cells if cell.is_core)

    @property
    def words(self) -> int:
        """The words of text on the core path."""
        return sum(len(cell.text.split()) for cell in self.core if not cell.is_code)

    @property
    def minutes(self) -> float:
        """About how long the core path takes to read and run, by the pace of the first readers."""
        lines = sum(cell.text.count("\n") + 1 for cell in self.core if cell.is_code)
        return self.words / WORDS_A_MINUTE + lines / LINES_A_MINUTE


def plan(path: Path) -> ChapterPlan:
    """Return the plan of a notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    planned = (
        PlannedCell(
            cell["id"],
            "".join(cell["source"]),
            cell["cell_type"] == "code",
            tuple(cell["metadata"].get("tags", ())),
        )
        for cell in cells
    )
    return ChapterPlan(path.stem, tuple(planned))


def is_second_evening(text: str) -> bool:
    """Whether a Markdown cell begins a section for a second evening."""
    return bool(_SECOND_EVENING.match(text))


def faults(chapter: ChapterPlan) -> list[str]:
    """Return in sentences what the tags of a chapter do not keep; none if all is well."""
    found = [*_untagged(chapter), *_unfolded(chapter), *_names_of_the_second_evening(chapter)]
    limits = (
        (len(chapter.core), MOST_CELLS, "cells"),
        (chapter.words, MOST_WORDS, "words of text"),
        (round(chapter.minutes), MOST_MINUTES, "minutes"),
    )
    found += [
        f"The core path has {have} {what}, and {most} is the limit: tag a section `more` or cut."
        for have, most, what in limits
        if have > most
    ]
    fills = sum(FILL in cell.tags for cell in chapter.core)
    if fills < FEWEST_FILLS:
        found.append(f"The core path has {fills} fill-ins, and {FEWEST_FILLS} is the least: add a `fill(…)`.")
    return found


def _untagged(chapter: ChapterPlan) -> Iterator[str]:
    for cell in chapter.cells:
        chosen = [tag for tag in cell.tags if tag in (CORE, MORE)]
        if len(chosen) != 1:
            yield f"Cell {cell.id} has {len(chosen)} of the tags core and more: give it exactly one."
        if unknown := set(cell.tags) - {CORE, MORE, LECTURE, FILL}:
            yield f"Cell {cell.id} has the tags {sorted(unknown)}, which mean nothing: remove them."
        has_one = cell.is_code and bool(_FILL_IN.search(cell.text))
        if has_one != (FILL in cell.tags):
            yield f"Cell {cell.id} {'has' if has_one else 'lacks'} a `fill(…)`: its tag `fill` must say so."


def _unfolded(chapter: ChapterPlan) -> Iterator[str]:
    fold = None  # the level of the heading that folds the present section
    for cell in chapter.cells:
        if cell.level is not None and (fold is None or cell.level <= fold):
            folds = is_second_evening(cell.text) or _SOURCES.match(cell.text)
            fold = cell.level if folds else None
        if cell.is_core and fold is not None:
            yield f"Core cell {cell.id} is folded away: put a heading of level {fold} or higher before it."
        elif not cell.is_core and fold is None:
            yield f"Cell {cell.id} is tagged more and not folded: begin with “Second evening: …”."


def _names_of_the_second_evening(chapter: ChapterPlan) -> Iterator[str]:
    made_by: dict[str, PlannedCell] = {}  # who defined a name last
    for cell in chapter.cells:
        if not cell.is_code:
            continue
        defined, used = _names(cell.text)
        for name in sorted(used):
            maker = made_by.get(name, cell)
            if cell.is_core and not maker.is_core:
                yield f"Core cell {cell.id} uses {name} as {maker.id}, tagged more, leaves it: define it."
        made_by |= dict.fromkeys(defined, cell)


def _names(text: str) -> tuple[set[str], set[str]]:
    """Return the names that a code cell defines, and those that it takes from other cells."""
    table = symtable.symtable(text, "cell", "exec")
    symbols = table.get_symbols()
    defined = {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}
    used = {one.get_name() for one in symbols if one.is_referenced()} | _globals_inside(table)
    return defined, used - defined


def _globals_inside(table: symtable.SymbolTable) -> set[str]:
    inside = table.get_children()
    own = {one.get_name() for child in inside for one in child.get_symbols() if one.is_global()}
    return own.union(*map(_globals_inside, inside))
