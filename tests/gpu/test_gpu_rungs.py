"""Every GPU rung on a GPU: right for every shape, nothing copied in vain, a sentence for what cannot be."""

import numpy as np
import pytest
from each import each

from course_lib import ladder
from course_lib.circles import cuda_launch, cuda_tuning
from course_lib.circles.cuda_tuning import CudaTile
from course_lib.commands import record
from course_lib.measure.store import Store

pytestmark = pytest.mark.gpu

RUNGS = [entry for entry in ladder.LADDER if "cuda" in entry.requires]
TILED = ("cuda-1d", "cuda-2d", "cuda-vectorised", "cuda-warptiled")
SHAPES = (
    *((1, 1, 1), (1, 7, 1), (31, 1, 33), (32, 32, 32), (127, 131, 137), (128, 64, 256)),
    (1, 8, 4),  # a single row, for which torch and Numba may disagree on strides
    (129, 20, 132),  # rows of 16 bytes, tiles that stick out
    *((257, 1021, 61), (1000, 513, 257), (1024, 1024, 1024)),
)
EMPTY = ((0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0))
SEED = 6

by_rung = each("entry", RUNGS)


def imports():
    global torch
    import torch


def operands(shape, seed=SEED):
    """Random float32 A and B on the GPU, and their product in float64."""
    M, K, N = shape
    random = torch.Generator("cuda").manual_seed(seed)
    A = torch.randn(M, K, generator=random, device="cuda")
    B = torch.randn(K, N, generator=random, device="cuda")
    return A, B, A.double() @ B.double()


def assert_right(C, A, B, exact):
    """Twice the classical bound for a sum of K products, |C - exact| <= K eps |A||B| (Higham 2002)."""
    assert C.dtype == torch.float32 and C.shape == exact.shape
    bound = 2 * A.shape[1] * 2.0**-23 * (A.abs().double() @ B.abs().double())
    assert bool(((C.double() - exact).abs() <= bound + 1e-37).all())


@by_rung
@each("shape", SHAPES)
def test_every_rung_is_right(entry, shape):
    A, B, exact = operands(shape)
    A_before, B_before = A.clone(), B.clone()
    assert_right(entry.matmul(A, B), A, B, exact)
    assert bool((A_before == A).all() and (B_before == B).all())


@by_rung
@each("shape", EMPTY)
def test_empty_products_are_zeros_on_the_gpu(entry, shape):
    A, B, exact = operands(shape)
    C = entry.matmul(A, B)
    assert C.is_cuda and C.shape == exact.shape and not bool(C.any())


@each("id", TILED)
def test_every_tile_is_right_with_and_without_wide_rows(id):
    module = ladder.rung(id).module()
    for tile in module.TILES:
        for shape in ((200, 36, 300), (201, 37, 301)):
            A, B, exact = operands(shape)
            C = torch.full((shape[0], shape[2]), float("nan"), device="cuda")
            module.start(A, B, C, tile)
            assert_right(C, A, B, exact)


@by_rung
def test_any_layout_is_its_values_and_numpy_arrays_come_back_as_numpy_arrays(entry):
    transposed, B, exact = operands((70, 40, 50))
    assert_right(entry.matmul(transposed.t().contiguous().t(), B), transposed, B, exact)
    A, B = ladder.operands((65, 33, 70), "float32")
    for a, b in ((A, B), (np.asfortranarray(A), B[:, ::-1]), (A[::-1], np.asfortranarray(B))):
        C = entry.matmul(a, b)
        assert isinstance(C, np.ndarray) and C.flags.c_contiguous
        assert np.allclose(C, a.astype(float) @ b.astype(float), atol=1e-4)


@by_rung
def test_tensors_are_read_where_they_are(entry):
    seen = []
    real = entry.module().start

    def watched(A, B, C):
        seen.extend((A.data_ptr(), B.data_ptr(), C.data_ptr()))
        real(A, B, C)

    A, B, exact = operands((128, 64, 96))
    C = cuda_launch.product(watched, A, B)
    assert seen == [A.data_ptr(), B.data_ptr(), C.data_ptr()] and C.is_cuda
    assert_right(C, A, B, exact)


@by_rung
def test_an_offset_that_is_no_multiple_of_sixteen_bytes_is_no_fault(entry):
    A, B, exact = operands((64, 64, 64))
    shifted = torch.empty(64 * 64 + 1, device="cuda")[1:].view(64, 64)
    shifted.copy_(A)
    assert shifted.is_contiguous() and shifted.data_ptr() % 16
    assert_right(entry.matmul(shifted, B), A, B, exact)


@by_rung
def test_numbas_device_arrays_give_numbas_device_arrays(entry):
    from numba import cuda

    A, B = ladder.operands((40, 30, 20), "float32")
    C = entry.matmul(cuda.to_device(A), cuda.to_device(B))
    assert type(C).__name__ == "DeviceNDArray"
    assert np.allclose(C.copy_to_host(), A @ B, atol=1e-4)


@by_rung
def test_work_keeps_its_order_on_torchs_streams(entry):
    A, B, exact = operands((512, 512, 512))
    entry.matmul(A, B)  # compiles, and chooses its tile, which waits for the GPU
    late = torch.zeros_like(A)
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        torch.cuda._sleep(20_000_000)
        late.copy_(A)  # if the product overtook this, it would be of zeros
        C = entry.matmul(late, B)
        torch.cuda.current_stream().synchronize()
    assert_right(C, A, B, exact)


@by_rung
def test_nan_and_inf_stay_in_their_row_and_column(entry):
    A, B, _ = operands((33, 35, 37))
    A[1, 34], B[34, 2] = float("inf"), float("nan")
    C = entry.matmul(A, B)
    expected = A.double() @ B.double()
    assert bool((C.isnan() == expected.isnan()).all() and (C.isinf() == expected.isinf()).all())


def test_more_rows_than_a_grid_has_blocks():
    for id in ("cuda-naive", "cuda-1d"):
        A, B, exact = operands((65_536 * 32 + 5, 3, 2))
        assert_right(ladder.rung(id).matmul(A, B), A, B, exact)


def test_the_baseline_does_not_round_to_tf32():
    torch.set_float32_matmul_precision("high")
    try:
        A, B, exact = operands((512, 512, 512))
        C = ladder.rung("torch").matmul(A, B)
        error = float((C - exact).abs().max() / exact.abs().max())
        assert error < record.WORST_ERROR * 512**0.5  # TF32 leaves fifty times that
        assert torch.get_float32_matmul_precision() == "high"  # the learner's choice is theirs
    finally:
        torch.set_float32_matmul_precision("highest")


# -- what cannot be ----------------------------------------------------------------------------------------


def assert_a_sentence(caught, *words):
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".") and all(word in message for word in words)


@by_rung
def test_what_cannot_be_multiplied_is_a_sentence(entry):
    A, B, _ = operands((3, 4, 5))
    for a, b, error, words in (
        (A.double(), B.double(), TypeError, ("float64", "A.to(torch.float32)")),
        (A.half(), B.half(), TypeError, ("float16",)),
        (A.bfloat16(), B.bfloat16(), TypeError, ("bfloat16",)),
        (B, A, ValueError, ("4 x 5", "3 x 4")),
        (A[0], B, ValueError, ("1-D",)),
        (A, B.cpu().numpy(), TypeError, ("A is on the GPU and B is not",)),
        (A.cpu(), B, TypeError, ("torch.Tensor", "A.cuda()")),
        (A.clone().requires_grad_(), B, TypeError, ("gradient", "A.detach()")),
    ):
        with pytest.raises(error) as caught:
            entry.matmul(a, b)
        assert_a_sentence(caught, *words)
    assert torch.cuda.is_available()  # and the GPU goes on working


def test_too_little_memory_is_said_with_both_figures():
    free, _ = torch.cuda.mem_get_info()
    N = int((free / 4) ** 0.5) + 20_000
    A, B = torch.empty(N, 1, device="cuda"), torch.empty(1, N, device="cuda")
    with pytest.raises(MemoryError) as caught:
        ladder.rung("cuda-2d").matmul(A, B)
    assert_a_sentence(caught, "GiB", "are free")
    A, B, exact = operands((64, 64, 64))
    assert_right(ladder.rung("cuda-2d").matmul(A, B), A, B, exact)


# -- tiles and times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", TILED)
def test_the_tuner_picks_a_tile_of_the_list_and_keeps_it(id, monkeypatch):
    monkeypatch.setattr(cuda_tuning, "_known", {})
    module = ladder.rung(id).module()
    A, B, exact = operands((256, 256, 256))
    assert_right(ladder.rung(id).matmul(A, B), A, B, exact)
    (key, saved), *more = Store("cuda-tiles").read().items()
    assert more == [] and id in key
    assert CudaTile(**saved["tile"]) in module.TILES
    assert set(saved["seconds"]) <= {str(tile) for tile in module.TILES}
    assert all(1e-7 < seconds < 1e-2 for seconds in saved["seconds"].values())
    assert min(saved["seconds"].values()) == saved["seconds"][str(CudaTile(**saved["tile"]))]


def test_time_on_the_gpu_is_that_of_the_work():
    """Eight times the work takes about eight times as long, and waiting for the CPU does not count."""
    from course_lib.measure.gpu_timing import samples

    small, large = (torch.randn(n, n, device="cuda") for n in (2048, 4096))
    taken = samples({"small": lambda: small @ small, "large": lambda: large @ large}, rounds=5)
    assert 5 < taken["large"].median_s / taken["small"].median_s < 12
    assert all(one.call_s and min(one.call_s) > 0 for one in taken.values())


def test_a_recording_can_be_made_and_read(tmp_path):
    from course_lib.__main__ import main
    from course_lib.measure import recordings

    commit = "0" * 40
    options = ["--sizes", "256", "--rounds", "3", "--budget", "5", "--folder", str(tmp_path)]
    assert main(["record", "--gpu", *options, "--commit", commit]) == 0
    recording = recordings.newest(folder=tmp_path)
    assert {row.rung for row in recording.rows} == {entry.id for entry in RUNGS}
    assert recording.commit == commit and recording.gpu.state["sm_mhz"] is not None
