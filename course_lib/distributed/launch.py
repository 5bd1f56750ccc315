"""Functions of a notebook on several ranks: processes of torch.distributed that talk through gloo.

    def hello():
        print("here is", dist.get_rank(), "of", dist.get_world_size())

    run(hello, ranks=4)

The engine is torchrun's own (`torch.distributed.launcher`): it finds a port, gives every process its rank,
starts all again when one is lost. What is added here is what a notebook needs: ranks are forked from a
server that has torch loaded (0.5 s instead of 3), the function travels by cloudpickle, what ranks print comes
back in their order, a time limit says where each of them stands, and nothing outlives the kernel.
"""

from __future__ import annotations

import ctypes
import json
import logging
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from course_lib.arguments import number, whole

MOST_RANKS = 64
RANK_BYTES = 64 << 20  # what a forked rank with a gloo group needs of its own, before any matrix
MOST_PRINTED = 1 << 16  # characters of a rank's output that are shown
GRACE_S = 60.0  # beyond the time limit, for the server of ranks to start, and each rank to end
RANK = "course_lib.distributed.rank"
NO_RANK_BEGAN = (
    "No rank began: each of them imports the script that calls run, so the call belongs below "
    '`if __name__ == "__main__":`.'
)
NONE_IN_TIME = "No rank began in time: this machine is too busy, so try again, or with a longer time_limit_s."
#: torchrun gives all attempts one store, in which a restarted rank of gloo finds the addresses of the dead.
OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
_ONE_AT_A_TIME = threading.Lock()  # the engine's settings are those of the whole process


class RankFailed(RuntimeError):
    """A rank raised an exception or was killed; the sentence says which, and where."""


class Hung(TimeoutError):
    """The time limit was reached; the sentence says where each rank stood."""


def run(
    function: Callable[..., Any],
    ranks: int = 4,
    *,
    time_limit_s: float = 60.0,
    restarts: int = 0,
    **arguments: Any,
) -> list[Any]:
    """Call ``function(**arguments)`` in every rank of a new gloo group; return their values, rank by rank.

    Args:
        function: asks `torch.distributed` for its rank. It and the arguments are sent by value, by
            cloudpickle: also a closure, also what was defined in a notebook. Arguments of its own that are
            called `ranks`, `time_limit_s` or `restarts` it gets by functools.partial: here they are run's.
        ranks: number of processes; they share this machine's cores.
        time_limit_s: so long after the first rank has begun all are ended, and not begun again.
        restarts: how many times all ranks may begin again after one was lost; which time it is stands in the
            environment, as with torchrun: ``TORCHELASTIC_RESTART_COUNT``.

    Raises:
        ValueError: no rank, or more than this machine has memory for; a function that cannot be sent.
        RankFailed: one raised an exception or was killed, and no restart was left.
        Hung: the time limit. Both say in one sentence which rank and where.
        OSError: Windows, where gloo's processes cannot be forked.
    """
    if sys.platform == "win32":
        raise OSError("Ranks are forked, which Windows cannot: use WSL, or torchrun with a file.")
    whole("ranks", ranks, most=MOST_RANKS)
    number("time_limit_s", time_limit_s, above=0, most=3600)
    whole("restarts", restarts, least=0, most=10)
    call = _sent(function, arguments)
    _check_memory(ranks, len(call))
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"ranks-{os.getpid()}-") as name:
        folder = Path(name)
        (folder / "call").write_bytes(call)
        try:
            with _ONE_AT_A_TIME:
                lost = _launch(folder, ranks, float(time_limit_s), restarts)
        finally:
            for group in folder.glob("*.group"):  # what ranks have started, too
                with suppress(ProcessLookupError, ValueError):
                    os.killpg(int(group.read_text()), signal.SIGKILL)
        last = max((int(path.stem.split("-")[1]) for path in folder.glob("*.stack")), default=-1)
        _show(folder)
        if last < 0:
            raise RankFailed(NONE_IN_TIME if lost and lost.code == 0 else NO_RANK_BEGAN)
        if lost:
            raise _explained(folder, lost, last, time_limit_s, ranks)
        return [_value(folder / f"{rank}-{last}.value") for rank in range(ranks)]


def _sent(function: Callable[..., Any], arguments: dict[str, Any]) -> bytes:
    """Return function and arguments as bytes. ValueError names what cannot be sent."""
    import cloudpickle

    if not callable(function):
        raise ValueError(f"function is {function!r}, but it must be a function: each rank calls it.")
    for name, value in {"function": function, **arguments}.items():
        try:
            cloudpickle.dumps(value)
        except Exception as problem:
            raise ValueError(
                f"{name} cannot be sent to another process ({problem}): let the function make it itself."
            ) from None
    return cloudpickle.dumps((function, arguments))


def _sweep() -> None:
    """Delete what runs of killed kernels left: all that their ranks were sent."""
    for folder in Path(tempfile.gettempdir()).glob("ranks-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _check_memory(ranks: int, sent: int) -> None:
    """Each rank unpacks the whole call: refuse what would not fit beside what runs."""
    needed, free = ranks * (RANK_BYTES + 2 * sent), psutil.virtual_memory().available
    if needed > free:
        raise ValueError(
            f"ranks is {ranks}, which with {sent / 2**20:.0f} MiB of arguments for each need about "
            f"{needed / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free: use fewer, or let ranks make "
            "their shards themselves."
        )


@dataclass(frozen=True)
class _Lost:
    """What the engine saw of the first failure: the rank, and its exit code (negative: the signal).

    The code is 0 where it saw none and waited beyond the time limit: for the value of a rank that has ended.
    """

    rank: int
    code: int


def _launch(folder: Path, ranks: int, time_limit_s: float, restarts: int) -> _Lost | None:
    """Let torch's elastic agent start the ranks and wait for them; return the first failure, or None."""
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from course_lib.distributed.rank import enter

    multiprocessing.set_forkserver_preload([RANK])  # heeded if the server has not started yet
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=folder.name,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",  # any free port
        local_addr="127.0.0.1",
        max_restarts=restarts,
        monitor_interval=0.02,
        start_method="forkserver",
        shutdown_timeout=1,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder / "printed"), redirects=Std.ALL),
    )
    threads = max(1, len(psutil.Process().cpu_affinity()) // ranks) if sys.platform == "linux" else 1
    with _as_before():
        try:
            with _raised_after(time_limit_s + GRACE_S):
                elastic_launch(config, enter)(str(folder), time_limit_s, threads)
        except ChildFailedError as failed:
            rank, failure = failed.get_first_failure()
            return _Lost(rank, failure.exitcode)
        except _Overdue:
            return _Lost(0, 0)
    return None


class _Overdue(BaseException):
    """The engine still waits, though all ranks should have been ended."""


@contextmanager
def _raised_after(seconds: float) -> Iterator[None]:
    """Raise _Overdue in this thread when so many seconds have gone by."""
    ident = ctypes.c_ulong(threading.get_ident())
    call = ctypes.pythonapi.PyThreadState_SetAsyncExc, (ident, ctypes.py_object(_Overdue))
    timer = threading.Timer(seconds, *call)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _as_before() -> Iterator[None]:
    """Give the notebook back what the engine takes: signal handlers, its logger, an interrupted cell.

    The engine's own account of a failure is kept back: `_explained` says it in a sentence.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException

    taken = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
    handlers = {number: signal.getsignal(number) for number in taken}
    level, store = logging.root.manager.disable, os.environ.get(OWN_STORE)
    logging.disable(logging.ERROR)
    os.environ[OWN_STORE] = "1"
    try:
        yield
    except SignalException as stopped:
        if stopped.sigval == signal.SIGINT:
            raise KeyboardInterrupt from None
        raise
    finally:
        logging.disable(level)
        os.environ.pop(OWN_STORE, None)
        os.environ.update({} if store is None else {OWN_STORE: store})
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _value(path: Path) -> Any:
    import cloudpickle

    return cloudpickle.loads(path.read_bytes())


# -- what they said, and where they stood -------------------------------------------------------------------


def _show(folder: Path) -> None:
    """Print what the ranks printed, attempt by attempt, rank by rank."""
    for path in sorted(folder.glob("printed/*/attempt_*/*/*.log"), key=_attempt_and_rank):
        attempt, rank, _ = _attempt_and_rank(path)
        with path.open(errors="replace") as printed:
            text = printed.read(MOST_PRINTED)
            more = printed.read(1) != ""
        again = f", start {attempt + 1}" if attempt else ""
        for line in text.splitlines():
            print(f"rank {rank}{again} | {line}")
        if more:
            print(f"rank {rank}{again} | … (the first {MOST_PRINTED:,} characters are shown)")


def _attempt_and_rank(path: Path) -> tuple[int, int, str]:
    return int(path.parts[-3].removeprefix("attempt_")), int(path.parts[-2]), path.name


def _explained(folder: Path, lost: _Lost, attempt: int, time_limit_s: float, ranks: int) -> Exception:
    """Return the exception with the one sentence about the failure."""
    from course_lib.distributed.rank import has_lost_partner

    errors = [json.loads(path.read_text()) for path in _by_age(folder.glob(f"*-{attempt}.error"))]
    stands = {rank: _stand(folder / f"{rank}-{attempt}.stack") for rank in range(ranks)}
    told = {int(path.name.split("-")[0]) for path in folder.glob(f"*-{attempt}.[ve]*")}
    silent = [str(rank) for rank in range(ranks) if rank not in told and not stands[rank]]
    if lost.code in (0, -signal.SIGALRM) and silent and not any(stands.values()):
        which = f"Rank {silent[0]}" if len(silent) == 1 else f"Ranks {', '.join(silent)}"
        return RankFailed(f"{which} ended without returning a value.")
    if lost.code in (0, -signal.SIGALRM) or any(stands.values()):
        where = "; ".join(f"rank {rank} {stand or 'had ended'}" for rank, stand in stands.items())
        return Hung(f"The time limit of {time_limit_s:g} s was reached: {where}.")
    if lost.code < 0:
        how = signal.Signals(-lost.code).name
        return RankFailed(f"Rank {lost.rank} was killed by {how}, and the others were ended.")
    own = [error for error in errors if not has_lost_partner(error[2])]
    if own:  # the first: others lost their partner
        rank, kind, text, line = own[0]
        return RankFailed(f"Rank {rank} raised {kind} {line}: {text}")
    if errors:
        gone = [str(rank) for rank in range(ranks) if (folder / f"{rank}-{attempt}.value").exists()]
        return RankFailed(
            f"Rank {errors[0][0]} stood {errors[0][3]} and waited for a rank that is gone: "
            f"{', '.join(gone) or 'none'} had returned already."
        )
    return RankFailed(f"Rank {lost.rank} was ended by exit({lost.code}).")


def _by_age(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_mtime_ns)


_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$', re.MULTILINE)


def _stand(path: Path) -> str:
    """Return where a rank stood at the time limit: "waited in recv (line 3 of skew)"; "" if it had ended."""
    from course_lib.distributed.rank import is_a_librarys

    text = path.read_text() if path.exists() else ""
    main = next((part for part in text.split("\n\n") if " in enter\n" in part), "")  # of its threads
    frames = [match.groupdict() for match in _FRAME.finditer(main)]
    if not frames:
        return ""
    own = [number for number, frame in enumerate(frames) if frame["name"] == "enter"]
    called = [frame for frame in frames[: own[0]] if not is_a_librarys(frame["file"])] or [
        frame for frame in frames[: own[0]] if "site-packages" not in frame["file"]
    ]
    if not called:
        return "waited for the others to come or to leave"
    inside = frames[: frames.index(called[0])]
    what = next((frame["name"] for frame in reversed(inside) if frame["name"] != "wrapper"), "")
    place = f"line {called[0]['line']} of {called[0]['name']}"
    return f"waited in {what} ({place})" if what else f"was at {place}"
