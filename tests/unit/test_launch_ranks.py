"""Ranks as processes: what a notebook gets, and that nothing is left."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from course_lib.distributed.launch import Hung, RankFailed, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ranks are forked")


def left_behind():
    """Return the living ranks: children of the server that forks them."""
    return [
        child
        for server in psutil.Process().children()
        for child in server.children()
        if "forkserver" in " ".join(child.cmdline()) and child.status() != psutil.STATUS_ZOMBIE
    ]


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
        run(crossed, ranks=2, time_limit_s=1)
    assert run(dies, ranks=2, restarts=1) == ["1", "1"]
    assert not left_behind()


def test_what_makes_no_sense_is_refused_before_anything_starts():
    for arguments, said in (
        ({"ranks": 0}, "ranks is 0"),
        ({"ranks": 65}, "at most 64|from 1 to 64"),
        ({"time_limit_s": 0}, "time_limit_s is 0"),
        ({"x": (i for i in ())}, "x cannot be sent to another process"),
    ):
        with pytest.raises(ValueError, match=said):
            run(print, **arguments)
    with pytest.raises(ValueError, match="must be a function"):
        run("print")


def test_a_killed_kernel_leaves_no_ranks(tmp_path):
    program = tmp_path / "kernel.py"
    program.write_text(
        "import time\nfrom course_lib.distributed.launch import run\n"
        "def sleep(folder):\n"
        "    import os\n"
        "    open(f'{folder}/{os.getpid()}', 'w').close()\n"
        "    time.sleep(60)\n"
        f"if __name__ == '__main__':\n    run(sleep, ranks=2, folder={str(tmp_path / 'pids')!r})\n"
    )
    (tmp_path / "pids").mkdir()
    kernel = subprocess.Popen([sys.executable, str(program)], env={**os.environ, "TMPDIR": str(tmp_path)})
    until = time.monotonic() + 60
    while len(list((tmp_path / "pids").iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    ranks = [int(path.name) for path in (tmp_path / "pids").iterdir()]
    kernel.kill()
    kernel.wait()
    until = time.monotonic() + 10
    while any(psutil.pid_exists(pid) for pid in ranks) and time.monotonic() < until:
        time.sleep(0.05)
    assert len(ranks) == 2 and not any(psutil.pid_exists(pid) for pid in ranks)
