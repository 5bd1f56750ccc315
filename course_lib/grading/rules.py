"""Structural rules, judged from source text: no `@`, no library product, must be compiled …

A rule looks at everything the entry function can reach: its helpers, nested functions, decorators, aliases,
and what is stored in names it uses. It needs the text and the entry's name, nothing that runs. It is strict
where a name is made up at run time: what cannot be read cannot be judged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from course_lib.grading.loop_nests import depth, returns_something, writing_orders
from course_lib.grading.memory import kept
from course_lib.grading.program import (
    Program,
    at,
    bindings,
    bound_by,
    constant_text,
    docstrings,
    imported,
    is_own,
    read_program,
    root_name,
)
from course_lib.grading.vocabulary import (
    COMPILER_SETTINGS,
    DODGE_MODULES,
    DODGES,
    MATCHED,
    NAMES,
    ONLY_CALLED,
    OPERATORS,
    TYPE_WORDS,
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
FASTMATH = words("contract reassoc nsz")  # of these settings no NaN or inf gets lost
TYPE_TEXT = re.compile(r"[\w\s\[\]():,]{0,400}")


class Rule(Protocol):
    """A condition on the source."""

    def judge(self, source: str, entry: str) -> str | None:
        """Return None if the rule is kept, else one sentence that names the fault."""


# --- rules --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoOperator:
    """The answer does not use the operator, by no name: NoOperator("@")."""

    operator: str = "@"

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

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first forbidden name, or for a name that only exists at run time."""
        program = read_program(source, entry)
        texts = docstrings(program)
        for node in program.nodes():
            name = self._forbidden(program, node, texts)
            if name:
                return f"Your answer uses {name}{at(node, source)}: {self.why}."
            odd = _odd(program, node, source, (PRODUCTS | WHOLE_ARRAY) - self.names, UNFAMILIAR)
            if odd:
                return odd
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

    def judge(self, source: str, entry: str) -> str | None:
        """Return a sentence for the first import of another module, or for what may lead to one."""
        program = read_program(source, entry, library=True)
        for node in program.nodes():
            for name in imported(node):
                if name.split(".")[0] not in (*self.modules, "__future__"):
                    allowed = ", ".join(self.modules) or "nothing but plain Python"
                    return f"Your answer imports {name}{at(node, source)}: allowed is {allowed}."
        odd = (_odd(program, node, source, PRODUCTS, UNCOMMON) for node in program.nodes())
        return next(filter(None, odd), None)  # after all imports: these say more


class MustBeCompiled:
    """The entry function is compiled by Numba: decorated with @njit, or made by njit(...)."""

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


class FastmathOnly:
    """Compiled code may break no rule of floating point but these: no fastmath=True."""

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
            return all(constant_text(one) in FASTMATH for one in value.elts)
        return isinstance(value, ast.Constant) and value.value is False


@dataclass(frozen=True)
class LoopOrder:
    """Every element of the result is computed in loops of this order: LoopOrder("kij").

    i runs over the rows of the result, j over its columns, k over the summands, whatever they are called.
    """

    order: str

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


class NoMemory:
    """Nothing is kept from one call to the next: for tasks whose answers are timed."""

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


# --- what nobody can read, or nobody knows ------------------------------------------------------------------


def _odd(program: Program, node: ast.AST, source: str, fine: frozenset[str], why: str) -> str | None:
    """Return a sentence for code at this node that nobody can read, or knows; names in `fine` are none."""
    what = unreadable(program, node)
    if what:
        return f"Your answer uses {what}{at(node, source)}: {UNREADABLE}."
    what = unfamiliar(program, node)
    if what and what.rpartition(".")[2] not in fine:
        return f"Your answer uses {what}{at(node, source)}: {why}."
    return None


def unreadable(program: Program, node: ast.AST) -> str | None:
    """Return what makes code unreadable at this node: eval, getattr with a computed name …"""
    if isinstance(node, ast.Name | ast.Attribute):
        return _unreadable_name(program, node)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _unreadable_import(program, node)
    if isinstance(node, ast.Call):
        return _unreadable_call(program, node)
    if isinstance(node, ast.ClassDef):
        return _unreadable_class(node)
    if isinstance(node, ast.MatchClass):  # case Exception(__traceback__=tb) reads an attribute
        kind = node.cls.id if isinstance(node.cls, ast.Name) else ""
        if node.patterns and (kind not in MATCHED or is_own(program, kind)):
            return "a pattern with unnamed parts"  # __match_args__ says which attributes they are
        return next((name for name in node.kwd_attrs if not _is_known(program, name)), None)
    return None


def _unreadable_name(program: Program, node: ast.Name | ast.Attribute) -> str | None:
    dotted = program.dotted(node)
    last = dotted.rpartition(".")[2]
    if isinstance(node, ast.Name):
        own = program.is_local(node)  # a name of the module's may still be Python's own when it is read
        if last in DODGES and not own:
            return last
        if last in ONLY_CALLED and not own and id(node) not in program.called:
            return f"{last} without calling it"
        return node.id if _is_dunder(node.id) and node.id not in NAMES else None
    if _is_dunder(node.attr) and not isinstance(node.ctx, ast.Load):
        return f"a new {node.attr}"
    if last in DODGES or node.attr in DODGES:
        return last if last in DODGES else node.attr
    if node.attr in ONLY_CALLED and id(node) not in program.called:
        return f"{node.attr} without calling it"
    return node.attr if _is_dunder(node.attr) and node.attr not in NAMES else None


def unfamiliar(program: Program, node: ast.AST) -> str | None:
    """Return the attribute or imported name at this node of which nobody knows what it leads to."""
    if isinstance(node, ast.Attribute) and not _is_known(program, node.attr):
        return _without_root(program.dotted(node))
    if isinstance(node, ast.Import):
        return next(
            (one.name for one in node.names if "." in one.name and one.name not in program.modules), None
        )
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in program.modules:
        if node.module not in program.modules:
            return node.module
        return next(
            (f"{node.module}.{one.name}" for one in node.names if one.name not in program.known), None
        )
    return None


def _is_known(program: Program, name: str) -> bool:
    """Whether an attribute is one of those that may be used, or the answer's own."""
    if name in DODGES:
        return False
    return name in program.known or (name in program.own_attributes and not _is_dunder(name))


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _without_root(dotted: str) -> str:
    return f".{dotted.rpartition('.')[2]}" if dotted.startswith("?") or "." not in dotted else dotted


def _unreadable_import(program: Program, node: ast.Import | ast.ImportFrom) -> str | None:
    for one in bound_by(node):
        if len(program.meanings.get(one, ())) > 1:
            return f"two imports by the name {one}"
    return next((name for name in imported(node) if name.split(".")[0] in DODGE_MODULES), None)


def _unreadable_call(program: Program, node: ast.Call) -> str | None:
    callee = program.dotted(node.func)
    last = callee.rpartition(".")[2]
    if last == "getattr":
        name = constant_text(node.args[1]) if len(node.args) >= 2 else None
        if name is None:
            return "getattr with a name made at run time"
        return None if _is_known(program, name) else name
    if last == "type" and not _is_one(node):
        return "type with three arguments"
    if last in ("njit", "jit"):
        return _unreadable_compiler(program, node)
    return None


def _is_one(node: ast.Call) -> bool:
    return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)


def _unreadable_compiler(program: Program, node: ast.Call) -> str | None:
    """Return what keeps a call of Numba's compiler from being read: it evaluates types given as text."""
    for word in node.keywords:
        if word.arg is not None and word.arg not in COMPILER_SETTINGS:
            return f"{word.arg}= for Numba's compiler"
    given = [*node.args, *(word.value for word in node.keywords if word.arg == "signature_or_function")]
    for one in given:
        if not _is_plain_type(program, one):
            return f"{ast.unparse(one)[:60]} as types for Numba's compiler"
    return None


def _is_plain_type(program: Program, node: ast.expr) -> bool:
    """Whether this is a function of the answer's own, or types that anybody can read."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (
            bool(TYPE_TEXT.fullmatch(node.value))
            and set(re.findall(r"[A-Za-z_]\w*", node.value)) <= TYPE_WORDS
        )
    if isinstance(node, ast.Name):
        if program.defines(node.id):
            return True
        bound = [value for one in program.nodes() for name, value in bindings(one) if name == node.id]
        if bound:
            return not any(root_name(one) == node.id for one in bound) and all(
                _is_plain_type(program, one) for one in bound
            )
        return program.dotted(node).rpartition(".")[2] in TYPE_WORDS
    if isinstance(node, ast.Attribute):
        return node.attr in TYPE_WORDS
    if isinstance(node, ast.List | ast.Tuple):
        return all(_is_plain_type(program, one) for one in node.elts)
    if isinstance(node, ast.Subscript):
        return _is_plain_type(program, node.value)
    if isinstance(node, ast.Call):  # float64(float64, int64)
        return all(_is_plain_type(program, one) for one in (node.func, *node.args)) and not node.keywords
    return (isinstance(node, ast.Constant) and node.value is None) or isinstance(node, ast.Lambda)


def _unreadable_class(node: ast.ClassDef) -> str | None:
    if node.keywords:
        return "a class with a metaclass"
    for one in node.body:
        name = getattr(one, "name", "")
        if _is_dunder(name) and name not in OPERATORS:
            return name
    return None
