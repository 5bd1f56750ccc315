"""One line after each rewrite: does it still give what the spec gives?

    same(fast(A, B), slow(A, B))        same: max error 3.1e-07

A wrong result raises AssertionError and says what is wrong first: the shape, then NaN and inf in the wrong
places, then the size of the error with the first five entries that differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

FIRST = 5


def same(C: Any, expected: Any, rtol: float | None = None) -> None:
    """Print the largest error of C against `expected`, or raise AssertionError when they are not the same.

    The error is max|C - expected| / max|expected| over finite entries; NaN and inf must stand in the same
    places. `rtol` bounds it (None: 256 roundings of the coarser dtype, which sums of thousands of random
    terms stay below, and at most 0.01; integers must be equal).
    """
    got, wanted = np.asarray(C), np.asarray(expected)
    for name, value in (("C", got), ("expected", wanted)):
        if value.dtype.kind not in "biufc":
            raise AssertionError(
                f"not the same: {name} has dtype {value.dtype}, but numbers are compared here."
            )
    if got.shape != wanted.shape:
        is_transpose = got.ndim == 2 and got.shape == wanted.shape[::-1]
        raise AssertionError(
            f"not the same: C has shape {got.shape}, but {wanted.shape} is expected."
            + " It is the transpose: are the operands swapped?" * is_transpose
        )
    _refuse_special(got, wanted)
    error, wrong = _error(got, wanted, limit := _limit(got, wanted, rtol))
    if wrong.any():
        raise AssertionError(
            f"not the same: max error {error:.2g} (allowed {limit:.2g}), "
            f"{_count(wrong)}{_dtypes(got, wanted)}." + _first(wrong, got, wanted)
        )
    print(f"same: max error {error:.2g}{_dtypes(got, wanted)}")


def _limit(got: np.ndarray, wanted: np.ndarray, rtol: float | None) -> float:
    if rtol is not None:
        return float(rtol)
    roundings = [np.finfo(X.dtype).eps for X in (got, wanted) if X.dtype.kind in "fc"]
    return min(256 * float(max(roundings)), 0.01) if roundings else 0.0


def _refuse_special(got: np.ndarray, wanted: np.ndarray) -> None:
    """Raise unless NaN, +inf and -inf stand in the same places."""
    both_nan = np.isnan(got) & np.isnan(wanted)
    special = ~np.isfinite(got) | ~np.isfinite(wanted)
    wrong = special & ~both_nan & (got != wanted)
    if not wrong.any():
        return
    kinds = [
        f"{kind} at {_count(test(got) & wrong)}"
        for kind, test in (("NaN", np.isnan), ("inf", np.isinf))
        if (test(got) & wrong).any()
    ] or ["finite numbers where NaN or inf is expected"]
    raise AssertionError(f"not the same: C has {' and '.join(kinds)}.{_first(wrong, got, wanted)}")


def _error(got: np.ndarray, wanted: np.ndarray, limit: float) -> tuple[float, np.ndarray]:
    """Return the relative error and which entries exceed the limit."""
    if got.dtype.kind in "biu" and wanted.dtype.kind in "biu":
        got, wanted = got.astype(object), wanted.astype(object)  # Python's integers do not overflow
        apart = np.abs(got - wanted)
        largest = max(np.abs(wanted).ravel().tolist(), default=0)
        worst = max(apart.ravel().tolist(), default=0)
        return worst / (largest or 1), (apart > limit * largest).astype(bool)
    finite = np.isfinite(got) & np.isfinite(wanted)
    kind = np.result_type(got, wanted, np.float64)
    apart = np.abs(np.where(finite, got, 0).astype(kind) - np.where(finite, wanted, 0).astype(kind))
    largest = float(np.abs(np.where(finite, wanted, 0).astype(kind)).max(initial=0.0))
    return float(apart.max(initial=0.0)) / (largest or 1.0), apart > limit * (largest or 1.0)


def _first(wrong: np.ndarray, got: np.ndarray, wanted: np.ndarray) -> str:
    places = np.argwhere(wrong)[:FIRST]
    lines = [
        f"\n  [{', '.join(map(str, place))}]  yours {got[tuple(place)]!s}  expected {wanted[tuple(place)]!s}"
        for place in places
    ]
    more = int(wrong.sum()) - len(places)
    return "".join(lines) + (f"\n  … and {more:,} more" if more else "")


def _count(wrong: np.ndarray) -> str:
    return f"{int(wrong.sum()):,} of {wrong.size:,} entries"


def _dtypes(got: np.ndarray, wanted: np.ndarray) -> str:
    return "" if got.dtype == wanted.dtype else f", C is {got.dtype} and expected is {wanted.dtype}"
