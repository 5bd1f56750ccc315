"""Measures of error that let no fault pass which one of them alone lets pass."""

import math

import numpy as np
import pytest
import torch

from course_lib.fp8 import errors
from course_lib.fp8.quantise import SQUARES, dequantise, quantise
from course_lib.fp8.reference import product


def test_calc_diff_is_the_formula_without_its_cancellation():
    rng = np.random.default_rng(0)
    r = rng.standard_normal((30, 40))
    d = r + 0.01 * rng.standard_normal(r.shape)
    assert errors.calc_diff(d, r) == pytest.approx(1 - 2 * (d * r).sum() / (d * d + r * r).sum(), rel=1e-9)
    assert errors.calc_diff(r * (1 + 1e-9), r) == pytest.approx(
        0.5e-18, rel=1e-3
    )  # the formula itself says 0 or 2e-16
    assert errors.calc_diff(r, r) == 0 == errors.calc_diff(0 * r, 0 * r)
    assert errors.calc_diff(-r, r) == pytest.approx(2)
    assert math.isnan(errors.calc_diff([np.nan], [1.0]))


def test_one_wrong_element_is_seen_by_the_element_only():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((64, 512)), rng.standard_normal((64, 512))
    reference, size = errors.exact(a, b)
    d = reference.copy()
    d[3, 5] += 0.01 * size[3, 5]
    assert errors.calc_diff(d, reference) < errors.LIMIT
    assert errors.worst_element(d, reference, size) > 1 > errors.worst_element(reference, reference, size)


@pytest.fixture(scope="module")
def quantised():
    """Random matrices A (64, 512) and B (256, 512), and what is left of them in e4m3, with scales."""
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randn(rows, 512, generator=generator) for rows in (64, 256))
    return a, b, quantise(a), quantise(b, SQUARES)


def test_quantisation_alone_is_a_noise_that_hides_faults(quantised):
    """Against the product before quantisation DeepGEMM's limit is 1e-3, and the right result has 7e-4."""
    a, b, (a_codes, a_scales), (b_codes, b_scales) = quantised
    before, _ = errors.exact(a, b)
    after, _ = errors.exact(dequantise(a_codes, a_scales), dequantise(b_codes, b_scales, SQUARES))
    right = product(a_codes, a_scales, b_codes, b_scales).float()
    assert errors.calc_diff(right, before) == pytest.approx(7e-4, rel=0.1)
    assert errors.calc_diff(right, after) < errors.LIMIT / 5

    wrong = right.clone()
    wrong[3, 5] += 3 * right.std()
    late = right.clone()
    late[:, 128:144] = product(a_codes, a_scales, b_codes, b_scales[[0, 0]])[:, 128:144]
    for fault in (wrong, late):
        assert errors.calc_diff(fault, before) < 1e-3 and errors.calc_diff(fault, after) > errors.LIMIT


def test_elements_of_zero_size_and_no_numbers():
    zero = np.zeros((2, 2))
    assert errors.worst_element(zero, zero, zero) == 0
    assert errors.worst_element(zero + 1e-9, zero, zero) == math.inf
    assert errors.worst_element([[np.nan]], [[1.0]], [[1.0]]) == math.inf
    assert errors.worst_element(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3))) == 0


def test_the_bias_of_a_sum():
    assert errors.mean_signed_error([0.9, 1.8], [1.0, 2.0]) == pytest.approx(-0.1)
    assert errors.mean_signed_error([0.9, 2.2], [1.0, 2.0]) == pytest.approx(0)
    with pytest.raises(ValueError, match="reference has a 0"):
        errors.mean_signed_error([1.0], [0.0])
