"""What a checkpoint's question is, and what a chapter's fill-in: a cell with one line left to the learner."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_GAP = re.compile(r"«(.+?)»", re.DOTALL)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3}){2,}")  # with one comma it may be the point of "3,125"


@dataclass(frozen=True)
class Question:
    """A question with its answer: a number (right within the relative `tolerance`) or one of `options`.

    `why` says why it is right; `wrong` maps typical wrong answers to what was overlooked, `between` whole
    ranges (above the first number, up to the second) of them.
    """

    id: str
    text: str
    answer: float | str
    why: str
    wrong: Mapping[float | str, str]
    options: tuple[str, ...] = ()
    unit: str = ""
    tolerance: float = 0.01
    between: tuple[tuple[float, float, str], ...] = ()

    def __post_init__(self) -> None:
        if self.options and self.answer not in self.options:
            raise ValueError(
                f"{self.id}: the answer {self.answer!r} is not one of the options {self.options}."
            )
        if not self.options and not isinstance(self.answer, int | float):
            raise ValueError(f"{self.id}: without options the answer must be a number, not {self.answer!r}.")
        if any(self.matches(one, self.answer) for one in self.wrong):
            raise ValueError(f"{self.id}: a wrong answer counts as right; make the tolerance smaller.")

    def matches(self, given: Any, wanted: float | str) -> bool:
        """Whether what was given counts as `wanted`."""
        if isinstance(wanted, str):
            return isinstance(given, str) and _plain(given) == _plain(wanted)
        number = number_of(given, self.unit)
        return number is not None and math.isclose(number, wanted, rel_tol=self.tolerance)


def number_of(answer: Any, unit: str = "") -> float | None:
    """Return an answer as a number, also one that is written as text ("24", "8x"); None for anything else."""
    if isinstance(answer, str):
        if unit:
            answer = re.sub(re.escape(unit) + "$", "", answer.strip().replace("×", "x"), flags=re.IGNORECASE)
        try:
            return float(answer.replace(",", "") if _THOUSANDS.fullmatch(answer.strip()) else answer)
        except ValueError:
            return None
    is_one = hasattr(answer, "__float__") and not getattr(answer, "ndim", 0)  # no array of one or several
    try:
        return float(answer) if is_one and not isinstance(answer, bool | np.bool_) else None
    except (TypeError, OverflowError):  # float itself, 10**400
        return None


def _plain(name: str) -> str:
    """Return an option without what people write in different ways: case, spaces, the sign between sizes."""
    return re.sub(r"\s+", "", name.lower().replace("×", "x").replace("*", "x")).removeprefix("aten::")


@dataclass(frozen=True)
class Fill:
    """A function as a cell defines it, with what the learner types between « and ».

    It is tried with each of `cases` (its first arguments) by `run(function, *case)`, whose result is compared
    with that of the finished function. `hint` and `why` are what the card says before and after; `wrong` maps
    typical wrong lines to what was overlooked.
    """

    id: str
    cell: str
    cases: tuple[tuple[Any, ...], ...]
    hint: str
    why: str
    wrong: Mapping[str, str]
    run: Callable = lambda function, *case: function(*case)

    @property
    def line(self) -> str:
        """What the learner types."""
        return _GAP.search(self.cell)[1]

    @property
    def name(self) -> str:
        """The name of the function."""
        return re.search(r"^def (\w+)", self.cell, re.MULTILINE)[1]

    def filled(self, line: str) -> str:
        """Return the function's text with this line in it; `...` gives what the notebook shows."""
        return _GAP.sub(lambda _: line, self.cell)


def with_arrays(function: Callable, *case: Any) -> Any:
    """Return the result for arrays of float64 in place of lists; of a function without one C, the third."""
    made = [np.array(one, float) if isinstance(one, list) else one for one in case]
    result = function(*made)
    return made[2] if result is None else result
