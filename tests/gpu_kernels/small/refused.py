"""The tracer takes what Numba compiles and refuses what it does not, in one sentence with its place."""

import math
import tracemalloc

import numpy as np
import pytest
from numba import cuda, float32

from course_lib.simulators.gpu import NotTraceable, trace
from gpu_kernels.small import kernel, line_of

T, SHAPE = 16, (16, 17)
NAMES = {"np": np, "math": math, "float32": float32, "T": T, "SHAPE": SHAPE, "SIZE": np.int64(16)}


def plain(x):
    return x


nothing = kernel("x", "pass", device=True)


def refusal(made, *arguments, threads=32):
    with pytest.raises(NotTraceable) as caught:
        trace(made, 1, threads, *arguments)
    return caught.value


def test_what_cannot_be_traced_is_refused_with_its_place():
    for body, words in (
        ("a = cuda.shared.array((64, 96), float32)\nb = cuda.shared.array((64, 97), float32)  # here\n"
         "a[0, 0] = b[0, 0] = x[0]", "with b a block declares 49,408 bytes of shared memory"),
        ("s = cuda.shared.array(0, float32)  # here\ns[0] = x[0]", "pass shared_bytes= to trace()"),
        ("a = cuda.local.array(2**17 + 1, float32)  # here\na[0] = x[0]", "a has 524,292 bytes"),
        ("x[i] = [1, 2, 3][i]  # here", "a list is not supported"),
        ("try:  # here\n    x[0] = 1\nexcept ValueError:\n    pass", "try is not supported"),
        ("try:  # here\n    x[0] = 1\nexcept* ValueError:\n    pass", "except* is not supported"),
        ("x[1:3] = 0  # here", "a slice is assigned to"),
        ("x[i / 2] = 0  # here", "must be an integer"),
        ("x[math.floor(i / 2)] = 0  # here", "an index is float64"),  # on a GPU, and nowhere else
        ("x[i] = cuda.threadIdx * 2  # here", "write .x, .y or .z"),
        ("t = cuda.threadIdx\nx[t] = 0  # here", "write .x, .y or .z"),
        ("if cuda.threadIdx == 0:  # here\n    x[0] = 1", "write .x, .y or .z"),
        ("x[0] = 3 in x  # here", "in a tuple only"),
        ("x[0] = np.sum(x)  # here", "sum() is not supported"),
        ("x[0] = math.exp(x[0], x[1])  # here", "called with 2 arguments"),
        ("x[0] = math.hypot(x[0])  # here", "called with 1 arguments"),
        ("x[0] = plain(x[0])  # here", "plain is a plain Python function"),
        ("s = cuda.shared.array(32, x)  # here\nx[0] = s[0]", "must be a number type"),
        ("f = cuda.atomic.add  # here\nf(x, 0, 1)", "handed on as a value"),
        ("z = x\nif i > 3:\n    z = y  # here\nz[i] = 1", "names different arrays in different threads"),
        ("if x[0] > 5:\n    y = 1\nx[0] = y  # here", "y is used before anything is assigned"),
        ("x[0] = x + 1  # here", "lockstep"),
        ("x[1] = nothing(x) + 1  # here", "lockstep"),
        ("y = x[0:2, 0:2]  # here\nx[0] = y[0]", "2 are sliced"),
        ("x[0] = float32  # here", "is stored as an element"),
        ("for n in (1, 2.0):  # here\n    x[0] += n", "a for loop"),
        ("for n in x:  # here\n    x[0] += n", "a for loop"),
    ):  # fmt: skip
        parameters = ["x", "y"] if "z = y" in body else ["x"]
        made = kernel(", ".join(parameters), body, **NAMES, plain=plain, nothing=nothing)
        refused = refusal(made, *(np.zeros(64, np.float32) for _ in parameters))
        assert words in refused.sentence, body
        assert refused.file == made.py_func.__code__.co_filename, body
        assert refused.line in (line_of(made, "here"), line_of(made, "here") + 1), body


def test_a_shape_that_numba_does_not_know_when_it_compiles_is_refused():
    for body, part in (
        ("s = cuda.shared.array((cuda.blockDim.x, cuda.blockDim.x + 1), float32)", "cuda.blockDim.x"),
        ("s = cuda.shared.array(len(x), float32)", "len(x)"),
        ("s = cuda.local.array(n, float32)", "n"),
        ("s = cuda.shared.array((T, T + 1), float32)", "T + 1"),
        ("n = T * 2\ns = cuda.local.array(n, float32)", "n"),
        ("n = 16\nn += 1\ns = cuda.local.array(n, float32)", "n"),
        ("s = cuda.local.array(SIZE, float32)", "SIZE"),
    ):
        refused = refusal(kernel("x, n", f"{body}\nx[0] = 1", **NAMES), np.zeros(32, np.float32), 4)
        assert "outside of the kernel" in refused.sentence and f"has {part}, but" in refused.sentence, body


def test_shapes_that_numba_knows_are_taken():
    first_of_many = kernel(
        "x, n", "a = cuda.local.array(n, float32)\na[0] = x[0]\nreturn a[0]", device=True, **NAMES
    )
    body = """
n = T
m = 5
a = cuda.local.array(n, float32)
b = cuda.local.array(SHAPE, float32)
c = cuda.local.array(SHAPE[0], float32)
d = cuda.local.array((2 * 8, T), float32)
e = cuda.local.array(m, float32)
f = cuda.local.array(x.ndim, float32)
a[15] = b[15, 16] = c[15] = d[15, 15] = e[4] = f[0] = 1
out[0] = a[15] + b[15, 16] + c[15] + d[15, 15] + e[4] + f[0] + first_of_many(x, 8)
"""
    x, out = np.ones(4, np.float32), np.zeros(1)
    made = kernel("x, out", body, **NAMES, first_of_many=first_of_many)
    assert not trace(made, 1, 1, x, out).hazards
    assert out[0] == 7
    body = "a = cuda.local.array(65536, float32)\na[-1 - 9 * i] = a[0] = i\nout[i] = a[-1 - 9 * i] + a[0]"
    tracemalloc.start()  # of a long one only what is touched takes memory
    assert not trace(kernel("out", body, **NAMES), 8, 256, out := np.zeros(2048)).hazards
    assert tracemalloc.get_traced_memory()[1] < 2**27 and (out == 2 * np.arange(2048)).all()
    tracemalloc.stop()


def test_functions_of_numpy_are_taken_where_numba_compiles_them():
    for call, instead in (
        ("np.exp(x[0])", "math.exp()"),
        ("np.abs(x[0])", "abs()"),
        ("np.power(x[0], 2)", "**"),
        ("np.floor(x[0])", "math.floor()"),
    ):
        sentence = refusal(kernel("x", f"x[0] = {call}", **NAMES), np.ones(1), threads=1).sentence
        assert "Numba does not compile" in sentence and f"write {instead} instead" in sentence, call
    x = np.array([2.0, 1.0])
    first = "x[0] = np.log(x[0]) + np.arctan2(x[0], x[0]) + np.float32(1)"
    trace(kernel("x", f"{first}\nx[1] = min(np.inf, np.maximum(x[1], np.pi))", **NAMES), 1, 1, x)
    assert x.tolist() == [math.log(2) + math.atan2(1, 1) + 1, math.pi]


def test_what_lockstep_cannot_do_is_said_without_its_own_words():
    for body, words in (
        ("out[i] = 2 * A[i]", "a row of an array is used like a number here: give an index for each"),
        ("if (i, i) < A.shape:\n    out[i] = A[i, i]", "test them one by one, with `and` and `or`"),
    ):
        sentence = refusal(kernel("A, out", body), np.ones((4, 4)), np.zeros(4), threads=4).sentence
        assert words in sentence and "Part" not in sentence, body


def test_atomics_on_what_has_none_are_refused():
    adds = kernel("x", "cuda.atomic.add(x, 0, 1)")
    for dtype in (np.complex64, np.bool_, np.float16):
        assert "does not work on numbers of type" in refusal(adds, np.zeros(1, dtype)).sentence


def test_bad_launches_are_refused_in_a_sentence():
    copies = kernel("A, B", "B[i, 0] = A[i, 0]")
    x = np.zeros(64, np.float32)
    for dimensions in (
        *((0, 32), (1, 1025), (1, (32, 33)), (1, 0), (1, (1, 1, 65)), (1.5, 32)),
        (1, (1, 1, 1, 1)),
    ):
        with pytest.raises(ValueError, match=r"griddim|blockdim"):
            trace(copies, *dimensions, x, x)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        trace(copies, 1, 32, x)
    with pytest.raises(TypeError, match="A is a str"):
        trace(copies, 1, 32, "x", x)
    with pytest.raises(NotTraceable, match="needs a kernel"):
        trace("kernel", 1, 32, x)
    for blocks in (0, [], [5], [(0, 3)]):
        with pytest.raises(ValueError, match="block"):
            trace(copies, 2, 32, x, x, blocks=blocks)
    x.flags.writeable = False
    assert "read-only" in refusal(kernel("x", "x[i] += 1"), x).sentence


def test_a_refusal_is_said_from_the_door_and_names_the_line():
    @cuda.jit
    def sliced(A):
        A[1:3] = 0

    with pytest.raises(NotTraceable) as caught:
        trace(sliced, 1, 32, np.zeros(32, np.float32))
    assert len(caught.traceback) == 2 and caught.value.__suppress_context__
    assert str(caught.value).startswith(f"{__file__}:{caught.value.line}: ")
    assert str(NotTraceable("No.", "/tmp/ipykernel_7/8.py", 3)) == "line 3: No."
