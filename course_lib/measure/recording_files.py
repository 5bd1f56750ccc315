"""Recordings on disk: one mechanism for all that was measured on computers that the reader lacks.

    @dataclass(frozen=True)
    class Recording:                     plain dataclasses say with their types what a file must hold
        when: Moment
        rows: tuple[Row, ...]            rows are dataclasses themselves

    FILES = RecordingFiles("gpu", Recording, folder)
    FILES.write(recording)               one JSON file for each recording
    FILES.newest()                       None if there is none

A file in which something is missing or makes no sense is refused with a sentence: a figure whose origin is
not known is worth nothing. pydantic does the checking; it is imported when the first file is read.
"""

from __future__ import annotations

import datetime
import functools
import json
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

from course_lib import whole_files


class MalformedRecording(ValueError):
    """A file that is no recording; the message says what is wrong with it."""


# -- what a field may hold ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """What a value must be besides its type: Annotated[int, Checked(is_even, "an even number")]."""

    holds: Callable[[Any], bool]
    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: Any) -> Any:
        if not self.holds(value):
            raise ValueError(f"it must be {self.words}")
        return value


def moment(when: str) -> datetime.datetime | None:
    """Return the date and time of an ISO 8601 text, None for one that is none or has no time zone."""
    try:
        parsed = datetime.datetime.fromisoformat(when)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def is_commit(commit: str) -> bool:
    """Say whether a text names a git commit in full, with or without "+changes"."""
    return bool(re.fullmatch(r"[0-9a-f]{40}(\+changes)?", commit))


def naming(names: Iterable[str]) -> Checked:
    """Return the check of an object that has at least these names."""
    wanted = tuple(names)
    return Checked(lambda found: found.keys() >= set(wanted), f"an object that names {', '.join(wanted)}")


def _is_range(values: tuple[float, ...]) -> bool:
    return all(math.isfinite(value) and value >= 0 for value in values) and list(values) == sorted(values)


Text = Annotated[str, Checked(str.strip, "a text that is not empty")]
Moment = Annotated[str, Checked(moment, "a date and time with a time zone")]
Commit = Annotated[str, Checked(is_commit, "a full git commit")]
Count = Annotated[int, Checked(lambda value: value > 0, "a whole number above 0")]
Positive = Annotated[float, Checked(lambda value: 0 < value < math.inf, "a number above 0")]
NotNegative = Annotated[float, Checked(lambda value: 0 <= value < math.inf, "a number of at least 0")]
Range = Annotated[
    tuple[float, float, float], Checked(_is_range, "the lowest, the median and the highest of something")
]
Versions = Mapping[str, Text]  # of what was used, by name; Annotated[Versions, naming(("python", "numpy"))]


def refuse_twice(names: Iterable[str]) -> None:
    """Raise ValueError if a name stands there twice: for the `__post_init__` of a recording."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"'{name}' stands there twice")
        seen.add(name)


def installed(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages."""

    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "of another origin than pip"

    return {package: version(package) for package in packages}


def origin(device: str, what: str, when: str) -> str:
    """Return where figures come from: "recorded on an NVIDIA H200 (driver 580.95) on 2026-11-22"."""
    article = "an" if device[0] in "AEIOU" or device.startswith("NVIDIA") else "a"
    return f"recorded on {article} {device} ({what}) on {when[:10]}"


# -- files -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordingFiles:
    """The files of one kind of recording, made by `record --<kind>`.

    `recording` is a frozen dataclass with at least `when` (a Moment) and `device`; what it refuses in its
    `__post_init__` with a ValueError is refused when a file is read, too.
    """

    kind: str
    recording: type
    folder: Path
    format: int = 1
    indent: int = 0

    def data(self, recording: Any) -> dict[str, Any]:
        """Return a recording as JSON can hold it."""
        return {"kind": self.kind, "format": self.format, **asdict(recording)}

    def newest(self, folder: Path | None = None, fits: Callable[[Any], bool] = lambda recording: True) -> Any:
        """Return the newest recording that fits; None if there is none.

        Raises MalformedRecording if any file of the folder is no recording.
        """
        recordings = [self.read(path) for path in sorted((folder or self.folder).glob("*.json"))]
        return max(filter(fits, recordings), key=lambda recording: moment(recording.when), default=None)

    def write(self, recording: Any, folder: Path | None = None) -> Path:
        """Write a recording into a file of its own and return the path.

        Raises MalformedRecording, or OSError.
        """
        folder = folder or self.folder
        device = re.sub(r"[^a-z0-9]+", "-", recording.device.lower()).strip("-")
        path = folder / f"{self.kind}-{device}-{re.sub('[^0-9]', '', recording.when[:19])}.json"
        self.write_to(path, recording)
        return path

    def write_to(self, path: Path, recording: Any) -> None:
        """Write a recording into this file; nothing is written that could not be read."""
        content = self.data(recording)
        self.restore(content, path.name)
        whole_files.write(path, json.dumps(content, indent=self.indent) + "\n")

    def read(self, path: Path) -> Any:
        """Return the recording of a file; raises MalformedRecording, or OSError if there is no such file."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as problem:
            raise MalformedRecording(f"{path.name} is no recording: it is not JSON ({problem}).") from None
        return self.restore(content, path.name)

    def restore(self, content: Any, name: str = "this") -> Any:
        """Return the recording that `data` made; MalformedRecording says what is wrong."""
        try:
            labels = (content.get("kind"), content.get("format")) if isinstance(content, dict) else ()
            if labels != (self.kind, self.format):
                raise ValueError(f"it does not say 'kind': '{self.kind}' and 'format': {self.format}")
            return validated(self.recording, content)
        except ValueError as problem:
            raise MalformedRecording(
                f"{name} is no recording: {problem}; make it anew with "
                f"`python -m course_lib record --{self.kind}`."
            ) from None


def validated(kind: type, content: Any) -> Any:
    """Return the dataclass `kind` that a JSON value stands for; ValueError says why it is none."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_json(json.dumps(content), strict=True)
    except ValidationError as problem:
        raise ValueError(in_words(problem)) from None


@functools.cache
def _adapter(kind: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def in_words(problem: Any) -> str:
    """Return half a sentence on what pydantic found first: "'rows, no. 1: seconds' is 0, but …"."""
    error = problem.errors(include_url=False)[0]
    words = error["msg"].removeprefix("Value error, ").replace("Input should", "it must")
    parts = (f", no. {part + 1}" if isinstance(part, int) else f": {part}" for part in error["loc"])
    place = "".join(parts)[2:]  # people count from 1
    if error["type"] == "missing":
        return f"'{place}' is missing"
    if not place:  # the parts contradict each other
        return words
    return f"'{place}' is {reprlib.repr(error['input'])}, but {words}"
