"""The profile of a network counts what ran, and the talk's tables are what the slides say."""

import platform
import subprocess
import sys

import pytest
import torch

from course_lib.speech import profiling
from course_lib.speech.profiling import profile, talk_profile


def two_layers():
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.SiLU(), torch.nn.Linear(64, 8)).eval()


def test_rows_are_of_one_pass():
    rows = {row.name: row for row in profile(two_layers(), torch.randn(10, 32), runs=3)}
    assert rows["aten::addmm"].calls == 2
    assert rows["aten::silu"].calls == 1
    assert rows["aten::addmm"].flops == 2 * 10 * 32 * 64 + 2 * 10 * 64 * 8
    assert rows["aten::silu"].flops == 0
    assert 0 < rows["aten::addmm"].self_us <= rows["aten::addmm"].total_us <= rows["aten::linear"].total_us
    assert rows["aten::linear"].self_us < rows["aten::linear"].total_us / 2  # it only hands on to addmm


def test_most_self_time_first():
    rows = profile(two_layers(), torch.randn(10, 32), runs=2)
    assert [row.self_us for row in rows] == sorted((row.self_us for row in rows), reverse=True)


def test_threads_are_capped_and_given_back():
    seen = []

    def spy(x):
        seen.append(torch.get_num_threads())
        return x + 1

    before = torch.get_num_threads()
    profile(spy, torch.ones(3), runs=2, threads=1)
    assert set(seen) == {1} and torch.get_num_threads() == before


def test_threads_are_given_back_after_a_failure():
    before = torch.get_num_threads()
    with pytest.raises(TypeError):
        profile(two_layers(), "no tensor", threads=1)
    assert torch.get_num_threads() == before


def test_the_heap_is_grown_before_anything_is_measured(monkeypatch):
    order = []
    monkeypatch.setattr(profiling, "_grow_heap", lambda: order.append("heap"))
    profile(lambda: order.append("pass"), runs=1)
    assert order == ["heap", *["pass"] * (profiling.WARM_UPS + 1)]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heap of glibc alone is grown")
def test_on_a_grown_heap_new_tensors_have_pages():
    """Twenty tensors of 8 MB, written and thrown away, would each wait for 2048 pages."""
    program = (
        "import resource, torch; from course_lib.speech.profiling import steady\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "with steady(1):\n"
        "    torch.empty(1 << 21).fill_(1.0)\n"
        "    before = faults()\n"
        "    for _ in range(20): torch.empty(1 << 21).fill_(1.0)\n"
        "    print(faults() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and int(done.stdout) < 100, done.stderr


def test_nothing_is_written_to_stderr():
    program = (
        "import torch; from course_lib.speech.profiling import profile\n"
        "profile(torch.nn.Linear(4, 4), torch.ones(2, 4), runs=1)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == ""


def test_the_talks_tables():
    talk = talk_profile()
    cpu, gpu = ({row.name: row for row in rows} for rows in (talk.cpu, talk.gpu))
    assert cpu["aten::addmm"].calls == gpu["aten::addmm"].calls == 9280
    assert cpu["aten::addmm"].self_us == 2_335_000
    assert sum(row.calls for name, row in cpu.items() if "conv" in name) == 3340 + 244
    on_gpu = gpu["aten::addmm"].self_us + gpu["aten::addmm"].device_us
    assert cpu["aten::addmm"].self_us / on_gpu == pytest.approx(7.90, abs=0.005)
    assert "not measured here" in talk.source
