"""The inputs of a comparison: copies that lie in memory as the original does, and whether they change."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np

PAGE = 4096
_NEVER_CHANGE = (int, float, complex, str, bytes, bool, type(None), np.generic)


def clone(inputs: tuple) -> tuple:
    """Return copies of the inputs with the same layout and the same place within a page of memory."""
    return tuple(_clone(value) for value in inputs)


def _clone(value: Any) -> Any:
    if type(value) is np.ndarray and not value.dtype.hasobject:
        return _clone_array(value)
    if _is_tensor(value):
        return _clone_tensor(value)
    return copy.deepcopy(value)


def _clone_array(array: np.ndarray) -> np.ndarray:
    """Copy the array's whole stretch of memory: strides, gaps and alignment decide speed and must stay.

    NumPy's own copy would turn X[:, ::2] into a dense array and so remove what is being measured.
    """
    if array.size == 0:
        return array.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.empty(high - low + PAGE, dtype=np.uint8)
    shift = (low - memory.ctypes.data) % PAGE
    first = shift + array.__array_interface__["data"][0] - low
    copied = np.ndarray(array.shape, array.dtype, memory, first, array.strides)
    copied[...] = array
    copied.flags.writeable = array.flags.writeable
    return copied


def _clone_tensor(tensor: Any) -> Any:
    import torch

    copied = tensor.detach().clone(memory_format=torch.preserve_format)
    if copied.layout is torch.strided and copied.stride() != tensor.stride() and 0 not in tensor.stride():
        spread = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device)
        copied = spread.copy_(copied)
    return copied.requires_grad_(tensor.requires_grad)


def changed(inputs: tuple, original: tuple) -> bool:
    """Say whether a call changed its inputs. Objects that cannot be compared count as unchanged."""
    return any(_changed(now, before) for now, before in zip(inputs, original, strict=True))


def _changed(now: Any, before: Any) -> bool:
    if isinstance(before, _NEVER_CHANGE):
        return False
    if isinstance(before, np.ndarray):
        return not _same_array(now, before)
    if _is_tensor(before):
        return not _same_tensor(now, before)
    if isinstance(before, list | tuple):
        return len(now) != len(before) or any(map(_changed_item, now, before))
    if isinstance(before, dict):
        return now.keys() != before.keys() or any(_changed_item(now[k], before[k]) for k in before)
    if isinstance(before, set | frozenset | bytearray):
        return now != before
    return False


def _changed_item(now: Any, before: Any) -> bool:
    # items, unlike arguments, can be replaced; `is` first, because NaN differs from itself
    if now is before:
        return False
    if isinstance(before, _NEVER_CHANGE):
        both_nan = now != now and before != before
        return type(now) is not type(before) or bool(now != before and not both_nan)
    return type(now) is not type(before) or _changed(now, before)


def _same_array(now: np.ndarray, before: np.ndarray) -> bool:
    if (now.shape, now.dtype, _steps(now)) != (before.shape, before.dtype, _steps(before)):
        return False
    if now.dtype.hasobject:
        return not _changed(now.tolist(), before.tolist())
    if now.dtype.kind in "fc":  # two NaNs in the same place are no change
        return np.array_equal(now, before, equal_nan=True)
    return np.array_equal(now, before)


def _steps(array: np.ndarray) -> list[int]:
    """Return the strides that lead to another element: NumPy sets the others anew in a copy."""
    return [step for many, step in zip(array.shape, array.strides, strict=True) if many > 1 and array.size]


def _same_tensor(now: Any, before: Any) -> bool:
    import torch

    if (now.shape, now.dtype) != (before.shape, before.dtype):
        return False
    with torch.no_grad():
        # NaN-tolerant and exact; torch.equal would call NaN a change
        return bool(((now == before) | ((now != now) & (before != before))).all())


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


# -- what they are, in words -------------------------------------------------------------------------------


def arrays(inputs: tuple) -> list:
    """Return the arrays and tensors among the inputs."""
    return [value for value in inputs if isinstance(value, np.ndarray) or _is_tensor(value)]


def dtype_of(inputs: tuple) -> str:
    """Return the dtype the arrays share, all of them when they differ, "" without arrays."""
    names = [str(array.dtype).removeprefix("torch.") for array in arrays(inputs)]
    return ", ".join(dict.fromkeys(names))


def layout_of(array: Any) -> str:
    """Return "C order", "Fortran order" or the strides in bytes."""
    if isinstance(array, np.ndarray):
        strides, is_c, is_f = array.strides, array.flags.c_contiguous, array.flags.f_contiguous
    else:
        strides = tuple(stride * array.element_size() for stride in array.stride())
        is_c, is_f = array.is_contiguous(), array.ndim == 2 and array.t().is_contiguous()
    if is_c:
        return "C order"
    return "Fortran order" if is_f else f"strides {strides} bytes"


def matmul_flops(inputs: tuple) -> float | None:
    """Return 2MNK when the inputs are two matrices (M, K) and (K, N), else None."""
    if len(inputs) != 2 or len(arrays(inputs)) != 2:
        return None
    first, second = (tuple(array.shape) for array in inputs)
    if len(first) != 2 or len(second) != 2 or first[1] != second[0]:
        return None
    return 2.0 * first[0] * first[1] * second[1]
