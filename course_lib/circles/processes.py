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

import errno
import math
import multiprocessing
import os
import pickle
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import pairwise
from multiprocessing import connection, resource_tracker, shared_memory
from typing import Any

import numpy as np

from course_lib.arguments import whole
from course_lib.circles.front_door import Array, Matmul, check_operands
from course_lib.measure.children import SHARED_MEMORY_FOLDER, Children, in_words

MOST_WORKERS = 64


def matmul(
    A: Array, B: Array, workers: int = 2, multiply: Matmul | None = None, time_limit_s: float = 60
) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, by new processes."""
    with Workers(workers, multiply, time_limit_s) as team:
        return team.matmul(A, B)


class Workers:
    """Processes that multiply bands of rows until the block is left.

    `multiply(A, B)` must be importable (None: NumPy's @, held to one thread in each worker), and must not
    write to A or B: the workers share them. `time_limit_s`
    is for the whole block. `matmul` may be called from several threads; they take turns. Raises TimeoutError
    at the limit, RuntimeError if a worker fails or is killed, MemoryError if shared memory is too small.
    After an error or an interrupt in the middle of a product the workers are ended: an answer that is still
    under way must never be taken for one to the next question.
    """

    def __init__(self, workers: int = 2, multiply: Matmul | None = None, time_limit_s: float = 60) -> None:
        whole("workers", workers, most=MOST_WORKERS)
        _check_multiply(multiply)
        self.pids: tuple[int, ...] = ()
        self.start_s = 0.0  # how long it took until every worker was ready
        self.seconds: tuple[float, ...] = ()  # of each worker for its band, in the last product
        self._count, self._multiply = workers, multiply
        self._children = Children(time_limit_s)
        self._until = 0.0
        self._team: list[tuple[Any, Any]] = []  # (process, pipe)
        self._lost = ""  # what ended the workers before the block did
        self._one_product = threading.RLock()  # a pipe carries one question and its answer at a time
        self._undo = ExitStack()

    def __enter__(self) -> Workers:
        start = time.perf_counter()
        self._until = time.monotonic() + self._children.time_limit_s
        self._undo.enter_context(self._children)
        self._undo.callback(self._end)
        try:
            self._start()
        except BaseException:
            self._undo.close()
            raise
        self.start_s = time.perf_counter() - start
        return self

    def __exit__(self, *problem: object) -> None:
        self._undo.close()

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        if os.name == "posix":
            resource_tracker.ensure_running()  # before `marked`: it serves all of Python, not this block
        with self._children.marked():
            for number in range(self._count):
                ours, theirs = spawn.Pipe()
                process = spawn.Process(
                    target=work, args=(theirs, self._multiply), name=f"worker {number}", daemon=True
                )
                process.start()
                theirs.close()
                self._team.append((process, ours))
        self.pids = tuple(process.pid for process, _ in self._team)
        for number in range(self._count):
            self._answer(number, "starting")

    def matmul(self, A: Array, B: Array) -> Array:
        """Return A @ B (M, N): worker w does its band of rows of A (M, K) times all of B (K, N)."""
        check_operands(A, B)
        with self._one_product:
            self._check_team()
            M, N = A.shape[0], B.shape[1]
            if 0 in (*A.shape, *B.shape):  # an empty sum is zero, an empty matrix stays empty
                self.seconds = (0.0,) * self._count
                return np.zeros((M, N), A.dtype)
            bands = list(pairwise(M * w // self._count for w in range(self._count + 1)))
            with ExitStack() as memory:
                arrays = (A, B, np.zeros((M, N), A.dtype))
                blocks = _share_all(arrays, memory)
                names = [(block.name, X.shape, X.dtype.str) for block, X in zip(blocks, arrays, strict=True)]
                self.seconds = self._all_do(names, bands)
                return np.ndarray((M, N), A.dtype, blocks[-1].buf).copy()

    def _check_team(self) -> None:
        if self._lost:
            raise RuntimeError(
                f"These workers were ended in the middle of a product ({self._lost}): start new ones with "
                "`with Workers() as workers:`."
            )
        if not self._team:
            raise ValueError(
                "The workers are not running: use them inside the block `with Workers() as workers:`."
            )

    def _all_do(self, names: list, bands: list[tuple[int, int]]) -> tuple[float, ...]:
        """Ask every worker for its band and return their seconds; whatever goes wrong ends them all."""
        busy = [(number, *rows) for number, rows in enumerate(bands) if rows[0] < rows[1]]
        seconds = [0.0] * self._count
        try:
            for number, start, stop in busy:
                with suppress(OSError):  # a dead worker is noticed when its answer is asked for
                    self._team[number][1].send((names, start, stop))
            for number, start, stop in busy:
                seconds[number] = self._answer(number, f"rows {start} to {stop - 1}")
        except BaseException as problem:  # also an interrupt
            self._lost = str(problem).rstrip(".") or type(problem).__name__
            self._end()  # before the memory is removed under their hands
            raise
        return tuple(seconds)

    def _answer(self, number: int, what: str) -> Any:
        """Return what a worker sends; raises if it dies, fails or takes too long."""
        process, pipe = self._team[number]
        left = self._until - time.monotonic()
        ready = connection.wait([pipe, process.sentinel], timeout=max(0.0, left))
        if pipe in ready:
            try:
                kind, value = pipe.recv()
            except (EOFError, OSError):
                kind, value = "died", None
            if kind == "done":
                return value
            if kind == "failed":
                raise RuntimeError(f"Worker {number} failed at {what}: {value}.")
        if self._children.is_over or time.monotonic() >= self._until:
            limit = self._children.time_limit_s
            raise TimeoutError(f"The time limit of {limit:g} s was reached; worker {number} was at {what}.")
        process.join(1.0)
        how = "ended" if process.exitcode is None else in_words(process.exitcode)
        raise RuntimeError(f"Worker {number} (pid {process.pid}) is gone ({how}) and left {what} undone.")

    def _end(self) -> None:
        for process, _ in self._team:
            process.kill()
        with self._one_product:  # a product in another thread notices that the workers are gone
            for process, pipe in self._team:
                process.join(5.0)
                pipe.close()
            self._team = []


def work(pipe: Any, multiply: Callable | None) -> None:
    """What a worker does: wait for a band, do it, answer with the seconds; end when the pipe closes."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the notebook, which then ends us
    with threadpool_limits(limits=1):
        pipe.send(("done", 0.0))
        while True:
            try:
                names, start, stop = pipe.recv()
            except (EOFError, OSError):
                return
            try:
                pipe.send(("done", band(names, start, stop, multiply or np.matmul)))
            except Exception as problem:
                pipe.send(("failed", f"{type(problem).__name__}: {problem}"))


def band(names: list, start: int, stop: int, multiply: Callable) -> float:
    """Do rows start … stop - 1 of C in shared memory and return the seconds of the multiplication."""
    with ExitStack() as memory:
        arrays = []
        for name, shape, dtype in names:
            shared = shared_memory.SharedMemory(name)
            memory.callback(shared.close)
            arrays.append(np.ndarray(shape, dtype, shared.buf))
        A, B, C = arrays
        begun = time.perf_counter()
        product = multiply(A[start:stop], B)
        if np.shape(product) != C[start:stop].shape:  # NumPy would stretch a row or a number to fit
            raise ValueError(f"got shape {np.shape(product)} instead of {C[start:stop].shape}")
        if np.iscomplexobj(product):
            raise TypeError(f"got {product.dtype} instead of {C.dtype}")
        C[start:stop] = product
        seconds = time.perf_counter() - begun
        del A, B, C, arrays, product  # nobody may look at shared memory that is closed
        return seconds


def _check_multiply(multiply: Any) -> None:
    """Raise one sentence unless a new process can be told which function is meant."""
    if multiply is None:
        return
    if not callable(multiply):
        raise TypeError(
            f"multiply is {multiply!r}, but it must be a function of A and B, for example np.matmul; "
            "leave it out for NumPy's @."
        )
    try:
        is_known = b"__main__" not in pickle.dumps(multiply)  # the notebook is a __main__ of its own
    except Exception:
        is_known = False
    if not is_known:
        raise ValueError(
            f"multiply is {multiply!r}, which a new process cannot import: put the function into a file."
        )


def _share_all(arrays: tuple[Array, ...], memory: ExitStack) -> list[shared_memory.SharedMemory]:
    """Return shared memory with a copy of each array, until `memory` is left; MemoryError if too small."""
    needed = sum(X.nbytes for X in arrays)
    if SHARED_MEMORY_FOLDER.is_dir() and needed > shutil.disk_usage(SHARED_MEMORY_FOLDER).free:
        raise _too_small(needed)
    blocks = []
    for X in arrays:
        try:
            blocks.append(_share(X))
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.ENOMEM):
                raise _too_small(needed) from problem
            raise
        memory.callback(blocks[-1].unlink)
        memory.callback(blocks[-1].close)
    return blocks


def _share(X: Array) -> shared_memory.SharedMemory:
    """Return new shared memory that holds a copy of X."""
    shared = shared_memory.SharedMemory(create=True, size=max(1, X.nbytes))
    try:
        _reserve(shared)
        np.ndarray(X.shape, X.dtype, shared.buf)[...] = X
    except BaseException:
        shared.close()
        shared.unlink()
        raise
    return shared


def _reserve(shared: shared_memory.SharedMemory) -> None:
    """Take the pages now: the system promises more than it has, and kills whoever writes what is missing."""
    file = SHARED_MEMORY_FOLDER / shared.name
    if not hasattr(os, "posix_fallocate") or not file.exists():
        return
    opened = os.open(file, os.O_RDWR)
    try:
        os.posix_fallocate(opened, 0, shared.size)
    finally:
        os.close(opened)


def _too_small(needed: int) -> MemoryError:
    free = ""
    if SHARED_MEMORY_FOLDER.is_dir():
        free = f" ({shutil.disk_usage(SHARED_MEMORY_FOLDER).free:,} bytes free in {SHARED_MEMORY_FOLDER})"
    return MemoryError(
        f"A, B and C need {needed:,} bytes of shared memory, but there is less{free}: take smaller matrices, "
        f"or enlarge it, in a container with --shm-size={max(1, math.ceil(2 * needed / 2**20))}m."
    )
