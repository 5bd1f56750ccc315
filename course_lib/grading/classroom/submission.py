"""Reading a handed-in notebook: whatever the bytes are, cells and sentences for the teacher come out.

Nothing is run and nothing is trusted. What cannot be read is left out and named.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_CONTAINERS = 1_000_000  # lists and objects in it: a few bytes each there, a hundred in memory
MOST_CELLS = 10_000
SURROGATES = re.compile("[\ud800-\udfff]")
#: What is odd about a notebook: of each kind the sentences, without a full stop.
_Problems = defaultdict[str, list[str]]
KINDS = {"code": "code", "markdown": "markdown", "heading": "markdown", "raw": "raw"}


@dataclass(frozen=True)
class Cell:
    """One cell. `grade_id` is nbgrader's; `is_grade` says that the cell only gives points."""

    kind: str
    text: str
    id: str | None = None
    grade_id: str | None = None
    is_grade: bool = False

    @property
    def is_answer(self) -> bool:
        """Whether it is code of the learner's."""
        return self.kind == "code" and not self.is_grade


@dataclass(frozen=True)
class Submission:
    """The cells of a notebook, and `problems`: sentences for the teacher, empty for a sound notebook."""

    cells: tuple[Cell, ...]
    problems: tuple[str, ...] = ()


def read(data: bytes | None) -> Submission:
    """Return the cells that can be read from a notebook's bytes, if any; never raises for what is in them.

    How many bytes there may be, `intake` has seen to.
    """
    if data is None:
        return Submission(())
    problems: _Problems = defaultdict(list)
    try:
        text = _decoded(data, problems)
        cells = tuple(_cells(_parsed(text, problems), problems))
    except _Unreadable as problem:
        return Submission((), (*_sentences(problems), str(problem)))
    return Submission(cells, tuple(_sentences(problems)))


def _sentences(problems: _Problems) -> Iterator[str]:
    """Yield the first sentence of each kind; kinds are few, and no word in them is the student's."""
    for first, *others in problems.values():
        times = "times" if len(others) > 1 else "time"
        again = f" (and so {len(others):,} more {times})" if others else ""
        yield f"{first}{again}."


class _Unreadable(Exception):
    """Nothing can be read; the message says why."""


def _decoded(data: bytes, problems: _Problems) -> str:
    if not data.strip(b"\0 \t\r\n"):
        raise _Unreadable("The file is empty.")
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        problems["bytes"].append(
            f"The text is no valid {encoding} at byte {error.start}: such bytes were replaced"
        )
        return data.decode(encoding, "replace").lstrip("\ufeff")


def _parsed(text: str, problems: _Problems) -> Any:
    if text.count("[") + text.count("{") > MOST_CONTAINERS:
        raise _Unreadable("The file has more than a million lists and objects: it is no ordinary notebook.")
    if "\0" in text:
        problems["NUL"].append("The text contains NUL bytes")

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            problems["keys"].append("An object in the file has the same key twice: the last one counts")
        return found

    try:
        return json.loads(text, object_pairs_hook=as_dict, parse_int=_small_int, strict=False)
    except json.JSONDecodeError as error:
        raise _Unreadable(
            f"The file is no notebook: it is not JSON ({error.msg} in line {error.lineno}, "
            f"column {error.colno})."
        ) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise _Unreadable(f"The file cannot be read as JSON ({type(error).__name__}).") from None


def _small_int(digits: str) -> int:
    """Return the number; 0 for one that no notebook needs, as converting many digits takes long."""
    return int(digits) if len(digits) < 20 else 0


def _cells(notebook: Any, problems: _Problems) -> Iterator[Cell]:
    if not isinstance(notebook, dict):
        raise _Unreadable(f"The file is no notebook: it holds a {type(notebook).__name__}, not an object.")
    for number, cell in enumerate(_raw_cells(notebook), 1):
        if number > MOST_CELLS:
            problems["many"].append(f"The notebook has more than {MOST_CELLS:,} cells: the rest was left out")
            return
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if not isinstance(cell, dict):
            said = f"Cell {number} is a {type(cell).__name__}, not an object: it was left out"
            problems["object"].append(said)
        elif not isinstance(kind, str) or kind not in KINDS:
            problems["type"].append(f"Cell {number} is of an unknown type: it was left out")
        else:
            yield _cell(cell, KINDS[kind], number, problems)


def _raw_cells(notebook: dict) -> list:
    """Return the list of cells: `cells` in format 4, inside `worksheets` in format 3."""
    cells, sheets = notebook.get("cells"), notebook.get("worksheets")
    if isinstance(cells, list):
        return cells
    if isinstance(sheets, list):
        lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        return [cell for found in lists if isinstance(found, list) for cell in found]
    raise _Unreadable("The file is no notebook: it has no list of cells.")


def _cell(cell: dict, kind: str, number: int, problems: _Problems) -> Cell:
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        problems["text"].append(f"The text of cell {number} is not a text: the cell counts as empty")
        source = ""
    if SURROGATES.search(source):
        problems["characters"].append(f"Cell {number} contains characters that are none: they were replaced")
    metadata = cell.get("metadata")
    grader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grader = grader if isinstance(grader, dict) else {}
    return Cell(
        kind,
        _clean(source).replace("\r\n", "\n").replace("\r", "\n"),
        _name(cell.get("id")),
        _name(grader.get("grade_id")),
        bool(grader.get("grade")) and not grader.get("solution"),  # both: an answer that is marked by hand
    )


def _clean(text: str) -> str:
    return SURROGATES.sub("\ufffd", text)


def _name(value: Any) -> str | None:
    return _clean(value) if isinstance(value, str) else None
