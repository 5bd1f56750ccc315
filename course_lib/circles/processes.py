"""Matrix multiplication by worker processes: explicit processes instead of threads, and shared memory
between them.

    with Workers(2) as workers:
        C = workers.matmul(A, B)          each worker does a band of rows

Processes share nothing by themselves. A, B and C are therefore put into memory that has a name
(`multiprocessing.shared_memory`); a worker opens it by that name and writes its band of C, and nothing is
copied through a pipe but a few numbers. Workers are started afresh (`spawn`), so what they run must be
importable: a function of this file, not of a notebook. Not a rung of the ladder: starting Python takes
longer than most products.

Whatever happens, workers and shared memory are gone afterwards (see `measure.children`).
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import pairwise
from multiprocessing import connection, resource_tracker, shared_memory
from typing import Any

import numpy as np

from course_lib.circles.front_door import Array, Matmul, check_operands
from course_lib.measure.children import Children, in_words

MOST_WORKERS = 64


def matmul(
    A: Array, B: Array, workers: int = 2, multiply: Matmul | None = None, time_limit_s: float = 60
) -> Array:
    """Return A @ B (M, N) for A (M, K), B (K, N), both float32 or both float64, by new processes."""
    with Workers(workers, multiply, time_limit_s) as team:
        return team.matmul(A, B)


class Workers:
    """Processes that multiply bands of rows until the block is left.

    `multiply(A, B)` must be importable (None: NumPy's @, held to one thread in each worker). `time_limit_s`
    is for the whole block. Raises TimeoutError at the limit, RuntimeError if a worker fails or is killed.
    """

    def __init__(self, workers: int = 2, multiply: Matmul | None = None, time_limit_s: float = 60) -> None:
        if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
            raise ValueError(
                f"workers is {workers!r}, but it must be a whole number from 1 to {MOST_WORKERS}."
            )
        if getattr(multiply, "__module__", "") == "__main__" or "<" in getattr(multiply, "__qualname__", ""):
            raise ValueError(
                f"multiply is {multiply!r}, which a new process cannot import: put the function into a file."
            )
        self.pids: tuple[int, ...] = ()
        self.start_s = 0.0  # how long it took until every worker was ready
        self.seconds: tuple[float, ...] = ()  # of each worker for its band, in the last product
        self._count, self._multiply = workers, multiply
        self._children = Children(time_limit_s)
        self._until = 0.0
        self._team: list[tuple[Any, Any]] = []  # (process, pipe)
        self._undo = ExitStack()

    def __enter__(self) -> Workers:
        start = time.perf_counter()
        self._until = time.monotonic() + self._children.time_limit_s
        self._undo.callback(_stop_tracker, _tracker_runs())
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
            resource_tracker.ensure_running()  # before `marked`: it cleans up even after us
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
        if not self._team:
            raise ValueError(
                "The workers are not running: use them inside the block `with Workers() as workers:`."
            )
        M, N = A.shape[0], B.shape[1]
        with ExitStack() as memory:
            names = []
            for X in (A, B, np.zeros((M, N), A.dtype)):
                shared, name = _share(X)
                memory.callback(shared.unlink)
                memory.callback(shared.close)
                names.append((name, X.shape, X.dtype.str))
            bands = list(pairwise(M * w // self._count for w in range(self._count + 1)))
            for (_, pipe), (start, stop) in zip(self._team, bands, strict=True):
                with suppress(OSError):  # a dead worker is noticed when its answer is asked for
                    pipe.send((names, start, stop))
            self.seconds = tuple(
                self._answer(number, f"rows {start} to {stop - 1}")
                for number, (start, stop) in enumerate(bands)
            )
            return np.ndarray((M, N), A.dtype, shared.buf).copy()

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
        for process, pipe in self._team:
            pipe.close()
            process.kill()
        for process, _ in self._team:
            process.join(5.0)
        self._team = []


def work(pipe: Any, multiply: Callable | None) -> None:
    """What a worker does: wait for a band, do it, answer with the seconds; end when the pipe closes."""
    from threadpoolctl import threadpool_limits

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
        C[start:stop] = multiply(A[start:stop], B)
        seconds = time.perf_counter() - begun
        del A, B, C, arrays  # shared memory cannot be closed while an array looks at it
        return seconds


def _share(X: Array) -> tuple[shared_memory.SharedMemory, str]:
    """Return new shared memory that holds a copy of X, and its name."""
    shared = shared_memory.SharedMemory(create=True, size=max(1, X.nbytes))
    np.ndarray(X.shape, X.dtype, shared.buf)[...] = X
    return shared, shared.name


def _tracker_runs() -> bool:
    return getattr(resource_tracker._resource_tracker, "_fd", None) is not None


def _stop_tracker(ran_before: bool) -> None:
    """End the process in which Python keeps the list of shared memory, if it was started for us.

    It would end with this process anyway; but nothing shall be left behind.
    """
    stop = getattr(resource_tracker._resource_tracker, "_stop", None)
    if not ran_before and stop is not None:
        with suppress(ChildProcessError):
            stop()
