"""`same`: silent about nothing, and the most telling fault first."""

import numpy as np
import pytest

from course_lib.views import same


def test_says_how_close_they_are_and_names_a_coarser_dtype(capsys):
    def said():
        return capsys.readouterr().out

    same(np.array([1.0, 2.0, 4.0 + 1e-15]), np.array([1.0, 2.0, 4.0]))
    assert said() == "same: max error 2.2e-16\n"
    exact = np.linspace(1, 2, 50)
    same(exact.astype(np.float32), exact)
    assert "C is float32 and expected is float64" in said()
    for shape in ((0,), (0, 3), ()):
        same(np.ones(shape), np.ones(shape))
        assert said().startswith("same: max error 0"), shape
    values = np.array([np.nan, np.inf, -np.inf, 1.0])
    same(values, values.copy())
    assert "max error 0" in said()
    same([1.01], [1.0], rtol=0.02)
    big = np.array([2**62, -(2**62)])  # no overflow
    same(big, big)


def test_what_differs_is_said_most_telling_first():
    big = np.array([2**62, -(2**62)])
    for C, expected, words in (
        (np.full((2, 3), np.nan), np.ones((3, 2)), r"shape \(2, 3\), but \(3, 2\).*transpose"),
        (np.ones((3, 1)), np.ones((3, 3)), r"shape \(3, 1\), but \(3, 3\)"),
        ([np.nan, 2.0, -np.inf, np.inf], [1.0, 2.0, 3.0, np.inf], "NaN at 1 of 4 entries and inf at 1 of 4"),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, np.inf], "finite numbers where NaN or inf is expected"),
        ([np.nan, 1.1], [np.nan, 1.0], "1 of 2 entries"),  # an error hidden beside NaN
        (big, np.array([2**62, 2**62]), "1 of 2 entries"),
        (np.array([1.05], np.float16), np.array([1.0], np.float16), "not the same"),  # no free pass
        ([None, 1.0], [1.0, 1.0], "C has dtype object"),
    ):
        with pytest.raises(AssertionError, match=words):
            same(C, expected)
    with pytest.raises(AssertionError, match=r"allowed 0\.001"):
        same([1.01], [1.0], rtol=1e-3)


def test_the_first_five_differences_are_listed_with_their_indices():
    expected = np.arange(1.0, 13.0).reshape(3, 4)
    wrong = expected.copy()
    wrong[1:] += 1
    with pytest.raises(AssertionError) as caught:
        same(wrong, expected)
    lines = str(caught.value).splitlines()
    assert "8 of 12 entries" in lines[0]
    assert lines[1] == "  [1, 0]  yours 6.0  expected 5.0"
    assert lines[5:] == ["  [2, 0]  yours 10.0  expected 9.0", "  … and 3 more"]
