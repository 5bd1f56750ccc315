"""A kernel's own text: found, parsed, and the names in it looked up where the kernel would find them."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import numpy as np


class NotTraceable(Exception):
    """The kernel uses something the tracer does not understand, or does something no GPU could."""

    def __init__(self, sentence: str, file: str = "", line: int = 0) -> None:
        self.sentence, self.file, self.line = sentence, file, line
        is_cell = "ipykernel_" in file or file.startswith("<")  # a notebook's cell has no file to look into
        place = f"line {line}: " if is_cell else f"{file}:{line}: "
        super().__init__(f"{place}{sentence}" if line else sentence)


NOTHING = object()
#: names of numba.cuda that may be imported by themselves (`from numba.cuda import threadIdx`)
_FROM_CUDA = (
    *("threadIdx", "blockIdx", "blockDim", "gridDim", "laneid", "warpsize", "grid", "gridsize"),
    *("shared", "local", "const", "atomic", "cg", "fma", "selp", "popc", "ffs", "clz", "brev", "cbrt"),
    *("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or", "syncwarp"),
    *("threadfence", "threadfence_block", "threadfence_system", "activemask", "lanemask_lt"),
    *("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "ballot_sync"),
    *("any_sync", "all_sync", "eq_sync", "match_any_sync", "match_all_sync"),
)


class Source:
    """The text of a kernel or device function. Line numbers are those of its file (or notebook cell)."""

    def __init__(self, function: Any) -> None:
        python = plain_function(function)
        self.function = python
        self.file = python.__code__.co_filename
        try:
            lines, first = inspect.getsourcelines(python)
        except (OSError, TypeError):
            raise NotTraceable(
                f"The source of {python.__name__} cannot be found; define it in a file or in a notebook cell."
            ) from None
        try:
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except SyntaxError:
            raise NotTraceable(
                f"{python.__name__} must be a function of its own, not part of a line."
            ) from None
        ast.increment_lineno(tree, first - 1)
        node = tree.body[0]
        if not isinstance(node, ast.FunctionDef):
            node = _of_lambda(tree, python, self.file, first)
        self.node = node
        self.name = node.name
        if max(line or 0 for *_, line in python.__code__.co_lines()) > node.end_lineno:
            # inspect takes a backslash at the margin for the end of the function, and Python does not
            self.refuse(
                node, f"The text of {self.name} has an end before its last statement; indent its lines."
            )
        closure = inspect.getclosurevars(python)
        self._names = {**python.__globals__, **closure.nonlocals}
        _refuse_parameters(node.args, self.file)
        self.parameters = [argument.arg for argument in node.args.args]
        values = python.__defaults__ or ()
        self.defaults = dict(zip(self.parameters[len(self.parameters) - len(values) :], values, strict=True))

    def lookup(self, name: str) -> Any:
        """Return what a global or closure name means, NOTHING if it means nothing."""
        return self._names.get(name, getattr(builtins, name, NOTHING))

    def refuse(self, node: ast.AST, sentence: str) -> None:
        """Stop with a sentence about a place in the text."""
        raise NotTraceable(sentence, self.file, getattr(node, "lineno", self.node.lineno))


def _of_lambda(tree: ast.AST, python: types.FunctionType, file: str, line: int) -> ast.FunctionDef:
    """Return the only lambda in a statement, with these parameters, as a function of one line."""
    names = python.__code__.co_varnames[: python.__code__.co_argcount]
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) and tuple(argument.arg for argument in node.args.args) == names
    ]
    if len(found) != 1:
        raise NotTraceable(f"{python.__name__} is not a function made with def.", file, line)
    (node,) = found
    result = ast.copy_location(ast.Return(node.body), node.body)
    made = ast.FunctionDef("of_a_lambda", node.args, [result], [], None, None)
    return ast.fix_missing_locations(ast.copy_location(made, node))


def plain_function(function: Any) -> types.FunctionType:
    """Return the Python function behind a kernel: numba's dispatchers, its simulator's kernels, or itself."""
    for attribute in ("py_func", "fn"):
        inner = getattr(function, attribute, None)
        if isinstance(inner, types.FunctionType):
            return inner
    if isinstance(function, types.FunctionType):
        return function
    raise NotTraceable(
        f"trace() was given a {type(function).__name__}, but it needs a kernel: a function with @cuda.jit."
    )


def is_device_function(value: Any) -> bool:
    """Whether a kernel may call this: something that numba has compiled or will compile.

    Or a plain function marked `runs_as_written`, for which Numba has been taught a stand-in (an overload).
    """
    if isinstance(value, types.FunctionType):
        return getattr(value, "runs_as_written", False)
    return isinstance(getattr(value, "py_func", getattr(value, "fn", None)), types.FunctionType)


def cuda_path(value: Any) -> str | None:
    """Return the name of something of numba.cuda that was imported by itself, '' for the module."""
    if isinstance(value, types.ModuleType):
        return "" if value.__name__ == "numba.cuda" or value.__name__.endswith(".numba.cuda") else None
    module = sys.modules.get("numba.cuda")
    for name in _FROM_CUDA if module else ():
        if getattr(module, name, NOTHING) is value:
            return name
    return None


def _refuse_parameters(arguments: ast.arguments, file: str) -> None:
    for group, what in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if group is not None:
            raise NotTraceable(
                f"{what}{group.arg} is not supported: name every parameter.", file, group.lineno
            )
    for argument in (*arguments.kwonlyargs, *arguments.posonlyargs):
        raise NotTraceable(
            f"{argument.arg} is keyword-only or positional-only; the tracer takes plain parameters.",
            file,
            argument.lineno,
        )


def called_by_name(call: Callable, source: Source, positional: list, named: dict, node: ast.AST) -> list:
    """Return a call's arguments in the order of the parameters, with NOTHING where a default stands."""
    if len(positional) > len(source.parameters):
        source.refuse(node, f"{source.name} takes {len(source.parameters)} arguments, got {len(positional)}.")
    values = dict(zip(source.parameters, positional, strict=False))
    for name, value in named.items():
        if name not in source.parameters or name in values:
            call(node, f"{source.name} takes no further argument {name!r}.")
        values[name] = value
    for name in source.parameters:
        if name not in values and name not in source.defaults:
            call(node, f"{source.name} is called without its argument {name!r}.")
    return [values.get(name, NOTHING) for name in source.parameters]


def dtype_of(value: Any) -> np.dtype | None:
    """Return the NumPy type that a type stands for: float, np.float32, numba.float32, dtype('f4')."""
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    if isinstance(value, np.dtype):
        return value
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value)
    if type(value).__module__.startswith(("numba.", "numba_cuda.")):
        from numba.np.numpy_support import as_dtype

        try:
            return as_dtype(value)
        except NotImplementedError:
            return None
    return None


_PYTHON_TYPES = {int: np.dtype(np.int64), float: np.dtype(np.float64), bool: np.dtype(np.bool_)}


# -- shapes of shared and local arrays: what Numba knows of them when it compiles a kernel -------------------


def unfit_part(
    shape: ast.expr, source: Source, is_kernel: bool, static: Callable[[ast.expr], Any]
) -> ast.expr | None:
    """Return the part of a shape that Numba does not know when it compiles; None if it knows all of it.

    `static` gives the value of a name from outside of the function. What a device function gets as an
    argument may be known where it is called, so it is let pass.
    """

    def unfit(node: ast.expr, seen: frozenset[str] = frozenset()) -> ast.expr | None:
        if isinstance(node, ast.Tuple):
            return next((bad for part in node.elts if (bad := unfit(part, seen)) is not None), None)
        if isinstance(node, ast.IfExp):
            return unfit(node.body, seen) or unfit(node.orelse, seen)
        return None if is_known(node, seen) else node

    def is_known(node: ast.expr, seen: frozenset[str]) -> bool:
        kinds = set(map(type, ast.walk(node)))
        if ast.Name not in kinds:
            return ast.Call not in kinds  # Python computes 2 * 16
        value = static(node)
        if value is not NOTHING:
            values = value if type(value) is tuple else (value,)
            return all(type(one) is int for one in values)
        if isinstance(node, ast.Name):
            return is_known_local(node.id, seen)
        if isinstance(node, ast.Subscript):
            return unfit(node.value, seen) is None and unfit(node.slice, seen) is None
        return isinstance(node, ast.Attribute) and node.attr == "ndim"  # part of an array's type

    def is_known_local(name: str, seen: frozenset[str]) -> bool:
        if name in source.parameters:
            return not is_kernel
        inside = list(ast.walk(source.node))
        names = [one for one in inside if isinstance(one, ast.Name) and one.id == name]
        stores = [one for one in names if isinstance(one.ctx, ast.Store)]
        values = [
            one.value
            for one in inside
            if isinstance(one, ast.Assign)
            for target in one.targets
            if target in stores
        ]
        if name in seen or len(values) != 1 or len(stores) != 1:
            return False
        return unfit(values[0], seen | {name}) is None

    return unfit(shape)
