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


def exponent_of(x, smallest):
    return max(math.frexp(x)[1] - 1, smallest)


def cut(x: Fraction, unit: Fraction) -> Fraction:
    """Toward zero to a multiple of `unit`."""
    return math.trunc(x / unit) * unit


def step_by_hand(a, b, c, core):
    """One element and one step, in exact fractions and plain Python."""
    terms = [
        (Fraction(x) * Fraction(y), exponent_of(x, -6) + exponent_of(y, -6))
        for x, y in zip(a, b, strict=True)
        if x and y
    ]
    if c:
        terms.append((Fraction(c), exponent_of(c, -126)))
    if not terms:
        return 0.0
    unit = Fraction(2) ** (max(exponent for _, exponent in terms) - core.sum_bits)
    total = sum(cut(term, unit) for term, _ in terms)
    if not total:
        return 0.0
    return float(cut(total, Fraction(2) ** (math.frexp(float(total))[1] - 1 - core.result_bits)))


def by_hand(A, B, C, core):
    C = [[float(c) for c in row] for row in C]
    for k in range(0, A.shape[1], core.terms):
        part = slice(k, k + core.terms)
        C = [
            [step_by_hand(a[part].tolist(), b[part].tolist(), c, core) for b, c in zip(B, row, strict=True)]
            for a, row in zip(A, C, strict=True)
        ]
    return np.array(C, np.float32)


def any_codes(shape, seed):
    """Numbers of e4m3 from all codes alike: large and subnormal beside each other, and zeros."""
    rng = np.random.default_rng(seed)
    x = E4M3.decode(rng.integers(0, 256, shape).astype(np.uint8))
    return np.where(np.isnan(x) | (rng.random(shape) < 0.1), 0, x)


@every_core
@looped("seed", range(3))
def test_one_instruction_equals_exact_arithmetic(core, seed):
    rng = np.random.default_rng(seed)
    a, b = any_codes((9, 32), seed), any_codes((7, 32), seed + 100)
    if seed == 1:
        a, b = a * 0, b * 0
    if seed == 2:
        a, b = np.sign(a) * E4M3.smallest, np.sign(b) * E4M3.smallest
    c = (rng.standard_normal((9, 7)) * 2.0 ** rng.integers(-40, 30, (9, 7))).astype(np.float32)
    c[0, 0] = 0
    got = accumulate_e4m3(a, b, c, core)
    assert got.dtype == np.float32 and np.array_equal(got, by_hand(a, b, c, core))


@every_core
def test_a_product_with_a_tail_equals_exact_arithmetic(core):
    A, B = any_codes((5, 200), 4), any_codes((6, 200), 5)
    assert np.array_equal(gemm_e4m3(A, B, core=core), by_hand(A, B, np.zeros((5, 6)), core))


def test_promotion_starts_anew_and_adds_in_float32():
    A, B = any_codes((5, 320), 6), any_codes((6, 320), 7)
    parts = [by_hand(A[:, k : k + 128], B[:, k : k + 128], np.zeros((5, 6)), HOPPER) for k in (0, 128, 256)]
    assert np.array_equal(gemm_e4m3(A, B, promote_every=128), (parts[0] + parts[1]) + parts[2])


@every_core
@looped("seed", range(3))
def test_a_step_taken_apart_has_the_result_of_the_step(core, seed):
    rng = np.random.default_rng(seed)
    count = (core.terms, 5, 1)[seed]
    a, b = any_codes((20, count), seed), any_codes((20, count), seed + 100)
    c = (rng.standard_normal(20) * 2.0 ** rng.integers(-40, 30, 20)).astype(np.float32)
    c[0] = a[1] = 0
    a[2] = np.sign(a[2]) * E4M3.smallest  # subnormal
    for row_a, row_b, old in zip(a, b, c, strict=True):
        step = one_step(row_a, row_b, float(old), core)
        wide = np.zeros((2, 1, 32), np.float32)
        wide[:, 0, :count] = row_a, row_b
        assert step.result == accumulate_e4m3(*wide, [[old]], core)[0, 0]
        products = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(row_a, row_b, strict=True)]
        assert [term.value for term in step.terms] == [*products, Fraction(float(old))]
        assert step.total == sum(term.kept for term in step.terms) and step.exact == sum(
            products, Fraction(float(old))
        )
        for term in step.terms:
            assert abs(term.value) - Fraction(2) ** step.unit < abs(term.kept) <= abs(term.value)
            assert term.kept % Fraction(2) ** step.unit == 0


# -- experiments that find the widths out --------------------------------------------------------------------


def test_ada_adds_sixteen_at_once_so_what_comes_before_a_large_product_survives_in_its_sum():
    """Sixteen products of 4, then one of 448 * 448: a step of 32 cuts each 4, one of 16 keeps their 64."""
    A = np.zeros((1, 32), np.float32)
    A[0, :16], A[0, 16] = 2, 448
    assert gemm_e4m3(A, A, core=HOPPER).item() == 448 * 448
    assert gemm_e4m3(A, A, core=ADA).item() == 448 * 448 + 64
    assert gemm_e4m3(A, A, promote_every=16, core=ADA).item() == 448 * 448 + 64


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


def test_negative_sums_are_cut_toward_zero_too():
    A, B = np.abs(any_codes((8, 4096), 8)), np.abs(any_codes((8, 4096), 9))
    assert np.array_equal(gemm_e4m3(-A, B), -gemm_e4m3(A, B))
    assert (gemm_e4m3(A, B) <= A.astype(np.float64) @ B.T.astype(np.float64)).all()


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
        (NORMAL, 512, None, 5.6e-8, 0.006),
        (NORMAL, 4096, None, 8.8e-7, 0.017),
        (NORMAL, 4096, 128, 8.2e-9, 0.003),
        (NORMAL, 16384, None, 4.7e-6, 0.045),
        (NORMAL, 16384, 128, 8.5e-9, 0.003),
        (ONE_SIGN, 512, None, 2.4e-6, 0.003),
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


def test_promotion_every_128_is_told_from_256_by_sums_of_one_sign():
    A, B = operands(ONE_SIGN, 4096)
    reference, _ = errors.exact(A, B)
    bias = {
        every: errors.mean_signed_error(gemm_e4m3(A, B, every), reference) for every in (None, 512, 256, 128)
    }
    assert bias[None] == pytest.approx(-3.4e-2, rel=0.1) and bias[512] == pytest.approx(-2.3e-3, rel=0.15)
    assert bias[256] < -errors.MOST_BIAS < bias[128] < 0


def test_blackwell_needs_no_promotion():
    A, B = operands(ONE_SIGN, 4096)
    reference, _ = errors.exact(A, B)
    assert -1e-5 < errors.mean_signed_error(gemm_e4m3(A, B, core=BLACKWELL), reference) <= 0


# -- bad input, and time -------------------------------------------------------------------------------------


ONES, NOTHING = np.ones((2, 32)), np.zeros((2, 2))


@looped(
    "call, said",
    [
        (lambda: one_step([1.0, 2.0], [1.0]), "a and b have 2 and 1 numbers, but both must have the same"),
        (lambda: one_step([1.0] * 33, [1.0] * 33), "1 to 32"),
        (lambda: one_step([0.3], [1.0]), "a has 0.3, which is no finite number of e4m3: round first"),
        (lambda: one_step([1.0], [1.0], math.inf), "c is inf, but it must be a finite number"),
        (lambda: accumulate_e4m3(ONES[:, 1:], ONES, NOTHING), "(2, 31), (2, 32), (2, 2), but they"),
        (lambda: accumulate_e4m3(ONES * 0.3, ONES, NOTHING), "a has 0.3, which is no finite number of e4m3"),
        (lambda: gemm_e4m3(ONES, ONES * np.nan), "B has nan, which is no finite number of e4m3"),
        (lambda: gemm_e4m3(ONES, ONES * 449), "B has 449, which is no finite number of e4m3"),
        (lambda: gemm_e4m3(ONES, ONES[:, 1:]), "A and B have shapes (2, 32) and (2, 31)"),
        (lambda: gemm_e4m3(ONES[0], ONES), "must be a matrix of numbers"),
        (lambda: gemm_e4m3(ONES, ONES, promote_every=1.5), "promote_every is 1.5, but"),
        (lambda: gemm_e4m3(ONES, ONES, promote_every=48), "must be a multiple of 32, one step of Hopper"),
    ],
)
def test_what_no_tensor_core_can_be_given_is_refused(call, said):
    with pytest.raises(ValueError) as caught:
        call()
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_small_and_empty():
    for M, N, K in ((0, 3, 32), (3, 0, 32), (2, 3, 0), (1, 1, 1)):
        assert np.array_equal(gemm_e4m3(np.ones((M, K)), np.ones((N, K))), np.full((M, N), K, np.float32))


@pytest.mark.timing
def test_a_tile_with_a_long_k_takes_less_than_half_a_second():
    A, B = operands(NORMAL, 16384)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        gemm_e4m3(A, B)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.5
