"""The tensor core's sum: equal to arithmetic with whole numbers, and as wrong as it was measured to be."""

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from tools.looped import looped

from course_lib.fp8 import errors
from course_lib.fp8.formats import E4M3
from course_lib.simulators.tensor_core import (
    ADA,
    BLACKWELL,
    HOPPER,
    HOPPER_FP16,
    accumulate_e4m3,
    gemm_e4m3,
    one_step,
)

CORES = (HOPPER, HOPPER_FP16, ADA, BLACKWELL)
every_core = looped("core", CORES)


def any_codes(shape, seed):
    """Numbers of e4m3 from all codes alike: large and subnormal beside each other, and zeros."""
    rng = np.random.default_rng(seed)
    x = E4M3.decode(rng.integers(0, 256, shape).astype(np.uint8))
    return np.where(np.isnan(x) | (rng.random(shape) < 0.1), 0, x)


def test_promotion_starts_anew_and_adds_in_float32():
    A, B = any_codes((5, 320), 6), any_codes((6, 320), 7)
    parts = [gemm_e4m3(A[:, k : k + 128], B[:, k : k + 128]) for k in (0, 128, 256)]
    assert np.array_equal(gemm_e4m3(A, B, promote_every=128), (parts[0] + parts[1]) + parts[2])


@every_core
@looped("seed", range(3))
def test_an_instruction_has_the_result_of_its_steps_in_exact_arithmetic(core, seed):
    rng = np.random.default_rng(seed)
    count = (core.terms, 5, 1)[seed]
    a, b = any_codes((9, count), seed), any_codes((7, count), seed + 100)
    C = (rng.standard_normal((9, 7)) * 2.0 ** rng.integers(-40, 30, (9, 7))).astype(np.float32)
    C[0] = a[1] = 0
    a[2] = np.sign(a[2]) * E4M3.smallest  # subnormal
    got = accumulate_e4m3(*(np.pad(x, ((0, 0), (0, 32 - count))) for x in (a, b)), C, core)
    assert got.dtype == np.float32
    for (i, j), old in np.ndenumerate(C):
        step = one_step(a[i], b[j], float(old), core)
        assert step.result == got[i, j]
        products = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[j], strict=True)]
        terms = [*products, Fraction(float(old))]
        assert [term.value for term in step.terms] == terms and step.exact == sum(terms)
        assert step.total == sum(term.kept for term in step.terms)
        for term in step.terms:
            assert abs(term.value) - Fraction(2) ** step.unit < abs(term.kept) <= abs(term.value)
            assert term.kept % Fraction(2) ** step.unit == 0


# -- experiments that find the widths out --------------------------------------------------------------------


@looped("core, cleared", [(HOPPER, 10), (ADA, 10), (BLACKWELL, 0), (HOPPER_FP16, 0)])
def test_adding_nothing_clears_the_low_bits_of_the_old_sum(core, cleared):
    """So was Hopper's accumulator found (Zhang et al. 2024, SageAttention2): c without its last ten bits."""
    c = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) * 1e3
    nothing = np.zeros((64, 32))
    wanted = (c.view(np.uint32) >> cleared << cleared).view(np.float32)
    assert np.array_equal(accumulate_e4m3(nothing, nothing, c, core), wanted)


@looped("core, bits", [(HOPPER, 13), (ADA, 13), (BLACKWELL, 23), (HOPPER_FP16, 23)])
def test_one_small_term_vanishes_beside_a_large_one(core, bits):
    """1 + 2^-n for growing n: the last n that still counts is the width below the leading one."""

    def survives(n):
        a, b = np.zeros((1, 32)), np.zeros((1, 32))
        a[0, 0] = b[0, 0] = 256  # 2^16, and beside it 2^(16-n)
        a[0, 1], b[0, 1] = 2.0 ** math.floor((16 - n) / 2), 2.0 ** math.ceil((16 - n) / 2)
        return accumulate_e4m3(a, b, np.zeros((1, 1)), core)[0, 0] > 65536

    assert [n for n in range(1, 26) if survives(n)] == list(range(1, bits + 1))


# -- as wrong as others found it ----------------------------------------------------------------------------

NORMAL, ONE_SIGN = "normal", "one sign"


def operands(kind, K, seed=0):
    """64 rows each, scaled as a whole so that the largest is 448: the data of the course's error tables."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((64, K)), rng.standard_normal((64, K))
    if kind == ONE_SIGN:
        A, B = np.maximum(A, 0), np.abs(B)
    return E4M3.round(A * 448 / np.abs(A).max()), E4M3.round(B * 448 / np.abs(B).max())


def worst_share(got, reference):
    """The largest relative error among elements that are no mere remainder of cancellation."""
    counted = np.abs(reference) > np.sqrt(np.mean(reference**2)) / 10
    return (np.abs(got - reference) / np.abs(reference))[counted].max()


@looped(
    "kind, K, every, diff, worst",
    [
        (NORMAL, 4096, None, 8.8e-7, 0.017),
        (NORMAL, 16384, None, 4.7e-6, 0.045),
        (NORMAL, 16384, 128, 8.5e-9, 0.003),
        (ONE_SIGN, 4096, None, 6.0e-4, 0.039),
        (ONE_SIGN, 4096, 128, 2.6e-8, 0.0003),
        (ONE_SIGN, 16384, None, 8.8e-3, 0.134),
    ],
)
def test_errors_are_those_of_the_table(kind, K, every, diff, worst):
    """The largest relative error of normal data varies: eight seeds gave 0.020 to 0.036 for K = 4096."""
    A, B = operands(kind, K)
    reference, _ = errors.exact(A, B)
    got = gemm_e4m3(A, B, promote_every=every)
    assert errors.calc_diff(got, reference) == pytest.approx(diff, rel=0.35)
    assert worst / 1.5 < worst_share(got, reference) < worst * (2.2 if kind == NORMAL else 1.2)


def test_blackwell_needs_no_promotion():
    A, B = operands(ONE_SIGN, 4096)
    reference, _ = errors.exact(A, B)
    assert -1e-5 < errors.mean_signed_error(gemm_e4m3(A, B, core=BLACKWELL), reference) <= 0


# -- bad input, and time -------------------------------------------------------------------------------------


ONES = np.ones((2, 32))


@looped(
    "call, said",
    [
        (lambda: one_step([1.0, 2.0], [1.0]), "a and b have 2 and 1 numbers, but both must have the same"),
        (lambda: one_step([0.3], [1.0]), "a has 0.3, which is no finite number of e4m3: round first"),
        (lambda: gemm_e4m3(ONES, ONES * np.nan), "B has nan, which is no finite number of e4m3"),
        (lambda: gemm_e4m3(ONES, ONES[:, 1:]), "A and B have shapes (2, 32) and (2, 31)"),
        (lambda: gemm_e4m3(ONES, ONES, promote_every=48), "must be a multiple of 32, one step of Hopper"),
    ],
)
def test_what_no_tensor_core_can_be_given_is_refused(call, said):
    with pytest.raises(ValueError) as caught:
        call()
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.timing
def test_a_tile_with_a_long_k_takes_less_than_half_a_second():
    A, B = operands(NORMAL, 16384)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        gemm_e4m3(A, B)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.5
