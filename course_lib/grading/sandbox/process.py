"""One process for answers, seen from outside: it is asked, watched and killed."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import psutil

from course_lib.grading.sandbox import wire
from course_lib.grading.sandbox.bubblewrap import COURSE, Sandbox

STARTS_WAIT_S = (0.5, 3.0)
START_S = 60.0  # until the process has imported what it needs, on a busy machine
GLANCE_S = 0.25  # between two looks at a running call
UNASKED = ("Garbled", "it answered without being asked")
#: Run before any answer is there: it shows its /tmp, so that what lies there can be counted from outside.
SHOW = (
    "import os, socket; wire = socket.socket(fileno={0}); "
    "socket.send_fds(wire, [b'/'], [os.open('/tmp', os.O_RDONLY)]); wire.close(); "
)
CODE = (
    "import sys; sys.path.insert(0, {course!r}); "
    "from course_lib.grading.sandbox.inside import main; main({limits!r})"
)


class Stopped(RuntimeError):
    """The process was killed or ended by itself; `kind` is what to call that, the message says why."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class GraderFault(RuntimeError):
    """Something failed that no answer has a part in: nobody may lose points by it."""


def start(sandbox: Sandbox) -> AnswerProcess:
    """Return a new process; GraderFault if none starts, though it is tried several times."""
    for wait_s in (*STARTS_WAIT_S, 0.0):
        try:
            return AnswerProcess(sandbox)
        except (Stopped, OSError, ValueError) as problem:  # no memory, no processes left: that passes
            why = str(problem)
            time.sleep(wait_s)
    raise GraderFault(f"a process for an answer did not start: {why}")


class AnswerProcess:
    """A Python process in a sandbox that answers requests; use it as a context, or call `kill`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._limits = sandbox.limits
        self._started = time.perf_counter()
        code = CODE.format(course=str(COURSE), limits=self._limits.inside(sandbox.unsafe))
        self._disk: int | None = None  # its /tmp
        self.seconds = 0.0
        self._inner: int | None = None
        ours, theirs = socket.socketpair()
        with ours:
            show = "" if sandbox.unsafe else SHOW.format(theirs.fileno())
            with theirs, sandbox.launch(show + code, theirs.fileno()) as how:
                self._outer = subprocess.Popen(
                    **how,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    start_new_session=True,  # the teacher's Ctrl-C is the grader's business
                )
            self._replies: queue.Queue = queue.Queue(maxsize=4)
            threading.Thread(target=self._read, daemon=True).start()
            try:
                self.ask({"do": "prepare", "args": ()}, START_S, START_S)
                if show:
                    ours.settimeout(1.0)
                    (self._disk,) = socket.recv_fds(ours, 1, 1)[1]
            except BaseException:
                self.kill()
                raise
        self._inner = _innermost(self._outer.pid, sandbox.unsafe)

    def ask(
        self,
        request: dict[str, Any],
        cpu_s: float,
        wall_s: float,
        answer: Callable[[Any], dict[str, Any]] | None = None,
        behind: bytes = b"",
    ) -> dict[str, Any]:
        """Send a request and return the reply; Stopped if there is none within these seconds.

        Before it replies the process may ask, too: `answer` says what to send back, in its own time. What
        it reads during the call stands `behind` the request.
        """
        if self.ended:
            raise Stopped("Stopped", "the process that ran it has ended")
        watch = _LimitWatch(self, cpu_s, wall_s)
        token = secrets.token_hex(8)  # a reply that was made before the request cannot have it
        self._ship({**request, "token": token}, behind)
        try:
            reply = watch.wait(self._replies)
            while answer and isinstance(reply, dict) and "asks" in reply and reply.get("token") == token:
                began = time.perf_counter()
                self._ship(answer(reply["asks"]))
                watch.excuse(time.perf_counter() - began)
                reply = watch.wait(self._replies)
            watch.look_at_files()
        except Stopped:
            self.kill()
            raise
        if isinstance(reply, dict) and reply.pop("token", None) == token:
            return reply
        self.kill()
        raise Stopped(*(UNASKED if isinstance(reply, dict) else reply))

    @property
    def ended(self) -> bool:
        """Whether the process is no more."""
        return self._outer.poll() is not None

    def cpu(self) -> float | None:
        """Return the CPU seconds that the process has used, on all its threads; None where nobody knows."""
        inner = self._inner
        if inner is None or not hasattr(time, "clock_gettime"):
            return None
        try:
            return time.clock_gettime((~inner << 3) | 2)  # the clock of another process (clock_getcpuclockid)
        except OSError:
            return None

    def family(self) -> list[psutil.Process]:
        """Return the processes that live below the one that was started: Python, and all it has started."""
        try:
            return psutil.Process(self._outer.pid).children(recursive=True)
        except psutil.Error:
            return []

    def has_helpers(self) -> bool:
        """Whether the process has started others: their time is not on its clock."""
        return any(one.pid != self._inner for one in self.family())

    def memory_mb(self) -> float:
        """Return the memory that the process and all it has started hold."""
        total = 0
        with contextlib.suppress(psutil.Error):
            for one in (psutil.Process(self._outer.pid), *self.family()):
                with contextlib.suppress(psutil.Error):
                    total += one.memory_info().rss
        return total / 2**20

    def files(self) -> int:
        """Return how many files, folders, links … lie in the only place where it can write."""
        if self._disk is None:
            return 0
        known = os.fstatvfs(self._disk)
        return known.f_files - known.f_ffree

    def kill(self) -> None:
        """End the process and all it has started, for good."""
        if not self.ended:
            for one in self.family():
                with contextlib.suppress(psutil.Error):
                    one.kill()
            self._outer.kill()
        self._outer.wait()
        for stream in (self._outer.stdin, self._outer.stdout):
            with contextlib.suppress(OSError):
                stream.close()
        if self._disk is not None:
            os.close(self._disk)
            self._disk = None
        self.seconds = self.seconds or time.perf_counter() - self._started

    def __enter__(self) -> AnswerProcess:
        return self

    def __exit__(self, *problem: object) -> None:
        self.kill()

    def _ship(self, value: dict[str, Any], behind: bytes = b"") -> None:
        """Send a value on a thread of its own: a process that reads nothing must not stop the judge."""
        data = wire.frame(value, keep_strides=True) + behind
        threading.Thread(target=self._send, args=(data,), daemon=True).start()

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        with contextlib.suppress(OSError, ValueError):  # the reader's end tells what happened
            while view:
                view = view[self._outer.stdin.write(view) :]

    def _read(self) -> None:
        """Put every reply into the queue; at the end (kind, why) of it."""
        try:
            while True:
                reply = wire.read_frame(self._outer.stdout.read)
                if not isinstance(reply, dict):
                    raise wire.WireError("a reply is no reply")
                self._replies.put(reply, timeout=60)
        except wire.WireError as problem:
            self._end("Garbled", f"what came back from it cannot be read: {problem}")
        except (EOFError, OSError, ValueError):
            self._end("Stopped", "the process that ran it ended by itself: os._exit, a crash, or killed")
        except queue.Full:
            self._end(*UNASKED)

    def _end(self, kind: str, why: str) -> None:
        with contextlib.suppress(queue.Full):
            self._replies.put((kind, why), timeout=60)


class _LimitWatch:
    """Waits for a reply, and looks from time to time whether a limit is passed."""

    def __init__(self, process: AnswerProcess, cpu_s: float, wall_s: float) -> None:
        self._process = process
        self._cpu_s, self._wall_s = cpu_s, wall_s
        self._start = self._looked = time.perf_counter()
        self._cpu_start = process.cpu()

    def excuse(self, seconds: float) -> None:
        """Count so much less of the wall's time: the judge has used it."""
        self._start += seconds

    def wait(self, replies: queue.Queue) -> Any:
        if time.perf_counter() - self._looked > GLANCE_S:  # many quick questions take their time, too
            self._look()
        while True:
            try:
                return replies.get(timeout=GLANCE_S)
            except queue.Empty:
                self._look()

    def look_at_files(self) -> None:
        """Stopped if there are more than may be: of links and empty files no other limit knows."""
        made, most = self._process.files(), self._process._limits.files
        if made > most:
            raise Stopped("FileLimit", f"it made {made:,} files, more than the {most:,} allowed")

    def _look(self) -> None:
        self._looked = time.perf_counter()
        self.look_at_files()
        used, now = self._process.memory_mb(), self._process.cpu()
        most = self._process._limits.memory_mb
        if used > most:
            raise Stopped("MemoryLimit", f"it used {used:.0f} MB of memory, more than the {most} MB allowed")
        if now is not None and self._cpu_start is not None and now - self._cpu_start > self._cpu_s:
            raise Stopped("TimeLimit", f"it did not finish in {self._cpu_s:g} s: does a loop end?")
        if time.perf_counter() - self._start > self._wall_s:
            raise Stopped(
                "TimeLimit", f"it did not finish in {self._wall_s:g} s: does it wait for something?"
            )


def _innermost(outer: int, unsafe: bool) -> int | None:
    """Return the pid, as seen from here, of the Python process: bubblewrap's only child."""
    if unsafe:
        return outer
    children = Path(f"/proc/{outer}/task/{outer}/children")
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(children.read_text().split()[0])
    with contextlib.suppress(psutil.Error, IndexError):
        return psutil.Process(outer).children()[0].pid
    return None


# --- making the tracer ready: compiled once, in the first process, and handed to the others -----------------
# Numba keeps machine code in files. They leave a process that no answer has been in yet, as plain bytes, and
# are written again into the processes for other answers: nothing on the safe side reads them.

Files = dict[str, np.ndarray]  # name within Numba's folder -> bytes

READY_S = 120.0  # compiling takes some seconds, on a busy machine more
MOST_BYTES = 16 * 2**20


def make_ready(process: AnswerProcess, apart: bool = True) -> None:
    """Have the tracer made ready; that takes no time of an answer's, and what goes wrong is not its fault.

    Processes that are not apart (no sandbox) share Numba's folder: nothing is handed on.
    """
    kept = _kept() if apart else {}
    try:
        reply = process.ask({"do": "warm_up", "files": kept}, READY_S, READY_S)
    except Stopped as problem:
        raise GraderFault(f"the tracer does not start: {problem}") from None
    if apart and not kept and _sound(reply.get("files")):
        kept.update(reply["files"])


@functools.cache
def _kept() -> Files:
    """Return the files that the first process has made."""
    return {}


def _sound(files: Any) -> bool:
    """Whether these are some files with names that lie within one folder."""
    if not isinstance(files, dict):
        return False
    contents, paths = files.values(), [PurePosixPath(name) for name in files]
    return (
        all(isinstance(one, np.ndarray) and one.dtype == np.uint8 for one in contents)
        and not any(one.is_absolute() or ".." in one.parts for one in paths)
        and all(one.suffix in wire.MACHINE_CODE for one in paths)
        and sum(one.nbytes for one in contents) <= MOST_BYTES
    )
