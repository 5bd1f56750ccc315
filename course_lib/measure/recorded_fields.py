"""Reading a recording field by field: what is missing or makes no sense is refused in a sentence.

Shared by `measure.recordings` (GPU rungs) and `speech.encoder_recordings`. Each function takes a JSON object
and the name of a field, and raises Wrong with half a sentence, to which the reader adds the file's name.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_lib.measure.recording_files import MalformedRecording

Range = tuple[float, float, float]  # lowest, median, highest

_COMMIT = re.compile(r"[0-9a-f]{40}(\+changes)?")
_ARTICLES = {str: "a text", list: "a list", dict: "an object", bool: "true or false"}


class Wrong(Exception):
    """What is wrong with the content of a file."""


def content_of(path: Path) -> Any:
    """Return what a JSON file holds; raises MalformedRecording, or OSError if there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:
        raise MalformedRecording(f"{path.name} is no recording: it is not JSON ({problem}).") from None


def file_name(kind: str, device: str, when: str) -> str:
    """Return the name of a recording's file: kind, device and moment, in letters that every system takes."""
    name = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    moment_ = re.sub(r"[^0-9]", "", when[:19])
    return f"{kind}-{name}-{moment_}.json"


def write(content: dict, folder: Path, check: Callable[[Any, str], Any], indent: int = 0) -> Path:
    """Write a recording's content into a file of its own and return the path; raises OSError.

    `check` is given what will be read and the file's name: nothing is written that could not be read.
    """
    text_ = json.dumps(content, indent=indent) + "\n"
    path = folder / file_name(content["kind"], content["device"], content["when"])
    check(json.loads(text_), path.name)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text_, encoding="utf-8")
    return path


def checked(read: Callable[[Any], Any], content: Any, name: str, option: str) -> Any:
    """Return what `read` makes of a content; MalformedRecording says what is wrong, and how to mend it."""
    try:
        return read(content)
    except Wrong as problem:
        raise MalformedRecording(
            f"{name} is no recording: {problem}; make it anew with `python -m course_lib record {option}`."
        ) from None


def origin(device: str, what: str, when: str) -> str:
    """Return where figures come from: "recorded on an NVIDIA H200 (driver 580.95) on 2026-11-22"."""
    article = "an" if device[0] in "AEIOU" or device.startswith("NVIDIA") else "a"
    return f"recorded on {article} {device} ({what}) on {when[:10]}"


def is_commit(commit: str) -> bool:
    """Say whether a text names a git commit in full, with or without "+changes"."""
    return bool(_COMMIT.fullmatch(commit))


def moment(when: str) -> datetime.datetime | None:
    """Return the date and time of an ISO 8601 text, None for one that is none or has no time zone."""
    try:
        found = datetime.datetime.fromisoformat(when)
    except ValueError:
        return None
    return found if found.tzinfo else None


def value(content: dict, name: str, kind: type) -> Any:
    """Return a field that is a str, list, dict or bool."""
    if name not in content:
        raise Wrong(f"'{name}' is missing")
    if not isinstance(content[name], kind):
        raise Wrong(f"'{name}' is {content[name]!r}, not {_ARTICLES[kind]}")
    return content[name]


def text(content: dict, name: str) -> str:
    """Return a text that is not empty."""
    if not value(content, name, str).strip():
        raise Wrong(f"'{name}' is empty")
    return content[name]


def date(content: dict, name: str) -> str:
    """Return a text that is a date and time with a time zone."""
    when = value(content, name, str)
    if moment(when) is None:
        raise Wrong(f"'{name}' is {when!r}, which is no date and time with a time zone")
    return when


def commit(content: dict, name: str) -> str:
    """Return a text that is a git commit in full."""
    named = value(content, name, str)
    if not is_commit(named):
        raise Wrong(f"'{name}' is {named!r}, which is no full git commit")
    return named


def number(content: dict, name: str, least: float | None = None) -> float:
    """Return a finite number above zero (or not below `least`)."""
    found = content.get(name)
    if name not in content:
        raise Wrong(f"'{name}' is missing")
    if not isinstance(found, int | float) or isinstance(found, bool) or not math.isfinite(found):
        raise Wrong(f"'{name}' is {found!r}, not a number")
    if found < least if least is not None else found <= 0:
        raise Wrong(f"'{name}' is {found!r}, which cannot be")
    return found


def whole(content: dict, name: str) -> int:
    """Return a whole number above zero."""
    found = number(content, name)
    if not isinstance(found, int):
        raise Wrong(f"'{name}' is {found!r}, not a whole number")
    return found


def span(content: dict, name: str) -> Range:
    """Return the lowest, the median and the highest of something."""
    values = value(content, name, list)
    checked = [number({name: one}, name, least=0) for one in values]
    if len(checked) != 3 or checked != sorted(checked):
        raise Wrong(f"'{name}' is {values}, not the lowest, the median and the highest")
    return (checked[0], checked[1], checked[2])


def perhaps(read: Callable[[dict, str], Any], content: dict, name: str) -> Any:
    """Return what `read` finds; None where the file says that it is not known."""
    return None if name in content and content[name] is None else read(content, name)


def rows(read: Callable[[dict], Any], content: dict, name: str, each: str = "row") -> tuple[Any, ...]:
    """Return what `read` makes of each object of a list; what is wrong is said with its place, from 1."""
    found = []
    for place, row in enumerate(value(content, name, list), start=1):
        try:
            if not isinstance(row, dict):
                raise Wrong("it is no object")
            found.append(read(row))
        except Wrong as problem:
            raise Wrong(f"in {each} {place}, {problem}") from None
    return tuple(found)
