"""Launches without a GPU: a small library stands in for the driver, and looks at what it is given."""

import contextlib
import ctypes
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from test_fp8_plans import CONTIGUOUS, DENSE, MASKED, ONE, kinds

from course_lib.fp8 import driver, jit, launch
from course_lib.fp8.choose import H100, H200, Hopper
from course_lib.fp8.driver import CannotLaunch, Driver
from course_lib.fp8.plans import Pointer, plan_for
from course_lib.fp8.tensor_maps import SWIZZLES, TensorMap
from course_lib.fp8.tiles import Tile

SOURCE = Path(__file__).with_name("fake_driver.c")
CC = shutil.which("cc")
CUBIN = b"\x7fELF and more"
FUNCTION = 0x123456789A


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if CC is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("driver") / "fake.so"
    subprocess.run([CC, "-shared", "-fPIC", "-Wall", "-Werror", "-o", path, SOURCE], check=True)
    found = ctypes.CDLL(str(path))
    for name in ("fake_given", "fake_map_word", "fake_launched"):
        getattr(found, name).restype = ctypes.c_uint64
    found.fake_kernel.restype = ctypes.c_char_p
    return found


@pytest.fixture
def fake(library):
    yield library, Driver(library._name)
    library.fake_fail(0)


def expect(library, plan):
    library.fake_expect("".join(kind[0] for kind in kinds(plan)).encode())


PLANS = [plan_for(name, ONE) for name in DENSE] + [
    plan_for("v9_grouped", MASKED),
    plan_for("v9_grouped", CONTIGUOUS),
    plan_for("v6_tuned", ONE, Tile(64, 32)),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.kernel)
def test_a_launch_hands_over_what_the_plan_says(fake, plan):
    library, own = fake
    expect(library, plan)
    function = own.load(CUBIN, plan.kernel, plan.shared_bytes)
    assert function == FUNCTION and library.fake_kernel() == plan.kernel.encode()
    assert library.fake_shared_allowed() == plan.shared_bytes
    own.launch(function, plan, 0x7F00DEADBEEF)
    *shape, stream, count, kind, x, y, z = (library.fake_launched(i) for i in range(13))
    assert shape == [*plan.grid, 1, plan.threads, 1, 1, plan.shared_bytes] and stream == 0x7F00DEADBEEF
    assert (count, kind, x, y, z) == ((1, 4, plan.cluster, 1, 1) if plan.cluster > 1 else (0,) * 5)
    for place, argument in enumerate(plan.arguments):
        wanted = argument.address if isinstance(argument, TensorMap | Pointer) else argument
        assert library.fake_given(place) == wanted


def test_clusters_are_among_what_is_launched():
    assert {plan.cluster for plan in PLANS} == {1, 2}


def test_a_tensor_map_is_encoded_at_a_multiple_of_64_with_all_its_numbers(fake):
    library, own = fake
    plan = plan_for("v9_grouped", MASKED)
    expect(library, plan)
    own.launch(own.load(CUBIN, plan.kernel, plan.shared_bytes), plan, 0)
    maps = [one for one in plan.arguments if isinstance(one, TensorMap)]
    assert {len(one.dims) for one in maps} == {2, 3}
    for place, one in enumerate(maps):
        words = [library.fake_map_word(place, word) for word in range(16)]
        rank = len(one.dims)
        assert words[:5] == [one.address, one.dtype, rank, SWIZZLES[one.swizzle], 3]
        assert tuple(words[5 : 5 + rank]) == one.dims and tuple(words[8 : 8 + rank]) == one.box
        assert tuple(words[11 : 10 + rank]) == one.strides


def test_a_map_is_encoded_once(fake):
    library, own = fake
    plan = plan_for("v6_tuned", ONE)
    expect(library, plan)
    function = own.load(CUBIN, plan.kernel, plan.shared_bytes)
    own.launch(function, plan, 0)
    before = own.encoded.cache_info().misses
    library.fake_expect(b"")
    own.launch(function, plan_for("v6_tuned", ONE), 0)
    assert own.encoded.cache_info().misses == before


def test_a_thread_without_a_context_gets_torchs(fake):
    library, own = fake
    own.make_current(3)
    assert library.fake_context() == 103
    own.make_current(5)
    assert library.fake_context() == 103  # it has one: torch's, which is not ours to change


@pytest.mark.parametrize(
    ("status", "words"),
    [(1, "CUDA_ERROR_INVALID_VALUE, invalid argument"), (719, "error 719")],
)
def test_what_the_driver_refuses_is_a_sentence(fake, status, words):
    library, own = fake
    function = own.load(CUBIN, "v0_naive", 0)
    library.fake_fail(status)
    with pytest.raises(CannotLaunch) as caught:
        own.launch(function, plan_for("v0_naive", ONE), 0)
    assert str(caught.value) == f"NVIDIA's driver refuses cuLaunchKernelEx: {words}."
    with pytest.raises(
        CannotLaunch, match=r"refuses the tensor map of a, \(208, 100\) in boxes of \(128, 64\): "
    ):
        own.launch(function, plan_for("v1_wgmma", ONE), 0)


def test_what_is_no_machine_code_is_a_sentence(fake):
    with pytest.raises(CannotLaunch, match=r"^NVIDIA's driver refuses cuModuleLoadData: error 200\.$"):
        fake[1].load(b"nothing", "v0_naive", 0)


def test_no_driver_is_a_sentence(tmp_path):
    with pytest.raises(CannotLaunch, match=r"cannot be loaded \(.*\): install it\.$"):
        Driver(str(tmp_path / "libcuda.so.1"))


def test_the_structs_are_as_long_as_the_drivers():
    assert ctypes.sizeof(driver._Config) == 56 and ctypes.sizeof(driver._Attribute) == 72
    assert (driver._Config.stream.offset, driver._Config.attributes.offset) == (32, 40)
    assert driver._Attribute.value.offset == 8


# -- from a plan to the queue, torch's side stood in for --------------------------------------------------


class Stream:
    cuda_stream = 77


@pytest.fixture
def pretend(library, monkeypatch, tmp_path):
    """As if torch had a Hopper, whose stream is 77."""
    own = Driver(library._name)
    monkeypatch.setenv(jit.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(driver.Driver, "here", staticmethod(lambda: own))
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: Stream)
    launch._loaded.cache_clear()
    yield library
    launch._loaded.cache_clear()


@pytest.mark.skipif(bool(jit.machine.missing("nvrtc")), reason=str(jit.machine.missing("nvrtc")))
def test_a_kernel_is_compiled_and_loaded_once_for_all_its_launches(pretend):
    plan = plan_for("v1_wgmma", ONE)
    expect(pretend, plan)
    before = pretend.fake_loads()
    for _ in range(3):
        launch.launch(plan, torch.device("cuda", 0))
    assert pretend.fake_loads() == before + 1
    assert pretend.fake_launched(7) == Stream.cuda_stream
    launch.launch(plan_for("v1_wgmma", ONE, Tile(64, 64)), torch.device("cuda", 0))
    assert pretend.fake_loads() == before + 2  # other constants, other code
    launch.launch(plan, torch.device("cuda", 0), change=lambda cubin: cubin)
    assert pretend.fake_loads() == before + 3
    launch.launch(plan, torch.device("cuda", 1))
    assert pretend.fake_loads() == before + 4  # code is loaded into a device's context


def test_a_tensor_elsewhere_cannot_run_the_kernels(monkeypatch):
    assert launch.missing(torch.zeros(1)) == "The kernels run on a Hopper GPU, and this tensor is on cpu."

    class OnGpu:
        device = torch.device("cuda", 0)

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA A100")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert launch.missing(OnGpu) == (
        "The kernels are for Hopper (compute capability 9.0), and NVIDIA A100 has 8.0."
    )
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert launch.missing(OnGpu) == jit.machine.missing("nvrtc")


@pytest.mark.parametrize("ends", [True, False])
def test_waiting_has_an_end(monkeypatch, ends):
    class Event:
        asked = 0

        def record(self, stream):
            assert stream is Stream

        def query(self):
            Event.asked += 1
            return ends and Event.asked > 3

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: Stream)
    if ends:
        launch.finish(torch.device("cuda", 0), 60)
        assert Event.asked == 4
    else:
        with pytest.raises(
            launch.Hangs, match=r"not done after 0\.05 s, so a kernel may hang: end this process"
        ):
            launch.finish(torch.device("cuda", 0), 0.05)


def test_sizes_keep_all_their_bits(fake):
    library, own = fake
    plan = plan_for("v6_tuned", replace(ONE, rows=70_000, N=2**20, K=2**17, padded_rows=70_000))
    expect(library, plan)
    own.launch(own.load(CUBIN, plan.kernel, plan.shared_bytes), plan, 0)
    sizes = [library.fake_given(i) for i, one in enumerate(plan.arguments) if isinstance(one, int)]
    assert sizes == [70_000, 2**20, 2**17]


@pytest.mark.parametrize(
    ("name", "known"), [("NVIDIA H200", H200), ("NVIDIA GH200 480GB", H100), ("NVIDIA H100 PCIe", H100)]
)
def test_the_model_gets_the_gpu_that_there_is(monkeypatch, name, known):
    properties = SimpleNamespace(name=name, multi_processor_count=114)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    launch.gpu.cache_clear()
    try:
        found = launch.gpu(torch.device("cuda", 0))
    finally:
        launch.gpu.cache_clear()
    assert found == Hopper(name, 114, known.bytes_per_s, known.clock_hz)


@pytest.mark.parametrize(("takes", "code"), [(0.0, 0), (60.0, 3)])
def test_what_takes_too_long_ends_the_process_with_a_sentence(takes, code):
    text = (
        "import time; from course_lib.fp8 import launch\n"
        f"with launch.ends_within(0.2): time.sleep({takes})\nprint('through')"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=50)
    assert done.returncode == code and ("through" in done.stdout) == (code == 0)
    said = "The GPU was not done after 0.2 s, so a kernel may hang: this process ends.\n"
    assert done.stderr == (said if code else "")
