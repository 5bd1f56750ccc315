"""What surrounds the GPU kernels, as far as it goes without a GPU: what is missing, operands, tiles."""

import contextlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tools.looped import looped

from course_lib import ladder
from course_lib.circles import cuda_launch, cuda_torch, cuda_tuning
from course_lib.circles.cuda_tuning import CudaTile, fastest
from course_lib.circles.front_door import RungUnavailable
from course_lib.measure import cuda_software, cuda_stream, gpu_timing, machine
from course_lib.measure.hardware import Gpu
from course_lib.measure.store import Store

torch = None  # comes with the first test


def imports():
    global torch
    torch = pytest.importorskip("torch")


GPU = Gpu("NVIDIA H200", 2**37, "580.159.03", "9.0")


# -- what is missing ---------------------------------------------------------------------------------------


@pytest.fixture
def installed(monkeypatch):
    """Return a function that says which packages are there."""

    def say(modules=("numba_cuda", "torch", "cuda.bindings", "cuda.pathfinder")):
        monkeypatch.setattr(cuda_software, "is_installed", lambda module: module in modules)

    say()
    return say


@pytest.fixture
def fake_torch(monkeypatch):
    """Return a function that puts another torch in place of the real one."""

    def become(cuda="13.0", available=True, warning=None):
        def is_available():
            if warning:
                import warnings

                warnings.warn(warning, stacklevel=2)
            return available

        fake = SimpleNamespace(
            version=SimpleNamespace(cuda=cuda),
            __version__="2.99.0",
            cuda=SimpleNamespace(is_available=is_available),
        )
        monkeypatch.setitem(sys.modules, "torch", fake)

    become()
    return become


def is_a_sentence(text):
    return text.endswith(".") and "\n" not in text and len(text) < 260


def test_no_gpu_and_no_driver_are_told_apart(tmp_path):
    assert cuda_software._why_no_gpu(tmp_path).startswith(
        "This needs an NVIDIA GPU, and nvidia-smi finds none"
    )
    device = tmp_path / "sys/bus/pci/devices/1"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x0c0330\n")  # a USB controller of NVIDIA's
    assert "needs an NVIDIA GPU" in cuda_software._why_no_gpu(tmp_path)
    (device / "class").write_text("0x030200\n")
    sentence = cuda_software._why_no_gpu(tmp_path)
    assert sentence.startswith("This needs NVIDIA's driver") and is_a_sentence(sentence)


def test_every_reason_is_a_sentence(installed, fake_torch):
    said = [cuda_software.why_no_cuda(None)]
    installed(modules=("torch",))
    said.append(cuda_software.why_no_cuda(GPU))
    assert "numba-cuda" in said[-1] and ".[cubin]" in said[-1]
    installed(modules=("numba_cuda",))
    said.append(cuda_software.why_no_cuda(GPU))
    assert "pip install torch" in said[-1]
    installed()
    fake_torch(cuda=None, available=False)
    said.append(cuda_software.why_no_cuda(GPU))
    assert "built for CUDA, and 2.99.0 is not" in said[-1]
    fake_torch(available=False, warning="CUDA initialization: no such luck\nmore of it")
    said.append(cuda_software.why_no_cuda(GPU))
    assert said[-1] == (
        "torch cannot use the NVIDIA H200 (driver 580.159.03): CUDA initialization: no such luck."
    )
    assert all(map(is_a_sentence, said)) and len(set(said)) == len(said)


def test_the_registry_asks_the_one_place(monkeypatch):
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need}.")
    assert {entry.missing() for entry in ladder.LADDER if entry.id.startswith("cuda-")} == {"No cuda."}
    one = np.ones((1, 1), np.float32)
    with pytest.raises(RungUnavailable, match=r"'cuda-1d' cannot run here: No cuda\."):
        ladder.rung("cuda-1d").matmul(one, one)
    with pytest.raises(RungUnavailable, match=r"^No cuda\.$"):  # also past the door
        ladder.rung("cuda-1d").module().matmul(one, one)


# -- from operands to a launch -----------------------------------------------------------------------------


@pytest.fixture
def on_cpu(monkeypatch):
    """Let `product` work with torch tensors on the CPU in place of those on a GPU."""
    monkeypatch.setattr(cuda_launch, "_check_gpu", lambda: None)
    monkeypatch.setattr(cuda_launch, "_to_gpu", torch.from_numpy)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(cuda_launch, "is_on_gpu", lambda operand: isinstance(operand, torch.Tensor))


def multiply_into(A, B, C):
    assert A.is_contiguous() and B.is_contiguous() and C.is_contiguous()
    torch.matmul(A, B, out=C)


def test_the_result_is_of_the_kind_of_the_operands(on_cpu):
    A, B = ladder.operands((3, 4, 2), "float32")
    C = cuda_launch.product(multiply_into, A[:, ::-1], B[::-1])
    assert isinstance(C, np.ndarray) and np.allclose(C, A @ B)
    D = cuda_launch.product(multiply_into, torch.from_numpy(A.T.copy()).t(), torch.from_numpy(B))
    assert isinstance(D, torch.Tensor) and np.allclose(D, A @ B)
    for M, K, N in ((0, 4, 2), (3, 0, 2), (3, 4, 0)):  # an empty product starts nothing
        C = cuda_launch.product(None, torch.ones(M, K), torch.ones(K, N))
        assert C.shape == (M, N) and not C.any()


def test_operands_in_two_places_are_refused(on_cpu):
    A, B = ladder.operands((3, 4, 2), "float32")
    with pytest.raises(TypeError, match="A is on the GPU and B is not") as caught:
        cuda_launch.product(multiply_into, torch.from_numpy(A), B)
    assert is_a_sentence(str(caught.value))
    with pytest.raises(TypeError, match=r"B wants a gradient, .* pass B\.detach\(\)"):
        cuda_launch.product(multiply_into, torch.from_numpy(A), torch.from_numpy(B).requires_grad_())


def test_too_little_memory_says_how_much_is_needed_and_free(on_cpu, monkeypatch):
    def full(*arguments, **options):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**20, 2**30))
    A, B = ladder.operands((1024, 512, 2048), "float32")
    with pytest.raises(MemoryError, match="A, B and C need 14 MiB and 1 MiB are free") as caught:
        cuda_launch.product(full, A, B)
    assert is_a_sentence(str(caught.value))


def test_a_grid_that_would_be_too_long_is_started_in_bands(monkeypatch):
    grids = []

    def compute(kernel, grid, block, a, b, c):
        grids.append(grid)
        c[...] = a @ b

    monkeypatch.setattr(cuda_launch, "_launch", compute)
    A, B = ladder.operands((130, 2, 70), "float64")
    for most, wanted in ((65_535, [(2, 5)]), (2, [(2, 2), (2, 2), (2, 1)])):
        monkeypatch.setattr(cuda_launch, "MOST_BLOCKS_DOWN", most)
        grids.clear()
        C = np.full((130, 70), np.nan)
        cuda_launch.start("kernel", (32, 64), 256, A, B, C)
        assert grids == wanted and np.allclose(C, A @ B)


@looped(
    "problem, wanted, words",
    [
        (
            "[701] Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
            cuda_launch.DoesNotFit,
            "A block of tiled does not fit .*LAUNCH_OUT_OF_RESOURCES.*take a smaller tile",
        ),
        ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION: This\nindicates ...", RungUnavailable, "driver is older"),
        ("CUDA_ERROR_OUT_OF_MEMORY: ...", MemoryError, "too little memory left to load tiled"),
    ],
)
def test_an_error_of_the_driver_is_a_sentence(monkeypatch, problem, wanted, words):
    def fails(*arrays):
        raise Exception(problem)

    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(cuda_stream, "on_torchs_stream", lambda *how: fails)
    with pytest.raises(wanted, match=words) as caught:
        cuda_launch._launch(SimpleNamespace(__name__="tiled"), (1, 1), 64)
    assert is_a_sentence(str(caught.value))


def matmul_settings():
    """What torch says of TF32: both of its settings, and what it refuses to tell."""

    cublas, mkldnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    try:
        older = (torch.get_float32_matmul_precision(), cublas.allow_tf32)
    except RuntimeError:
        older = ("refused", "refused")
    return (*older, cublas.fp32_precision, mkldnn.fp32_precision)


@looped(
    "choose",
    [
        lambda: None,
        lambda: torch.set_float32_matmul_precision("medium"),
        lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    ],
)
def test_the_baseline_multiplies_in_float32_whatever_was_chosen(choose, monkeypatch):
    seen = []
    monkeypatch.setattr(torch, "matmul", lambda A, B, out: seen.append(matmul_settings()))
    try:
        choose()
        before = matmul_settings()
        cuda_torch.start(None, None, None)
        assert seen == [
            ("highest", False, "ieee", "ieee")
        ]  # both settings say so: otherwise torch would refuse
        assert matmul_settings() == before
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.fp32_precision = "none"
        torch.backends.mkldnn.matmul.fp32_precision = "none"


# -- which tile --------------------------------------------------------------------------------------------


def nothing(A, B, C, tile=None):
    """In the place of a rung's start."""


TILES = (CudaTile(64, 64, 8, 8), CudaTile(32, 32, 16, 4), CudaTile(64, 32, 16, 8))
A, B, C = np.zeros((100, 50)), np.zeros((50, 700)), np.zeros((100, 700))


@pytest.fixture
def tuner(monkeypatch):
    """A GPU on which the second tile is the fastest; what is measured is noted."""
    measured = []

    def times(rung, tiles, start, A, B, C):
        measured.append((rung, A.shape))
        return {tile: 1.0 if place == 1 else 2.0 for place, tile in enumerate(tiles)}

    monkeypatch.setattr(cuda_tuning, "_known", {})
    monkeypatch.setattr(cuda_tuning, "_times", times)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Test 9")
    return measured


def test_the_fastest_tile_is_found_once_and_kept(tuner, monkeypatch):
    assert fastest("cuda-x", TILES, nothing, A, B, C) == TILES[1]
    assert fastest("cuda-x", TILES, nothing, A[:90], B, C[:90]) == TILES[1]  # the same class
    monkeypatch.setattr(cuda_tuning, "_known", {})  # the next session
    assert fastest("cuda-x", TILES, nothing, A, B, C) == TILES[1]
    assert len(tuner) == 1
    fastest("cuda-x", TILES, nothing, A[:3], B, C[:3])
    fastest("cuda-y", TILES, nothing, A, B, C)
    assert len(tuner) == 3


def test_tiles_that_do_not_fit_are_left_out(monkeypatch):
    def start(A, B, C, tile):
        if tile != TILES[2]:
            raise cuda_launch.DoesNotFit("too large")

    taken = gpu_timing.Taken([3.0, 2.0])
    monkeypatch.setattr(gpu_timing, "samples", lambda functions, rounds: dict.fromkeys(functions, taken))
    assert cuda_tuning._times("cuda-x", TILES, start, A, B, C) == {TILES[2]: 2.0}
    with pytest.raises(RuntimeError, match="None of the 2 tile shapes of 'cuda-x' fits on this GPU"):
        cuda_tuning._times("cuda-x", TILES[:2], start, A, B, C)


@looped("saved", ["64x64", {"tile": {"BM": 1}}, {"tile": {**vars(TILES[1]), "BM": 4096}}])
def test_a_saved_tile_that_is_none_of_the_list_is_measured_anew(tuner, saved):
    key = cuda_tuning._key("cuda-x", TILES, (100, 50, 700), nothing)
    Store("cuda-tiles").update(lambda values: values.update({key: saved}))
    assert fastest("cuda-x", TILES, nothing, A, B, C) == TILES[1]
    assert len(tuner) == 1
