"""Lanes compute with Numba's types: the same text compiled by Numba gives the same numbers."""

import math

import numpy as np
import pytest
from numba import cuda, float32, float64, int32, njit, uint8, uint32
from tools.looped import looped

from course_lib.simulators.gpu import trace


def added(a, b):
    return a + b


def subtracted(a, b):
    return a - b


def multiplied(a, b):
    return a * b


def divided(a, b):
    return a / b


def floored(a, b):
    return a // (b + 100)


def remainder(a, b):
    return a % (b + 100)


def with_a_literal(a, b):
    return a * 0.1 + b


def with_a_whole_literal(a, b):
    return a * 3 + b


def with_a_cast(a, b):
    return float32(a) * float32(0.1) + float32(b)


def negated(a, b):
    return -a + +b


def compared(a, b):
    return (a < b) + 2 * (a == b) + 4 * (a >= b)


def chosen(a, b):
    return a if a > b else b


def smaller(a, b):
    return min(a, b) + max(a, 3)


def rooted(a, b):
    return math.sqrt(abs(a)) + math.exp(-abs(b) / 50)


def powered(a, b):
    return a**2 + abs(b) ** 0.5


def to_the_left(a, b):
    return (int32(a) << 3) + (int32(b) >> 1)


def unsigned_to_the_right(a, b):
    return (uint32(abs(a)) - uint32(500)) >> 3


def squared(a, b):
    return a**2 / 3 + b


def in_bits(a, b):
    return (int32(a) & int32(b)) | (int32(a) ^ 5) | ~int32(b)


def cut_off(a, b):
    return int32(a) + uint8(int32(a) + 300) + int(b)


def unsigned(a, b):
    return uint32(abs(a)) * uint32(abs(b)) // uint32(3)


def mixed_signs(a, b):
    return uint32(abs(a)) - int32(abs(b)) * 2


def cubed_beyond(a, b):
    return (uint32(abs(a) + 2500000) ** 3 > 0.5) + (uint32(abs(b)) ** 2 - 7 < 0)


def rounded(a, b):
    return math.floor(a / 7) + math.ceil(b / 7)


def widened(a, b):
    return float64(a) / 3 + b


FUNCTIONS = [
    added,
    subtracted,
    multiplied,
    divided,
    floored,
    remainder,
    with_a_literal,
    with_a_whole_literal,
    with_a_cast,
    negated,
    compared,
    chosen,
    smaller,
    rooted,
    powered,
    to_the_left,
    unsigned_to_the_right,
    squared,
    in_bits,
    cut_off,
    unsigned,
    mixed_signs,
    cubed_beyond,
    rounded,
    widened,
]
PAIRS = (
    (np.float32, np.float32),
    (np.int32, np.int32),
    (np.float32, np.int32),
    (np.float64, np.float64),
    (np.int64, np.int64),
    (np.uint8, np.uint8),
    (np.int64, np.float32),
    (np.float32, np.int16),
    (np.uint8, np.float32),
)


def kernel_of(function):
    device = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = device(a[i], b[i])

    return kernel


@pytest.mark.parametrize(
    "pairs", [PAIRS[:3], pytest.param(PAIRS[3:], marks=pytest.mark.slow)], ids=["some types", "others"]
)
@looped("function", FUNCTIONS)
def test_the_same_text_compiled_by_numba_gives_the_same_numbers(function, pairs):
    random = np.random.default_rng(1)
    kernel, compiled = kernel_of(function), njit(error_model="numpy")(function)
    for one, two in pairs:
        a, b = random.uniform(0, 99, (2, 70))
        if np.dtype(one).kind == "f":
            a -= 50
        a, b = a.astype(one), b.astype(two)
        expected = [float(compiled(x, y)) for x, y in zip(a, b, strict=True)]
        got = np.zeros(70)
        trace(kernel, 3, 32, a, b, got)
        rounding = 1e-15 if function in (rooted, powered) and np.float32 not in (one, two) else 0
        rounding = 2e-7 if function in (rooted, powered) and np.float32 in (one, two) else rounding
        np.testing.assert_allclose(got, expected, rtol=rounding, err_msg=f"{one.__name__}, {two.__name__}")


@cuda.jit
def sum_in_float64(x, out):
    i = cuda.grid(1)
    total = 0.0  # a float64, as in Numba
    for k in range(x.size):
        total += x[k]
    out[i] = total


@cuda.jit
def sum_in_float32(x, out):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(x.size):
        total += x[k]
    out[i] = total


def test_a_literal_makes_a_sum_float64_and_a_cast_does_not():
    x = np.random.default_rng(0).random(1000).astype(np.float32)
    wide, narrow = np.zeros(4), np.zeros(4)
    trace(sum_in_float64, 1, 4, x, wide)
    trace(sum_in_float32, 1, 4, x, narrow)
    assert wide[0] == np.cumsum(x, dtype=np.float64)[-1]
    assert narrow[0] == np.cumsum(x, dtype=np.float32)[-1]
    assert wide[0] != narrow[0]


@cuda.jit
def two_to_the(out):
    i = cuda.grid(1)
    x = 1
    for _ in range(i):
        x = x * 2
    out[i] = x


def test_whole_numbers_are_64_bits_wide_and_wrap():
    out = np.zeros(65, np.int64)
    trace(two_to_the, 1, 65, out)
    assert out[62] == 2**62
    assert out[63] == -(2**63)
    assert out[64] == 0
