"""Running a kernel that is an answer in our tracer: what it left in its arguments, and what it cost.

The tracer rewrites the kernel's text; nothing of the answer runs but its imports, its numbers and Numba's
decorators. Its own compiled parts are made ready first (`warm_up`), so that no answer waits for them.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba import cuda, float32

from course_lib.grading.counts import MOST_ROWS, Places, counts_of, plain_counts
from course_lib.grading.launch import Shape
from course_lib.grading.runner import Fault, Traced, fault_of, quiet, time_limit
from course_lib.grading.sources import answer_with_lines, load
from course_lib.simulators.gpu import NotTraceable, trace


class InNotebook:
    """A live kernel of a notebook. Its text is collected and loaded, so that all lines are known by cell."""

    def __init__(self, function: Any) -> None:
        code, lines = answer_with_lines(function)
        self._kernel = load(code.text, code.entry)
        self._text, self._lines = code.text, lines

    def run(self, shape: Shape, args: tuple, longest_s: float | None) -> Traced:
        """Launch the kernel; lines are those of the cells it stands in."""
        plain, fault = traced(self._kernel, shape, args, longest_s)
        if fault is None:
            return Traced(counts_of(plain).placed(self._text, self._lines), None, args)
        place = Places(self._text, self._lines)
        line = place.line(fault.line or 0) or None
        return Traced(None, replace(fault, line=line, code=place.code(fault.line or 0) if line else ""), args)


def traced(
    kernel: Callable, shape: Shape, args: tuple, longest_s: float | None, of_cpu: bool = False
) -> tuple[dict[str, Any] | None, Fault | None]:
    """Launch a kernel in the tracer; return what was counted as plain values, or the fault.

    The arrays in `args` are changed in place. Lines are those of the kernel's own file.
    """
    warm_up()
    with quiet():
        try:
            with time_limit(longest_s, of_cpu):
                found = trace(
                    kernel,
                    shape.grid,
                    shape.block,
                    *args,
                    progress=False,
                )
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return None, _fault(error, kernel)
    if len(found.source) > MOST_ROWS or len(found.global_accesses) > MOST_ROWS:
        return None, Fault((NotTraceable.__name__, "Exception"), "the kernel is too long to be judged")
    return plain_counts(found), None


def _fault(error: BaseException, kernel: Callable) -> Fault:
    """Return the fault with the line in the kernel's file where it came up."""
    if isinstance(error, NotTraceable):
        here = error.file == kernel.py_func.__code__.co_filename if hasattr(kernel, "py_func") else True
        return Fault(
            (NotTraceable.__name__, "Exception"), error.sentence, error.line or None if here else None
        )
    return replace(fault_of(error), line=_line_of(error))


def _line_of(error: BaseException) -> int | None:
    """Return the line of the kernel that the tracer was in: its machine is `L` in the rewritten text."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        line = getattr(frame.f_globals.get("L"), "line", None)
        if isinstance(line, int):
            return line or None
    return None


@functools.cache
def warm_up() -> None:
    """Have the tracer compile its own parts, or take them from the disk: some seconds the first time."""
    values = np.zeros(64, np.float32)
    trace(_every_kind_of_access, 2, 32, values, values.copy(), np.zeros(4, np.int32), progress=False)


@cuda.jit
def _every_kind_of_access(A, B, H):
    i = cuda.grid(1)
    tile = cuda.shared.array(64, float32)
    tile[cuda.threadIdx.x] = A[i]
    cuda.syncthreads()
    if i % 2 == 0:
        B[i] = tile[31 - cuda.threadIdx.x] + A[0]
    cuda.syncwarp()
    cuda.atomic.add(H, i % 4, 1)
    cuda.atomic.add(A, 0, 1.0)
