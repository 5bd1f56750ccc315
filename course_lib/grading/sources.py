"""Source text of an answer: where a learner's function stands, loading a text, and guarding it.

`guard` rewrites a text so that memory nobody wrote reads as NaN and compiled code checks every index.
"""

from __future__ import annotations

import ast
import atexit
import functools
import inspect
import itertools
import linecache
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.grading.program import names_of

_NUMBER = itertools.count(1)


class NoSource(ValueError):
    """The answer's source cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Code:
    """Source text with the name of the function in it that counts; `load()` gives that function."""

    text: str
    entry: str

    def load(self) -> Callable:
        """Run the text in a namespace of its own and return the entry function."""
        return load(self.text, self.entry)


def load(text: str, entry: str, filename: str = "") -> Callable:
    """Run `text` in a namespace of its own, as a notebook would, and return its function `entry`.

    `filename` is a file with this text, for tracebacks and for Numba's cache=True.
    """
    filename = filename or filed(text, entry)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, filename, "exec"), namespace)
    if not callable(namespace.get(entry)):
        raise NoSource(f"The code defines no function {entry}: write it with `def {entry}(...)`.")
    return namespace[entry]


def filed(text: str, entry: str) -> str:
    """Return the name of a new file with this text: tracebacks quote it, and Numba caches beside it."""
    path = _folder() / f"{entry}_{next(_NUMBER)}.py"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return str(path)


@functools.cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="answers_", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)


def plain_function(function: Any) -> Callable:
    """Return the Python function in one that may be compiled or cached; NoSource if there is none."""
    for plain in (getattr(function, "py_func", function), getattr(function, "__wrapped__", None)):
        if inspect.isfunction(plain):
            return plain
    raise NoSource(
        f"Your answer is a {type(function).__name__}: hand in the function itself, written with `def`, "
        "and do not call it."
    )


def notebook_shell() -> Any:
    """Return the shell of IPython that runs this, None outside of a notebook."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def cells_around(function: Callable) -> list[str]:
    """Return the code among which a function was written: a notebook's cells as they ran, or its file as one.

    What a notebook imports from a file of the learner's own is seen from the notebook: that is handed in.
    """
    file = function.__code__.co_filename
    shell = notebook_shell()
    if shell is not None and (function.__globals__ is shell.user_ns or Path(file).exists()):
        return list(shell.history_manager.input_hist_raw)
    text = "".join(linecache.getlines(file, function.__globals__))
    if not text:
        raise NoSource(
            f"The source of {function.__name__} cannot be found: define it with `def` in a cell and run that "
            "cell."
        )
    return [text]


# --- guarding -----------------------------------------------------------------------------------------------


def guard(text: str, by_hand: bool = False) -> str:
    """Return `text` with np.empty filled (`unwritten`) and all Numba functions compiled with bounds checks.

    What where= leaves unwritten is NaN, too (`partly`). With `by_hand`, array_arithmetic looks at what is
    computed. All names that are added begin with __, as none in an answer does.
    """
    tree = ast.parse(text)
    tree = _Guard(by_hand, _imported(tree)).visit(tree)
    at = next((n for n, node in enumerate(tree.body) if getattr(node, "module", "") != "__future__"), 0)
    names = "Rows as __rows, unwritten as __unwritten, partly as __partly"
    tree.body[at:at] = ast.parse(f"from course_lib.grading.array_arithmetic import {names}").body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Guard(ast.NodeTransformer):
    def __init__(self, by_hand: bool, imported: dict[str, str]) -> None:
        self._imported = imported
        self._settings = [ast.keyword("boundscheck", ast.Constant(True))]
        if by_hand:
            self._settings.append(ast.keyword("pipeline_class", ast.Name("__rows")))

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else self._imported.get(ast.unparse(called))
        if name and any(one.arg == "where" for one in node.keywords):
            return ast.Call(ast.Name("__partly"), [called, *node.args], node.keywords)
        unwritten = name in ("empty", "empty_like", "ndarray")
        return ast.Call(ast.Name("__unwritten"), [node], []) if unwritten else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        decorators, node.decorator_list = node.decorator_list, []
        self.generic_visit(node)
        calls = [one if isinstance(one, ast.Call) else ast.Call(one, [], []) for one in decorators]
        node.decorator_list = [self._checked(one) for one in calls]  # the language has no other decorators
        return node

    def _checked(self, node: ast.Call) -> ast.Call:
        kept = [one for one in node.keywords if one.arg not in ("cache", "boundscheck")]
        node.keywords = [*kept, *self._settings]
        return node


def _imported(tree: ast.Module) -> dict[str, str]:
    imports = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    return {name: dotted.rpartition(".")[2] for one in imports for name, dotted in names_of(one)}
