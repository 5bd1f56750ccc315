"""Reading source text: what an answer reaches, what its names stand for, and whether it was begun at all.

Nothing is run. `rules` judges what is found here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from course_lib.grading.vocabulary import COMPUTING, COMPUTING_MODULES, DODGES, KNOWN, MODULES, words

#: Modules that lead to no other one, but through names that are known as dodges.
SMALL_MODULES = words("__future__ math cmath dataclasses collections itertools heapq time")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

#: First line of a text that holds one answer and nothing else: all of it counts as reached. Whoever forges it
#: only makes the rules stricter.
CLOSED = "# All that follows belongs to the answer."


class Program:
    """Source text, seen from one of its functions: `nodes()` are the syntax nodes that it can reach.

    `library`: a library may do the work, so more of it is familiar than what makes arrays and loops.
    """

    def __init__(self, source: str, entry: str, library: bool = False) -> None:
        self.entry = entry
        self.known = COMPUTING if library else KNOWN
        self.modules = COMPUTING_MODULES if library else MODULES
        self.tree = ast.parse(source)
        self._statements = self._by_name()
        self.reached = list(self.tree.body) if source.startswith(CLOSED) else self._reach()
        self.aliases = self._aliases()
        self.scopes = Scopes(self.tree)
        self.called = self._called()
        self.own_attributes = self._own_attributes()

    def nodes(self) -> Iterator[ast.AST]:
        """Yield every reachable node once."""
        for statement in self.reached:
            yield from ast.walk(statement)

    def function(self) -> ast.FunctionDef | None:
        """Return the entry's last definition, if it is a `def`."""
        defined = [node for node in self._statements.get(self.entry, []) if isinstance(node, ast.FunctionDef)]
        return defined[-1] if defined else None

    def defines(self, name: str) -> bool:
        """Whether the text itself defines `name` as a function or class."""
        kinds = (ast.FunctionDef, ast.ClassDef)
        return any(isinstance(node, kinds) and node.name == name for node in ast.walk(self.tree))

    def dotted(self, node: ast.AST) -> str:
        """Return what a name or attribute stands for, aliases resolved: "numpy.dot"; "" if unknown."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            root = self.dotted(node.value)
            return f"{root}.{node.attr}" if root else f"?.{node.attr}"
        if isinstance(node, ast.Call) and self.dotted(node.func) == "getattr" and len(node.args) >= 2:
            return f"{self.dotted(node.args[0])}.{constant_text(node.args[1]) or '?'}"
        return ""

    def _by_name(self) -> dict[str, list[ast.stmt]]:
        """Map each top-level name to the statements that define or change it."""
        table: dict[str, list[ast.stmt]] = {}
        for statement in _flat(self.tree.body):
            for name in _changed_names(statement):
                table.setdefault(name, []).append(statement)
        return table

    def _reach(self) -> list[ast.stmt]:
        found: dict[int, ast.stmt] = {}
        names, seen = [self.entry, "*"], set()  # a star import may bring in any name
        while names:
            name = names.pop()
            if name in seen:
                continue
            seen.add(name)
            for statement in self._statements.get(name, []):
                if id(statement) not in found:
                    found[id(statement)] = statement
                    names += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
        return list(found.values())

    def _aliases(self) -> dict[str, str]:
        """Map names bound by imports and by plain assignments (`d = np.dot`) to what they stand for."""
        self.aliases: dict[str, str] = {}
        self.meanings: dict[str, set[str]] = {}
        for node in self.nodes():
            for name, meaning in _imports(node):
                self.aliases[name] = meaning
                self.meanings.setdefault(name, set()).add(meaning)
        for _ in range(3):  # an alias of an alias of an alias
            for node in self.nodes():
                for target, value in bindings(node):
                    meaning = self.dotted(value)
                    if "." in meaning or meaning in DODGES or meaning == "getattr":
                        self.aliases.setdefault(target, meaning)
        return self.aliases

    def _called(self) -> set[int]:
        """Return the ids of nodes that stand where something is called, or where a compiler decorates."""
        found: set[int] = set()
        for node in self.nodes():
            if isinstance(node, ast.Call):
                found.add(id(node.func))
            elif isinstance(node, ast.FunctionDef):
                compilers = ("njit", "jit")
                bare = (
                    one for one in node.decorator_list if self.dotted(one).rpartition(".")[2] in compilers
                )
                found.update(map(id, bare))
        return found

    def is_local(self, node: ast.Name) -> bool:
        """Whether the name belongs to a function of the text, and so never to Python itself."""
        return self.scopes.owner(node) is not None

    def _own_attributes(self) -> set[str]:
        """Return the attributes that the answer makes itself. With large modules at hand none count: a name
        of its own would hide a module's."""
        own: set[str] = set()
        for node in self.nodes():
            if any(name not in SMALL_MODULES for name in imported(node)):
                return set()
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own.add(node.attr)
            elif isinstance(node, ast.ClassDef):
                own.update(getattr(one, "name", "") for one in node.body)
                own.update(name for one in node.body for name, _ in bindings(one))
        return own


@functools.lru_cache(maxsize=4)
def read_program(source: str, entry: str, library: bool = False) -> Program:
    """Return the Program of a text; several rules in turn ask for the same one, which is read once."""
    return Program(source, entry, library)


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (name, what it stands for) for what an import binds; nothing for any other node."""
    if isinstance(node, ast.Import):
        for one in node.names:
            yield (one.asname, one.name) if one.asname else (one.name.split(".")[0],) * 2
    elif isinstance(node, ast.ImportFrom):
        for one in node.names:
            yield one.asname or one.name, f"{node.module or ''}.{one.name}"


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield top-level statements; those inside if, try, with and loops as well."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                yield from _flat(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from _flat(handler.body)


def _changed_names(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement defines, assigns, or changes in place."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        shared = (node.names for node in ast.walk(statement) if isinstance(node, ast.Global))
        return {statement.name}.union(*shared)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {one.asname or one.name.split(".")[0] for one in statement.names}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            names.add(root_name(node))
        elif isinstance(node, ast.Call):  # table.append(np.dot), setattr(table, "f", np.dot), fill(table)
            names.update(root_name(one) for one in (node.func, *node.args) if not _is_bare(one, node.func))
    return names - {""}


def _is_bare(node: ast.expr, callee: ast.expr) -> bool:
    """Whether the node is the plain name of what is called: calling a function does not change it."""
    return node is callee and isinstance(node, ast.Name)


def root_name(node: ast.AST) -> str:
    """Return the name that attributes and indices hang on: "a" for a.b[0].c; "" if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield (name, value) for each simple way to give a value a name."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield from _pairs(node.target, node.value)
    elif isinstance(node, ast.FunctionDef | ast.Lambda):
        positional = [*node.args.posonlyargs, *node.args.args]
        for argument, default in zip(reversed(positional), reversed(node.args.defaults), strict=False):
            yield argument.arg, default


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, its_value in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, its_value)


def constant_text(node: ast.AST) -> str | None:
    """Return the text of a constant string expression ("do" + "t", f"dot", "d" "ot"), or None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = constant_text(node.left), constant_text(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.JoinedStr):
        parts = [
            constant_text(part.value if isinstance(part, ast.FormattedValue) else part)
            for part in node.values
        ]
        return None if None in parts else "".join(parts)
    return None


def imported(node: ast.AST) -> list[str]:
    """Return the modules that an import names; none for any other node."""
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    return [node.module or "."] if isinstance(node, ast.ImportFrom) else []


def is_own(program: Program, name: str) -> bool:
    """Whether the reached code itself binds the name (as a function, argument or variable)."""
    if program.defines(name):
        return True
    return any(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        or (isinstance(node, ast.arg) and node.arg == name)
        for node in program.nodes()
    )


def docstrings(program: Program) -> set[int]:
    """Return the ids of constants that are mere text: docstrings."""
    found = set()
    for node in program.nodes():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(id(node.value))
    return found


def at(node: ast.AST, source: str) -> str:
    """Return the words that point at a node: the line of code it stands in."""
    lines = source.splitlines()
    line = lines[node.lineno - 1].strip() if 0 < getattr(node, "lineno", 0) <= len(lines) else ""
    return f" in `{line}`" if line else ""


def functions(source: str) -> list[str]:
    """Return the names of the functions that the text defines at its top."""
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


def is_stub(source: str, entry: str) -> bool:
    """Whether the entry is still what was handed out: it raises NotImplementedError, or does nothing."""
    function = read_program(source, entry).function()
    if function is None:
        return False
    body = [one for one in function.body if not (isinstance(one, ast.Expr) and _is_text(one.value))]
    return _left_open(body) or all(_does_nothing(one) for one in body)


def _left_open(body: list[ast.stmt]) -> bool:
    """Whether these statements always come to `raise NotImplementedError`, not only for some inputs."""
    for statement in body:
        if isinstance(statement, ast.Raise):
            return "NotImplementedError" in _raised(statement)
        if isinstance(statement, ast.For | ast.With) and _left_open(statement.body):
            return True
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            return False
    return False


def _raised(node: ast.Raise) -> str:
    return ast.unparse(node.exc) if node.exc else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr | ast.Return):
        return isinstance(statement.value, ast.Constant) and statement.value.value is ...
    return isinstance(statement, ast.Pass)


# --- whose a name is ----------------------------------------------------------------------------------------


class Scopes:
    """The scopes of a text: for every name, the function in whose scope it is bound.

    Python's own rule (language reference, 4.2.2): a name that a function binds is its own everywhere in it;
    any other belongs to the nearest function around that binds it, and else to the module or to Python
    itself. What a class binds is seen by its own body only, which falls back to the module: it counts as the
    module's.
    """

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
            self._bound.setdefault(id(node), set()).update(_argument_names(arguments))
            outer = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            outer += [*getattr(node, "decorator_list", []), *filter(None, [getattr(node, "returns", None)])]
            outer += [one.annotation for one in _all_arguments(arguments) if one.annotation]
            body = node.body if isinstance(node.body, list) else [node.body]
            yield from ((one, scopes) for one in outer)
            yield from ((one, scopes) for one in _all_arguments(arguments))
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


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    stars = [one for one in (arguments.vararg, arguments.kwarg) if one]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def _argument_names(arguments: ast.arguments) -> set[str]:
    return {one.arg for one in _all_arguments(arguments)}
