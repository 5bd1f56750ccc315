"""The tracer takes what Numba compiles and refuses what it does not; what it leaves out, it says."""

import math

import numpy as np
import pytest
from numba import cuda, float32
from tools.looped import looped

from course_lib.simulators.gpu import NotTraceable, trace

T, SHAPE, NUMPY_SIZE = 16, (16, 17), np.int64(16)


@cuda.jit
def shape_of_the_block(x):
    s = cuda.shared.array((cuda.blockDim.x, cuda.blockDim.x + 1), float32)
    s[0, 0] = x[0]


@cuda.jit
def shape_of_an_argument(x):
    s = cuda.shared.array(len(x), float32)
    s[0] = x[0]


@cuda.jit
def shape_from_a_parameter(x, n):
    s = cuda.local.array(n, float32)
    s[0] = x[0]


@cuda.jit
def computed_shape(x):
    s = cuda.shared.array((T, T + 1), float32)
    s[0, 0] = x[0]


@cuda.jit
def shape_from_a_computed_variable(x):
    n = T * 2
    s = cuda.local.array(n, float32)
    s[0] = x[0]


@cuda.jit
def shape_from_a_variable_with_two_values(x):
    n = 16
    n += 1
    s = cuda.local.array(n, float32)
    s[0] = x[0]


@cuda.jit
def shape_of_a_numpy_integer(x):
    s = cuda.local.array(NUMPY_SIZE, float32)
    s[0] = x[0]


@looped(
    "kernel, part, arguments",
    [
        (shape_of_the_block, "cuda.blockDim.x", ()),
        (shape_of_an_argument, "len(x)", ()),
        (shape_from_a_parameter, "n", (4,)),
        (computed_shape, "T + 1", ()),
        (shape_from_a_computed_variable, "n", ()),
        (shape_from_a_variable_with_two_values, "n", ()),
        (shape_of_a_numpy_integer, "NUMPY_SIZE", ()),
    ],
)
def test_a_shape_that_numba_does_not_know_when_it_compiles_is_refused(kernel, part, arguments):
    with pytest.raises(NotTraceable, match="outside of the kernel") as caught:
        trace(kernel, 1, 32, np.zeros(32, np.float32), *arguments)
    assert f"has {part}, but" in caught.value.sentence


@cuda.jit(device=True)
def first_of_many(x, n):
    a = cuda.local.array(n, float32)
    a[0] = x[0]
    return a[0]


@cuda.jit
def known_shapes(x, out):
    n = T
    one = cuda.local.array(n, float32)
    two = cuda.local.array(SHAPE, float32)
    three = cuda.local.array(SHAPE[0], float32)
    four = cuda.local.array((2 * 8, T), float32)
    m = 5
    five = cuda.local.array(m, float32)
    six = cuda.local.array(x.ndim, float32)
    one[15] = two[15, 16] = three[15] = four[15, 15] = five[4] = six[0] = 1
    out[0] = one[15] + two[15, 16] + three[15] + four[15, 15] + five[4] + six[0] + first_of_many(x, 8)


def test_shapes_that_numba_knows_are_taken():
    x, out = np.ones(4, np.float32), np.zeros(1)
    assert not trace(known_shapes, 1, 1, x, out).hazards
    assert out[0] == 7


@cuda.jit
def numpy_exp(x):
    x[0] = np.exp(x[0])


@cuda.jit
def numpy_abs(x):
    x[0] = np.abs(x[0])


@cuda.jit
def numpy_power(x):
    x[0] = np.power(x[0], 2)


@cuda.jit
def numpy_floor(x):
    x[0] = np.floor(x[0])


@looped(
    "kernel, instead",
    [(numpy_exp, "math.exp()"), (numpy_abs, "abs()"), (numpy_power, "**"), (numpy_floor, "math.floor()")],
)
def test_functions_of_numpy_that_numba_does_not_compile_are_refused(kernel, instead):
    with pytest.raises(NotTraceable, match="Numba does not compile") as caught:
        trace(kernel, 1, 1, np.ones(1))
    assert f"write {instead} instead" in caught.value.sentence


@cuda.jit
def what_numba_takes_of_numpy(x):
    x[0] = np.log(x[0]) + np.arctan2(x[0], x[0]) + np.float32(1)
    x[1] = min(np.inf, np.maximum(x[1], np.pi))


def test_functions_of_numpy_that_numba_compiles_are_taken():
    x = np.array([2.0, 1.0])
    trace(what_numba_takes_of_numpy, 1, 1, x)
    assert x.tolist() == [math.log(2) + math.atan2(1, 1) + 1, math.pi]


@cuda.jit
def over_tuples(out):
    i = cuda.threadIdx.x
    for n in (16, 8, 4, 2, 1):
        if n == 2 and i > 0:
            break
        out[i] += n
    for size in SHAPE:
        if i == 1:
            continue
        out[i] += 100 * size


@cuda.jit
def over_two_types(out):
    for n in (1, 2.0):
        out[0] += n


@cuda.jit
def over_an_array(out):
    for n in out:
        out[0] += n


def test_a_loop_over_a_tuple_of_numbers_turns_once_for_each():
    out = np.zeros(3, np.int64)
    trace(over_tuples, 1, 3, out)
    assert out.tolist() == [31 + 3300, 28, 28 + 3300]


@looped("kernel", [over_two_types, over_an_array])
def test_a_loop_over_something_else_is_refused(kernel):
    with pytest.raises(NotTraceable, match="a for loop"):
        trace(kernel, 1, 1, np.zeros(3))
