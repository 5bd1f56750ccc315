"""The one check of numbers and names that are given to the course's functions, and its one sentence.

Every function returns the value, so that a check stands where the value is taken:
``threads = whole("threads", threads, most=64)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def whole(name: str, value: Any, *, least: int | None = 1, most: int | None = None) -> int:
    """Return ``value`` as an int; raises ValueError unless it is a whole number from ``least`` to ``most``.

    NumPy's whole numbers count, bool does not. ``None`` sets no limit.
    """
    if is_whole(value) and (least is None or value >= least) and (most is None or value <= most):
        return int(value)
    raise refusal(name, value, "a whole number" + _range(least, most))


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> float:
    """Return ``value``; raises ValueError unless it is finite and within the limits (`above`: exclusive)."""
    in_range = (
        is_number(value)
        and (above is None or value > above)
        and (least is None or value >= least)
        and (most is None or value <= most)
    )
    if in_range:
        return value
    kind = "a finite number" if isinstance(value, Real) and not math.isfinite(value) else "a number"
    if above is None:
        raise refusal(name, value, kind + _range(least, most))
    end = "" if most is None else f" and at most {most:,}"
    raise refusal(name, value, f"{kind} above {above:,}{end}")


def one_of(name: str, value: Any, options: Iterable[Any]) -> Any:
    """Return ``value``; raises ValueError unless it is one of ``options``.

    NumPy's words and whole numbers count as Python's; True is not 1.
    """
    listed = tuple(options)
    if any(_are_of_a_kind(value, option) and value == option for option in listed):
        return value
    raise refusal(name, value, f"one of {', '.join(map(repr, listed))}")


def refusal(name: str, value: Any, wanted: str) -> ValueError:
    """Return the error for what no function here knows: ``raise refusal("ways", ways, "a power of two")``."""
    return ValueError(f"{name} is {value!r}, but it must be {wanted}.")


def is_whole(value: Any) -> bool:
    """Tell whether ``value`` is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Tell whether ``value`` is a finite real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _are_of_a_kind(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    related = isinstance(one, type(other)) or isinstance(other, type(one))
    return related or (is_whole(one) and is_whole(other))


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least:,} to {most:,}"
    if least is not None:
        return f" of at least {least:,}"
    return "" if most is None else f" of at most {most:,}"
