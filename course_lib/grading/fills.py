"""Fill-ins: the learner types the line that is the heart of a chapter, and it is checked at once.

`@fill("03.gauss")` stands above a function in which a line is left open. While it is open, or wrong, the
chapter goes on with ours; once it is right, with the learner's own. Nothing is graded or remembered, and all
of it runs where the notebook runs.
"""

from __future__ import annotations

import ast
import functools
import html
import inspect
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from course_lib.grading.compare import close, describe, number_text
from course_lib.grading.registry import unknown
from course_lib.grading.report import card, code_html, source_html
from course_lib.grading.runner import clone, fault_of, frames_in, quiet
from course_lib.grading.sources import filed, plain_function
from course_lib.theme import GREY, PINK, VIOLET

if TYPE_CHECKING:
    from course_lib.grading.questions.fill_in import Fill

SAME = close(1e-5, 1e-9)  # float32 sums in another order are the same
LONGEST = 60  # letters of a value in a sentence
_NOTHING = object()


@dataclass(frozen=True)
class FillCard:
    """What is said about a fill-in; `right` is None while it is open. Called with a function, it checks."""

    fill: Fill
    right: bool | None
    says: str

    def __call__(self, function: Callable) -> Callable:
        return fill(self.fill.id, function)

    @property
    def head(self) -> str:
        """The first line: the state in a sign and a word."""
        state = {None: "○ Fill-in", True: "✓ Right", False: "✗ Not quite"}[self.right]
        return f"{state} · {self.fill.id}"

    @property
    def goes_on(self) -> str:
        """With whose line the chapter goes on."""
        if self.right:
            return "The chapter goes on with your line."
        return "Until it is right, the chapter goes on with ours."

    def __str__(self) -> str:
        stuck = "" if self.right else f' Stuck? `fill("{self.fill.id}")` says a hint and the line.'
        return f"{self.head}\n  {self.says}\n  {self.goes_on}{stuck}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = {None: GREY, True: VIOLET, False: PINK}[self.right]
        folded = [("Our line", source_html(self.fill.line))]
        if not self.right:
            folded.insert(0, ("A hint", code_html(self.fill.hint)))
        stuck = "".join(
            f'<details style="margin-top:.25em"><summary style="cursor:pointer">{name}</summary>'
            f'<div style="margin:.1em 0 .3em 1.1em">{text}</div></details>'
            for name, text in folded
        )
        head = f"<strong>{html.escape(self.head)}</strong>"
        says = "".join(f"<div>{code_html(line)}</div>" for line in (self.says, self.goes_on))
        return card(colour, head + says + stuck)


class _Stuck(FillCard):
    """The card of somebody who asks: as plain text it says the hint and the line, too."""

    def __str__(self) -> str:
        return f"{self.head}\n  {self.says}\n  Hint: {self.fill.hint}\n  Our line: {self.fill.line}"

    __repr__ = __str__


def fill(id: str, function: Any = None) -> Any:
    """Check a function in which the learner has typed a line; return it if it is right, else ours.

    Write it above the function as `@fill("03.gauss")`, or below it as `f = fill("03.gauss", f)`. In a cell of
    its own, `fill("03.gauss")` shows a hint and the line. KeyError for an unknown id.
    """
    known = _fills_by_id()
    if id not in known:
        raise KeyError(unknown("fill-in", id, list(known)))
    one = known[id]
    if function is None:
        return _Stuck(one, None, f"Your line goes where `...` stands in `{one.name}`.")
    said, chosen = answered(one, function)
    _show(said)
    return chosen


def fills(chapter: str | None = None) -> tuple[Fill, ...]:
    """Return the fill-ins of a chapter ("03"), or all."""
    return tuple(
        one for one in _fills_by_id().values() if chapter is None or one.id.startswith(f"{chapter}.")
    )


def answered(one: Fill, function: Any) -> tuple[FillCard, Callable]:
    """Return what is to be said about a function, and the function to go on with."""
    plain = plain_function(function)
    names = plain.__globals__
    ours = _built(one, one.line, names)
    if _is_open(plain):
        return FillCard(one, None, "Your line goes where `...` stands."), ours
    try:
        results = _results(one, function, names)
    except Exception as error:
        own = frames_in(error, plain.__code__.co_filename)
        code = linecache.getline(plain.__code__.co_filename, own[-1][1], names).strip() if own else ""
        return FillCard(one, False, replace(fault_of(error), code=code).sentence()), ours
    wanted = _results(one, ours, names)
    for case, got, want in zip(one.cases, results, wanted, strict=True):
        if problem := _difference(got, want):
            said = _overlooked(one, results, names) or f"For {_inputs(one, ours, case)}: {problem}"
            return FillCard(one, False, said), ours
    return FillCard(one, True, one.why), function


@functools.cache
def _fills_by_id() -> dict[str, Fill]:
    from course_lib.grading.questions import FILLS

    return {one.id: one for one in FILLS}


def _is_open(function: Callable) -> bool:
    """Whether `...` still stands in the cell: seen in its text, for such a cell should not run at all."""
    text = "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))
    nodes = ast.walk(ast.parse(text))
    return any(isinstance(node, ast.Constant) and node.value is ... for node in nodes)


@contextmanager
def _bound(name: str, function: Any, names: dict[str, Any]) -> Iterator[None]:
    """Let the notebook's name mean this function for a moment: it may call itself."""
    before = names.get(name, _NOTHING)
    names[name] = function
    try:
        yield
    finally:
        if before is _NOTHING:
            names.pop(name, None)
        else:
            names[name] = before


def _built(one: Fill, line: str, names: dict[str, Any]) -> Callable:
    """Return the function with this line in it, made of the notebook's own names."""
    text = one.filled(line)
    with _bound(one.name, None, names):
        exec(compile(text, filed(text, one.name), "exec"), names)
        return names[one.name]


def _results(one: Fill, function: Callable, names: dict[str, Any]) -> list[Any]:
    with _bound(one.name, function, names), quiet():
        return [one.run(function, *clone(case)) for case in one.cases]


def _overlooked(one: Fill, results: list[Any], names: dict[str, Any]) -> str:
    """Return what the typical wrong line overlooks that has these very results, or nothing."""
    for line, says in one.wrong.items():
        try:
            theirs = _results(one, _built(one, line, names), names)
        except Exception:
            continue
        if not any(_difference(got, other) for got, other in zip(results, theirs, strict=True)):
            return says
    return ""


def _difference(got: Any, want: Any) -> str:
    """Return in words what is wrong with a result, or nothing."""
    found = SAME.compare(got, want, ())
    if not found:
        return ""
    yours, expected = _text(got), _text(want)
    if max(len(yours), len(expected)) <= LONGEST:
        return f"yours {yours}, expected {expected}."
    return " ".join(found.says[:1]) + "".join(
        f" At {at}: yours {a}, expected {b}." for at, a, b in found.rows[:1]
    )


def _inputs(one: Fill, ours: Callable, case: tuple[Any, ...]) -> str:
    from course_lib.grading.questions.fill_in import call

    names = list(inspect.signature(plain_function(ours) if one.run is call else one.run).parameters)
    shown = names if one.run is call else names[1:]
    return ", ".join(f"{name} = {_text(value)}" for name, value in zip(shown, case, strict=False))


def _text(value: Any) -> str:
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(plain, float):
        return number_text(plain)
    if isinstance(plain, tuple | list):
        inside = ", ".join(map(_text, plain))
        return f"[{inside}]" if isinstance(plain, list) else f"({inside}{',' * (len(plain) == 1)})"
    return str(plain) if isinstance(plain, int | str | complex | None) else describe(plain)


def _show(said: FillCard) -> None:
    from IPython import get_ipython

    if get_ipython() is None:
        print(said)
        return
    from IPython.display import display

    display(said)
