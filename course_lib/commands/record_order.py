"""What all recordings share: the order, why one is refused, and the way into a file."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.measure.recording_files import installed


class CannotRecord(RuntimeError):
    """Nothing is recorded; the message says why, and `code` is what the command ends with."""

    code = 2


class WrongResult(CannotRecord):
    """What was to be timed computes something else than it should."""

    code = 1


class CannotWrite(CannotRecord):
    """The file cannot be written."""

    code = 1


@dataclass(frozen=True)
class RecordOrder:
    """What is to be recorded. None: the usual folder, the usual budget of the thing that is recorded.

    `device` is the encoder's; `small` takes small shapes or a small encoder, for trying out.
    """

    commit: str = ""
    folder: Path | None = None
    sizes: tuple[int, ...] = ()
    rounds: int = 15
    budget_s: float | None = None
    device: str = "cpu"
    small: bool = False

    def folder_or(self, usual: Path) -> Path:
        """Return where the file goes; raises CannotRecord for a small recording that nobody wants to keep."""
        if self.small and self.folder is None:
            raise CannotRecord(
                "a small recording is for trying out, not for the course: say with --folder where to."
            )
        return self.folder or usual


def refuse(sentence: str | None) -> None:
    """Raise CannotRecord if there is a sentence that says what is missing."""
    if sentence:
        raise CannotRecord(sentence)


def write(write_file: Callable[[Any, Path], Path], recording: Any, folder: Path) -> None:
    """Write a recording and say where; raises CannotWrite."""
    try:
        path = write_file(recording, folder)
    except OSError as problem:
        raise CannotWrite(
            f"the file cannot be written to {folder} ({problem.strerror or problem}): see --folder."
        ) from None
    print(f"Written to {path}.")


def now() -> str:
    """Return the time in UTC, as recordings have it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of installed packages."""
    return {"python": platform.python_version()} | installed(*packages)
