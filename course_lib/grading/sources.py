"""Source text of an answer: collecting it from a live function, loading it, and guarding it.

`answer_source` gathers the function and everything of the learner's that it uses, so that the text stands on
its own. `guard` rewrites such a text so that memory nobody wrote reads as NaN and compiled code checks every
index.
"""

from __future__ import annotations

import ast
import builtins
import dis
import importlib
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

from course_lib.grading.vocabulary import NUMBER_TYPES

_NUMBER = itertools.count(1)
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...))
DEEPEST = 8  # containers in each other that still count as a constant


class NoSource(ValueError):
    """The answer's source cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Code:
    """Source text with the name of the function in it that counts; `load()` gives that function."""

    text: str
    entry: str

    def load(self) -> Callable:
        """Run the text in a namespace of its own and return the entry function."""
        return load(self.text, self.entry)


def load(text: str, entry: str, filename: str = "") -> Callable:
    """Run `text` in a namespace of its own, as a notebook would, and return its function `entry`.

    `filename` is a file with this text, for Numba's cache=True; without one there is none.
    """
    if not filename:
        filename = f"<{entry} {next(_NUMBER)}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, filename, "exec"), namespace)
    if not callable(namespace.get(entry)):
        raise NoSource(f"The code defines no function {entry}: write it with `def {entry}(...)`.")
    return namespace[entry]


def answer_source(function: Any) -> Code:
    """Return the source of `function` together with the learner's helpers, constants and imports it uses.

    Raises NoSource with one sentence for what has no source of its own: lambdas, built-ins, classes, values.
    """
    return answer_with_lines(function)[0]


def answer_with_lines(function: Any) -> tuple[Code, tuple[int, ...]]:
    """Return `answer_source`, and for each of its lines the number in the cell it comes from, 0 for none."""
    collector = _Collector()
    name = collector.add_function(function)
    text = "\n".join(["from __future__ import annotations", *collector.pieces]) + "\n"
    lines = [0]
    for piece in collector.pieces:
        first = collector.first_lines.get(piece)
        lines += [first + n if first else 0 for n in range(piece.count("\n") + 1)]
    return Code(text, name), tuple(lines)


def plain_function(function: Any) -> Callable:
    """Return the Python function in `function` (a compiled one is unpacked); NoSource if there is none."""
    plain = getattr(function, "py_func", function)
    if inspect.isfunction(plain):
        return plain
    if inspect.isbuiltin(plain) or type(plain).__name__ in ("ufunc", "_ArrayFunctionDispatcher"):
        name = getattr(plain, "__name__", repr(plain))
        raise NoSource(f"Your answer is the library function {name}: write one of your own with `def`.")
    if callable(plain):
        raise NoSource(f"Your answer is of type {type(plain).__name__}: write a function with `def`.")
    raise NoSource(
        f"Your answer is a {type(plain).__name__}, not a function: hand in the function itself, "
        "without calling it."
    )


class _Collector:
    """Gathers pieces of text: imports and constants, then helpers, the entry last."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.first_lines: dict[str, int] = {}  # of pieces that stand in a cell
        self._done: dict[int, str] = {}

    def add_function(self, function: Any, called: str = "Your answer") -> str:
        """Add the function and what it uses; return the name it has in the text."""
        plain = plain_function(function)
        if id(plain) in self._done:
            return self._done[id(plain)]
        if plain.__name__ == "<lambda>":
            own_name, text = _named_lambda(plain, called)
        else:
            own_name, text = plain.__name__, _text_of(plain)
        self._done[id(plain)] = own_name
        namespace = _namespace(plain)
        for name in sorted(_used_names(plain, text)):
            if name in namespace:
                self._add(name, namespace[name], plain)
        self.pieces.append(text)
        self.first_lines[text] = plain.__code__.co_firstlineno
        return own_name

    def _add(self, name: str, value: Any, user: Callable) -> None:
        if isinstance(value, ModuleType):
            self._line(f"import {value.__name__} as {name}")
        elif _is_constant(value):
            self._line(f"{name} = {value!r}")
        elif lines := _lines_of_number(name, value):
            for line in lines:
                self._line(line)
        elif _belongs_to(value, user):
            if _is_function(value):
                own_name = self.add_function(value, f"Your helper `{name}`")
            else:
                own_name = self._add_class(value)
            if own_name != name:
                self._line(f"{name} = {own_name}")
        else:
            self._line(_import_line(name, value, user))

    def _add_class(self, value: type) -> str:
        if id(value) not in self._done:
            self._done[id(value)] = value.__name__
            self.pieces.append(_text_of(value))
        return value.__name__

    def _line(self, line: str) -> None:
        if line not in self.pieces:
            self.pieces.append(line)


def _text_of(thing: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing)).rstrip()
    except (OSError, TypeError) as problem:
        raise NoSource(
            f"The source of {thing.__name__} cannot be found: define it with `def` in a cell and run that "
            "cell."
        ) from problem


def _named_lambda(function: Callable, called: str) -> tuple[str, str]:
    """Return the name and, written with `def`, the text of a lambda that is simply given a name."""
    try:
        (statement,) = ast.parse(_text_of(function)).body
        (target,) = statement.targets
        arguments = [ast.unparse(node.args) for node in ast.walk(statement) if isinstance(node, ast.Lambda)]
        known = isinstance(target, ast.Name) and isinstance(statement.value, ast.Lambda)
    except (NoSource, SyntaxError, ValueError, AttributeError):
        known = False
    if not known or arguments.count(arguments[0]) > 1 or not _takes(statement.value, function):
        raise NoSource(f"{called} is a lambda: write a function with `def`, so that errors have a line.")
    head = f"def {target.id}({ast.unparse(statement.value.args)}):"
    return target.id, f"{head}\n    return {ast.unparse(statement.value.body)}"


def _takes(node: ast.Lambda, function: Callable) -> bool:
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    return names == list(function.__code__.co_varnames[: function.__code__.co_argcount])


def _namespace(function: Callable) -> dict[str, Any]:
    """Return what names mean inside `function`: its closure first, then its globals."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    closure = {}
    for name, cell in cells.items():
        try:
            closure[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return {**function.__globals__, **closure}


def _used_names(function: Callable, text: str) -> set[str]:
    """Return the global and closure names that the function's code, decorators and defaults use."""
    names = set(_global_names(function.__code__)) | set(function.__code__.co_freevars)
    try:
        head = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    except (StopIteration, SyntaxError):
        return names
    outside = [*head.decorator_list, *head.args.defaults, *filter(None, head.args.kw_defaults)]
    return names | {node.id for part in outside for node in ast.walk(part) if isinstance(node, ast.Name)}


def _global_names(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _is_constant(value: Any, depth: int = 0) -> bool:
    """Whether the value can be written as a literal: a number, a text, or containers of those."""
    if depth > DEEPEST:  # a list may even contain itself
        return False
    if isinstance(value, dict):
        return _is_constant([*value, *value.values()], depth + 1)
    if isinstance(value, tuple | list | set | frozenset):
        return len(value) <= 1000 and all(_is_constant(item, depth + 1) for item in value)
    is_plain = isinstance(value, PLAIN) and type(value).__module__ != "numpy"  # whose float64 is a float
    return is_plain and repr(value) not in ("nan", "inf", "-inf")


def _lines_of_number(name: str, value: Any) -> tuple[str, ...]:
    """Return lines that give `name` a number which has no literal: inf, nan, or one of a type of NumPy's."""
    if type(value) is float:
        return (f'{name} = float("{value!r}")',)
    kind = type(value).__name__
    if type(value).__module__ != "numpy" or kind not in NUMBER_TYPES:
        return ()
    number = value.item()
    written = repr(number) if _is_constant(number) else f'float("{number!r}")'
    return f"from numpy import {kind} as _numpy_{kind}", f"{name} = _numpy_{kind}({written})"


def _is_function(value: Any) -> bool:
    return inspect.isfunction(getattr(value, "py_func", value))


def _belongs_to(value: Any, user: Callable) -> bool:
    """Whether `value` is a function or class written where its user is, not taken from a library."""
    if not (_is_function(value) or inspect.isclass(value)):
        return False
    plain = getattr(value, "py_func", value)
    if plain.__module__ == user.__module__:
        return True
    return getattr(plain, "__globals__", None) is user.__globals__


def _import_line(name: str, value: Any, user: Callable) -> str:
    """Return a line that brings a library's thing in; NoSource for what lives only in the notebook."""
    home, own_name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if own_name is None and (home or "").startswith("numba."):
        own_name = getattr(value, "name", None)  # numba.float32, a type that is no class
    for module in filter(None, (home, "numpy", "math", "numba")):
        if own_name and getattr(_module(module), own_name, None) is value:
            return f"from {module} import {own_name} as {name}"
    owner = getattr(value, "__self__", None)
    if own_name and owner is not None:  # a bound method such as A.dot: the name tells the rules what it is
        return f"def {name}(x):  # bound method\n    return x.{own_name}"
    raise NoSource(
        f"{user.__name__} uses the global {name} ({type(value).__name__}): an answer may use only its "
        "arguments, its own helpers and constants."
    )


def _module(name: str) -> ModuleType | None:
    try:
        return builtins if name == "builtins" else importlib.import_module(name)
    except ImportError:
        return None


# --- guarding -----------------------------------------------------------------------------------------------

EMPTY = {"empty": "full", "empty_like": "full_like"}
COMPILERS = ("njit", "jit")


def guard(text: str) -> str:
    """Return `text` with np.empty filled with NaN and all Numba functions compiled with bounds checks."""
    tree = _Guard().visit(ast.parse(text))
    at = next((n for n, node in enumerate(tree.body) if not _is_future(node)), 0)
    tree.body.insert(at, ast.parse("import numpy as _numpy").body[0])
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Guard(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = _last_name(node.func)
        if name in EMPTY:
            return self._filled(node, EMPTY[name])
        if name in COMPILERS:
            kept = [one for one in node.keywords if one.arg not in ("cache", "boundscheck")]
            node.keywords = [*kept, ast.keyword("boundscheck", ast.Constant(True))]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        bare = {id(one) for one in node.decorator_list if _last_name(one) in COMPILERS}
        node.decorator_list = [
            ast.Call(one, [], []) if id(one) in bare else one for one in node.decorator_list
        ]
        self.generic_visit(node)
        return node

    @staticmethod
    def _filled(node: ast.Call, name: str) -> ast.Call:
        node.func = ast.parse(f"_numpy.{name}", mode="eval").body
        nan = ast.parse("_numpy.nan", mode="eval").body
        if node.args:
            node.args.insert(1, nan)
        else:
            node.keywords.append(ast.keyword("fill_value", nan))
        return node


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
