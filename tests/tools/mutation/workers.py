"""Doing many pieces of work in processes of their own: what hangs or crashes costs only itself."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

import psutil

DIED = "died"
#: Room that a process may take beyond what it has at its start, and the room that every job may count on.
MEMORY, ROOM = 3 * 2**30, 2 * 2**30


def spread(work: Callable, jobs: Sequence[tuple], limit_s: float = 60.0) -> Iterator[tuple[int, Any]]:
    """Yield (number of the job, work(*job)) as they are done; DIED for a job that crashed or took too long.

    `work` is a function of a module; there is a process for each core. What it raises is raised here.
    """
    mine = threading.local()

    def done(job: tuple) -> Any:
        if not hasattr(mine, "process"):  # spawned: the same everywhere, and nothing is inherited
            context = multiprocessing.get_context("spawn")
            mine.process = ProcessPoolExecutor(1, context, initializer=_limit_memory, initargs=(work,))
        try:
            result, is_full = mine.process.submit(_watched, work, job, limit_s).result()
        except BrokenProcessPool:
            result, is_full = DIED, True
        if is_full:
            mine.process.shutdown()
            del mine.process
        return result

    team = ThreadPoolExecutor(_cores())
    try:
        numbers = {team.submit(done, job): number for number, job in enumerate(jobs)}
        for future in as_completed(numbers):
            yield numbers[future], future.result()
    finally:
        team.shutdown(cancel_futures=True)


def _watched(work: Callable, job: tuple, limit_s: float) -> tuple[Any, bool]:
    """Return work(*job), and whether too much is left in the process: Numba keeps all it compiles."""
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(limit_s, exit=True, file=nowhere)  # compiled loops, too, end so
        try:
            return work(*job), _memory() > _most - ROOM
        finally:
            faulthandler.cancel_dump_traceback_later()


_most = float("inf")


def _limit_memory(work: Callable) -> None:
    """Let this process, once `work` is imported, grow by MEMORY and no more, where the system can do that."""
    global _most
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = _memory() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        _most = most


def _memory() -> int:
    """Return the address space of this process in bytes."""
    return psutil.Process().memory_info().vms


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
