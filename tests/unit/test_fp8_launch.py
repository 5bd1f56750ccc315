"""Launches without a GPU: a small library stands in for the driver, and looks at what it is given."""

import ctypes
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_lib.fp8 import jit
from course_lib.fp8.tensor_maps import SWIZZLES, TensorMap
from course_lib.fp8.tiles import Tile

CUBIN = b"\x7fELF and more"
FUNCTION = 0x123456789A


def imports():
    global torch, gemm, launch, kinds, plan_for, CannotLaunch, Driver, ONE, MASKED, CONTIGUOUS
    global quantise, SQUARES
    import torch
    from test_fp8_plans import kinds, problems

    from course_lib.fp8 import gemm, launch
    from course_lib.fp8.driver import CannotLaunch, Driver
    from course_lib.fp8.plans import plan_for
    from course_lib.fp8.quantise import SQUARES, quantise

    ONE, MASKED, CONTIGUOUS = problems()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path, source = tmp_path_factory.mktemp("driver") / "fake.so", Path(__file__).with_name("fake_driver.c")
    subprocess.run(
        [shutil.which("cc"), "-shared", "-fPIC", "-Wall", "-Werror", "-o", path, source], check=True
    )
    library = ctypes.CDLL(str(path))
    for name in ("fake_given", "fake_map_word", "fake_launched"):
        getattr(library, name).restype = ctypes.c_uint64
    library.fake_kernel.restype = ctypes.c_char_p
    return library


@pytest.fixture
def own(library):
    """Our side of the driver."""
    launch._no_software.cache_clear()
    yield Driver(library._name)
    library.fake_fail(0), library.fake_version(13000)
    launch._no_software.cache_clear()


def expect(library, plan):
    library.fake_expect("".join(kind[0] for kind in kinds(plan)).encode())


@pytest.mark.needs("c compiler")
def test_a_launch_hands_over_what_the_plan_says(library, own):
    plans = [plan_for(name, ONE) for name in jit.names() if name != "v9_grouped"]
    plans += [plan_for("v9_grouped", MASKED), plan_for("v9_grouped", CONTIGUOUS)]
    large = replace(ONE, rows=70_000, N=2**20, K=2**17)  # sizes keep all their bits
    plans += [plan_for("v6_tuned", ONE, Tile(64, 32)), plan_for("v6_tuned", large)]
    assert {plan.cluster for plan in plans} == {1, 2}
    for plan in plans:
        expect(library, plan)
        function = own.load(CUBIN, plan.kernel, plan.shared_bytes)
        assert function == FUNCTION and library.fake_kernel() == plan.kernel.encode()
        assert library.fake_shared_allowed() == plan.shared_bytes, plan.kernel
        own.launch(function, plan, 0x7F00DEADBEEF)
        *shape, stream, count, kind, x, y, z = (library.fake_launched(i) for i in range(13))
        assert shape == [*plan.grid, 1, plan.threads, 1, 1, plan.shared_bytes] and stream == 0x7F00DEADBEEF
        cluster = (1, 4, plan.cluster, 1, 1) if plan.cluster > 1 else (0,) * 5
        assert (count, kind, x, y, z) == cluster, plan.kernel
        for place, argument in enumerate(plan.arguments):
            wanted = argument if isinstance(argument, int) else argument.address
            assert library.fake_given(place) == wanted, (plan.kernel, place)
        maps = [argument for argument in plan.arguments if isinstance(argument, TensorMap)]
        for place, tensor_map in enumerate(maps):
            words = [library.fake_map_word(place, word) for word in range(16)]
            rank = len(tensor_map.dims)
            swizzle = SWIZZLES[tensor_map.swizzle]
            assert words[:5] == [tensor_map.address, tensor_map.dtype, rank, swizzle, 3]
            assert tuple(words[5 : 5 + rank]) == tensor_map.dims
            assert tuple(words[8 : 8 + rank]) == tensor_map.box
            assert tuple(words[11 : 10 + rank]) == tensor_map.strides


@pytest.mark.needs("c compiler")
def test_what_the_driver_refuses_is_a_sentence(library, own, tmp_path):
    for device in (3, 5):  # a thread without a context gets torch's, which is then not ours to change
        own.make_current(device)
        assert library.fake_context() == 103
    function = own.load(CUBIN, "v0_naive", 0)
    refused = r"refuses the tensor map of a, \(208, 100\) in boxes of \(128, 64\): "
    for status, words in ((1, "CUDA_ERROR_INVALID_VALUE, invalid argument"), (719, "error 719")):
        library.fake_fail(status)
        with pytest.raises(CannotLaunch) as caught:
            own.launch(function, plan_for("v0_naive", ONE), 0)
        assert str(caught.value) == f"NVIDIA's driver refuses cuLaunchKernelEx: {words}."
        with pytest.raises(CannotLaunch, match=refused):
            own.launch(function, plan_for("v1_wgmma", ONE), 0)
    with pytest.raises(CannotLaunch, match=r"^NVIDIA's driver refuses cuModuleLoadData: error 200\.$"):
        own.load(b"nothing", "v0_naive", 0)
    with pytest.raises(CannotLaunch, match=r"cannot be loaded \(.*\): install it\.$"):
        Driver(str(tmp_path / "libcuda.so.1"))


# -- from a plan to the queue, torch's side stood in for --------------------------------------------------


@pytest.mark.needs("c compiler")
def test_what_cannot_run_the_kernels_is_a_sentence_and_torch_computes(library, own, monkeypatch):
    assert launch.missing(torch.zeros(1)) == "The kernels run on a Hopper GPU, and this tensor is on cpu."
    capability, on_gpu = (8, 0), SimpleNamespace(device=torch.device("cuda", 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA A100")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    says = "The kernels are for Hopper (compute capability 9.0), and NVIDIA A100 has 8.0."
    assert launch.missing(on_gpu) == says
    capability = (9, 0)
    monkeypatch.setattr(launch.machine, "missing", lambda what: None)
    monkeypatch.setattr(launch.jit, "compiler_version", lambda: (13, 1))
    monkeypatch.setattr(Driver, "here", lambda: Driver("nowhere.so"))
    assert launch.missing(on_gpu).startswith("NVIDIA's driver cannot be loaded (")
    monkeypatch.setattr(Driver, "here", lambda: own)
    old = "NVIDIA's driver here is for CUDA 12.4, and machine code made by NVRTC 13.1 needs one for CUDA 13: "
    for version, says in ((13000, None), (14020, None), (12040, f"{old}update the driver.")):
        library.fake_version(version)
        launch._no_software.cache_clear()
        assert launch.missing(on_gpu) == says, version
    (a, a_scales), (b, b_scales) = quantise(torch.randn(4, 32)), quantise(torch.randn(8, 32), SQUARES)
    wanted = gemm.fp8_gemm(a, a_scales, b, b_scales)
    monkeypatch.setattr(launch, "no_hopper", lambda x: None)  # as if it lay on one
    with pytest.warns(
        UserWarning, match="needs one for CUDA 13: update the driver. Until then torch"
    ) as said:
        for _ in range(2):
            assert torch.equal(gemm.fp8_gemm(a, a_scales, b, b_scales), wanted)
    assert len(said) == 1 and said[0].filename == __file__


def test_what_takes_too_long_ends_the_process_with_a_sentence():
    text = "import time; from course_lib.fp8 import launch\nwith launch.ends_within(0.2): time.sleep(60)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=50)
    assert done.returncode == 3
    assert done.stderr == "The GPU was not done after 0.2 s, so a kernel may hang: this process ends.\n"


HANGS = """
import pytest, torch
from types import SimpleNamespace
from alone import done, last_words
from course_lib.fp8 import launch
from each import each

pytestmark = pytest.mark.gpu
launch.missing_here = torch.cuda.current_stream = lambda device=None: None
looks = iter([False, False, True])  # done at the third look, and then never
torch.cuda.Event = lambda: SimpleNamespace(record=id, query=lambda: next(looks, False))

@pytest.mark.parametrize("kernel", ["v5"])
@each("N", [16, 64])
def test_hang(kernel, N):
    done(0.1 if N == 64 else 9)

def test_silence():
    said = last_words(["sleep", "60"], ".", 0.2)
    assert said == "Killed: it said nothing for 0.2 s.\\n"
"""


def test_a_gpu_test_that_hangs_says_its_name_and_its_case_and_others_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # each of three processes would load them
    for name in ("alone.py", "conftest.py", "each.py"):
        shutil.copy(Path(__file__).parents[1] / "gpu" / name, tmp_path)
    (tmp_path / "test_fp8_on_gpu.py").write_text(HANGS)
    done = subprocess.run([sys.executable, "-m", "pytest"], cwd=tmp_path, capture_output=True, text=True)
    words = r"::test_hang\[v5\], in a process of its own:.*with N = 64\nThe GPU was not done after 0\.1 s.*"
    assert re.search(words + "1 failed, 1 passed", done.stdout, re.DOTALL), done.stdout + done.stderr
