"""The optional task of two loops in CUDA C++: judged in a process of its own, told in a report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, WRONG, Report

ID, TITLE = "10.loops", "Two loops for Hopper"
LIMIT_S = 240.0
ENDED = (
    "The process that ran your loops was ended by the system (signal {signal}): mostly that is a write to "
    "where no memory is."
)
IN_FLIGHT = re.compile(r"\bwgmma_wait\s*<\s*[1-9]")
WAITS = (
    "Right, but no product is left in flight: after `wgmma_wait<0>()` the tensor core has nothing to do "
    "until the next block has come."
)
TOO_LONG = "Your loops were not done after {limit:g} s: a loop may never end."


def judged(fetch: Any, multiply: Any, limit_s: float = LIMIT_S) -> Report:
    """Return the report on two functions that return text, or two texts; TypeError for what is neither."""
    try:
        texts = {"fetch": _text("fetch", fetch), "multiply": _text("multiply", multiply)}
    except NotImplementedError:
        return _report(NOT_STARTED, ["Not started: both loops are wanted."])
    steps, end = _tried(texts, limit_s)
    lines = [step["says"] for step in steps]
    if end:
        return _report(WRONG, [*lines, end])
    if any(step["right"] is False for step in steps):
        return _report(WRONG, lines[-1:])
    if not any(step["right"] for step in steps if step["step"] != "compiler"):
        return _report(PARTLY, lines, "So nothing here can say whether they are right: they have not run.")
    if not IN_FLIGHT.search(texts["multiply"]):
        return _report(PARTLY, lines, WAITS)
    return _report(RIGHT, lines)


def _text(name: str, given: Any) -> str:
    text = given() if callable(given) else given
    if not isinstance(text, str):
        raise TypeError(
            f"{name} gives {type(text).__name__}, but it must give a text: the loop in CUDA C++, in quotes."
        )
    if not text.strip():
        raise NotImplementedError
    return text


def _tried(texts: dict[str, str], limit_s: float) -> tuple[list[dict[str, Any]], str]:
    """Return what each step said, and a sentence if the process did not come to its end."""
    try:
        done = subprocess.run(
            _child(), input=json.dumps(texts), capture_output=True, text=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        return _steps(said if isinstance(said, str) else said.decode()), TOO_LONG.format(limit=limit_s)
    if done.returncode < 0:
        return _steps(done.stdout), ENDED.format(signal=-done.returncode)
    if done.returncode:
        return _steps(done.stdout), (done.stderr.strip().splitlines() or ["It ended without a word."])[-1]
    return _steps(done.stdout), ""


def _child() -> list[str]:
    return [sys.executable, "-m", "course_lib.grading.optional.loops_child"]


def _steps(printed: str) -> list[dict[str, Any]]:
    """Return the lines that are whole; an ended process may have left half a line."""
    found = []
    for line in printed.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _report(state: str, lines: list[str], *notes: str) -> Report:
    return Report(ID, TITLE, 0, 0, state, tuple(lines), notes=notes)
