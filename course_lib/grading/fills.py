"""Fill-ins: the learner types the line that is the heart of a chapter, and it is checked at once.

`@fill("03.gauss")` stands above a function in which a line is left open. While it is open, or wrong, the
chapter goes on with ours; once it is right, with the learner's own. Nothing is graded or remembered, and all
of it runs where the notebook runs.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

from course_lib.grading.compare import close
from course_lib.grading.questions import FILLS
from course_lib.grading.questions.question import Fill
from course_lib.grading.registry import unknown
from course_lib.grading.report import card, code_html, source_html
from course_lib.grading.runner import clone, fault_of, quiet
from course_lib.grading.sources import filed, plain_function
from course_lib.theme import GREY, PINK, VIOLET

SAME = close(1e-5, 1e-9)  # float32 sums in another order are the same
_STATES = {None: ("○ Fill-in", GREY), True: ("✓ Right", VIOLET), False: ("✗ Not quite", PINK)}


@dataclass(frozen=True)
class FillCard:
    """What is said about a fill-in; `right` is None while it is open. Called with a function, it checks.

    As plain text it says the hint and our line only to somebody who has `asked`; a notebook folds them.
    """

    fill: Fill
    right: bool | None
    says: str
    asked: bool = False

    def __call__(self, function: Callable) -> Callable:
        return fill(self.fill.id, function)

    @property
    def lines(self) -> tuple[str, str, str]:
        """The state in a sign and a word, what is said of it, and with whose line the chapter goes on."""
        ours = "Until it is right, the chapter goes on with ours."
        goes_on = "The chapter goes on with your line." if self.right else ours
        return f"{_STATES[self.right][0]} · {self.fill.id}", self.says, goes_on

    def __str__(self) -> str:
        stuck = () if self.right else (f'Stuck? `fill("{self.fill.id}")` says a hint and the line.',)
        asked = (f"Hint: {self.fill.hint}", f"Our line: {self.fill.line}")
        return "\n  ".join((*self.lines, *(asked if self.asked else stuck)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *says = map(code_html, self.lines)
        hint = "" if self.right else _folded("A hint", code_html(self.fill.hint))
        said = "".join(f"<div>{line}</div>" for line in says)
        body = f"<strong>{head}</strong>{said}{hint}{_folded('Our line', source_html(self.fill.line))}"
        return card(_STATES[self.right][1], body)


def _folded(name: str, text: str) -> str:
    summary = f'<summary style="cursor:pointer">{name}</summary>'
    return f'<details style="margin-top:.25em">{summary}<div style="margin-left:1.1em">{text}</div></details>'


def fill(id: str, function: Any = None) -> Any:
    """Check a function in which the learner has typed a line; return it if it is right, else ours.

    Write it above the function as `@fill("03.gauss")`, or below it as `f = fill("03.gauss", f)`. In a cell of
    its own, `fill("03.gauss")` shows a hint and the line. KeyError for an unknown id.
    """
    from IPython.display import display  # outside of a notebook it prints

    known = {one.id: one for one in FILLS}
    if id not in known:
        raise KeyError(unknown("fill-in", id, list(known)))
    one = known[id]
    if function is None:
        return FillCard(one, None, f"Your line goes where `...` stands in `{one.name}`.", asked=True)
    names = plain_function(function).__globals__
    right, says = _judged(one, function, names)
    display(FillCard(one, right, says))
    return function if right else _built(one, one.line, names)


def _judged(one: Fill, function: Callable, names: dict[str, Any]) -> tuple[bool | None, str]:
    """Return what is to be said about a function of the notebook with these names, and if it is right."""
    code = plain_function(function).__code__
    if _is_open(code):
        return None, "Your line goes where `...` stands."
    names[one.name] = function  # the notebook is about to do so, and it may call itself
    try:
        results = _results(one, function)
    except Exception as error:
        own = [at.line for at in traceback.extract_tb(error.__traceback__) if at.filename == code.co_filename]
        return False, replace(fault_of(error), code=own[-1] if own else "").sentence()
    ours = _built(one, one.line, dict(names))
    for case, got, want in zip(one.cases, results, _results(one, ours), strict=True):
        if found := SAME.compare(got, want, ()):
            given = zip(inspect.signature(plain_function(ours)).parameters, case, strict=False)
            inputs = ", ".join(f"{name} = {value}" for name, value in given)
            at = "".join(f" At {at}: yours {a}, expected {b}." for at, a, b in found.rows[:1])
            return False, _overlooked(one, results, names) or f"Wrong for {inputs}. {found.says[0]}{at}"
    return True, one.why


def _is_open(code: CodeType) -> bool:
    """Whether `...` still stands in the code, or in what is defined inside it: it should not run at all."""
    return any(one is ... or (isinstance(one, CodeType) and _is_open(one)) for one in code.co_consts)


def _built(one: Fill, line: str, names: dict[str, Any]) -> Callable:
    """Return the function with this line in it, defined among these names."""
    text = one.filled(line)
    exec(compile(text, filed(text, one.name), "exec"), names)
    return names[one.name]


def _results(one: Fill, function: Callable) -> list[Any]:
    with quiet():
        return [one.run(function, *clone(case)) for case in one.cases]


def _overlooked(one: Fill, results: list[Any], names: dict[str, Any]) -> str:
    """Return what the typical wrong line overlooks that has these very results, or nothing."""
    for line, says in one.wrong.items():
        try:
            theirs = _results(one, _built(one, line, dict(names)))
        except Exception:
            continue
        if not any(SAME.compare(got, other, ()) for got, other in zip(results, theirs, strict=True)):
            return says
    return ""
