"""Who does the work of judging a class: processes on this machine, or a Dask cluster.

A team takes jobs as it has hands for them, so that only a few submissions are in memory at a time, and gives
verdicts in the order in which they are ready. A hand is a process that judges one submission at a time and
that may be killed at any moment: by the teacher's Ctrl-C, and when a submission takes more than it may,
whatever it is that takes long. A hand that dies costs nobody else a grade: its submission is tried once more,
and one that kills its hand again gets a verdict that says so.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

import psutil

from course_lib.grading.classroom.verdict import SubmissionJob, Verdict, course_mark, judged, unjudged
from course_lib.grading.sandbox.bubblewrap import Sandbox

AHEAD = 2  # jobs handed out for each worker, so that none waits for the next
DIED = "Judging it ended the grader's own process twice; it has no points until somebody has looked at it."
FAILED = "Judging it failed ({problem}); it has no points until somebody has looked at it."
#: What one submission may take. OWN_S is the grader's own work on it (to read, to cut out answers, rules, to
#: compare) in seconds of the CPU, some of an ordinary one; answers run elsewhere, with limits of their own.
OWN_S, OWN_MB = 60.0, 4096
WHOLE_S = 900.0  # wall time, answers included: some ten seconds of an ordinary one
GLANCE_S = 0.5  # between two looks at a hand
TOO_LONG = (
    "Reading and judging it took {what}, so it was stopped; it has no points until somebody has looked at it."
)
PATIENCE = "5s"  # for a scheduler to answer
PR_SET_PDEATHSIG = 1
CODE = (
    "import sys; sys.path[:] = {paths!r}; from course_lib.grading.classroom.team import serve; serve({pid})"
)
Work = Callable[[SubmissionJob], Verdict]


class SchedulerError(ConnectionError):
    """The cluster cannot be used; the message says why and what to do."""


def local(jobs: Iterable[SubmissionJob], workers: int, work: Work = judged) -> Iterator[Verdict]:
    """Judge on this machine, `workers` submissions at a time. Closed early, it waits for none of them."""
    hands, pool = _Hands(), ThreadPoolExecutor(workers)
    try:
        yield from _as_done(pool, iter(jobs), workers * AHEAD, functools.partial(hands.judged, work))
    finally:
        try:
            hands.close()
        finally:  # once more if a second Ctrl-C came in between: Python's own end waits for the pool
            hands.close()
            pool.shutdown(cancel_futures=True)


def apart(job: SubmissionJob) -> Verdict:
    """Judge one submission in a process beside this one, within the limits; it stays for the next one."""
    return _own_hands().judged(judged, job)


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
        yield from _as_done(client.get_executor(pure=False, retries=1), iter(jobs), most, apart)
    finally:
        client.close()


def _as_done(team: Executor, waiting: Iterator[SubmissionJob], most: int, work: Work) -> Iterator[Verdict]:
    """Yield verdicts until all is done; at most so many jobs are handed out at a time."""
    running: dict[Future, SubmissionJob] = {}
    while True:
        while len(running) < most and (job := next(waiting, None)) is not None:
            running[team.submit(work, job)] = job
        if not running:
            return
        # with an end, as Windows obeys no Ctrl-C in a wait without one
        for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
            job = running.pop(future)
            try:
                yield future.result()
            except Exception as problem:
                died = type(problem).__name__ == "KilledWorker"  # Dask's word for it, after trying again
                yield unjudged(job, DIED if died else FAILED.format(problem=_in_words(problem)))


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


# --- hands --------------------------------------------------------------------------------------------------


class _Gone(Exception):
    """The hand is no more; the message says what it took too much of, if that is why."""


class _Hands:
    """A hand for each thread that asks for one, all of which can be ended at once."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._lock = threading.Lock()
        self._all: list[_Hand] = []
        self._closed = False
        atexit.register(self.close)  # if nobody does: those of nbgrader and of a cluster's worker

    def judged(self, work: Work, job: SubmissionJob) -> Verdict:
        """Return the verdict, whatever becomes of the hand."""
        for _ in range(2):
            try:
                return self._hand().judged(work, job)
            except _Gone as problem:
                self._of_thread.hand = None
                if str(problem):  # once more would take as long
                    return unjudged(job, str(problem))
        return unjudged(job, DIED)

    def close(self) -> None:
        """End all hands, whatever they do."""
        with self._lock:
            self._closed = True
            for hand in self._all:
                hand.kill()

    def _hand(self) -> _Hand:
        hand = getattr(self._of_thread, "hand", None)
        if hand is None:
            with self._lock:
                if self._closed:
                    raise _Gone("The run was ended.")
                hand = self._of_thread.hand = _Hand()
                self._all.append(hand)
        return hand


@functools.cache
def _own_hands() -> _Hands:
    """The hands of whoever judges one submission after the other: nbgrader, a worker of a cluster."""
    return _Hands()


class _Hand:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE.format(paths=sys.path, pid=os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the grader, which ends its hands
        )
        self._why = ""

    def judged(self, work: Work, job: SubmissionJob) -> Verdict:
        """Return the verdict; _Gone if the process ended or was ended meanwhile."""
        done = threading.Event()
        threading.Thread(target=self._watch, args=(done,), daemon=True).start()
        try:
            pickle.dump((work, job), self._process.stdin)
            self._process.stdin.flush()
            reply = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            self.kill()
            raise _Gone(self._why) from None
        finally:
            done.set()
        return reply["verdict"] if "verdict" in reply else unjudged(job, FAILED.format(**reply))

    def kill(self) -> None:
        """End the process and all below it: answers of root's are another user's, so none ends with it."""
        if self._process.poll() is None:
            with contextlib.suppress(psutil.Error):
                hand = psutil.Process(self._process.pid)
                hand.suspend()  # it starts no more of them
                _kill([hand, *hand.children(recursive=True)])
        self._process.kill()
        self._process.wait()

    def _watch(self, done: threading.Event) -> None:
        began, used = time.monotonic(), None
        with contextlib.suppress(psutil.Error):  # it has ended by itself
            process = psutil.Process(self._process.pid)
            while not done.wait(GLANCE_S):
                times = process.cpu_times()
                used = times.user + times.system if used is None else used
                memory_mb = process.memory_info().rss / 2**20
                if time.monotonic() - began > WHOLE_S:
                    what = f"more than {WHOLE_S:g} s, answers included"
                elif times.user + times.system - used > OWN_S:
                    what = f"more than {OWN_S:g} s of the grader's own time"
                elif memory_mb > OWN_MB:
                    what = f"more than {OWN_MB:g} MB of the grader's own memory"
                else:
                    continue
                self._why = TOO_LONG.format(what=what)
                return self.kill()


def serve(parent: int) -> None:
    """Judge what comes on standard input until it is closed: the program of a hand."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # end with the grader, even if that is killed, and with us the answers
        told, tells = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(tells, False)
        signal.set_wakeup_fd(tells)
        signal.signal(signal.SIGTERM, lambda *_: None)
        threading.Thread(target=_end_when_told, args=(told,), daemon=True).start()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed is no reply
    while True:
        try:
            work, job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            reply = {"verdict": work(job)}
        except Exception as problem:
            reply = {"problem": _in_words(problem)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _end_when_told(signals: int) -> None:
    """Wait for SIGTERM on a thread of its own, whatever the main one does."""
    while os.read(signals, 1) != bytes([signal.SIGTERM]):
        pass
    _kill(psutil.Process().children(recursive=True))
    os._exit(1)


def _kill(processes: Iterable[psutil.Process]) -> None:
    for one in processes:
        with contextlib.suppress(psutil.Error):
            one.kill()
