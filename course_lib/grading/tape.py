"""Counting an answer's operations by what it writes down, not by what it says.

The answer is called once more with `Operand`s in place of floats. Each operation on them adds a line to a
`Tape`: which operation, on which earlier lines. The tape is a straight-line program, and it is the evidence:
the judge counts its lines and runs it again – on other numbers, which the answer has never seen. A tape that
gives the right result there is a way to compute it with that many operations, whoever wrote it.

The other numbers are whole, and the tape is run modulo a large prime: nothing is rounded, so that no result
passes for being near, and no digits can be cut off a number that holds two. An operand has no value: there is
nothing to compare, to print or to divide, and whatever would need one is refused in a sentence.

(A trace of this kind is the "tape" of automatic differentiation; that a program is right on random inputs is
shown by evaluating it there, after Schwartz 1980 and Zippel 1979.)
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

INPUT, CONSTANT, ADD, SUBTRACT, MULTIPLY = range(5)
OPERATIONS: dict[int, Callable] = {ADD: operator.add, SUBTRACT: operator.sub, MULTIPLY: operator.mul}
MOST_LINES = 2_000_000
PRIME = 2**61 - 1
#: Whole numbers of this size stay exact in sums of float64 products.
LARGEST = 2**20
#: Sides of B from which on a block of four k, or of four columns, is less than half of it.
WIDE = 8


class BadTape(ValueError):
    """A tape that is no straight-line program: made by something else than operands."""


@dataclass
class Tape:
    """A straight-line program: line n has an operation `codes[n]` on the lines `left[n]` and `right[n]`.

    An INPUT has the number of the input in `left`, a CONSTANT its place in `constants`.
    """

    codes: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)

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
    """A number without a value that writes down what is done with it: + - and *, and nothing else."""

    __slots__ = ("_line", "_tape")

    def __init__(self, tape: Tape, line: int) -> None:
        self._tape = tape
        self._line = line

    def _with(self, code: int, other: Any, swapped: bool = False) -> Any:
        if isinstance(other, Operand):
            line = other._line
        elif isinstance(other, int | float | np.number | np.bool_) and not isinstance(other, complex):
            line = self._tape.constant(other)
        else:
            return NotImplemented  # an array of NumPy then asks for each element
        lines = (line, self._line) if swapped else (self._line, line)
        return Operand(self._tape, self._tape.write(code, *lines))

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

    def __neg__(self) -> Any:
        return self._with(SUBTRACT, 0.0, swapped=True)

    def __pos__(self) -> Operand:
        return self

    def __deepcopy__(self, memo: dict) -> Operand:
        return self  # a matrix may be copied; its numbers stay where they are on the tape

    def __repr__(self) -> str:
        return "a number that counts"  # for a `print` that was left in: it tells nothing

    def __format__(self, how: str) -> str:
        return repr(self)


HERE = "on the numbers that count your operations only +, - and * work"
NEEDS_A_VALUE = f"{HERE}: what is done must not depend on their values"
#: What operands refuse: a sentence, and the methods by which Python or NumPy would ask for it.
REFUSED = {
    f"{HERE}: a division is no operation of this task": "truediv rtruediv floordiv rfloordiv mod rmod divmod "
    "rdivmod reciprocal true_divide",
    f"{HERE}: write a power as a product": "pow rpow",
    f"{HERE}: @ works on arrays of them": "matmul rmatmul",
    NEEDS_A_VALUE: "eq ne lt le gt ge bool hash abs round trunc floor ceil index int complex lshift rlshift "
    "rshift rrshift and rand or ror xor rxor invert reduce_ex",
    f"{HERE}: they are no floats, nor is there room for them among floats (np.zeros(shape, dtype=A.dtype) "
    "has room)": "float",
}


def _refusing(sentence: str) -> Callable:
    def refuse(*_: Any) -> Any:
        raise TypeError(sentence)

    return refuse


for _sentence, _names in REFUSED.items():
    for _name in _names.split():
        setattr(Operand, f"__{_name}__", _refusing(_sentence))


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
    return Operand(tape, tape.write(INPUT, number))


def lines_of(value: Any) -> Any:
    """Return a result with a TapeLine for every Operand in it; object arrays become nested lists."""
    if isinstance(value, Operand):
        return TapeLine(value._line)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return lines_of(value.tolist())
    if isinstance(value, list | tuple):
        return [lines_of(item) for item in value]
    return value


# --- on the side of the judge -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """What a tape does; a subtraction is an addition.

    Free is what no work is done for: to add a plain zero (`total = 0.0` is a habit), to multiply by 0, 1 or
    -1, to change a sign, and whatever is done with constants alone.
    """

    multiplications: int
    additions: int


def count(tape: Tape) -> Count:
    """Return the operations on the tape."""
    _check(tape)
    known: list[int | None] = []  # each line's number, if it is the same for all inputs
    done = {ADD: 0, MULTIPLY: 0}
    for code, left, right in zip(tape.codes, tape.left, tape.right, strict=True):
        if code in (INPUT, CONSTANT):
            known.append(None if code == INPUT else _residue(tape.constants[left]))
            continue
        a, b = known[left], known[right]
        number = None
        if a is not None and b is not None:
            number = OPERATIONS[code](a, b) % PRIME
        elif code == MULTIPLY:
            number = 0 if 0 in (a, b) else None
            done[MULTIPLY] += not {a, b} & {0, 1, PRIME - 1}
        else:
            done[ADD] += 0 not in (a, b)
        known.append(number)
    return Count(done[MULTIPLY], done[ADD])


def replay(tape: Tape, result: Any, args: tuple) -> list[int]:
    """Run the tape modulo PRIME on the whole numbers of `args`; return the numbers of `result` in a row."""
    return list(_in_a_row(result, _values(tape, args)))


def products(tape: Tape, args: tuple) -> set[int]:
    """Return every product that the tape forms of the whole numbers of `args`, modulo PRIME."""
    values = _values(tape, args)
    return {value for value, code in zip(values, tape.codes, strict=True) if code == MULTIPLY}


def _values(tape: Tape, args: tuple) -> list[int]:
    """Return the number on each line; BadTape if it is no straight-line program of that many inputs."""
    _check(tape)
    inputs = [_residue(number) for number in floats(args)]
    values: list[int] = []
    for code, left, right in zip(tape.codes, tape.left, tape.right, strict=True):
        if code == INPUT:
            if not 0 <= left < len(inputs):
                raise BadTape(f"there is no input {left}")
            values.append(inputs[left])
        elif code == CONSTANT:
            values.append(_residue(tape.constants[left]))
        else:
            values.append(OPERATIONS[code](values[left], values[right]) % PRIME)
    return values


def multiplies_nothing_else(tape: Tape, A: np.ndarray, B: np.ndarray) -> bool:
    """Whether each A[i, k] B[k, j] is formed, and nothing else: 1.0 * B[k, j] is a number without a place."""
    formed = _formed(tape, A, B)
    complete = len({tuple(one.values()) for one in formed}) == A.size * B.shape[1]
    return complete and len(formed) == count(tape).multiplications


def goes_by_tiles(tape: Tape, A: np.ndarray, B: np.ndarray, rows: int) -> bool:
    """Whether so many rows of A B are worked on in turns, the last few or the first few in any way.

    Where rows follow each other one by one, a step of so many is only a way to count them. The last tile may
    do some rows a second time, but no work is done twice. Too small a matrix shows nothing.
    """
    M, (K, N) = len(A), B.shape
    if rows > M or K < 2 or N < 2:
        return True
    formed = _formed(tape, A, B)
    done = [_in_turns(formed, first, rows, K * N, min(K, N) >= WIDE) for first in (0, M % rows)]
    return any(done) and len(formed) < (M + rows) * K * N


def _in_turns(formed: list[dict[str, int]], first: int, rows: int, products: int, wide: bool) -> bool:
    """Whether half the products of each tile, counted from this row, are work on all its rows in turns."""
    done: Counter[int] = Counter()
    for tile, run in itertools.groupby(formed, lambda one: (one["i"] - first) // rows):
        work = [*run]
        order = [one["i"] for one in work]
        last_begins = max(map(order.index, {*order}))
        first_ends = len(order) - 1 - max(map(order[::-1].index, {*order}))
        all_rows = len({*order}) == rows and last_begins < first_ends
        done[tile] += len(work) if all_rows and (not wide or _near(work)) else 0
    M = max(one["i"] for one in formed) + 1
    return all(2 * done[tile] >= rows * products for tile in range((M - first) // rows))


def _near(work: list[dict[str, int]]) -> bool:
    """Whether most numbers of B have served all rows before half of the work is done on others.

    If a few products of each row come first, and then row after row, each number is fetched once for each.
    """
    first, last = {}, {}
    for place, one in enumerate(work):
        first.setdefault((one["k"], one["j"]), place)
        last[one["k"], one["j"]] = place
    return 4 * sum(2 * (last[number] - first[number]) < len(work) for number in first) >= 3 * len(first)


def _formed(tape: Tape, A: np.ndarray, B: np.ndarray) -> list[dict[str, int]]:
    """Return i, k and j of each A[i, k] B[k, j], in the order in which they are formed."""
    (M, K), N = A.shape, B.shape[1]
    formed = []
    for code, *pair in zip(tape.codes, tape.left, tape.right, strict=True):
        a, b = sorted(pair)  # the inputs are on the first lines, in a row
        if code == MULTIPLY and a < M * K <= b < M * K + K * N and a % K == (b - M * K) // N:
            formed.append({"i": a // K, "k": a % K, "j": (b - M * K) % N})
    return formed


def whole(value: Any, rng: np.random.Generator) -> Any:
    """Return a copy with a random whole number in the place of every float; arrays are float64."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return rng.integers(-LARGEST, LARGEST, value.shape, endpoint=True).astype(np.float64)
    if isinstance(value, list | tuple):
        return type(value)(whole(item, rng) for item in value)
    return float(rng.integers(-LARGEST, LARGEST, endpoint=True)) if isinstance(value, float) else value


def floats(value: Any) -> Iterator[float]:
    """Yield the floats of the arguments in the order in which `taped` meets them."""
    if isinstance(value, np.ndarray):
        yield from map(float, value.ravel().tolist() if value.dtype.kind == "f" else ())
    elif isinstance(value, list | tuple):
        for item in value:
            yield from floats(item)
    elif isinstance(value, float):
        yield value


def residues(want: Any) -> list[int]:
    """Return the numbers of an expected result in a row, modulo PRIME."""
    return list(_in_a_row(want.tolist() if isinstance(want, np.ndarray) else want, []))


OTHER_NUMBERS = (
    "It multiplies other numbers than those of A and B, or not all of these: multiply each A[i, k] by "
    "B[k, j] as they are, so that it can be seen when."
)
NO_TILES = (
    "It does not go by tiles of {} rows: work on all rows of a tile in turns, so that a number of B "
    "that was read once, or lies in the cache, serves all of them."
)


@dataclass(frozen=True)
class CountsOperations:
    """On counting operands the answer does exactly this many operations, or `at_most`; None leaves one free.

    `whose` ends the sentence about a wrong count: "more than the 7 of Strassen's level". `products` gives
    numbers that the answer must multiply out on its way, up to their signs; those of a matrix product it
    forms by tiles of so many rows (`tile`). Inputs of at most `most_numbers` are looked at.
    """

    multiplications: Callable[..., int] | None = None
    additions: Callable[..., int] | None = None
    whose: str = "of the definition"
    products: Callable[..., list[int]] | None = None
    tile: int = 0
    most_numbers: int = LARGEST
    at_most: bool = False

    def judge(self, args: tuple, multiplications: int, additions: int) -> str | None:
        """Return a sentence if a count differs from the formula for these arguments."""
        done = {"multiplications": (self.multiplications, multiplications)}
        done["additions"] = (self.additions, additions)
        for name, (formula, count) in done.items():
            wanted = formula(*args) if formula else count
            if count > wanted or (count < wanted and not self.at_most):
                what = "more than" if count > wanted else "fewer than"
                return f"Your answer did {count} {name} on this input, {what} the {wanted} {self.whose}."
        return None

    def judge_tiles(self, tape: Tape, args: tuple) -> str | None:
        """Return a sentence if the products of two matrices are not formed tile by tile as is asked for."""
        if self.tile and not multiplies_nothing_else(tape, *args):
            return OTHER_NUMBERS
        return NO_TILES.format(self.tile) if self.tile and not goes_by_tiles(tape, *args, self.tile) else None

    def judge_products(self, args: tuple, formed: set[int]) -> str | None:
        """Return a sentence if some product that is asked for is not among those that were formed."""
        asked = self.products(*args) if self.products else []
        missing = [one for one in asked if not {one % PRIME, -one % PRIME} & formed]
        if not missing:
            return None
        return (
            f"Of the {len(asked)} products {self.whose} your answer forms {len(asked) - len(missing)}; the "
            "others are its own."
        )


@functools.lru_cache(maxsize=1000)
def _residue(number: float) -> int:
    """Return a number modulo PRIME; a float is a fraction of whole numbers, exactly."""
    try:
        exact = Fraction(number)
    except (OverflowError, ValueError):
        raise BadTape(f"{number!r} is no number that can be counted with") from None
    return exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME


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


def _in_a_row(result: Any, values: list[int]) -> Iterator[int]:
    if isinstance(result, list | tuple):
        for item in result:
            yield from _in_a_row(item, values)
    elif isinstance(result, TapeLine) and 0 <= result.number < len(values):
        yield values[result.number]
    elif isinstance(result, int | float | np.floating):
        yield _residue(result)
    else:
        raise BadTape(f"{result!r} is no number of the result")
