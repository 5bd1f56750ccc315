"""Five things that go wrong with processes and threads, made to happen under a time limit and cleaned up.

    orphan(), zombie(), leaked_memory(), dead_holder(), deadlock()

Each returns what was seen, a row for each moment. The programs that go wrong stand beside them as text: each
is as short as what it shows, and runs as a new process inside a `Children` block, which ends it in any case.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import time
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from course_lib.measure.children import SHARED_MEMORY_FOLDER, Child, Children, parent_of, status_of
from course_lib.measure.children_guard import carrying, is_tracker
from course_lib.measure.table import Table

LOOK_S = 10.0  # starting Python takes a moment on a busy machine
TIME_LIMIT_S = 30.0

#: Starts a child that sleeps, says its number, and ends without waiting for it.
LEAVE_AN_ORPHAN = """\
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("orphan", child.pid)
os._exit(0)  # no farewell to the child
"""


def orphan() -> Table:
    """Let a process start a child and end first: somebody else becomes the parent. Then end the orphan."""
    with Children(TIME_LIMIT_S) as children:
        parent = children.start(LEAVE_AN_ORPHAN, name="parent")
        parent.wait_for("orphan", LOOK_S)
        pid = int(parent.output.split()[-1])
        code = parent.wait(LOOK_S)
        moments = [
            ("the parent has ended", f"exit code {code}"),
            ("its child", f"pid {pid}, {status_of(pid)}"),
            ("who is its parent now", parent_of(pid) or "nobody"),
        ]
        children.end_all()
        ended = children.wait_until(lambda: status_of(pid) == "gone", 1.0)  # its parent must ask for it first
        moments.append(
            ("after end_all()", "gone" if ended else "ended; its new parent has not asked for it yet")
        )
    return _seen("An orphan: its parent ended first", moments, children)


#: Runs until it is asked to end, and ends well then.
WAIT_TO_BE_ASKED = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready")
time.sleep(600)
"""


def zombie() -> Table:
    """Let a child end and do not wait for it: its entry stays in the system's table until someone asks."""
    with Children(TIME_LIMIT_S) as children:
        child = children.start(WAIT_TO_BE_ASKED, name="child")
        child.wait_for("ready", LOOK_S)
        moments = [("while it runs", child.status)]
        child.terminate()
        children.wait_until(lambda: child.status in ("zombie", "gone"), LOOK_S)
        moments.append(("it has ended, nobody asked", child.status))
        code = child.wait(LOOK_S)
        moments.append(("after wait()", f"{child.status}, exit code {code}"))
    return _seen("A zombie: ended, but not waited for", moments, children)


#: Creates shared memory, writes into it, and never comes to the line that would remove it.
HOLD_MEMORY = """\
import sys, time
from multiprocessing import shared_memory
memory = shared_memory.SharedMemory(sys.argv[1], create=True, size=1 << 20)
memory.buf[:5] = b"hello"
print("holds", memory.name)
time.sleep(600)
memory.close()
memory.unlink()
"""


def leaked_memory() -> Table:
    """Kill a worker that has made shared memory: alone, and together with the tracker that Python gave it.

    The tracker is a second process. It waits for the end of the first and removes what that has left.
    """
    first, second = (f"nine{secrets.token_hex(6)}" for _ in range(2))
    try:
        with Children(TIME_LIMIT_S) as children:
            worker = _holder(children, first)
            moments = [("while a worker lives", _memory(first))]
            worker.kill()
            worker.wait(LOOK_S)
            children.wait_until(lambda: shared_content(first) is None, LOOK_S)
            moments.append(("it is killed, its tracker lives", _memory(first)))
            worker = _holder(children, second)
            for tracker in filter(is_tracker, psutil.Process(worker.pid).children()):
                tracker.kill()
            worker.kill()
            worker.wait(LOOK_S)
            time.sleep(0.5)  # as long as a tracker would need many times over
            moments.append(("another, killed with its tracker", _memory(second)))
            content = shared_content(second)
            moments.append(("its first bytes", "not there" if content is None else repr(content[:5])))
    finally:
        shared_content(first, then_remove=True)
        shared_content(second, then_remove=True)
    moments.append(("after unlink()", _memory(second)))
    return _seen("Shared memory outlives its maker and its tracker", moments, children)


def _holder(children: Children, name: str) -> Child:
    """Start a worker that makes shared memory and return it when the memory is there."""
    worker = children.start(HOLD_MEMORY, name, name="worker")
    worker.wait_for("holds", LOOK_S)
    return worker


#: One worker takes a lock and is killed; another asks for it, but no longer than a second.
DIE_WITH_THE_LOCK = """\
import multiprocessing
from course_lib.measure.children_shown import hold
context = multiprocessing.get_context("spawn")
lock, is_held = context.Lock(), context.Event()
holder = context.Process(target=hold, args=(lock, is_held))
holder.start()
is_held.wait(20)
holder.kill()
holder.join()
print("holder ended with", holder.exitcode)
print("second worker got the lock:", lock.acquire(timeout=1.0))
"""
#: Holds a lock that belongs to the system, not to a counter in memory: it ends with its holder.
HOLD_FILE_LOCK = """\
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("has it")
    time.sleep(600)
"""


def hold(lock: Any, is_held: Any) -> None:
    """Take a lock, say so, and never give it back."""
    lock.acquire()
    is_held.set()
    time.sleep(600)


def dead_holder() -> Table:
    """Kill a worker that holds a lock: a multiprocessing.Lock stays taken, one of the system comes back."""
    with tempfile.TemporaryDirectory() as folder, Children(TIME_LIMIT_S) as children:
        program = children.start(DIE_WITH_THE_LOCK, name="multiprocessing.Lock")
        program.wait(TIME_LIMIT_S)
        *_, holder, second = program.output.strip().splitlines()
        moments = [("multiprocessing.Lock", holder), ("the next one, after 1 s", second)]
        path = Path(folder) / "lock"
        owner = children.start(HOLD_FILE_LOCK, path, name="file lock")
        owner.wait_for("has it", LOOK_S)
        moments.append(("lock on a file, holder alive", _try_lock(path)))
        owner.kill()
        owner.wait(LOOK_S)
        moments.append(("lock on a file, holder killed", _try_lock(path)))
    return _seen("A lock whose holder was killed", moments, children)


#: Two threads take two locks in opposite orders, and after half a second say where they stand.
DEADLOCK = """\
import faulthandler, threading
first, second = threading.Lock(), threading.Lock()
both_hold_one = threading.Barrier(2)

def take(name, mine, other):
    with mine:
        print(f"thread {name} holds its lock\\n", end="")  # in one piece: two threads write
        both_hold_one.wait()  # makes certain what would otherwise need bad luck
        with other:
            print(f"thread {name} holds both")

for name, mine, other in (("A", first, second), ("B", second, first)):
    threading.Thread(target=take, args=(name, mine, other)).start()
faulthandler.dump_traceback_later(0.5, repeat=True)
"""


def deadlock() -> Table:
    """Let two real threads lock each other out, find out where they stand, and end them from outside."""
    with Children(TIME_LIMIT_S) as children:
        child = children.start(DEADLOCK, name="two threads, two locks")
        lines = DEADLOCK.splitlines()
        last_line = str(lines.index("        with other:") + 1)

        def reports() -> list[list[str]]:  # the interpreter's own report of every thread, again and again
            return [re.findall(r"line (\d+) in take", report) for report in child.output.split("Timeout")]

        children.wait_until(lambda: [last_line, last_line] in reports(), LOOK_S)
        stands = max(reports(), key=lambda report: report.count(last_line))
        before = psutil.Process(child.pid).cpu_times()
        time.sleep(0.3)
        after = psutil.Process(child.pid).cpu_times()
        used = max(0.0, after.user + after.system - before.user - before.system)  # the clock counts in ticks
        moments = [
            ("what they said", ", ".join(re.findall(r"thread . holds [a-z ]+", child.output))),
            ("where they stand", "; ".join(f"line {n}, “{lines[int(n) - 1].strip()}”" for n in stands)),
            ("CPU time in 0.3 s", f"{1e3 * used:.0f} ms, {child.status}"),
        ]
        children.end_all("ended from outside: nobody inside can")
        moments.append(("the end", f"{child.ended}, {child.why}"))
    return _seen("A deadlock of real threads", moments, children)


def shared_content(name: str, then_remove: bool = False) -> bytes | None:
    """Return what is in shared memory, None if there is none of that name.

    Where the system shows it as a file it is read as one: opening it as SharedMemory would start Python's
    tracker, a process of its own that would also remove it in the end.
    """
    try:
        if SHARED_MEMORY_FOLDER.is_dir():
            content = (SHARED_MEMORY_FOLDER / name).read_bytes()
            remove = (SHARED_MEMORY_FOLDER / name).unlink
        else:
            memory = shared_memory.SharedMemory(name)
            content, remove = bytes(memory.buf), memory.unlink
            memory.close()
        if then_remove:
            remove()
    except FileNotFoundError:
        return None
    return content


def _memory(name: str) -> str:
    content, file = shared_content(name), SHARED_MEMORY_FOLDER / name
    if content is None:
        return "not there"
    return f"{len(content):,} bytes{f', listed as {file}' if file.exists() else ''}"


def _try_lock(path: Path) -> str:
    try:
        with FileLock(path, timeout=0):
            return "got by another"
    except Timeout:
        return "refused to another"


def _seen(title: str, moments: list[tuple[str, str]], children: Children) -> Table:
    """Return a row per moment, and how many processes of the block live afterwards."""
    left = len(carrying(children.token))
    note = f"Left behind: {left} {'process' if left == 1 else 'processes'}."
    return Table(("", "seen"), tuple(moments), title, notes=(note,), words=True)
