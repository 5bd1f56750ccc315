"""The Python that the checker of interleavings understands; the rest is refused, with its line.

In it are: assignments, arithmetic, comparisons, if / while / for, comprehensions, `with lock`, try / finally,
return, calls of the text's own functions and of a few harmless ones, lock.acquire() and lock.release(),
append() to lists. Nothing of a text is ever run by Python: `running.py` goes through the syntax tree.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from course_lib.simulators.interleavings.shared import Heap, Plain
from course_lib.simulators.interleavings.values import COMPUTE, GATHERS


class Kept(ast.stmt):
    """What the loop of a comprehension does with an element, for the call `by`."""

    _fields = ("value",)


LONGEST_TEXT = 40_000  # characters
DEEPEST = 40  # expressions and blocks in each other
MOST_VARIABLES = 60  # in one function
LOCK_METHODS = ("acquire", "release", "locked")
MODULES = ("threading", "time")
#: Statements and expressions in the language that need no look of their own: their parts are looked at.
PLAIN_PARTS = (
    *(ast.Assign, ast.If, ast.Pass, ast.Global, Kept),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.NamedExpr, ast.Set, ast.Slice),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
COMPREHENSIONS = (ast.SetComp, ast.DictComp, ast.GeneratorExp)
KINDS = {"Lambda": "a lambda", "GeneratorExp": "a generator outside of next, any, all, sum and the like"}
KEYWORDS = {"sorted": "reverse", "min": "default", "max": "default"}  # of calls that only compute
#: Variables of a comprehension: the element if it names none, what was taken, the call's other arguments.
HIDDEN = (ELEMENT, TAKEN, REST) = (".element", ".taken", ".rest")


class NotUnderstood(ValueError):
    """The text is not in the checker's language; the message says what, where, and what to write instead."""


@dataclass(frozen=True)
class Function:
    """A function of the text that is in the language; `variables` are its parameters and local names."""

    name: str
    node: ast.FunctionDef
    parameters: tuple[str, ...]
    defaults: tuple[Any, ...]  # of the last parameters
    variables: tuple[str, ...]


@dataclass
class TextScope:
    """What names mean outside the functions; `written` are the cells that some function may write."""

    heap: Heap
    constants: Mapping[str, Any]
    functions: dict[str, Function | None]  # None: not read yet
    written: set[int] = field(default_factory=set)
    #: For each comprehension, and each call that takes elements: its loop, and the names it has for itself.
    loops: dict[ast.expr, tuple[ast.For, tuple[str, ...]]] = field(default_factory=dict)


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


def understand(
    definitions: Mapping[str, ast.FunctionDef], heap: Heap, constants: Mapping[str, Any]
) -> TextScope:
    """Return the scope of the functions; raises NotUnderstood if one of them is not in the language."""
    scope = TextScope(heap, constants, dict.fromkeys(definitions))
    for name, node in definitions.items():
        try:
            scope.functions[name] = _Reader(node, scope).function
        except RecursionError:
            raise NotUnderstood(f"{name} is nested too deeply to be read.") from None
    scope.written -= heap.references()
    return scope


def walked(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return how a for loop goes through a list, "reversed", "enumerate" or "", and the parts to work out."""
    name = getattr(node.func, "id", "") if isinstance(node, ast.Call) and node.args else ""
    return (name, node.args) if name in ("reversed", "enumerate") else ("", [node])


def as_loop(node: ast.ListComp | ast.GeneratorExp, by: str) -> ast.For:
    """Return a comprehension as the loop that it is."""
    body: list = [Kept(node.elt, by=by)]
    for one in reversed(node.generators):
        for test in reversed(one.ifs):
            body = [ast.If(test, body, [])]
        body = [ast.For(one.target, one.iter, body, [])]
    return ast.fix_missing_locations(ast.copy_location(body[0], node))


def waits(call: ast.Call) -> bool | None:
    """Whether acquire() waits as long as it must; None for what is no constant, or nothing for Python.

    None for each timeout below 0, too: -1, and what Python rounds to it, is "no limit" for a lock, but "not
    at all" for a semaphore.
    """
    try:
        given = [ast.literal_eval(one) for one in call.args]
        named = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        threading.Lock().acquire(*given, **named)  # a free one: Python says whether it takes them
    except (TypeError, ValueError, OverflowError):
        return None
    if any(timeout < 0 for timeout in (*given[1:], named.get("timeout", 0))):
        return None
    return len(given) < 2 and "timeout" not in named and all((*given, *named.values()))


class _Reader:
    """Reads one function: `_part` goes through the tree, `_on_…` look at what needs more than that."""

    def __init__(self, node: ast.FunctionDef, scope: TextScope) -> None:
        self.scope = scope
        self.names = scope.heap.names
        self.depth = 0
        self.loops = 0  # around the present statement
        self.around_finally: int | None = None  # so many of these loops are around the innermost `finally`
        self.line = node.lineno
        if node.decorator_list:
            self._refuse(node, "a decorator", "leave it out")
        if node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.posonlyargs:
            self._refuse(None, "a parameter with a star or a slash", "name every parameter")
        parameters = tuple(argument.arg for argument in node.args.args)
        inside = list(ast.walk(node))
        declared = {name for part in inside if isinstance(part, ast.Global) for name in part.names}
        assigned = [
            part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        ]
        variables = dict.fromkeys([*parameters, *(name for name in assigned if name not in declared)])
        defaults = tuple(self._default(default) for default in node.args.defaults)
        self.function = Function(node.name, node, parameters, defaults, (*variables, *HIDDEN))
        loops_and_locks = sum(isinstance(part, ast.For | ast.withitem | ast.comprehension) for part in inside)
        if len(variables) + loops_and_locks > MOST_VARIABLES:
            raise NotUnderstood(f"{node.name} has more than {MOST_VARIABLES} variables, loops and withs.")
        for name in declared & {*assigned}:
            self._check_global(node, name)
        self._parts(node.body)

    def _default(self, node: ast.expr) -> Any:
        try:
            value = ast.literal_eval(node)  # -1 is a minus and a constant
        except (TypeError, ValueError):
            value = ()
        if isinstance(value, Plain):
            return value
        return self._refuse(node, "a default value that is no plain constant", "pass it as an argument")

    def _check_global(self, node: ast.AST, name: str) -> None:
        if name not in self.names:
            self._refuse(node, f"`global {name}`", f"{name} is not among the shared variables")
        if not isinstance(self.names[name], int):
            self._refuse(
                node, f"`global {name}`", f"{name} is a shared list, dict or lock: change what is inside it"
            )

    def _refuse(self, node: ast.AST | None, what: str, instead: str) -> Any:
        line = getattr(node, "lineno", self.line)
        raise NotUnderstood(f"Line {line} has {what}, which the checker does not read: {instead}.")

    def _parts(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._part(node)

    def _part(self, node: ast.AST) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(node, "too many things nested in each other", "take it apart")
        if isinstance(node, ast.stmt):
            self.line = node.lineno
        look = getattr(self, f"_on_{type(node).__name__}", None)
        if look is not None:
            look(node)
        elif isinstance(node, PLAIN_PARTS):
            self._parts(ast.iter_child_nodes(node))
        else:
            instead = "write a for loop" if isinstance(node, COMPREHENSIONS) else "write it with simpler ones"
            outside = "write it outside, and hand over what it needs"
            inner = isinstance(node, ast.FunctionDef)
            self._refuse(node, _what_it_is(node), outside if inner else instead)
        self.depth -= 1

    # -- statements -----------------------------------------------------------------------------------------

    def _on_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        imported = {one.name for one in node.names}
        modules = {node.module} if isinstance(node, ast.ImportFrom) else imported
        others = {*self.function.variables, *self.names, *self.scope.constants, *self.scope.functions}
        if modules - {*MODULES} or imported & {*others, *COMPUTE} or any(one.asname for one in node.names):
            self._refuse(node, ast.unparse(node), "only threading and time mean something here")

    _on_ImportFrom = _on_Import

    def _on_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring
            self._part(node.value)

    def _on_Assert(self, node: ast.Assert) -> None:
        self._part(node.test)

    def _on_Raise(self, node: ast.Raise) -> None:
        """Whatever is raised ends the check."""

    def _on_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self._refuse(node, "an annotation of an element", "leave it out")
        if node.value is not None:
            self._parts([node.value, node.target])

    def _on_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._known(node.target)
        self._parts([node.op, node.target, node.value])

    def _on_While(self, node: ast.While) -> None:
        self._part(node.test)
        self._loop(node)

    def _on_For(self, node: ast.For) -> None:
        way, parts = walked(node.iter)
        is_other = way in self.scope.functions or self._is_variable(way)
        if way and (is_other or node.iter.keywords or len(parts) > 1):
            self._refuse(node, f"another call of {way} than Python's", f"write {way}(a list)")
        self._parts([*parts, node.target])
        self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> None:
        self.loops += 1
        self._parts(node.body)
        self.loops -= 1
        self._parts(node.orelse)

    def _on_Break(self, node: ast.Break | ast.Continue) -> None:
        if not self.loops:
            self._refuse(node, "break or continue outside a loop", "take it away")
        if self.loops == self.around_finally:
            self._leaves_finally(node)

    _on_Continue = _on_Break

    def _on_Return(self, node: ast.Return) -> None:
        if self.around_finally is not None:
            self._leaves_finally(node)
        self._parts(ast.iter_child_nodes(node))

    def _leaves_finally(self, node: ast.stmt) -> None:
        what = f"a {type(node).__name__.lower()} that leaves `finally`"
        self._refuse(node, what, "an exception would be lost there, so write it after the try")

    def _on_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._refuse(node, "`with … as`", "write `with lock:`")
            self._part(item.context_expr)
        self._parts(node.body)

    def _on_Try(self, node: ast.Try) -> None:
        if node.handlers or node.orelse:
            self._refuse(node, "except", "try … finally is read, exceptions end the check")
        self._parts(node.body)
        before, self.around_finally = self.around_finally, self.loops
        self._parts(node.finalbody)
        self.around_finally = before

    # -- expressions ----------------------------------------------------------------------------------------

    def _on_MatMult(self, node: ast.operator) -> None:
        self._refuse(node, "this operator", "use + - * / // %")

    def _on_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, Plain):
            self._refuse(node, f"the constant {node.value!r}", "use numbers, texts, True, False, None")
        if isinstance(node.value, str) and not printable(node.value):
            self._refuse(node, f"the text {node.value!r}", "no such letter can be printed")

    def _on_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._known(node)
        elif node.id not in self.function.variables:  # declared global
            self.scope.written.add(self.names[node.id])

    def _known(self, node: ast.Name) -> None:
        name = node.id
        if self._is_variable(name):
            return
        if name in self.scope.functions or name in COMPUTE:
            self._refuse(node, f"the function {name} without a call", f"call it: {name}(…)")
        self._refuse(
            node, f"the name {name}", "it is neither given a value here nor among the shared variables"
        )

    def _is_variable(self, name: str) -> bool:
        return name in self.function.variables or name in self.names or name in self.scope.constants

    def _on_Tuple(self, node: ast.Tuple | ast.List) -> None:
        for element in node.elts:
            if isinstance(element, ast.Starred):
                is_target = isinstance(node.ctx, ast.Store)
                self._refuse(element, "a star in an assignment" if is_target else "a star", "name each part")
            self._part(element)

    _on_List = _on_Tuple

    def _on_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store):
            self._refuse(node, "an assignment to an attribute", "use lists, dicts and plain variables")
        self._refuse(node, f"the attribute .{node.attr}", "write it with simpler ones")

    def _on_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Tuple if isinstance(node.ctx, ast.Load) else ast.Slice | ast.Tuple):
            self._refuse(node, "a slice that is written, or several indices", "take one element at a time")
        self._parts([node.value, node.slice])
        if isinstance(node.ctx, ast.Store):
            self._note_written(node)

    def _on_ListComp(self, node: ast.ListComp) -> None:
        self._taking(node, node)

    def _taking(self, node: ast.expr, source: ast.expr, by: str = "") -> None:
        """Read a comprehension, or the elements of a source that a call `by` takes, as a loop."""
        if by and not isinstance(source, ast.GeneratorExp):
            each = ast.comprehension(ast.Name(ELEMENT, ast.Store()), source, [], 0)
            source = ast.copy_location(ast.GeneratorExp(ast.Name(ELEMENT, ast.Load()), [each]), source)
        elif any(isinstance(part, ast.NamedExpr) for part in ast.walk(source)):
            self._refuse(node, "a comprehension with :=", "write a for loop")
        names = [part for one in source.generators for part in ast.walk(one.target)]
        own = [part.id for part in names if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
        if not {*self.function.variables}.issuperset(own):
            self._refuse(node, "a comprehension over a name declared global", "choose another name")
        self.scope.loops[node] = loop, _ = as_loop(source, by), (*own, *HIDDEN)
        self._part(loop)

    def _note_written(self, target: ast.Subscript) -> None:
        """Note the cells that an assignment to an element can reach, from the shared name it begins with."""
        root: ast.expr = target
        while isinstance(root, ast.Subscript):
            root = root.value
        is_shared = isinstance(root, ast.Name) and root.id not in self.function.variables
        if is_shared and not isinstance(self.names.get(root.id), int | None):
            self.scope.written |= self.scope.heap.reachable(root.id)
        else:
            self.scope.written.update(range(len(self.scope.heap.cells)))

    def _on_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._refuse(node, "an f-string that is not printed", "compare and keep plain values")

    def _printed(self, node: ast.expr) -> None:
        if isinstance(node, ast.JoinedStr):  # what its text would be is nobody's business, but it may fail
            for part in node.values:
                if isinstance(part, ast.FormattedValue) and format_of(part) is None:
                    self._refuse(node, "a format that is worked out, or very wide", "leave it out")
                self._part(part.value if isinstance(part, ast.FormattedValue) else part)
        else:
            self._part(node)

    def _on_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self._method(node, node.func)
            return
        if not isinstance(node.func, ast.Name):
            self._refuse(node, "a call of something that is no name", "call functions by their names")
        name = node.func.id
        is_own = name in self.scope.functions
        has_star = any(isinstance(argument, ast.Starred) for argument in node.args)
        spaced = name == "print" and all(map(_spaces, node.keywords))
        named = all(one.arg and (is_own or one.arg == KEYWORDS.get(name)) for one in node.keywords)
        if has_star or not (named or spaced):
            self._refuse(node, "a call with these keywords or a star", "pass the arguments by position")
        if self._is_variable(name) and (name in self.function.variables or not is_own):
            self._refuse(node, f"a call of the variable {name}", "call functions by their names")
        if name not in {"print", *COMPUTE, *self.scope.functions}:
            lazy = name in ("reversed", "enumerate")
            others = f"known are {', '.join(sorted(COMPUTE))}, print and time.sleep"
            known = "write list(…) around it" if lazy else others
            self._refuse(node, f"a call of {name}", known)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        takes = len(node.args) == 1 or (node.args and name in ("next", "sum"))
        if takes and name in GATHERS and not is_own:
            if name == "next" and not isinstance(arguments[0], ast.GeneratorExp):
                self._refuse(node, "next() of another thing than a generator", "write next(… for …)")
            self._taking(node, arguments.pop(0), name)
            calls = any(isinstance(part, ast.Call) for one in arguments for part in ast.walk(one))
            if calls and walked(self.scope.loops[node][0].iter)[0] == "reversed":  # it may change the list
                self._refuse(node, f"a call within {name}(… reversed(…) …)", "give its value a name first")
        for argument in arguments:
            (self._printed if name == "print" and not is_own else self._part)(argument)

    def _method(self, node: ast.Call, called: ast.Attribute) -> None:
        if is_sleep(called):
            if len(node.args) != 1 or node.keywords:
                self._refuse(node, "another time.sleep() than Python's", "give it the seconds")
            self._parts(node.args)
            return
        if called.attr in ("append", "index"):
            if len(node.args) != 1 or node.keywords or walked(called.value)[0]:
                self._refuse(node, f"another {called.attr}() than that of lists", "give a list one value")
            if called.attr == "index":
                self._taking(node, called.value, "index")
            self._parts([called.value, *node.args] if called.attr == "append" else node.args)
            return
        if called.attr not in LOCK_METHODS:
            known = "of methods it knows acquire, release, locked, append and index"
            self._refuse(node, f".{called.attr}", known)
        self._part(called.value)
        if called.attr != "acquire" and (node.args or node.keywords):
            self._refuse(node, f"arguments of {called.attr}()", "leave them out")
        if waits(node) is None:
            self._refuse(
                node,
                "an acquire() whose arguments are no constants, or a timeout below 0",
                "use blocking or timeout",
            )


def is_sleep(called: ast.Attribute) -> bool:
    """Whether this is time.sleep, which means nothing: any thread may be late at any place."""
    return isinstance(called.value, ast.Name) and (called.value.id, called.attr) == ("time", "sleep")


def printable(text: str) -> bool:
    """Whether print takes a text: half of a pair of surrogates it does not."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def format_of(part: ast.FormattedValue) -> str | None:
    """Return what follows the colon in {…:…}; None if it is worked out, or asks for 1000 letters or more."""
    parts = part.format_spec.values if part.format_spec else []
    if not all(isinstance(one, ast.Constant) for one in parts):
        return None
    text = "".join(one.value for one in parts)
    return None if re.search(r"\d{4}", text) else text


def _spaces(keyword: ast.keyword) -> bool:
    """Whether this is a sep, an end or a flush that print takes: they change nothing here."""
    if not isinstance(keyword.value, ast.Constant):
        return False
    spaces = keyword.arg in ("sep", "end") and isinstance(keyword.value.value, str | None)
    return spaces or (keyword.arg == "flush" and isinstance(keyword.value.value, bool))


def _what_it_is(node: ast.AST) -> str:
    kind = type(node).__name__
    if isinstance(node, ast.FunctionDef):
        return "a function inside another"
    if isinstance(node, ast.stmt):
        return f"a statement of the kind `{kind.replace('Def', '').lower()}`"
    return KINDS.get(kind, f"an expression of the kind `{kind}`")
