"""Rules for tasks that hand out code: it stays as it is, and a black box stays black.

A judged function gets plain numbers, never a function. So what an answer is to explore by experiment comes as
a helper in the assignment and a key as an argument; the helper knows what the key means, and the answer may
hand it on and nothing else.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from course_lib.grading.loop_nests import returns_something
from course_lib.grading.program import Program, at, bound_by, read_program

#: A method or an inner function may have such a name, while a call elsewhere means Python's own.
BUILTINS = frozenset(dir(builtins))


def helpers_of(given: str) -> dict[str, ast.FunctionDef]:
    """Return the functions that a given text defines, by name."""
    return {one.name: one for one in ast.parse(given).body if isinstance(one, ast.FunctionDef)}


def changed_helper(tree: ast.Module, helpers: Mapping[str, ast.FunctionDef]) -> str | None:
    """Return the name of a given helper that the text gives another meaning."""
    given = {ast.dump(one) for one in helpers.values()}
    for node in ast.walk(tree):
        taken = bound_by(node) & helpers.keys()
        if taken and ast.dump(node) not in given:
            return taken.pop()
    return None


@dataclass(frozen=True)
class GivenAsItIs:
    """The helpers of the text `given` are used unchanged, and mean what they meant.

    Nothing that they use is given another meaning either: their own numpy would tell what they compute with.
    """

    given: str

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for a helper that is changed, or for a name of its own that is taken away."""
        program = read_program(source, entry)
        helpers = helpers_of(self.given)
        name = changed_helper(program.tree, helpers) or self._taken(program)
        if name:
            return f"Your answer changes {name}, which is given: leave it as it is."
        for node in program.nodes():
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                return (
                    f"Your answer gives the attribute {node.attr} a value{at(node, source)}: "
                    "this task needs none, and what is given must stay as it is."
                )
        return None

    def _taken(self, program: Program) -> str | None:
        """Return the name that a helper uses from outside, and that the text binds anew at its top."""
        tree = ast.parse(self.given)
        imports = {ast.dump(one) for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)}
        own = read_program(self.given, next(iter(helpers_of(self.given)))).scopes
        helpers = {*helpers_of(self.given)}
        names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
        outside = {node.id for node in names if own.owner(node) is None} | helpers
        for node in ast.walk(program.tree):
            if isinstance(node, ast.Name) and program.scopes.owner(node) is not None:
                continue
            if isinstance(node, ast.Import | ast.ImportFrom) and ast.dump(node) in imports:
                continue
            taken = _meant_by(node) & outside
            if taken - (helpers if isinstance(node, ast.FunctionDef) else set()):
                return taken.pop()
        return None


@dataclass(frozen=True)
class OnlyHandedTo:
    """The argument `key` of the entry goes to the helper `to` and nowhere else: nobody looks at it.

    A function of the answer's own may take it on as an argument of the same name.
    """

    key: str
    to: str

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first use of the key that is no handing on."""
        program = read_program(source, entry)
        function = program.function()
        if function is None:
            return f"{entry} is no function of its own: write it with `def {entry}({self.key}, …)`."
        if not returns_something(function):
            return None  # running it says more
        if self.key not in _parameters(function):
            return self._said(function, source)
        fine = set(self._handed_on(program))
        for node in self._own_nodes(program):
            if isinstance(node, ast.Name) and node.id == self.key and id(node) not in fine:
                return self._said(node, source)
        return None

    def _said(self, node: ast.AST, source: str) -> str:
        return (
            f"Your answer looks at {self.key}{at(node, source)}: hand it to {self.to} as it is, "
            "and find out by experiment."
        )

    def _own_nodes(self, program: Program) -> Iterator[ast.AST]:
        """Yield the nodes of the answer without those of the given helper."""
        for statement in program.reached:
            if getattr(statement, "name", "") != self.to:
                yield from ast.walk(statement)

    def _handed_on(self, program: Program) -> Iterator[int]:
        """Yield the ids of names that stand where the key may stand."""
        functions = _functions(program)
        for node in self._own_nodes(program):
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            meant = functions.get(node.func.id, []) if named else []
            starred = any(isinstance(one, ast.Starred) for one in node.args) if meant else True
            for place, one in enumerate(() if starred else node.args):
                if all(_positional(each)[place : place + 1] == [self.key] for each in meant):
                    yield id(one)
            by_name = bool(meant) and all(self.key in _parameters(each) for each in meant)
            yield from (id(word.value) for word in (node.keywords if by_name else ()) if word.arg == self.key)


def _functions(program: Program) -> dict[str, list[ast.FunctionDef]]:
    """Return the functions of the text by name; names that may mean something else are left out."""
    found: dict[str, list[ast.FunctionDef]] = {}
    other: set[str] = set()
    for node in program.nodes():
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
            other |= {node.name} if node.decorator_list else set()
        else:
            other |= _meant_by(node) | ({node.arg} if isinstance(node, ast.arg) else set())
    return {name: every for name, every in found.items() if name not in other and name not in BUILTINS}


def _meant_by(node: ast.AST) -> set[str]:
    """Return the names that a node gives a meaning, those of type parameters too."""
    name = getattr(node, "name", None)
    return bound_by(node) | ({name} if isinstance(name, str) and not isinstance(node, ast.alias) else set())


def _positional(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
