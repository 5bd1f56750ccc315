"""Comparing an answer's result with what is expected, and saying in words what differs.

The order is a colleague's: first the type, then the shape, the dtype, then the values. NaN and inf are kept
apart from ordinary differences, and the first five wrong entries are listed with their index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from numbers import Number as AnyNumber
from typing import Any, Protocol

import numpy as np

SHOWN = 5
Index = tuple[int, ...]


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
        plain = {name: getattr(self, name) for name in ("got", "want", "wrong", "total", "form")}
        return {**plain, "says": [*self.says], "rows": [[*row] for row in self.rows], "errors": errors}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Mismatch:
        """Return the mismatch that `to_json` wrote down."""
        errors = None if plain["errors"] is None else np.array(plain["errors"], dtype=float)
        rows = tuple(tuple(row) for row in plain["rows"])
        return cls(**{**plain, "says": tuple(plain["says"]), "rows": rows, "errors": errors})


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
        return _compare_arrays(yours, expected, self.tolerance(expected, args), describe(got), describe(want))

    def _compare_tuple(self, got: Any, want: tuple, args: tuple) -> Mismatch | None:
        names = self.parts or tuple(f"entry {place}" for place in range(len(want)))
        wanted = f"a tuple of {len(want)}: ({', '.join(names)})"
        if not isinstance(got, tuple | list) or len(got) != len(want):
            return Mismatch((_returned(got, wanted),), form=True)
        for name, mine, right in zip(names, got, want, strict=True):
            found = self.compare(mine, right, args)
            if found:
                first = found.says[0][0].lower() + found.says[0][1:]
                return replace(found, says=(f"{name}: {first}", *found.says[1:]))
        return None


def exact(parts: tuple[str, ...] = ()) -> Values:
    """Return the comparison that allows no difference at all."""
    return Values(lambda want, args: 0.0, parts)


def close(rtol: float, atol: float = 0.0, parts: tuple[str, ...] = ()) -> Values:
    """Return the comparison that allows |yours - expected| <= atol + rtol * |expected|."""
    return Values(lambda want, args: atol + rtol * np.abs(np.where(np.isfinite(want), want, 0.0)), parts)


def close_product(slack: float = 4.0) -> Values:
    """Return the comparison for a matrix product of the first two arguments.

    Any order of summation is right. The allowed error is the a-priori bound for K rounded products and sums,
    (K + 1) * eps * (|A| @ |B|), times `slack`; eps belongs to the dtype of the result (Higham 2002, §3.5).
    """
    return Values(lambda want, args: product_tolerance(want.dtype, *args[:2], slack=slack))


def product_tolerance(dtype: np.dtype, A: Any, B: Any, slack: float = 4.0) -> np.ndarray:
    """Return the allowed error of each entry of A @ B when it is summed in `dtype`."""
    A, B = (np.abs(np.atleast_2d(np.asarray(X, dtype=np.float64))) for X in (A, B))
    if A.size == 0 or B.size == 0:
        return np.zeros(())
    A, B = (np.where(np.isfinite(X), X, 0.0) for X in (A, B))
    kind = dtype if np.issubdtype(dtype, np.floating) else np.dtype(np.float64)
    tiny = float(np.finfo(kind).tiny)
    return slack * (B.shape[0] + 1) * float(np.finfo(kind).eps) * (A @ B) + tiny


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
        size = _count(lengths.pop(), "number") if len(lengths) == 1 else "different lengths"
        return f"a {name} of {len(value)} {many} of {size}"
    if all(is_number(item) for item in value):
        return f"a {name} of {_count(len(value), 'number')}"
    kind = f" of type {inner.pop()}" if len(inner) == 1 else ""
    return f"a {name} of {_count(len(value), 'value')}{kind}"


def _count(number: int, noun: str) -> str:
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
    wanted = "NumPy array" if isinstance(want, np.ndarray) else _wanted_type(want)
    if got is None:
        return _returned(got, _a(wanted))
    if type(got).__name__ == "generator":
        return f"Your function returned a generator, but {_a(wanted)} is needed: use return, not yield."
    if isinstance(want, np.ndarray):
        right = type(got) is np.ndarray
    elif isinstance(want, list):
        right = type(got) is list
    else:
        right = is_number(got)
    return None if right else _returned(got, _a(wanted))


def _returned(got: Any, wanted: str) -> str:
    missing = ": is a `return` missing?" if got is None else "."
    return f"Your function returned {describe(got)}, but {wanted} is needed{missing}"


def _wanted_type(want: Any) -> str:
    if isinstance(want, list):
        return "list of lists" if want and isinstance(want[0], list) else "list"
    return "number"


def _a(noun: str) -> str:
    return f"a {noun}"


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
    """Say what keeps a list from being a matrix of numbers like the wanted one."""
    nested = bool(want) and isinstance(want[0], list)
    if nested and len(got) == sum(map(len, want)) > 0 and all(map(is_number, got)):
        return "You collected all elements in one list: begin a new list for every row."
    for place, row in enumerate(got):
        if nested and type(row) is not list:
            return f"Row {place} of your result is {describe(row)}, but every row must be a list."
        if nested and len(row) != len(got[0]):
            return f"Row {place} of your result has {_count(len(row), 'number')}, row 0 has {len(got[0])}."
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
    indices = np.argwhere(wrong)[:SHOWN]
    rows = tuple(_row(got, want, tuple(map(int, index))) for index in indices)
    errors = error_map(got, want) if want.ndim == 2 else None
    return Mismatch(tuple(says), got_is, want_is, rows, count, total, errors)


def wrong_entries(got: np.ndarray, want: np.ndarray, allowed: Any) -> np.ndarray:
    """Return True where `got` is wrong: NaN must meet NaN, inf the same inf, numbers within `allowed`."""
    if not np.issubdtype(want.dtype, np.inexact):
        return (
            ~np.isclose(got, want, rtol=0, atol=allowed, equal_nan=True) if np.any(allowed) else got != want
        )
    finite = np.isfinite(got) & np.isfinite(want)
    same = (np.isnan(got) & np.isnan(want)) | (got == want)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(_wide(got) - _wide(want)) <= allowed
    return ~np.where(finite, near, same)


def error_map(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return |got - want| / max|want|; 0 where both are the same NaN or inf, NaN where only one is."""
    finite = np.isfinite(got) & np.isfinite(want)
    same = (np.isnan(got) & np.isnan(want)) | (got == want)
    largest = float(np.abs(_wide(want))[np.isfinite(want)].max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(_wide(got) - _wide(want)) / largest
    return np.where(finite, error, np.where(same, 0.0, math.nan))


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


def _row(got: np.ndarray, want: np.ndarray, index: Index) -> tuple[str, str, str]:
    return "[" + ", ".join(map(str, index)) + "]", *_texts(got[index], want[index])


def _texts(got: Any, want: Any) -> tuple[str, str]:
    """Return two different numbers as text that shows the difference."""
    yours, expected = number_text(got), number_text(want)
    if yours == expected:  # they differ beyond the printed digits
        yours, expected = (repr(one.item() if isinstance(one, np.generic) else one) for one in (got, want))
    return yours, expected
