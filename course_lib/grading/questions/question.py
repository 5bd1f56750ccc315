"""What a checkpoint's question is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


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
    wrong: tuple[tuple[float | str, str], ...]
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
        if any(self.matches(one, self.answer) for one, _ in self.wrong):
            raise ValueError(f"{self.id}: a wrong answer counts as right; make the tolerance smaller.")

    def matches(self, given: Any, wanted: float | str) -> bool:
        """Whether what was given counts as `wanted`."""
        if isinstance(wanted, str):
            name = given.strip().lower().removeprefix("aten::") if isinstance(given, str) else None
            return name == wanted.lower()
        return is_number(given) and math.isclose(float(given), wanted, rel_tol=self.tolerance)


def is_number(answer: Any) -> bool:
    """Whether an answer is a number; True and False are not."""
    return not isinstance(answer, bool | str) and hasattr(answer, "__float__")
