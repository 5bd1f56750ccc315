"""Which parameters a function reads, writes and updates, found in its text.

An array that no thread writes cannot race, and most are of this kind; so only the others are watched. Where
the text leaves it open which array is meant, every one is counted as used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

ANY = "*"


@dataclass
class Uses:
    """What one function does to its parameters, and which of them it hands on to which function."""

    parameters: list[str]
    direct: set[tuple[str, str]] = field(default_factory=set)  # (parameter, kind)
    handed_on: list[tuple[str, int, set[str]]] = field(default_factory=list)  # (function, place, parameters)


class Roots:
    """Which parameters a name or an element of it may stand for."""

    def __init__(self, function: ast.FunctionDef, is_own: Callable[[ast.expr], bool]) -> None:
        self._parameters = {argument.arg for argument in function.args.args}
        self._values: dict[str, list[ast.expr]] = {}
        self._is_own = is_own
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._note(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                self._note(node.target, node.value)
            elif isinstance(node, ast.For):
                self._note(node.target, node.iter)

    def _note(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._note(element, value)

    def of(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> set[str]:
        """Return the parameters that an expression may stand for; ANY if it is not known."""
        if isinstance(node, ast.Name):
            found = {node.id} if node.id in self._parameters else set()
            if node.id not in seen:
                for value in self._values.get(node.id, ()):
                    found |= self.of(value, seen | {node.id})
            return found
        if isinstance(node, ast.Subscript):
            return self.of(node.value, seen)
        if isinstance(node, ast.Call) and not self._is_own(node.func):
            return {ANY}
        # `X or Y`, `selp(c, X, Y)` and whatever else may be an array: one of those that stand in it
        parts = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr | ast.keyword))
        return set().union(*(self.of(part, seen) for part in parts))


def of_parameters(functions: dict[str, Uses], entry: str) -> dict[str, set[str]]:
    """Return the kinds of access to each parameter of a function, through all that it calls."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, uses in functions.items():
        for parameter in uses.parameters:
            kinds = {kind for root, kind in uses.direct if root in (parameter, ANY)}
            found[name, parameter] = kinds
    changed = True
    while changed:
        changed = False
        for name, uses in functions.items():
            for callee, place, roots in uses.handed_on:
                more = found[callee, functions[callee].parameters[place]]
                for parameter in uses.parameters if ANY in roots else roots:
                    if not more <= found[name, parameter]:
                        found[name, parameter] |= more
                        changed = True
    return {parameter: found[entry, parameter] for parameter in functions[entry].parameters}
