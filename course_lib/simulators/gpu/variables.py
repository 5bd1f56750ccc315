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
from dataclasses import dataclass, field

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


@dataclass
class Region:
    """A block of statements; `number` counts them in the order of the text."""

    number: int
    parent: Region | None
    depth: int

    def common(self, other: Region) -> Region:
        """Return the smallest region that contains both."""
        one: Region = self
        while one.depth > other.depth:
            one = one.parent
        while other.depth > one.depth:
            other = other.parent
        while one is not other:
            one, other = one.parent, other.parent
        return one


@dataclass
class _Seen:
    smallest: Region
    assigned_in: list[Region] = field(default_factory=list)
    first: dict[int, bool] = field(default_factory=dict)  # region number: was the first thing an assignment?


class Regions:
    """The regions of a function and the home of each of its variables."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._bodies: dict[int, Region] = {}
        self._seen: dict[str, _Seen] = {}
        self._count = 0
        self.root = self._new(function.body, None)
        for argument in function.args.args:
            self._store(argument.arg, self.root)
        self._block(function.body, self.root)

    @property
    def names(self) -> list[str]:
        """Return the names of all local variables."""
        return [name for name, seen in self._seen.items() if seen.assigned_in]

    def of(self, body: list[ast.stmt]) -> Region:
        """Return the region of a block."""
        return self._bodies[id(body)]

    def home(self, name: str) -> tuple[Region, bool]:
        """Return the region where a variable lives, and whether it is surely assigned before it is used."""
        seen = self._seen[name]
        region = seen.smallest
        while True:
            if seen.first.get(region.number, False):
                return region, True
            if region.parent is None:
                return region, False
            region = region.parent

    def _new(self, body: list[ast.stmt], parent: Region | None) -> Region:
        region = Region(self._count, parent, parent.depth + 1 if parent else 0)
        self._count += 1
        self._bodies[id(body)] = region
        return region

    def _block(self, body: list[ast.stmt], region: Region) -> None:
        for statement in body:
            self._statement(statement, region)

    def _statement(self, node: ast.stmt, region: Region) -> None:
        if isinstance(node, ast.If):
            self._loads(node.test, region)
            self._inner(node.body, region)
            self._inner(node.orelse, region)
        elif isinstance(node, ast.While):
            self._loads(node.test, region)
            self._inner(node.body, region)
        elif isinstance(node, ast.For):
            self._loads(node.iter, region)
            body = self._new(node.body, region)
            self._targets(node.target, body)
            self._block(node.body, body)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            if isinstance(node, ast.AugAssign):
                self._loads_target(node.target, region)
            self._loads(node.value, region)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._targets(target, region)
        else:
            self._loads(node, region)

    def _inner(self, body: list[ast.stmt], region: Region) -> None:
        self._block(body, self._new(body, region))

    def _targets(self, target: ast.expr, region: Region) -> None:
        if isinstance(target, ast.Name):
            self._store(target.id, region)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._targets(element, region)
        else:
            self._loads(target, region)

    def _loads_target(self, target: ast.expr, region: Region) -> None:
        if isinstance(target, ast.Name):
            self._load(target.id, region)

    def _loads(self, node: ast.AST, region: Region) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                self._load(inner.id, region)

    def _touch(self, name: str, region: Region, is_assignment: bool) -> _Seen:
        seen = self._seen.setdefault(name, _Seen(region))
        seen.smallest = seen.smallest.common(region)
        around: Region | None = region
        while around is not None:  # inside a region further in, an assignment may not happen
            seen.first.setdefault(around.number, is_assignment and around is region)
            around = around.parent
        return seen

    def _load(self, name: str, region: Region) -> None:
        self._touch(name, region, False)

    def _store(self, name: str, region: Region) -> None:
        self._touch(name, region, True).assigned_in.append(region)


def may_leave(node: ast.stmt) -> bool:
    """Whether some lanes may not go on to the next statement of the block: return, or break and continue."""
    if isinstance(node, ast.Return | ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.If):
        return any(map(may_leave, (*node.body, *node.orelse)))
    if isinstance(node, ast.For | ast.While):
        return any(isinstance(inner, ast.Return) for inner in ast.walk(node))
    return False
