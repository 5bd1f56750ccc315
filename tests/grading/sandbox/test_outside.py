"""Answers in the sandbox, seen by the judge: values, faults, limits, and what it cannot see or do."""

import os
import platform
import time
from dataclasses import replace

import numpy as np
import pytest
from grading_tools import shows_in_one_of

from course_lib.grading import registry
from course_lib.grading.runner import Timing
from course_lib.grading.sandbox import bubblewrap, process
from course_lib.grading.sandbox.bubblewrap import Sandbox
from course_lib.grading.sandbox.outside import SandboxedRunner
from course_lib.grading.sandbox.process import GraderFault
from course_lib.grading.task import Code, source

LIMITS = bubblewrap.AnswerLimits(call_s=2, task_s=40, memory_mb=500, disk_mb=8, files=300, processes=12)
SAFE = Sandbox(limits=LIMITS)
HASTY = Sandbox(limits=replace(LIMITS, call_s=1))


UNSAFE = Sandbox(limits=LIMITS, unsafe=True)
pytestmark = pytest.mark.needs("bubblewrap")


def run(text: str, *args, where: Sandbox = SAFE):
    with SandboxedRunner(Code(source(text), "f"), where) as runner:
        return runner.call(args)


def test_values_and_arguments_come_back_and_what_is_printed_goes_nowhere(capfd):
    prints = """
        import os, sys
        def f():
            print('a\\nb')
            os.write(1, b'x')
            sys.stderr.write('no')
            return 1
    """
    for where in (SAFE, UNSAFE):
        text = "def f(A, n):\n    A[0, 0] = 7\n    return A @ A.T, n"
        outcome = run(text, np.ones((2, 3)).T, 5, where=where)
        assert outcome.fault is None
        product, n = outcome.value
        assert n == 5 and product.shape == (3, 3) and product[0, 0] == 50
        (after, _) = outcome.args_after
        assert after[0, 0] == 7 and after.strides == np.ones((2, 3)).T.strides
        outcome = run(prints, where=where)
        assert (outcome.value, outcome.printed) == (1, 2)
        assert capfd.readouterr() == ("", "")


def test_a_fault_names_the_line_of_the_cell():
    text = "x = 1\ndef f(a):\n    return a[9]\n"
    with SandboxedRunner(Code(text, "f"), SAFE, lines=(1, 41, 42)) as runner:
        fault = runner.call(([1],)).fault
    assert (fault.kind, fault.line, fault.code) == ("IndexError", 42, "return a[9]")


ENDLESS = {
    "python": "def f():\n    while True: pass\n",
    "C": "def f():\n    sum(range(10**12))\n",
    "without the alarm": (
        "import signal\ndef f():\n    signal.alarm(0); signal.setitimer(0, 0)\n    while True: pass\n"
    ),
    "compiled": (
        "from numba import njit\n@njit\ndef f():\n    n = 1\n    while n: n = n % 9 + 1\n    return n\n"
    ),
}


def test_an_endless_loop_and_waiting_are_ended():
    for kind, text in ENDLESS.items():
        start = time.perf_counter()
        where, limit = (SAFE, 2) if kind == "compiled" else (HASTY, 1)  # to compile takes a part of it
        fault = run(text, where=where).fault
        limits = (
            f"did not finish in {limit} s",
            f"did not finish in {3 * limit} s",
        )  # CPU; wall, if it is busy
        assert fault.kind == "TimeLimit" and any(words in fault.message for words in limits), kind
        assert time.perf_counter() - start < 15, kind
    sleeps = "import time, signal\ndef f():\n    signal.setitimer(0, 0)\n    time.sleep(100)\n"
    fault = run(sleeps, where=HASTY).fault
    assert fault.kind == "TimeLimit" and "wait" in fault.message


GREEDY = {
    "at once": "def f():\n    return len(bytearray(40 * 10**9))\n",
    "bit by bit": "def f():\n    a = []\n    while True: a.append(bytearray(10**7))\n",
    "mapped": (
        "import mmap\ndef f(a=[]):\n    while 1: a.append(mmap.mmap(-1, 9**7)) or a[-1].write(bytes(9**7))"
    ),
}


def test_memory_and_disk_are_limited():
    for kind, text in GREEDY.items():
        assert run(text).fault.kind in ("MemoryError", "MemoryLimit", "OSError"), kind
    text = """
        def f():
            try:
                for n in range(100):
                    with open('/tmp/' + str(n), 'wb') as file:
                        file.write(bytes(2**20))
            except OSError:
                return n
    """
    assert 1 <= run(text).value <= LIMITS.disk_mb + 1
    for make in ("mkdir(name)", "close(os.open(name, os.O_CREAT))"):
        text = f"import os\ndef f(most):\n    for name in map(str, range(most)):\n        os.{make}\n"
        assert run(text, 200).fault is None
        fault = run(text, 1000).fault
        assert fault.kind == "FileLimit" and "more than the 300 allowed" in fault.message


def test_threads_are_limited_and_end_with_the_answer():
    text = """
        import threading, time
        def f():
            started = 0
            try:
                for _ in range(1000):
                    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
                    started += 1
            except RuntimeError:
                pass
            return started
    """
    with SandboxedRunner(Code(source(text), "f"), SAFE) as runner:
        assert 1 <= runner.call(()).value < LIMITS.processes
        family = [one.pid for one in runner._process.family()]
        assert family
    end = time.perf_counter() + 5
    while any(os.path.exists(f"/proc/{pid}") for pid in family):  # the kernel clears up in its own time
        assert time.perf_counter() < end
        time.sleep(0.05)


REFUSED = {
    "a new process": "os.fork()",
    "a program": "subprocess.run(['/bin/true'])",
    "memory that no limit sees": "os.memfd_create('x')",
    "a namespace": "call('unshare', 0x10000000)",
    "a key": "call('add_key', b'user', b'a', b'b', 1, -3)",
    "a key ring": "call('keyctl', 1, b'x')",
    "shared memory": "call('shmget', 0, 4096, 0o1777)",
    "tracing": "call('ptrace', 0, 0, 0, 0)",
    "a ring of requests": "call('io_uring_setup', 1, 0)",
    "links, which fill no disk": "os.symlink('a', 'b')",
    "another name": "os.link('/proc/self/stat', 'b')",
    "a pipe with a name": "os.mkfifo('b')",
    "a socket": "__import__('socket').socket(1)",
    "a queue of messages": "call('mq_open', b'x', 66, 384, 0)",
    "which pages are in memory": "call('mincore', 0, 4096, 0)",
    "to have pages read": "os.posix_fadvise(0, 0, 0, 3)",
}


def test_a_system_call_that_reaches_around_the_sandbox_is_refused():
    numbers = bubblewrap.MACHINES[platform.machine()][2]
    head = f"""
        import ctypes, os, subprocess
        libc = ctypes.CDLL(None, use_errno=True)
        NUMBERS = {numbers!r}
        def call(name, *words):
            if libc.syscall(NUMBERS[name], *words) < 0:
                raise OSError(ctypes.get_errno(), name)
    """
    for what, line in REFUSED.items():
        fault = run(f"{source(head)}\ndef f():\n    {line}\n").fault
        assert fault is not None and fault.kind == "PermissionError", what


def test_a_process_that_does_not_start_is_no_fault_of_the_answer(monkeypatch):
    monkeypatch.setattr(process, "STARTS_WAIT_S", (0.0, 0.0))
    monkeypatch.setattr(process, "CODE", "raise SystemExit(1)  # {course!r} {limits!r}")
    with pytest.raises(GraderFault, match="did not start"):
        run("def f():\n    return 1\n")


ENDING = (
    ("import os\ndef f():\n    os._exit(0)\n", "Stopped"),
    ("import ctypes\ndef f():\n    ctypes.string_at(0)\n", "Stopped"),
    ("import sys\ndef f():\n    sys.exit(0)\n", "SystemExit"),
    ("def f():\n    raise KeyboardInterrupt\n", "Stopped"),
    ("def f():\n    return next(iter([]))\n", "StopIteration"),  # as in a notebook
    ("def f():\n    a = []\n    for _ in range(10**5): a = [a]\n    return a\n", None),
    ("def f():\n    return bytearray(300 * 10**6)[:1] and [0.5] * (40 * 10**6)\n", None),
)


def test_an_answer_that_ends_its_process_or_ships_too_much_is_a_fault():
    for text, kind in ENDING:
        fault = run(text).fault
        assert fault is not None and kind in (None, fault.kind), text


def test_after_a_stopped_call_the_next_one_starts_anew():
    text = "import os\ndef f(n):\n    return n if n else os._exit(1)\n"
    with SandboxedRunner(Code(text, "f"), SAFE) as runner:
        assert runner.call((0,)).fault.kind == "Stopped"
        assert runner.call((3,)).value == 3
        assert runner.incidents


FORGERIES = {
    "garbage": "b'garbage' * 100",
    "a huge frame": "b'\\xff' * 8",
    "a reply that is none": "b'\\x02\\0\\0\\0\\0\\0\\0\\0[]'",
    "a text for a number": "frame({'value': 1, 'fault': None, 'args_after': 'x', 'owner': 'y'})",
    "a fault that is none": "frame({'value': 1, 'fault': {'kinds': 5}, 'args_after': ()})",
}


def test_forged_replies_do_no_harm():
    for what, reply in FORGERIES.items():
        text = f"""
            import os
            from course_lib.grading.sandbox.wire import frame
            def f():
                for number in range(3, 30):
                    try:
                        os.write(number, {reply})
                    except OSError:
                        pass
                os._exit(0)
        """
        with SandboxedRunner(Code(source(text), "f"), SAFE) as runner:
            outcome = runner.call(())
        assert outcome.fault is not None and runner.incidents, what


def test_from_outside_it_is_seen_whether_counting_leads_another_way():
    text = "def f(a):\n    if {}:\n        return a[0] + a[0]\n    return 2.0 * a[0]\n"
    for asked, alike in (
        ("a", True),
        ("isinstance(a[0], float)", False),
        ("not isinstance(a[0], float)", False),
    ):
        with SandboxedRunner(Code(text.format(asked), "f"), SAFE) as runner:
            assert runner.count(([1.5],), True).alike == alike, asked
            assert runner.call(([1.5],)).value == 3.0


def test_nothing_of_the_course_but_its_library_can_be_seen(tmp_path):
    """What is private is not there, though Python and the course's code may lie beside it."""
    secret = tmp_path / "class"
    secret.mkdir()
    (secret / "secret_seed").write_text("nobody must read this")
    text = """
        import os
        def f(folders):
            seen = [folder for folder in folders if os.path.exists(folder)]
            library = os.path.dirname(__import__('course_lib').__file__)
            tasks = os.listdir(os.path.join(library, 'grading', 'tasks'))
            return seen, tasks, dict(os.environ), os.listdir('/proc')
    """
    os.environ["NINE_CIRCLES_SEED_TEST"] = "nobody must read this"
    course = bubblewrap.COURSE
    own = [course / name for name in ("solutions", "tests", ".git", "Makefile")]
    hidden = [secret, *own, "/etc/passwd"]
    seen, tasks, environment, processes = run(
        text, [str(path) for path in hidden], where=Sandbox(private=(secret,), limits=LIMITS)
    ).value
    del os.environ["NINE_CIRCLES_SEED_TEST"]
    assert (seen, tasks) == ([], [])
    assert "NINE_CIRCLES_SEED_TEST" not in environment
    assert [name for name in processes if name.isdigit()] == ["1"]


def test_what_an_upgrade_left_behind_cannot_be_seen(monkeypatch):
    folder = bubblewrap.LIBRARY / "views"  # stands for one that a fresh checkout lacks
    text = "import os\ndef f(folder):\n    return os.listdir(folder)\n"
    assert run(text, str(folder)).value
    monkeypatch.setattr(bubblewrap, "LEFT_BEHIND", folder)
    assert run(text, str(folder)).value == []


def test_nothing_can_be_written():
    library = str(bubblewrap.LIBRARY)
    text = "def f(folder):\n    open(folder + '/x', 'w')\n"
    with SandboxedRunner(Code(text, "f"), SAFE) as runner:
        for folder in ("/", "/dev", "/dev/shm", "/usr", library, f"{library}/grading/tasks", "/etc", "/proc"):
            assert "OSError" in runner.call((folder,)).fault.kinds, folder


def test_there_is_no_network_and_no_privilege():
    text = """
        import os, socket
        def f():
            try:
                socket.create_connection(('1.1.1.1', 53), timeout=1)
            except OSError:
                status = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
                caps = {status[name].strip() for name in ('CapEff', 'CapPrm', 'CapBnd', 'CapInh')}
                return os.geteuid(), sorted(caps), status['NoNewPrivs'].strip()
    """
    user, capabilities, no_new = run(text).value
    assert no_new == "1"
    if os.geteuid() == 0:
        assert user != 0 and set(capabilities) == {"0" * 16}


# --- timing from outside ---


def indexed(name: str) -> str:
    return registry.task("01.faster").speed.baseline.text.replace("matmul_indexed", name)


def timed(text: str):
    task = registry.task("01.faster")
    args = task.speed.make_inputs(np.random.default_rng(1))
    with SandboxedRunner(Code(source(text), "f"), SAFE) as runner:
        return runner.time(task.speed, args)


TRIES = 3  # of a measurement, on a machine whose other guests may take a core away


def between(low: float, timing: Timing, high: float) -> bool:
    return timing.fault is None and low < timing.speedup < high


@pytest.mark.timing
def test_the_baseline_is_as_fast_as_itself_and_twice_the_work_takes_twice_the_time():
    twice = indexed("g") + "\ndef f(A, B):\n    g(A, B)\n    return g(A, B)\n"
    assert shows_in_one_of(TRIES, lambda: between(0.75, timed(indexed("f")), 1.33))
    assert shows_in_one_of(TRIES, lambda: between(0.38, timed(twice), 0.66))


LIES = {
    "stops the clocks": """
        import time
        time.perf_counter = time.thread_time = time.process_time = time.monotonic = lambda: 0.0
    """,
    "works on another thread": """
        import threading
        plain = f
        def f(A, B):
            box = []
            thread = threading.Thread(target=lambda: box.append(plain(A, B)))
            thread.start(); thread.join()
            return box[0]
    """,
    "works when it has returned": """
        import sys, threading, time
        sys.setswitchinterval(1.0)
        plain = f
        def f(A, B):
            rows = [[0.0] * len(B[0]) for row in A]
            def fill():
                time.sleep(2e-3)
                rows[:] = plain(A, B)
            threading.Thread(target=fill).start()
            return rows
    """,
    "says done before it begins": """
        import os
        from course_lib.grading.sandbox.wire import frame
        plain = f
        def f(A, B):
            for number in (3, 4, 5, 6):
                try:
                    os.write(number, frame({'value': None, 'fault': None}))
                except OSError:
                    pass
            return plain(A, B)
    """,
}


def gains_nothing(text: str) -> bool:
    timing = timed(text)
    missed = any(value is None for _, value in timing.checked)
    return timing.fault is not None or timing.speedup < 1.25 or missed


@pytest.mark.timing
def test_an_answer_cannot_lie_about_its_time():
    """A lie that works gains each time."""
    for kind, lie in LIES.items():
        text = source(indexed("f")) + source(lie)
        assert shows_in_one_of(TRIES, lambda text=text: gains_nothing(text)), kind
