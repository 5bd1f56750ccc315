"""Structural rules, judged from source text: no `@`, no library product, must be compiled …

A rule looks at everything the entry function can reach: its helpers, nested functions, decorators, aliases,
and what is stored in names it uses. It needs the text and the entry's name, nothing that runs. It is strict
where a name is made up at run time: what cannot be read cannot be judged.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from course_lib.grading.loop_nests import depth, returns_something, writing_orders
from course_lib.grading.memory import kept
from course_lib.grading.program import (
    Program,
    at,
    bindings,
    constant_text,
    docstrings,
    imported,
    is_own,
    read_program,
    root_name,
    unfamiliar,
    unreadable,
    words,
)

UNFAMILIAR = (
    "this task takes plain Python, and of NumPy and Numba what makes arrays, numbers and compiled loops"
)
UNCOMMON = "this task takes plain Python, and of a library what computes with numbers and arrays"
UNREADABLE = "code that cannot be read is not accepted"
#: Library functions that are a matrix product, or do its sums.
PRODUCTS = words("""
    dot matmul inner outer einsum tensordot vdot vecdot matvec vecmat kron multi_dot matrix_power correlate
    convolve gemm dgemm sgemm bmm mm addmm sumprod __matmul__ __rmatmul__ __imatmul__ imatmul
""")
#: Whole-array operations that hide the loops.
WHOLE_ARRAY = words("""
    sum nansum multiply add reduce accumulate reduceat cumsum nancumsum prod mean average trace
    apply_along_axis apply_over_axes vectorize frompyfunc guvectorize
""")
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
        for node in read_program(source, entry).nodes():
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
                return (
                    f"Your answer uses the operator @{at(node, source)}: this task is to write what @ does."
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
        program = read_program(source, entry)
        texts = docstrings(program)
        for node in program.nodes():
            name = self._forbidden(program, node, texts)
            if name:
                return f"Your answer uses {name}{at(node, source)}: {self.why}."
            hidden = unreadable(program, node)
            if hidden:
                return f"Your answer uses {hidden}{at(node, source)}: {UNREADABLE}."
            strange = unfamiliar(program, node)
            known = (PRODUCTS | WHOLE_ARRAY) - self.names
            if strange and strange.rpartition(".")[2] not in known:
                return f"Your answer uses {strange}{at(node, source)}: {UNFAMILIAR}."
        return None

    def _forbidden(self, program: Program, node: ast.AST, texts: set[int]) -> str | None:
        if isinstance(node, ast.Attribute) and node.attr in self.names:
            return f"{_short(program.dotted(node))}"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            meaning = program.dotted(node)
            last = meaning.rpartition(".")[2]
            if last in self.names and ("." in meaning or not is_own(program, node.id)):
                return _short(meaning)
        if isinstance(node, ast.ImportFrom):
            if any(one.name == "*" for one in node.names):
                return f"`from {node.module} import *`"
        elif id(node) not in texts and constant_text(node) in self.names:
            return f"the name {constant_text(node)!r} as text"
        return None


def _short(dotted: str) -> str:
    """Return a dotted name without an unknown root: "?.dot" -> ".dot"."""
    root, _, last = dotted.rpartition(".")
    return f".{last}" if root in ("", "?") or root.startswith("?") else dotted


@dataclass(frozen=True)
class OnlyImports:
    """The answer imports nothing but these modules: OnlyImports() allows none.

    Nor does it reach others: every module holds some that lead to all the rest, and so do Python's objects.
    """

    modules: tuple[str, ...] = ()

    @property
    def wanted(self) -> str:
        return "no imports" if not self.modules else "imports only " + ", ".join(self.modules)

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first import of another module, or for what may lead to one."""
        program = read_program(source, entry, library=True)
        for node in program.nodes():
            for name in imported(node):
                if name.split(".")[0] not in (*self.modules, "__future__"):
                    allowed = ", ".join(self.modules) or "nothing but plain Python"
                    return f"Your answer imports {name}{at(node, source)}: allowed is {allowed}."
        for node in program.nodes():  # after all imports: these say more
            hidden = unreadable(program, node)
            if hidden:
                return f"Your answer uses {hidden}{at(node, source)}: {UNREADABLE}."
            strange = unfamiliar(program, node)
            if strange and strange.rpartition(".")[2] not in PRODUCTS:
                return f"Your answer uses {strange}{at(node, source)}: {UNCOMMON}."
        return None


@dataclass(frozen=True)
class MustBeCompiled:
    """The entry function is compiled by Numba: decorated with @njit, or made by njit(...)."""

    wanted: str = "compiled with Numba (@njit)"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence unless the entry itself is compiled in nopython mode."""
        program = read_program(source, entry)
        function = program.function()
        compilers = list(function.decorator_list) if function else []
        for statement in program.reached:
            if isinstance(statement, ast.Assign) and entry in map(root_name, statement.targets):
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
        bound = [value for one in program.nodes() for name, value in bindings(one) if name == call.id]
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
        program = read_program(source, entry)
        for node in program.nodes():
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "fastmath" and not self._fine(program, keyword.value):
                    return (
                        f"fastmath={ast.unparse(keyword.value)} lets the compiler assume that NaN and inf "
                        'never occur, so they may get lost: use fastmath={"contract", "reassoc"}.'
                    )
                if keyword.arg is None:
                    return f"Your answer uses **{at(node, source)}: write compiler options out in full."
        return None

    def _fine(self, program: Program, value: ast.expr) -> bool:
        if isinstance(value, ast.Name):
            bound = [its for node in program.nodes() for name, its in bindings(node) if name == value.id]
            return bool(bound) and all(self._fine(program, one) for one in bound)
        if isinstance(value, ast.Call) and program.dotted(value.func) in ("set", "frozenset"):
            return all(self._fine(program, one) for one in value.args)
        if isinstance(value, ast.Set | ast.List | ast.Tuple):
            return all(constant_text(one) in self.allowed for one in value.elts)
        return isinstance(value, ast.Constant) and value.value is False


@dataclass(frozen=True)
class LoopOrder:
    """Every element of the result is computed in loops of this order: LoopOrder("kij").

    i runs over the rows of the result, j over its columns, k over the summands, whatever they are called.
    """

    order: str

    @property
    def wanted(self) -> str:
        return "loops in the order " + ", ".join(self.order)

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence unless all loops that compute the result have the order, outermost first."""
        program = read_program(source, entry)
        function = program.function()
        if function is None or not returns_something(function):
            return None  # comparing its result says more
        for node in program.nodes():
            if isinstance(node, ast.FunctionDef) and node is not function and _has_loop(node):
                return f"The loops are in {node.name}: this task wants them in {entry} itself."
        found = writing_orders(function)
        wrong = [one for one in found if one[0] != tuple(self.order)]
        if found and not wrong:
            return None
        said = _order_text(*wrong[0]) if wrong else "not nested, or they do not write the result"
        return f"The loops run over {said}; this task wants {', '.join(self.order)}, outermost first."


@dataclass(frozen=True)
class NestedLoops:
    """At least so many loops run inside each other; the functions called in a loop count with theirs.

    np.ndindex over several axes is as many loops as it has axes; a loop in which nothing changes is none.
    """

    at_least: int
    instead: str

    @property
    def wanted(self) -> str:
        return f"{self.at_least} loops or more, one inside the other"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence if arithmetic with whole arrays stands for loops that are asked for."""
        program = read_program(source, entry)
        function = program.function()
        found = depth(program)
        if function is None or not returns_something(function) or found >= self.at_least:
            return None
        return f"The deepest nest of loops in your answer has {found}: {self.instead}."


def _has_loop(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.For | ast.While) for node in ast.walk(function))


def _order_text(roles: tuple[str, ...], names: tuple[str, ...]) -> str:
    said = ", ".join(roles)
    return said if roles == names else f"{said} (you call them {', '.join(names)})"


@dataclass(frozen=True)
class NoMemory:
    """Nothing is kept from one call to the next: for tasks whose answers are timed."""

    wanted: str = "nothing kept between calls"

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for a mutable default, a global, or a write to something outside the function."""
        for node, what in kept(read_program(source, entry)):
            return f"Your answer uses {what}{at(node, source)}: every call must do all of its work."
        return None


@dataclass(frozen=True)
class CountsOperations:
    """On counting operands the answer does exactly this many operations; None leaves one free.

    `whose` ends the sentence about a wrong count: "more than the 7 of Strassen's level".
    """

    multiplications: Callable[..., int] | None = None
    additions: Callable[..., int] | None = None
    wanted: str = "exactly the operations of the definition"
    whose: str = "of the definition"

    def judge(self, args: tuple, multiplications: int, additions: int) -> str | None:
        """Return a sentence if a count differs from the formula for these arguments."""
        done = {"multiplications": (self.multiplications, multiplications)}
        done["additions"] = (self.additions, additions)
        for name, (formula, count) in done.items():
            wanted = formula(*args) if formula else count
            if count != wanted:
                what = "more than" if count > wanted else "fewer than"
                return f"Your answer did {count} {name} on this input, {what} the {wanted} {self.whose}."
        return None
