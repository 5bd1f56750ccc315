"""Runs one thread from visible step to visible step: reads and writes of shared cells, and locks.

A thread is a generator that goes through the syntax tree. It stops before each visible step by yielding
(kind, cell or lock, value, line), and goes on with what the step returned. All that its future depends on
lies in its frames, so that two threads whose frames are equal are in the same state. And nothing else: what
is needed after a step is taken from the stack again, never from a variable of the generator, which cannot be
copied. So a thread that stands at the same place can be put into another's state (`Running.put`).
"""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from course_lib.simulators.interleavings.language import (
    ELEMENT,
    REST,
    TAKEN,
    Function,
    Kept,
    TextScope,
    format_of,
    is_sleep,
    printable,
    waits,
    walked,
)
from course_lib.simulators.interleavings.shared import Container, SharedLock
from course_lib.simulators.interleavings.values import (
    COMPARE,
    COMPARED,
    COMPUTE,
    ENOUGH,
    ORDERLESS,
    UNARY,
    CannotDo,
    OwnList,
    binary,
    bounded,
    holds,
    lock_of,
    number,
    of_plain,
    plain,
    say,
    storable,
    truth,
)

DEEPEST_CALL = 16
LONGEST_SLEEP_S = 1000
CONVERTED = {ord("r"): repr, ord("s"): str, ord("a"): ascii}  # {value!r}
MOST_LOCAL = 5_000  # parts of the text without a visible step

Pending = tuple[str, Any, Any, int]  # kind, cell or lock, value, line
Steps = Generator[Pending, Any, Any]  # the visible steps of a part of the text; returns its value


UNSET = object()  # the value of a variable that has none yet


class Leaving(NamedTuple):
    """How control leaves a statement before its end: by "break", "continue" or "return"."""

    by: str
    line: int
    value: Any = None


def _is_shared_list(value: Any) -> bool:
    return isinstance(value, Container) and value.is_list


def _length(values: Any) -> int:
    return len(values.cells if isinstance(values, Container) else values)


@cache
def _method(prefix: str, kind: type[ast.AST]) -> str:
    return f"_{prefix}_{kind.__name__}"


@dataclass(slots=True)
class CallFrame:
    """A call that has not ended."""

    function: Function
    values: dict[str, Any]  # of the local variables
    stack: list = field(default_factory=list)  # what was computed and is needed after the next step
    place: ast.AST | None = None  # the part of the text with the next step, or with the call

    def frozen(self) -> tuple:
        """Return all that the rest of the call depends on."""
        return self.function.name, self.place, tuple(self.stack), tuple(self.values.values())


class Running:
    """One thread. `_on_…` run a statement and return a Leaving or None, `_of_…` return a value."""

    def __init__(self, scope: TextScope) -> None:
        self.scope = scope
        self.heap = scope.heap
        self.frames: list[CallFrame] = []  # the outermost call first
        self.stack: list = []  # of the innermost
        self.values: dict[str, Any] = {}
        self.line = 0  # the last that ran
        self.begin_step()

    def begin_step(self) -> None:
        """Forget what has run since the last visible step."""
        self._local = 0
        self._unchanging: dict[str, None] = {}  # paths of cells read that no thread writes, in order

    def call(self, function: Function, arguments: Sequence[Any], named: Sequence[str] = ()) -> Steps:
        """Run a function, its last arguments `named`; returns what it returns."""
        parameters = function.parameters
        names = [*parameters[: len(arguments) - len(named)], *named]
        given = dict(
            zip(parameters[len(parameters) - len(function.defaults) :], function.defaults, strict=True)
        )
        given.update(zip(names, arguments, strict=False))
        if len({*names}) != len(arguments) or {*given} != {*parameters}:
            raise CannotDo(f"{function.name} takes {len(parameters)} arguments, but got {len(arguments)}")
        values = dict.fromkeys(function.variables, UNSET)
        values.update(given)
        self._enter([*self.frames, CallFrame(function, values)])
        leaving = yield from self._block(function.node.body)
        self._tick(leaving.line if leaving else function.node.lineno)
        self._enter(self.frames[:-1])
        return leaving.value if leaving else None

    def put(self, frozen: tuple[tuple, ...], line: int) -> None:
        """Become a thread with these frozen frames, which must stand at the same place.

        The lists and dicts stay the same objects: the generator may hold on to them.
        """
        for frame, (_, _, stack, values) in zip(self.frames, frozen, strict=True):
            frame.stack[:] = stack
            frame.values.update(zip(frame.values, values, strict=True))
        self.line = line

    def _enter(self, frames: list[CallFrame]) -> None:
        self.frames = frames
        if frames:
            self.stack, self.values = frames[-1].stack, frames[-1].values

    def _tick(self, line: int, parts: int = 1) -> None:
        """Note that parts of a line run; raises CannotDo if nothing visible has happened for too long."""
        self._local += parts
        if self._local <= MOST_LOCAL:
            self.line = line
            return
        if not self._unchanging:
            raise CannotDo("goes round and round without touching anything shared: does the loop end?")
        read = ", ".join(list(self._unchanging)[:3])
        raise CannotDo(
            f"goes round and round and reads only what no thread writes ({read}): does the loop end?"
        )

    # -- what is shared -------------------------------------------------------------------------------------

    def _visible(self, place: ast.AST, kind: str, target: int | SharedLock, value: Any = None) -> Steps:
        self.frames[-1].place = place
        return (yield (kind, target, value, self.line))

    def _read(self, place: ast.AST, cell: int) -> Steps:
        """Read a cell; one that no thread writes is no visible step."""
        if cell in self.scope.written:
            return (yield from self._visible(place, "read", cell))
        self._unchanging.setdefault(self.heap.cell_paths[cell])
        return self.heap.cells[cell]

    def _element(self, place: ast.AST, container: Any, key: Any) -> Steps:
        if isinstance(container, Container):
            return (yield from self._read(place, self._cell(container, key)))
        if not isinstance(container, tuple | str | range):
            raise CannotDo(f"takes element {say(key)} of {say(container)}, which has none")
        return container[key]

    def _cell(self, shared: Container, key: Any) -> int:
        if shared.is_list and isinstance(key, int) and key < 0:
            key += len(shared.cells)
        if isinstance(key, int | str) and key in shared.cells:
            return shared.cells[key]
        what = "a shared list keeps its length" if shared.is_list else "a shared dict keeps its keys"
        raise CannotDo(f"asks for {shared.path}[{key!r}], which is not there ({what})")

    def _elements(self, place: ast.AST, container: Container, places: range, wanted: Any = UNSET) -> Steps:
        """Read these elements of a shared list, one after the other, up to one that is `wanted`."""
        found = ()
        while len(found) < len(places) and not (found and found[-1] == wanted):
            self._tick(self.line)
            self.stack.append((container, places, found, wanted))
            element = yield from self._element(place, container, places[len(found)])
            container, places, found, wanted = self.stack.pop()
            found = bounded((*found, element))
        return found

    def _write_element(self, place: ast.AST, container: Any, key: Any, value: Any) -> Steps:
        if not isinstance(container, Container):
            raise CannotDo("changes an element of a list of its own: here only shared lists and dicts change")
        cell = self._cell(container, key)
        if isinstance(self.heap.cells[cell], Container | SharedLock):
            raise CannotDo(f"overwrites {self.heap.cell_paths[cell]}, which holds a list, dict or lock")
        yield from self._visible(place, "write", cell, storable(value))

    def _lengthen(self, old: Any, more: Sequence[Any]) -> OwnList:
        """Put a longer list wherever the thread has this very one: all it needs is in its frames."""
        if type(old) is not OwnList or holds(tuple(more), old):
            raise CannotDo(f"changes {say(old)}: only a list that it made itself grows, and not by itself")
        done = {id(old): bounded(OwnList((*old, *more)))}

        def put(value: Any) -> Any:
            if id(value) not in done and holds(value, old):
                make = getattr(type(value), "_make", type(value))
                done[id(value)] = bounded(make(map(put, value)))
            return done.get(id(value), value)

        for frame in self.frames:
            frame.stack[:] = map(put, frame.stack)
            frame.values.update({name: put(value) for name, value in frame.values.items()})
        return done[id(old)]

    # -- statements -----------------------------------------------------------------------------------------

    def _block(self, statements: list[ast.stmt]) -> Steps:
        for statement in statements:
            method = getattr(self, _method("on", type(statement)), None)
            if method is not None:  # pass, global and imports do nothing
                self._tick(statement.lineno)
                leaving = yield from method(statement)
                if leaving is not None:
                    return leaving
        return None

    def _on_Expr(self, node: ast.Expr) -> Steps:
        if not isinstance(node.value, ast.Constant):
            yield from self._value(node.value)

    def _on_Assign(self, node: ast.Assign) -> Steps:
        value = yield from self._value(node.value)
        *others, last = node.targets
        self.stack.append(value)
        for target in others:
            yield from self._store(target, self.stack[-1])
        yield from self._store(last, self.stack.pop())

    def _on_AnnAssign(self, node: ast.AnnAssign) -> Steps:
        if node.value is not None:
            yield from self._store(node.target, (yield from self._value(node.value)))

    def _on_AugAssign(self, node: ast.AugAssign) -> Steps:
        target = node.target
        if isinstance(target, ast.Name):
            left, right = yield from self._values([target, node.value])
            if isinstance(left, OwnList) and isinstance(right, tuple) and isinstance(node.op, ast.Add):
                value = self._lengthen(left, right)  # `:=` on the right may have put another in its place
            else:
                value = binary(node.op, left, right)
            yield from self._store(target, value)
            return
        container, key = yield from self._values([target.value, target.slice])
        self.stack += [container, key]
        before = yield from self._element(target, container, key)
        self.stack.append(before)
        more = yield from self._value(node.value)
        container, key, before = self.stack[-3:]
        del self.stack[-3:]
        yield from self._write_element(target, container, key, binary(node.op, before, more))

    def _store(self, target: ast.expr, value: Any) -> Steps:
        if isinstance(target, ast.Name):
            if target.id in self.values:
                self.values[target.id] = value
            else:
                cell = self.heap.names[target.id]
                yield from self._visible(target, "write", cell, storable(value))
        elif isinstance(target, ast.Subscript):
            self.stack.append(value)
            container, key = yield from self._values([target.value, target.slice])
            yield from self._write_element(target, container, key, self.stack.pop())
        else:
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise CannotDo(f"wants to take {say(value)} apart into {len(target.elts)} parts")
            for part in target.elts:
                self.stack.append(value[1:])
                yield from self._store(part, value[0])
                value = self.stack.pop()

    def _on_If(self, node: ast.If) -> Steps:
        holds = truth((yield from self._value(node.test)))
        return (yield from self._block(node.body if holds else node.orelse))

    def _on_While(self, node: ast.While) -> Steps:
        while truth((yield from self._value(node.test))):
            self._tick(node.lineno, 2)
            leaving = yield from self._block(node.body)
            if leaving is not None and leaving.by != "continue":
                return None if leaving.by == "break" else leaving
            self.line = node.lineno
        return (yield from self._block(node.orelse))

    def _on_For(self, node: ast.For) -> Steps:
        (values,) = yield from self._values(walked(node.iter)[1])
        return (yield from self._for(node, values))

    def _for(self, node: ast.For, values: Any) -> Steps:
        way, _ = walked(node.iter)
        if isinstance(values, Container) and not values.is_list:
            values = tuple(values.cells)
        if isinstance(values, frozenset):
            raise CannotDo("goes through a set, whose order is Python's own: write sorted(…)")
        if not isinstance(values, Container | range | tuple | str):
            raise CannotDo(f"loops over {say(values)}, but a range, a tuple or a list is needed")
        at = _length(values) - 1 if way == "reversed" else 0
        while 0 <= at < _length(values):
            self._tick(node.lineno, 3)
            self.stack.append((values, at))
            element = yield from self._element(node, values, at)
            if way == "enumerate":
                element = (self.stack[-1][1], element)
            yield from self._store(node.target, element)
            leaving = yield from self._block(node.body)
            values, at = self.stack.pop()
            if leaving is not None and leaving.by != "continue":
                return None if leaving.by == "break" else leaving
            at += -1 if way == "reversed" else 1
        return (yield from self._block(node.orelse))

    def _on_Break(self, node: ast.Break | ast.Continue) -> Steps:
        return Leaving(type(node).__name__.lower(), node.lineno)
        yield

    _on_Continue = _on_Break

    def _on_Return(self, node: ast.Return) -> Steps:
        value = None if node.value is None else (yield from self._value(node.value))
        return Leaving("return", node.lineno, value)

    def _on_With(self, node: ast.With) -> Steps:
        for item in node.items:
            self.stack.append((yield from self._value(item.context_expr)))
            yield from self._visible(item, "acquire", lock_of(self.stack[-1]))
        leaving = yield from self._block(node.body)
        self.line = leaving.line if leaving else node.lineno
        for item in reversed(node.items):
            lock = lock_of(self.stack.pop())
            self.stack.append(leaving)
            yield from self._visible(item, "release", lock)
            leaving = self.stack.pop()
        return leaving

    def _on_Try(self, node: ast.Try) -> Steps:
        leaving = yield from self._block(node.body)
        self.stack.append(leaving)
        yield from self._block(node.finalbody)  # nothing leaves it
        return self.stack.pop()

    def _on_Assert(self, node: ast.Assert) -> Steps:
        if not truth((yield from self._value(node.test))):
            raise CannotDo(f"finds that `assert {ast.unparse(node.test)}` does not hold")

    def _on_Raise(self, node: ast.Raise) -> Steps:
        raise CannotDo(f"stops with `{ast.unparse(node)}`")

    def _on_Kept(self, node: Kept) -> Steps:
        element = yield from self._value(node.value)
        self.values[TAKEN] = bounded((*self.values[TAKEN], element))
        is_enough = node.by in ENOUGH and ENOUGH[node.by](element, *self.values[REST])
        return Leaving("return", node.lineno) if is_enough else None

    # -- expressions ----------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Steps:
        self._tick(self.line)
        return getattr(self, _method("of", type(node)))(node)

    def _values(self, nodes: Sequence[ast.expr]) -> Steps:
        """Return the values of several expressions, in their order."""
        start = len(self.stack)
        for node in nodes:
            self.stack.append((yield from self._value(node)))
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def _of_Constant(self, node: ast.Constant) -> Steps:
        return bounded(node.value)
        yield

    def _of_Name(self, node: ast.Name) -> Steps:
        name = node.id
        if name in self.values:
            if self.values[name] is UNSET:
                raise CannotDo(f"uses {name} before it has a value (is `global {name}` missing?)")
            return self.values[name]
        shared = self.heap.names.get(name)
        if shared is None:
            return bounded(self.scope.constants[name])
        return (yield from self._read(node, shared)) if isinstance(shared, int) else shared

    def _of_BinOp(self, node: ast.BinOp) -> Steps:
        left, right = yield from self._values([node.left, node.right])
        return binary(node.op, left, right)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Steps:
        value = yield from self._value(node.operand)
        if isinstance(node.op, ast.Not):
            return not truth(value)
        return UNARY[type(node.op)](number(value))

    def _of_BoolOp(self, node: ast.BoolOp) -> Steps:
        for part in node.values:
            value = yield from self._value(part)
            if truth(value) != isinstance(node.op, ast.And):
                break
        return value

    def _of_Compare(self, node: ast.Compare) -> Steps:
        left = yield from self._value(node.left)
        for kind, other in zip(node.ops, node.comparators, strict=True):
            self.stack.append(left)
            right = yield from self._value(other)
            if isinstance(kind, ast.In | ast.NotIn) and len(node.ops) == 1 and _is_shared_list(right):
                right = yield from self._elements(node, right, range(_length(right)), self.stack[-1])
            left = self.stack.pop()
            if not self._compared(kind, left, right):
                return False
            left = right
        return True

    def _compared(self, kind: ast.cmpop, left: Any, right: Any) -> bool:
        is_in = isinstance(kind, ast.In | ast.NotIn)
        if isinstance(kind, ast.Is | ast.IsNot):
            if not any(isinstance(n, bool | None) for n in (left, right)):
                raise CannotDo("asks with `is` whether two values are the same: write ==")
            return COMPARED[type(kind)](left, right)
        if is_in and isinstance(right, Container):
            if right.is_list:
                raise CannotDo(f"asks two things about the shared list {right.path} at once: ask one")
            right = tuple(right.cells)
        if isinstance(left, Container) or isinstance(right, Container):
            raise CannotDo("compares a shared list or dict as a whole: compare its elements")
        if not (isinstance(left, SharedLock) or (plain(left) and (of_plain if is_in else plain)(right))):
            raise CannotDo("compares a list, a set or a tuple as a whole: compare its elements")
        return COMPARED[type(kind)](left, right)

    def _of_NamedExpr(self, node: ast.NamedExpr) -> Steps:
        self.stack.append((yield from self._value(node.value)))
        yield from self._store(node.target, self.stack[-1])
        return self.stack.pop()

    def _of_IfExp(self, node: ast.IfExp) -> Steps:
        holds = truth((yield from self._value(node.test)))
        return (yield from self._value(node.body if holds else node.orelse))

    def _of_Tuple(self, node: ast.Tuple | ast.List) -> Steps:
        return bounded(tuple((yield from self._values(node.elts))))

    def _of_List(self, node: ast.List) -> Steps:
        return bounded(OwnList((yield from self._values(node.elts))))

    def _of_Set(self, node: ast.Set) -> Steps:
        elements = yield from self._values(node.elts)
        if not all(map(plain, elements)):
            raise CannotDo("puts a list, a dict or a lock into a set: use numbers and texts")
        return bounded(frozenset(elements))

    def _of_ListComp(self, node: ast.ListComp) -> Steps:
        (elements,) = yield from self._taken(node)
        return bounded(OwnList(elements))

    def _taken(self, node: ast.expr, others: Sequence[ast.expr] = ()) -> Steps:
        """Return the elements that a comprehension or a call takes, and the values of its other arguments."""
        loop, own = self.scope.loops[node]
        source, *rest = yield from self._values([*walked(loop.iter)[1], *others])
        by = loop.body[0].by if own[0] == ELEMENT else ""
        if isinstance(source, frozenset) and by in ORDERLESS:
            source = tuple(source)
        is_dict = isinstance(source, Container) and not source.is_list
        if by == "index" and (is_dict or isinstance(source, str)):
            raise CannotDo(f"looks for an index in {say(source)}: only lists have one here")
        self.stack.append(tuple(self.values[name] for name in own))
        self.values.update({**dict.fromkeys(own, UNSET), TAKEN: (), REST: tuple(rest)})
        yield from self._for(loop, source)
        taken = self.values[TAKEN], *self.values[REST]
        self.values.update(zip(own, self.stack.pop(), strict=True))
        return taken

    def _of_Slice(self, node: ast.Slice) -> Steps:
        parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
        return slice(*(yield from self._values(parts)))

    def _of_Subscript(self, node: ast.Subscript) -> Steps:
        container, key = yield from self._values([node.value, node.slice])
        if isinstance(key, slice) and _is_shared_list(container):
            places = range(_length(container))[key]
            return OwnList((yield from self._elements(node, container, places)))
        if isinstance(key, slice) and isinstance(container, Container):
            raise CannotDo("takes a slice of a dict, which has none")
        if isinstance(key, slice) and isinstance(container, OwnList):
            return OwnList(container[key])
        return (yield from self._element(node, container, key))

    def _of_JoinedStr(self, node: ast.JoinedStr) -> Steps:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = yield from self._value(part.value)
                converted = CONVERTED.get(part.conversion, lambda value: value)(value)
                if not printable(format(converted, format_of(part))):
                    raise CannotDo("prints a letter that cannot be printed")
        return ""

    def _of_Call(self, node: ast.Call) -> Steps:
        if isinstance(node.func, ast.Attribute):
            look = {"index": self._index, "append": self._append}.get(node.func.attr, self._use_lock)
            return (yield from look(node, node.func))
        name = node.func.id
        function = self.scope.functions.get(name)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if node in self.scope.loops:
            values = yield from self._taken(node, arguments[1:])
        else:
            values = yield from self._values(arguments)
        if function is None:
            return None if name == "print" else self._computed(node, name, values)
        if len(self.frames) >= DEEPEST_CALL:
            raise CannotDo(f"calls functions from functions more than {DEEPEST_CALL} deep")
        line = self.line
        self.frames[-1].place = node
        value = yield from self.call(function, values, [keyword.arg for keyword in node.keywords])
        self.line = line
        return value

    def _computed(self, node: ast.Call, name: str, values: Sequence[Any]) -> Any:
        count = len(node.args)
        if name == "len" and count == 1 and isinstance(values[0], Container):
            return _length(values[0])
        if any(isinstance(value, Container | SharedLock) for value in values):
            raise CannotDo(f"hands a shared list, dict or lock to {name}()")
        if name in COMPARE and not all(map(of_plain if count == 1 else plain, values[:count])):
            raise CannotDo(f"hands lists in a list or several lists to {name}(): write a loop")
        if name == "next" and values == ((),):
            raise CannotDo("stops with StopIteration: next(…) finds nothing; give it a second argument")
        named = {one.arg: value for one, value in zip(node.keywords, values[count:], strict=True)}
        return bounded(COMPUTE[name](*values[:count], **named))

    def _index(self, node: ast.Call, called: ast.Attribute) -> Steps:
        values, wanted = yield from self._taken(node, node.args)
        if not of_plain((*values, wanted)) or wanted not in values:
            raise CannotDo(f"looks for the index of {say(wanted)} in {say(values)}, where it is not")
        return values.index(wanted)

    def _append(self, node: ast.Call, called: ast.Attribute) -> Steps:
        own, *added = yield from self._values([called.value, *node.args])
        self._lengthen(own, added)

    def _use_lock(self, node: ast.Call, called: ast.Attribute) -> Steps:
        if is_sleep(called):
            seconds = number((yield from self._value(node.args[0])))
            if not 0 <= seconds <= LONGEST_SLEEP_S:
                raise CannotDo(f"sleeps for {say(seconds)} seconds")
            return None
        lock = lock_of((yield from self._value(called.value)))
        if called.attr == "locked" and lock.kind != "lock":
            raise CannotDo(f"asks whether {lock.path} is held, but only a Lock has locked() in Python")
        kind = "try" if called.attr == "acquire" and not waits(node) else called.attr
        return (yield from self._visible(node, kind, lock))
