"""The code of a notebook as one list of top-level statements, and what its names are. Nothing is run."""

from __future__ import annotations

import ast
import functools
import re
import sys
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from course_lib.grading.classroom.statements import (
    FUNCTIONS,
    Effects,
    Names,
    Summary,
    eager_nodes,
    effects_of,
    names_of,
    summary_of,
)
from course_lib.grading.classroom.submission import MOST_WORK, Cell, plain
from course_lib.grading.program import root_name

LARGEST = 1_000_000  # characters of code in a notebook
DEEPEST = 150  # syntax nodes in each other; readers of the slice walk it recursively
END = sys.maxsize  # a place behind all statements
CHECKS = frozenset({"check", "hint", "total", "baseline"})
#: Magics that may define names.
DEFINING_MAGICS = re.compile(
    r"get_ipython\(\)\.run_(?:line|cell)_magic\(['\"](run|pylab|store|load|cython)['\"]"
)


class Trouble(Exception):
    """A notebook, cell or answer cannot be read; the message is one sentence for learner and teacher."""


def counts(cell: Cell) -> bool:
    """Whether the cell is code of the learner's."""
    return cell.kind == "code" and not cell.is_grade


@dataclass(frozen=True)
class Statement:
    node: ast.stmt
    text: str
    line: int  # the number of its first line in its cell
    names: Names
    effects: Effects
    cell: int = 0  # which of the cells it stands in


@dataclass
class Notebook:
    """All top-level statements of a notebook that can be read, and what its names are."""

    statements: list[Statement] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)  # (text of the cell, what is wrong)
    kinds: dict[str, set[str]] = field(default_factory=dict)  # function, class, import, value
    binders: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)  # (place, is it an import?)
    summaries: dict[str, list[Summary]] = field(default_factory=dict)
    aliases: dict[str, set[str]] = field(default_factory=dict)
    magics: set[str] = field(default_factory=set)  # those that may define names

    def is_import(self, name: str, place: int) -> bool:
        """Whether the name was last bound by an import when the statement at this place runs."""
        binders = self.binders.get(name, ())
        last = bisect_left(binders, (place, False)) - 1
        return bool(binders) and binders[max(last, 0)][1]

    def is_value(self, name: str, place: int) -> bool:
        """Whether the name may stand for data there, not for a function, class or module."""
        return "value" in self.kinds.get(name, ()) and not self.is_import(name, place)


@functools.lru_cache(maxsize=1)  # the tasks of one submission follow each other
def read_code(cells: tuple[Cell, ...]) -> Notebook:
    """Return the statements of all cells that can be read; raises Trouble if they are too much."""
    notebook, work = Notebook(), MOST_WORK
    if sum(len(cell.text) for cell in cells if counts(cell)) > LARGEST:
        raise Trouble(
            f"The notebook has more than {LARGEST:,} characters of code: that is too much to be read."
        )
    for number, cell in enumerate(cells):
        if not counts(cell) or not cell.text.strip():
            continue
        text, work = plain(cell.text, work)
        notebook.magics.update(DEFINING_MAGICS.findall(text))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = list(_statements(text))
        except SyntaxError as error:
            kind, line = type(error).__name__, error.lineno or 1
            notebook.broken.append((cell.text, f"{kind} in line {line} of its cell: {error.msg}."))
        except (Trouble, RecursionError, MemoryError, ValueError, OverflowError, SystemError) as error:
            said = (
                str(error)
                if isinstance(error, Trouble)
                else f"Its cell cannot be read ({type(error).__name__}: {error})."
            )
            notebook.broken.append((cell.text, said))
        else:
            if not _only_checks(found):
                notebook.statements += [replace(one, cell=number) for one in found]
    _describe(notebook)
    return notebook


def _statements(text: str) -> Iterator[Statement]:
    tree = ast.parse(text)
    if _deeper_than(tree, DEEPEST):
        raise Trouble("Its cell is nested too deeply to be read: write it in several steps.")
    lines = text.split("\n")
    if magics := [node for one in tree.body for node in _magics_in_branches(one)]:
        lines = _passed_over(lines, magics)
        tree = ast.parse("\n".join(lines))
    for node in tree.body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        yield Statement(
            node, _text_of(node, first, lines), first, names_of(node), effects_of(eager_nodes(node))
        )


def _deeper_than(tree: ast.AST, depth: int) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(depth):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _magics_in_branches(statement: ast.stmt) -> Iterator[ast.Expr]:
    """Yield magics and shell commands that stand for themselves inside if, try, with and loops.

    The statement around them may bind what an answer needs: `except ImportError: !pip install numpy`.
    """
    for node in eager_nodes(statement):
        if node is not statement and isinstance(node, ast.Expr) and _asks_ipython(node.value):
            yield node


def _asks_ipython(node: ast.expr) -> bool:
    """Whether this is get_ipython().something(…)."""
    function = node.func if isinstance(node, ast.Call) else None
    made_by = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(made_by, ast.Call) and root_name(made_by.func) == "get_ipython"


def _passed_over(lines: list[str], statements: list[ast.Expr]) -> list[str]:
    """Return the lines with `pass` in place of these statements."""
    lines = list(lines)
    for node in sorted(statements, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before, behind = (
            _part(lines[first], 0, node.col_offset),
            _part(lines[last], node.end_col_offset, None),
        )
        lines[first : last + 1] = [f"{before}pass{behind}", *[""] * (last - first)]
    return lines


def _text_of(node: ast.stmt, first: int, lines: list[str]) -> str:
    """Return the statement as written, with the comment behind it, without its neighbours at a `;`."""
    last = node.end_lineno or first
    kept = lines[first - 1 : last]
    rest = _part(kept[-1], node.end_col_offset, None)
    if rest.strip() and not rest.lstrip().startswith("#"):
        kept[-1] = _part(kept[-1], 0, node.end_col_offset)
    if node.lineno == first and node.col_offset:  # behind a `;`
        kept[0] = _part(kept[0], node.col_offset, None)
    return "\n".join(kept).rstrip()


def _part(line: str, start: int | None, end: int | None) -> str:
    """Return a part of a line, given in bytes of UTF-8 as the parser counts."""
    return line.encode("utf-8", "surrogatepass")[start:end].decode("utf-8", "surrogatepass")


def _only_checks(statements: list[Statement]) -> bool:
    """Whether a cell does nothing but ask for checks, hints and points."""
    asked = False
    for one in statements:
        node = one.node
        value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in CHECKS:
            asked = True
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course_lib."):
            continue
        elif not isinstance(node, ast.Expr) or any(isinstance(part, ast.Call) for part in ast.walk(node)):
            return False
    return asked


def _describe(notebook: Notebook) -> None:
    """Note what kind of thing each name is, what functions do, and which names share a thing."""
    for place, one in enumerate(notebook.statements):
        bound, imported = set(one.names.binds), set()
        for node in eager_nodes(one.node):
            for name, kind in _kinds(node, notebook):
                notebook.kinds.setdefault(name, set()).add(kind)
                bound.discard(name)
                if kind == "import":
                    imported.add(name)
                function = node.value if isinstance(node, ast.Assign) else node
                if isinstance(function, FUNCTIONS):
                    notebook.summaries.setdefault(name, []).append(summary_of(function, one.names))
        for name in bound:
            notebook.kinds.setdefault(name, set()).add("value")
        for name in one.names.binds:
            notebook.binders.setdefault(name, []).append((place, name in imported))
        for name, origins in one.effects.aliases.items():
            if name in one.names.binds:
                notebook.aliases.setdefault(name, set()).update(origins)


def _kinds(node: ast.AST, notebook: Notebook) -> Iterator[tuple[str, str]]:
    """Yield names that the node binds to something other than data, with the kind of thing."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, "function"
    elif isinstance(node, ast.ClassDef):
        yield node.name, "class"
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((one.asname or one.name.split(".")[0], "import") for one in node.names)
    elif isinstance(node, ast.Assign) and notebook.is_import(_dotted_root(node.value), END):
        yield from (
            (one.id, "import") for one in node.targets if isinstance(one, ast.Name)
        )  # rng = np.random
    elif isinstance(node, ast.Assign) and _is_function(node.value, notebook):
        yield from ((one.id, "function") for one in node.targets if isinstance(one, ast.Name))


def _dotted_root(node: ast.expr) -> str:
    """Return the name that a dotted name begins with; "" for any other expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_function(value: ast.expr, notebook: Notebook) -> bool:
    """Whether this is a lambda, a function's other name, or as a library wraps it: lru_cache(None)(f)."""
    if isinstance(value, ast.Lambda):
        return True
    if isinstance(value, ast.Call) and len(value.args) == 1:
        called = value.func
        while isinstance(called, ast.Call):
            called = called.func
        known = notebook.is_import(root_name(called), END)
        return known and _is_function(value.args[0], notebook)
    return isinstance(value, ast.Name) and notebook.kinds.get(value.id) == {"function"}
