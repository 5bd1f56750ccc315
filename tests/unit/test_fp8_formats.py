"""e4m3 and e5m2 against torch: every code, every bf16 number, and what an eye sees of one number."""

import math

import numpy as np
import pytest
import torch

from course_lib.fp8.formats import E4M3, E5M2

BOTH = pytest.mark.parametrize(
    ("form", "dtype"), [(E4M3, torch.float8_e4m3fn), (E5M2, torch.float8_e5m2)], ids=["e4m3", "e5m2"]
)
ALL_BF16 = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)


def codes(x, dtype):
    return x.to(dtype).view(torch.uint8).numpy()


@BOTH
def test_every_code_has_torchs_value(form, dtype):
    wanted = torch.arange(256, dtype=torch.uint8).view(dtype).float().numpy()
    assert np.array_equal(form.decode(np.arange(256, dtype=np.uint8)), wanted, equal_nan=True)
    assert np.array_equal(np.signbit(form.values), np.signbit(wanted))


@BOTH
def test_every_bf16_number_is_cast_as_torch_casts(form, dtype):
    """torch saturates e4m3 from some version on and makes NaN before; clamped first, all of them agree."""
    x = ALL_BF16.float()
    within = x.clamp(-form.largest, form.largest)
    assert np.array_equal(form.encode(x.numpy()), codes(within, dtype))
    by_torch = codes(x, dtype)
    saturates = int(by_torch[torch.isinf(x).numpy()][0]) == form.largest_code
    assert np.array_equal(form.encode(x.numpy(), saturate=saturates), by_torch)


@BOTH
def test_numbers_between_bf16_ones_are_cast_as_torch_casts(form, dtype):
    """Ties and their neighbours in float32, where bf16 is too coarse: half way between every two codes."""
    numbers = np.unique(form.values[np.isfinite(form.values)])
    ties = ((numbers[1:].astype(np.float64) + numbers[:-1]) / 2).astype(np.float32)
    x = np.concatenate(
        [numbers, ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))]
    )
    assert np.array_equal(form.encode(x), codes(torch.from_numpy(x), dtype))


def test_a_cast_does_not_round_twice():
    """A float64 number just above a tie, which float32 would make the tie."""
    x = 17.0 * (1 + 2**-40)  # e4m3 has 16 and 18
    assert E4M3.round(x) == 18 and E4M3.round(17.0) == 16


@pytest.mark.parametrize(
    ("form", "largest", "normal", "smallest"), [(E4M3, 448, 2**-6, 2**-9), (E5M2, 57344, 2**-14, 2**-16)]
)
def test_the_ends_of_the_range(form, largest, normal, smallest):
    assert (form.largest, form.smallest_normal, form.smallest) == (largest, normal, smallest)
    assert form.round(smallest / 2) == 0 and form.round(smallest / 2 * 1.01) == smallest
    assert form.round(1e30) == largest and form.round(-math.inf) == -largest
    beyond = form.round(1e30, saturate=False)
    assert math.isnan(beyond) if form is E4M3 else beyond == math.inf
    assert math.isnan(form.round(math.nan)) and math.isnan(form.round(math.nan, saturate=False))
    assert np.signbit(form.round(-0.0)) and not np.signbit(form.round(0.0))


@BOTH
def test_encoding_what_was_decoded_gives_the_code(form, dtype):
    code = np.arange(256, dtype=np.uint8)
    number = ~np.isnan(form.values)
    assert np.array_equal(form.encode(form.values, saturate=False)[number], code[number])


def test_shapes_stay_and_whole_numbers_are_welcome():
    assert E4M3.encode(np.arange(6).reshape(2, 3)).shape == (2, 3)
    assert E4M3.encode(3).shape == () and E4M3.encode([]).shape == (0,)
    assert E4M3.decode([0x38, 0xB8]).tolist() == [1, -1]


def test_what_is_no_number_or_no_code_is_refused():
    with pytest.raises(ValueError, match=r"x has dtype <U1, but it must hold real numbers\."):
        E4M3.encode("3")
    with pytest.raises(ValueError, match="x has dtype complex128"):
        E4M3.encode([1j])
    with pytest.raises(ValueError, match="codes reach from 0 to 256, but eight bits hold 0 to 255"):
        E4M3.decode([0, 256])
    with pytest.raises(ValueError, match="codes reach from -1 to 0"):
        E4M3.decode([-1, 0])
    with pytest.raises(ValueError, match="codes has dtype float64"):
        E4M3.decode([1.5])
    with pytest.raises(ValueError, match="x is 'one', but it must be a number"):
        E4M3.look_at("one")


def test_nobody_can_change_the_table():
    with pytest.raises(ValueError, match="read-only"):
        E4M3.values[0] = 1


# -- one number under the glass ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "x", "code", "bits", "kind", "neighbours"),
    [
        (E4M3, 0.3, 0x2A, ("0", "0101", "010"), "normal", (0.28125, 0.34375)),
        (E4M3, -448, 0xFE, ("1", "1111", "110"), "normal", (-math.inf, -416)),
        (E4M3, 0.004, 0x02, ("0", "0000", "010"), "subnormal", (2**-9, 3 * 2**-9)),
        (E4M3, 0, 0x00, ("0", "0000", "000"), "zero", (-(2**-9), 2**-9)),
        (E5M2, 0.3, 0x35, ("0", "01101", "01"), "normal", (0.25, 0.375)),
        (E5M2, 1e9, 0x7B, ("0", "11110", "11"), "normal", (49152, math.inf)),
    ],
)
def test_a_look_at_one_number(form, x, code, bits, kind, neighbours):
    look = form.look_at(x)
    assert (look.code, look.bits, look.kind, look.neighbours) == (code, bits, kind, neighbours)
    assert look.error == look.value - x
    assert look.relative_error == (abs(look.error / x) if x else 0)


def test_the_formula_gives_the_value():
    for form in (E4M3, E5M2):
        for value in form.values[np.isfinite(form.values)]:
            look = form.look_at(float(value))
            said, result = look.formula.split(" = ")
            assert float(result) == pytest.approx(value, rel=1e-5) and look.value == value
            assert eval(said.replace("^", "**").replace("+2", "2", 1)) == pytest.approx(value, rel=1e-5)


def test_what_a_look_says():
    assert str(E4M3.look_at(0.3)) == (
        "0.3 in e4m3: code 0x2a = 0 0101 010 (normal)\n"
        "value +2^-2 * 1.25 = 0.3125\n"
        "neighbours 0.28125 and 0.34375\n"
        "error +0.0125, 4.17 % of the number"
    )
    assert str(E5M2.look_at(math.inf)).endswith("neighbours 49152 and inf")
    nan = E4M3.look_at(math.nan)
    assert (
        nan.kind == "NaN"
        and nan.formula == "NaN"
        and math.isnan(nan.error)
        and all(map(math.isnan, nan.neighbours))
    )
