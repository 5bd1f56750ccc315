"""bfloat16, float16 and float32, number by number: as NumPy and torch store them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.fp8.wide_formats import BFLOAT16, FLOAT16, FLOAT32

SPECIAL = [
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    0.3,
    -1000.1,
    65519.9,
    65520.0,
    3.5e38,
    -1e300,
    1e-40,
    5e-324,
    2.0**-149,
]


def float32_code(x):
    with np.errstate(over="ignore"):
        return int(np.float64(x).astype(np.float32).view(np.uint32))


def float16_code(x):
    with np.errstate(over="ignore"):
        return int(np.float64(x).astype(np.float16).view(np.uint16))


def code(stored):
    return int("".join(stored.bits), 2)


@given(st.one_of(st.floats(allow_nan=False), st.floats(-1e5, 1e5), st.sampled_from(SPECIAL)))
def test_numbers_are_stored_as_numpy_stores_them(x):
    with np.errstate(over="ignore"):
        assert code(FLOAT32.store(x)) == float32_code(x) and FLOAT32.store(x).value == np.float32(x)
        assert code(FLOAT16.store(x)) == float16_code(x) and FLOAT16.store(x).value == np.float16(x)


@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_is_torchs(x):
    stored = BFLOAT16.store(x)
    wanted = torch.tensor(x, dtype=torch.float32).to(torch.bfloat16)
    assert code(stored) == int(wanted.view(torch.uint16)) and stored.value == wanted.item()


@pytest.mark.parametrize("form", [BFLOAT16, FLOAT16, FLOAT32], ids=lambda form: form.name)
def test_nan_and_infinity_have_codes_and_no_next_number(form):
    for x in (math.nan, math.inf):
        stored = form.store(x)
        assert str(stored.value) == str(x) and math.isnan(stored.step)
        assert set(stored.bits[1]) == {"1"} and ("1" in stored.bits[2]) is math.isnan(x)


@given(st.floats(1e-44, 3e38))
def test_the_step_leads_to_the_next_number(x):
    stored = FLOAT32.store(x)
    if stored.value:
        with np.errstate(over="ignore"):
            assert stored.value + stored.step == float(
                np.nextafter(np.float32(stored.value), np.float32(np.inf))
            ) or (code(stored) == 0x7F7FFFFF)
