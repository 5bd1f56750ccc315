"""Doing many pieces of work in processes that can be killed: what hangs or crashes costs only itself."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import psutil

TIME, CRASH = "time", "crash"
#: Room that a process may take beyond what it has at its start, and the room that every job may count on.
MEMORY, ROOM = 3 * 2**30, 2 * 2**30


class WorkFailed(RuntimeError):
    """The work itself raised an exception, which is no fault of what it worked on."""


def spread(
    work: Callable, jobs: Sequence, workers: int = 0, limit_s: float = 60.0
) -> Iterator[tuple[int, Any]]:
    """Yield (number of the job, work(job)) as they are done; TIME or CRASH for a job that was killed or died.

    `work` is a function of a module, `workers` 0 takes one for each core. A job that raises ends it all with
    WorkFailed.
    """
    waiting = list(range(len(jobs)))[::-1]
    team = [_Worker(work) for _ in range(min(workers or _cores(), len(jobs)))]
    try:
        while waiting or any(one.job is not None for one in team):
            for one in team:
                if one.free and waiting:
                    one.start(waiting[-1], jobs[waiting.pop()], limit_s)
            ready = wait([one.pipe for one in team], timeout=max(0.01, min(one.left for one in team)))
            for place, one in enumerate(team):
                done = one.take() if one.pipe in ready else None
                if done is None and one.left <= 0:
                    done = one.too_late()
                if done is None:
                    continue
                yield one.job, done
                one.job = None
                if done in (TIME, CRASH) or one.full:
                    one.end()
                    team[place] = _Worker(work)
    finally:
        for one in team:
            one.end()


class _Worker:
    """A process that does one job after the other, and what it is doing now."""

    def __init__(self, work: Callable) -> None:
        context = multiprocessing.get_context("spawn")  # the same everywhere, and nothing is inherited
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()
        self.job: int | None = None
        self.free = False
        self.full = False  # what earlier jobs left (Numba keeps all it compiles) takes the room of the next
        self._until = time.monotonic() + 120  # to begin at all

    @property
    def left(self) -> float:
        """Seconds that it may still take."""
        return 3600.0 if self.free else self._until - time.monotonic()

    def start(self, number: int, job: Any, limit_s: float) -> None:
        """Give it a job."""
        self.job, self.free = number, False
        self._until = time.monotonic() + limit_s
        self.pipe.send(job)

    def take(self) -> Any:
        """Return the result, CRASH if the process has died, None if it only says that it is ready."""
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError):
            if self.job is None:
                raise WorkFailed("A process for the survey ended before it had any work.") from None
            return CRASH
        self.free, self.full = True, kind == "done, and full"
        if kind == "failed":
            raise WorkFailed(f"The survey itself failed:\n{value}")
        return value

    def too_late(self) -> str:
        """Return TIME for the job; WorkFailed if there is none because the process never began."""
        if self.job is None:
            raise WorkFailed("A process for the survey did not begin within 2 minutes.")
        return TIME

    def end(self) -> None:
        """Kill the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection, work: Callable) -> None:
    most = _limit_memory()
    pipe.send(("ready", None))
    with suppress(EOFError):
        while True:
            job = pipe.recv()
            try:
                done = work(job)
                full = most is not None and _memory() > most - ROOM
                pipe.send(("done, and full" if full else "done", done))
            except Exception:
                pipe.send(("failed", traceback.format_exc()))


def _limit_memory() -> int | None:
    """Let this process grow by MEMORY and no more, where the system can do that; return what it may have."""
    try:
        import resource

        most = _memory() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, OSError, ValueError):
        return None
    return most


def _memory() -> int:
    """Return the address space of this process in bytes."""
    return psutil.Process().memory_info().vms


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
