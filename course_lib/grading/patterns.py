"""Recognising what a wrong matrix looks like: transposed, aliased rows, one column missing …"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from course_lib.grading.compare import is_number, wrong_entries

LOOSE = 1e-6  # relative: a recogniser must be sure, not exact


def recognise(
    got: Any, want: Any, args: tuple, lookalikes: Mapping[str, Callable], formed: bool = True
) -> list[str]:
    """Return sentences that name the fault, the most telling first; empty if no pattern fits.

    `formed` says that type and shape are right: only then the lookalikes are asked.
    """
    told = [says for says, slip in lookalikes.items() if formed and _is(got, slip, args)]
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
    if got is None or yours.ndim != 2:
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
    if not got.any():
        yield "Your result is zero everywhere: is the sum ever stored?"
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
    return f"Your result is right to {digits} digit{'s' * (digits > 1)} after the point: do you round?"


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
    return _digits(*np.array(wrong, dtype=np.float64).T)


def _digits(got: np.ndarray, want: np.ndarray) -> int | None:
    """Return to how many digits after the point `got` is `want` rounded, or None if it is not."""
    if not (np.isfinite(got).all() and np.isfinite(want).all()) or np.array_equal(got, want):
        return None
    for digits in range(1, 9):
        rounded = np.array_equal(np.round(got, digits), got)
        if rounded and np.abs(got - want).max() <= 0.501 * 10.0**-digits:
            return digits
    return None


def _factor(got: np.ndarray, want: np.ndarray) -> float | None:
    """Return c if got = c * want for a c other than 1, else None."""
    if not (np.isfinite(got).all() and np.isfinite(want).all()) or not want.any():
        return None
    factor = float((got * want).sum() / (want * want).sum())
    if abs(factor - 1) < 1e-3 or not same(got, factor * want):
        return None
    return round(factor, 6)


def _is(got: Any, slip: Callable, args: tuple) -> bool:
    try:
        with np.errstate(all="ignore"):
            if asks_for_the_result(slip):
                return bool(slip(got, *args))
            candidate = slip(*args)
    except Exception:  # a recogniser that does not apply to these inputs is no match
        return False
    if candidate is None:
        return False
    if isinstance(candidate, tuple):
        return isinstance(got, tuple | list) and len(got) == len(candidate) and _all_same(got, candidate)
    return same(got, candidate)


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
