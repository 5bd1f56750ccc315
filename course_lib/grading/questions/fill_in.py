"""What a chapter's fill-in is: a cell with one line left to the learner."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_GAP = re.compile(r"«(.+?)»", re.DOTALL)


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
