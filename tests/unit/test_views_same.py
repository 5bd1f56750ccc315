"""`same`: silent about nothing, and the most telling fault first."""

import numpy as np
import pytest

from course_lib.views import same


def test_says_how_close_they_are(capsys):
    same(np.array([1.0, 2.0, 4.0 + 1e-15]), np.array([1.0, 2.0, 4.0]))
    assert capsys.readouterr().out == "same: max error 2.2e-16\n"


def test_a_coarser_dtype_is_allowed_its_own_rounding_and_named(capsys):
    exact = np.linspace(1, 2, 50)
    same(exact.astype(np.float32), exact)
    assert "C is float32 and expected is float64" in capsys.readouterr().out


@pytest.mark.parametrize("shape", [(0,), (0, 3), ()])
def test_empty_and_scalar_results_compare(shape, capsys):
    same(np.ones(shape), np.ones(shape))
    assert capsys.readouterr().out.startswith("same: max error 0")


def test_shapes_are_compared_first_and_a_transpose_is_recognised():
    with pytest.raises(AssertionError, match=r"shape \(2, 3\), but \(3, 2\).*transpose"):
        same(np.full((2, 3), np.nan), np.ones((3, 2)))


def test_a_column_is_not_broadcast_against_a_matrix():
    with pytest.raises(AssertionError, match=r"shape \(3, 1\), but \(3, 3\)"):
        same(np.ones((3, 1)), np.ones((3, 3)))


def test_the_first_five_differences_are_listed_with_their_indices():
    expected = np.arange(1.0, 13.0).reshape(3, 4)
    wrong = expected.copy()
    wrong[1:] += 1
    with pytest.raises(AssertionError) as caught:
        same(wrong, expected)
    lines = str(caught.value).splitlines()
    assert "8 of 12 entries" in lines[0]
    assert lines[1] == "  [1, 0]  yours 6.0  expected 5.0"
    assert lines[5] == "  [2, 0]  yours 10.0  expected 9.0"
    assert lines[6] == "  … and 3 more"


def test_nan_and_inf_in_the_wrong_place_are_named_apart():
    expected = np.array([1.0, 2.0, 3.0, np.inf])
    with pytest.raises(AssertionError, match="NaN at 1 of 4 entries and inf at 1 of 4 entries"):
        same(np.array([np.nan, 2.0, -np.inf, np.inf]), expected)
    with pytest.raises(AssertionError, match="finite numbers where NaN or inf is expected"):
        same(np.array([1.0, 2.0, 3.0, 4.0]), expected)


def test_nan_and_inf_in_the_same_places_are_the_same(capsys):
    values = np.array([np.nan, np.inf, -np.inf, 1.0])
    same(values, values.copy())
    assert "max error 0" in capsys.readouterr().out


def test_an_error_hidden_beside_nan_is_still_found():
    with pytest.raises(AssertionError, match=r"1 of 2 entries"):
        same(np.array([np.nan, 1.1]), np.array([np.nan, 1.0]))


def test_integers_must_be_equal_and_do_not_overflow():
    big = np.array([2**62, -(2**62)])
    same(big, big)
    with pytest.raises(AssertionError, match="1 of 2 entries"):
        same(big, np.array([2**62, 2**62]))


def test_the_tolerance_can_be_given():
    same([1.01], [1.0], rtol=0.02)
    with pytest.raises(AssertionError, match=r"allowed 0\.001"):
        same([1.01], [1.0], rtol=1e-3)


def test_half_precision_is_not_a_free_pass():
    with pytest.raises(AssertionError):
        same(np.array([1.05], np.float16), np.array([1.0], np.float16))


def test_what_is_not_numbers_is_refused():
    with pytest.raises(AssertionError, match="C has dtype object"):
        same([None, 1.0], [1.0, 1.0])
