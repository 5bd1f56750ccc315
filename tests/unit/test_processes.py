"""Worker processes that multiply: right or refused, and no process and no shared memory is left behind."""

import os
import signal
import time
from concurrent.futures import Future
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import numpy as np
import psutil
import pytest

from course_lib.circles import processes
from course_lib.measure.children_guard import MARK, carrying

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


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


def random(*shape):
    return np.random.default_rng(5).standard_normal(shape)


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
            assert len(workers.seconds) == 3 and workers.start_s > 0


class TestFailures:
    @posix
    def test_a_killed_worker_is_an_error_and_no_hang(self):
        A = np.ones((64, 64))
        with processes.Workers(2) as workers:
            os.kill(next(iter(workers._pool._processes)), signal.SIGKILL)
            with pytest.raises(RuntimeError, match="A worker was killed"):
                deadline = time.monotonic() + 30  # the other one can do many products before it is seen
                while time.monotonic() < deadline:
                    workers.matmul(A, A)

    def test_an_interrupt_ends_the_workers(self, monkeypatch, nothing_is_left):
        def interrupted(*_):
            raise KeyboardInterrupt

        A = random(20, 20)
        with processes.Workers(2) as workers:
            with monkeypatch.context() as cell, pytest.raises(KeyboardInterrupt):
                cell.setattr(Future, "result", interrupted)
                workers.matmul(A, A)
            assert nothing_is_left() == []
            with pytest.raises(RuntimeError, match="A worker was killed"):
                workers.matmul(2 * A, A)

    def test_the_time_limit(self):
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=r"time limit of 0.05 s"), processes.Workers(2, 0.05):
            pass
        assert time.monotonic() - start < 5


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
