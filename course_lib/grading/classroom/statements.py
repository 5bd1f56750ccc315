"""What one top-level statement reads, binds and changes – found in its bytecode and syntax; nothing is run.

Names come from the bytecode, so that a local variable is never taken for a global one. What a statement
changes in place comes from the syntax: stores, methods that change things, calls that are made for an effect.
"""

from __future__ import annotations
import __future__

import ast
import dis
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from inspect import CO_OPTIMIZED
from types import CodeType

from course_lib.grading.program import root_name
from course_lib.grading.vocabulary import words

#: Methods that change the thing they belong to.
CHANGING = words("""
    append appendleft extend extendleft insert add update setdefault pop popleft popitem clear remove discard
    reverse sort fill put resize itemset partition setfield register rotate subtract
    __setitem__ __delitem__ __setattr__ difference_update intersection_update symmetric_difference_update
""")
#: Methods that only read or show, though nothing is done with what they return.
READING = words("""
    copy count index keys values items get mean sum min max std var any all tolist astype reshape format join
    split strip startswith endswith lower upper head tail describe info plot show dot item table figure
""")
#: Library functions that change their first argument.
CHANGES_FIRST = words("""
    shuffle fill_diagonal heapify heappush heappop insort insort_left insort_right copyto put place putmask
    setitem delitem setattr delattr next
""")
#: Functions and methods whose result is, or holds, what it was made from.
SAME_THING = words("""
    enumerate zip reversed iter list tuple dict items values get setdefault reshape view ravel transpose
    asarray memoryview
""")
READS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_NAME", "DELETE_GLOBAL"}
BINDS = {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL"}
SIMPLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
UNEVALUATED = __future__.annotations.compiler_flag


@dataclass(frozen=True)
class Names:
    """The global names of a statement: read when it runs, read when its functions run, bound.

    Annotations are left aside: `hints` are the names that are read only if those are evaluated.
    """

    eager: frozenset[str]
    lazy: frozenset[str]
    binds: frozenset[str]
    full: frozenset[str]  # bound whatever was there before
    stored_later: frozenset[str]  # bound by its functions when they run
    hints: frozenset[str] = frozenset()


def names_of(statement: ast.stmt) -> Names:
    """Return the names of a statement; raises SyntaxError for what only the compiler refuses."""
    found = _names(statement, UNEVALUATED)
    if not any(_annotation(node) for node in ast.walk(statement)):
        return found
    evaluated = _names(statement, 0)
    hints = evaluated.eager | evaluated.lazy
    return replace(found, hints=(hints - found.eager - found.lazy) or frozenset({"__annotations__"}))


def _annotation(node: ast.AST) -> ast.expr | None:
    return getattr(node, "annotation", None) or getattr(node, "returns", None)


def _names(statement: ast.stmt, flags: int) -> Names:
    module = compile(ast.Module([statement], []), "<cell>", "exec", flags, dont_inherit=True)
    eager, lazy, binds, later, deleted = set(), set(), set(), set(), set()
    sure = _surely_bound([statement])
    todo = [(module, True)]
    while todo:
        code, now = todo.pop()
        own: set[str] = set()  # bound in this scope before they are read
        in_class = code is not module and not code.co_flags & CO_OPTIMIZED
        for step in dis.get_instructions(code):
            if step.opname in READS and not (step.argval in own and step.opname == "LOAD_NAME"):
                (eager if now else lazy).add(step.argval)
            if step.opname in BINDS and not (in_class and step.opname.endswith("NAME")):
                (binds if now else later).add(step.argval)
            if step.opname.startswith("DELETE_") and now:
                deleted.add(step.argval)
            if step.opname == "STORE_NAME" and (in_class or step.argval in sure):
                own.add(step.argval)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                todo.append((constant, now and _runs_at_once(constant)))
    whole = isinstance(statement, SIMPLE) or (isinstance(statement, ast.AnnAssign) and statement.value)
    full = binds - eager - deleted if whole else set()
    return Names(*map(frozenset, (eager, lazy, binds, full, later)))


def _runs_at_once(code: CodeType) -> bool:
    """Whether this is the body of a class or a comprehension, not of a function."""
    return (
        not code.co_flags & CO_OPTIMIZED
        or code.co_name in COMPREHENSIONS
        or code.co_name.startswith("<generic")
    )


def _surely_bound(body: list[ast.stmt]) -> set[str]:
    """Return the names that these statements bind in every run before they go on."""
    found: set[str] = set()
    for one in body:
        if isinstance(one, ast.Assign | ast.AnnAssign):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            found |= _stored(targets) if one.value else set()
        elif isinstance(one, ast.Import | ast.ImportFrom):
            found |= {name.asname or name.name.split(".")[0] for name in one.names}
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(one.name)
        elif isinstance(one, ast.For | ast.AsyncFor):
            found |= _stored([one.target]) | _surely_bound(one.body)
        elif isinstance(one, ast.With | ast.AsyncWith):
            found |= _stored([item.optional_vars for item in one.items if item.optional_vars])
            found |= _surely_bound(one.body)
        elif isinstance(one, ast.If):
            found |= _surely_bound(one.body) & _surely_bound(one.orelse)
    return found


def _stored(targets: Iterable[ast.AST]) -> set[str]:
    nodes = (node for target in targets for node in ast.walk(target))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def eager_nodes(statement: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run with the statement: not the bodies of functions."""
    todo = [statement]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, FUNCTIONS):
            todo += [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            todo += getattr(node, "decorator_list", [])
        else:
            todo += ast.iter_child_nodes(node)


# --- what is changed in place -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A name whose thing is changed.

    `by` is "store", "item" for a store by index, a method's name, or "call" for an unknown function.
    """

    name: str
    by: str


@dataclass(frozen=True)
class Call:
    """A call of a plain name, and the names that its arguments are, or are part of."""

    function: str
    args: frozenset[str]


@dataclass(frozen=True)
class Effects:
    """What a piece of code changes, calls, and gives a second name."""

    changes: frozenset[Change]
    calls: frozenset[Call]
    aliases: dict[str, frozenset[str]]

    def origins(self, name: str) -> set[str]:
        """Return the names that `name` may be another name for, itself included."""
        found, todo = {name}, [name]
        while todo:
            for other in self.aliases.get(todo.pop(), ()):
                if other not in found:
                    found.add(other)
                    todo.append(other)
        return found


def effects_of(nodes: Iterable[ast.AST]) -> Effects:
    """Return the effects of these nodes, in terms of the names in them."""
    changes: set[Change] = set()
    calls: set[Call] = set()
    aliases: dict[str, set[str]] = {}
    for node in nodes:
        changes.update(_changes(node))
        calls.update(_calls(node))
        for target, value in _second_names(node):
            if things := _things(value):
                for name in _stored([target]):
                    aliases.setdefault(name, set()).update(things - {name})
    return Effects(frozenset(changes), frozenset(calls), {k: frozenset(v) for k, v in aliases.items()})


def _changes(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        by = "item" if isinstance(node, ast.Subscript) else "store"
        yield from (Change(name, by) for name in _things(node))
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield Change(node.target.id, "store")
    elif isinstance(node, ast.Attribute) and node.attr in CHANGING:
        yield from (Change(name, node.attr) for name in _things(node.value))
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else root_name(node.func)
        if name in CHANGES_FIRST and node.args:
            yield from (Change(thing, "store") for thing in _things(node.args[0]))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Attribute) and called.attr not in READING:
            yield from (Change(name, called.attr) for name in _things(called.value))
        elif isinstance(called, ast.Name):
            yield Change(called.id, "call")
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for one in node.decorator_list:
            called = one.func if isinstance(one, ast.Call) else one
            if isinstance(called, ast.Attribute):
                yield from (Change(name, called.attr) for name in _things(called.value))


def _calls(node: ast.AST) -> Iterator[Call]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        given = [*node.args, *(word.value for word in node.keywords)]
        yield Call(node.func.id, frozenset(name for one in given for name in _things(one)))
    for one in getattr(node, "decorator_list", []):
        if isinstance(one, ast.Name):
            yield Call(one.id, frozenset())


def _second_names(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (target, value) wherever a target may become another name for a part of the value."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node.context_expr


def _things(node: ast.AST) -> set[str]:
    """Return the names whose thing this expression is, holds, or is a part of; a copy is no such thing."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.NamedExpr):
        return _things(node.value)
    if isinstance(node, ast.Tuple | ast.List):
        return {name for one in node.elts for name in _things(one)}
    if isinstance(node, ast.IfExp):
        return _things(node.body) | _things(node.orelse)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in SAME_THING:
            return _things(node.func.value) | {name for one in node.args for name in _things(one)}
        if isinstance(node.func, ast.Name) and node.func.id in SAME_THING:
            return {name for one in node.args for name in _things(one)}
    return set()


# --- what a function of the notebook does when it is called -------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """A function's effects: the globals it changes, whether it changes its arguments, what it calls."""

    changes: frozenset[Change]
    changes_arguments: bool
    passes_on: frozenset[str]  # functions that are given its arguments
    calls: frozenset[str]


def summary_of(function: Function, names: Names) -> Summary:
    """Return the effects of calling the function; `names` are those of the statement it stands in."""
    body = function.body if isinstance(function.body, list) else [function.body]
    nodes = [node for one in body for node in ast.walk(one)]
    inside = [node for node in nodes if isinstance(node, FUNCTIONS)]
    every = [one.args for one in (function, *inside)]
    arguments = {node.arg for one in every for node in ast.walk(one) if isinstance(node, ast.arg)}
    declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    own = (arguments | _stored(body) | {getattr(one, "name", "") for one in inside}) - declared
    found = effects_of(nodes)
    changes = {
        Change(name, one.by) for one in found.changes if one.by != "call" for name in found.origins(one.name)
    }
    passed = {
        call.function
        for call in found.calls
        if any(found.origins(name) & arguments for name in call.args) or call.function in arguments
    }
    return Summary(
        frozenset(one for one in changes if one.name not in own)
        | {Change(name, "store") for name in names.stored_later},
        any(one.name in arguments for one in changes),
        frozenset(passed),
        names.lazy,
    )
