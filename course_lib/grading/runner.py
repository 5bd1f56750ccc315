"""Running an answer. The judge knows only the `Runner` protocol; `InProcess` is the one for self-study."""

from __future__ import annotations

import copy
import io
import itertools
import linecache
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from course_lib.grading import sources
from course_lib.grading.counting import Tally, counting
from course_lib.grading.task import Code, SpeedRule

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Fault:
    """An exception in the answer: its type and the types above it, its message, the learner's line."""

    kinds: tuple[str, ...]
    message: str
    line: int | None = None
    code: str = ""

    @property
    def kind(self) -> str:
        return self.kinds[0]

    def sentence(self) -> str:
        """Return one sentence: what was raised, where, and what it says."""
        place = f" in line {self.line}" if self.line else ""
        code = f", `{self.code}`" if self.code else ""
        said = f": {self.message}" if self.message else ""
        return f"{self.kind}{place}{code}{said}{'' if said.endswith('.') else '.'}"


@dataclass(frozen=True)
class Outcome:
    """What one call gave: the value or the fault, the arguments afterwards, whose memory the value is."""

    value: Any = None
    fault: Fault | None = None
    args_after: tuple = ()
    owner: int | None = None  # place of the argument whose own memory was returned
    printed: int = 0  # lines


@dataclass(frozen=True)
class Counted:
    """The operations of one call on counting operands."""

    multiplications: int = 0
    additions: int = 0
    fault: Fault | None = None


@dataclass(frozen=True)
class Timing:
    """Times as fast as the baseline: the measured value and the ends of its 95 % interval."""

    speedup: float
    low: float
    high: float
    seconds: float
    baseline_seconds: float
    fault: Fault | None = None


class Runner(Protocol):
    """Runs one answer, wherever it lives. Arguments and values are numbers, lists, tuples and arrays."""

    def call(self, args: tuple) -> Outcome:
        """Call the answer with these arguments (the runner may use them up)."""

    def guarded(self, code: Code) -> Runner:
        """Return a runner for other source text: the guarded variant of this answer."""

    def count(self, args: tuple) -> Counted:
        """Call the answer on counting operands."""

    def time(self, speed: SpeedRule, args: tuple) -> Timing:
        """Time the answer side by side with the rule's baseline."""


class InProcess:
    """Calls the answer in this process: for the learner's own check."""

    def __init__(self, function: Callable) -> None:
        self._function = function

    def call(self, args: tuple) -> Outcome:
        """Call the answer; its output is counted, its warnings are kept off the page."""
        with _quiet() as printed:
            try:
                value = self._function(*args)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                return Outcome(fault=self._fault(error), args_after=args, printed=printed.lines)
        return Outcome(value, None, args, _owner(value, args), printed.lines)

    def guarded(self, code: Code) -> InProcess:
        """Return a runner for the text."""
        return InProcess(sources.load(code.text, code.entry))

    def count(self, args: tuple) -> Counted:
        """Call the answer on counting operands."""
        tally = Tally()
        outcome = self.call(counting(args, tally))
        return Counted(tally.multiplications, tally.additions, outcome.fault)

    def time(self, speed: SpeedRule, args: tuple) -> Timing:
        """Time the answer through `measure.timing.compare`: one thread, interleaved, same inputs."""
        from course_lib.measure.timing import compare

        functions = {"the baseline": speed.baseline.load(), "yours": self._function}
        with _quiet():
            try:
                result = compare(
                    functions,
                    *args,
                    baseline="the baseline",
                    flops=speed.flops(*args) if speed.flops else None,
                    threads=1,
                    budget_s=speed.budget_s,
                    max_error=False,
                    progress=False,
                )
            except KeyboardInterrupt:
                raise
            except Exception as error:
                return Timing(0.0, 0.0, 0.0, 0.0, 0.0, self._fault(error))
        mine, base = result.row("yours"), result.row("the baseline")
        return Timing(1 / mine.ratio, 1 / mine.ratio_high, 1 / mine.ratio_low, mine.seconds, base.seconds)

    def _fault(self, error: BaseException) -> Fault:
        kinds = tuple(kind.__name__ for kind in type(error).__mro__[:-1])
        line, code = self._place(error)
        return Fault(kinds, _message(error), line, code)

    def _place(self, error: BaseException) -> tuple[int | None, str]:
        """Return the number and text of the last line of the learner's own code in the traceback."""
        plain = getattr(self._function, "py_func", self._function)
        space = getattr(plain, "__globals__", None)
        own = [
            (frame.f_code.co_filename, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_globals is space
        ]
        if not own:
            return None, ""
        filename, line = own[-1]
        return line, linecache.getline(filename, line).strip()


def clone(value: Any) -> Any:
    """Return a deep copy; an array keeps its strides, and the memory between its elements is NaN."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _clone_array(value)
    if isinstance(value, list | tuple):
        return type(value)(clone(item) for item in value)
    return copy.deepcopy(value)


def _clone_array(array: np.ndarray) -> np.ndarray:
    if array.size == 0 or array.flags.c_contiguous or array.flags.f_contiguous:
        return array.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.full(high - low, 0xFF, np.uint8)  # all bits set is a NaN in every float format
    offset = array.__array_interface__["data"][0] - low
    copied = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    copied[...] = array
    return copied


def unchanged(before: Any, after: Any) -> bool:
    """Whether two values are the same in type, shape and every entry (NaN equals NaN)."""
    if isinstance(before, np.ndarray):
        if not isinstance(after, np.ndarray) or before.shape != after.shape or before.dtype != after.dtype:
            return False
        return bool(np.array_equal(before, after, equal_nan=before.dtype.kind in "fc"))
    if isinstance(before, list | tuple):
        same_kind = type(before) is type(after) and len(before) == len(after)
        return same_kind and all(unchanged(*pair) for pair in zip(before, after, strict=True))
    return before is after or before == after or (before != before and after != after)


def _owner(value: Any, args: tuple) -> int | None:
    """Return the place of the argument whose memory the value shares, or None."""
    return next((place for place, argument in enumerate(args) if _shares(value, argument)), None)


def _shares(value: Any, argument: Any) -> bool:
    if isinstance(value, np.ndarray) and isinstance(argument, np.ndarray):
        return value.size > 0 and np.shares_memory(value, argument)
    if isinstance(value, list) and isinstance(argument, list):
        mine = [value, *(row for row in value if isinstance(row, list))]
        theirs = {id(argument), *(id(row) for row in argument if isinstance(row, list))}
        return any(id(one) in theirs for one in mine)
    return False


class _LineCounter(io.TextIOBase):
    """Takes everything that is printed and remembers only how many lines it was."""

    def __init__(self) -> None:
        self.lines = 0

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        return len(text)

    def writable(self) -> bool:
        return True


@contextmanager
def _quiet() -> Iterator[_LineCounter]:
    counter = _LineCounter()
    with (
        redirect_stdout(counter),
        redirect_stderr(_LineCounter()),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        yield counter


def _message(error: BaseException) -> str:
    """Return the first telling line of an exception's message."""
    lines = [ANSI.sub("", line).strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line]
    if type(error).__module__.startswith("numba"):
        return _numba_message(lines)
    return " ".join(itertools.islice(lines, 1))[:300]


def _numba_message(lines: list[str]) -> str:
    """Pick the cause, the types and the line of code out of Numba's long report."""
    noise = ("Failed in nopython", "During:", "File ", "<source", "This error", "- Resolution", "There are")
    cause = next((line for line in lines if not line.startswith(noise)), "it gives no reason").rstrip(":")
    types = next((" " + line.removeprefix(">>>").strip() for line in lines if line.startswith(">>>")), "")
    code = lines[lines.index("^") - 1] if "^" in lines else ""  # Numba marks the line below it
    place = next((line for line in lines if line.startswith("File ")), "")
    number = re.search(r"line (\d+)", place)
    at = f" in line {number[1]}" if number else ""
    return f"Numba cannot compile it{at}{f', `{code}`' if code else ''}: {cause}{types}"[:400]
