"""What the machine is (also on systems this one is not) and what it can do."""

import json
import os
import sys
import time
from dataclasses import replace

import pytest
from pace import slowness

from course_lib.measure import hardware, machine
from course_lib.measure.hardware import CacheLevel, Gpu
from course_lib.measure.peaks import Peaks, restore
from course_lib.measure.store import Store

PEAKS = Peaks(
    flops={"float32": {"one": 200.0, "all": 380.0}, "float64": {"one": 100.0, "all": 190.0}},
    bandwidth={"one": 15.0, "all": 28.0},
    threads=4,
    when="2030-01-01T00:00:00+00:00",
    array_bytes=2**27,
    chain=12.5,
    ghz=3.1,
    reads={"L1": 400.0, "L2": 120.0, "L3": 60.0, "memory": 24.0},
    notes=("a note",),
    flops_256={"float32": {"one": 110.0, "all": 210.0}, "float64": {"one": 55.0, "all": 105.0}},
)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def fake_machine(monkeypatch):
    """Return a function that makes describe() say something else."""
    real = machine.describe()

    def become(**changes):
        pretended = replace(real, **changes)
        monkeypatch.setattr(machine, "describe", lambda: pretended)

    return become


# -- what it is --------------------------------------------------------------------------------------------


def test_caches_are_read_with_ways_and_sharing(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "_affinity", lambda: {2, 3})
    monkeypatch.setattr(sys, "platform", "linux")
    names = ("level", "type", "size", "coherency_line_size", "ways_of_associativity", "shared_cpu_list")
    caches = {
        0: ("1", "Data", "48K", "64", "12", "2-3"),
        1: ("1", "Instruction", "32K"),
        2: ("two", "Unified", "what"),
        3: ("3", "Unified", "32M", "64", "", "0-7,16-23"),
    }
    for index, values in caches.items():
        folder = f"sys/devices/system/cpu/cpu2/cache/index{index}"
        write(tmp_path, {f"{folder}/{name}": value for name, value in zip(names, values, strict=False)})
    assert hardware.caches(tmp_path) == (
        CacheLevel(1, 48 * 1024, 64, 12, 2),
        CacheLevel(3, 32 * 2**20, 64, None, 16),
    )


def test_threads_respect_affinity_and_container_quota(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "_affinity", lambda: set(range(8)))
    group = "proc/self/cgroup"
    for files, expected in (
        ({group: "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 2),
        ({group: "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
    ):
        assert hardware.threads(write(tmp_path, files)) == expected, files
    monkeypatch.setattr(hardware, "_affinity", lambda: {0, 1, 2, 3})
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    write(tmp_path, {topology.format(n): f"{n % 2},{n % 2 + 2}" for n in range(4)})
    assert hardware.cores(tmp_path) == 2  # two threads of one core count once


# -- the GPU -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="the pretended nvidia-smi is a shell script")
def test_the_gpu_that_is_visible_is_described(tmp_path, monkeypatch):
    tool, h100 = tmp_path / "nvidia-smi", Gpu("NVIDIA H100 80GB HBM3", 81559 * 2**20, "550.54", "9.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(hardware, "NVIDIA_SMI_TIMEOUT_S", 0.5)
    for visible, script, found in (
        (
            None,
            'echo "NVIDIA H100 80GB HBM3, 81559, 550.54, 9.0"; echo "T4, 15360, 550, 7.5"',
            h100,
        ),
        ("3,1", 'echo "number $2, 1024, 550, 8.0"', Gpu("number 3", 2**30, "550", "8.0")),
        ("", 'echo "there is one, 1024, 550, 8.0"', None),
        (None, "echo 'No devices were found'", None),
        (None, "exec sleep 60", None),
    ):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        assert hardware.gpu() == found, script


# -- what is missing, and the BLAS -------------------------------------------------------------------------


def test_missing_says_why_in_one_sentence(fake_machine, monkeypatch):
    fake_machine(gpu=None)
    assert machine.missing("cuda").endswith(".") and "\n" not in machine.missing("cuda")
    assert machine.missing("numba") is None and machine.missing("torch") is None
    with pytest.raises(ValueError, match=r"'quantum' is no known requirement; known are .*cuda"):
        machine.missing("quantum")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install torch" in machine.missing("torch")


def test_a_blas_behind_its_cpu_is_named(fake_machine):
    for blas, architecture, simd, is_behind in [
        ("openblas 0.3.31", "Haswell", "AVX-512", True),
        ("openblas 0.3.31", "SkylakeX", "AVX-512", False),
        ("openblas 0.3.31", "Haswell", "AVX2", False),
        ("mkl 2024.1", "unknown", "AVX-512", False),
    ]:
        fake_machine(blas=blas, blas_architecture=architecture, simd=simd)
        sentence = machine.blas_is_behind()
        assert (sentence is not None) == is_behind, blas
        if is_behind:
            assert architecture in sentence and simd in sentence and "OPENBLAS_CORETYPE=" in sentence
            assert sentence in str(machine.card())


# -- the peaks ---------------------------------------------------------------------------------------------


@pytest.fixture
def measurements(monkeypatch):
    """Count the measurements of the peaks, which cost seconds, and pretend their result."""
    count = []

    def measure(*_):
        count.append(1)
        return replace(PEAKS, array_bytes=len(count))

    monkeypatch.setattr(machine, "_measure_peaks", measure)
    machine._repeated.clear()
    return count


def test_garbage_in_the_store_is_measured_again_and_what_is_sound_is_not(measurements):
    sound = json.loads(json.dumps(PEAKS.data()))
    assert restore(sound) == PEAKS
    for number, garbage in enumerate(
        (None, [], sound | {"bandwidth": {"one": 1}}, sound | {"when": "now"}), 1
    ):
        Store("machine").update(lambda values, bad=garbage: values.update({machine.key(): bad}))
        assert machine.peaks() == machine.peaks() and len(measurements) == number, garbage
    assert machine.peaks(refresh=True).array_bytes == 5 == machine.peaks().array_bytes


def test_the_card_shows_peaks_once_measured(measurements):
    assert "not measured yet" in str(machine.card())
    assert not measurements
    text = str(machine.card(measure=True))
    for words in ("200 GFLOP/s on one core, 380 GFLOP/s on all 4", "15.0 GB/s", "STREAM", "a note",
                  "peak float64 with 256-bit vectors", "24 bytes", "write-allocate",
                  "3.10 GHz under vectors: 64 float32 FLOP", "L1 400 GB/s, L2 120 GB/s"):  # fmt: skip
        assert words in text and words in machine.card()._repr_html_()
    assert str(machine.card()) == text
    # 100 GFLOP/s at 3.1 GHz are 32.3 of 32; 8 times a chain's; 100e9 FLOP need 400e9 bytes
    assert PEAKS.per_cycle("float64", 2) == 64 and PEAKS.in_flight == 8 and PEAKS.loads == 1


def test_the_register_loop_does_the_operations_that_are_counted():
    """However often LLVM unrolls it: twice for some CPUs."""
    from course_lib.circles.simd import BITS  # narrower than the CPU's where LLVM is told of an older one
    from course_lib.measure.assembly import inspect
    from course_lib.measure.peak_loops import UNROLL, fma_loop

    here = machine.describe()
    chains = 12
    for dtype, bits in (("float32", 32), ("float64", 64)):
        for fused in (True, False) if here.simd in ("AVX2", "AVX-512", "NEON") else (False,):
            case = (dtype, fused)
            run, flops_per_turn = fma_loop(dtype, BITS, chains, fused)
            assert flops_per_turn == 2 * chains * UNROLL * (BITS // bits), case
            hot = inspect(run).hot
            assert hot.vector_bits == BITS and hot.n_scalar == 0, case
            in_code = BITS // bits * (2 * hot.n_fma + hot.n_mul + hot.n_add)
            assert in_code and in_code % flops_per_turn == 0, case
            assert (hot.n_fma > 0) == fused, case
            assert hot.n_loads == hot.n_stores == 0, case  # everything stays in registers
            # v * 1 + 1 counts its own steps: none is left out, whatever a turn of the machine's loop is
            for turns in (1, 2, 3, 1001):
                starts = chains * (chains - 1) // 2
                assert run(turns, 1.0, 1.0) == starts + chains * UNROLL * turns, (case, turns)


@pytest.mark.timing
def test_peaks_are_measured_in_a_few_seconds_and_make_sense():
    start = time.perf_counter()
    found = machine.peaks(refresh=True)
    assert time.perf_counter() - start < 8 * slowness()
    single, double = found.flops["float32"], found.flops["float64"]
    # float32 has twice as many lanes in the same registers
    assert 1.6 < single["one"] / double["one"] < 2.5
    # SIMD and FMA: any CPU of the last ten years does more than one operation per nanosecond
    assert double["one"] > 4
    for values in (single, double, found.bandwidth):
        assert values["one"] <= values["all"] <= 1.3 * found.threads * values["one"]
    assert 1 < found.bandwidth["one"] < 1000
    # an FMA takes 3 to 6 cycles and begins at 1 to 4 ports; no CPU loads more than twice as often
    assert 2.5 < found.in_flight < 26 and 0.2 < found.loads < 2.3 and 0.5 < found.ghz < 7
    assert found.per_cycle() == pytest.approx(found.flops["float64"]["one"] / found.ghz, rel=0.1)
    reads = list(found.reads.values())
    assert reads[0] > reads[-1] and found.reads["memory"] < 1.5 * found.bandwidth["one"]


@pytest.mark.timing
def test_no_matrix_product_is_faster_than_the_peak():
    import numpy as np

    from course_lib.measure.timing import compare

    A = np.random.default_rng(0).standard_normal((384, 384))
    result = compare({"numpy": np.matmul}, A, A.copy(), budget_s=0.5)
    assert result.row("numpy").gflops < 1.1 * machine.peaks(refresh=True).gflops("float64", 1)
