"""What a function does with its variables: which parameters it uses, and which part of it sees a local one.

An array that no thread writes cannot race, and most are of this kind; so only the others are watched. Where
the text leaves it open which array is meant, every one is counted as used.

A region is the body of the function, of a branch or of a loop. If a variable is seen in one region only, and
the first thing that happens to it there is a plain assignment, then lanes that are not in that region never
look at it, and an assignment may overwrite all lanes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

# -- which parameters a function reads, writes and updates ---------------------------------------------------


ANY = "*"


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
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
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


# -- where a variable lives, so that most assignments need no mask -------------------------------------------


class Region:
    """A block of statements; `number` counts them in the order of the text, `path` ends with it."""

    def __init__(self, number: int, around: tuple[Region, ...]) -> None:
        self.number = number
        self.path = (*around, self)


class Regions:
    """The regions of a function and the home of each of its variables."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.names: set[str] = set()  # of all local variables
        self._bodies: dict[int, Region] = {}
        self._within: dict[str, tuple[Region, ...]] = {}  # the path to all places where a variable is seen
        self._first: dict[tuple[str, Region], bool] = {}  # was the first thing there an assignment?
        self.root = self._new(function.body, ())
        for argument in function.args.args:
            self._touch(argument.arg, self.root, is_assignment=True)
        self._block(function.body, self.root)

    def of(self, body: list[ast.stmt]) -> Region:
        """Return the region of a block."""
        return self._bodies[id(body)]

    def home(self, name: str) -> tuple[Region, bool]:
        """Return the region where a variable lives, and whether it is surely assigned before it is used."""
        for region in reversed(self._within[name]):
            if self._first[name, region]:
                return region, True
        return self.root, False

    def _new(self, body: list[ast.stmt], around: tuple[Region, ...]) -> Region:
        region = self._bodies[id(body)] = Region(len(self._bodies), around)
        return region

    def _block(self, body: list[ast.stmt], region: Region) -> None:
        for statement in body:
            self._statement(statement, region)

    def _statement(self, node: ast.stmt, region: Region) -> None:
        if isinstance(node, ast.If | ast.While):
            self._loads(node.test, region)
            self._block(node.body, self._new(node.body, region.path))
            self._block(node.orelse, self._new(node.orelse, region.path))
        elif isinstance(node, ast.For):
            self._loads(node.iter, region)
            body = self._new(node.body, region.path)
            self._targets(node.target, body)
            self._block(node.body, body)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            if isinstance(node, ast.AugAssign):
                self._loads(node.target, region)
            self._loads(node.value, region)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._targets(target, region)
        else:
            self._loads(node, region)

    def _targets(self, target: ast.expr, region: Region) -> None:
        if isinstance(target, ast.Name):
            self._touch(target.id, region, is_assignment=True)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._targets(element, region)
        else:
            self._loads(target, region)

    def _loads(self, node: ast.AST, region: Region) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self._touch(inner.id, region)

    def _touch(self, name: str, region: Region, is_assignment: bool = False) -> None:
        within = self._within.get(name, region.path)
        self._within[name] = tuple(one for one in within if one in region.path)
        for one in region.path:  # inside a region further in, an assignment may not happen
            self._first.setdefault((name, one), is_assignment and one is region)
        if is_assignment:
            self.names.add(name)


def may_leave(node: ast.stmt) -> bool:
    """Whether some lanes may not go on to the next statement of the block: return, or break and continue."""
    if isinstance(node, ast.Return | ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.If):
        return any(map(may_leave, (*node.body, *node.orelse)))
    if isinstance(node, ast.For | ast.While):
        return any(isinstance(inner, ast.Return) for inner in ast.walk(node))
    return False
