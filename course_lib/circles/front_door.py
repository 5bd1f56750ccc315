"""The one place that decides what may be multiplied.

Every rung is called through `through_the_door`: the rungs themselves hold nothing but the idea they teach.
Operands that make no sense are refused with one sentence; empty products are answered here; everything else
(strided views, read-only arrays, NaN and inf) reaches the rung, which must get it right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Matmul = Callable[[Array, Array], Array]


class RungUnavailable(RuntimeError):
    """This computer lacks something the rung needs; the message says what."""


def check_operands(
    A: Any,
    B: Any,
    dtypes: Sequence[str] = ("float32", "float64"),
    gpu: bool = False,
    batched: bool = False,
) -> None:
    """Raise one sentence unless A (M, K) and B (K, N) are NumPy arrays of one dtype out of `dtypes`.

    With `gpu` they may also be arrays on the GPU; `batched`: A (batch, M, K) and B (batch, K, N). Raises
    TypeError for what the operands are (lists, masked arrays, integers, mixed dtypes) and ValueError for
    their shapes.
    """
    for name, operand in (("A", A), ("B", B)):
        _check_type(name, operand, gpu, 3 if batched else 2)
        _check_dimensions(name, operand, batched)
        _check_dtype(name, operand, dtypes)
    if _name(A.dtype) != _name(B.dtype):
        raise TypeError(
            f"A is {A.dtype} and B is {B.dtype}, but both must have one dtype: "
            f"convert one of them, for example B.astype(np.{A.dtype})."
        )
    if batched and A.shape[0] != B.shape[0]:
        raise ValueError(
            f"A is a batch of {A.shape[0]} matrices and B of {B.shape[0]}, but both need as many: "
            "repeat a single one with np.broadcast_to, which copies nothing."
        )
    if A.shape[-1] != B.shape[-2]:
        raise ValueError(
            f"A is {_by(A)} and B is {_by(B)}, but A needs as many columns ({A.shape[-1]}) "
            f"as B has rows ({B.shape[-2]}): check the order of the operands, or transpose one."
        )


def is_on_gpu(operand: Any) -> bool:
    """Say whether an array is in a GPU's memory: a torch tensor there, or one of CuPy or Numba."""
    try:
        return hasattr(operand, "__cuda_array_interface__")
    except RuntimeError:  # what torch answers for a tensor on the GPU that wants a gradient
        return True


def through_the_door(
    load: Callable[[], Matmul],
    name: str,
    dtypes: Sequence[str],
    missing: Callable[[], str | None],
    gpu: bool = False,
    batched: bool = False,
) -> Matmul:
    """Return matmul(A, B) that checks its operands, loads the rung's code on first use and calls it.

    `load` imports and returns the rung's own function; `missing` returns the sentence that says what this
    computer lacks for it, or None. The function raises RungUnavailable with that sentence. A rung for a GPU
    also takes arrays that are there, and gets empty ones of them as well: their zeros belong there too.
    A `batched` one multiplies matrix by matrix, A (batch, M, K) by B (batch, K, N).
    """

    @functools.cache  # a refusal is an exception and is not remembered: it is asked again
    def rung() -> Matmul:
        lacking = missing()
        if lacking:
            raise RungUnavailable(f"The rung '{name}' cannot run here: {lacking}")
        return load()

    def matmul(A: Array, B: Array) -> Array:
        check_operands(A, B, dtypes, gpu, batched)
        multiply = rung()
        if 0 in (*A.shape, *B.shape) and not gpu:  # an empty sum is zero, an empty matrix stays empty
            return np.zeros((*A.shape[:-1], B.shape[-1]), A.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # inf and NaN are answers here, not surprises
            return multiply(A, B)

    shapes = "A (batch, M, K) and B (batch, K, N)" if batched else "A (M, K) and B (K, N)"
    matmul.__doc__ = f"Return A @ B by the rung '{name}': {shapes}, both {' or both '.join(dtypes)}."
    matmul.__name__ = matmul.__qualname__ = "matmul"
    return matmul


def _check_type(name: str, operand: Any, gpu: bool, dimensions: int) -> None:
    if isinstance(operand, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, but a matrix product would ignore its mask: "
            f"fill it first, for example {name}.filled(0)."
        )
    if isinstance(operand, np.ndarray) or (gpu and is_on_gpu(operand)):
        return
    kind = type(operand)
    what = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    wanted, fix = f"a {dimensions}-D NumPy array", f"pass np.asarray({name}, dtype=float)"
    if gpu:
        wanted = f"{wanted} or an array on the GPU"
        fix = f"pass np.asarray({name}, dtype=np.float32), or move a torch tensor with {name}.cuda()"
    raise TypeError(f"{name} is of type {what}, but {wanted} is needed: {fix}.")


def _check_dimensions(name: str, operand: Any, batched: bool) -> None:
    dimensions = len(operand.shape)
    if batched and dimensions != 3:
        fix = f"write {name}[None] for a batch of one" if dimensions == 2 else "reshape it"
        raise ValueError(
            f"{name} is {dimensions}-D with shape {tuple(operand.shape)}, but a batch of matrices, which is "
            f"3-D, is needed: {fix}."
        )
    if batched:
        return
    if dimensions == 2:
        return
    fix = {
        0: "a scalar is no matrix, write A * scalar instead",
        1: f"write {name}[:, None] for a column or {name}[None, :] for a row",
    }.get(dimensions, "multiply its 2-D slices one by one")
    raise ValueError(
        f"{name} is {dimensions}-D with shape {tuple(operand.shape)}, but a 2-D matrix is needed: {fix}."
    )


def _check_dtype(name: str, operand: Any, dtypes: Sequence[str]) -> None:
    wanted = " or ".join(dtypes)
    if _name(operand.dtype) not in dtypes:
        is_torch = type(operand).__module__.startswith("torch")
        fix = f"to(torch.{dtypes[-1]})" if is_torch else f"astype(np.{dtypes[-1]})"
        raise TypeError(
            f"{name} has dtype {operand.dtype}, but this rung multiplies {wanted}: "
            f"convert it with {name}.{fix}."
        )
    if isinstance(operand, np.ndarray) and not operand.dtype.isnative:
        raise TypeError(
            f"{name} is {operand.dtype.str}, in the byte order of another machine, but the native order is "
            f"needed: convert it with {name}.astype(np.{operand.dtype.name})."
        )


@functools.lru_cache(maxsize=64)  # NumPy makes a dtype's name anew each time: more work than a small product
def _name(dtype: Any) -> str:
    """Return "float32" for NumPy's dtype of that name and for torch's."""
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype).removeprefix("torch.")


def _by(matrix: Any) -> str:
    return " x ".join(str(size) for size in matrix.shape)
