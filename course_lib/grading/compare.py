"""Comparing an answer's result with what is expected, and saying in words what differs.

The order is a colleague's: first the type, then the shape, the dtype, then the values. NaN and inf are kept
apart from ordinary differences, and the first five wrong entries are listed with their index.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Number as AnyNumber
from typing import Any, Protocol

import numpy as np

SHOWN = 5
SMALLEST = 5e-324  # whole numbers beyond 2^53 may differ by less than a float64 shows


@dataclass(frozen=True)
class Mismatch:
    """What is wrong with a result.

    `form` says that the type, the shape or the dtype is wrong, so that the values were not compared at all.
    `says` are sentences, the most important first; `rows` are (index, yours, expected) as text; `errors` is
    |yours - expected| over the largest |expected| for a 2-D result (NaN where one of the two is not finite
    and they differ), else None.
    """

    says: tuple[str, ...]
    got: str = ""
    want: str = ""
    rows: tuple[tuple[str, str, str], ...] = ()
    wrong: int = 0
    total: int = 0
    errors: np.ndarray | None = field(default=None, compare=False)
    form: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the mismatch as plain data, NaN in `errors` as None."""
        errors = None if self.errors is None else np.where(np.isnan(self.errors), None, self.errors).tolist()
        lists = {"says": [*self.says], "rows": [[*row] for row in self.rows], "errors": errors}
        return {**vars(self), **lists}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Mismatch:
        """Return the mismatch that `to_json` wrote down."""
        errors = None if plain["errors"] is None else np.array(plain["errors"], dtype=float)
        rows = tuple(tuple(row) for row in plain["rows"])
        return cls(**{**plain, "says": tuple(plain["says"]), "rows": rows, "errors": errors})

    def in_part(self, place: str) -> Mismatch:
        """Return the mismatch of a part as that of the whole, which says first where it is: "on rank 1: "."""
        first, *more = self.says
        return replace(self, says=(f"{place}{first[0].lower()}{first[1:]}", *more))


class ResultComparison(Protocol):
    """Decides whether a result is right."""

    def compare(self, got: Any, want: Any, args: tuple) -> Mismatch | None:
        """Return None if `got` is right for `want` and the arguments, else what is wrong."""


Tolerance = Callable[[np.ndarray, tuple], "np.ndarray | float"]


@dataclass(frozen=True)
class Values:
    """Compares numbers, nested lists, arrays, words and tuples of these, entry by entry.

    `tolerance(want, args)` gives the allowed |yours - expected|, a number or an array. `parts` names the
    entries of a tuple for the report.
    """

    tolerance: Tolerance
    parts: tuple[str, ...] = ()

    def compare(self, got: Any, want: Any, args: tuple) -> Mismatch | None:
        """Return None if `got` is right, else what is wrong."""
        if isinstance(want, tuple):
            return self._compare_tuple(got, want, args)
        if isinstance(want, str):
            return _compare_words(got, want)
        problem = _type_problem(got, want) or _shape_problem(got, want) or _dtype_problem(got, want)
        if problem:
            return Mismatch((problem,), describe(got), describe(want), form=True)
        yours, expected = np.asarray(got), np.asarray(want)
        if expected.dtype == object:  # whole numbers beyond 64 bits
            said = "Yours is {}, expected is {}.".format(*_texts(got, want))
            return None if np.array_equal(yours, expected) else Mismatch((said,), wrong=1, total=1)
        yours = yours.astype(np.float64) if yours.dtype == object else yours
        return _compare_arrays(yours, expected, self.tolerance(expected, args), describe(got), describe(want))

    def _compare_tuple(self, got: Any, want: tuple, args: tuple) -> Mismatch | None:
        names = self.parts or tuple(f"entry {place}" for place in range(len(want)))
        wanted = f"a tuple of {len(want)}: ({', '.join(names)})"
        if not isinstance(got, tuple | list) or len(got) != len(want):
            return Mismatch((_returned(got, wanted),), form=True)
        for name, mine, right in zip(names, got, want, strict=True):
            found = self.compare(mine, right, args)
            if found:
                return found.in_part(f"{name}: ")
        return None


def exact(parts: tuple[str, ...] = ()) -> Values:
    """Return the comparison that allows no difference at all."""
    return Values(lambda want, args: 0.0, parts)


def close(rtol: float, atol: float = 0.0, parts: tuple[str, ...] = ()) -> Values:
    """Return the comparison that allows |yours - expected| <= atol + rtol * |expected|."""
    return Values(lambda want, args: atol + rtol * np.abs(np.where(np.isfinite(want), want, 0.0)), parts)


def close_product() -> Values:
    """Return the comparison for a product of the first two arguments: any order of summation is right."""
    return Values(lambda want, args: product_tolerance(want.dtype, *args[:2]))


def product_tolerance(dtype: np.dtype, A: Any, B: Any) -> np.ndarray:
    """Return the allowed error of each entry of A @ B when it is summed in `dtype`.

    Four times the a-priori bound for K rounded products and sums, (K + 1) * eps * (|A| @ |B|); eps belongs to
    `dtype` (Higham 2002, §3.5).
    """
    A, B = (np.abs(np.atleast_2d(np.asarray(X, dtype=np.float64))) for X in (A, B))
    if A.size == 0 or B.size == 0:
        return np.zeros(())
    A, B = (np.where(np.isfinite(X), X, 0.0) for X in (A, B))
    kind = dtype if np.issubdtype(dtype, np.floating) else np.dtype(np.float64)
    tiny = float(np.finfo(kind).tiny)
    return 4 * (B.shape[0] + 1) * float(np.finfo(kind).eps) * (A @ B) + tiny


def describe(value: Any) -> str:
    """Return in a few words what a value is: "a 2 x 3 float32 array", "a list of 2 lists of 3 numbers"."""
    if isinstance(value, np.ndarray):
        if value.ndim == 1:
            return f"a 1-D array of {len(value)} {value.dtype}"
        shape = " x ".join(map(str, value.shape)) if value.ndim else "0-dimensional"
        return f"a {shape} array of {value.dtype}"
    if isinstance(value, list | tuple):
        return _describe_sequence(value)
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        return "None" if value is None else f"the {type(value).__name__} {number_text(value)}"
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return f"an object of type {type(value).__name__}"


def _describe_sequence(value: list | tuple) -> str:
    name = type(value).__name__
    inner = {type(item).__name__ for item in value}
    if inner and inner <= {"list", "tuple"}:
        lengths = {len(item) for item in value}
        one = inner.pop() if len(inner) == 1 else "sequence"
        many = f"{one}s" if len(value) != 1 else one
        size = counted(lengths.pop(), "number") if len(lengths) == 1 else "different lengths"
        return f"a {name} of {len(value)} {many} of {size}"
    if all(is_number(item) for item in value):
        return f"a {name} of {counted(len(value), 'number')}"
    kind = f" of type {inner.pop()}" if len(inner) == 1 else ""
    return f"a {name} of {counted(len(value), 'value')}{kind}"


def counted(number: int, noun: str) -> str:
    """Return the number with its noun: 1 digit, 2 digits."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def number_text(value: Any) -> str:
    """Return a number as the report prints it: short, but never rounding a difference away to nothing."""
    if isinstance(value, bool | np.bool_ | str) or not isinstance(value, AnyNumber):
        return repr(value)
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, int) and abs(number) >= 10**30:
        return f"a whole number of about {int(number.bit_length() * math.log10(2)) + 1} digits"
    return f"{number:.7g}" if isinstance(number, float) else str(number)


# --- type, shape, dtype -------------------------------------------------------------------------------------


def _type_problem(got: Any, want: Any) -> str | None:
    wanted = "a number"
    if isinstance(want, np.ndarray):
        wanted = "a NumPy array"
    elif isinstance(want, list):
        wanted = "a list of lists" if want and isinstance(want[0], list) else "a list"
    if got is None:
        return _returned(got, wanted)
    if type(got).__name__ == "generator":
        return f"Your function returned a generator, but {wanted} is needed: use return, not yield."
    right = type(got) is type(want) if isinstance(want, list | np.ndarray) else is_number(got)
    return None if right else _returned(got, wanted)


def _returned(got: Any, wanted: str) -> str:
    missing = ": is a `return` missing?" if got is None else "."
    return f"Your function returned {describe(got)}, but {wanted} is needed{missing}"


def _shape_problem(got: Any, want: Any) -> str | None:
    if isinstance(want, list):
        if not want:
            return f"The result must be an empty list, but yours is {describe(got)}." if got else None
        problem = _list_problem(got, want)
        if problem:
            return problem
    elif not isinstance(want, np.ndarray):
        return None
    mine, right = np.shape(got), np.shape(want)
    if mine == right:
        return None
    swapped = " Those are rows and columns swapped." if mine == right[::-1] and len(right) == 2 else ""
    return f"The shape is {_shape(mine)}, but {_shape(right)} is needed.{swapped}"


def _list_problem(got: list, want: list) -> str | None:
    """Say what keeps a list from being a matrix of numbers like the wanted one, which is not empty."""
    nested = isinstance(want[0], list)
    if nested and len(got) == sum(map(len, want)) > 0 and all(map(is_number, got)):
        return "You collected all elements in one list: begin a new list for every row."
    for place, row in enumerate(got):
        if nested and type(row) is not list:
            return f"Row {place} of your result is {describe(row)}, but every row must be a list."
        if nested and len(row) != len(got[0]):
            said = f"Row {place} of your result has {counted(len(row), 'number')}, row 0 has {len(got[0])}."
            return said if row else f"{said} What zip gives can be gone through once: keep it as a list."
        for item in row if nested else [row]:
            if not is_number(item):
                return f"Row {place} of your result holds {describe(item)}, but only numbers may be in it."
    return None


def _dtype_problem(got: Any, want: Any) -> str | None:
    if not isinstance(want, np.ndarray) or got.dtype == want.dtype:
        return None
    return f"The dtype is {got.dtype}, but {want.dtype} is needed: the result has the dtype of the inputs."


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if len(shape) != 1 else f"({shape[0]},)"


def is_number(value: Any) -> bool:
    """Return whether a value is one real number; True and False are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


# --- values -------------------------------------------------------------------------------------------------


def _compare_words(got: Any, want: str) -> Mismatch | None:
    if isinstance(got, str) and got == want:
        return None
    if isinstance(got, str) and got.strip().lower() == want:
        return Mismatch((f"Yours is {got!r}; write it in lower case, {want!r}.",), form=True)
    if got is None:
        return Mismatch((_returned(got, "a text"),), form=True)
    return Mismatch((f"Yours is {describe(got)}, expected is {want!r}.",), form=not isinstance(got, str))


def _compare_arrays(got: np.ndarray, want: np.ndarray, allowed: Any, got_is: str, want_is: str):
    wrong = wrong_entries(got, want, allowed)
    if not wrong.any():
        return None
    count, total = int(wrong.sum()), wrong.size
    says = [_how_many(got, want, count, total)]
    says += list(_not_finite(got, want))
    if want.ndim == 0:  # the sentence has said it all
        return Mismatch(tuple(says), wrong=count, total=total)
    indices = [tuple(index) for index in np.argwhere(wrong)[:SHOWN].tolist()]
    rows = tuple((str([*index]), *_texts(got[index], want[index])) for index in indices)
    errors = error_map(got, want) if want.ndim == 2 else None
    return Mismatch(tuple(says), got_is, want_is, rows, count, total, errors)


def wrong_entries(got: np.ndarray, want: np.ndarray, allowed: Any) -> np.ndarray:
    """Return True where `got` is wrong: NaN must meet NaN, inf the same inf, numbers within `allowed`."""
    return ~(_difference(got, want) <= allowed)


def error_map(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return |got - want| / max|want|; 0 where both are the same NaN or inf, NaN where only one is."""
    return _difference(got, want) / (float(np.abs(_wide(want))[np.isfinite(want)].max(initial=0.0)) or 1.0)


def _difference(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return |got - want|: 0 where both are the same, NaN where only one is a number, above 0 elsewhere."""
    same = (np.isnan(got) & np.isnan(want)) | (got == want)
    if got.dtype.kind == "f" and want.dtype.kind in "iu":  # from 2**53 on NumPy takes a near float for equal
        same = same & np.asarray(got.astype(object) == want.astype(object), bool)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(_wide(got) - _wide(want))
    apart = np.where(np.isfinite(got) & np.isfinite(want), np.maximum(apart, SMALLEST), math.nan)
    return np.where(same, 0.0, apart)


def _wide(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _how_many(got: np.ndarray, want: np.ndarray, count: int, total: int) -> str:
    if total == 1:
        yours, expected = _texts(got.flat[0], want.flat[0])
        return f"Yours is {yours}, expected is {expected}."
    if count == total:
        return f"All {total} values are wrong."
    return f"{count} of {total} values {'is' if count == 1 else 'are'} wrong."


def _not_finite(got: np.ndarray, want: np.ndarray) -> Iterator[str]:
    """Yield a sentence for each way in which NaN and inf differ."""
    if not np.issubdtype(want.dtype, np.inexact) or want.ndim == 0:
        return
    for name, test in (("NaN", np.isnan), ("inf", np.isinf)):
        extra = int((test(got) & ~test(want)).sum())
        lost = int((test(want) & ~test(got)).sum())
        if extra:
            yield f"{extra} {'is' if extra == 1 else 'are'} {name} where another value is expected."
        if lost:
            yield f"{lost} should be {name} and {'is' if lost == 1 else 'are'} not."


def _texts(got: Any, want: Any) -> tuple[str, str]:
    """Return two different numbers as text that shows the difference."""
    yours, expected = number_text(got), number_text(want)
    if yours == expected:  # they differ beyond the printed digits
        yours, expected = (repr(one.item() if isinstance(one, np.generic) else one) for one in (got, want))
    return yours, expected


# --- what a wrong result looks like: transposed, aliased rows, one column missing ---------------------------

LOOSE = 1e-6  # relative: a recogniser must be sure, not exact


def recognise(
    got: Any, want: Any, args: tuple, lookalikes: Mapping[str, Callable], formed: bool = True
) -> list[str]:
    """Return sentences that name the fault, the most telling first; empty if no pattern fits.

    `formed` says that type and shape are right: only then the lookalikes are asked.
    """
    told = [says for says, slip in lookalikes.items() if formed and _is(got, slip, args, want)]
    if told:
        return told[:1]
    if _is_deep(got):
        return []
    if formed and (digits := _digits_of_numbers(got, want)):
        return [_rounds(digits)]
    try:
        yours, expected = np.asarray(got, dtype=np.float64), np.asarray(want, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, MemoryError):
        return []
    if not isinstance(want, list | np.ndarray) or yours.ndim != 2:
        return []
    return list(_patterns(yours, expected, formed))[:2]


def asks_for_the_result(slip: Callable) -> bool:
    """Whether a lookalike judges a result, fits(got, …), and does not make one."""
    return next(iter(inspect.signature(slip).parameters)) == "got"


def _is_deep(got: Any) -> bool:
    """Whether lists lie in lists over three deep; one that holds itself would keep NumPy busy for long."""
    level = [got]
    for _ in range(4):
        level = [inner for one in level if isinstance(one, list | tuple) for inner in one[:100]][:1000]
    return any(isinstance(one, list | tuple) for one in level)


def _patterns(got: np.ndarray, want: np.ndarray, formed: bool) -> Iterator[str]:
    if got.shape == want.shape[::-1] and min(got.shape) > 1 and same(got.T, want):
        yield "It is the right product, but transposed: rows and columns of the result are swapped."
        return
    if got.shape != want.shape or np.isnan(got).all():
        return
    if not got.any() and np.isfinite(want).all() and np.abs(want).min(initial=math.inf) > LOOSE:
        yield "Your result is zero everywhere: for these sizes, is a sum ever stored?"
    elif len(got) > 1 and same(got, np.repeat(got[:1], len(got), 0)) and not same(want[0], want[-1]):
        yield "All rows of your result are the same: are they one list (or one array) used several times?"
    elif formed and (digits := _digits(got, want)):
        yield _rounds(digits)
    elif _factor(got, want):
        yield f"Every value is {_factor(got, want):g} times what is expected."
    else:
        yield from _where(got, want)


def _where(got: np.ndarray, want: np.ndarray) -> Iterator[str]:
    """Say where the wrong values lie, if they lie in one row, column or border."""
    wrong = wrong_entries(got, want, LOOSE * max(1.0, float(np.nanmax(np.abs(want), initial=0.0))))
    if wrong.all() or wrong.sum() < 2:
        return
    for name, along in (("row", wrong.any(1)), ("column", wrong.any(0))):
        at = np.flatnonzero(along)
        if len(along) < 2 or len(at) == len(along):
            continue
        if len(at) == 1:
            place = {0: "first", len(along) - 1: "last"}.get(int(at[0]))
            yield f"Only the {place} {name} is wrong." if place else f"Only {name} {at[0]} is wrong."
        elif at[-1] == len(along) - 1 and len(at) == at[-1] - at[0] + 1:
            yield f"Only the last {len(at)} {name}s are wrong."


def _rounds(digits: int) -> str:
    return f"Your result is right to {counted(digits, 'digit')} after the point: do you round?"


def _digits_of_numbers(got: Any, want: Any) -> int | None:
    """Return the same for a number, for the numbers in a list that differ, or for the first such in a tuple.

    What stands behind that one in a tuple may have been computed from it: it need not look rounded.
    """
    several = isinstance(want, tuple | list) and isinstance(got, tuple | list)
    pairs = zip(got, want, strict=False) if several else [(got, want)]
    wrong = [pair for pair in pairs if all(map(is_number, pair)) and not same(*pair)]
    wrong = wrong[:1] if isinstance(want, tuple) else wrong
    # 0 has no digit that could be right, and a whole number is not rounded to anything
    if not wrong or any(mine == 0 or isinstance(right, int | np.integer) for mine, right in wrong):
        return None
    try:
        return _digits(*np.array(wrong, dtype=np.float64).T)
    except OverflowError:  # 10**400
        return None


def _digits(got: np.ndarray, want: np.ndarray) -> int | None:
    """Return to how many digits after the point `got` is `want` rounded, or None if it is not."""
    if not (np.isfinite(got).all() and np.isfinite(want).all()) or np.array_equal(got, np.round(got)):
        return None
    for digits in range(1, 9):
        rounded = np.array_equal(np.round(got, digits), got)
        if rounded and np.abs(got - want).max() <= 0.501 * 10.0**-digits:
            return digits
    return None


def _factor(got: np.ndarray, want: np.ndarray) -> float | None:
    """Return c if got = c * want for a c other than 1, else None."""
    if not (np.isfinite(got).all() and np.isfinite(want).all()) or not want.any() or want.size < 2:
        return None
    factor = float((got * want).sum() / (want * want).sum())
    if abs(factor - 1) < 1e-3 or not same(got, factor * want):
        return None
    return round(factor, 6)


def _is(got: Any, slip: Callable, args: tuple, want: Any) -> bool:
    try:
        with np.errstate(all="ignore"):
            if asks_for_the_result(slip):
                return bool(slip(got, *args))
            candidate = slip(*args)
        if candidate is None or _equal(candidate, want):  # on this input the slip makes no difference
            return False
    except Exception:  # a recogniser that does not apply to these inputs is no match
        return False
    if isinstance(candidate, tuple):
        return isinstance(got, tuple | list) and len(got) == len(candidate) and _all_same(got, candidate)
    return same(got, candidate)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return np.array_equal(one, other, equal_nan=not isinstance(one, str))


def _all_same(got: Sequence, candidate: Sequence) -> bool:
    return all(
        mine == other if isinstance(other, str) else same(mine, other)
        for mine, other in zip(got, candidate, strict=True)
    )


def same(got: Any, other: Any) -> bool:
    """Return whether two numeric things have one shape and, loosely, the same values."""
    try:
        yours, theirs = np.asarray(got, dtype=np.float64), np.asarray(other, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    if yours.shape != theirs.shape or yours.size == 0:
        return False
    scale = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0))
    return bool(np.allclose(yours, theirs, rtol=0, atol=LOOSE * scale, equal_nan=True))
