"""What the doors start where there is a Hopper: seen without one, by looking at the plans."""

import pytest
import torch

from course_lib.fp8 import gemm, launch, on_hopper, search
from course_lib.fp8.choice import KernelChoice, candidates, candidates_of_groups
from course_lib.fp8.choose import H200
from course_lib.fp8.plans import Pointer
from course_lib.fp8.quantise import SQUARES, is_m_major, quantise
from course_lib.fp8.tensor_maps import TensorMap
from course_lib.fp8.tiles import Tile


@pytest.fixture
def started(monkeypatch, tmp_path):
    """As if every tensor lay on an H200: plans are written down instead of started."""
    plans = []
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path))
    monkeypatch.setattr(launch, "missing", lambda x: None)
    monkeypatch.setattr(launch, "gpu", lambda device: H200)
    monkeypatch.setattr(launch, "launch", lambda plan, device: plans.append(plan))
    monkeypatch.setattr(search, "best", lambda M, N, K, gpu: candidates(M, N, K, gpu)[0])
    return plans


def operands(*shape_of_a, N=264, groups=None, K=208):
    a, a_scales = quantise(torch.randn(*shape_of_a, K))
    b, b_scales = quantise(torch.randn(*([groups] if groups else []), N, K), SQUARES)
    return a, a_scales, b, b_scales


def handed_over(plan):
    found = {one.name: one for one in plan.arguments if isinstance(one, TensorMap | Pointer)}
    return found, [one for one in plan.arguments if isinstance(one, int)]


def test_a_dense_product_is_one_launch_on_the_given_tensors(started):
    a, a_scales, b, b_scales = operands(100)
    out = torch.full((100, 264), torch.nan, dtype=torch.bfloat16)
    assert gemm.fp8_gemm(a, a_scales, b, b_scales, out) is out
    (plan,) = started
    found, sizes = handed_over(plan)
    assert (plan.kernel, sizes) == (candidates(100, 264, 208)[0].kernel, [100, 264, 208])
    assert plan.grid[0] <= H200.sms
    assert [found[name].address for name in ("a", "b", "d", "b_scales")] == [
        x.data_ptr() for x in (a, b, out, b_scales)
    ]


def test_scales_laid_out_for_the_copy_engine_are_taken_as_they_are(started):
    a, a_scales, b, b_scales = operands(100)
    laid_out = torch.empty_strided(a_scales.shape, (1, 100)).copy_(a_scales)
    assert is_m_major(laid_out)
    gemm.fp8_gemm(a, laid_out, b, b_scales)
    gemm.fp8_gemm(a, a_scales, b, b_scales)
    taken, copied = (handed_over(plan)[0]["a_scales"] for plan in started)
    assert taken.address == laid_out.data_ptr() and copied.address != a_scales.data_ptr()
    assert taken.dims == copied.dims == (100, 2)


def test_the_choice_can_be_given(started):
    a, a_scales, b, b_scales = operands(100)
    out = torch.empty((100, 264), dtype=torch.bfloat16)
    on_hopper.dense(a, a_scales, b, b_scales, out, KernelChoice("v6_tuned", Tile(64, 48)))
    assert started[0].constants["BM"] == 64 and started[0].constants["BN"] == 48


def test_contiguous_groups(started):
    a, a_scales, b, b_scales = operands(384, groups=3)
    indices = torch.tensor([2, -1, 0], dtype=torch.int32).repeat_interleave(128)
    gemm.fp8_gemm_grouped_contiguous(a, a_scales, b, b_scales, indices)
    (plan,) = started
    found, sizes = handed_over(plan)
    assert (plan.kernel, plan.constants["MASKED"], sizes) == ("v9_grouped", 0, [3, 384, 264, 208])
    assert found["indices"].address == indices.data_ptr()
    assert found["a"].dims == (208, 384, 1) and found["b"].dims == (208, 3 * 264)
    assert found["a_scales"].dims == (384, 2) and found["d"].dims == (264, 384, 1)


@pytest.mark.parametrize("expected", [5, 64, 10_000])
def test_masked_groups(started, expected):
    a, a_scales, b, b_scales = operands(3, 70, groups=3)
    counts = torch.tensor([70, 0, 3], dtype=torch.int32)
    gemm.fp8_gemm_grouped_masked(a, a_scales, b, b_scales, counts, expected)
    (plan,) = started
    found, sizes = handed_over(plan)
    assert (plan.kernel, plan.constants["MASKED"], sizes) == ("v9_grouped", 1, [3, 70, 264, 208])
    assert found["a"].dims == (208, 70, 3) and found["d"].dims == (264, 70, 3)
    assert found["a_scales"].dims == (72, 3 * 2)
    best = candidates_of_groups(3, min(expected, 70), 264, 208, True)[0]
    assert plan.constants["BN"] == best.tile.BN


def test_what_is_empty_starts_nothing(started):
    for M, N, K in ((0, 8, 16), (3, 0, 16), (3, 8, 0)):
        d = gemm.fp8_gemm(*operands(M, N=N, K=K))
        assert d.shape == (M, N) and not d.any()
    out = torch.full((256, 8), 7.0, dtype=torch.bfloat16)
    indices = torch.tensor([0, -1], dtype=torch.int32).repeat_interleave(128)
    gemm.fp8_gemm_grouped_contiguous(*operands(256, N=8, K=0, groups=1), indices, out)
    assert not out[:128].any() and bool((out[128:] == 7).all())
    assert started == []


def test_blocks_that_stay_are_as_many_as_the_gpu_has_multiprocessors(started):
    a, a_scales, b, b_scales = operands(100)
    out = torch.empty((100, 264), dtype=torch.bfloat16)
    on_hopper.dense(a, a_scales, b, b_scales, out, KernelChoice("v6_tuned", Tile(64, 48)))
    given = operands(384, groups=3)
    indices = torch.zeros(384, dtype=torch.int32)
    tile = KernelChoice("v9_grouped", Tile(64, 16))
    on_hopper.grouped(*given, indices, 128, torch.empty((384, 264), dtype=torch.bfloat16), tile)
    assert [plan.grid for plan in started] == [(H200.sms, 1)] * 2
    assert started[1].constants["BN"] == 16  # the choice that was given


def test_a_search_is_listened_to(started, monkeypatch):
    found = KernelChoice("v6_tuned", Tile(64, 48))
    monkeypatch.setattr(search, "best", lambda M, N, K, gpu: found if (M, N, K) == (100, 264, 208) else None)
    gemm.fp8_gemm(*operands(100))
    assert started[0].constants["BN"] == 48


def test_scales_that_lie_anywhere_are_laid_out_first(started):
    a, a_scales, b, b_scales = operands(100)
    gemm.fp8_gemm(a, a_scales, b, b_scales.T.contiguous().T)
    shifted = torch.empty_strided((101, 2), (1, 104))[1:].copy_(a_scales)  # begins at no multiple of 16 bytes
    assert not is_m_major(shifted)
    gemm.fp8_gemm(a, shifted, b, b_scales)
    assert all(handed_over(plan)[0]["a_scales"].address % 16 == 0 for plan in started)


def test_a_hint_of_no_rows_is_a_hint_of_few(started):
    given = operands(2, 64, groups=2)
    gemm.fp8_gemm_grouped_masked(*given, torch.tensor([1, 2], dtype=torch.int32), 0)
    assert started[0].constants["BN"] == candidates_of_groups(2, 1, 264, 208, True)[0].tile.BN
    many = operands(128, groups=256, N=8, K=16)
    gemm.fp8_gemm_grouped_contiguous(*many, torch.zeros(128, dtype=torch.int32))
    assert started[1].constants["BN"] == candidates_of_groups(256, 128, 8, 16, False)[0].tile.BN
