"""Nothing that the course starts survives: end, exception, time limit, exit, kill -9 of the notebook."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from course_lib.measure import children as measured
from course_lib.measure import children_shown
from course_lib.measure.children import Children, TimeIsOver, alive, in_words, status_of
from course_lib.measure.children_guard import MARK, carrying, hunt

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


def helpers_of(process_id):
    """Return the processes below one that belong to this test: guards and children."""
    try:
        return [one.pid for one in psutil.Process(process_id).children(recursive=True)]
    except psutil.Error:
        return []


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    """Mark everything that a test starts, whatever it does with it, and look for the mark afterwards."""
    mark = f"test{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv(MARK, mark)
    yield
    left = carrying(mark)
    said = [str(process) for process in left]
    for process in left:
        process.kill()
    assert said == []


class TestOneChild:
    def test_runs_and_is_waited_for(self):
        with Children() as children:
            child = children.start("import sys; print('hello', *sys.argv[1:])", 1, "b")
            assert child.wait(10) == 0
        assert child.output == "hello 1 b\n" and child.ended == "exit code 0" and child.status == "gone"
        assert "exit code 0" in str(children.report())

    def test_errors_are_output_too(self):
        with Children() as children:
            child = children.start("raise SystemExit('no luck')")
            assert child.wait(10) == 1
        assert "no luck" in child.output and child.ended == "exit code 1"

    def test_the_course_can_be_imported_from_anywhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with Children() as children:
            child = children.start("import course_lib; print('found')")
            assert child.wait(10) == 0, child.output

    @posix
    def test_kill_and_terminate_are_told_apart(self):
        with Children() as children:
            killed, asked = children.start(SLEEP), children.start(SLEEP)
            for child in (killed, asked):
                child.wait_for("up", 10)
            killed.kill()
            asked.terminate()
            assert killed.wait(10) == -signal.SIGKILL and asked.wait(10) == -signal.SIGTERM
        assert killed.ended == "killed by SIGKILL" and asked.ended == "killed by SIGTERM"
        assert killed.why == "killed by this notebook"

    def test_waiting_has_a_limit(self):
        with Children() as children:
            child = children.start(SLEEP, name="sleeper")
            with pytest.raises(TimeoutError, match=r"sleeper \(pid \d+\) has not ended within 0.1 s"):
                child.wait(0.1)
            with pytest.raises(TimeoutError, match=r"has not within 0\.2 s printed 'down'"):
                child.wait_for("down", 0.2)
            short = children.start("print('bye')")
            with pytest.raises(TimeoutError, match="has ended and not printed 'never'; it printed 'bye"):
                short.wait_for("never", 5)

    @posix
    def test_a_zombie_is_seen_and_not_reaped_by_looking(self):
        with Children() as children:
            child = children.start("print('x')")
            assert children.wait_until(lambda: child.status == "zombie", 10)
            assert child.status == "zombie" and child.ended == ""
            assert child.wait(1) == 0 and child.status == "gone"


class TestTheDiskIsNotFilled:
    def test_who_prints_for_ever_is_ended(self, monkeypatch):
        monkeypatch.setattr(measured, "MOST_PRINTED", 1 << 20)
        with Children() as children:
            code = "import time\nwhile True: print('x' * 50_000); time.sleep(0.002)"
            child = children.start(code, name="flood")
            assert child.wait(3) != 0
            assert child.output.startswith("x" * 50_000)
        assert child.why == "killed: it printed more than 1 MiB"

    @pytest.mark.skipif(sys.platform != "linux", reason="prlimit")
    def test_the_system_limits_files(self):
        code = """
import time
try:
    with open(__import__("sys").argv[1], "wb") as file:
        time.sleep(0.1)
        file.truncate((1 << 28) + 1)
except OSError as problem:
    print(problem.strerror)
"""
        with Children() as children:
            child = children.start(code, Path(children._folder.name) / "big")
            assert child.wait(10) == 0 and child.output == "File too large\n"

    def test_reading_the_output_reads_its_beginning_only(self):
        with Children() as children:
            child = children.start("print('a' * (32 << 20))")
            child.wait(10)
            tracemalloc.start()
            try:
                assert len(child.output) == measured.MOST_OUTPUT
                assert tracemalloc.get_traced_memory()[1] < 8 << 20  # bytes
            finally:
                tracemalloc.stop()


class TestNothingSurvives:
    def test_the_end_of_the_block(self):
        with Children() as children:
            family = children.start(FAMILY)
            family.wait_for("inner", 10)
            assert children.wait_until(lambda: len(carrying(children.token)) == 3, 10)
            pids = [process.pid for process in carrying(children.token)]
            assert set(pids_in(family.output)) <= set(pids)
            assert set(pids) <= {found.pid for found in alive()}
        assert all(map(gone, pids))
        assert family.why == "killed when the block was left"
        assert str(children.report()).count("started by a child") == 2

    def test_an_exception_in_the_block(self):
        with pytest.raises(ZeroDivisionError), Children() as children:
            child = children.start(SLEEP)
            child.wait_for("up", 10)
            1 / 0  # noqa: B018
        assert gone(child.pid)

    def test_an_interrupt_in_the_block(self):
        with pytest.raises(KeyboardInterrupt), Children() as children:
            child = children.start(SLEEP)
            raise KeyboardInterrupt
        assert gone(child.pid)

    def test_the_time_limit_ends_all_and_wakes_who_waits(self):
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

    def test_a_child_that_ignores_signals(self):
        stubborn = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        with Children() as children:
            child = children.start(stubborn + "print('up'); time.sleep(600)")
            child.wait_for("up", 10)
        assert gone(child.pid)

    @posix
    def test_a_child_that_is_stopped(self):
        with Children() as children:
            child = children.start(SLEEP)
            child.wait_for("up", 10)
            os.kill(child.pid, signal.SIGSTOP)
        assert gone(child.pid)

    @posix
    def test_a_daemon_that_left_its_group_and_whose_parents_are_gone(self):
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
            child = children.start(daemon)
            assert children.wait_until(lambda: "inner" in child.output, 10)
            (pid,) = pids_in(child.output)
            child.wait(10)
            assert status_of(pid) not in ("gone", "zombie")
        assert gone(pid)

    @pytest.mark.parametrize("way", ["kill -9", "exit", "os._exit", "exception", "exit, guard killed"])
    @posix
    def test_the_notebook_itself_ends(self, way, tmp_path):
        said = tmp_path / "said"
        last = {
            "kill -9": "time.sleep(600)",
            "exit": "sys.exit(3)",
            "os._exit": "os._exit(3)",
            "exception": "1 / 0",
            "exit, guard killed": "children._guard.kill(); sys.exit(3)",
        }
        notebook = f"""
import os, sys, time
from course_lib.measure.children import Children
children = Children(60)
children.__enter__()
family = children.start({FAMILY!r})
family.wait_for("inner", 10)
children.wait_until(lambda: "leaf" in family.output, 10)
guard = children._guard.pid
folder = children._folder.name
open({str(said)!r} + "_", "w").write(f"{{folder}} {{family.pid}} {{guard}} {{family.output}}")
os.rename({str(said)!r} + "_", {str(said)!r})
{last[way]}
"""
        parent = subprocess.Popen([sys.executable, "-c", notebook], cwd=ROOT, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not said.exists() and time.monotonic() < until:
            time.sleep(0.02)
        folder, first, guard, *rest = said.read_text().split()
        assert Path(folder).exists() or way != "kill -9"
        pids = [int(first), int(guard), *pids_in(" ".join(rest))]
        assert len(pids) == 4
        if way == "kill -9":
            assert all(status_of(pid) not in ("gone", "zombie") for pid in pids)
            parent.kill()
        parent.wait(20)
        assert all(gone(pid, 5) for pid in pids), [status_of(pid) for pid in pids]
        assert not Path(folder).exists()

    def test_the_guard_goes_with_the_block(self):
        before = set(helpers_of(os.getpid()))
        with Children() as children:
            guard = children._guard.pid
            assert guard in helpers_of(os.getpid())
        assert set(helpers_of(os.getpid())) <= before

    @posix
    def test_the_shared_memory_of_a_killed_child(self):
        for end in (Children.end_all, lambda children: hunt(children.token)):
            name = f"nine-test-{time.monotonic_ns()}"
            with Children() as children:
                child = children.start_module(children_shown.PROGRAMS, "hold_memory", name, 4096)
                child.wait_for("holds", 10)
                end(children)
                assert carrying(children.token) == []
                assert children_shown.unlink(name) is False  # its tracker was left the time to remove it

    def test_ending_has_a_limit(self, monkeypatch):
        with Children() as children:
            child = children.start(SLEEP)
            with monkeypatch.context() as stuck:  # as a process that waits for a broken disk
                stuck.setattr(measured, "LONGEST_END_S", 0.2)
                stuck.setattr(measured, "_kill", lambda process: None)
                stuck.setattr(measured, "hunt", lambda token: None)
                stuck.setattr(child._process, "kill", lambda: None)
                thread = threading.Thread(target=children.end_all, daemon=True)
                thread.start()
                thread.join(3)
                has_ended = not thread.is_alive()
            child._process.kill()
            assert has_ended and child.pid

    def test_a_child_started_by_a_thread_outlives_the_thread(self):
        with Children() as children:
            found = []
            thread = threading.Thread(target=lambda: found.append(children.start(SLEEP)))
            thread.start()
            thread.join()
            found[0].wait_for("up", 10)  # PR_SET_PDEATHSIG would have killed it
            assert found[0].status not in ("gone", "zombie")

    def test_blocks_in_each_other_end_their_own(self):
        with Children() as outer:
            first = outer.start(SLEEP)
            with Children() as inner:
                second = inner.start(SLEEP)
            assert gone(second.pid) and not gone(first.pid, 0.05)

    def test_closing_again_and_using_again(self):
        children = Children()
        with children:
            pass
        children.close()
        with pytest.raises(ValueError, match="used before"), children:
            pass
        with pytest.raises(ValueError, match=r"has ended|inside the block"):
            children.start(SLEEP)
        with pytest.raises(ValueError, match="inside the block"):
            Children().start(SLEEP)


@pytest.mark.parametrize("limit", [0, -1, True, "5", 1e9, float("nan")])
def test_the_limit_must_be_seconds(limit):
    with pytest.raises(ValueError, match="above 0 and at most 3600"):
        Children(limit)


def test_code_must_be_a_text():
    with Children() as children, pytest.raises(TypeError, match="must be a text of Python"):
        children.start(print)


def test_exit_codes_in_words():
    assert in_words(0) == "exit code 0" and in_words(-200) == "killed by signal 200"
    if os.name == "posix":
        assert in_words(-9) == "killed by SIGKILL"


# -- what is shown -----------------------------------------------------------------------------------------


@posix
class TestShown:
    def test_an_orphan_gets_another_parent(self):
        seen = children_shown.orphan()
        assert seen["the parent has ended"] == "exit code 0" and "pid" in seen["who is its parent now"]
        assert seen["after end_all()"].startswith(("gone", "ended")) and seen.left == 0

    def test_a_zombie_waits_to_be_asked(self):
        seen = children_shown.zombie()
        assert seen["it has ended, nobody asked"] == "zombie" and seen["after wait()"] == "gone, exit code 0"

    def test_leaked_memory_is_removed_by_the_tracker_or_by_nobody(self):
        seen = children_shown.leaked_memory(4096)
        assert "4,096 bytes" in seen["while a worker lives"]
        assert seen["it is killed, its tracker lives"] == "not there"
        assert "4,096 bytes" in seen["another, killed with its tracker"]
        assert seen["its first bytes"] == "b'hello'" and seen["after unlink()"] == "not there"
        assert "Left behind: 0" in str(seen)

    def test_a_dead_holder_keeps_one_lock_and_not_the_other(self):
        seen = children_shown.dead_holder()
        assert seen["multiprocessing.Lock"] == "holder ended with -9"
        assert seen["the next one, after 1 s"].endswith("False")
        assert seen["lock on a file, holder alive"] == "refused to another"
        assert seen["lock on a file, holder killed"] == "got by another"


def test_a_deadlock_of_real_threads_is_seen_and_ended():
    seen = children_shown.deadlock()
    assert seen["what they said"] in (
        "thread A holds its lock, thread B holds its lock",
        "thread B holds its lock, thread A holds its lock",
    )
    assert seen["where they stand"].count("with other:") == 2
    assert seen["the end"].endswith("ended from outside: nobody inside can") and seen.left == 0


def test_unlinking_nothing_is_no_error():
    assert children_shown.unlink("nine-there-is-no-such-memory") is False
