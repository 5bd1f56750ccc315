"""What a GPU kernel is compiled from, as a short hash: two kernels of one fingerprint are one kernel."""

from __future__ import annotations

import hashlib
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any


def fingerprint(kernel: Callable) -> str:
    """Return a hash of what a kernel is made of: its text, that of functions it calls, their constants."""
    said = [repr(_options(kernel))]
    said += sorted(_texts(getattr(kernel, "py_func", kernel), set()))
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _options(kernel: Callable) -> list[tuple[str, Any]]:
    """Return what the decorator says that changes the code; no matter which version of Numba wrote it."""
    options = getattr(kernel, "targetoptions", {})
    return [(name, options[name]) for name in ("fastmath", "launch_bounds") if options.get(name)]


def _texts(function: types.FunctionType, seen: set[Any]) -> Iterator[str]:
    """Yield the text of a function, of those it calls on the GPU, and every constant that they name."""
    if function in seen:
        return
    seen.add(function)
    yield inspect.getsource(function)
    if getattr(function, "runs_as_written", False):  # what stands in for it on the GPU is in the same file
        yield inspect.getsource(inspect.getmodule(function))
    names = inspect.getclosurevars(function)
    for name, value in {**names.globals, **names.nonlocals}.items():
        called = getattr(value, "py_func", value)
        if isinstance(called, types.FunctionType):
            yield from _texts(called, seen)
        elif isinstance(value, int | float | str | tuple):
            yield f"{name} = {value!r}"
