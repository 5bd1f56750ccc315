"""From the learner's functions, or from a text, to threads that the checker can run step by step."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any

from course_lib.simulators.interleaving_language import Code, Known, NotUnderstood, compile_function, parse
from course_lib.simulators.interleaving_machine import Machine, Wrong
from course_lib.simulators.interleaving_state import Heap, Lock, LockRef, Ref, RLock, Semaphore

MOST_THREADS = 6
Thread = Callable | str | tuple
#: How a text may make locks at its top level: `lock = Lock()`, `threading.Lock()`.
MAKERS = {"Lock": Lock, "RLock": RLock, "Semaphore": Semaphore, "BoundedSemaphore": Semaphore}
PLAIN = int | float | str | None


class Program:
    """Threads of one program at their first steps: `start` has a machine state for each."""

    def __init__(
        self, threads: Sequence[Thread], shared: Mapping[str, Any] | None, source: str | None
    ) -> None:
        calls = _calls(threads, source)
        if source is None:
            self.text, definitions, found, constants = _from_functions(
                [call for call, _ in calls], shared or {}
            )
        else:
            self.text, definitions, found, constants = _from_text(source)
        self.heap = Heap({**found, **(shared or {})})
        self.lines = self.text.splitlines()
        codes = self._compile(definitions, constants)
        self.names = [call if isinstance(call, str) else call.__name__ for call, _ in calls]
        for name in self.names:
            if name not in codes:
                raise NotUnderstood(f"The text defines no function {name}: write it with `def {name}(...)`.")
        self.machine = Machine(codes, self.heap, self._quiet(codes))
        self.start = [
            self._start(codes[name], arguments)
            for name, (_, arguments) in zip(self.names, calls, strict=True)
        ]

    def _compile(
        self, definitions: Mapping[str, ast.FunctionDef], constants: Mapping[str, Any]
    ) -> dict[str, Code]:
        names = self.heap.names
        known = Known(
            references={name: value for name, value in names.items() if not isinstance(value, int)},
            cells={name: value for name, value in names.items() if isinstance(value, int)},
            constants={name: value for name, value in constants.items() if name not in names},
            functions=frozenset(definitions),
        )
        return {name: compile_function(node, known) for name, node in definitions.items()}

    def _start(self, code: Code, arguments: tuple) -> int:
        """Begin a thread; a parameter without an argument takes the shared list, dict or lock of its name."""
        for name in code.parameters[len(arguments) : len(code.parameters) - len(code.defaults)]:
            if not isinstance(self.heap.names.get(name), Ref | LockRef):
                raise NotUnderstood(
                    f"{code.name} has the parameter {name}, for which there is no argument: write "
                    f"({code.name}, value) in the list of threads."
                )
            arguments = (*arguments, self.heap.names[name])
        try:
            return self.machine.start(code.name, arguments)
        except Wrong as problem:
            raise NotUnderstood(f"{problem}.") from None

    def _quiet(self, codes: Mapping[str, Code]) -> frozenset[int]:
        """Return the cells that no instruction can write."""
        every = frozenset(range(len(self.heap.cells)))
        written: set[int] = set()
        for code in codes.values():
            for operation, argument, _ in code.instructions:
                if operation == "WRITE_CELL":
                    written.add(argument)
                elif operation == "STORE_INDEX":
                    written |= every if argument is None else self.heap.reachable(argument)
        return every - (written - self.heap.references())

    def line(self, number: int) -> str:
        """Return the text of a line."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""


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
    if isinstance(value, PLAIN | range):
        return value
    if isinstance(value, tuple | list) and len(value) <= 100:
        return tuple(map(_argument, value))
    raise TypeError(
        f"A thread gets the argument {value!r}, but arguments are numbers, texts and tuples of them."
    )


# -- Python functions --------------------------------------------------------------------------------------


def _from_functions(
    functions: Sequence[FunctionType], shared: Mapping[str, Any]
) -> tuple[str, dict[str, ast.FunctionDef], dict[str, Any], dict[str, Any]]:
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
        for name in _global_names(function):
            value = function.__globals__.get(name)
            if isinstance(value, FunctionType) and name not in shared:
                todo.append(value)
            elif name in function.__globals__ and name not in shared:
                _sort_in(name, value, function, found, constants)
    text = "\n\n\n".join(pieces.values()) + "\n"
    return text, _definitions(parse(text)), found, constants


def _sort_in(name: str, value: Any, function: FunctionType, found: dict, constants: dict) -> None:
    locks = (Lock, RLock, Semaphore)
    is_lock = isinstance(value, locks) or type(value).__module__ in ("_thread", "threading")
    if isinstance(value, list | dict) or (is_lock and not callable(value)):
        found[name] = value
    elif isinstance(value, PLAIN):
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


def _global_names(function: FunctionType) -> tuple[str, ...]:
    return function.__code__.co_names


def _definitions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


# -- a text ------------------------------------------------------------------------------------------------


def _from_text(text: str) -> tuple[str, dict[str, ast.FunctionDef], dict[str, Any], dict[str, Any]]:
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
                value = _literal(node.value, 0)
            except ValueError:
                continue
            is_shared = name in declared or not isinstance(value, PLAIN)
            (found if is_shared else constants)[name] = value
    return text, _definitions(tree), found, constants


def _literal(node: ast.expr, depth: int) -> Any:
    """Return the value of a literal, Lock(), Semaphore(2), [Lock() for _ in range(3)]; else ValueError."""
    if depth > 5:
        raise ValueError
    if isinstance(node, ast.Constant) and isinstance(node.value, PLAIN):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _literal(node.operand, depth + 1)
        return -value if isinstance(value, int | float) else _literal(ast.Lambda(), depth)
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
            return MAKERS[name](*(values if MAKERS[name] is Semaphore else ()))
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        counted = node.generators[0].iter
        if isinstance(counted, ast.Call) and getattr(counted.func, "id", "") == "range" and counted.args:
            count = _literal(counted.args[-1], depth + 1)
            if isinstance(count, int) and 0 <= count <= 20 and len(counted.args) == 1:
                return [_literal(node.elt, depth + 1) for _ in range(count)]
    raise ValueError
