"""Whose a name is: for every name in a source text, the function in whose scope it is bound.

Python's own rule (language reference, 4.2.2): a name that a function binds is its own everywhere in it; any
other belongs to the nearest function around that binds it, and else to the module or to Python itself. What a
class binds is seen by its own body only, which falls back to the module: it counts as the module's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.comprehension
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (*DEFINITIONS, *COMPREHENSIONS)


class Scopes:
    """The scopes of a text. `around(node)` are the functions that a node stands in, innermost first."""

    def __init__(self, tree: ast.Module) -> None:
        self._around: dict[int, tuple[ast.AST, ...]] = {}
        self._bound: dict[int, set[str]] = {}
        self._passed_on: dict[int, set[str]] = {}  # global and nonlocal
        self._visit(tree, ())

    def around(self, node: ast.AST) -> tuple[ast.AST, ...]:
        """Return the functions and comprehensions whose scope a node is in, innermost first."""
        return self._around.get(id(node), ())

    def owner(self, node: ast.Name) -> ast.AST | None:
        """Return the function (or comprehension) that binds the name at this place; None: nobody's but the
        module's, or Python's own."""
        for place, scope in enumerate(self.around(node)):
            if node.id in self._passed_on.get(id(scope), ()):
                if place == 0 and self._is_global(scope, node.id):
                    return None
                continue
            if node.id in self._bound.get(id(scope), ()):
                return scope
        return None

    def binds(self, scope: ast.AST) -> set[str]:
        """Return the names that a function binds in its own scope."""
        return self._bound.get(id(scope), set()) - self._passed_on.get(id(scope), set())

    def _is_global(self, scope: ast.AST, name: str) -> bool:
        return any(
            isinstance(node, ast.Global) and name in node.names and self.around(node)[:1] == (scope,)
            for node in ast.walk(scope)
        )

    def _visit(self, node: ast.AST, around: tuple[ast.AST, ...]) -> None:
        """Walk without recursion: hostile texts are deep."""
        todo = [(node, around)]
        while todo:
            here, scopes = todo.pop()
            self._around[id(here)] = scopes
            self._note(here, scopes)
            todo += self._children(here, scopes)

    def _children(self, node: ast.AST, scopes: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, tuple]]:
        if isinstance(node, DEFINITIONS):
            inside = (node, *scopes)
            arguments = node.args
            self._bound.setdefault(id(node), set()).update(_names(arguments))
            outer = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            outer += [*getattr(node, "decorator_list", []), *filter(None, [getattr(node, "returns", None)])]
            outer += [one.annotation for one in _all(arguments) if one.annotation]
            body = node.body if isinstance(node.body, list) else [node.body]
            yield from ((one, scopes) for one in outer)
            yield from ((one, scopes) for one in _all(arguments))
            yield from ((one, inside) for one in body)
        elif isinstance(node, COMPREHENSIONS):
            first, *others = node.generators
            inside = (node, *scopes)
            yield first.iter, scopes
            parts = [first.target, *first.ifs]
            for one in others:
                parts += [one.target, one.iter, *one.ifs]
            parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            yield from ((one, inside) for one in parts)
        else:
            yield from ((one, scopes) for one in ast.iter_child_nodes(node))

    def _note(self, node: ast.AST, scopes: tuple[ast.AST, ...]) -> None:
        """Remember what a node binds in the innermost scope around it."""
        if not scopes:
            return
        inner = scopes[0]
        if isinstance(node, ast.NamedExpr):  # in a comprehension it binds in the function around
            inner = next((one for one in scopes if isinstance(one, DEFINITIONS)), None)
            if inner is not None:
                self._bound.setdefault(id(inner), set()).add(node.target.id)
            return
        if isinstance(node, ast.Global | ast.Nonlocal):
            self._passed_on.setdefault(id(inner), set()).update(node.names)
        self._bound.setdefault(id(inner), set()).update(bound_by(node))


def bound_by(node: ast.AST) -> set[str]:
    """Return the names that this one node binds where it stands; those in its parts not."""
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {one.asname or one.name.split(".")[0] for one in node.names}
    name = getattr(node, "name", None)
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and name:
        return {name}
    return {node.rest} if isinstance(node, ast.MatchMapping) and node.rest else set()


def _all(arguments: ast.arguments) -> list[ast.arg]:
    stars = [one for one in (arguments.vararg, arguments.kwarg) if one]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def _names(arguments: ast.arguments) -> set[str]:
    return {one.arg for one in _all(arguments)}
