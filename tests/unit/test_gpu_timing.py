"""Times on a GPU, without one: what is put into the queue, in which order, and what of it counts."""

import pytest

from course_lib.measure import gpu_timing


@pytest.fixture
def queue(monkeypatch):
    """A GPU whose clock moves by what is put into its queue: 5 for a flush, 2 for a launch."""
    import torch

    log = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            log.append("event")
            self.at = 5 * log.count("flush") + 2 * log.count("launch")

        def elapsed_time(self, other):
            return 1e3 * (other.at - self.at)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: log.append("wait"))
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: log.append("sleep"))
    return log


def test_a_flush_comes_before_each_launch_and_does_not_count(queue):
    seconds, _ = gpu_timing._sample(lambda: queue.append("launch"), 3, lambda: queue.append("flush"))
    assert " ".join(queue) == "wait flush launch wait sleep" + 3 * " flush event launch event" + " wait"
    assert seconds == 2
