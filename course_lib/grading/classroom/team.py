"""Who does the work of judging a class: processes on this machine, or a Dask cluster.

A team takes jobs as it has hands for them, so that only a few submissions are in memory at a time, and gives
verdicts in the order in which they are ready. A worker that dies costs nobody a grade: its submissions are
tried again, alone, and one that kills its worker again gets a verdict that says so.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from course_lib.grading.classroom.verdict import SubmissionJob, Verdict, course_mark, judged, unjudged
from course_lib.grading.sandbox.bubblewrap import Sandbox

AHEAD = 2  # jobs handed out for each worker, so that none waits for the next
DIED = "Judging it ended the grader's own process twice; it has no points until somebody has looked at it."
FAILED = "Judging it failed ({problem}); it has no points until somebody has looked at it."
PATIENCE = "5s"  # for a scheduler to answer
PR_SET_PDEATHSIG = 1


class SchedulerError(ConnectionError):
    """The cluster cannot be used; the message says why and what to do."""


def local(
    jobs: Iterable[SubmissionJob], workers: int, work: Callable[[SubmissionJob], Verdict] = judged
) -> Iterator[Verdict]:
    """Judge on this machine, `workers` submissions at a time."""
    waiting = iter(jobs)
    suspects: list[SubmissionJob] = []
    more = True
    while more:
        with _pool(workers) as pool:
            more = yield from _until_broken(pool, waiting, workers * AHEAD, work, suspects)
    for job in suspects:  # they were in hand when a worker died: once more, with nobody beside them
        with _pool(1) as pool:
            if (yield from _until_broken(pool, iter([job]), 1, work, [])):
                yield unjudged(job, DIED)


def _until_broken(
    team: Executor,
    waiting: Iterator[SubmissionJob],
    most: int,
    work: Callable[[SubmissionJob], Verdict],
    suspects: list[SubmissionJob],
) -> Iterator[Verdict]:
    """Yield verdicts until all is done (returns False) or a worker has died (True: there may be more)."""
    running: dict[Future, SubmissionJob] = {}
    while True:
        while len(running) < most and (job := next(waiting, None)) is not None:
            try:
                running[team.submit(work, job)] = job
            except BrokenProcessPool:
                suspects += [job, *running.values()]
                return True
        if not running:
            return False
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            job = running.pop(future)
            try:
                yield future.result()
            except BrokenProcessPool:
                suspects += [job, *running.values()]
                return True
            except Exception as problem:
                died = type(problem).__name__ == "KilledWorker"  # Dask's word for it, after trying again
                yield unjudged(job, DIED if died else FAILED.format(problem=_in_words(problem)))


def _pool(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # a fork would carry the grader's threads and locks along
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    """Make a worker end with its parent, even if that is killed, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)


def cluster(jobs: Iterable[SubmissionJob], address: str, sandbox: Sandbox) -> Iterator[Verdict]:
    """Judge on the Dask cluster whose scheduler is at `address`, like "tcp://10.0.0.1:8786".

    SchedulerError or NoSandbox if it cannot be done there. The jobs carry the secret seed over the network.
    """
    from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as problem:
        raise SchedulerError(
            f"There is no Dask scheduler at {address} ({_in_words(problem)}): start `dask scheduler`, and "
            "`dask worker ADDRESS --nthreads 1` for each core, in the course's environment."
        ) from None
    try:
        _check_workers(client, sandbox)
        most = AHEAD * max(1, sum(client.nthreads().values()))
        yield from _until_broken(client.get_executor(pure=False, retries=1), iter(jobs), most, judged, [])
    finally:
        client.close()


def _check_workers(client: Any, sandbox: Sandbox) -> None:
    """See to it that there are workers, that all have this course's code and can make a sandbox."""
    marks = client.run(course_mark)
    if not marks:
        raise SchedulerError(
            "The cluster has no workers: start some with `dask worker ADDRESS --nthreads 1`."
        )
    others = [worker for worker, mark in marks.items() if mark != course_mark()]
    if others:
        raise SchedulerError(
            f"The worker {others[0]} has another version of the course: install the same one everywhere."
        )
    client.run(sandbox.check)


def _in_words(problem: BaseException) -> str:
    said = " ".join(str(problem).split())[:200]
    return f"{type(problem).__name__}: {said}" if said else type(problem).__name__
