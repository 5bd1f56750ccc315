"""Ranks as processes: what a notebook gets, and that nothing is left."""

import contextlib
import inspect
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from pace import slowness

from course_lib.distributed import collectives, faults, launch
from course_lib.distributed.launch import Hung, RankFailed, run
from course_lib.distributed.plan import shares
from course_lib.distributed.wire import Wire

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ranks are forked")


def left_behind():
    """Return the living ranks, children of the server that forks them, and what ranks have started."""
    ranks = [child for server in psutil.Process().children() for child in server.children()]
    found = [rank for rank in ranks if "forkserver" in " ".join(rank.cmdline())]
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("TORCHELASTIC_RUN_ID", "").startswith(f"ranks-{os.getpid()}-"):
                found.append(process)
    return [one for one in found if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def lives(pid):
    """Whether there is such a process, and not only what a container's first process has not cleared."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def servers():
    """Return the numbers of the processes that stay: the server of ranks, and who counts its resources."""
    return {
        child.pid for child in psutil.Process().children() if "multiprocessing" in " ".join(child.cmdline())
    }


def test_values_and_words_come_back_by_rank(capsys):
    scale = 10.0  # a closure

    def meet(x):
        import torch
        import torch.distributed as dist

        print("here is", dist.get_rank())
        total = torch.tensor([x * dist.get_rank()])
        dist.all_reduce(total)
        return scale * total.item()

    assert run(meet, ranks=3, x=2.0) == [60.0] * 3
    assert capsys.readouterr().out == "".join(f"rank {r} | here is {r}\n" for r in range(3))
    assert not left_behind()


def test_failures_are_a_sentence_about_the_rank_that_caused_them():
    import torch.distributed as dist

    def bad():
        if dist.get_rank() == 2:
            raise ValueError("no")
        dist.barrier()

    def skips():
        if dist.get_rank() != 1:
            dist.barrier()

    def dies():
        if dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        dist.barrier()
        return os.environ["TORCHELASTIC_RESTART_COUNT"]

    def crossed():
        import torch

        dist.recv(torch.ones(1), 1 - dist.get_rank())

    for play, problem, said in (
        (bad, RankFailed, r"Rank 2 raised ValueError in line \d+ of bad: no"),
        (skips, RankFailed, r"of skips and waited for a rank that is gone: 1 had returned"),
        (dies, RankFailed, "Rank 1 was killed by SIGKILL"),
    ):
        with pytest.raises(problem, match=said):
            run(play, ranks=3, time_limit_s=20)
    with pytest.raises(Hung, match=r"rank 0 waited in recv \(line \d+ of crossed\); rank 1 waited in recv"):
        run(crossed, ranks=2, time_limit_s=3)
    assert run(dies, ranks=2, restarts=1) == ["1", "1"]
    assert not left_behind()


class Mute(Exception):
    def __str__(self):
        raise RuntimeError


def test_every_way_to_fail_is_a_sentence():
    import torch.distributed as dist

    def needs(x):
        return x

    def nul():
        raise ValueError("a\0b")

    def mute():
        raise Mute

    def talks_to_itself():
        wire = Wire.of_group()
        wire.receive(np.ones(1), source=wire.rank)

    for play, said in (
        (needs, r"raised TypeError when it was called: .*missing 1 required"),
        (threading.Lock, "ValueError when it had returned: what the function returned cannot be sent back"),
        (nul, r"raised ValueError in line \d+ of nul: a.b"),
        (mute, r"raised Mute in line \d+ of mute: it cannot be said what"),
        (talks_to_itself, r"in line \d+ of talks_to_itself: Rank \d talks to itself"),  # not a line of ours
    ):
        with pytest.raises(RankFailed, match=said):
            run(play, ranks=2)
    assert run(dist.destroy_process_group, ranks=2) == [None, None]  # as a script for torchrun ends


def test_nothing_waits_longer_than_its_limit(monkeypatch, tmp_path):
    run(os.getpid, ranks=2)  # the server has started
    monkeypatch.setattr(launch, "GRACE_S", -0.999)
    with pytest.raises(RankFailed, match="began in time"):
        run(os.getpid, ranks=1, time_limit_s=1)
    for ranks, said in ((1, "Rank 0 ended"), (2, "Ranks 0, 1 ended")):
        for grace in (1, 4, 16, 64):  # a busy machine starts ranks late
            monkeypatch.setattr(launch, "GRACE_S", grace)
            with pytest.raises(RankFailed) as failed:
                run(lambda: os._exit(0), ranks=ranks, time_limit_s=1)  # it would be for ever
            if str(failed.value) != launch.NONE_IN_TIME:
                break
        assert f"{said} without returning a value" in str(failed.value)
    monkeypatch.setattr(launch, "GRACE_S", 60.0)  # ranks slow to start say themselves where they hang

    def sleeps():
        (tmp_path / f"{os.getpid()}").touch()
        time.sleep(60)

    with pytest.raises(Hung, match="time limit of 3 s"):
        run(sleeps, ranks=2, time_limit_s=3, restarts=3)
    assert len(list(tmp_path.iterdir())) <= 2  # not a limit for each start
    assert not left_behind()


def test_what_ranks_have_started_ends_with_them():
    def starts():
        return subprocess.Popen(["sleep", "300"]).pid

    def starts_and_dies():
        starts()
        os.kill(os.getpid(), signal.SIGKILL)

    started = run(starts, ranks=2)
    with pytest.raises(RankFailed, match="SIGKILL"):
        run(starts_and_dies, ranks=2)
    until = time.monotonic() + 10
    while left_behind() and time.monotonic() < until:
        time.sleep(0.05)
    assert not left_behind() and not any(map(lives, started))


def test_runs_of_several_threads_take_turns():
    def naps():
        begun = time.monotonic()
        time.sleep(0.3)
        return begun, time.monotonic()

    run(os.getpid, ranks=1)  # the server has started
    found, before = [], os.environ.get(launch.OWN_STORE)
    threads = [threading.Thread(target=lambda: found.extend(run(naps, ranks=1))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (_, first), (second, ends), (third, _) = sorted(found)
    assert first < second and ends < third
    assert os.environ.get(launch.OWN_STORE) == before


def test_what_makes_no_sense_is_refused_before_anything_starts(monkeypatch):
    lock = threading.Lock()
    for play, arguments, said in (
        (print, {"ranks": 0}, "ranks is 0"),
        (print, {"ranks": 65}, "at most 64|from 1 to 64"),
        (print, {"time_limit_s": 0}, "time_limit_s is 0"),
        (print, {"x": (i for i in ())}, "x cannot be sent to another process"),
        (lambda: lock, {}, "function cannot be sent to another process"),
        ("print", {}, "must be a function"),
    ):
        with pytest.raises(ValueError, match=said):
            run(play, **arguments)
    free = 7 * (64 << 20) + 12 * (1 << 20)  # bytes; 8 ranks want more, 4 with a matrix as well
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
    for arguments in ({"ranks": 8}, {"ranks": 4, "x": bytes(32 << 20)}):
        with pytest.raises(ValueError, match=r"about 0\.5 GiB, but 0\.4 GiB are free: use fewer"):
            run(print, **arguments)


def test_a_busy_port_is_nobodys_business(monkeypatch):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        monkeypatch.setenv("MASTER_PORT", str(busy.getsockname()[1]))  # as a torchrun around it would say
        assert run(os.getpid, ranks=2)


def test_an_interrupted_cell_is_interrupted_and_leaves_no_ranks():
    before = signal.getsignal(signal.SIGINT)

    def interrupt(kernel):
        os.kill(kernel, signal.SIGINT)
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        run(interrupt, ranks=2, kernel=os.getpid())
    assert not left_behind()
    assert signal.getsignal(signal.SIGINT) is before


def kept(folder):
    """Return what a launch could leave: processes, ports, files, open files and threads of this process."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    ports = [c.laddr.port for one in family for c in one.net_connections() if c.status == psutil.CONN_LISTEN]
    files = sorted(path.name for path in folder.iterdir())
    return {one.pid for one in family}, sorted(ports), files, family[0].num_fds(), threading.active_count()


@pytest.mark.parametrize("launches", (10, pytest.param(200, marks=pytest.mark.slow)))
def test_launches_in_a_row_leave_no_process_no_port_and_no_file(launches, tmp_path, monkeypatch):
    run(os.getpid, ranks=2)  # the server of ranks stays
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = kept(tmp_path)
    for _ in range(launches):
        assert len({*run(os.getpid, ranks=2)}) == 2
    until = time.monotonic() + 10
    while (after := kept(tmp_path)) != before and time.monotonic() < until:
        time.sleep(0.05)
    assert after == before


@pytest.mark.timing
def test_ranks_start_in_half_a_second_once_there_is_a_server():
    program = (
        "import os, time\nfrom course_lib.distributed.launch import run\n"
        "for _ in range(6):\n    start = time.perf_counter()\n    run(os.getpid, ranks=4)\n"
        "    print(time.perf_counter() - start)\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    first, *warm = map(float, told.split())
    pace = 2 * slowness()  # on a quiet machine 2.4 and 0.4 s
    assert first < 2.5 * pace and sorted(warm)[2] < 0.6 * pace, told


AS_A_FILE = """import torch.distributed as dist

{function}

dist.init_process_group("gloo")
around()
dist.destroy_process_group()
"""


def around():
    import numpy as np

    from course_lib.distributed.wire import Wire

    wire = Wire.of_group()
    right, left = (wire.rank + 1) % wire.size, (wire.rank - 1) % wire.size
    print(f"{wire.rank} got {wire.exchange(np.array([10 * wire.rank]), right, left)[0]}")


def test_the_same_function_as_a_file_runs_under_two_agents_of_torchrun(tmp_path, capsys):
    file = tmp_path / "around.py"
    file.write_text(AS_A_FILE.format(function=inspect.getsource(around)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    said = ("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}")
    command = [sys.executable, "-m", "torch.distributed.run", *said, "--local-addr=127.0.0.1", str(file)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    agents = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in "12"]
    try:
        printed = [agent.communicate(timeout=60)[0] for agent in agents]
    finally:
        for agent in agents:
            agent.terminate()  # which ends its ranks too
    assert sorted(printed) == ["0 got 10\n", "1 got 0\n"] and [agent.returncode for agent in agents] == [0, 0]
    run(around, ranks=2)
    assert capsys.readouterr().out == "".join(f"rank {r} | {line}" for r, line in enumerate(sorted(printed)))
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before | servers()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_killed_kernel_leaves_no_ranks(tmp_path, monkeypatch):
    program = tmp_path / "kernel.py"
    program.write_text(
        "import time\nfrom course_lib.distributed.launch import run\n"
        "def sleep(folder):\n"
        "    import os\n"
        "    import subprocess\n"
        "    started = subprocess.Popen(['sleep', '60'])\n"
        "    open(f'{folder}/{os.getpid()}', 'w').close()\n"
        "    open(f'{folder}/{started.pid}', 'w').close()\n"
        "    started.wait()\n"
        f"if __name__ == '__main__':\n    run(sleep, ranks=2, folder={str(tmp_path / 'pids')!r})\n"
    )
    (tmp_path / "pids").mkdir()
    kernel = subprocess.Popen([sys.executable, str(program)], env={**os.environ, "TMPDIR": str(tmp_path)})
    until = time.monotonic() + 60
    while len(list((tmp_path / "pids").iterdir())) < 4 and time.monotonic() < until:
        time.sleep(0.05)
    ranks = [int(path.name) for path in (tmp_path / "pids").iterdir()]
    kernel.kill()
    kernel.wait()
    until = time.monotonic() + 10
    while any(map(lives, ranks)) and time.monotonic() < until:
        time.sleep(0.05)
    assert len(ranks) == 4 and not any(map(lives, ranks))
    (left,) = tmp_path.glob("ranks-*")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run(os.getpid, ranks=1)
    assert not left.exists()  # it held all that the ranks were sent


def test_collectives_equal_torchs_own_on_processes():
    def play(x):
        import torch
        import torch.distributed as dist

        wire = Wire.of_group()
        mine, P = x[wire.rank], wire.size
        total, root = torch.from_numpy(mine.copy()), torch.from_numpy(mine.copy())
        gathered = [torch.empty(mine.shape, dtype=torch.float64) for _ in range(P)]
        dist.all_reduce(total)
        dist.broadcast(root, src=1)
        dist.all_gather(gathered, torch.from_numpy(mine))
        own = [mine if rank == wire.rank else np.empty_like(mine) for rank in range(P)]
        cut, pairs = collectives.cut, [[0, 1], [2, 3]]
        part = cut(total.numpy(), P)[wire.rank]
        return [
            *((one(wire, mine), total) for one in collectives.ALL_REDUCES.values()),
            (collectives.hierarchical_all_reduce(wire, mine, pairs), total),
            *((one(wire, mine, 1), root) for one in (collectives.ring_broadcast, collectives.tree_broadcast)),
            (np.array(collectives.ring_all_gather(wire, own)), torch.stack(gathered)),
            (np.array(collectives.doubling_all_gather(wire, own)), torch.stack(gathered)),
            (collectives.ring_reduce_scatter(wire, cut(mine, P)), part),
            (collectives.halving_reduce_scatter(wire, cut(mine, P)), part),
        ]

    for rank, pairs in enumerate(run(play, ranks=4, x=np.random.default_rng(4).integers(0, 99, (4, 30)) / 1)):
        for number, (ours, torchs) in enumerate(pairs):
            np.testing.assert_array_equal(ours, torchs, err_msg=f"rank {rank}, number {number}")


def straggle(bands):
    """Return the seconds that this band takes, and the part of them that was computed; rank 1 is slow."""
    import torch
    import torch.distributed as dist

    rank = dist.get_rank()
    if rank == 1:
        faults.throttle(1 / 3)
    mine, other = torch.ones(bands[rank].stop - bands[rank].start, 256), torch.ones(256, 256)
    dist.barrier()
    start, computed = time.perf_counter(), time.process_time()
    for _ in range(1000):
        mine @ other
    return time.perf_counter() - start, (time.process_time() - computed) / (time.perf_counter() - start)


def test_a_throttled_rank_computes_a_third_of_the_time():
    (_, _), (_, part) = run(straggle, ranks=2, bands=shares(128, (1, 1)))
    assert 0 < part < 0.45
    with pytest.raises(ValueError, match="speed is 0"):
        faults.throttle(0)


@pytest.mark.timing
def test_shares_by_measured_speed_end_together():
    bands = shares(512, (1, 1))
    equal = [seconds for seconds, _ in run(straggle, ranks=2, bands=bands)]
    assert equal[1] > 1.5 * equal[0]  # the straggler, seen in times
    by_speed = [seconds for seconds, _ in run(straggle, ranks=2, bands=shares(512, [1 / s for s in equal]))]
    assert max(by_speed) < 0.75 * max(equal)


def test_a_script_without_main_is_told_where_the_call_belongs(tmp_path):
    script = tmp_path / "loose.py"
    script.write_text("from course_lib.distributed.launch import run\nrun(print, ranks=2)\n")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    said = [line for line in ended.stderr.splitlines() if line.startswith("course_lib.")]
    assert any('`if __name__ == "__main__":`' in line for line in said), ended.stderr
