"""All systematic faults of an answer: every operator in every place, each different text once."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from course_lib.grading.task import Code

from .operators import OPERATORS, Operators, Scope
from .whole import whole_faults


@dataclass(frozen=True)
class Fault:
    """One fault: the operator that made it, what it changed ("before -> after"), and the wrong answer."""

    operator: str
    change: str
    source: str

    @property
    def key(self) -> str:
        """What the fault is called for good: it changes only when the solution's lines do."""
        return f"{self.operator} | {self.change}"

    def __str__(self) -> str:
        return f"{self.operator}: {self.change}"


def faults(
    code: Code,
    args: tuple,
    value: Any,
    operators: Operators = OPERATORS,
    given: frozenset[str] = frozenset(),
) -> list[Fault]:
    """Return the faults of an answer, in a fixed order; `args` and `value` are one example of its use.

    A value of None says that the answer returns nothing, as kernels do. The functions of these names are
    `given` with the task, and have no faults. A text that is no Python, says the
    same as the answer, or is there already, is left out.
    """
    tree = ast.parse(code.text)
    plain = ast.unparse(tree)
    found: dict[str, Fault] = {}
    keys: dict[str, int] = {}
    whole = whole_faults(ast.parse(plain), code.entry, args, value) if value is not None else ()
    everything = [*_small_faults(tree, operators, given), *whole]
    for operator, text in everything:
        text = _canonical(text)
        if text is None or text == plain or text in found:
            continue
        what = operator.partition(":")[2].strip()
        fault = Fault(operator.partition(":")[0], what or _difference(plain, text), text)
        times = keys[fault.key] = keys.get(fault.key, 0) + 1
        found[text] = fault if times == 1 else replace(fault, change=f"{fault.change} ({times})")
    return list(found.values())


def _text_with(tree: ast.Module, place: list, wrong: str) -> str:
    """Return the text of the tree with `wrong` in a place; the tree stays as it is."""
    parent, field, number = place
    before = getattr(parent, field)
    is_statement = isinstance(before if number is None else before[number], ast.stmt)
    new = ast.parse(wrong).body if is_statement else [ast.parse(wrong, mode="eval").body]
    if number is None:
        setattr(parent, field, new[0])
    else:
        setattr(parent, field, [*before[:number], *new, *before[number + 1 :]] or [ast.Pass()])
    try:
        return ast.unparse(tree)
    finally:
        setattr(parent, field, before)


def _small_faults(tree: ast.Module, operators: Operators, given: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield (operator, text) for every operator in every place of every function."""
    imports = (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    modules = frozenset(one.asname or one.name for node in imports for one in node.names)
    for number, function in enumerate(tree.body):
        if not isinstance(function, ast.FunctionDef) or function.name in given:
            continue
        scope = Scope(function, modules)
        for node, *place in [(function, tree, "body", number), *_places(function)]:
            for name, operator in operators.items():
                for wrong in operator(node, scope):
                    yield name, _text_with(tree, place, wrong)


def _places(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST, str, int | None]]:
    """Yield the statements and expressions in the body of a function, each with its parent, field, number."""
    waiting: list[ast.AST] = [function]
    while waiting:
        parent = waiting.pop(0)
        for field in ("body",) if parent is function else parent._fields:
            there = getattr(parent, field, None)
            for number, node in enumerate(there) if isinstance(there, list) else ((None, there),):
                if isinstance(node, ast.AST):
                    waiting.append(node)
                if isinstance(node, ast.stmt | ast.expr) and not _is_docstring(node):
                    yield node, parent, field, number


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _canonical(text: str) -> str | None:
    """Return the text as Python itself would write it, or None if it is not Python."""
    try:
        compile(text, "<fault>", "exec")
    except (SyntaxError, ValueError):
        return None
    return ast.unparse(ast.parse(text))


def _difference(before: str, after: str) -> str:
    """Return the lines that differ, on one line; where nothing is gone, the line before what is new."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    gone = "; ".join(line[2:].strip() for line in lines if line[0] == "-")
    new = "; ".join(line[2:].strip() for line in lines if line[0] == "+")
    if not gone:
        first = next(number for number, line in enumerate(lines) if line[0] == "+")
        gone = f"after {lines[first - 1][2:].strip()}" if first else "before all"
    return f"{gone} -> {new or 'nothing'}"
