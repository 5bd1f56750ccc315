"""Functions of `math`, NumPy, Python and `numba.cuda` that compute with a lane's own numbers."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.machine import LaneMachine
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import BINARY, Value


def fma(machine: LaneMachine, m: Mask, a: Value, b: Value, c: Value) -> Value:
    """Return a * b + c (with two roundings here, one on the GPU)."""
    machine.tally.flops += 2 * m.count
    return BINARY["Add"](BINARY["Mult"](a, b), c)


def selp(machine: LaneMachine, m: Mask, condition: Value, one: Value, other: Value) -> Value:
    """Return `one` where the condition holds and `other` elsewhere, without a branch."""
    condition = numbers.truth(condition)
    if type(condition) is bool:
        return one if condition else other
    return numbers.where(condition, numbers.plain(one), numbers.plain(other))


def popc(machine: LaneMachine, m: Mask, value: Value) -> Value:
    """Return the number of bits that are set."""
    value = numbers.plain(value)
    if type(value) is np.ndarray and value.dtype.kind == "i":  # a small one has 32 bits, as ballots have
        is_small = (value >= -(2**31)) & (value < 2**31)
        value = np.where(is_small, value & np.int64(0xFFFFFFFF), value)
    if type(value) is np.ndarray:
        return np.bitwise_count(value).astype(np.int64)
    bits = 64 if abs(value) >= 2**31 else 32
    return (int(value) & ((1 << bits) - 1)).bit_count()


def ffs(machine: LaneMachine, m: Mask, value: Value) -> Value:
    """Return the place of the lowest bit that is set, from 1; 0 if there is none."""
    value = numbers.vector(value, machine.lanes).astype(np.int64)
    lowest = value & -value
    return np.where(value == 0, 0, np.bitwise_count((lowest - 1).view(np.uint64)).astype(np.int64) + 1)


def clz(machine: LaneMachine, m: Mask, value: Value) -> Value:
    """Return the number of zero bits before the first that is set, of 32."""
    value = numbers.vector(value, machine.lanes).astype(np.int64) & 0xFFFFFFFF
    return 31 - np.floor(np.log2(np.maximum(value, 0.5))).astype(np.int64)


def brev(machine: LaneMachine, m: Mask, value: Value) -> Value:
    """Return the 32 bits in reverse order."""
    value = numbers.vector(value, machine.lanes).astype(np.int64) & 0xFFFFFFFF
    result = np.zeros_like(value)
    for bit in range(32):
        result |= ((value >> bit) & 1) << (31 - bit)
    return result


def _float(value: Value) -> Value:
    value = numbers.widened(numbers.plain(value))
    if numbers.kind(value) in "iu":
        return value.astype(np.float64) if type(value) is np.ndarray else np.float64(value)
    return value


def _numpy(function: Callable) -> Callable:
    def compute(machine: LaneMachine, m: Mask, *values: Value) -> Value:
        if len(values) != function.nin:  # NumPy would take one more for the place of its result
            raise TypeError(f"{function.__name__} takes {function.nin} positional arguments")
        if len(values) == 2:
            values = numbers.common(*values)
        result = function(*map(_float, values))
        return numbers.scalar(result) if not isinstance(result, np.ndarray) else result

    return compute


def _by_python(function: Callable) -> Callable:
    table = np.vectorize(function, otypes=[np.float64])

    def compute(machine: LaneMachine, m: Mask, value: Value) -> Value:
        value = _float(value)
        result = table(np.where(m.lanes, value, 1.0) if type(value) is np.ndarray else value)
        return result.astype(value.dtype) if type(value) is np.ndarray else value.dtype.type(result)

    return compute


def rounded(machine: LaneMachine, m: Mask, value: Value) -> Value:
    """Return the nearest whole number, of two the even one."""
    value = numbers.plain(value)
    if numbers.kind(value) in "iub":
        return numbers.widened(value)
    result = np.rint(value)
    return result.astype(np.int64) if type(result) is np.ndarray else int(result)


def _extreme(function: Callable) -> Callable:
    def compute(machine: LaneMachine, m: Mask, *values: Value) -> Value:
        if len(values) == 1 and isinstance(values[0], tuple):
            values = values[0]
        result = numbers.plain(values[0])
        for value in values[1:]:
            result = numbers.as_value(function(*numbers.common(result, value)))
        return result

    return compute


def absolute(machine: LaneMachine, m: Mask, value: Value) -> Value:
    """Return |value|."""
    value = numbers.plain(value)
    if numbers.kind(value) == "u":  # in its own width, which a minus before it would show
        return value
    result = np.abs(numbers.widened(value))
    return result if type(result) is np.ndarray else numbers.scalar(result)


def divmod_of(machine: LaneMachine, m: Mask, a: Value, b: Value) -> tuple[Value, Value]:
    """Return a // b and a % b."""
    return BINARY["FloorDiv"](a, b), BINARY["Mod"](a, b)


def length(machine: LaneMachine, m: Mask, array: Any) -> Value:
    """Return the length of an array's first dimension, or of a tuple."""
    return len(array) if isinstance(array, tuple) else array.shape[0]


_ALIKE = (
    *("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("fmod", "hypot", "copysign", "fabs", "isnan", "isinf", "isfinite", "degrees", "radians"),
    *("floor", "ceil", "trunc"),  # floats on a GPU, unlike everywhere else: no index
)
_ARCS = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")
MATH: dict[str, Callable] = {
    **{name: _numpy(getattr(np, name)) for name in _ALIKE},
    **{f"a{name}": _numpy(getattr(np, f"arc{name}")) for name in _ARCS},
    **{name: _by_python(getattr(math, name)) for name in ("erf", "erfc", "lgamma", "gamma")},
    "pow": lambda machine, m, a, b: BINARY["Pow"](_float(a), _float(b)),
}

#: functions of NumPy for which numba-cuda 0.30.4 makes no code, and what it does compile
NUMPY_REFUSED = {
    **{name: f"math.{name}()" for name in ("sqrt", "exp", "expm1", "log1p", "floor", "ceil", "trunc")},
    **{name: f"math.{name}()" for name in ("fabs", "fmod", "copysign", "isinf", "isfinite")},
    "absolute": "abs()",
    "power": "**",
    "sign": "a comparison with 0",
}

NUMPY: dict[str, Callable] = {
    **{name: MATH[name] for name in MATH if name not in NUMPY_REFUSED and name != "pow"},
    "minimum": _extreme(np.minimum),
    "maximum": _extreme(np.maximum),
}

BUILTIN: dict[Any, Callable] = {
    builtins.min: _extreme(np.fmin),  # the GPU's min and max give the number beside a NaN
    builtins.max: _extreme(np.fmax),
    builtins.abs: absolute,
    builtins.divmod: divmod_of,
    builtins.len: length,
    builtins.round: rounded,
    builtins.pow: lambda machine, m, a, b: BINARY["Pow"](a, b),
}

CUDA: dict[str, Callable] = {
    "fma": fma,
    "selp": selp,
    "popc": popc,
    "ffs": ffs,
    "clz": clz,
    "brev": brev,
    "cbrt": _numpy(np.cbrt),
}
