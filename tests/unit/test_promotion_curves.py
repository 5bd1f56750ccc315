"""Errors of long sums by promotion: as the course's error tables have them, and drawn with their finding."""

import numpy as np
import pytest

from course_lib import views
from course_lib.fp8.promotion import (
    BOTH_SIGNS,
    ONE_SIGN,
    operands,
    promotion_errors,
)


@pytest.fixture(scope="module")
def table():
    return promotion_errors((256, 4096), (None, 512, 128), rows=24)


def one(table, kind, K, every):
    (found,) = (row for row in table if (row.kind, row.K, row.promote_every) == (kind, K, every))
    return found


def test_the_errors_are_those_of_the_courses_tables(table):
    for kind, every, error in (
        (ONE_SIGN, None, 3.4e-2),
        (ONE_SIGN, 512, 2.3e-3),
        (ONE_SIGN, 128, 2.3e-4),
        (BOTH_SIGNS, None, 1.3e-3),
        (BOTH_SIGNS, 512, 3.4e-4),
        (BOTH_SIGNS, 128, 1.3e-4),
    ):
        found = one(table, kind, 4096, every)
        assert found.relative_error == pytest.approx(error, rel=0.15), (kind, every)
        assert found.bfloat16_error == pytest.approx(1.6e-3, rel=0.1)
        if kind == ONE_SIGN:  # all the error is loss
            assert found.mean_error == pytest.approx(-found.relative_error, rel=0.05)


def test_the_figures_are_those_of_the_simulated_product(table):
    from course_lib.fp8.errors import exact, mean_signed_error
    from course_lib.simulators.tensor_core import gemm_e4m3

    A, B = operands(ONE_SIGN, 4096, rows=24)
    reference, _ = exact(A, B)
    product = gemm_e4m3(A, B, 128)
    found = one(table, ONE_SIGN, 4096, 128)
    wanted = np.linalg.norm(product - reference) / np.linalg.norm(reference)
    assert found.relative_error == pytest.approx(wanted, rel=1e-9)
    assert found.mean_error == pytest.approx(mean_signed_error(product, reference), rel=0.05)


def test_the_figure_says_the_finding_at_the_longest_sum_and_every_point(table):
    from course_lib.views.promotion_curves import finding, in_words

    assert finding(table) == (
        "All products ≥ 0: sums of 4,096 are 3.4 % wrong without promotion, 0.023 % with one every 128"
    )
    alt = views.promotion_figure(table).alt
    assert alt == f"{finding(table)}. {in_words(table)}"
    assert "A model's figures, not measured on a GPU." in alt
    assert alt.count("4096: ") == 6 and "Rounding to bfloat16 alone: 0.1" in alt
