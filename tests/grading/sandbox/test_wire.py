"""The wire: plain values go through unchanged, and nothing else comes out of it."""

import contextlib
import io
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from course_lib.grading.runner import clone, unchanged
from course_lib.grading.sandbox import wire
from course_lib.grading.tape import TapeLine

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text()
    | st.just(...)
    | st.builds(TapeLine, st.integers(0, 10**6)),
    lambda one: st.lists(one) | st.lists(one).map(tuple) | st.dictionaries(st.text(), one),
    max_leaves=30,
)
DTYPES = st.sampled_from(["?", "<i8", "<u2", "<f2", "<f4", "<f8", ">f8", "<c16"])


def through(value, trusted=False, **options):
    return wire.read_frame(io.BytesIO(wire.frame(value, **options)).read, trusted)


@given(PLAIN)
def test_plain_values_go_through(value):
    assert through(value) == value
    assert repr(through(value)) == repr(value)


@given(DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_side=0, max_dims=3))))
def test_arrays_go_through_bit_by_bit(array):
    copy = through(array)
    assert (copy.dtype, copy.shape) == (array.dtype, array.shape)
    assert copy.tobytes() == array.tobytes()
    assert copy.flags.writeable


def test_scalars_keep_their_type_and_special_floats_go_through():
    for value in (np.float32(1.5), np.int8(-3), np.bool_(True), np.float64("nan")):
        copy = through(value)
        assert type(copy) is type(value) and copy.tobytes() == value.tobytes()
    for value in (float("nan"), float("inf"), -0.0, [float("nan")] * 20):
        assert repr(through(value)) == repr(value)
    for value in (math.nan, -math.nan):
        assert np.float64(through(value)).tobytes() == np.float64(value).tobytes()


def test_the_judge_can_ship_a_layout():
    plain = np.arange(24.0).reshape(4, 6)
    fortran = np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    for view in (plain.T, plain[::2, ::3], plain[::-1, 1:], np.zeros((0, 3)), fortran):
        copy = through(clone(view), trusted=True, keep_strides=True)
        assert unchanged(view, copy)
        assert copy.strides == view.strides or view.size == 0


def test_what_is_not_plain_arrives_as_a_name():
    class Sneaky:
        def __reduce__(self):
            raise AssertionError("somebody pickles")

    for value, name in (
        (Sneaky(), "Sneaky"),
        ({1, 2}, "set"),
        (np.array([object()]), "ndarray"),
        (len, None),
    ):
        copy = through([value])[0]
        assert isinstance(copy, wire.Foreign)
        assert name is None or type(copy).__name__ == name


def raw(tree, memory=b"", text=None):
    data = json.dumps(tree).encode() if text is None else text
    return io.BytesIO(struct.pack("<II", len(data), len(memory)) + data + memory).read


HOSTILE = {
    "no JSON": raw(None, text=b"{"),
    "not UTF-8": raw(None, text=b'"\xff"'),
    "unknown kind": raw(["pickle", "gASVAAAA"]),
    "a kind that is a list": raw([["list"], []]),
    "an object": raw({"a": 1}),
    "array larger than its memory": raw(["array", "<f8", [10**9], [0, 8]], b"12345678"),
    "array with another shape": raw(["array", "<f8", [2], [0, 8]], b"12345678"),
    "negative shape": raw(["array", "<f8", [-1], [0, 8]], b"12345678"),
    "object dtype": raw(["array", "|O", [1], [0, 8]], b"12345678"),
    "a dtype that is none": raw(["array", "wrong", [1], [0, 8]], b"12345678"),
    "a dtype in a list": raw(["array", [["a", "O"]], [1], [0, 8]], b"12345678"),
    "memory before its start": raw(["array", "<f8", [1], [-8, 8]], b"12345678"),
    "strides of the sender's choice": raw(["strided", "<f8", [10**6, 10**6], [0, 0], 0, [0, 8]], b"12345678"),
    "missing parts": raw(["array"]),
    "nested too deep": raw(None, text=b"[" * 100_000 + b"]" * 100_000),
    "nested too deep in kinds": raw(None, text=b'["list",[' * 200 + b"1" + b"]]" * 200),
    "a digit too many": raw(None, text=b"1" * 10_000),
    "no number of a line": raw(["line", -1]),
    "items that are none": raw(["list", 5]),
    "a number with text": raw(["int", "zz"]),
}


def test_hostile_frames_are_refused():
    for what, frame in HOSTILE.items():
        with pytest.raises(wire.WireError):
            wire.read_frame(frame)
            pytest.fail(what)


def test_a_size_is_checked_before_anything_is_read():
    asked = []

    def read(n):
        asked.append(n)
        return struct.pack("<II", 2**31, 2**31)[:n]

    with pytest.raises(wire.WireError, match="too large"):
        wire.read_frame(read)
    assert sum(asked) == 8


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_an_error(data):
    with contextlib.suppress(wire.WireError, EOFError):
        wire.read_frame(io.BytesIO(struct.pack("<II", len(data), 0) + data).read)
