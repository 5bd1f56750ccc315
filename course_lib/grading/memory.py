"""Finding in source text what a function keeps from one call to the next."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from course_lib.grading.program import DEFINITIONS, Program, bindings, bound_by, root_name, words

CHANGING = words("""
    append extend insert add update setdefault pop popitem clear remove discard reverse sort __setitem__
    __setattr__ send
""")
#: What may be done with a table of constants outside the function: reading it.
READERS = words("get items keys values index count copy")
READING = words("len enumerate zip range sum min max sorted reversed tuple list set dict map any all iter")


def kept(program: Program) -> Iterator[tuple[ast.AST, str]]:
    """Yield (node, words for it) for each way to remember something that the entry can reach."""
    finder = _Finder(program)
    for node in program.nodes():
        if isinstance(node, ast.ClassDef):
            yield node, "a class"
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield node, "global" if isinstance(node, ast.Global) else "nonlocal"
        elif isinstance(node, DEFINITIONS):
            yield from finder.defaults(node)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield from finder.write(node)
        elif isinstance(node, ast.Call):
            yield from finder.call(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield from finder.use(node)


class _Finder:
    """Knows for the names of a text whether their things end with the call of the entry."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._scopes = program.scopes
        self._entry = program.function()
        self._parents = {id(part): node for node in program.nodes() for part in ast.iter_child_nodes(node)}
        self._values = self._outside_values()

    def defaults(self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        """Yield default values that are not constants."""
        for default in (*function.args.defaults, *filter(None, function.args.kw_defaults)):
            plain = isinstance(default, ast.Name) and not self._is_changeable(default.id)
            if not plain and not _is_constant(default):
                yield default, "a default value that can change"

    def write(self, node: ast.Attribute | ast.Subscript):
        """Yield a write to what is outside; an attribute always is: a call has no objects of its own."""
        if not self._scopes.around(node):
            return  # while the text is loaded
        name = _root(node)
        if isinstance(node, ast.Attribute) or name is None or self._outlives(name):
            yield node, f"a write to {root_name(node) or 'something'} outside the function"

    def call(self, node: ast.Call):
        """Yield a call that changes what is outside."""
        if not self._scopes.around(node):
            return
        if isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            yield node, node.func.id
        if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            name = _root(node.func)
            if name is not None and self._outlives(name):
                yield node, f"{name.id}.{node.func.attr} on something outside the function"

    def use(self, node: ast.Name):
        """Yield a use of a changeable thing outside that does more than read it."""
        if not self._scopes.around(node) or not self._outlives(node) or not self._is_changeable(node.id):
            return
        values = self._values.get(node.id, [None])
        if all(map(_is_table, values)) and self._only_reads(node):
            return
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and parent.value is node:
            name = ast.unparse(parent.targets[0])
            yield node, f"another name ({name}) for {node.id}, which outlives the call"
        else:
            yield node, f"{node.id}, which outlives the call"

    def _outlives(self, name: ast.Name) -> bool:
        """Whether the thing of this name is there before the call and after it."""
        owner = self._scopes.owner(name)
        if owner is None:
            return True
        around = self._scopes.around(name)
        inner = next((one for one in around if isinstance(one, DEFINITIONS)), None)
        if owner in around[: around.index(inner) + 1 if inner is not None else None]:
            return False  # of the function it stands in, which begins anew with every call
        return self._entry is None or (
            owner is not self._entry and self._entry not in self._scopes.around(owner)
        )

    def _is_changeable(self, name: str) -> bool:
        """Whether a name from outside stands for anything but functions, modules and constants."""
        if name not in self._values:
            return (
                not hasattr(builtins, name)
                and not self._program.defines(name)
                and not self._is_imported(name)
            )
        return not all(_is_constant(value) for value in self._values[name])

    def _is_imported(self, name: str) -> bool:
        kinds = (ast.Import, ast.ImportFrom)
        return any(isinstance(node, kinds) and name in bound_by(node) for node in self._program.nodes())

    def _outside_values(self) -> dict[str, list[ast.expr | None]]:
        """Return what names outside the entry are given; None for a value that cannot be seen."""
        found: dict[str, list[ast.expr | None]] = {}
        seen: set[int] = set()
        for node in self._program.nodes():
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                names = {
                    one.id: one for one in ast.walk(node) if isinstance(one, ast.Name) and _is_stored(one)
                }
                for name, value in bindings(node):
                    if name in names and self._outlives(names[name]):
                        found.setdefault(name, []).append(value)
                        seen.add(id(names[name]))
        for node in self._program.nodes():
            if (
                isinstance(node, ast.Name)
                and _is_stored(node)
                and id(node) not in seen
                and self._outlives(node)
            ):
                found.setdefault(node.id, []).append(None)
        for function in (node for node in self._program.nodes() if isinstance(node, DEFINITIONS)):
            if function is not self._entry and self._holds_functions(function):
                for name in self._scopes.binds(function):
                    if not self._program.defines(name):
                        found.setdefault(name, []).append(None)
        return found

    def _holds_functions(self, function: ast.AST) -> bool:
        """Whether functions in it may outlive its call: it is not inside the entry."""
        if self._entry in self._scopes.around(function):
            return False
        return any(isinstance(node, DEFINITIONS) and node is not function for node in ast.walk(function))

    def _only_reads(self, node: ast.Name) -> bool:
        parent = self._parents.get(id(node))
        if isinstance(parent, ast.Subscript):
            return parent.value is node and isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node
        if isinstance(parent, ast.Attribute):
            above = self._parents.get(id(parent))
            return parent.attr in READERS and isinstance(above, ast.Call) and above.func is parent
        if isinstance(parent, ast.Call):
            return isinstance(parent.func, ast.Name) and parent.func.id in READING
        return isinstance(parent, ast.Compare | ast.Starred)


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _root(node: ast.AST) -> ast.Name | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _is_constant(node: ast.AST | None) -> bool:
    """Whether an expression gives something that nobody can change."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_constant, node.elts))
    if isinstance(node, ast.BinOp):
        return _is_constant(node.left) and _is_constant(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    return isinstance(node, ast.Constant | ast.Lambda)


def _is_table(node: ast.AST | None) -> bool:
    """Whether an expression is a list, set or dict of constants."""
    if isinstance(node, ast.Dict):
        return all(map(_is_constant, node.keys)) and all(map(_is_constant, node.values))
    return isinstance(node, ast.List | ast.Set) and all(map(_is_constant, node.elts))
