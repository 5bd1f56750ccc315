"""The Python that the checker of interleavings reads: its syntax tree becomes instructions of a small
machine.

Nothing of the text is ever run by Python. What is not in the language is refused with one sentence that
names the line: assignments, arithmetic, comparisons, if / while / for, `with lock`, try / finally, return,
calls of the text's own functions and of a few harmless ones, lock.acquire() and lock.release().
"""

from __future__ import annotations

import ast
from typing import Any

from course_lib.simulators.interleaving_expressions import (
    BINARY,
    Code,
    Expressions,
    Known,
    NotUnderstood,
    index_of,
)

LONGEST_TEXT = 40_000  # characters


def parse(text: str) -> ast.Module:
    """Return the tree of a text; NotUnderstood for one that is too long, too deep or not Python."""
    if len(text) > LONGEST_TEXT:
        raise NotUnderstood(f"The text has {len(text)} characters; at most {LONGEST_TEXT} are read.")
    try:
        return ast.parse(text)
    except SyntaxError as problem:
        raise NotUnderstood(f"Line {problem.lineno} is not Python: {problem.msg}.") from None
    except (ValueError, RecursionError, MemoryError):
        raise NotUnderstood("The text cannot be read: it is nested too deeply or holds null bytes.") from None


def compile_function(node: ast.FunctionDef, known: Known) -> Code:
    """Return the instructions of one function."""
    try:
        return _Compiler(node, known).code
    except RecursionError:
        raise NotUnderstood(f"{node.name} is nested too deeply to be read.") from None


class _Compiler(Expressions):
    """Writes the instructions of one function; `blocks` are the loops, withs and finallys around a place."""

    def __init__(self, node: ast.FunctionDef, known: Known) -> None:
        self.known = known
        self.depth = 0
        self.blocks: list[tuple] = []
        self.line = node.lineno
        if node.decorator_list:
            self._refuse(node, "a decorator", "leave it out")
        parameters = self._parameters(node.args)
        self.globals = {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
        assigned = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and _is_store(one)]
        local = dict.fromkeys([*parameters, *(name for name in assigned if name not in self.globals)])
        defaults = tuple(self._constant(one) for one in node.args.defaults)
        self.code = Code(node.name, parameters, defaults, list(local))
        self._count_variables()
        for name in self.globals & {*assigned}:
            self._check_global(node, name)
        self._block(node.body)
        self._emit("CONST", None)
        self._emit("RETURN")

    def _parameters(self, arguments: ast.arguments) -> tuple[str, ...]:
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            self._refuse(None, "a parameter with a star", "name every parameter")
        return tuple(one.arg for one in [*arguments.posonlyargs, *arguments.args])

    def _constant(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
            return node.value
        return self._refuse(node, "a default value that is no plain constant", "pass it as an argument")

    def _check_global(self, node: ast.AST, name: str) -> None:
        if name in self.known.references:
            self._refuse(
                node, f"`global {name}`", f"{name} is a shared list, dict or lock: change what is inside it"
            )
        if name not in self.known.cells:
            self._refuse(node, f"`global {name}`", f"{name} is not among the shared variables")

    # -- statements -----------------------------------------------------------------------------------------

    def _block(self, statements: list[ast.stmt]) -> None:
        self._deeper(statements[0])
        line = self.line
        for statement in statements:
            self.line = statement.lineno
            method = getattr(self, f"_on_{type(statement).__name__}", None)
            if method is None:
                name = type(statement).__name__.replace("Def", "").lower()
                self._refuse(statement, f"a statement of the kind `{name}`", "write it with simpler ones")
            method(statement)
        self.depth -= 1
        self.line = line

    def _on_Pass(self, node: ast.Pass) -> None:
        pass

    def _on_Global(self, node: ast.Global) -> None:
        pass  # noted before the first statement

    def _on_Import(self, node: ast.Import) -> None:
        for one in node.names:
            if one.name not in ("threading", "time"):
                self._refuse(node, f"import {one.name}", "only threading and time mean something here")

    def _on_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module not in ("threading", "time"):
            self._refuse(node, f"from {node.module} import …", "only threading and time mean something here")

    def _on_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):  # a docstring
            return
        self._value(node.value)
        self._emit("POP")

    def _on_Assign(self, node: ast.Assign) -> None:
        self._value(node.value)
        for number, target in enumerate(node.targets, start=1):
            if number < len(node.targets):
                self._emit("DUP")
            self._store(target)

    def _on_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._value(node.value)
            self._store(node.target)

    def _on_AugAssign(self, node: ast.AugAssign) -> None:
        operator = BINARY.get(type(node.op)) or self._refuse(node, "this operator", "use + - * / // %")
        if isinstance(node.target, ast.Subscript):
            self._value(node.target.value)
            self._value(index_of(node.target, self))
            self._emit("DUP2")
            self._emit("INDEX")
            self._value(node.value)
            self._emit("BINARY", operator)
            self._emit("ROT3")
            self._emit("STORE_INDEX", self._root(node.target))
            return
        if not isinstance(node.target, ast.Name):
            self._refuse(node, "an assignment to an attribute", "use lists, dicts and plain variables")
        self._load(node.target)
        self._value(node.value)
        self._emit("BINARY", operator)
        self._store(node.target)

    def _store(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if target.id in self.globals:
                self._emit("WRITE_CELL", self.known.cells[target.id])
            else:
                self._emit("STORE", self.code.slots.index(target.id))
        elif isinstance(target, ast.Subscript):
            self._value(target.value)
            self._value(index_of(target, self))
            self._emit("STORE_INDEX", self._root(target))
        elif isinstance(target, ast.Tuple | ast.List):
            if any(isinstance(one, ast.Starred) for one in target.elts):
                self._refuse(target, "a star in an assignment", "name each part")
            self._emit("UNPACK", len(target.elts))
            for one in target.elts:
                self._store(one)
        else:
            self._refuse(target, "an assignment to an attribute", "use lists, dicts and plain variables")

    def _root(self, node: ast.Subscript) -> str | None:
        """Return the shared name that a subscript begins with; None if it may be any."""
        here: ast.expr = node
        while isinstance(here, ast.Subscript):
            here = here.value
        if isinstance(here, ast.Name) and here.id not in self.code.slots and here.id in self.known.references:
            return here.id
        return None

    def _on_If(self, node: ast.If) -> None:
        self._value(node.test)
        otherwise = self._emit("JUMP_IF_FALSE")
        self._block(node.body)
        if node.orelse:
            end = self._emit("JUMP")
            self._land(otherwise)
            self._block(node.orelse)
            self._land(end)
        else:
            self._land(otherwise)

    def _on_While(self, node: ast.While) -> None:
        start = self._here()
        self._value(node.test)
        end = self._emit("JUMP_IF_FALSE")
        self._loop(node, start, None, [end])

    def _on_For(self, node: ast.For) -> None:
        self._value(node.iter)
        slot = self._hidden()
        self._emit("ITERATE")
        self._emit("STORE", slot)
        start = self._here()
        end = self._emit("FOR", slot)
        self._store(node.target)
        self._loop(node, start, slot, [end])

    def _loop(self, node: ast.For | ast.While, start: int, slot: int | None, ends: list[int]) -> None:
        breaks: list[int] = []
        self.blocks.append(("loop", start, breaks))
        self._block(node.body)
        self.blocks.pop()
        self.line = node.lineno
        self._emit("JUMP", start)
        self._land(*ends)
        if node.orelse:
            self._block(node.orelse)
        self._land(*breaks)
        if slot is not None:
            self._emit("CLEAR", slot)

    def _on_Break(self, node: ast.Break) -> None:
        self._leave_loop(node)[2].append(self._emit("JUMP"))

    def _on_Continue(self, node: ast.Continue) -> None:
        self._emit("JUMP", self._leave_loop(node)[1])

    def _leave_loop(self, node: ast.stmt) -> tuple:
        block = self._leave_blocks(until="loop")
        return block or self._refuse(node, "break or continue outside a loop", "take it away")

    def _on_Return(self, node: ast.Return) -> None:
        if node.value is None:
            self._emit("CONST", None)
        else:
            self._value(node.value)
        self._leave_blocks(until=None)
        self.line = node.lineno
        self._emit("RETURN")

    def _leave_blocks(self, until: str | None) -> tuple:
        """Write what the withs and finallys around this place do when control leaves them."""
        blocks = self.blocks
        for place in range(len(blocks) - 1, -1, -1):
            kind, *rest = blocks[place]
            if kind == until:
                self.blocks = blocks
                return blocks[place]
            self.blocks = blocks[:place]
            if kind == "with":
                self._emit("LOAD", rest[0])
                self._emit("RELEASE")
            elif kind == "finally":
                self._block(rest[0])
        self.blocks = blocks
        return ()

    def _on_With(self, node: ast.With) -> None:
        slots = []
        for item in node.items:
            if item.optional_vars is not None:
                self._refuse(node, "`with … as`", "write `with lock:`")
            self._value(item.context_expr)
            slot = self._hidden()
            self._emit("DUP")
            self._emit("STORE", slot)
            self._emit("ACQUIRE", "with")
            self._emit("POP")
            slots.append(slot)
            self.blocks.append(("with", slot))
        self._block(node.body)
        self.line = node.lineno
        for slot in reversed(slots):
            self.blocks.pop()
            self._emit("LOAD", slot)
            self._emit("CLEAR", slot)
            self._emit("RELEASE")

    def _on_Try(self, node: ast.Try) -> None:
        if node.handlers or node.orelse:
            self._refuse(node, "except", "try … finally is read, exceptions end the check")
        self.blocks.append(("finally", node.finalbody))
        self._block(node.body)
        self.blocks.pop()
        self._block(node.finalbody)

    def _on_Assert(self, node: ast.Assert) -> None:
        self._value(node.test)
        self._emit("ASSERT", ast.unparse(node.test))


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
