"""Calls in a kernel, rewritten for lanes in lockstep."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.simulators.gpu import functions, intrinsics, numbers
from course_lib.simulators.gpu.expressions import Expressions
from course_lib.simulators.gpu.shapes import unfit_part
from course_lib.simulators.gpu.source import NOTHING, Source, called_by_name, dtype_of, is_device_function


class Calls(Expressions):
    """Writes the calls of one function."""

    def of_Call(self, node: ast.Call) -> str:
        path = self.path(node.func)
        if path:
            return self.cuda_call(node, path)
        target = self.static(node.func)
        if target is NOTHING:
            self.refuse(node, f"{ast.unparse(node.func)}() is not a function that a traced kernel can call.")
        if target is print:
            return "L.left_out(m, 'print')"  # what a traced kernel prints would come block after block
        if is_device_function(target):
            return self.device_call(node, target)
        dtype = dtype_of(target)
        if dtype is not None:
            return self.cast(node, dtype)
        function = _function_of(target)
        if function is None:
            self.refuse(node, self.not_callable(node, target))
        return self.plain_call(node, function)

    def not_callable(self, node: ast.Call, target: Any) -> str:
        name = ast.unparse(node.func)
        if isinstance(target, types.FunctionType) and not target.__module__.startswith("numpy"):
            return (
                f"{name} is a plain Python function: give it @cuda.jit(device=True) to call it in a kernel."
            )
        instead = (
            functions.NUMPY_REFUSED.get(getattr(target, "__name__", "")) if _is_of_numpy(target) else None
        )
        if instead:
            return f"Numba does not compile {name}() in a kernel: write {instead} instead."
        return f"{name}() is not supported in a traced kernel."

    def arguments(self, node: ast.Call) -> list[str]:
        return [self.expression(argument) for argument in node.args]

    def plain_call(self, node: ast.Call, function: Callable) -> str:
        if node.keywords:
            self.refuse(node, f"{ast.unparse(node.func)}() takes no arguments by name in a traced kernel.")
        name = self.constant(function)
        return f"L.call({name}, {', '.join(['m', *self.arguments(node)])})"

    def cast(self, node: ast.Call, dtype: np.dtype) -> str:
        if len(node.args) != 1 or node.keywords:
            self.refuse(node, f"{ast.unparse(node.func)}() converts one number.")
        return f"L.cast({self.arguments(node)[0]}, {self.constant(dtype)})"

    def cuda_call(self, node: ast.Call, path: str) -> str:
        if path in ("shared.array", "local.array", "const.array_like"):
            return self.array_call(node, path)
        if path in intrinsics.ATOMIC:
            if not node.args:
                self.refuse(node, f"cuda.{path} needs an array.")
            site = self.access(node, node.args[0], "atomic")
            function = self.constant(intrinsics.ATOMIC[path])
            return f"L.call({function}, {', '.join(['m', site, *self.arguments(node)])})"
        if path in intrinsics.CUDA:
            return self.plain_call(node, intrinsics.CUDA[path])
        if path.startswith("cg."):
            self.refuse(node, "cooperative groups need all blocks at once, which lockstep does not have.")
        dtype = dtype_of(self.static(node.func))
        if dtype is not None:
            return self.cast(node, dtype)
        return self.refuse(node, f"cuda.{path} is not supported in a traced kernel.")

    def array_call(self, node: ast.Call, path: str) -> str:
        given = dict(zip(("shape", "dtype"), node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords}
        name = self.target_name or path.split(".")[0]
        if path == "const.array_like":
            if len(node.args) != 1:
                self.refuse(node, "cuda.const.array_like takes one array.")
            return self.expression(node.args[0])
        if set(given) - {"alignment"} != {"shape", "dtype"}:
            self.refuse(node, f"cuda.{path} takes a shape and a dtype.")
        unfit = unfit_part(given["shape"], self.source, self.is_kernel, self.static)
        if unfit is not None:
            self.refuse(
                node,
                f"the shape of cuda.{path} has {ast.unparse(unfit)}, but Numba takes only whole numbers "
                "written here and names of Python integers (or tuples of them) set outside of the kernel: "
                f"compute it there, as in WIDTH = {_example(unfit)}, and write WIDTH here.",
            )
        dtype = dtype_of(self.static(given["dtype"]))
        element = f"L.dtype_of({self.expression(given['dtype'])})" if dtype is None else self.constant(dtype)
        place = self.constant((self.source.function, node.lineno, node.col_offset))  # one for all calls
        method = "shared_array" if path == "shared.array" else "local_array"
        shape = f"L.shape_of({self.expression(given['shape'])})"
        return f"L.{method}({place}, {name!r}, {shape}, {element})"

    def device_call(self, node: ast.Call, target: Any) -> str:
        source = Source(target)
        positional = self.arguments(node)
        named = {keyword.arg: self.expression(keyword.value) for keyword in node.keywords}
        if None in named:
            self.refuse(node, "** is not supported in a traced kernel.")
        values = called_by_name(self.refuse, source, positional, named, node)
        texts = [
            self.constant(numbers.scalar(source.defaults[name])) if value is NOTHING else value
            for name, value in zip(source.parameters, values, strict=True)
        ]
        elsewhere = self.called_at is not None or source.file != self.program.source.file
        name = self.program.add(source, node, line=self.line_of(node) if elsewhere else None)
        given = dict(zip(source.parameters, node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords}
        for place, parameter in enumerate(source.parameters):
            if parameter in given and (roots := self.roots.of(given[parameter])):
                self.uses.handed_on.append((name, place, roots))
        call = f"{name}({', '.join(['m', *texts])})"
        return call if elsewhere else f"L.back({self.source.file!r}, {node.lineno}, {call})"


def _example(part: ast.expr) -> str:
    """Return a number that can be computed outside of a kernel and is like what stands in the shape."""
    names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    is_plain = isinstance(part, ast.BinOp) and all(name.isupper() for name in names)
    return ast.unparse(part) if is_plain else "16"


def _is_of_numpy(target: Any) -> bool:
    return isinstance(target, np.ufunc) or (getattr(target, "__module__", "") or "").startswith("numpy")


def _function_of(target: Any) -> Callable | None:
    """Return what a function of math, NumPy or Python does to lanes."""
    try:
        if target in functions.BUILTIN:
            return functions.BUILTIN[target]
    except TypeError:  # not hashable
        return None
    name = getattr(target, "__name__", "")
    if getattr(target, "__module__", "") == "math":
        return functions.MATH.get(name)
    if _is_of_numpy(target):
        return functions.NUMPY.get(name.replace("arc", "a"))
    return None
