"""The library's own source, as a chapter shows it: the text and the code cannot drift apart."""

from __future__ import annotations

import functools
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from course_lib.theme import DEEP_PINK, INK, QUIET
from course_lib.views.paper import Html, card, listing


def source(code: Any) -> Html:
    """Return the highlighted source of a function, class, module or Numba dispatcher, and where it stands.

    A text is shown as it is, a program of its own. Follows dispatchers, partials and functools.wraps to the
    function that was written. Raises ValueError when there is no Python source to show.
    """
    if isinstance(code, str):
        return numbered(code, 1, "a program of its own", "A program of its own")
    written = unwrapped(code)
    try:
        lines, first = inspect.getsourcelines(written)
        file = inspect.getsourcefile(written) or inspect.getfile(written)
    except (OSError, TypeError):
        raise ValueError(
            f"{_name(code)} has no Python source to show: pass a function, a class or a module that is "
            "written in Python."
        ) from None
    if not lines:
        raise ValueError(f"{_name(code)} is an empty file: there is nothing to show.")
    first = max(first, 1)  # a module begins at line 0
    where = f"{_place(file)}, line {first}" if not isinstance(written, ModuleType) else _place(file)
    text = inspect.cleandoc("\n" + "".join(lines)) if lines[0][:1].isspace() else "".join(lines)
    return numbered(text, first, where, f"Source of {_name(written)}, {where}")


def numbered(text: str, first: int, where: str, label: str, language: str = "python") -> Html:
    """Return a program's text highlighted, its lines numbered from `first`, under where it stands."""
    shown = highlighted(text, language)
    body = listing(shown, range(first, first + len(shown)))
    return Html(card(body, label, title=where), f"{where}\n{text}")


def unwrapped(code: Any) -> Any:
    """Return what was written: the Python function behind dispatchers, partials and wrappers."""
    while True:
        if isinstance(code, functools.partial):
            code = code.func
        elif hasattr(code, "py_func"):  # Numba: CPU and CUDA dispatchers alike
            code = code.py_func
        elif hasattr(code, "__wrapped__"):
            code = code.__wrapped__
        elif isinstance(code, property) and code.fget:
            code = code.fget
        else:
            return code


def highlighted(text: str, language: str = "python") -> list[str]:
    """Return the lines of a program's text as HTML with inline colours, readable on light paper."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    formatter = HtmlFormatter(noclasses=True, nowrap=True, style=_style())
    page = highlight(text.rstrip("\n"), get_lexer_by_name(language, stripnl=False), formatter)
    return page.rstrip("\n").split("\n")


@functools.cache
def _style() -> type:
    from pygments.style import Style
    from pygments.token import Comment, Keyword, Name, Number, Operator, String, Token

    class Paper(Style):
        """The course's colours, dark enough for small text."""

        styles = {  # noqa: RUF012 - pygments reads a plain dict
            Token: INK,
            Comment: f"italic {QUIET}",
            Keyword: "bold #7a00d1",
            Operator.Word: "bold #7a00d1",
            Name.Function: f"bold {DEEP_PINK}",
            Name.Class: f"bold {DEEP_PINK}",
            Name.Decorator: DEEP_PINK,
            Number: "#8a4600",
            String: "#00695f",
        }

    return Paper


def _place(file: str) -> str:
    """Return the file as the reader knows it: relative to the project, the notebook or a package."""
    path = Path(file)
    if file.startswith("<") or "ipykernel_" in file or "ipython-input" in file:
        return "this notebook"
    project = Path(__file__).resolve().parents[2]
    for root in (project, *sorted((Path(p).resolve() for p in sys.path if p), key=lambda p: -len(str(p)))):
        if path.resolve().is_relative_to(root):
            return path.resolve().relative_to(root).as_posix()
    return path.name


def _name(code: Any) -> str:
    return getattr(code, "__qualname__", None) or getattr(code, "__name__", None) or repr(code)
