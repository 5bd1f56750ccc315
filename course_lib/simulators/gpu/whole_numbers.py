"""The check that every number given to these models passes: whole, and within its limits."""

from __future__ import annotations


def check_whole(what: str, value: int, least: int, most: int | None = None) -> None:
    """Raise ValueError, naming `what`, unless `value` is a whole number from `least` to `most`."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and least <= value and (most is None or value <= most):
        return
    wanted = f"of at least {least}" if most is None else f"from {least} to {most:,}"
    raise ValueError(f"{what} is {value!r}, but it must be a whole number {wanted}.")
