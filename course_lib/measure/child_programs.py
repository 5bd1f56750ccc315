"""Programs for demonstrations of processes: `python -m course_lib.measure.child_programs NAME …` runs one.

They run as new processes inside a `Children` block, which ends them however they turn out. Each is as short
as what it shows; `views.source` can print any of them.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import shared_memory

FOR_EVER_S = 600.0  # far beyond any time limit


def leave_an_orphan() -> None:
    """Start a child that sleeps, say its number, and end without waiting for it."""
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOR_EVER_S})"])
    print("orphan", child.pid)
    os._exit(0)  # no farewell to the child


def wait_at(path: str) -> None:
    """Wait until a file appears, then end: the caller says when."""
    print("ready")
    while not os.path.exists(path):
        time.sleep(0.01)


def hold_memory(name: str, size: str) -> None:
    """Create shared memory, write into it, and never come to the line that would remove it."""
    memory = shared_memory.SharedMemory(name, create=True, size=int(size))
    memory.buf[:5] = b"hello"
    print("holds", memory.name)
    time.sleep(FOR_EVER_S)
    memory.close()
    memory.unlink()


def die_with_the_lock() -> None:
    """One worker takes a lock and is killed; another asks for it, but no longer than a second."""
    context = multiprocessing.get_context("spawn")
    lock, is_held = context.Lock(), context.Event()
    holder = context.Process(target=_hold, args=(lock, is_held))
    holder.start()
    is_held.wait(20)
    os.kill(holder.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    holder.join()
    print("holder ended with", holder.exitcode)
    print("second worker got the lock:", lock.acquire(timeout=1.0))


def _hold(lock, is_held) -> None:
    lock.acquire()
    is_held.set()
    time.sleep(FOR_EVER_S)


def deadlock() -> None:
    """Two threads take two locks in opposite orders, and after half a second say where they stand."""
    first, second = threading.Lock(), threading.Lock()
    both_hold_one = threading.Barrier(2)

    def take(name: str, mine: threading.Lock, other: threading.Lock) -> None:
        with mine:
            print(f"thread {name} holds its lock\n", end="")  # in one piece: two threads write
            both_hold_one.wait()  # makes certain what would otherwise need bad luck
            with other:
                print(f"thread {name} holds both")

    for name, mine, other in (("A", first, second), ("B", second, first)):
        threading.Thread(target=take, args=(name, mine, other)).start()
    faulthandler.dump_traceback_later(0.5)


def hold_file_lock(path: str) -> None:
    """Hold a lock that belongs to the system, not to a counter in memory: it ends with its holder."""
    with open(path, "wb") as file:
        print("has it:", lock_file(file))
        time.sleep(FOR_EVER_S)


def lock_file(file) -> bool:
    """Try to lock an open file for this process alone; the system gives it back when the process ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


PROGRAMS = {
    program.__name__: program
    for program in (leave_an_orphan, wait_at, hold_memory, die_with_the_lock, deadlock, hold_file_lock)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
