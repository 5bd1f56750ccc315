"""OpenBLAS with the kernels of a chosen instruction set: the second baseline.

OpenBLAS picks its kernels once, when it is loaded, and the list it knows may be older than the CPU. Here
NumPy's own OpenBLAS is loaded a second time, from a copy of its file, and told which kernels to take. So
"NumPy as installed" and "OpenBLAS with this CPU's instructions" can be measured in turns in one process.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from course_lib.circles.front_door import Array, RungUnavailable
from course_lib.circles.memory import operands
from course_lib.measure import machine

#: How the functions may be called: NumPy's wheels rename them, and 64_ marks 64-bit integers.
_NAMES = tuple(
    (prefix, suffix) for suffix in ("64_", "") for prefix in ("scipy_", "")
)  # fmt: skip
_ROW_MAJOR, _AS_IT_IS = 101, 111  # of the CBLAS interface
_folders: list[tempfile.TemporaryDirectory] = []
_LETTER = {"float32": ("s", ctypes.c_float), "float64": ("d", ctypes.c_double)}


@functools.cache
def library(core: str | None = None) -> Callable[[str], Callable]:
    """Return gemm(dtype name) of a private OpenBLAS that was told to use the kernels of `core`.

    `core` is OpenBLAS's name ("SkylakeX", "Haswell", …); None: what fits this CPU. Raises RungUnavailable if
    NumPy brings no OpenBLAS of its own.
    """
    file = machine.openblas_file()
    if file is None:
        raise RungUnavailable(machine.missing("openblas") or "NumPy's OpenBLAS was not found.")
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    _folders.append(folder)  # threadpoolctl looks for the file: it goes when Python ends
    copy = shutil.copy(file, Path(folder.name) / file.name)
    with _environment("OPENBLAS_CORETYPE", core or machine.openblas_choice()):
        loaded = ctypes.CDLL(str(copy))
    return functools.partial(_gemm, loaded)


def kernels(core: str | None = None) -> str:
    """Return the name of the kernels that the private OpenBLAS really uses."""
    loaded = library(core).args[0]
    name = _function(loaded, "openblas_get_corename")[0]
    name.restype = ctypes.c_char_p
    return name().decode()


def matmul(A: Array, B: Array, core: str | None = None) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, by the kernels of `core`."""
    A, B = operands(A, B)
    (M, K), N = A.shape, B.shape[1]
    if not (M and K and N):
        return np.zeros((M, N), A.dtype)
    C = np.empty((M, N), A.dtype)
    gemm = library(core)(A.dtype.name)
    a, b, c = A.ctypes.data, B.ctypes.data, C.ctypes.data
    gemm(_ROW_MAJOR, _AS_IT_IS, _AS_IT_IS, M, N, K, 1.0, a, K, b, N, 0.0, c, N)
    return C


@functools.cache
def _gemm(loaded: ctypes.CDLL, dtype: str) -> Callable:
    letter, number = _LETTER[dtype]
    gemm, integer = _function(loaded, f"cblas_{letter}gemm")
    matrix = [ctypes.c_void_p, integer]  # where it begins, and the stride of its rows
    gemm.restype = None
    gemm.argtypes = [ctypes.c_int] * 3 + [integer] * 3 + [number, *matrix, *matrix, number, *matrix]
    return gemm


def _function(loaded: ctypes.CDLL, name: str) -> tuple[Callable, type]:
    """Return a function of the library and the type of its integers."""
    for prefix, suffix in _NAMES:
        if hasattr(loaded, f"{prefix}{name}{suffix}"):
            return getattr(loaded, f"{prefix}{name}{suffix}"), ctypes.c_int64 if suffix else ctypes.c_int32
    raise RungUnavailable(f"NumPy's OpenBLAS has no function {name}: it is built in a way not known here.")


@contextlib.contextmanager
def _environment(name: str, value: str | None) -> Iterator[None]:
    """Set an environment variable for a moment; None leaves it alone."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        if value is not None:
            os.environ.pop(name)
            if before is not None:
                os.environ[name] = before
