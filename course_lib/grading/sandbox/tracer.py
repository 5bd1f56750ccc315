"""Making the tracer ready in a process for answers: compiled once, in the first, and handed to the others.

Numba keeps machine code in files. They leave a process that no answer has been in yet, as plain bytes, and
are written again into the processes for other answers: nothing on the safe side reads them.
"""

from __future__ import annotations

import functools
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from course_lib.grading.sandbox.process import AnswerProcess, GraderFault, Stopped

Files = dict[str, np.ndarray]  # name within Numba's folder -> bytes

READY_S = 120.0  # compiling takes some seconds, on a busy machine more
MOST_BYTES = 16 * 2**20
SUFFIXES = (".nbi", ".nbc")  # Numba's index files and machine code


def make_ready(process: AnswerProcess, apart: bool = True) -> None:
    """Have the tracer made ready; that takes no time of an answer's, and what goes wrong is not its fault.

    Processes that are not apart (no sandbox) share Numba's folder: nothing is handed on.
    """
    kept = _kept() if apart else {}
    try:
        reply = process.ask({"do": "warm_up", "files": kept}, READY_S, READY_S)
    except Stopped as problem:
        raise GraderFault(f"the tracer does not start: {problem}") from None
    if apart and not kept and _sound(reply.get("files")):
        kept.update(reply["files"])


@functools.cache
def _kept() -> Files:
    """Return the files that the first process has made."""
    return {}


def _sound(files: Any) -> bool:
    """Whether these are some files with names that lie within one folder."""
    if not isinstance(files, dict):
        return False
    bytes_ = all(isinstance(one, np.ndarray) and one.dtype == np.uint8 for one in files.values())
    inside = all(_lies_inside(PurePosixPath(name)) for name in files)
    return bytes_ and inside and sum(one.nbytes for one in files.values()) <= MOST_BYTES


def _lies_inside(path: PurePosixPath) -> bool:
    return path.suffix in SUFFIXES and not path.is_absolute() and ".." not in path.parts


def unpack(files: Files, folder: Path) -> None:
    """Write the files into a folder; what is there already stays."""
    for name, content in files.items():
        path = folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.tobytes())


def packed(folder: Path) -> Files:
    """Return the files in a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return {path.relative_to(folder).as_posix(): np.frombuffer(path.read_bytes(), np.uint8) for path in paths}
