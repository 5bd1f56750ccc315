"""Operators that make one small fault in a CUDA kernel: a barrier, an axis, a bound, an atomic operation.

Those of `operators` that make sense in a kernel are made as well; what a kernel cannot even say (lists,
texts, dtypes of NumPy) is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from course_lib.grading.mutation.operators import OPERATORS, Scope, Texts, text
from course_lib.grading.program import words

NOT_IN_KERNELS = words("items word dtype precision") | {"one list"}
OTHER_AXES = {"x": ("y",), "y": ("x", "z"), "z": ("y",)}
OTHER_INDICES = {
    "threadIdx": ("blockIdx",),
    "blockIdx": ("threadIdx",),
    "blockDim": ("gridDim",),
    "gridDim": ("blockDim",),
}


def barrier(node: ast.AST, scope: Scope) -> Texts:
    """A barrier for the warp alone, or one that only some threads come to."""
    if isinstance(node, ast.Expr) and _path(node.value) == "cuda.syncthreads":
        yield "cuda.syncwarp()"
        yield "if cuda.threadIdx.x > 0:\n    cuda.syncthreads()"


def axis(node: ast.AST, scope: Scope) -> Texts:
    """threadIdx.y for threadIdx.x, and the like."""
    if isinstance(node, ast.Attribute) and _path(node.value).removeprefix("cuda.") in OTHER_INDICES:
        yield from (f"{ast.unparse(node.value)}.{other}" for other in OTHER_AXES.get(node.attr, ()))


def coordinate(node: ast.AST, scope: Scope) -> Texts:
    """The block's index for the thread's, the size of the grid for that of the block."""
    if isinstance(node, ast.Attribute) and node.attr in OTHER_INDICES and _path(node).startswith("cuda."):
        yield from (f"cuda.{other}" for other in OTHER_INDICES[node.attr])


def bound(node: ast.AST, scope: Scope) -> Texts:
    """A test of a bound that is one off, or one of several tests forgotten."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt | ast.LtE):
        left, right = text(node.left), text(node.comparators[0])
        sign = "<" if isinstance(node.ops[0], ast.Lt) else "<="
        yield f"{left} {sign} {right} - 1"
        yield f"{left} {sign} {right} + 1"
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for place in range(len(node.values)):
            yield word.join(text(one) for n, one in enumerate(node.values) if n != place)


def atomic(node: ast.AST, scope: Scope) -> Texts:
    """A plain update where an atomic one is needed."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and _path(call) == "cuda.atomic.add" and len(call.args) == 3:
        array, index, value = map(ast.unparse, call.args)
        yield f"{array}[{index}] += {value}"


KERNEL_OPERATORS: dict[str, Callable[[ast.AST, Scope], Texts]] = {
    **{name: one for name, one in OPERATORS.items() if name not in NOT_IN_KERNELS},
    "barrier": barrier,
    "axis": axis,
    "coordinate": coordinate,
    "bound": bound,
    "atomic": atomic,
}


def _path(node: ast.AST) -> str:
    """Return the dotted name of what is called or named here: "cuda.atomic.add"; "" for all else."""
    inner = node.func if isinstance(node, ast.Call) else node
    named = isinstance(inner, ast.Attribute | ast.Name)
    return ast.unparse(inner) if named else ""
