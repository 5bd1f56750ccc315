"""Shapes of shared and local arrays: what Numba knows of them when it compiles a kernel.

Numba takes a number in the text, or a name of a Python integer, or a tuple of them: a name from outside
the kernel, or one that it gives such a value, once. It computes nothing: T + 1 is no constant to
it, nor is a NumPy integer. Found by compiling such kernels with numba-cuda 0.30.4.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from course_lib.simulators.gpu.source import NOTHING, Source


def unfit_part(
    shape: ast.expr, source: Source, is_kernel: bool, static: Callable[[ast.expr], Any]
) -> ast.expr | None:
    """Return the part of a shape that Numba does not know when it compiles; None if it knows all of it.

    `static` gives the value of a name from outside of the function. What a device function gets as an
    argument may be known where it is called, so it is let pass.
    """
    return _Shape(source, is_kernel, static).unfit(shape, frozenset())


class _Shape:
    def __init__(self, source: Source, is_kernel: bool, static: Callable[[ast.expr], Any]) -> None:
        self._source, self._is_kernel, self._static = source, is_kernel, static

    def unfit(self, node: ast.expr, seen: frozenset[str]) -> ast.expr | None:
        if isinstance(node, ast.Tuple):
            return next((bad for part in node.elts if (bad := self.unfit(part, seen)) is not None), None)
        if isinstance(node, ast.IfExp):
            return self.unfit(node.body, seen) or self.unfit(node.orelse, seen)
        return None if self._is_known(node, seen) else node

    def _is_known(self, node: ast.expr, seen: frozenset[str]) -> bool:
        if not any(isinstance(inner, ast.Name) for inner in ast.walk(node)):
            return not any(isinstance(inner, ast.Call) for inner in ast.walk(node))  # Python computes 2 * 16
        value = self._static(node)
        if value is not NOTHING:
            return _is_whole(value)
        if isinstance(node, ast.Name):
            return self._is_known_local(node.id, seen)
        if isinstance(node, ast.Subscript):
            return self.unfit(node.value, seen) is None and self.unfit(node.slice, seen) is None
        return isinstance(node, ast.Attribute) and node.attr == "ndim"  # part of an array's type

    def _is_known_local(self, name: str, seen: frozenset[str]) -> bool:
        if name in self._source.parameters:
            return not self._is_kernel
        values = [
            inner.value
            for inner in ast.walk(self._source.node)
            if isinstance(inner, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in inner.targets)
        ]
        stores = [
            inner
            for inner in ast.walk(self._source.node)
            if isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store)
        ]
        if name in seen or len(values) != 1 or len(stores) != 1:
            return False
        return self.unfit(values[0], seen | {name}) is None


def _is_whole(value: Any) -> bool:
    return type(value) is int or (type(value) is tuple and all(type(part) is int for part in value))
