"""Nothing that the course starts survives: end, exception, time limit, exit, kill -9 of the notebook."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from course_lib.measure import children_shown
from course_lib.measure.children import Children, TimeIsOver, alive, status_of
from course_lib.measure.children_guard import MARK, carrying

SLEEP = "import time; print('up'); time.sleep(600)"
#: A child that starts a grandchild in a session of its own, and that one a great-grandchild.
FAMILY = """
import subprocess, sys, time
code = '''
import subprocess, sys, time
leaf = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("leaf", leaf.pid, flush=True)
time.sleep(600)
'''
inner = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
print("inner", inner.pid, flush=True)
time.sleep(600)
"""
ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def pids_in(output):
    return [int(after) for word, after in pairwise(output.split()) if word in ("inner", "leaf")]


def gone(pid, within_s=3.0):
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if status_of(pid) in ("gone", "zombie"):
            return True
        time.sleep(0.02)
    return False


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    """Mark everything that a test starts, whatever it does with it, and look for the mark afterwards."""
    mark = f"test{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv(MARK, mark)
    yield
    left = carrying(mark)
    names = [str(process) for process in left]
    for process in left:
        process.kill()
    assert names == []


# -- one child ---------------------------------------------------------------------------------------------


def test_a_child_runs_from_anywhere_and_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Children() as children:
        child = children.start("import sys, course_lib; print('hello', *sys.argv[1:])", 1, "b")
        unlucky = children.start("raise SystemExit('no luck')")
        talker = children.start("for line in range(20000): print(line)")
        while talker.status not in ("zombie", "gone"):  # who reads must not move where it writes
            assert talker.output.split("\n")[0] in ("", "0")
        assert talker.output.split() == [str(line) for line in range(20000)]
        assert child.wait(10) == 0 and unlucky.wait(10) == 1
        sleeper = children.start(SLEEP, name="sleeper")
        with pytest.raises(TimeoutError, match=r"sleeper \(pid \d+\) has not ended within 0.1 s"):
            sleeper.wait(0.1)
    assert child.output == "hello 1 b\n" and child.ended == "exit code 0" and child.status == "gone"
    assert "no luck" in unlucky.output and "exit code 1" in str(children.report())


# -- nothing survives --------------------------------------------------------------------------------------


def test_a_family_ends_with_its_block_and_each_block_ends_its_own():
    with Children() as outer:
        first = outer.start(SLEEP)
        with Children() as children:
            family = children.start(FAMILY)
            family.wait_for("inner", 10)
            assert children.wait_until(lambda: len(carrying(children.token)) == 3, 10)
            pids = [process.pid for process in carrying(children.token)]
            assert set(pids_in(family.output)) <= set(pids) and len(alive()) >= 4
            assert any(f"pid {family.pid}, " in line for line in alive())
            guard = children._guard.pid
        assert all(map(gone, [*pids, guard]))
        assert family.why == "killed when the block was left" and not gone(first.pid, 0.05)


@posix
def test_who_sheds_the_mark_ends_with_its_group():
    code = """
import subprocess, sys, time
bare = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={})
print("inner", bare.pid, flush=True)
"""
    stays = code + "time.sleep(600)"
    with Children() as children:
        parent, zombie = children.start(stays), children.start(code)
        assert children.wait_until(lambda: "inner" in parent.output and zombie.status == "zombie", 10)
        bare = [*pids_in(parent.output), *pids_in(zombie.output)]
    with pytest.raises(TimeIsOver), Children(1.5) as children:
        parent = children.start(stays)
        parent.wait()  # its exit code is taken as soon as it is killed, here and in another thread
    bare += pids_in(parent.output)
    assert len(bare) == 3 and all(map(gone, bare))


def test_errors_and_the_time_limit_end_all_and_wake_who_waits():
    with pytest.raises(KeyboardInterrupt), Children() as children:
        child = children.start(SLEEP)
        raise KeyboardInterrupt
    assert gone(child.pid)
    start = time.monotonic()
    with pytest.raises(TimeIsOver, match=r"time limit of 0\.5 s was reached"), Children(0.5) as children:
        child = children.start(FAMILY)
        child.wait()
    assert time.monotonic() - start < 5 and gone(child.pid)
    assert child.why == "ended at the time limit of 0.5 s"
    with Children(0.2) as children:
        child = children.start(SLEEP)
        assert gone(child.pid)  # while the block does something else
        with pytest.raises(TimeIsOver):
            children.start(SLEEP)


@posix
def test_who_refuses_to_end_is_ended():
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up'); time.sleep(600)"
    daemon = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("inner", os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os._exit(0)
"""
    with Children() as children:
        stubborn, stopped, parent = (children.start(code) for code in (deaf, SLEEP, daemon))
        for child in (stubborn, stopped):
            child.wait_for("up", 10)
        assert children.wait_until(lambda: "inner" in parent.output, 10)  # its child may print after its end
        os.kill(stopped.pid, signal.SIGSTOP)
        (orphan,) = pids_in(parent.output)
        parent.wait(10)
        assert status_of(orphan) not in ("gone", "zombie")
    assert gone(stubborn.pid) and gone(stopped.pid) and gone(orphan)


@posix
def test_the_notebook_itself_ends(tmp_path):
    for way, last in {"kill -9": "time.sleep(600)", "exit": "sys.exit(3)", "os._exit": "os._exit(3)"}.items():
        told = tmp_path / way
        notebook = f"""
import os, sys, time
from course_lib.measure.children import Children
children = Children(60)
children.__enter__()
family = children.start({FAMILY!r})
family.wait_for("inner", 10)
children.wait_until(lambda: "leaf" in family.output, 10)
open({str(told)!r} + "_", "w").write(f"{{family.pid}} {{children._guard.pid}} {{family.output}}")
os.rename({str(told)!r} + "_", {str(told)!r})
{last}
"""
        parent = subprocess.Popen([sys.executable, "-c", notebook], cwd=ROOT, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.02)
        first, guard, *rest = told.read_text().split()
        pids = [int(first), int(guard), *pids_in(" ".join(rest))]
        assert len(pids) == 4
        if way == "kill -9":
            assert all(status_of(pid) not in ("gone", "zombie") for pid in pids)
            parent.kill()
        parent.wait(20)
        assert all(gone(pid, 5) for pid in pids), (way, [status_of(pid) for pid in pids])


# -- what is shown -----------------------------------------------------------------------------------------


@posix
def test_what_goes_wrong_with_processes_is_shown_and_nothing_is_left(monkeypatch):
    def seen(shown):
        assert shown.notes == ("Left behind: 0 processes.",), shown
        return dict(shown.rows)

    orphan, zombie = seen(children_shown.orphan()), seen(children_shown.zombie())
    assert orphan["the parent has ended"] == "exit code 0" and "pid" in orphan["who is its parent now"]
    assert orphan["after end_all()"].startswith(("gone", "ended"))
    assert zombie["it has ended, nobody asked"] == "zombie" and zombie["after wait()"] == "gone, exit code 0"
    memory = seen(children_shown.leaked_memory())
    assert "1,048,576 bytes" in memory["while a worker lives"]
    assert memory["it is killed, its tracker lives"] == "not there"
    assert "1,048,576 bytes" in memory["another, killed with its tracker"]
    assert memory["its first bytes"] == "b'hello'" and memory["after unlink()"] == "not there"
    lock = seen(children_shown.dead_holder())
    assert lock["multiprocessing.Lock"] == "holder ended with -9"
    assert lock["the next one, after 1 s"].endswith("False")
    assert lock["lock on a file, holder alive"] == "refused to another"
    assert lock["lock on a file, holder killed"] == "got by another"
    threads = seen(children_shown.deadlock())
    said = sorted(threads["what they said"].split(", "))
    assert said == ["thread A holds its lock", "thread B holds its lock"]
    assert threads["where they stand"].count("line 9, “with other:”") == 2
    assert threads["the end"].endswith("ended from outside: nobody inside can")
    removed = partial(children_shown.shared_content, then_remove=True)  # it is gone when it is looked at
    monkeypatch.setattr(children_shown, "shared_content", removed)
    monkeypatch.setattr(Path, "unlink", lambda file, unlink=Path.unlink: (unlink(file), unlink(file)))
    assert seen(children_shown.leaked_memory())["its first bytes"] == "not there"
