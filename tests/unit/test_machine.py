"""What the machine is (also on systems this one is not) and what it can do."""

import json
import os
import stat
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pace import slowness

from course_lib.measure import hardware, machine, peaks
from course_lib.measure.hardware import CacheLevel, Gpu
from course_lib.measure.peaks import DISTURBED, Peaks, restore
from course_lib.measure.sizes import in_bytes
from course_lib.measure.store import Store

PEAKS = Peaks(
    flops={"float32": {"one": 200.0, "all": 380.0}, "float64": {"one": 100.0, "all": 190.0}},
    bandwidth={"one": 15.0, "all": 28.0},
    threads=4,
    when="2030-01-01T00:00:00+00:00",
    array_bytes=2**27,
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


def test_macos_is_asked_through_sysctl(monkeypatch):
    answers = {
        "machdep.cpu.brand_string": "Apple M9",
        "hw.cachelinesize": "128",
        "hw.perflevel0.l1dcachesize": "131072",
        "hw.perflevel0.l2cachesize": "16777216",
        "hw.perflevel0.cpusperl2": "4",
        "hw.l1dcachesize": "65536",
    }
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(hardware, "_run", lambda command: answers.get(command[-1], ""))
    assert hardware.cpu_name() == "Apple M9"
    assert hardware.caches() == (
        CacheLevel(1, 131072, 128, None, None),
        CacheLevel(2, 16777216, 128, None, 4),
    )


def test_threads_respect_affinity_and_container_quota(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "_affinity", lambda: set(range(8)))
    group, v1 = "proc/self/cgroup", "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs"
    for files, expected in (
        ({group: "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 2),
        ({group: "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({group: "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({group: "4:cpu,cpuacct:/box\n", f"{v1}_quota_us": "300000", f"{v1}_period_us": "100000"}, 3),
        ({group: "4:cpu,cpuacct:/box\n", f"{v1}_quota_us": "-1", f"{v1}_period_us": "100000"}, 8),
    ):
        assert hardware.threads(write(tmp_path, files)) == expected, files
    monkeypatch.setattr(hardware, "_affinity", lambda: {0, 1, 2, 3})
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    write(tmp_path, {topology.format(n): f"{n % 2},{n % 2 + 2}" for n in range(4)})
    assert hardware.cores(tmp_path) == 2  # two threads of one core count once


def test_the_widest_simd_is_found(monkeypatch):
    for features, expected in [
        ({"sse2"}, ("SSE2", 128)),
        ({"sse2", "avx"}, ("AVX", 256)),
        ({"sse2", "avx", "avx2"}, ("AVX", 256)),  # AVX2 without FMA is not what the kernels need
        ({"sse2", "avx", "avx2", "fma"}, ("AVX2", 256)),
        ({"sse2", "avx", "avx2", "fma", "avx512f", "avx512vl"}, ("AVX-512", 512)),
        (set(), ("scalar", 64)),
    ]:
        monkeypatch.setattr(hardware.platform, "machine", lambda: "x86_64")
        monkeypatch.setattr(hardware, "cpu_features", lambda features=features: frozenset(features))
        assert hardware.simd() == expected, (features, expected)


def test_a_size_is_said_in_the_largest_unit_it_fills():
    sizes = (0, 1, 1023, 1536, 1000 * 2**10, 1023.9 * 2**10, 123.456 * 2**20, 1536 * 2**30, -(2**11))
    words = "0 bytes, 1 byte, 1023 bytes, 1.5 KiB, 1000 KiB, 1024 KiB, 123 MiB, 1536 GiB, -2 KiB"
    assert ", ".join(map(in_bytes, sizes)) == words
    assert in_bytes(123.456 * 2**20, digits=4) == "123.5 MiB"


# -- the GPU -----------------------------------------------------------------------------------------------


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Return a function that puts a pretended nvidia-smi on the PATH."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def install(script):
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return install


posix_only = pytest.mark.skipif(os.name != "posix", reason="the pretended nvidia-smi is a shell script")


@posix_only
def test_the_gpu_that_is_visible_is_described(nvidia_smi, monkeypatch):
    nvidia_smi('echo "NVIDIA H100 80GB HBM3, 81559, 550.54, 9.0"; echo "NVIDIA T4, 15360, 550.54, 7.5"')
    assert hardware.gpu() == Gpu("NVIDIA H100 80GB HBM3", 81559 * 2**20, "550.54", "9.0")
    nvidia_smi('test "$1" = -i && name="number $2" || name="the first"; echo "$name, 1024, 550, 8.0"')
    for visible, name in (("3,1", "number 3"), ("", None), ("-1", None)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert (hardware.gpu() and hardware.gpu().name) == name, visible
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(hardware, "NVIDIA_SMI_TIMEOUT_S", 0.1)
    start = time.perf_counter()
    for script in ("exit 9", "echo 'No devices were found'", "true", "exec sleep 60"):
        nvidia_smi(script)
        assert hardware.gpu() is None, script
    assert time.perf_counter() - start < 10


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
        ("openblas 0.3.31", "Nehalem", "AVX2", True),
        ("openblas 0.3.31", "SkylakeX", "AVX-512", False),
        ("openblas 0.3.31", "Haswell", "AVX2", False),
        ("openblas 0.3.31", "unknown", "AVX-512", False),
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


def test_peaks_are_measured_once_and_remembered(measurements):
    first = machine.peaks()
    assert machine.peaks() == first
    assert len(measurements) == 1
    assert machine.peaks(refresh=True).array_bytes == 2
    assert machine.peaks().array_bytes == 2


def test_disturbed_peaks_are_measured_again_once_per_process(measurements, monkeypatch):
    low = replace(PEAKS, notes=(DISTURBED,), bandwidth={"one": 19.0, "all": 19.0})
    Store("machine").update(lambda values: values.update({machine.key(): low.data()}))
    monkeypatch.setattr(machine, "_measure_peaks", lambda *_: measurements.append(1) or low_again)
    low_again = replace(low, bandwidth={"one": 15.0, "all": 32.0})
    assert machine.peaks().bandwidth == {"one": 19.0, "all": 32.0}  # no repeat can be too fast
    assert machine.peaks().is_disturbed and len(measurements) == 1
    machine._repeated.clear()
    low_again = replace(low_again, notes=())
    assert not machine.peaks().is_disturbed and len(measurements) == 2
    machine._repeated.clear()
    machine.peaks()
    assert len(measurements) == 2


def _broken(change):
    data = json.loads(json.dumps(PEAKS.data()))
    change(data)
    return data


def test_garbage_in_the_store_is_measured_again(measurements):
    for saved in (PEAKS, replace(PEAKS, flops_256=None)):
        assert restore(json.loads(json.dumps(saved.data()))) == saved
    changes = [
        lambda data: data["flops"].pop("float64"),
        lambda data: data["flops"]["float32"].update(one=-1.0),
        lambda data: data["bandwidth"].update(all=float("nan")),
        lambda data: data.update(bandwidth=3),
        lambda data: data.update(when="yesterday"),
        lambda data: data.update(method=1),  # knew no 256-bit peaks
    ]
    for garbage in (None, 17, [], {}, *map(_broken, changes)):
        assert restore(garbage) is None, garbage
    Store("machine").update(lambda values: values.update({machine.key(): {"odd": 1}}))
    machine.peaks()
    assert len(measurements) == 1 and restore(Store("machine").read()[machine.key()]) is not None


def test_peaks_answer_for_threads_and_dtypes():
    import numpy as np

    assert PEAKS.gflops("float32", 1) == 200
    assert PEAKS.gflops(np.float64, 4) == PEAKS.gflops(np.dtype("float64"), 99) == 190
    assert PEAKS.gflops("float64", 3) == 190  # never above all cores together
    assert PEAKS.gbps() == 15 and PEAKS.gbps(2) == 28
    assert PEAKS.gflops_256("float64", 1) == 55 and PEAKS.gflops_256(np.float32, 4) == 210
    assert replace(PEAKS, flops_256=None).gflops_256() is None
    with pytest.raises(ValueError, match="float16"):
        PEAKS.gflops("float16")
    for threads in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="threads is"):
            PEAKS.gbps(threads)


def test_the_card_shows_peaks_once_measured(measurements):
    assert "not measured yet" in str(machine.card())
    assert not measurements
    text = str(machine.card(measure=True))
    assert "200 GFLOP/s on one core, 380 GFLOP/s on all 4" in text
    assert "15.0 GB/s" in text and "STREAM" in text and "a note" in text
    assert "peak float64 with 256-bit vectors" in text and "55.0 GFLOP/s on one core" in text
    assert "24 bytes" in text and "write-allocate" in text
    assert str(machine.card()) == text
    html = machine.card()._repr_html_()
    assert "<table" in html and 'scope="row"' in html and "200 GFLOP/s" in html


class PretendedTime:
    """Clocks that go on only when a pretended kernel works; a second program takes half of the wall time."""

    def __init__(self):
        self.wall = self.cpu = 0.0

    def perf_counter(self):
        return self.wall

    def thread_time(self):
        return self.cpu

    def work(self, seconds):
        self.wall += 2 * seconds
        self.cpu += seconds


@pytest.fixture
def pretended_time(monkeypatch):
    """Let the peaks be measured with pretended clocks, and threads run one after the other from time 0."""
    clock = PretendedTime()

    def in_turn(work, threads):
        results = [[] for _ in range(threads)]
        for thread, own in enumerate(results):
            clock.wall = clock.cpu = 0.0
            work(thread, SimpleNamespace(wait=lambda: None), own)
        return results

    monkeypatch.setattr(peaks, "time", clock)
    monkeypatch.setattr(peaks, "_on_threads", in_turn)
    monkeypatch.setattr(peaks.clocks, "HAS_THREAD_CLOCK", True)
    return clock


def test_the_bandwidth_is_three_arrays_of_eight_bytes_over_the_right_clock(pretended_time, monkeypatch):
    from course_lib.measure import peak_loops

    seen = []

    def triad(a, b, c, scale):
        assert len(a) == len(b) == len(c)
        seen.append(a.__array_interface__["data"][0])
        pretended_time.work(len(a) * 1e-9)  # 1 ns of CPU time per element: 24 bytes

    monkeypatch.setattr(peak_loops, "triad", triad)
    monkeypatch.setattr(peak_loops, "touch", lambda *_: None)
    found, is_disturbed = peaks._measure_bandwidth(8, 2**26)
    assert found["one"] == pytest.approx(24)  # of the thread's own time
    assert found["all"] == pytest.approx(8 * 24 / 2)  # of wall time, in which the threads had half
    assert not is_disturbed
    # all of the memory is used, once by one thread and once by eight, before a piece comes again
    pieces = 2**26 // peaks.TRIAD_PIECE
    assert len(set(seen[:pieces])) == pieces and seen[pieces] == seen[0]


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


@pytest.mark.timing
def test_no_matrix_product_is_faster_than_the_peak():
    import numpy as np

    from course_lib.measure.timing import compare

    A = np.random.default_rng(0).standard_normal((384, 384))
    result = compare({"numpy": np.matmul}, A, A.copy(), budget_s=0.5)
    assert result.row("numpy").gflops < 1.1 * machine.peaks(refresh=True).gflops("float64", 1)
