"""Child processes that cannot be left behind.

    with Children(time_limit_s=10) as children:
        child = children.start("print('hello from', __import__('os').getpid())")
        child.wait()
    print(child.output, children.report())

Children are started as new Python processes, never forked: a notebook has threads, and a forked copy has
their locks without their owners. Whatever happens – the block ends, it fails, its time is over, the kernel
exits or is killed – they and everything they started are ended: each carries a mark in its environment, by
which it is found even if its parent is gone. `alive()` lists every marked process.
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil

from course_lib.arguments import number
from course_lib.measure import children_guard
from course_lib.measure.children_guard import MARK, carrying, hunt
from course_lib.measure.table import Table

ROOT = Path(__file__).resolve().parents[2]
SHARED_MEMORY_FOLDER = Path("/dev/shm")  # where Linux shows shared memory; other systems show it nowhere
LOOK_EVERY_S = 0.02
WATCH_EVERY_S = 0.1
LONGEST_END_S = 5.0  # a killed process is gone in milliseconds, unless the system itself is stuck
MOST_OUTPUT = 1 << 20  # characters of a child's output that are kept
MOST_PRINTED = 1 << 26  # bytes: who prints more is ended


class TimeIsOver(TimeoutError):
    """The children's time limit was reached and they were ended."""


def alive() -> list[str]:
    """Return a line for each living process that the course has started, in this session or another."""
    return [f"pid {one.pid}, {status_of(one.pid)}, parent {parent_of(one.pid)}" for one in carrying()]


def parent_of(pid: int) -> str:
    """Return who the parent of a process is: "systemd (pid 1)"; "" if the process is gone."""
    try:
        parent = psutil.Process(pid).parent()
        return f"{parent.name()} (pid {parent.pid})" if parent else "nobody"
    except psutil.Error:
        return ""


def status_of(pid: int) -> str:
    """Return "running", "sleeping", "zombie" …, or "gone". Asking does not reap a zombie."""
    try:
        return psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return "gone"


def _read_beside(file: int) -> bytes:
    """Return what a file holds. The place in it is shared with who writes it: it must not move."""
    if hasattr(os, "pread"):
        return os.pread(file, MOST_OUTPUT, 0)
    os.lseek(file, 0, os.SEEK_SET)
    try:
        return os.read(file, MOST_OUTPUT)
    finally:
        os.lseek(file, 0, os.SEEK_END)


class Child:
    """One Python process of a `Children` block."""

    def __init__(self, name: str, process: subprocess.Popen, printed: IO[bytes], children: Children) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._printed = printed  # a file without a name: it goes with this process, however that ends
        self._children = children
        self.why = ""  # who ended it: "" if nobody did

    @property
    def output(self) -> str:
        """What it has printed so far, errors as well: the first MOST_OUTPUT bytes."""
        with self._children._lock:
            printed = _read_beside(self._printed.fileno())
        return printed.decode(errors="replace").replace(os.linesep, "\n")

    @property
    def status(self) -> str:
        """Its state as the system sees it; a child that has ended and not been waited for is a "zombie"."""
        return "gone" if self._process.returncode is not None else status_of(self.pid)

    @property
    def ended(self) -> str:
        """How it ended: "exit code 0", "killed by SIGKILL"; "" while it runs or has not been waited for."""
        code = self._process.returncode
        return "" if code is None else in_words(code)

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the end; return the exit code (negative: the signal). TimeoutError if it takes longer."""
        ended = self._children.wait_until(lambda: self._process.poll() is not None, timeout_s)
        if not ended:
            raise TimeoutError(f"{self.name} (pid {self.pid}) has not ended within {timeout_s:g} s.")
        if self.why.endswith(self._children.limit_reached):
            self._children._check_time()
        return self._process.returncode

    def wait_for(self, text: str, timeout_s: float = 5.0) -> None:
        """Wait until it has printed `text`. TimeoutError when that takes longer, or when it ends without."""

        def is_over() -> bool:
            return status_of(self.pid) in ("gone", "zombie")

        self._children.wait_until(lambda: text in self.output or is_over(), timeout_s)
        has_ended = is_over()  # asked before the output is read: what it printed last must not be missed
        if text not in self.output:
            how = "has ended and not printed" if has_ended else f"has not within {timeout_s:g} s printed"
            raise TimeoutError(
                f"{self.name} (pid {self.pid}) {how} {text!r}; it printed {self.output[-300:]!r}."
            )

    def kill(self) -> None:
        """End it at once (SIGKILL): it cannot refuse and cannot clean up. Its own children live on."""
        self.why = self.why or "killed by this notebook"
        self._process.kill()

    def terminate(self) -> None:
        """Ask it to end (SIGTERM): it may clean up first, or refuse."""
        self.why = self.why or "asked to end by this notebook"
        self._process.terminate()

    def __repr__(self) -> str:
        return f"{self.name} (pid {self.pid}): {self.ended or self.status}"


class Children:
    """Starts Python processes, and ends them and all that they have started when the block is left.

    `time_limit_s`: after so many seconds everything is ended, whatever the block is doing; what waits then
    raises TimeIsOver. What children print is kept in `child.output`; who prints without end is ended.
    """

    def __init__(self, time_limit_s: float = 20.0) -> None:
        self.time_limit_s = number("time_limit_s", time_limit_s, above=0, most=3600)
        self.token = secrets.token_hex(8)
        self.started: list[Child] = []
        self.is_over = False  # whether the time limit ended everything
        self._lock = threading.RLock()
        self._guard: subprocess.Popen | None = None
        self._closed = threading.Event()

    def __enter__(self) -> Children:
        if self._guard is not None:
            raise ValueError("This Children block was used before: make a new one with Children(…).")
        self._guard = subprocess.Popen(
            [sys.executable, children_guard.__file__, self.token],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            env={name: value for name, value in os.environ.items() if name != MARK},
            **_apart(),
        )
        threading.Thread(target=self._watch, daemon=True).start()
        atexit.register(self.close)
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    # -- starting -------------------------------------------------------------------------------------------

    def start(self, code: str, *arguments: object, name: str = "") -> Child:
        """Run a text of Python in a new process; `arguments` arrive in its sys.argv[1:]."""
        if not isinstance(code, str):
            raise TypeError(
                f"code is {code!r}, but it must be a text of Python: a new process knows nothing of it."
            )
        with self._lock:
            self._check_time()
            if self._guard is None or self._closed.is_set():
                raise ValueError(
                    "Children start inside the block: with Children() as children: children.start(…)"
                )
            printed = tempfile.TemporaryFile()  # noqa: SIM115 – as long as the child is looked at
            path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
            with self.marked():
                process = subprocess.Popen(
                    [sys.executable, "-u", "-c", code, *map(str, arguments)],
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
                    **_apart(),
                )
            child = Child(name or f"child {len(self.started)}", process, printed, self)
            self.started.append(child)
            return child

    @contextmanager
    def marked(self) -> Iterator[None]:
        """Let processes that are started meanwhile by other means (multiprocessing) belong to this block."""
        with self._lock:
            before = os.environ.get(MARK)
            os.environ[MARK] = ",".join(filter(None, [before, self.token]))
            try:
                yield
            finally:
                del os.environ[MARK]
                if before is not None:
                    os.environ[MARK] = before

    # -- waiting and ending ---------------------------------------------------------------------------------

    def wait_until(self, is_reached: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait until something holds; False after the timeout. Raises TimeIsOver at the time limit."""
        until = time.monotonic() + (self.time_limit_s if timeout_s is None else timeout_s)
        while not is_reached():
            self._check_time()
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_EVERY_S)
        return True

    def _check_time(self) -> None:
        if self.is_over:
            names = ", ".join(repr(child) for child in self.started) or "nothing was running"
            raise TimeIsOver(
                f"The time limit of {self.time_limit_s:g} s was reached and all was ended: {names}."
            )

    def _watch(self) -> None:
        """End all at the time limit, and before it whoever fills the disk with what it prints."""
        until = time.monotonic() + self.time_limit_s
        while (left := until - time.monotonic()) > 0:
            if self._closed.wait(min(left, WATCH_EVERY_S)):
                return
            for child in list(self.started):
                printed = os.fstat(child._printed.fileno()).st_size
                if printed > MOST_PRINTED and child.status not in ("gone", "zombie"):
                    child.why = child.why or f"killed: it printed more than {MOST_PRINTED >> 20} MiB"
                    child._process.kill()
        with self._lock:
            if not self._closed.is_set():
                self.is_over = True
                self.end_all(self.limit_reached)

    @property
    def limit_reached(self) -> str:
        """What is written down for a child that the time limit ended."""
        return f"ended at the time limit of {self.time_limit_s:g} s"

    def end_all(self, why: str = "killed by this notebook") -> None:
        """End every child and everything that they have started, now."""
        with self._lock:
            unasked = [child for child in self.started if child._process.returncode is None]
            for child in unasked:
                if child.status != "zombie":  # poll() would free the number of a zombie's group
                    child.why = f"{child.why}, then {why}" if child.why and child.why != why else why
                    child._process.kill()
            hunt(self.token)
            until = time.monotonic() + LONGEST_END_S
            for child in unasked:  # waited for here, so that nobody else takes their exit codes
                with suppress(AttributeError, ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)  # who has shed the mark is still in the group
                with suppress(subprocess.TimeoutExpired):  # stuck in the system: nobody can end it
                    child._process.wait(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """End everything that is left; leaving the block does this. Closing again does nothing."""
        with self._lock:
            if self._closed.is_set() or self._guard is None:
                return
            self.end_all("killed when the block was left")
            self._closed.set()
            self._guard.communicate("done")
            atexit.unregister(self.close)

    # -- what happened --------------------------------------------------------------------------------------

    def report(self) -> Table:
        """Return a row for each child: how it ended and who ended it."""
        rows = tuple(
            (child.name, str(child.pid), child.ended or child.status, child.why or "–")
            for child in self.started
        )
        return Table(("process", "pid", "end", "by whom"), rows, words=True)


def in_words(code: int) -> str:
    """Return an exit code as it is said: "exit code 1", "killed by SIGKILL"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _apart() -> dict[str, Any]:
    """Return how to start a process in a group of its own, so that Ctrl-C here does not reach it."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
