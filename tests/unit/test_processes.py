"""Worker processes that multiply: right or refused, and no process and no shared memory is left behind."""

import os
import signal
import sys
import time
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import numpy as np
import psutil
import pytest

from course_lib.circles import processes
from course_lib.measure.children_guard import MARK, carrying

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
#: Functions of a learner's file; a worker imports them.
LEARNERS = """
import time
import numpy as np

def picky(A, B):
    if np.isnan(A).any():
        raise ValueError("NaN")
    if 0 in A.shape:
        raise ValueError("empty")
    time.sleep(0.1)
    return A @ B

def slow(A, B):
    time.sleep(20)

"""


@pytest.fixture(scope="module", autouse=True)
def tracker():
    """Python's own process for shared memory, which ends with Python: no test starts it, none may end it."""
    if os.name == "posix":
        resource_tracker.ensure_running()
    return resource_tracker._resource_tracker


@pytest.fixture(autouse=True)
def nothing_is_left(tracker, monkeypatch):
    """Mark every process that a test starts and note the shared memory; look for both afterwards."""
    mark = f"test{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv(MARK, mark)
    blocks = []
    make = shared_memory.SharedMemory

    def noted(*args, **kwargs):
        blocks.append(make(*args, **kwargs))
        return blocks[-1]

    monkeypatch.setattr(shared_memory, "SharedMemory", noted)
    below = psutil.Process().children
    before = set(below())  # a browser that other tests keep open starts processes of its own when it likes
    yield lambda: [block.name for block in blocks if (Path("/dev/shm") / block.name).exists()]
    left = [*carrying(mark), *(set(below()) - before)]
    said = [str(process) for process in left]
    for process in left:
        process.kill()
    assert said == []
    assert [block.name for block in blocks if (Path("/dev/shm") / block.name).exists()] == []


@pytest.fixture
def learners(tmp_path, monkeypatch):
    (tmp_path / "learners_functions.py").write_text(LEARNERS)
    monkeypatch.syspath_prepend(tmp_path)
    import learners_functions

    yield learners_functions
    del sys.modules["learners_functions"]


def random(*shape):
    return np.random.default_rng(5).standard_normal(shape)


def in_a_cell(A, B):
    return A @ B


class TestProducts:
    def test_odd_shapes_and_layouts(self, nothing_is_left):
        A, B = random(37, 53), random(53, 41)
        with processes.Workers(3) as workers:
            np.testing.assert_allclose(workers.matmul(A, B), A @ B, rtol=1e-12)
            C = workers.matmul(A.astype("f4")[:, ::2], B.astype("f4")[::2])
            assert C.dtype == np.float32 and C.flags.owndata
            np.testing.assert_allclose(C, A[:, ::2] @ B[::2], rtol=1e-3, atol=1e-4)
            assert workers.matmul(A[:2], B).shape == (2, 41)  # one worker has no row
            assert workers.matmul(A[:0], B).shape == (0, 41)
            assert nothing_is_left() == []  # after each product, not only after the block
            assert len(set(workers.pids)) == 3 and len(workers.seconds) == 3 and workers.start_s > 0


class TestFailures:
    @posix
    def test_a_killed_worker_is_an_error_and_no_hang(self):
        A = np.ones((64, 64))
        with processes.Workers(2) as workers:
            os.kill(workers.pids[1], signal.SIGKILL)
            with pytest.raises(RuntimeError, match=r"Worker 1 \(pid \d+\) is gone \(killed by SIGKILL\)"):
                workers.matmul(A, A)

    def test_no_answer_is_taken_for_that_of_another_question(self, learners):
        bad = random(20, 5)
        bad[0, 0] = np.nan  # worker 0 fails, worker 1 answers later
        with processes.Workers(2, learners.picky) as workers:
            with pytest.raises(RuntimeError, match="Worker 0 failed at rows 0 to 9: ValueError: NaN"):
                workers.matmul(bad, random(5, 4))
            for _ in range(2):
                with pytest.raises(RuntimeError, match=r"were ended .*\(Worker 0 failed .* NaN\): start new"):
                    workers.matmul(random(20, 5), random(5, 4))

    def test_an_interrupt_ends_the_workers(self, monkeypatch, nothing_is_left):
        def interrupted(*_, **__):
            raise KeyboardInterrupt

        A = random(20, 20)
        with processes.Workers(2) as workers:
            with monkeypatch.context() as cell, pytest.raises(KeyboardInterrupt):
                cell.setattr(processes.connection, "wait", interrupted)
                workers.matmul(A, A)
            assert nothing_is_left() == []
            with pytest.raises(RuntimeError, match=r"were ended in the middle .* \(KeyboardInterrupt\)"):
                workers.matmul(2 * A, A)

    def test_the_time_limit(self):
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=r"time limit of 0.05 s"):
            processes.matmul(np.ones((4, 4)), np.ones((4, 4)), 2, None, 0.05)
        assert time.monotonic() - start < 5

    def test_a_function_that_no_worker_can_import_is_refused(self, monkeypatch):
        monkeypatch.setattr(in_a_cell, "__module__", "__main__")
        monkeypatch.setattr(sys.modules["__main__"], "in_a_cell", in_a_cell, raising=False)
        for multiply in (lambda A, B: A, in_a_cell):
            with pytest.raises(ValueError, match="cannot import"):
                processes.Workers(1, multiply)


@posix
class TestSharedMemory:
    def test_that_of_the_learner_stays(self, tracker):
        before = tracker._pid
        with processes.Workers(1) as workers:
            mine = shared_memory.SharedMemory(create=True, size=4096)
            workers.matmul(np.ones((2, 2)), np.ones((2, 2)))
        try:
            again = shared_memory.SharedMemory(mine.name)
            again.close()
            assert tracker._pid == before and psutil.pid_exists(before)
        finally:
            mine.close()
            mine.unlink()
