"""What a chapter's fill-in is: a cell with one line left to the learner."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_GAP = re.compile(r"«(.+?)»", re.DOTALL)


def call(function: Callable, *args: Any) -> Any:
    """Return what the function returns: how most fill-ins are tried."""
    return function(*args)


@dataclass(frozen=True)
class Fill:
    """A function as a cell defines it, with what the learner types between « and ».

    It is tried with each of `cases` (arguments) by `run(function, *case)`, whose result is compared with that
    of the finished function. `hint` and `why` are what the card says before and after; `wrong` maps typical
    wrong lines to what was overlooked.
    """

    id: str
    cell: str
    cases: tuple[tuple[Any, ...], ...]
    hint: str
    why: str
    wrong: Mapping[str, str]
    run: Callable = field(default=call)

    def __post_init__(self) -> None:
        if len(_GAP.findall(self.cell)) != 1:
            raise ValueError(f"{self.id}: exactly one line of the cell must stand between « and ».")

    @property
    def line(self) -> str:
        """What the learner types."""
        return _GAP.search(self.cell)[1]

    @property
    def name(self) -> str:
        """The name of the function."""
        tree = ast.parse(self.filled(self.line))
        return next(node.name for node in tree.body if isinstance(node, ast.FunctionDef))

    def filled(self, line: str) -> str:
        """Return the function's text with this line in it; `...` gives what the notebook shows."""
        return _GAP.sub(lambda _: line, self.cell).strip("\n")

    def given(self) -> tuple[str, str]:
        """Return the two forms in which the notebook's cell may stand: with a decorator, and with a call.

        The second is for functions that somebody reads who knows no decorators.
        """
        text = self.filled("...")
        return f'@fill("{self.id}")\n{text}', f'{text}\n\n\n{self.name} = fill("{self.id}", {self.name})'
