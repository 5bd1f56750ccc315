"""Comparing results: right ones pass whatever the order of summation, wrong ones are named."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from course_lib.grading.compare import (
    close,
    close_product,
    error_map,
    exact,
    product_tolerance,
    recognise,
)

sizes = st.integers(1, 9)
numbers = st.floats(-1e3, 1e3, allow_subnormal=False)


@st.composite
def operands(draw, dtype=None):
    dtype = dtype or draw(st.sampled_from([np.float32, np.float64]))
    M, K, N = draw(sizes), draw(st.integers(1, 60)), draw(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = 10.0 ** draw(st.integers(-6, 6))
    return (rng.normal(size=(M, K)) * scale).astype(dtype), rng.normal(size=(K, N)).astype(dtype)


def summed(A, B, order):
    """The product in A's own precision, summed in the given order of k."""
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    for k in order:
        C += A[:, k, None] * B[k]
    return C


@given(operands(), st.randoms())
@settings(max_examples=60, deadline=None)
def test_every_order_of_summation_is_right(pair, random):
    A, B = pair
    order = list(range(A.shape[1]))
    random.shuffle(order)
    want = (A.astype(np.float64) @ B.astype(np.float64)).astype(A.dtype)
    assert close_product().compare(summed(A, B, order), want, pair) is None


@given(operands(np.float64), st.data())
@settings(max_examples=60, deadline=None)
def test_one_wrong_entry_is_found_and_named(pair, data):
    A, B = pair
    want = A @ B
    i, j = data.draw(st.integers(0, want.shape[0] - 1)), data.draw(st.integers(0, want.shape[1] - 1))
    got = want.copy()
    got[i, j] += 10 * product_tolerance(want.dtype, A, B)[i, j]
    found = close_product().compare(got, want, pair)
    assert found.wrong == 1
    assert found.rows[0][0] == f"[{i}, {j}]"
    assert found.rows[0][1] != found.rows[0][2]


@given(operands(np.float64))
@settings(max_examples=40, deadline=None)
def test_a_float64_product_summed_in_float32_is_wrong(pair):
    A, B = pair
    single = (A.astype(np.float32) @ B.astype(np.float32)).astype(np.float64)
    want = A @ B
    if np.abs(single - want).max() > 100 * product_tolerance(want.dtype, A, B).max():
        assert close_product().compare(single, want, pair) is not None


@given(
    arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats())
)
def test_anything_equals_itself_nan_and_inf_included(values):
    assert close(1e-9).compare(values.copy(), values, ()) is None
    assert exact().compare(values.tolist(), values.tolist(), ()) is None
    assert exact().compare(10**25, 10**25, ()) is None
    assert close(1e-9).compare(10**25, 1e25, ()) is None is not exact().compare(10**25, 3, ())
    assert not error_map(values, values).any()


@given(
    arrays.arrays(np.float64, (4, 3), elements=numbers),
    st.integers(0, 11),
    st.sampled_from([math.nan, math.inf, -math.inf]),
)
def test_nan_and_inf_are_told_apart_from_wrong_numbers(want, place, odd):
    got = want.copy()
    got.flat[place] = odd
    name = "NaN" if math.isnan(odd) else "inf"
    assert f"1 is {name}" in " ".join(close(1.0, 1e9).compare(got, want, ()).says)
    assert f"1 should be {name}" in " ".join(close(1.0, 1e9).compare(want, got, ()).says)


def test_type_shape_and_dtype_come_first_in_words():
    for got, want, words in (
        (None, [[1.0]], "returned None, but a list of lists is needed: is a `return` missing?"),
        (None, np.zeros((1, 1)), "returned None, but a NumPy array"),
        ([[1.0]], np.ones((1, 1)), "a list of 1 list of 1 number, but a NumPy array"),
        (np.ones((1, 1)), [[1.0]], "a 1 x 1 array of float64, but a list of lists"),
        (((1.0,),), [[1.0]], "a tuple of 1 tuple"),
        ((x for x in [1.0]), [[1.0]], "generator"),
        ([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0, 4.0]], "Row 1 of your result has 1 number, row 0 has 2"),
        ([(1.0, 2.0)], [[1.0, 2.0]], "Row 0 of your result is a tuple of 2 numbers"),
        ([["1"]], [[1.0]], "holds the text '1', but only numbers"),
        ([[True]], [[1.0]], "holds the bool True"),
        ([[1.0, 2.0]], [[1.0], [2.0]], "The shape is 1 x 2, but 2 x 1 is needed. Those are rows and columns"),
        (np.ones((2, 3)), np.ones((2, 2)), "The shape is 2 x 3, but 2 x 2 is needed."),
        (np.ones(2), np.ones((2, 1)), "The shape is (2,), but 2 x 1"),
        (np.ones((1, 1)), np.ones((1, 1), np.float32), "The dtype is float64, but float32 is needed"),
        (np.ones((1, 1), int), np.ones((1, 1)), "The dtype is int64, but float64"),
        ([[1.0]], [], "must be an empty list"),
        ("3", 3.0, "returned the text '3', but a number is needed"),
        (4, 3.0, "Yours is 4, expected is 3."),
        (10**25, 10**25 + 1, "expected is 10000000000000000000000001."),
    ):
        found = close(1e-9).compare(got, want, ())
        assert words in found.says[0], got


def test_tuples_are_compared_part_by_part_with_their_names():
    comparison = exact(("multiplications", "additions"))
    assert comparison.compare((6, 4), (6, 4), ()) is None
    assert comparison.compare([6, 4], (6, 4), ()) is None
    assert comparison.compare((6, 6), (6, 4), ()).says[0] == "additions: yours is 6, expected is 4."
    assert "a tuple of 2: (multiplications, additions)" in comparison.compare(6, (6, 4), ()).says[0]
    assert "'memory'" in exact(("roof", "limit")).compare((1.0, "cpu"), (1.0, "memory"), ()).says[0]


def test_big_integers_are_compared_exactly():
    big = 3 * 10**17
    assert exact().compare((big, big + 1), (big, big), ()) is not None
    assert recognise(10**400, 0.5, (), {}) == []  # no float is as large
    for got, near in ((2.0**60, 2**60 + 1), ([2.0**60, 3.0], [2**60 + 1, 3]), (np.float64(2**60), 2**60 + 1)):
        assert exact().compare(got, near, ()) is not None  # NumPy takes a near float for equal
    assert exact().compare(3.0, 3, ()) is None is exact().compare([2.0**60, 3.0], [2**60, 3], ())


def test_numbers_that_differ_beyond_the_printed_digits_are_printed_in_full():
    want = np.array([[1.0, 2.0]])
    found = exact().compare(want + np.array([[0, 1e-12]]), want, ())
    assert found.rows[0][1] != found.rows[0][2]
    assert found.says[0] == "1 of 2 values is wrong."
    alone = exact().compare(-0.1201 + 1e-12, -0.1201, ())
    assert alone.says == (f"Yours is {-0.1201 + 1e-12!r}, expected is -0.1201.",)


# --- patterns ---

WANT = np.arange(1.0, 13).reshape(3, 4)


def test_patterns_are_recognised():
    for got, words in (
        (WANT.T, "transposed"),
        (np.repeat(WANT[:1], 3, 0), "All rows of your result are the same"),
        (np.zeros((3, 4)), "zero everywhere"),
        (2 * WANT, "2 times"),
        (WANT + np.array([[0, 0, 0, 1]]), "Only the last column"),
        (WANT + np.array([[1, 0, 0, 0]]), "Only the first column"),
        (WANT + np.array([[0, 0, 1, 1]]), "last 2 columns"),
        (WANT + np.array([[0], [1], [0]]), "Only row 1"),
    ):
        assert words in " ".join(recognise(got.tolist(), WANT.tolist(), (), {})), got


def test_rounding_is_seen_in_numbers_pairs_and_matrices():
    for got, want, words in (
        (0.02, 0.02158991, "right to 2 digits"),
        ((0.02, 20.61), (0.02158991, 20.50526), "right to 2 digits"),  # the second one follows from the first
        ((0.5, 0.1), (0.5, 0.1234), "right to 1 digit after"),
        ([1.5, 0.1, 0.67], [1.5, 0.1, 2 / 3], "right to 2 digits"),
        ([[1.3, 2.7]], [[1.32, 2.68]], "right to 1 digit after"),
        (np.round(np.sqrt(WANT), 3), np.sqrt(WANT), "right to 3 digits"),
    ):
        (said,) = recognise(got, want, (), {})
        assert words in said and said.endswith("after the point: do you round?"), got


def test_a_slip_that_changes_nothing_on_an_input_explains_nothing():
    got, want = 10**9 + 1, 10**9
    assert recognise(got, want, (), {"no": lambda *_: want, "yes": lambda *_: got}) == ["yes"]


def test_what_is_not_rounded_is_not_said_to_be():
    for got, want in (
        (0.0, 0.02158991),  # nothing of it is right
        (0.02, 0.0316),
        (7.0, 7),
        (3, 4),
        ((3, 4), (3, 5)),
        ("memory", "arithmetic"),
        (None, 0.5),
        ((0.3, 0.5), (0.3, 0.5)),
        (WANT, WANT),
        (0.02158990, 0.0215899000001),
    ):
        assert recognise(got, want, (), {}) == [], got


@given(arrays.arrays(np.float64, (3, 4), elements=numbers))
def test_recognising_never_fails_on_odd_results(values):
    for odd in (values, values * np.nan, values[:0], values[:, :2], None, "text", [[None]]):
        assert isinstance(recognise(odd, WANT, (WANT, WANT), {}), list)
