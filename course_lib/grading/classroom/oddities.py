"""The second line: what is unusual about an answer, though it is allowed, as sentences for the teacher.

Nothing here changes a grade. Each sentence asks for a manual look, so what honest students write must hardly
ever be met: fewer than one answer in a hundred.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from statistics import median

from course_lib.grading.judge import KEPT
from course_lib.grading.report import Report
from course_lib.grading.runner import Timing
from course_lib.grading.task import Task

#: Times as large as the solution, and more parts than honest answers to any small task have.
TIMES_AS_LARGE, LARGE = 5, 600
LONG_TEXT, LONG_NUMBER = 200, 2**64  # of one constant
TIMES_AS_FAST = 3  # as the fastest known answer
#: An exchange of timed calls is out of line at less than half or more than twice the usual time of a call;
#: that many of them make a jump, unless the baseline, timed in turns with it, jumps as well.
APART, JUMPS, FEWEST = 2.0, 0.15, 3


def oddities(task: Task, size: int, text: str, report: Report, timing: Timing | None) -> Iterator[str]:
    """Yield what a person should see in an answer that has points; `size` is that of the solution."""
    if KEPT in report.lines:
        yield "Some of its timed calls gave wrong results: does it guess which ones count?"
    if not report.points:
        return
    yield from _unusual_text(size, text)
    if timing is None or timing.fault:
        return
    if task.speed and task.speed.fastest and timing.speedup > TIMES_AS_FAST * task.speed.fastest:
        known = f"{task.speed.fastest:g}x"
        yield f"It is {timing.speedup:.0f}x as fast as the baseline, the fastest known answer {known}: how?"
    if jumps(timing.samples):
        yield "The time of a call jumps between its timed calls, that of the baseline does not: why?"


def parts(text: str) -> int:
    """Return the size of a text: how many parts its syntax has."""
    return sum(1 for _ in ast.walk(ast.parse(text)))


def _unusual_text(size: int, text: str) -> Iterator[str]:
    tree = ast.parse(text)
    own = parts(text)
    if own > max(LARGE, TIMES_AS_LARGE * size):
        yield f"It is {own / max(size, 1):.0f} times as large as the solution."
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in said)
    if any(_is_long(node.value) for node in constants):
        yield "A constant in it is unusually long: what does it hold?"


def _is_long(value: object) -> bool:
    if isinstance(value, str | bytes):
        return len(value) > LONG_TEXT
    return isinstance(value, int) and value > LONG_NUMBER


def jumps(samples: Sequence[tuple[float, float]]) -> bool:
    """Whether the time of a call is now this, now that; `samples` are (the answer's, the baseline's)."""
    if len(samples) < FEWEST:
        return False
    own, base = (_out_of_line([pair[place] for pair in samples]) for place in (0, 1))
    return own >= FEWEST and own > JUMPS * len(samples) and own > 2 * base


def _out_of_line(seconds: list[float]) -> int:
    usual = median(seconds)
    return sum(one * APART < usual or one > APART * usual for one in seconds)
