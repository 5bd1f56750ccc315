"""The one form in which notebooks are kept: no outputs, stable cell ids, nothing personal, the same bytes.

A notebook file changes when its content changes and at no other time, so a diff shows what an author did.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from course_lib import whole_files

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
KEPT_METADATA = ("deletable", "editable", "nbgrader", "nine_circles", "slideshow", "tags")
FOLDED = "jp-MarkdownHeadingCollapsed"  # JupyterLab hides the section, and "Run All" runs it all the same
CELL_TYPES = ("code", "markdown", "raw")
SECOND_EVENING = re.compile(r"#+ Second evening: \S")
VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SKIPPED_FOLDERS = {".ipynb_checkpoints", ".venv", "node_modules"}


class DamagedNotebook(ValueError):
    """The file is no notebook that could be brought into form; the message is a whole sentence."""


def is_second_evening(text: str) -> bool:
    """Whether a Markdown cell begins a section for a second evening."""
    return bool(SECOND_EVENING.match(text))


def find_notebooks(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the notebooks that ``paths`` (files and folders) name, folders searched to the bottom."""
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("*.ipynb"))
            yield from (file for file in found if not SKIPPED_FOLDERS & set(file.parts))
        else:
            yield path


def is_canonical(path: Path) -> bool:
    """Tell whether the notebook already stands in the course's form."""
    return path.read_bytes() == canonical(_text_of(path), path.name).encode()


def tidy(path: Path) -> bool:
    """Bring the notebook into the course's form; tell whether that changed it. A damaged one is kept."""
    path = path.resolve()  # behind a link, change the file and not the link
    wanted = canonical(_text_of(path), path.name).encode()
    if path.read_bytes() == wanted:
        return False
    whole_files.write(path, wanted)
    return True


def canonical(text: str, name: str = "the notebook") -> str:
    """Return the notebook ``text`` in the course's form; applied twice it changes nothing more."""
    try:
        notebook = json.loads(text)
    except ValueError as problem:
        raise DamagedNotebook(_damaged(name, f"it is not JSON: {problem}")) from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise DamagedNotebook(_damaged(name, "it has no list of cells"))
    if notebook.get("nbformat") != 4:
        raise DamagedNotebook(
            f"{name} is in notebook format {notebook.get('nbformat')} and the course keeps format 4.5; "
            "open it in JupyterLab, save it, and try again."
        )
    try:
        cells, metadata = [_cell(cell) for cell in notebook["cells"]], _kept(notebook.get("metadata", {}))
    except TypeError as problem:
        raise DamagedNotebook(_damaged(name, f"it has {problem}")) from None
    _settle_ids(cells)
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}} | metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    _validate(whole, name)
    written = json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        written.encode()
    except UnicodeEncodeError as problem:
        raise DamagedNotebook(
            f"{name} holds a broken character (half of a surrogate pair: {problem.object[problem.start]!a}); "
            "replace it and try again."
        ) from None
    return written


def _cell(cell: Any) -> dict[str, Any]:
    """Return the cell in form; raises TypeError, in words, unless it is one."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in CELL_TYPES:
        raise TypeError(f"a cell that is none of {', '.join(CELL_TYPES)}")
    source = cell.get("source")
    parts = [source] if isinstance(source, str) else source
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise TypeError("a cell whose source is not text")
    lines = [line.rstrip() for line in "".join(parts).replace("\r\n", "\n").split("\n")]
    kept: dict[str, Any] = {
        "cell_type": cell["cell_type"],
        "id": cell.get("id"),
        "metadata": _kept(cell.get("metadata", {})),
        "source": "\n".join(lines).rstrip().splitlines(keepends=True),
    }
    if cell["cell_type"] == "markdown" and is_second_evening("".join(kept["source"])):
        kept["metadata"][FOLDED] = True
    if cell["cell_type"] == "code":
        kept |= {"execution_count": None, "outputs": []}
    elif cell.get("attachments"):
        kept["attachments"] = cell["attachments"]  # pictures pasted into the text: content, not output
    return kept


def _kept(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, dict):
        raise TypeError("metadata that is not an object")
    return {key: metadata[key] for key in KEPT_METADATA if key in metadata}


def _settle_ids(cells: list[dict[str, Any]]) -> None:
    """Keep every good id; give the other cells one made from their content, so it is the same next time."""
    taken: set[str] = set()
    without = []
    for cell in cells:
        good = isinstance(cell["id"], str) and VALID_ID.fullmatch(cell["id"]) and cell["id"] not in taken
        if good:
            taken.add(cell["id"])
        else:
            without.append(cell)
    for cell in without:
        content = cell["cell_type"] + "\n" + "".join(cell["source"])
        cell["id"] = next(name for name in _ids_for(content) if name not in taken)
        taken.add(cell["id"])


def _ids_for(content: str) -> Iterator[str]:
    number = 0
    while True:
        seed = f"{number}\n{content}".encode("utf-8", "surrogatepass")
        yield hashlib.sha256(seed).hexdigest()[:12]
        number += 1


def _validate(notebook: dict[str, Any], name: str) -> None:
    import nbformat

    try:
        nbformat.validate(nbformat.from_dict(notebook))
    except nbformat.ValidationError as problem:
        raise DamagedNotebook(_damaged(name, str(problem).splitlines()[0])) from None


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DamagedNotebook(_damaged(path.name, "it is not UTF-8 text")) from None


def _damaged(name: str, why: str) -> str:
    return f"{name} is no whole notebook ({why}) and was left as it is; restore it from git or mend it."
