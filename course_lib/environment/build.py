"""Makes .venv, or leaves everything as it was.

The order of the steps is the whole safety: the old environment is moved aside (one rename), the new one is
marked unfinished, filled, tried, stamped; only then is the old one deleted. Stopped anywhere, the next run
sees from the marker, the stamp and the folders' names where that was, and puts things right.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_lib.environment import state
from course_lib.environment.complaints import LOG, Refusal, about_step, about_system, no_ensurepip

WHAT = ".[lab,dev]"
NEEDED_BYTES = 3_000_000_000
WORTH_SAYING_MB = 20  # smaller downloads pass in silence
HEARTBEAT_S = 30

#: Settings of the user's shell that would send packages elsewhere or bring foreign code in.
DROPPED = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONSAFEPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"),
    *("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PIP_NO_DEPS", "PIP_DRY_RUN", "PIP_QUIET"),
    *("PIP_REQUIREMENT", "PIP_EDITABLE", "PIP_REPORT"),
)
SET = {
    "PIP_USER": "0",  # also overrides 'user = true' in pip.conf, which no virtual environment accepts
    "PIP_NO_INPUT": "1",  # a question nobody can see would hang for ever
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_PROGRESS_BAR": "off",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUNBUFFERED": "1",
}


def make_ready(project: str | Path, asked_for: bool = False) -> int:
    """See to it that ``project``/.venv is sound; return 0, or 1 after one sentence on stderr.

    ``asked_for`` says that the user named this very Python, so an environment of another version must go.
    """
    project = Path(project)
    wanted = state.this_version() if asked_for else None
    try:
        if state.examine(project / ".venv", wanted) or _leftovers(project):
            with _signals_as_exceptions(), _turn(project) as lock:
                Builder(project, lock).ensure(wanted)
    except Refusal as sentence:
        return _stop(f"Set-up stopped: {sentence}.", 1)
    except OSError as problem:
        return _stop(f"Set-up stopped: {about_system(problem, project)}.", 1)
    except KeyboardInterrupt:
        return _stop("Set-up stopped: interrupted; run make again and it begins afresh.", 130)
    return 0


class Builder:
    """Makes one project's .venv; the caller holds the lock."""

    def __init__(self, project: Path, lock: int | None = None) -> None:
        self.project = project
        self.venv = project / ".venv"
        self.previous = project / ".venv.previous"
        self._lock = lock

    def ensure(self, wanted: str | None = None) -> None:
        """Put right what an earlier run left, then make the environment if it still needs making."""
        self._heal()
        finding = state.examine(self.venv, wanted)
        if finding is None:
            return
        self._check_ground()
        _say(f"Making .venv with Python {sys.version.split()[0]}: {finding.reason}.")
        _say(_outlook(self.project))
        begun = time.monotonic()
        self._set_aside(keep=finding.works)
        try:
            self._make()
        except BaseException as problem:
            raise self._undo(problem) from problem
        _discard(self.previous)
        _say(f"Ready: .venv was made in {_span(time.monotonic() - begun)}.")

    def _heal(self) -> None:
        for left in self.project.glob(".venv.discarded-*"):
            shutil.rmtree(left, ignore_errors=True)
        if not os.path.lexists(self.previous):
            return
        if (self.venv / state.STAMP).exists() and not (self.venv / state.MARKER).exists():
            _discard(self.previous)  # stopped after the new one was finished
        else:
            _say("An earlier set-up was interrupted; the .venv from before it is put back.")
            _discard(self.venv)
            os.rename(self.previous, self.venv)

    def _check_ground(self) -> None:
        if os.pathsep in str(self.project):
            raise Refusal(
                f"the course's folder has a '{os.pathsep}' in its name ({self.project}), which no Python "
                "environment can live with; rename the folder and try again"
            )
        try:
            import ensurepip  # noqa: F401
            import venv  # noqa: F401
        except ImportError:
            raise Refusal(no_ensurepip()) from None
        free = shutil.disk_usage(self.project).free
        if free < NEEDED_BYTES:
            raise Refusal(
                f"the disk of {self.project} has {free / 1e9:.1f} GB free and the course's packages need "
                f"about {NEEDED_BYTES / 1e9:.0f} GB; free some space and try again"
            )

    def _set_aside(self, keep: bool) -> None:
        if keep:
            os.rename(self.venv, self.previous)
        else:
            _discard(self.venv)

    def _undo(self, problem: BaseException) -> BaseException:
        """Take the half-made environment away, bring the old one back and say so."""
        _discard(self.venv)
        if isinstance(problem, OSError):
            problem = about_system(problem, self.project)
        if not os.path.lexists(self.previous):
            return problem
        os.rename(self.previous, self.venv)
        if not isinstance(problem, Refusal):
            return problem
        start = os.path.join(".venv", state.interpreter(Path()))
        start += " -m course_lib lab"
        return Refusal(f"{problem} – the .venv from before is back in place ({start} still opens the course)")

    def _make(self) -> None:
        sources = state.fingerprints(self.project)  # taken before: a change meanwhile counts as a change
        self.venv.mkdir()
        (self.venv / state.MARKER).touch()
        with open(self.project / LOG, "w", encoding="utf-8") as log:
            # The base Python, for the running one may itself live in the .venv that was just moved.
            base = getattr(sys, "_base_executable", None) or sys.executable
            self._run("python -m venv", [base, "-m", "venv", ".venv"], log)
            python = str(state.interpreter(self.venv))
            self._run("pip", [python, "-m", "pip", "install", "-c", "constraints.txt", "-e", WHAT], log)
            self._run("the first import of course_lib", [python, "-c", "import course_lib"], log)
        state.write_stamp(self.venv, sources)

    def _run(self, step: str, command: list[str], log: Any) -> None:
        """Run ``command`` in the project; all it says goes to ``log``, the telling lines to the screen."""
        # A child that outlives us (kill -9) keeps the lock until it ends, so nobody builds under its feet.
        inherit: dict[str, Any] = {} if os.name == "nt" or self._lock is None else {"pass_fds": (self._lock,)}
        child = subprocess.Popen(
            command, cwd=self.project, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace", **inherit,
        )  # fmt: skip
        output = []
        try:
            with _heartbeat():
                for line in child.stdout or ():
                    log.write(line)
                    output.append(line)
                    _report(line)
                code = child.wait()
        except BaseException:
            child.kill()
            child.wait()
            raise
        if code:
            raise about_step(step, code, "".join(output), self.project)


def _outlook(project: Path) -> str:
    pinned = (project / "constraints.txt").read_text(encoding="utf-8").splitlines()
    count = sum("==" in line for line in pinned)
    torch = " (several GB if pip takes PyTorch's GPU build: see README)" if sys.platform == "linux" else ""
    return f"About {count} packages, 0.5 GB to fetch{torch}; usually 2 to 6 minutes, and only this once."


def _report(line: str) -> None:
    fetched = re.match(r"\s*Downloading (\S+) \(([\d.]+) ([MG])B\)", line)
    if fetched:
        size = float(fetched[2]) * (1000 if fetched[3] == "G" else 1)
        if size >= WORTH_SAYING_MB:
            _say(f"  fetching {'-'.join(Path(fetched[1]).name.split('-')[:2])} ({size:.0f} MB)")
    elif line.startswith("Installing collected packages"):
        _say(f"  installing {line.count(',') + 1} packages")


@contextmanager
def _heartbeat() -> Iterator[None]:
    """Say now and then that work goes on."""
    over = threading.Event()
    begun = time.monotonic()

    def beat() -> None:
        while not over.wait(HEARTBEAT_S):
            _say(f"  still at work ({_span(time.monotonic() - begun)})")

    threading.Thread(target=beat, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in DROPPED} | SET


def _leftovers(project: Path) -> bool:
    return os.path.lexists(project / ".venv.previous") or any(project.glob(".venv.discarded-*"))


def _discard(path: Path) -> None:
    """Delete a folder so that no half of it ever stands under its own name."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    aside = path.with_name(f".venv.discarded-{os.getpid()}-{time.time_ns()}")
    os.rename(path, aside)
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _turn(project: Path) -> Iterator[int | None]:
    """Wait until no other make works on .venv, and keep others out."""
    with open(project / ".venv.lock", "a", encoding="utf-8") as file:
        told = False
        while not _take(file.fileno()):
            if not told:
                _say("Another make is preparing .venv; waiting for it to finish.")
            told = True
            time.sleep(0.2)
        yield file.fileno()


def _take(handle: int) -> bool:
    """Try to lock an open file; True also where the file system knows no locks."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """Let a polite kill or a closed terminal clean up like Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before: dict[str, Any] = {name: signal.signal(getattr(signal, name), interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _say(line: str) -> None:
    print(line, flush=True)


def _stop(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr, flush=True)
    return code
