"""The simulated network beside a real one, which Linux makes where an administrator asks for it."""

import socket
from pathlib import Path

import numpy as np
import psutil
import pytest

from course_lib.distributed import schedules
from course_lib.distributed.emulated import run_emulated, why_not
from course_lib.simulators import network

LINK = 25e6  # bytes a second: 200 Mbit


@pytest.fixture
def cables():
    if sentence := why_not():
        pytest.skip(sentence)


def keepers():
    """The processes that keep a namespace for this one."""
    return [child.name() for child in psutil.Process().children() if child.name() in ("unshare", "cat")]


def test_ranks_talk_through_their_own_cables_and_nothing_is_left(cables):
    def play(x):
        import torch
        import torch.distributed as dist

        total = torch.full((x,), float(dist.get_rank() + 1))
        dist.all_reduce(total)
        dist.barrier()  # what is on the way has left the cable
        counters = Path("/proc/thread-self/net/dev").read_text().split("eth0:")[1].split()
        return total.sum().item(), int(counters[8]), [name for _, name in socket.if_nameindex()]

    for total, sent, names in run_emulated(play, ranks=2, racks=2, x=250_000):
        assert total == 3 * 250_000
        assert 1e6 < sent < 1.2e6  # the cable's own count: 2 n (P − 1) / P bytes, and the packets' heads
        assert sorted(names) == ["eth0", "lo"]
    assert not keepers()


def test_what_makes_no_network_is_refused(monkeypatch):
    for arguments, said in (({"ranks": 3, "racks": 2}, "3 ranks do not make 2"), ({"link": 0}, "link is 0")):
        with pytest.raises(ValueError, match=said):
            run_emulated(print, **arguments)
    monkeypatch.setattr("os.geteuid", lambda: 1000, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(OSError, match="needs an administrator's rights"):
        run_emulated(print)


def all_reduces(sizes):
    """Return the seconds of each all-reduce at each size, the best of three; runs on a rank."""
    import time

    import torch.distributed as dist

    from course_lib.distributed.collectives import ALL_REDUCES
    from course_lib.distributed.wire import Wire

    wire, found = Wire.of_group(), {}
    for name, all_reduce in ALL_REDUCES.items():
        for size in sizes:
            x, found[name, size] = np.ones(size // 4, np.float32), float("inf")
            for _ in range(3):
                dist.barrier()
                start = time.perf_counter()
                all_reduce(wire, x)
                dist.barrier()
                found[name, size] = min(found[name, size], time.perf_counter() - start)
    return found


def schedule(name, size):
    return getattr(schedules, f"{name}_all_reduce")(4, size)


@pytest.mark.slow
@pytest.mark.timing
@pytest.mark.parametrize("racks", (1, 2))
def test_the_simulated_network_is_within_20_percent_of_the_real_one(cables, racks):
    sizes = [1 << 20, 1 << 21, 1 << 22]
    measured = run_emulated(all_reduces, 4, link=LINK, racks=racks, sizes=sizes)[0]
    told = network.racks(4, racks, LINK, alpha=5e-4) if racks > 1 else network.star(4, LINK, alpha=5e-4)
    small, large = ((schedule("ring", n), measured["ring", n]) for n in (sizes[0], sizes[-1]))
    found = network.fitted(told, small, large)  # from two sizes of one algorithm
    for (name, size), seconds in measured.items():
        for net in (told, found):
            said = network.timeline(net, schedule(name, size)).seconds
            assert said == pytest.approx(seconds, rel=0.2), (name, size)


def test_alpha_and_beta_from_two_sizes_predict_the_others():
    truth = network.racks(8, 2, link=2e7, uplink=3e7, alpha=3e-4)
    guess = network.racks(8, 2, link=1e9, uplink=1.5e9, alpha=0)

    def seconds(net, play, size):
        return network.timeline(net, play(8, size)).seconds

    ring = schedules.ring_all_reduce
    for wrong in (1.0, 1.03, 0.97):  # a measurement that is 3 % off
        small, large = ((ring(8, n), seconds(truth, ring, n) * by) for n, by in ((1e6, wrong), (4e6, 1.0)))
        found = network.fitted(guess, small, large)
        for play in (ring, schedules.tree_all_reduce, schedules.doubling_all_reduce):
            for size in (1e6, 2e6, 1.6e7):
                expected = seconds(truth, play, size)
                close = 1e-9 if wrong == 1.0 else 0.2
                assert seconds(found, play, size) == pytest.approx(expected, rel=close), (play, size)
    assert found.alpha > 0
    found = network.fitted(guess, (ring(8, 1e6), 0.01), (ring(8, 4e6), 1.0))  # faster than no alpha at all
    assert found.alpha == 0 and seconds(found, ring, 4e6) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="give no speed of a link"):
        network.fitted(guess, (ring(8, 1e6), 0.5), (ring(8, 4e6), 0.4))
