"""Kernels that are written to break the GPU tracer: each was once run wrong, counted wrong or not refused."""

import numpy as np
import pytest
from numba import cuda, float32
from tools.looped import looped

from course_lib.simulators.gpu import NotTraceable, trace
from gpu_kernels.small import kernel, line_of


def kinds(seen):
    return [hazard.kind for hazard in seen.hazards]


# -- functions -----------------------------------------------------------------------------------------------


def adding(number):
    @cuda.jit(device=True)
    def add(x):
        return x + number

    return add


add_one, add_ten = adding(1), adding(10)
twice = cuda.jit(device=True)(lambda a: 2 * a)


def test_functions_made_by_one_factory_keep_their_own_numbers():
    body = "out[i, 0] = add_one(i)\nout[i, 1] = add_ten(i)\nout[i, 2] = twice(i) - i + 2"
    add_both = kernel("out", body, add_one=add_one, add_ten=add_ten, twice=twice)
    out = np.zeros((40, 3))
    trace(add_both, 2, 20, out)
    assert (out == np.arange(40)[:, None] + [1, 10, 2]).all()


# -- shared memory -------------------------------------------------------------------------------------------


@cuda.jit(device=True)
def element(a, i):
    return a[i]


@cuda.jit(device=True)
def element_of_shared(i):
    a = cuda.shared.array(32, float32)
    a[i] = 1
    return element(a, i)


def test_arrays_of_one_name_in_two_memories_are_counted_apart():
    body = "out[i] = element(a, i) + element_of_shared(i)"
    two_arrays_of_one_name = kernel("a, out", body, element=element, element_of_shared=element_of_shared)
    seen = trace(two_arrays_of_one_name, 1, 32, np.ones(32), np.zeros(32))
    loads = [row for row in (*seen.global_accesses, *seen.shared_accesses) if row.kind == "load"]
    for row, space, other in zip(loads, ("global", "shared"), ("wavefronts", "bytes_moved"), strict=True):
        assert (row.space, row.array, row.requests) == (space, "a", 1) and not hasattr(row, other)


# -- arguments -----------------------------------------------------------------------------------------------


def test_arrays_over_one_buffer_overlap():
    moves = kernel("a, b", "b[i + 20] = a[i]")
    buffer = bytearray(800)
    a, b = np.frombuffer(buffer, count=40), np.frombuffer(buffer)
    a[:] = np.arange(40)
    assert kinds(trace(moves, 1, 32, a, b)) == ["race"]
    assert b[40:52].tolist() == list(range(20, 32))
    assert kinds(trace(moves, 1, 32, a[:32], b[40:])) == []
    assert kinds(trace(moves, 1, 32, b[60:], b)) == []


def test_arrays_in_tuples_race():
    shifts = kernel("arrays", "arrays[0][i + 1] = arrays[0][i]")
    shifts_within = kernel("arrays", "arrays[0][0][i + 1] = arrays[0][0][i]")
    x = np.zeros(64, np.float32)
    assert kinds(trace(shifts, 1, 32, (x, x.view(np.uint8)))) == ["race"]
    assert kinds(trace(shifts_within, 1, 32, ((x,),))) == ["race"]


def test_arrays_without_elements_and_of_what_is_no_number():
    nothing = kernel("x", "pass")
    reads_first = kernel("x, out", "out[cuda.grid(1)] = x[0] if x.ndim == 1 else x[0, 0]")
    for empty in (np.empty(0), np.empty((3, 0)), np.zeros(8)[5:5]):
        assert kinds(trace(reads_first, 1, 32, empty, np.zeros(32))) == ["out-of-bounds"]
    for strange in (np.array(["a"]), np.zeros(3, "M8[s]"), np.zeros(3, "i4,i4")):
        with pytest.raises(NotTraceable, match="follows plain numbers only"):
            trace(nothing, 1, 1, strange)


# -- counts --------------------------------------------------------------------------------------------------


def test_a_float32_with_a_short_integer_stays_one():
    with_short_integers = kernel("x, a, out", "out[i] = x[i] + a[i]")
    x = np.full(32, 0.1, np.float32)
    for dtype, kept in ((np.uint8, True), (np.int16, True), (np.bool_, True), (np.int32, False)):
        out, a = np.zeros(32), np.ones(32, dtype)
        trace(with_short_integers, 1, 32, x, a, out)
        assert (out[0] == np.float32(0.1) + np.float32(1)) == kept, dtype


# -- numbers that all threads share --------------------------------------------------------------------------


@cuda.jit
def of_one_number(x, number, out):
    i = cuda.grid(1)
    out[i, 0], out[i, 1], out[i, 2] = -x[i], -x[0], -number
    out[i, 3], out[i, 4], out[i, 5] = ~x[i], ~x[0], ~number
    out[i, 6], out[i, 7], out[i, 8] = x[i] - 9, x[0] - 9, number - 9
    out[i, 9], out[i, 10], out[i, 11] = abs(x[i]), abs(x[0]), abs(number)


@looped("dtype", [np.uint8, np.uint16, np.uint32, np.int8, np.int32, np.int64])
def test_a_number_that_all_threads_share_is_computed_with_like_one_of_each(dtype):
    x, out = np.full(32, 5, dtype), np.zeros((32, 12))
    trace(of_one_number, 1, 32, x, dtype(5), out)
    for first in (0, 3, 6, 9):
        assert (out[:, first : first + 3] == out[0, first]).all()
    assert out[0, 6] == -4


@looped(
    "alias",
    [
        "Z = Y",
        "Z = True and Y",
        "Z = False or Y",
        "Z = cuda.selp(True, Y, X)",
        "Z = Y if n > 0 else X",
        "Z, W = Y, X",
        "Z = same(True and Y)",
    ],
)
def test_an_array_by_another_name_is_watched_too(alias):
    same = kernel("A", "return A", device=True)
    made = kernel("X, Y, n", f"{alias}\nZ[i] = X[i]\nX[i] = Z[n - 1 - i]  # races", same=same)
    X, Y = (np.zeros(64, np.float32) for _ in range(2))
    found = trace(made, 1, 64, X, Y, 64, progress=False).hazards
    assert {(one.kind, one.line) for one in found} == {("race", line_of(made, "races"))}
