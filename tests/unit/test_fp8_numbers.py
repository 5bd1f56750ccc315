"""Numbers in eight bits, their scales, and the measures that judge a product."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.fp8 import errors
from course_lib.fp8.formats import BFLOAT16, E4M3, E5M2, FLOAT32


def imports():
    global torch, q
    import torch

    from course_lib.fp8 import quantise as q


def both():
    return (E4M3, torch.float8_e4m3fn), (E5M2, torch.float8_e5m2)


# -- e4m3 and e5m2 -------------------------------------------------------------------------------------------


def test_every_code_has_torchs_value():
    code = np.arange(256, dtype=np.uint8)
    for form, dtype in both():
        wanted = torch.from_numpy(code.copy()).view(dtype).float().numpy()
        assert np.array_equal(form.decode(code), wanted, equal_nan=True), form.name
        assert np.array_equal(np.signbit(form.values), np.signbit(wanted)), form.name
        number = ~np.isnan(form.values)
        assert np.array_equal(form.encode(form.values, saturate=False)[number], code[number]), form.name


def test_numbers_are_cast_as_torch_casts():
    """Every bf16 number, and in float32 the ties between codes and their neighbours.

    torch saturates e4m3 from some version on and makes NaN before; clamped first, all of them agree.
    """
    every_bf16 = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16).float()
    for form, dtype in both():
        numbers = np.unique(form.values[np.isfinite(form.values)])
        ties = ((numbers[1:].astype(np.float64) + numbers[:-1]) / 2).astype(np.float32)
        near = (np.nextafter(ties, np.float32(end)) for end in (np.inf, -np.inf))
        for x in (every_bf16, torch.from_numpy(np.concatenate([numbers, ties, *near]))):
            within = x.clamp(-form.largest, form.largest)
            wanted = within.to(dtype).view(torch.uint8).numpy()
            assert np.array_equal(form.encode(x.numpy()), wanted), form.name
    # just above a tie in float64, a tie in float32: e4m3 has 16 and 18
    assert E4M3.round(17.0 * (1 + 2**-40)) == 18 and E4M3.round(17.0) == 16


def test_the_ends_of_the_range():
    for form, largest, normal, smallest in ((E4M3, 448, 2**-6, 2**-9), (E5M2, 57344, 2**-14, 2**-16)):
        assert (form.largest, form.smallest_normal, form.smallest) == (largest, normal, smallest)
        assert form.round(smallest / 2) == 0 and form.round(smallest / 2 * 1.01) == smallest
        assert form.round(1e30) == largest and form.round(-math.inf) == -largest
        beyond = form.round(1e30, saturate=False)
        assert math.isnan(beyond) if form is E4M3 else beyond == math.inf
        assert math.isnan(form.round(math.nan)) and np.signbit(form.round(-0.0))
    for call, words in (
        (lambda: E4M3.encode("3"), r"x has dtype <U1, but it must hold real numbers\."),
        (lambda: E4M3.decode([0, 256]), "codes reach from 0 to 256, but eight bits hold 0 to 255"),
        (lambda: E4M3.look_at("one"), "x is 'one', but it must be a number"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_a_look_at_one_number():
    look = E4M3.look_at(0.004)
    assert (look.code, look.kind, look.neighbours) == (0x02, "subnormal", (2**-9, 3 * 2**-9))
    assert E5M2.look_at(1e9).neighbours == (49152, math.inf)
    look = E4M3.look_at(0.3)
    assert (look.code, look.bits, look.kind) == (0x2A, ("0", "0101", "010"), "normal")
    assert (look.formula, look.neighbours) == ("+2^-2 * 1.25 = 0.3125", (0.28125, 0.34375))
    assert look.error == pytest.approx(0.0125) and look.relative_error == pytest.approx(0.0125 / 0.3)


# -- bfloat16 and float32 ------------------------------------------------------------------------------------


def code(stored):
    return int("".join(stored.bits), 2)


EDGES = [0.0, -0.0, math.inf, -math.inf, 3.5e38, -1e300, 1e-40, 5e-324, 2.0**-149]


@given(st.one_of(st.floats(allow_nan=False), st.floats(-1e5, 1e5), st.sampled_from(EDGES)))
def test_wide_numbers_are_stored_as_numpy_stores_them(x):
    with np.errstate(over="ignore"):
        single = np.float64(x).astype(np.float32)
    assert code(FLOAT32.store(x)) == int(single.view(np.uint32)) and FLOAT32.store(x).value == single
    half = torch.tensor(single).to(torch.bfloat16)
    stored = BFLOAT16.store(float(single))
    assert code(stored) == int(half.view(torch.uint16)) and stored.value == half.item()
    if math.isfinite(single) and 0 < single < np.finfo(np.float32).max:
        stored = FLOAT32.store(float(single))
        assert stored.value + stored.step == float(np.nextafter(single, np.float32(np.inf)))


# -- scales for blocks ---------------------------------------------------------------------------------------


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def scale_of_each(x, scales, block):
    """Return the scale of every number (M, K)."""
    rows = torch.arange(x.shape[0]) // (block.rows or x.shape[0])
    columns = torch.arange(x.shape[1]) // (block.columns or x.shape[1])
    return scales[rows][:, columns]


def test_numbers_come_back_within_half_a_step():
    for block in (q.WHOLE, q.ROWS, q.ROW_BLOCKS, q.SQUARES):
        for shape in ((1, 1), (3, 130), (200, 300)):
            x = normal(*shape) * torch.logspace(-3, 3, shape[1])  # columns of very different size
            codes, scales = q.quantise(x, block)
            assert codes.dtype == torch.float8_e4m3fn and codes.shape == x.shape
            assert float(codes.float().abs().max()) == 448  # a block fills the range
            back, each = q.dequantise(codes, scales, block), scale_of_each(x, scales, block)
            assert torch.equal(back, codes.float() * each)
            exponent = torch.floor(torch.log2((x / each).abs().clamp(min=2**-6)))
            step = torch.maximum(torch.exp2(exponent) / 8, torch.tensor(2**-9))
            assert ((back - x).abs() <= each * step / 2 * (1 + 1e-5)).all(), (block, shape)


def test_zeros_nan_and_what_makes_no_sense():
    codes, scales = q.quantise(torch.zeros(2, 256))
    assert not codes.float().any() and (scales > 0).all()
    assert q.quantise(torch.zeros(0, 256))[1].shape == (0, 2)
    x = normal(2, 256)
    x[0, 3] = torch.nan
    back = q.dequantise(*q.quantise(x))
    assert back[0, :128].isnan().all() and not back[0, 128:].isnan().any() and not back[1].isnan().any()
    for call, words in (
        (lambda: q.quantise(torch.ones(3)), r"x is a Tensor of shape \(3,\), but it must be a tensor of two"),
        (lambda: q.quantise(torch.ones(2, 2, dtype=torch.int64)), "x has dtype torch.int64"),
        (lambda: q.dequantise(codes, torch.ones(2, 1)), r"scales has shape \(2, 1\), but .* need \(2, 2\)"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


# -- how wrong products are ----------------------------------------------------------------------------------


def test_the_measures_are_their_formulas():
    rng = np.random.default_rng(0)
    r = rng.standard_normal((30, 40))
    d = r + 0.01 * rng.standard_normal(r.shape)
    assert errors.calc_diff(d, r) == pytest.approx(1 - 2 * (d * r).sum() / (d * d + r * r).sum(), rel=1e-9)
    assert errors.calc_diff(r * (1 + 1e-9), r) == pytest.approx(0.5e-18, rel=1e-3)  # without cancellation
    assert errors.calc_diff(r, r) == 0 == errors.calc_diff(0 * r, 0 * r)
    assert errors.calc_diff(-r, r) == pytest.approx(2) and math.isnan(errors.calc_diff([np.nan], [1.0]))
    zero = np.zeros((2, 2))
    assert errors.worst_element(zero, zero, zero) == 0
    assert errors.worst_element(zero + 1e-9, zero, zero) == math.inf
    assert errors.worst_element([[np.nan]], [[1.0]], [[1.0]]) == math.inf
    assert errors.mean_signed_error([0.9, 1.8], [1.0, 2.0]) == pytest.approx(-0.1)
