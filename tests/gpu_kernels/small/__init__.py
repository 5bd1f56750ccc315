"""Small kernels under the tracer, and what it must say of them.

A module's functions `test_…` are run by tests/unit/test_gpu_tracer.py: so Numba is imported when they run,
and not whenever pytest reads the tests.
"""

from __future__ import annotations

import inspect
from typing import Any

from gpu_kernels.case import function, made


def kernel(parameters: str, body: str, *, device: bool = False, **names: Any) -> Any:
    """Return a kernel made of text. It begins with `i = cuda.grid(1)`; `names` are its global names."""
    lines = [line for line in ("" if device else "i = cuda.grid(1)", *body.splitlines()) if line]
    decorator = "@cuda.jit(device=True)" if device else "@cuda.jit"
    return made(function(f"kernel({parameters})", "\n".join(lines), decorator), **names)


def line_of(function: Any, marker: str) -> int:
    """Return the line of a kernel's text that ends with a comment."""
    lines, first = inspect.getsourcelines(function.py_func)
    (line,) = [first + at for at, text in enumerate(lines) if text.rstrip().endswith(f"# {marker}")]
    return line
