"""An exception in an answer, as the report tells it: one sentence with the learner's line."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Fault:
    """An exception in the answer: its type and the types above it, its message, the learner's line.

    `built` are the matrices that the answer had made when an index was out of range: (name, shape) of each.
    """

    kinds: tuple[str, ...]
    message: str
    line: int | None = None
    code: str = ""
    built: tuple[tuple[str, tuple[int, int]], ...] = ()

    @property
    def kind(self) -> str:
        return self.kinds[0]

    def sentence(self) -> str:
        """Return one sentence: what was raised, where, and what it says."""
        place = f" in line {self.line}" if self.line else ""
        code = f", `{self.code}`" if self.code else ""
        said = f": {self.message}" if self.message else ""
        return f"{self.kind}{place}{code}{said}{'' if said.endswith(('.', '?')) else '.'}"


def fault_of(error: BaseException) -> Fault:
    """Return an exception as a fault without a place."""
    return Fault(tuple(kind.__name__ for kind in type(error).__mro__[:-1]), _message(error))


def _message(error: BaseException) -> str:
    """Return the first telling line of an exception's message."""
    lines = [ANSI.sub("", line).strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line]
    if type(error).__module__.startswith("numba"):
        return _numba_message(lines)
    said = " ".join(itertools.islice(lines, 1))[:300]
    if said.startswith("No matching definition"):  # compiled for fixed types
        return f"{said}. Remove the types from @njit(...): it then compiles for each input."
    return said


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
