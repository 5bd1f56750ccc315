"""Products with block scales through their doors: right for any shape, sentences for what is refused."""

import pytest


def imports():
    global torch, q, fp8_gemm, contiguous, masked, operands, assert_right
    import torch
    from tools.fp8_products import assert_right, operands

    from course_lib.fp8 import quantise as q
    from course_lib.fp8.gemm import fp8_gemm
    from course_lib.fp8.gemm import fp8_gemm_grouped_contiguous as contiguous
    from course_lib.fp8.gemm import fp8_gemm_grouped_masked as masked


def test_any_shape_the_same_to_the_bit_each_time():
    for shape in ((1, 16, 128), (7, 8, 16), (63, 24, 240), (65, 136, 256), (127, 120, 144), (129, 264, 208)):
        given = operands(*shape)
        d = fp8_gemm(*given)
        assert d.dtype == torch.bfloat16 and d.shape == shape[:2] and torch.equal(d, fp8_gemm(*given))
        assert_right(d, *given)
        a, a_scales, b, b_scales = given
        assert torch.equal(d, fp8_gemm(a, q.m_major(a_scales), b, b_scales))  # TMA's order
    given = operands(33, 16, 128)
    room = torch.full((35, 16), torch.nan).bfloat16()
    out = room[1:34]
    assert fp8_gemm(*given, out=out) is out and torch.equal(out, fp8_gemm(*given))
    assert room[0].isnan().all() and room[34].isnan().all()


def test_contiguous_groups():
    groups = torch.tensor([2] * 128 + [-1] * 128 + [0] * 128 + [2] * 40, dtype=torch.int32)
    a, a_scales, b, b_scales = operands(len(groups), 24, 144, groups=3)
    out = torch.full((len(groups), 24), 7.0).bfloat16()
    assert contiguous(a, a_scales, b, b_scales, groups, out=out) is out
    for start in (0, 256, 384):
        rows, group = slice(start, min(start + 128, len(groups))), int(groups[start])
        assert_right(out[rows], a[rows], a_scales[rows], b[group], b_scales[group])
    assert (out[128:256] == 7).all()
    fresh = contiguous(a, a_scales, b, b_scales, groups)
    assert not fresh[128:256].any() and torch.equal(fresh[:128], out[:128])
    none = torch.zeros(0, dtype=torch.int32)
    assert contiguous(*operands(0, 16, 128, groups=2), none).shape == (0, 16)


def test_masked_groups():
    counts = torch.tensor([5, 0, 70, 33], dtype=torch.int32)
    a, a_scales, b, b_scales = operands(70, 16, 272, groups=4, rows_in_groups=True)
    out = torch.full((4, 70, 16), 7.0).bfloat16()
    assert masked(a, a_scales, b, b_scales, counts, 27, out=out) is out
    for group, count in enumerate(counts.tolist()):
        if count:
            given = (a[group, :count], a_scales[group, :count], b[group], b_scales[group])
            assert_right(out[group, :count], *given)
        assert (out[group, count:] == 7).all()
    given = operands(0, 16, 128, groups=2, rows_in_groups=True)
    assert masked(*given, torch.zeros(2, dtype=torch.int32), 0).shape == (2, 0, 16)


# -- doors ---------------------------------------------------------------------------------------------------


def moved(x):
    """Return the same bytes, beginning one byte after a multiple of 16."""
    room = torch.zeros(x.numel() + 32, dtype=torch.uint8)
    start = (-room.data_ptr()) % 16 + 1
    view = room[start : start + x.numel()]
    view.copy_(x.reshape(-1).view(torch.uint8))
    return view.view(x.dtype).reshape(x.shape)


def assert_refused(call, sentence):
    with pytest.raises(ValueError) as raised:
        call()
    assert str(raised.value).startswith(sentence) and str(raised.value).endswith("."), sentence


def test_what_a_product_cannot_take_is_refused():
    a, a_scales, b, b_scales = operands(6, 24, 256)
    given = {"a": a, "a_scales": a_scales, "b": b, "b_scales": b_scales}
    quantise_it = "it must be torch.float8_e4m3fn: quantise it first (fp8.quantise)."
    for name, value, sentence in (
        ("a", a.float(), f"a has dtype torch.float32, but {quantise_it}"),
        ("a", a[:, :120].contiguous(), "a has K = 120, but it must be a multiple of 16 (rows begin at"),
        ("b", b[:, :128].contiguous(), "a has shape (6, 256) and b (24, 128), but both must end in K: b is"),
        ("b", b[:20], "b has N = 20, but it must be a multiple of 8 (rows of D begin at multiples of 16"),
        ("a", moved(a), "a begins 1 bytes after a multiple of 16, which TMA cannot fetch: a.clone"),
        ("a_scales", a_scales[:, :1], "a_scales has shape (6, 1), but for a of shape (6, 256) it must be"),
        ("a", a.to("meta"), "a_scales is on cpu, but a is on meta: move one of them."),
        ("out", torch.zeros(6, 8).bfloat16(), "out has shape (6, 8), but the product has (6, 24)."),
    ):
        assert_refused(lambda name=name, value=value: fp8_gemm(**(given | {name: value})), sentence)


def test_indices_and_counts_that_do_not_fit_are_refused():
    given = operands(256, 8, 128, groups=2)
    indices = torch.tensor([0] * 128 + [1] * 128, dtype=torch.int32)
    nobody = "but b has 2 groups: 0 to 1, or -1 for nobody."
    for wrong, sentence in (
        (indices + 1, f"group_indices reach from 1 to 2, {nobody}"),
        (indices.roll(-8), "group_indices changes at row 120, but it must be the same within every 128 rows"),
    ):
        assert_refused(lambda wrong=wrong: contiguous(*given, wrong), sentence)
    given = operands(9, 8, 128, groups=2, rows_in_groups=True)
    for counts, expected, sentence in (
        ([3, 10], 3, "masked_m reaches from 3 to 10, but a has 9 rows a group."),
        ([3], 3, "masked_m has 1 entries, but it must have 2: one for each group."),
        ([3, 3], -1, "expected_m is -1, but it must be a whole number, 0 or more."),
    ):
        counts = torch.tensor(counts, dtype=torch.int32)
        assert_refused(lambda counts=counts, rows=expected: masked(*given, counts, rows), sentence)
