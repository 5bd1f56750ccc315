"""How the course's own loops are compiled: free of the interpreter's lock, kept on disk if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable | None = None, *, cache: bool = True, **options: Any) -> Callable:
    """Return `function` compiled by Numba on its first call; the machine code is kept for the next process.

    Used as a decorator, with or without options (those of `numba.njit`). Without a folder that can be written
    the machine code is not kept. `error_model="numpy"`: a division asks no question about zero.
    """
    if function is None:
        return lambda inner: compiled(inner, cache=cache, **options)
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return njit(cache=cache, **options)(function)
    except RuntimeError:  # neither the course's folder nor the user's cache folder can be written
        return njit(**options)(function)


def inlined(function: Callable) -> Callable:
    """Return `function` such that Numba copies its body into every compiled function that calls it."""
    return njit(inline="always")(function)
