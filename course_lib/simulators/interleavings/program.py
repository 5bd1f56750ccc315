"""From the learner's functions, or from a text, to threads that the checker can run step by step."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from course_lib.simulators.interleavings.language import Function, NotUnderstood, parse, understand
from course_lib.simulators.interleavings.shared import (
    Container,
    Heap,
    Lock,
    Plain,
    RLock,
    Semaphore,
    SharedLock,
    released,
    taken,
)
from course_lib.simulators.interleavings.thread_states import ThreadStates

MOST_THREADS = 6
Thread = Callable | str | tuple
#: How a text may make locks at its top level: `lock = Lock()`, `threading.Lock()`.
MAKERS = {
    "Lock": Lock,
    "RLock": RLock,
    "Semaphore": Semaphore,
    "BoundedSemaphore": lambda value=1: Semaphore(value, most=value),
}


class ThreadProgram:
    """Threads of one program at their first steps: `start` has the state of each, `states` what follows."""

    def __init__(
        self, threads: Sequence[Thread], shared: Mapping[str, Any] | None, source: str | None
    ) -> None:
        calls = _calls(threads, source)
        if source is None:
            self.text, found, constants = _from_functions([call for call, _ in calls], shared or {})
        else:
            self.text, found, constants = source, *_from_text(source)
        self.lines = self.text.splitlines()
        definitions = {node.name: node for node in parse(self.text).body if isinstance(node, ast.FunctionDef)}
        self.heap = Heap({**found, **(shared or {})})
        scope = understand(definitions, self.heap, constants)
        self.states = ThreadStates(scope)
        self.names = [call if isinstance(call, str) else call.__name__ for call, _ in calls]
        for name in self.names:
            if name not in scope.functions:
                raise NotUnderstood(f"The text defines no function {name}: write it with `def {name}(...)`.")
        self.start = [
            self._start(scope.functions[name], arguments)
            for name, (_, arguments) in zip(self.names, calls, strict=True)
        ]

    def _start(self, function: Function, arguments: tuple) -> int:
        """Begin a thread; a parameter without an argument takes the shared list, dict or lock of its name."""
        for name in function.parameters[len(arguments) : len(function.parameters) - len(function.defaults)]:
            if not isinstance(self.heap.names.get(name), Container | SharedLock):
                raise NotUnderstood(
                    f"{function.name} has the parameter {name}, for which there is no argument: write "
                    f"({function.name}, value) in the list of threads."
                )
            arguments = (*arguments, self.heap.names[name])
        if len(arguments) > len(function.parameters):
            raise NotUnderstood(
                f"{function.name} takes {len(function.parameters)} arguments, but got {len(arguments)}."
            )
        return self.states.start(function.name, arguments)

    def step(
        self, cells: tuple, locks: tuple, thread: int, pending: tuple
    ) -> tuple[tuple, tuple, Any] | None:
        """Return (cells, locks, result) after a thread's step, None if it must wait or may not do it."""
        kind, target, value, _ = pending
        if kind == "read":
            return cells, locks, cells[target]
        if kind == "write":
            return (*cells[:target], value, *cells[target + 1 :]), locks, None
        before = locks[target.number]
        if kind == "locked":
            return cells, locks, before[0] != -1
        after = (released if kind == "release" else taken)(target, before, thread)
        if after is None:
            return (cells, locks, False) if kind == "try" else None
        result = None if kind == "release" else True
        return cells, (*locks[: target.number], after, *locks[target.number + 1 :]), result


def _calls(threads: Sequence[Thread], source: str | None) -> list[tuple[Callable | str, tuple]]:
    """Return (function or name, arguments) of each thread."""
    if isinstance(threads, str) or not isinstance(threads, Iterable):
        raise TypeError(f"threads is {threads!r}, but it must be a list of functions, one for each thread.")
    calls = []
    for one in threads:
        function, *arguments = one if isinstance(one, tuple) and one else (one,)
        wanted = str if source is not None else FunctionType
        if not isinstance(function, wanted):
            what = "the name of a function in the text" if source is not None else "a Python function"
            raise TypeError(
                f"A thread is {function!r}, but it must be {what}, or a tuple of it and arguments."
            )
        calls.append((function, tuple(map(_argument, arguments))))
    if not 1 <= len(calls) <= MOST_THREADS:
        raise ValueError(f"There are {len(calls)} threads, but 1 to {MOST_THREADS} can be checked.")
    return calls


def _argument(value: Any) -> Any:
    if isinstance(value, Plain | range):
        return value
    if isinstance(value, tuple) and len(value) <= 100:
        return tuple(map(_argument, value))
    raise TypeError(
        f"A thread gets the argument {value!r}, but arguments are numbers, texts and tuples of them."
    )


# -- Python functions --------------------------------------------------------------------------------------


def _from_functions(
    functions: Sequence[FunctionType], shared: Mapping[str, Any]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Collect the text of the functions and of those they call, and what their global names stand for."""
    pieces: dict[str, str] = {}
    found: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    todo = list(functions)
    while todo:
        function = todo.pop(0)
        if function.__name__ in pieces:
            continue
        pieces[function.__name__] = _source_of(function)
        for name in _names(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, FunctionType) and name not in shared:
                todo.append(value)
            elif name in function.__globals__ and name not in shared:
                _sort_in(name, value, function, found, constants)
    text = "\n\n\n".join(pieces.values()) + "\n"
    return text, found, constants


def _names(code: CodeType) -> Iterable[str]:
    """Return the global names of a function, those in its comprehensions too."""
    yield from code.co_names
    for inner in code.co_consts:
        yield from _names(inner) if isinstance(inner, CodeType) else ()


def _sort_in(name: str, value: Any, function: FunctionType, found: dict, constants: dict) -> None:
    locks = (Lock, RLock, Semaphore)
    is_lock = isinstance(value, locks) or type(value).__module__ in ("_thread", "threading")
    if isinstance(value, list | dict) or (is_lock and not callable(value)):
        found[name] = value
    elif isinstance(value, Plain):
        is_written = f"global {name}" in inspect.getsource(function)
        (found if is_written else constants)[name] = value


def _source_of(function: FunctionType) -> str:
    if function.__code__.co_freevars:
        names = ", ".join(function.__code__.co_freevars)
        raise NotUnderstood(
            f"{function.__name__} uses {names} of the function around it: define it at the top level, and "
            "share what it needs."
        )
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise NotUnderstood(
            f"{function.__name__} has no source that can be read: define it in a cell."
        ) from None
    if function.__name__ == "<lambda>":
        raise NotUnderstood("A thread is a lambda: write a function with `def`.")
    return text.rstrip()


# -- a text ------------------------------------------------------------------------------------------------


def _from_text(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read functions, plain values, lists, dicts and locks from the top level of a text; skip what else is
    there.

    A plain value is shared if a function declares it `global`, otherwise it is a constant.
    """
    tree = parse(text)
    declared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    found: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            try:
                value = _tuple(node.value) if isinstance(node.value, ast.Tuple) else _literal(node.value, 0)
            except ValueError:
                continue
            is_shared = name in declared or not isinstance(value, Plain | tuple)
            (found if is_shared else constants)[name] = value
    return found, constants


def _tuple(node: ast.Tuple) -> tuple:
    """Return a tuple of plain values, or of such tuples; else ValueError."""
    values = tuple(_tuple(one) if isinstance(one, ast.Tuple) else _literal(one, 0) for one in node.elts)
    if not all(isinstance(one, Plain | tuple) for one in values):
        raise ValueError
    return values


def _literal(node: ast.expr, depth: int) -> Any:
    """Return the value of a literal, Lock(), Semaphore(2), [Lock() for _ in range(3)]; else ValueError."""
    if depth > 5:
        raise ValueError
    if isinstance(node, ast.Constant) and isinstance(node.value, Plain):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _literal(node.operand, depth + 1)
        if isinstance(value, int | float):
            return -value
    if isinstance(node, ast.List):
        return [_literal(one, depth + 1) for one in node.elts]
    if isinstance(node, ast.Dict) and all(node.keys):
        keys = [_literal(key, depth + 1) for key in node.keys]
        if all(isinstance(key, int | str) for key in keys):
            return dict(zip(keys, (_literal(one, depth + 1) for one in node.values), strict=True))
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        values = [_literal(one, depth + 1) for one in [*node.args, *(word.value for word in node.keywords)]]
        if name in MAKERS and all(isinstance(one, int) for one in values) and len(values) <= 1:
            return MAKERS[name](*(values if name.endswith("Semaphore") else ()))
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        counted = node.generators[0].iter
        is_range = isinstance(counted, ast.Call) and getattr(counted.func, "id", "") == "range"
        if is_range and len(counted.args) == 1 and not node.generators[0].ifs:
            count = _literal(counted.args[0], depth + 1)
            if isinstance(count, int) and 0 <= count <= 20:
                return [_literal(node.elt, depth + 1) for _ in range(count)]
    raise ValueError
