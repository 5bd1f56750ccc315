"""Matrix multiplication by worker processes: explicit processes instead of threads, and shared memory
between them.

    with Workers(2) as workers:
        C = workers.matmul(A, B)          each worker does a band of rows

Processes share nothing by themselves. A, B and C are therefore put into memory that has a name
(`multiprocessing.shared_memory`); a worker opens it by that name and writes its band of C, and nothing is
copied through a pipe but a few numbers. Workers are started afresh (`spawn`), so what they run must be
importable: a function of this file, not of a notebook. Not a rung of the ladder: starting Python takes
longer than most products.

Whatever happens, workers and shared memory are gone afterwards (see `measure.children`). What remains is
the small process in which Python itself keeps the list of shared memory, yours too: it ends with Python.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from itertools import pairwise
from multiprocessing import resource_tracker, shared_memory
from typing import Any

import numpy as np

from course_lib.arguments import whole
from course_lib.circles.front_door import Array, check_operands
from course_lib.measure.children import SHARED_MEMORY_FOLDER, Children

MOST_WORKERS = 64


class Workers:
    """Processes that multiply bands of rows until the block is left.

    `time_limit_s` is for the whole block: TimeoutError is raised at the limit, RuntimeError if a worker is
    killed, MemoryError if shared memory is too small.
    """

    def __init__(self, workers: int = 2, time_limit_s: float = 60) -> None:
        self._count = whole("workers", workers, most=MOST_WORKERS)
        self._children = Children(time_limit_s)
        self.start_s = 0.0  # how long it took until every worker was ready
        self.seconds: tuple[float, ...] = ()  # for each band of the last product

    def __enter__(self) -> Workers:
        start = time.perf_counter()
        spawn = multiprocessing.get_context("spawn")
        if os.name == "posix":
            resource_tracker.ensure_running()  # before `marked`: it serves all of Python, not this block
        self._children.__enter__()
        self._pool = ProcessPoolExecutor(self._count, spawn, begin, (spawn.Barrier(self._count),))
        try:
            with self._children.marked():
                started = [self._pool.submit(time.sleep, 0) for _ in range(self._count)]
            self._results(started)
        except BaseException:
            self.__exit__()
            raise
        self.start_s = time.perf_counter() - start
        return self

    def __exit__(self, *problem: object) -> None:
        self._children.close()  # kills them first: the pool would wait for what they are at
        self._pool.shutdown()

    def matmul(self, A: Array, B: Array) -> Array:
        """Return A @ B (M, N): each worker does its band of rows of A (M, K) times all of B (K, N)."""
        check_operands(A, B)
        M, N = A.shape[0], B.shape[1]
        if 0 in (*A.shape, *B.shape):  # no memory has 0 bytes
            return np.zeros((M, N), A.dtype)
        with ExitStack() as memory:
            arrays = (A, B, np.zeros((M, N), A.dtype))
            blocks = [_shared(X, memory) for X in arrays]
            names = [(block.name, X.shape, X.dtype.str) for block, X in zip(blocks, arrays, strict=True)]
            bands = pairwise(M * w // self._count for w in range(self._count + 1))
            self.seconds = self._results(self._pool.submit(band, names, *rows) for rows in bands)
            return np.ndarray((M, N), A.dtype, blocks[-1].buf).copy()

    def _results(self, parts: Iterable[Future]) -> tuple:
        """Return what the workers give back, who work at once; they are ended if one does not."""
        try:
            return tuple(part.result() for part in [*parts])
        except BrokenProcessPool as problem:
            if self._children.is_over:
                limit = self._children.time_limit_s
                raise TimeoutError(f"The time limit of {limit:g} s was reached: all was ended.") from None
            raise RuntimeError("A worker was killed and left its band undone: start new ones.") from problem
        except BaseException:  # an interrupt, too: before the memory is removed under their hands
            self._children.end_all()
            raise


def begin(everybody: Any) -> None:
    """Make ready to work: on one thread, and when all workers are there."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the notebook, which then ends us
    threadpool_limits(limits=1)
    everybody.wait()


def band(names: list, start: int, stop: int) -> float:
    """Do rows start … stop - 1 of C in shared memory and return the seconds of the multiplication."""
    with ExitStack() as memory:
        arrays = []
        for name, shape, dtype in names:
            shared = shared_memory.SharedMemory(name)
            memory.callback(shared.close)
            arrays.append(np.ndarray(shape, dtype, shared.buf))
        A, B, C = arrays
        begun = time.perf_counter()
        C[start:stop] = A[start:stop] @ B
        seconds = time.perf_counter() - begun
        del A, B, C, arrays  # nobody may look at shared memory that is closed
        return seconds


def _shared(X: Array, memory: ExitStack) -> shared_memory.SharedMemory:
    """Return shared memory with a copy of X, until `memory` is left."""
    folder = SHARED_MEMORY_FOLDER
    if folder.is_dir() and X.nbytes > (free := shutil.disk_usage(folder).free):  # else a write ends Python
        raise MemoryError(f"{X.nbytes:,} bytes are needed, but {folder} has {free:,}: take smaller matrices.")
    shared = shared_memory.SharedMemory(create=True, size=X.nbytes)
    memory.callback(shared.unlink)
    memory.callback(shared.close)
    np.ndarray(X.shape, X.dtype, shared.buf)[...] = X
    return shared
