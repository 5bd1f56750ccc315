"""Arithmetic on lanes with Numba's types.

A value is either the same for all lanes (a Python int or bool, a NumPy unsigned integer or float) or a vector
with an element for each lane. Numba's rules differ from NumPy's: integers are as wide as a pointer (signed as
soon as one operand is), a float32 with an integer of more than 16 bits makes a float64, and a literal such as
0.5 is a float64. Vectors are never changed in place, so the same object always means the same numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Value = Any  # int | bool | np.floating | np.ndarray | Shift
_LOW, _HIGH = -(2**63), 2**63


class Shift:
    """An integer vector plus an integer that all lanes share: `base + by`, added up only when it must be.

    The addresses of a loop over k differ from one turn to the next by such an integer, so what is known of
    `base` need not be found out again.
    """

    __slots__ = ("_vector", "base", "by")

    def __init__(self, base: np.ndarray, by: int) -> None:
        self.base, self.by, self._vector = base, by, None

    def vector(self) -> np.ndarray:
        """Return the sum."""
        if self._vector is None:
            self._vector = self.base + self.by
        return self._vector


def plain(value: Value) -> Value:
    """Return a value without a Shift around it."""
    return value.vector() if type(value) is Shift else value


def is_vector(value: Value) -> bool:
    """Whether a value has an element for each lane."""
    return type(value) is np.ndarray or type(value) is Shift


def kind(value: Value) -> str:
    """Return NumPy's letter for a value's type: b, i, u, f or c."""
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return value.dtype.kind
    if type(value) is Shift:
        return "i"
    if type(value) is bool:
        return "b"
    if isinstance(value, int):
        return "i"
    return "c" if isinstance(value, complex) else "f"


def scalar(value: Any) -> Value:
    """Return a Python or NumPy number as a value that all lanes share."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.unsignedinteger):
        return value  # with its width, which a minus before it shows
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float) and not isinstance(value, np.floating):
        return np.float64(value)
    if isinstance(value, complex) and not isinstance(value, np.complexfloating):
        return np.complex128(value)
    return value


def widened(value: Value) -> Value:
    """Return an integer or truth value as wide as Numba computes with it; anything else as it is."""
    if type(value) is np.ndarray:
        if value.dtype.kind == "b" or (value.dtype.kind == "i" and value.dtype.itemsize < 8):
            return value.astype(np.int64)
        if value.dtype.kind == "u" and value.dtype.itemsize < 8:
            return value.astype(np.uint64)
    elif type(value) is bool:
        return int(value)
    elif isinstance(value, np.unsignedinteger):
        return np.uint64(value)
    return value


def _signed(value: Value) -> Value:
    if type(value) is np.ndarray:
        return value.view(np.int64) if value.dtype.kind == "u" else value
    return _wrapped(int(value))


def _wrapped(number: int) -> int:
    """Return an integer as 64 bits hold it."""
    return number if _LOW <= number < _HIGH else (number - _LOW) % 2**64 + _LOW


def common(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two operands such that NumPy's operators give what Numba's would."""
    a, b = plain(a), plain(b)
    if _is_single(a) and _is_short(b):
        return a, _as(b, np.float32)
    if _is_short(a) and _is_single(b):
        return _as(a, np.float32), b
    a, b = widened(a), widened(b)
    one, two = kind(a), kind(b)
    if one == two:
        return a, b
    if one in "iu" and two in "iu":
        return _signed(a), _signed(b)
    if one in "iu":
        return _as(a, np.float64), b
    if two in "iu":
        return a, _as(b, np.float64)
    return a, b


def _is_single(value: Value) -> bool:
    return getattr(value, "dtype", None) == np.float32


def _is_short(value: Value) -> bool:
    """Whether a float32 holds every number of this type: 8 or 16 bits, or a truth value."""
    if type(value) is np.ndarray or isinstance(value, np.unsignedinteger):
        return value.dtype.kind in "iub" and value.dtype.itemsize <= 2
    return type(value) is bool


def _as(value: Value, dtype: type) -> Value:
    return value.astype(dtype) if type(value) is np.ndarray else dtype(value)


def as_value(result: Value) -> Value:
    """Return a result that may be a NumPy integer or truth value as a value."""
    if type(result) is np.ndarray:
        return result
    if isinstance(result, int):
        return _wrapped(result)
    return scalar(result) if isinstance(result, np.integer | np.bool_) else result


def _binary(function: Callable) -> Callable:
    def operate(a: Value, b: Value) -> Value:
        return as_value(function(*common(a, b)))

    return operate


def add(a: Value, b: Value) -> Value:
    """Return a + b."""
    if type(b) is int and type(a) in _SHIFTABLE:
        return _shifted(a, b)
    if type(a) is int and type(b) in _SHIFTABLE:
        return _shifted(b, a)
    return _add(a, b)


def subtract(a: Value, b: Value) -> Value:
    """Return a - b."""
    if type(b) is int and type(a) in _SHIFTABLE:
        return _shifted(a, -b)
    return _subtract(a, b)


def _shifted(vector: np.ndarray | Shift, by: int) -> Value:
    if type(vector) is Shift:
        return Shift(vector.base, _wrapped(vector.by + by))
    if vector.dtype == np.int64:
        return Shift(vector, by)
    return _add(vector, by)


def _divide(a: Value, b: Value) -> Value:
    """True division: of integers it gives a float64, by zero infinity or nan."""
    if kind(a) in "iu":
        a, b = _as(a, np.float64), _as(b, np.float64)
    return np.true_divide(a, b)


def _by_kind(of_integers: Callable, of_vectors: Callable) -> Callable:
    """Return an operator that computes Python's integers by Python: NumPy's are no wider than 64 bits."""

    def operate(a: Value, b: Value) -> Value:
        return (of_integers if isinstance(a, int) and isinstance(b, int) else of_vectors)(a, b)

    return operate


def _power(a: Value, b: Value) -> Value:
    """A whole number to a negative power is whole as well: 1 or -1 of such a number, 0 of all others."""
    if isinstance(a, int) and isinstance(b, int):
        return a**b if b >= 0 else int(abs(a) == 1) * a ** (b & 1)
    if kind(b) == "i" and kind(a) == "i":
        return np.where(np.asarray(b) < 0, (np.abs(a) == 1) * np.power(a, b & 1), np.power(a, np.abs(b)))
    return np.power(a, b)


def power(a: Value, b: Value) -> Value:
    """Return a ** b for b that all lanes share or not: a float32 or unsigned a stays one if b is whole."""
    a, b = plain(a), plain(b)
    if _is_single(a) and kind(b) in "iu":
        return np.power(a, _as(b, np.float32))
    if type(b) is int and b >= 0 and kind(a) == "u":
        b = np.uint64(b)
    return _common_power(a, b)


def _shift_by(function: Callable) -> Callable:
    """Return a shift, whose result is signed if and only if its left side is."""

    def operate(a: Value, b: Value) -> Value:
        a, b = widened(plain(a)), widened(plain(b))
        if kind(a) == "u":
            return function(a, b.astype(np.uint64) if type(b) is np.ndarray else np.uint64(b))
        return as_value(function(a, _signed(b) if kind(b) == "u" else b))

    return operate


def _of_bits(function: Callable) -> Callable:
    """Return an operator on bits, which makes a truth value of two truth values."""

    def operate(a: Value, b: Value) -> Value:
        return as_value(function(*((a, b) if kind(a) == kind(b) == "b" else common(a, b))))

    return operate


_SHIFTABLE = (np.ndarray, Shift)
_add, _subtract = _binary(operator.add), _binary(operator.sub)
_common_power = _binary(_power)
BINARY: dict[str, Callable] = {
    "Add": add,
    "Sub": subtract,
    "Mult": _binary(operator.mul),
    "Div": _binary(_divide),
    "FloorDiv": _binary(_by_kind(lambda a, b: a // b if b else 0, np.floor_divide)),
    "Mod": _binary(_by_kind(lambda a, b: a % b if b else 0, np.mod)),
    "Pow": power,
    "LShift": _shift_by(_by_kind(lambda a, b: a << (b & 63), np.left_shift)),
    "RShift": _shift_by(_by_kind(lambda a, b: a >> (b & 63), np.right_shift)),
    "BitAnd": _of_bits(operator.and_),
    "BitOr": _of_bits(operator.or_),
    "BitXor": _of_bits(operator.xor),
}
_COMPARISONS = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
_COMPARED_BY = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
COMPARE: dict[str, Callable] = dict(zip(_COMPARISONS, map(_binary, _COMPARED_BY), strict=True))


def negative(a: Value) -> Value:
    """Return -a; Numba negates an unsigned number in its own width, and widens it then."""
    return widened(as_value(operator.neg(_unsigned_or_wide(plain(a)))))


def positive(a: Value) -> Value:
    """Return +a."""
    return widened(plain(a))


def invert(a: Value) -> Value:
    """Return ~a; of a truth value Numba makes the other one, as NumPy does, and Python a number."""
    if kind(a) == "b":
        return (not a) if type(a) is bool else ~a
    return widened(as_value(operator.invert(_unsigned_or_wide(plain(a)))))


def _unsigned_or_wide(value: Value) -> Value:
    return value if kind(value) == "u" else widened(value)


UNARY: dict[str, Callable] = {"USub": negative, "UAdd": positive, "Invert": invert}


def truth(value: Value) -> Value:
    """Return whether a value counts as true, lane by lane."""
    value = plain(value)
    if type(value) is np.ndarray:
        return value if value.dtype == np.bool_ else value != 0
    return bool(value)


def where(lanes: np.ndarray, new: Value, old: Value) -> Value:
    """Return `new` for the lanes given and `old` for the others, both as one type."""
    if kind(new) != "b" or kind(old) != "b":
        new, old = common(new, old)
    return np.where(lanes, new, old)


def cast(value: Value, dtype: np.dtype) -> Value:
    """Return a value converted as C does it: floats lose their fraction, integers their high bits."""
    value = plain(value)
    if type(value) is np.ndarray:
        return value if value.dtype == dtype else value.astype(dtype)
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        number = int(value) if kind(value) in "biu" or math.isfinite(value) else 0
        bits = 8 * dtype.itemsize
        number &= (1 << bits) - 1
        if dtype.kind == "u":
            return dtype.type(number)
        return number - (1 << bits) if number >> (bits - 1) else number
    return dtype.type(value)


def vector(value: Value, lanes: int) -> np.ndarray:
    """Return a value with an element for each of so many lanes."""
    value = plain(value)
    if type(value) is np.ndarray:
        return value
    return np.full(lanes, value, np.int64 if kind(value) == "i" else None)
