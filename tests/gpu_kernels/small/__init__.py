"""Small kernels under the tracer, and what it must say of them.

A module's functions `test_…` are run by tests/unit/test_gpu_tracer.py: so Numba is imported when they run,
and not whenever pytest reads the tests.
"""

from __future__ import annotations

import inspect
import itertools
import linecache
import types
from typing import Any

from numba import cuda

_numbers = itertools.count()


def kernel(parameters: str, body: str, *, device: bool = False, **names: Any) -> Any:
    """Return a kernel made of text. It begins with `i = cuda.grid(1)`; `names` are its global names."""
    lines = [line for line in ("" if device else "i = cuda.grid(1)", *body.strip("\n").splitlines()) if line]
    text = f"def kernel({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    file = f"<kernel {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"cuda": cuda, **names}
    exec(compile(text, file, "exec"), space)  # the test's own text
    return cuda.jit(device=True)(space["kernel"]) if device else cuda.jit(space["kernel"])


def line_of(function: Any, marker: str) -> int:
    """Return the line of a kernel's text that ends with a comment."""
    lines, first = inspect.getsourcelines(function.py_func)
    (line,) = [first + at for at, text in enumerate(lines) if text.rstrip().endswith(f"# {marker}")]
    return line


def checks_of(module: types.ModuleType) -> list:
    """Return the functions of a module that check something."""
    return [value for name, value in vars(module).items() if name.startswith("test_")]
