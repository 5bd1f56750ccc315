"""Expressions of the checked threads: instructions that leave a value on the stack."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

DEEPEST = 40  # expressions and blocks in each other
MOST_INSTRUCTIONS = 5_000
MOST_VARIABLES = 60  # in one function

BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARED = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not", ast.Invert: "~"}
#: Functions that only compute; "gathers" read every element of a shared list, one after the other.
FUNCTIONS = frozenset(["len", "range", "abs", "int", "float", "bool", "divmod", "round"])
GATHERS = frozenset(["min", "max", "sum", "sorted", "tuple", "list", "any", "all", "reversed", "enumerate"])
LOCK_METHODS = frozenset(["acquire", "release", "locked"])


class NotUnderstood(ValueError):
    """The text is not in the checker's language; the message says what, where, and what to write instead."""


@dataclass
class Code:
    """One function as instructions (operation, argument, line)."""

    name: str
    parameters: tuple[str, ...]
    defaults: tuple[Any, ...]  # of the last parameters
    slots: list[str]  # names of local variables; hidden ones begin with "."
    instructions: list[tuple[str, Any, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Known:
    """What names mean outside the function."""

    references: Mapping[str, Any]  # shared containers and locks: a reference that never changes
    cells: Mapping[str, int]  # shared plain values: the number of their cell
    constants: Mapping[str, Any]
    functions: Iterable[str]


class Expressions:
    """Writes instructions for expressions; statements are added by a subclass, which sets these up."""

    code: Code
    known: Known
    globals: set[str]
    depth: int
    line: int

    # -- writing --------------------------------------------------------------------------------------------

    def _emit(self, operation: str, argument: Any = None) -> int:
        if len(self.code.instructions) >= MOST_INSTRUCTIONS:
            raise NotUnderstood(f"{self.code.name} is too long: shorten it to what the threads need.")
        self.code.instructions.append((operation, argument, self.line))
        return len(self.code.instructions) - 1

    def _here(self) -> int:
        return len(self.code.instructions)

    def _count_variables(self) -> None:
        if len(self.code.slots) >= MOST_VARIABLES:
            raise NotUnderstood(
                f"{self.code.name} has more than {MOST_VARIABLES} variables, loops and withs."
            )

    def _land(self, *jumps: int) -> None:
        """Let jumps written earlier lead here."""
        for place in jumps:
            operation, argument, line = self.code.instructions[place]
            target = (argument, self._here()) if operation == "FOR" else self._here()
            self.code.instructions[place] = (operation, target, line)

    def _hidden(self) -> int:
        self._count_variables()
        self.code.slots.append(f".{len(self.code.slots)}")
        return len(self.code.slots) - 1

    def _refuse(self, node: ast.AST | None, what: str, instead: str) -> Any:
        line = getattr(node, "lineno", self.line)
        raise NotUnderstood(f"Line {line} has {what}, which the checker does not read: {instead}.")

    def _deeper(self, node: ast.AST) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(node, "too many things nested in each other", "take it apart")

    # -- expressions ----------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> None:
        """Write what leaves the value of an expression on the stack."""
        self._deeper(node)
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            self._refuse(node, _name_of(node), "write it with simpler ones")
        method(node)
        self.depth -= 1

    def _of_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, int | float | str | None):
            self._refuse(node, f"the constant {node.value!r}", "use numbers, texts, True, False, None")
        self._emit("CHECKED", node.value)

    def _of_Name(self, node: ast.Name) -> None:
        self._load(node)

    def _load(self, node: ast.Name) -> None:
        name = node.id
        if name in self.code.slots and name not in self.globals:
            self._emit("LOAD", self.code.slots.index(name))
        elif name in self.known.references:
            self._emit("CONST", self.known.references[name])
        elif name in self.known.cells:
            self._emit("READ_CELL", self.known.cells[name])
        elif name in self.known.constants:
            self._emit("CHECKED", self.known.constants[name])
        elif name in self.known.functions or name in FUNCTIONS | GATHERS:
            self._refuse(node, f"the function {name} without a call", f"call it: {name}(…)")
        else:
            self._refuse(
                node, f"the name {name}", "it is neither given a value here nor among the shared variables"
            )

    def _of_BinOp(self, node: ast.BinOp) -> None:
        operator = BINARY.get(type(node.op)) or self._refuse(node, "this operator", "use + - * / // %")
        self._value(node.left)
        self._value(node.right)
        self._emit("BINARY", operator)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._value(node.operand)
        self._emit("UNARY", UNARY[type(node.op)])

    def _of_BoolOp(self, node: ast.BoolOp) -> None:
        jump = "JUMP_IF_FALSE_KEEP" if isinstance(node.op, ast.And) else "JUMP_IF_TRUE_KEEP"
        jumps = []
        for number, one in enumerate(node.values, start=1):
            self._value(one)
            if number < len(node.values):
                jumps.append(self._emit(jump))
        self._land(*jumps)

    def _of_Compare(self, node: ast.Compare) -> None:
        self._value(node.left)
        jumps = []
        for number, (kind, right) in enumerate(zip(node.ops, node.comparators, strict=True), start=1):
            self._value(right)
            if number < len(node.ops):
                self._emit("SWAP_UNDER")  # keep the right side for the next comparison
            self._emit("COMPARE", COMPARED[type(kind)])
            if number < len(node.ops):
                jumps.append(self._emit("JUMP_IF_FALSE_POP_UNDER"))
        self._land(*jumps)

    def _of_IfExp(self, node: ast.IfExp) -> None:
        self._value(node.test)
        otherwise = self._emit("JUMP_IF_FALSE")
        self._value(node.body)
        end = self._emit("JUMP")
        self._land(otherwise)
        self._value(node.orelse)
        self._land(end)

    def _of_Tuple(self, node: ast.Tuple | ast.List) -> None:
        for one in node.elts:
            if isinstance(one, ast.Starred):
                self._refuse(one, "a star", "name each part")
            self._value(one)
        self._emit("TUPLE", len(node.elts))

    _of_List = _of_Tuple  # local lists are values that nobody changes

    def _of_Subscript(self, node: ast.Subscript) -> None:
        self._value(node.value)
        self._value(index_of(node, self))
        self._emit("INDEX")

    def _of_JoinedStr(self, node: ast.JoinedStr) -> None:
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                self._value(one.value)
                self._emit("POP")
        self._emit("CONST", "")

    def _of_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self._method(node, node.func)
            return
        if not isinstance(node.func, ast.Name):
            self._refuse(node, "a call of something that is no name", "call functions by their names")
        name = node.func.id
        if name == "print":
            node = ast.Call(node.func, node.args, [])  # sep and end change nothing here
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            self._refuse(node, "a call with keywords or a star", "pass the arguments by position")
        if name in self.code.slots:
            self._refuse(node, f"a call of the variable {name}", "call functions by their names")
        if name not in {"print", "sleep", *FUNCTIONS, *GATHERS, *self.known.functions}:
            self._refuse(node, f"a call of {name}", f"known are {', '.join(sorted(FUNCTIONS | GATHERS))}")
        for one in node.args:
            self._value(one)
            if name in GATHERS and name not in self.known.functions:
                self._emit("GATHER")
        if name in self.known.functions:
            self._emit("CALL", (name, len(node.args)))
        elif name in ("print", "sleep"):
            self._emit("DISCARD", len(node.args))
        else:
            self._emit("COMPUTE", (name, len(node.args)))

    def _method(self, node: ast.Call, called: ast.Attribute) -> None:
        if isinstance(called.value, ast.Name) and (called.value.id, called.attr) == ("time", "sleep"):
            self._emit("CONST", None)  # any thread may be late at any place: that is checked anyway
            return
        if called.attr not in LOCK_METHODS:
            self._refuse(node, f".{called.attr}", "of methods it knows acquire, release and locked")
        self._value(called.value)
        if called.attr != "acquire":
            if node.args or node.keywords:
                self._refuse(node, f"arguments of {called.attr}()", "leave them out")
            self._emit("RELEASE" if called.attr == "release" else "LOCKED")
            if called.attr == "release":
                self._emit("CONST", None)
            return
        self._emit("ACQUIRE", "wait" if self._waits(node) else "try")

    def _waits(self, node: ast.Call) -> bool:
        """Whether acquire() waits as long as it must; with a timeout it may give up at any moment."""
        given = dict(zip(("blocking", "timeout"), node.args, strict=False))
        given.update({one.arg or "": one.value for one in node.keywords})
        for name, value in given.items():
            if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
                value = value.operand  # timeout=-1 is "no limit"
                if isinstance(value, ast.Constant) and value.value == 1:
                    continue
            if name not in ("blocking", "timeout") or not isinstance(value, ast.Constant):
                self._refuse(node, "an acquire() whose arguments are no constants", "use blocking or timeout")
            if name == "timeout" or not value.value:
                return False
        return True


def index_of(node: ast.Subscript, compiler: Expressions) -> ast.expr:
    if isinstance(node.slice, ast.Slice | ast.Tuple):
        compiler._refuse(node, "a slice or several indices", "take one element at a time")
    return node.slice


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"the attribute .{node.attr}"
    names = {"Lambda": "a lambda", "ListComp": "a comprehension", "GeneratorExp": "a comprehension"}
    return names.get(type(node).__name__, f"an expression of the kind `{type(node).__name__}`")
