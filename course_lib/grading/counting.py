"""Numbers that count what is done with them, so that "exactly M*N*K multiplications" can be checked.

The answer is called once more with these in place of floats. Adding a number to a plain zero is not counted:
`total = 0.0` before the loop is a habit, not work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Tally:
    """How often each operation was done."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0


class Number:
    """A number with a tally: behaves like its value under + - * /, comparison and negation."""

    __slots__ = ("tally", "value")

    def __init__(self, value: float, tally: Tally) -> None:
        self.value = value
        self.tally = tally

    def __mul__(self, other: Any) -> Number:
        self.tally.multiplications += 1
        return Number(self.value * _value(other), self.tally)

    def __add__(self, other: Any) -> Number:
        if isinstance(other, Number) or other != 0:
            self.tally.additions += 1
        return Number(self.value + _value(other), self.tally)

    def __sub__(self, other: Any) -> Number:
        self.tally.additions += 1
        return Number(self.value - _value(other), self.tally)

    def __rsub__(self, other: Any) -> Number:
        self.tally.additions += 1
        return Number(_value(other) - self.value, self.tally)

    def __truediv__(self, other: Any) -> Number:
        self.tally.divisions += 1
        return Number(self.value / _value(other), self.tally)

    def __pow__(self, power: int) -> Number:
        self.tally.multiplications += 1
        return Number(self.value**power, self.tally)

    __rmul__ = __mul__
    __radd__ = __add__

    def __neg__(self) -> Number:
        return Number(-self.value, self.tally)

    def __eq__(self, other: object) -> bool:
        return self.value == _value(other)

    def __lt__(self, other: Any) -> bool:
        return self.value < _value(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= _value(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > _value(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= _value(other)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __float__(self) -> float:
        raise TypeError("float() takes a number out of the count; use * and + on the elements themselves")

    def __repr__(self) -> str:
        return repr(self.value)


def counting(value: Any, tally: Tally) -> Any:
    """Return a copy of `value` (numbers, lists, tuples) in which every float counts into `tally`."""
    if isinstance(value, list | tuple):
        return type(value)(counting(item, tally) for item in value)
    return Number(value, tally) if isinstance(value, float) else value


def _value(number: Any) -> Any:
    return number.value if isinstance(number, Number) else number
