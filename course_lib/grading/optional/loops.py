"""The optional task of two loops in CUDA C++: judged in a process of its own, told in a report."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import Any

from course_lib.grading.report import NOT_STARTED, PARTLY, RIGHT, WRONG, Report
from course_lib.measure import machine

ID, TITLE = "10.loops", "Two loops for Hopper"
LIMIT_S = 240.0
ENDED = (
    "The process that ran your loops was ended by the system (signal {signal}): mostly that is a write to "
    "where no memory is."
)
IN_FLIGHT = re.compile(r"\bwgmma_wait\s*<\s*[^0\s]")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
WAITS = (
    "Right, but no product begins while another is in flight: the tensor core has nothing to do until the "
    "next block has come."
)
NO_END = "On the model of Hopper your loops did not come to an end: does every loop count?"
TOO_LONG = "Your loops were not done after {limit:g} s: a loop may never end."


def judged(fetch: Any, multiply: Any, limit_s: float = LIMIT_S) -> Report:
    """Return the report on two functions that return text, or two texts; TypeError for what is neither."""
    if sentence := machine.missing("torch"):
        return _report(PARTLY, [f"Nothing here can say whether your loops are right: {sentence}"])
    try:
        texts = {"fetch": _text("fetch", fetch), "multiply": _text("multiply", multiply)}
    except NotImplementedError:
        return _report(NOT_STARTED, ["Not started: both loops are wanted."])
    except _NoText as problem:
        return _report(WRONG, [str(problem)])
    steps, end = _tried(texts, limit_s)
    lines = [step["says"] for step in steps]
    if end:
        return _report(WRONG, [*lines, end])
    if any(step["right"] is False for step in steps):
        return _report(WRONG, lines[-1:])
    if not any(step["right"] for step in steps if step["step"] != "compiler"):
        return _report(PARTLY, lines, "So nothing here can say whether they are right: they have not run.")
    if not _overlaps(steps, texts["multiply"]):
        return _report(PARTLY, lines, WAITS)
    return _report(RIGHT, lines)


class _NoText(ValueError):
    """What a function gave, or how it failed; the message says why that is no loop."""


def _text(name: str, given: Any) -> str:
    try:
        text = given() if callable(given) else given
    except NotImplementedError:
        raise
    except Exception as problem:
        raise _NoText(f"{name}() raised {type(problem).__name__}: {problem}.") from problem
    if not isinstance(text, str):
        raise TypeError(
            f"{name} gives {type(text).__name__}, but it must give a text: the loop in CUDA C++, in quotes."
        )
    if not text.strip():
        raise NotImplementedError
    plain = COMMENTS.sub("", text)
    if "\0" in text or text.encode(errors="replace").decode() != text:
        raise _NoText(f"{name} has characters that no compiler takes: a NUL, or half of a pair.")
    if plain.count("{") != plain.count("}"):
        raise _NoText(f"{name} has {plain.count('{')} opening braces and {plain.count('}')} closing ones.")
    return text


def _overlaps(steps: list[dict[str, Any]], multiply: str) -> bool:
    """Whether a product begins while another is in flight: the model has seen it, or else the text tells."""
    seen = [step["overlaps"] for step in steps if "overlaps" in step]
    return seen[0] if seen else bool(IN_FLIGHT.search(COMMENTS.sub("", multiply)))


def _tried(texts: dict[str, str], limit_s: float) -> tuple[list[dict[str, Any]], str]:
    """Return what each step said, and a sentence if the process did not come to its end."""
    try:
        done = subprocess.run(
            _child(), input=json.dumps(texts), capture_output=True, text=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        return _steps(said if isinstance(said, str) else said.decode()), TOO_LONG.format(limit=limit_s)
    if done.returncode == -signal.SIGALRM:
        return _steps(done.stdout), NO_END
    if done.returncode < 0:
        return [], ENDED.format(signal=-done.returncode)
    if done.returncode:
        return _steps(done.stdout), (done.stderr.strip().splitlines() or ["It ended without a word."])[-1]
    return _steps(done.stdout), ""


def _child() -> list[str]:
    return [sys.executable, "-m", "course_lib.grading.optional.loops_child"]


def _steps(printed: str) -> list[dict[str, Any]]:
    found = []
    for line in printed.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _report(state: str, lines: list[str], *notes: str) -> Report:
    return Report(ID, TITLE, 0, 0, state, tuple(lines), notes=notes)
