"""The clock and the thread counts of a comparison.

On a busy machine wall time also counts what other programs take. With one thread, the CPU time of that
thread does not, and two functions can be told apart that wall time would leave in the noise. But CPU time is
blind to waiting and to work on other threads; so functions are watched first, and if wall and CPU time differ
clearly for one of them, wall time is used for all.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

#: More than this share of a call spent waiting, in the calmest trial, and wall time is used: no more may be
#: missed than `compare` tells apart. Computation waits 0 % in the calmest trial, even on a busy one.
ASLEEP = 0.02
#: Other threads count when they add more than this share to the caller's CPU time, in several trials, and
#: more than these seconds in all: clocks tick coarsely, and the threads of a BLAS spin a while after a call.
ELSEWHERE, ELSEWHERE_S, SEVERAL = 0.20, 5e-3, 2
#: Windows counts a thread's CPU time in ticks of 15.6 ms, too coarse for samples of a millisecond.
HAS_THREAD_CLOCK = hasattr(time, "thread_time") and sys.platform != "win32"
#: OpenBLAS's threads go on spinning after their work: 0.08 s was too short a wait, 0.1 s just enough.
#: A thread that takes more than this share of a nap spins.
SETTLE_S, NAP_S, SPINNING = 0.15, 5e-3, 0.10
_SCHEDULER_FILE = Path("/proc/thread-self/schedstat")
_ALL_THREADS = Path("/proc/self/task")
#: More than this share of the time ready to run spent without a CPU, and not just a moment: others held them.
HELD, HELD_S = 0.10, 5e-3


@dataclass(frozen=True)
class Trial:
    """Where the time of some calls went, in seconds."""

    wall: float
    cpu: float  # of the calling thread
    other_threads: float  # CPU time of the process's other threads
    queued: float  # ready to run, but other programs had the CPUs

    @property
    def waited(self) -> float:
        """Time asleep: neither running nor waiting for a CPU."""
        return max(0.0, self.wall - self.cpu - self.queued)


def try_out(function: Callable, inputs: tuple, calls: int) -> Trial:
    """Time ``calls`` calls with every clock there is."""
    queued, cpu, process = _queued_s(), _thread_time(), time.process_time()
    start = time.perf_counter()
    for _ in repeat(None, calls):
        function(*inputs)
    wall = time.perf_counter() - start
    process, cpu = time.process_time() - process, _thread_time() - cpu
    return Trial(wall, cpu, max(0.0, process - cpu), max(0.0, _queued_s() - queued))


def why_not_cpu_time(trials: list[Trial]) -> str | None:
    """Return how the trials of one function show that its CPU time is not its time, None when it is.

    All trials must show it: now and then any function is disturbed.
    """
    helped = all(trial.other_threads > ELSEWHERE * trial.cpu for trial in trials)
    if helped and len(trials) >= SEVERAL and sum(trial.other_threads for trial in trials) > ELSEWHERE_S:
        return "other threads worked meanwhile"
    if all(trial.waited > ASLEEP * trial.wall for trial in trials):
        return "it spent part of the time waiting"
    return None


def _thread_time() -> float:
    return time.thread_time() if HAS_THREAD_CLOCK else time.process_time()


def _queued_s() -> float:
    """Return how long this thread was ready while other programs had the CPUs; 0.0 where nobody counts it."""
    return _ran_and_queued(_SCHEDULER_FILE)[1]


def _ran_and_queued(file: Path) -> tuple[float, float]:
    """Return how long a thread has run and how long it waited for a CPU, in seconds; zeros where unknown."""
    try:
        ran, queued = file.read_text().split()[:2]
        return int(ran) * 1e-9, int(queued) * 1e-9
    except (OSError, ValueError):
        return 0.0, 0.0


def accounts() -> dict[str, tuple[float, float]]:
    """Return the seconds that each thread of this process ran and waited for a CPU; {} where nobody knows."""
    try:
        return {task.name: _ran_and_queued(task / "schedstat") for task in _ALL_THREADS.iterdir()}
    except OSError:
        return {}


def held_since(before: Mapping[str, tuple[float, float]]) -> float:
    """Return the share of this process's time since then that others had the CPUs; 0.0 if it tells nothing.

    Threads that have ended since are not counted.
    """
    pairs = [(now, before.get(thread, (0.0, 0.0))) for thread, now in accounts().items()]
    ran, queued = (sum(now[i] - then[i] for now, then in pairs) for i in (0, 1))
    return queued / (ran + queued) if queued > max(HELD_S, HELD * (ran + queued)) else 0.0


def wait_for_other_threads() -> None:
    """Sleep until this process's other threads sleep as well, SETTLE_S at most.

    Where CPU time ticks too coarsely to tell, all of SETTLE_S. They are at rest when they took next to
    no CPU time in two naps: in one, another program may have held the core of a thread that still spins.
    """
    end, quiet = time.perf_counter() + SETTLE_S, 0
    while quiet < 2 and (begun := time.perf_counter()) < end:
        spent = time.process_time()
        time.sleep(NAP_S)
        spent = time.process_time() - spent
        is_quiet = HAS_THREAD_CLOCK and spent < SPINNING * (time.perf_counter() - begun)
        quiet = quiet + 1 if is_quiet else 0


@dataclass(frozen=True)
class Clock:
    """The clock of a comparison, and why it is that one."""

    read: Callable[[], float]
    name: str
    why: str


def choose(threads: int, reasons: dict[str, str | None]) -> Clock:
    """Choose the clock; `reasons` says for each function why CPU time is wrong for it (None: it is right)."""
    watched = [(name, why) for name, why in reasons.items() if why]
    if threads > 1:
        reason = "several threads work at once"
    elif not HAS_THREAD_CLOCK:
        reason = "this system counts the CPU time of a thread too coarsely"
    elif watched:
        name, why = watched[0]
        reason = f"wall and CPU time differed for {name} ({why}, which CPU time would not see)"
    else:
        reason = f"what other programs take does not count, nor do waits below {100 * ASLEEP:.0f} % of a call"
        return Clock(time.thread_time, "CPU time of the calling thread", reason)
    return Clock(time.perf_counter, "wall time", reason)


# -- threads -----------------------------------------------------------------------------------------------


class ThreadCap:
    """Hold BLAS, OpenMP, Numba and torch to the same number of threads; leaving it restores what was.

    ``apply`` again after functions have run: what they have loaded in the meantime is capped too.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._undo = ExitStack()

    def __enter__(self) -> ThreadCap:
        self.apply()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._undo.close()

    def apply(self) -> None:
        """Cap every thread pool that is loaded by now."""
        from threadpoolctl import threadpool_limits

        self._undo.enter_context(threadpool_limits(limits=self._threads))
        # only what somebody else has loaded: importing it here would cost seconds
        if _numba_has_threads():
            import numba

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a threading layer that Numba finds too old and does not use
                self._undo.callback(numba.set_num_threads, numba.get_num_threads())
                numba.set_num_threads(min(self._threads, numba.config.NUMBA_NUM_THREADS))
        if torch := sys.modules.get("torch"):
            self._undo.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(self._threads)


def _numba_has_threads() -> bool:
    """Say whether Numba has started its threads: asking it for their number would start them."""
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    return parallel is not None and getattr(parallel, "_is_initialized", True)
