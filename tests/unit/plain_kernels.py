"""Runs a CUDA kernel's Python source as it stands, one thread after the other up to each barrier.

Slow, and it sees nothing but results; for tests of small products on a computer without a GPU. Shared memory
begins as NaN, so that a read of what nobody wrote shows in the result.
"""

from __future__ import annotations

from types import CellType, FunctionType, SimpleNamespace

import numba
import numpy as np
from greenlet import getcurrent, greenlet


def run(kernel, grid, block, *arguments) -> None:
    """Run `kernel[grid, block](*arguments)`; grid and block are (x, y)."""
    for y in range(grid[1]):
        for x in range(grid[0]):
            _run_block(kernel, SimpleNamespace(x=x, y=y), block, arguments)


def _run_block(kernel, block_index, block, arguments) -> None:
    shared: list[np.ndarray] = []
    threads = []
    for y in range(block[1]):
        for x in range(block[0]):
            cuda = _Thread(SimpleNamespace(x=x, y=y), block_index, shared)
            threads.append(greenlet(_with(cuda, kernel.py_func, {})))
    running = [thread for thread in threads if not _resume(thread, *arguments)]
    assert not running or len(running) == len(threads), "only some threads of the block wait at a barrier"
    while running:
        left = [thread for thread in running if not _resume(thread)]
        assert not left or len(left) == len(running), "only some threads of the block wait at a barrier"
        running = left


def _resume(thread, *arguments) -> bool:
    """Let a thread run to its next barrier; say whether it has ended."""
    thread.switch(*arguments)
    return thread.dead


class _Thread:
    """What stands for the module `cuda` in one thread."""

    def __init__(self, thread_index, block_index, shared) -> None:
        self.threadIdx, self.blockIdx = thread_index, block_index
        self.local = SimpleNamespace(array=_local)
        self.shared = SimpleNamespace(array=self._shared)
        self._arrays, self._declared = shared, 0

    def _shared(self, shape, dtype, alignment=None):
        if self._declared == len(self._arrays):
            self._arrays.append(_local(shape, dtype))
        self._declared += 1
        return self._arrays[self._declared - 1]

    def syncthreads(self) -> None:
        getcurrent().parent.switch()


def _local(shape, dtype, alignment=None):
    return np.full(shape, np.nan, numba.np.numpy_support.as_dtype(dtype))


def _with(cuda, function, done):
    """Return the function with another `cuda`, in the device functions it calls as well."""
    if function in done:
        return done[function]

    def replaced(value):
        if value is numba.cuda:
            return cuda
        return _with(cuda, value.py_func, done) if hasattr(value, "py_func") else value

    names = function.__code__.co_names
    own = {name: replaced(value) for name, value in function.__globals__.items() if name in names}
    cells = tuple(CellType(replaced(cell.cell_contents)) for cell in function.__closure__ or ())
    done[function] = FunctionType(function.__code__, {**function.__globals__, **own}, closure=cells)
    return done[function]
