"""Structural rules, judged from source text: no `@`, no library product, must be compiled …

A rule looks at everything the entry function can reach: its helpers, nested functions, decorators, aliases,
and what is stored in names it uses. It needs the text and the entry's name, nothing that runs. It is strict
where a name is made up at run time: what cannot be read cannot be judged.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Library functions that are a matrix product, or do its sums.
PRODUCTS = _words("""
    dot matmul inner outer einsum tensordot vdot vecdot matvec vecmat kron multi_dot matrix_power correlate
    convolve gemm dgemm sgemm bmm mm addmm sumprod __matmul__ __rmatmul__ __imatmul__ imatmul
""")
#: Whole-array operations that hide the loops.
WHOLE_ARRAY = _words("""
    sum nansum multiply add reduce accumulate reduceat cumsum nancumsum prod mean average trace
    apply_along_axis apply_over_axes vectorize frompyfunc guvectorize
""")
#: Ways to run code that the source does not show.
DODGES = _words("""
    eval exec compile __import__ globals vars import_module __dict__ __getattribute__ __builtins__ modules
    ctypes cffi subprocess objmode methodcaller attrgetter __globals__ __code__ settrace
""")
#: Modules that lead out of what the source shows.
DODGE_MODULES = frozenset({"ctypes", "cffi", "subprocess", "importlib", "sys", "builtins"})
COMPILERS = ("njit", "jit")


class Rule(Protocol):
    """A condition on the source; `wanted` tells the learner what it asks for."""

    wanted: str

    def judge(self, source: str, entry: str) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""


class CountingRule(Protocol):
    """A condition on the number of operations, for the arguments of a case."""

    wanted: str

    def judge(self, args: tuple, multiplications: int, additions: int) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""


# --- the part of a source that an answer reaches ------------------------------------------------------------


class Program:
    """Source text, seen from one of its functions: `nodes()` are the syntax nodes that it can reach."""

    def __init__(self, source: str, entry: str) -> None:
        self.entry = entry
        self.tree = ast.parse(source)
        self._statements = self._by_name()
        self.reached = self._reach()
        self.aliases = self._aliases()

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
        for node in self.nodes():
            if isinstance(node, ast.Import):
                for one in node.names:
                    self.aliases[one.asname or one.name.split(".")[0]] = (
                        one.name if one.asname else one.name.split(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    self.aliases[one.asname or one.name] = f"{node.module or ''}.{one.name}"
        for _ in range(3):  # an alias of an alias of an alias
            for node in self.nodes():
                for target, value in _bindings(node):
                    meaning = self.dotted(value)
                    if "." in meaning or meaning in DODGES or meaning == "getattr":
                        self.aliases.setdefault(target, meaning)
        return self.aliases


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
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {one.asname or one.name.split(".")[0] for one in statement.names}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            names.add(_root(node))
        elif isinstance(node, ast.Call):  # table.append(np.dot), setattr(table, "f", np.dot)
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            first = node.args[0] if isinstance(node.func, ast.Name) and node.func.id == "setattr" else None
            names.update(_root(one) for one in (owner, first) if one is not None)
    return names - {""}


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
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


def _at(node: ast.AST, source: str) -> str:
    """Return the words that point at a node: the line of code it stands in."""
    lines = source.splitlines()
    line = lines[node.lineno - 1].strip() if 0 < getattr(node, "lineno", 0) <= len(lines) else ""
    return f" in `{line}`" if line else ""


# --- rules --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoOperator:
    """The answer does not use the operator, by no name: NoOperator("@")."""

    operator: str = "@"

    @property
    def wanted(self) -> str:
        return f"no operator {self.operator}"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence if the operator, or a function that stands for it, is reachable."""
        for node in Program(source, entry).nodes():
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
                return (
                    f"Your answer uses the operator @{_at(node, source)}: this task is to write what @ does."
                )
        return NoCalls(frozenset({"matmul", "imatmul", "__matmul__", "__rmatmul__", "__imatmul__"})).judge(
            source, entry
        )


@dataclass(frozen=True)
class NoCalls:
    """The answer does not mention library functions or methods of these names, however they are reached.

    A function of the learner's own may have such a name; then its body is looked at.
    """

    names: frozenset[str]
    why: str = "this task is to write it yourself"

    @property
    def wanted(self) -> str:
        return "no ready-made products or sums (" + ", ".join(sorted(self.names)[:6]) + " …)"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first forbidden name, or for a name that only exists at run time."""
        program = Program(source, entry)
        texts = _docstrings(program)
        for node in program.nodes():
            name = self._forbidden(program, node, texts)
            if name:
                return f"Your answer uses {name}{_at(node, source)}: {self.why}."
            hidden = _hidden(program, node)
            if hidden:
                return (
                    f"Your answer uses {hidden}{_at(node, source)}: code that cannot be read is not accepted."
                )
        return None

    def _forbidden(self, program: Program, node: ast.AST, texts: set[int]) -> str | None:
        if isinstance(node, ast.Attribute) and node.attr in self.names:
            return f"{_short(program.dotted(node))}"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            meaning = program.dotted(node)
            last = meaning.rpartition(".")[2]
            if last in self.names and ("." in meaning or not _is_own(program, node.id)):
                return _short(meaning)
        if isinstance(node, ast.ImportFrom):
            if any(one.name == "*" for one in node.names):
                return f"`from {node.module} import *`"
        elif id(node) not in texts and constant_text(node) in self.names:
            return f"the name {constant_text(node)!r} as text"
        return None


def _is_own(program: Program, name: str) -> bool:
    """Whether the reached code itself binds the name (as a function, argument or variable)."""
    if program.defines(name):
        return True
    return any(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        or (isinstance(node, ast.arg) and node.arg == name)
        for node in program.nodes()
    )


def _short(dotted: str) -> str:
    """Return a dotted name without an unknown root: "?.dot" -> ".dot"."""
    root, _, last = dotted.rpartition(".")
    return f".{last}" if root in ("", "?") or root.startswith("?") else dotted


def _docstrings(program: Program) -> set[int]:
    """Return the ids of constants that are mere text: docstrings."""
    found = set()
    for node in program.nodes():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(id(node.value))
    return found


def _hidden(program: Program, node: ast.AST) -> str | None:
    """Return what makes code unreadable at this node: eval, getattr with a computed name …"""
    if isinstance(node, ast.Name | ast.Attribute):
        last = program.dotted(node).rpartition(".")[2]
        own = isinstance(node, ast.Name) and _is_own(program, node.id)
        if last in DODGES and not (own and "." not in program.dotted(node)):
            return last
    if isinstance(node, ast.Import | ast.ImportFrom):
        roots = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        return next((root for root in roots if root.split(".")[0] in DODGE_MODULES), None)
    if isinstance(node, ast.Call) and program.dotted(node.func) in ("getattr", "builtins.getattr"):
        readable = len(node.args) >= 2 and constant_text(node.args[1]) is not None
        return None if readable else "getattr with a name made at run time"
    return None


@dataclass(frozen=True)
class OnlyImports:
    """The answer imports nothing but these modules: OnlyImports() allows none."""

    modules: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        return "no imports" if not self.modules else "imports only " + ", ".join(self.modules)

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first import of another module that the answer reaches."""
        for node in Program(source, entry).nodes():
            for name in _imported(node):
                if name.split(".")[0] not in (*self.modules, "__future__"):
                    allowed = ", ".join(self.modules) or "nothing but plain Python"
                    return f"Your answer imports {name}{_at(node, source)}: allowed is {allowed}."
            if isinstance(node, ast.Name) and node.id == "__import__":
                return f"Your answer uses __import__{_at(node, source)}: imports must be plain to see."
        return None


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    return [node.module or "."] if isinstance(node, ast.ImportFrom) else []


@dataclass(frozen=True)
class MustBeCompiled:
    """The entry function is compiled by Numba: decorated with @njit, or made by njit(...)."""

    wanted: str = "compiled with Numba (@njit)"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence unless the entry itself is compiled in nopython mode."""
        program = Program(source, entry)
        function = program.function()
        compilers = list(function.decorator_list) if function else []
        for statement in program.reached:
            if isinstance(statement, ast.Assign) and entry in map(_root, statement.targets):
                compilers.append(statement.value)
        if any(_compiles(program, one) for one in compilers):
            return None
        return f"{entry} is not compiled: put @njit in front of its `def` (from numba import njit)."


def _compiles(program: Program, node: ast.expr) -> bool:
    call = node
    while isinstance(call, ast.Call):
        if any(word.arg == "forceobj" for word in call.keywords):
            return False
        call = call.func
    if isinstance(call, ast.Name):  # compiled = njit(nogil=True), then @compiled
        bound = [value for one in program.nodes() for name, value in _bindings(one) if name == call.id]
        if bound:
            return all(isinstance(value, ast.Call) and _compiles(program, value) for value in bound)
    return program.dotted(call).rpartition(".")[2] in COMPILERS


@dataclass(frozen=True)
class FastmathOnly:
    """Compiled code may break no rule of floating point but these: no fastmath=True."""

    allowed: frozenset[str] = frozenset({"contract", "reassoc", "nsz"})

    @property
    def wanted(self) -> str:
        return "fastmath at most {" + ", ".join(sorted(self.allowed)) + "}"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for a fastmath setting that lets the compiler assume NaN and inf away."""
        program = Program(source, entry)
        for node in program.nodes():
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "fastmath" and not self._fine(program, keyword.value):
                    return (
                        f"fastmath={ast.unparse(keyword.value)} lets the compiler assume that NaN and inf "
                        'never occur, so they may get lost: use fastmath={"contract", "reassoc"}.'
                    )
                if keyword.arg is None:
                    return f"Your answer uses **{_at(node, source)}: write compiler options out in full."
        return None

    def _fine(self, program: Program, value: ast.expr) -> bool:
        if isinstance(value, ast.Name):
            bound = [its for node in program.nodes() for name, its in _bindings(node) if name == value.id]
            return bool(bound) and all(self._fine(program, one) for one in bound)
        if isinstance(value, ast.Call) and program.dotted(value.func) in ("set", "frozenset"):
            return all(self._fine(program, one) for one in value.args)
        if isinstance(value, ast.Set | ast.List | ast.Tuple):
            return all(constant_text(one) in self.allowed for one in value.elts)
        return isinstance(value, ast.Constant) and value.value is False


@dataclass(frozen=True)
class LoopOrder:
    """The entry nests its loops in this order: LoopOrder("kij")."""

    order: str

    @property
    def wanted(self) -> str:
        return "loops in the order " + ", ".join(self.order)

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence unless some nest of loops runs over exactly these variables, outermost first."""
        function = Program(source, entry).function()
        nests = list(_nests(function)) if function else []
        if tuple(self.order) in nests:
            return None
        found = " and ".join(", ".join(nest) for nest in nests if nest) or "not nested"
        return f"The loops run over {found}; this task wants {', '.join(self.order)}, outermost first."


def _nests(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield the loop variables of every innermost loop, outermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For):
            name = child.target.id if isinstance(child.target, ast.Name) else "?"
            inner = list(_nests(child)) or [()]
            yield from ((name, *rest) for rest in inner)
        else:
            yield from _nests(child)


@dataclass(frozen=True)
class MaxLoops:
    """At most `nested` loops inside each other, comprehensions and called helpers included."""

    nested: int

    @property
    def wanted(self) -> str:
        return f"at most {self.nested} nested loops"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence if the deepest nest is deeper."""
        program = Program(source, entry)
        functions = {node.name: node for node in ast.walk(program.tree) if isinstance(node, ast.FunctionDef)}
        depth = _depth(functions.get(entry), functions, (entry,))
        return (
            None
            if depth <= self.nested
            else f"Your loops are nested {depth} deep; allowed are {self.nested}."
        )


def _depth(node: ast.AST | None, functions: dict[str, ast.FunctionDef], callers: tuple[str, ...]) -> int:
    """Return how deep loops nest below `node`, following calls of the learner's own functions."""
    if node is None:
        return 0
    own = isinstance(node, ast.For | ast.While)
    below = [_depth(child, functions, callers) for child in ast.iter_child_nodes(node)]
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        own = len(node.generators)
    if isinstance(node, ast.Name) and node.id in functions and node.id not in callers:
        below.append(_depth(functions[node.id], functions, (*callers, node.id)))
    return int(own) + max(below, default=0)


@dataclass(frozen=True)
class CountsOperations:
    """On counting operands the answer does exactly this many operations; None leaves one free."""

    multiplications: Callable[..., int] | None = None
    additions: Callable[..., int] | None = None
    wanted: str = "exactly the operations of the definition"

    def judge(self, args: tuple, multiplications: int, additions: int) -> str | None:
        """Return a sentence if a count differs from the formula for these arguments."""
        done = {"multiplications": (self.multiplications, multiplications)}
        done["additions"] = (self.additions, additions)
        for name, (formula, count) in done.items():
            wanted = formula(*args) if formula else count
            if count != wanted:
                what = "more than" if count > wanted else "fewer than"
                return f"Your answer did {count} {name} on this input, {what} the {wanted} of the definition."
        return None


def is_stub(source: str, entry: str) -> bool:
    """Whether the entry is still what was handed out: it raises NotImplementedError, or does nothing."""
    function = Program(source, entry).function()
    if function is None:
        return False
    left = any(
        isinstance(node, ast.Raise) and "NotImplementedError" in _raised(node) for node in ast.walk(function)
    )
    body = [one for one in function.body if not (isinstance(one, ast.Expr) and _is_text(one.value))]
    return left or all(_does_nothing(one) for one in body)


def _raised(node: ast.Raise) -> str:
    return ast.unparse(node.exc) if node.exc else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr | ast.Return):
        return isinstance(statement.value, ast.Constant) and statement.value.value is ...
    return isinstance(statement, ast.Pass)
