"""Counting an answer's operations by what it writes down, not by what it says.

The answer is called once more with `Operand`s in place of floats. Each operation on them adds a line to a
`Tape`: which operation, on which earlier lines. The tape is a straight-line program, and it is the evidence:
the judge counts its lines and runs it again – on other numbers, which the answer has never seen. A tape that
gives the right result there is a way to compute it with that many operations, whoever wrote it.

(A trace of this kind is the "tape" of automatic differentiation; that a program is right on random inputs is
shown by evaluating it there, after Schwartz 1980 and Zippel 1979.)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INPUT, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE = range(6)
OPERATIONS: dict[int, Callable] = {
    ADD: operator.add,
    SUBTRACT: operator.sub,
    MULTIPLY: operator.mul,
    DIVIDE: operator.truediv,
}
MOST_LINES = 2_000_000


class BadTape(ValueError):
    """A tape that is no straight-line program: made by something else than operands."""


@dataclass
class Tape:
    """A straight-line program: line n has an operation `codes[n]` on the lines `left[n]` and `right[n]`.

    An INPUT has the number of the input in `left`, a CONSTANT its place in `constants`. `compared` says how
    often the answer asked which of two numbers is larger.
    """

    codes: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    compared: int = 0

    def write(self, code: int, left: int, right: int = 0) -> int:
        """Add a line and return its number."""
        if len(self.codes) >= MOST_LINES:
            raise MemoryError(f"more than {MOST_LINES} operations on this small input")
        self.codes.append(code)
        self.left.append(left)
        self.right.append(right)
        return len(self.codes) - 1

    def constant(self, value: float) -> int:
        """Add a number that is no input and return its line."""
        self.constants.append(float(value))
        return self.write(CONSTANT, len(self.constants) - 1)


@dataclass(frozen=True)
class TapeLine:
    """The place of a result's number on the tape."""

    number: int


class Operand:
    """A number that writes down what is done with it; behaves like its value in comparisons."""

    __slots__ = ("line", "tape", "value")

    def __init__(self, value: float, tape: Tape, line: int) -> None:
        self.value = value
        self.tape = tape
        self.line = line

    def _with(self, code: int, other: Any, swapped: bool = False) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # NumPy then asks for each element
        if not isinstance(other, Operand):
            other = Operand(float(other), self.tape, self.tape.constant(other))
        a, b = (other, self) if swapped else (self, other)
        return Operand(OPERATIONS[code](a.value, b.value), self.tape, self.tape.write(code, a.line, b.line))

    def __add__(self, other: Any) -> Any:
        return self._with(ADD, other)

    def __radd__(self, other: Any) -> Any:
        return self._with(ADD, other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._with(SUBTRACT, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(SUBTRACT, other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._with(MULTIPLY, other)

    def __rmul__(self, other: Any) -> Any:
        return self._with(MULTIPLY, other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._with(DIVIDE, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(DIVIDE, other, swapped=True)

    def __pow__(self, power: int) -> Any:
        if not isinstance(power, int) or power < 1:
            raise TypeError("only ** 1, 2, 3 … can be counted: each is so many multiplications less one")
        result = self
        for _ in range(power - 1):
            result = result * self
        return result

    def __neg__(self) -> Any:
        return self._with(SUBTRACT, 0.0, swapped=True)

    def __pos__(self) -> Operand:
        return self

    def _compare(self, other: Any, how: Callable) -> bool:
        self.tape.compared += 1
        return how(self.value, other.value if isinstance(other, Operand) else other)

    def __eq__(self, other: object) -> bool:
        return self._compare(other, operator.eq)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, operator.ge)

    def __bool__(self) -> bool:
        return self._compare(0.0, operator.ne)

    def __hash__(self) -> int:
        return hash(self.value)

    def __float__(self) -> float:
        raise TypeError("float() takes a number out of the count; use * and + on the elements themselves")

    def __repr__(self) -> str:
        return repr(self.value)


# --- on the side of the answer ------------------------------------------------------------------------------


def taped(value: Any, tape: Tape) -> Any:
    """Return a copy of numbers, lists, tuples and float arrays in which every float is an Operand."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        operands = np.empty(value.shape, dtype=object)
        for place in np.ndindex(value.shape):
            operands[place] = taped(float(value[place]), tape)
        return operands
    if isinstance(value, list | tuple):
        return type(value)(taped(item, tape) for item in value)
    if not isinstance(value, float):
        return value
    number = len(tape.codes)  # the inputs come first: while they are written there is nothing else
    return Operand(value, tape, tape.write(INPUT, number))


def lines_of(value: Any) -> Any:
    """Return a result with a TapeLine for every Operand in it; object arrays become nested lists."""
    if isinstance(value, Operand):
        return TapeLine(value.line)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return lines_of(value.tolist())
    if isinstance(value, list | tuple):
        return [lines_of(item) for item in value]
    return value


# --- on the side of the judge -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """What a tape does. Adding a plain zero is not counted, nor is a change of sign."""

    multiplications: int
    additions: int


def count(tape: Tape) -> Count:
    """Return the operations on the tape; a subtraction is an addition. `total = 0.0` is a habit, not work."""
    _check(tape)
    zeros = {n for n, code in enumerate(tape.codes) if code == CONSTANT and tape.constants[tape.left[n]] == 0}
    additions = sum(
        not (left in zeros or (code == ADD and right in zeros))
        for code, left, right in zip(tape.codes, tape.left, tape.right, strict=True)
        if code in (ADD, SUBTRACT)
    )
    return Count(sum(code == MULTIPLY for code in tape.codes), additions)


def replay(tape: Tape, result: Any, args: tuple) -> Any:
    """Run the tape on the floats of `args` and return the result they give, in the form of `result`.

    BadTape if it is no straight-line program of that many inputs.
    """
    _check(tape)
    inputs = list(floats(args))
    values: list[float] = []
    with np.errstate(all="ignore"):
        for code, left, right in zip(tape.codes, tape.left, tape.right, strict=True):
            if code == INPUT:
                if not 0 <= left < len(inputs):
                    raise BadTape(f"there is no input {left}")
                values.append(inputs[left])
            elif code == CONSTANT:
                values.append(tape.constants[left])
            else:
                values.append(float(OPERATIONS[code](np.float64(values[left]), np.float64(values[right]))))
    return _filled(result, values)


def nudged(value: Any, rng: np.random.Generator) -> Any:
    """Return a copy in which every float differs a little, so that comparisons come out as before."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return (value * (1 + 1e-3 * rng.uniform(-1, 1, value.shape))).astype(value.dtype)
    if isinstance(value, list | tuple):
        return type(value)(nudged(item, rng) for item in value)
    return value * (1 + 1e-3 * rng.uniform(-1, 1)) if isinstance(value, float) else value


def floats(value: Any) -> Iterator[float]:
    """Yield the floats of the arguments in the order in which `taped` meets them."""
    if isinstance(value, np.ndarray):
        yield from map(float, value.ravel().tolist() if value.dtype.kind == "f" else ())
    elif isinstance(value, list | tuple):
        for item in value:
            yield from floats(item)
    elif isinstance(value, float):
        yield value


def _check(tape: Tape) -> None:
    lengths = {len(tape.codes), len(tape.left), len(tape.right)}
    if len(lengths) > 1 or len(tape.codes) > MOST_LINES:
        raise BadTape("its columns differ in length, or it is too long")
    for n, (code, left, right) in enumerate(zip(tape.codes, tape.left, tape.right, strict=True)):
        if code == CONSTANT:
            good = 0 <= left < len(tape.constants)
        elif code == INPUT:
            good = left >= 0
        else:
            good = code in OPERATIONS and 0 <= left < n and 0 <= right < n
        if not good:
            raise BadTape(f"line {n} has the operation {code} on {left} and {right}")


def _filled(result: Any, values: list[float]) -> Any:
    if isinstance(result, TapeLine):
        if not 0 <= result.number < len(values):
            raise BadTape(f"there is no line {result.number}")
        return values[result.number]
    if isinstance(result, list | tuple):
        return [_filled(item, values) for item in result]
    return result
