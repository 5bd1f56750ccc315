"""A small JSON file that outlives notebooks: the learner's results and what was measured of this machine.

Four promises. A write is atomic (a new file is moved over the old one), so a crash leaves the old or the new
content, never half of one. Writers take turns under a lock and re-read before they write, so two notebooks
lose nothing. A damaged file is set aside under a new name with a notice, never dropped. A folder that cannot
be written is said once; the values then live as long as this Python process.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from course_lib import whole_files

#: Set this environment variable to keep the course's files somewhere else.
HOME_VARIABLE = "NINE_CIRCLES_HOME"
FORMAT = 1
LOCK_TIMEOUT_S = 10.0


class StoreNotice(UserWarning):
    """Something about the learner's saved files that they should know."""


def data_dir() -> Path:
    """Return the folder that holds the learner's files: $NINE_CIRCLES_HOME or the platform's data folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    try:
        import platformdirs
    except ImportError:  # on a bare GPU machine, where the course is not installed but only recorded with
        return Path.home() / ".nine-circles-of-matmul"
    return Path(platformdirs.user_data_dir("nine-circles-of-matmul", appauthor=False))


class Store:
    """One named JSON object on disk.

    ``Store("ladder").update(change)`` calls ``change(values)`` on the present values and saves them;
    ``read()`` returns a copy of them (an empty dict when nothing was saved yet).
    """

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self.path = (folder or data_dir()) / f"{name}.json"  # where the file is, or would be
        self._memory: dict[str, Any] | None = None  # the values, once the file could not be written

    def read(self) -> dict[str, Any]:
        """Return the saved values."""
        if self._memory is not None:
            return copy.deepcopy(self._memory)
        try:
            return _values_in(self.path)
        except _Damaged as problem:  # a reader holds no lock: it reports, the next writer moves the file
            self._say(
                f"{self.path} is damaged ({problem}); it counts as empty and will be set aside, not deleted."
            )
        except OSError as problem:
            self._say(
                f"{self.path} cannot be read ({problem}); it is left as it is and counts as empty here."
            )
        return {}

    def complaint(self) -> str | None:
        """Return what is wrong with the file in a few words, None when it can be read or does not exist."""
        try:
            _values_in(self.path)
        except (OSError, _Damaged) as problem:
            return str(problem)
        return None

    def update(self, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Apply ``change`` to the saved values, save them and return them."""
        from filelock import FileLock

        with ExitStack() as turn:
            values = copy.deepcopy(self._memory)  # a change that fails half-way changes nothing, as on disk
            if values is None:
                try:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    turn.enter_context(FileLock(f"{self.path}.lock", timeout=LOCK_TIMEOUT_S))
                    values = self._sound_values()
                except _TROUBLE as problem:
                    values = self._now_in_memory(problem)
            change(values)  # outside the try: what goes wrong in it is the caller's
            if self._memory is None:
                try:
                    text = json.dumps({"format": FORMAT, "values": values}, indent=1, sort_keys=True)
                    whole_files.clear(self.path.parent, f".{self.path.name}.*unfinished")
                    whole_files.write(self.path, text, lasting=True, private=True)
                    return values
                except OSError as problem:
                    self._now_in_memory(problem)
            self._memory = values
            return copy.deepcopy(values)

    def _now_in_memory(self, problem: Exception) -> dict[str, Any]:
        """Keep what can still be read in memory from now on, say so once, and return a copy of it."""
        self._memory = {}
        with suppress(OSError, _Damaged):
            self._memory = _values_in(self.path)
        self._say(
            f"{self.path} cannot be written ({problem}): results of this session are kept only until this "
            f"kernel stops; free the disk or set {HOME_VARIABLE} to a folder you may write."
        )
        return copy.deepcopy(self._memory)

    def _sound_values(self) -> dict[str, Any]:
        """Return the saved values; a damaged file is set aside, under the lock."""
        try:
            return _values_in(self.path)
        except _Damaged as problem:
            aside = whole_files.free_name(self.path, "damaged")
            os.replace(self.path, aside)
            self._say(
                f"{self.path} was damaged ({problem}); it was set aside as {aside.name} and a new one begun."
            )
            return {}

    def _say(self, sentence: str) -> None:
        """Give the learner a notice: once per process."""
        if sentence not in _said:
            _said.add(sentence)
            _notice(sentence)


def opened(name: str) -> Store:
    """Return the Store of that name, always the same one: it remembers that it fell back to memory."""
    return _in_folder(name, data_dir())


@functools.cache
def _in_folder(name: str, folder: Path) -> Store:
    return Store(name, folder)


class _Damaged(Exception):
    """The file's content is not what a Store writes."""


_said: set[str] = set()


#: What may go wrong in taking the lock; filelock raises NotImplementedError on file systems without locks.
_TROUBLE = (OSError, NotImplementedError)


def _values_in(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise _Damaged("it is not text") from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _Damaged(f"it is not JSON: {problem}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _Damaged(f"it is not of format {FORMAT}, which this version of the course writes")
    if not isinstance(content.get("values"), dict):
        raise _Damaged("it has no 'values' object")
    return content["values"]


def _notice(sentence: str) -> None:
    """Warn with the sentence alone: the line of code that Python adds would tell a learner nothing."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"{message}\n"
    try:
        warnings.warn(sentence, StoreNotice, stacklevel=5)
    finally:
        warnings.formatwarning = usual
