"""How the course's own loops are compiled: free of the interpreter's lock, kept on disk if possible."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

from course_lib.measure import hardware


def compiled(function: Callable | None = None, *, cache: bool = True, **options: Any) -> Callable:
    """Return `function` compiled by Numba on its first call; the machine code is kept for the next process.

    Used as a decorator, with or without options (those of `numba.njit`). Without a folder that can be written
    the machine code is not kept. `error_model="numpy"`: a division asks no question about zero.
    """
    if function is None:
        return lambda inner: compiled(inner, cache=cache, **options)
    dispatcher = njit(**{"nogil": True, "error_model": "numpy", **options})(function)
    if cache:
        with contextlib.suppress(RuntimeError):  # no folder for it can be written: the course's, the user's
            dispatcher._cache = _Cache(function)
    return dispatcher


def inlined(function: Callable) -> Callable:
    """Return `function` such that Numba copies its body into every compiled function that calls it."""
    return njit(inline="always")(function)


@intrinsic
def use_wide_registers(typing):
    """Called in a compiled function: its loops may use 512-bit registers where there are some.

    Left alone LLVM takes half of them, as wide registers lowered the clock of the first CPUs that had them.
    This is what `-mprefer-vector-width=512` says to Clang and GCC. Elsewhere it changes nothing.
    """

    def generate(context, builder, signature, arguments):
        # llvmlite's own `add` only knows LLVM's attributes, not those of a processor
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


class _Cache(FunctionCache):
    """Numba's cache on disk, for functions that are made of more than their own file.

    Numba takes kept machine code for valid as long as the function's own file and the kind of CPU are the
    same. Ours also contains the code of functions from other files, and block sizes that come from this
    machine's caches. Code made with other ones would write beyond the memory that today's sizes ask for.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._made_from = made_from()

    def _index_key(self, signature: Any, codegen: Any) -> tuple:
        return (*super()._index_key(signature, codegen), self._made_from)


@functools.cache
def made_from() -> str:
    """Return a hash of what compiled functions are made from: the files of the course, and the machine."""
    known = hashlib.sha256(repr((hardware.simd(), hardware.caches())).encode())
    package = Path(__file__).parent.parent
    for room in ("circles", "measure", "simulators"):
        for file in sorted((package / room).rglob("*.py")):
            known.update(file.read_bytes())
    return known.hexdigest()
