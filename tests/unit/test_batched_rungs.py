"""Every rung for batches: right for any shape and view, and one sentence for what makes no sense."""

import subprocess
import sys

import numpy as np
import pytest

from course_lib import batched_ladder

RUNGS = [entry for entry in batched_ladder.BATCHED if not entry.missing()]
SHAPES = [  # batch, M, K, N
    (1, 1, 1, 1),
    (2, 3, 5, 7),
    (3, 25, 64, 25),
    (8, 25, 25, 64),
    (4, 13, 1, 33),
    (6, 11, 9, 65),
    (7, 1, 40, 31),
    (9, 2, 3, 129),
    (2, 33, 66, 139),
]
every_rung = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.id)


def assert_right(C, A, B):
    """|C - exact| <= 2 K u |A||B|, twice the bound of a sum of K products (Higham 2002, 3.5)."""
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    bound = A.shape[2] * np.finfo(A.dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    assert C.dtype == A.dtype and C.shape == exact.shape
    assert (np.abs(C - exact) <= bound).all()


def check_any_shape(rung, dtype):
    for shape in SHAPES:
        A, B = batched_ladder.operands(*shape, dtype)
        before = A.copy(), B.copy()
        assert_right(rung.matmul(A, B), A, B)
        assert np.array_equal(A, before[0]) and np.array_equal(B, before[1]), shape


@every_rung
def test_right_for_any_shape_and_nothing_is_written(rung):
    check_any_shape(rung, "float32")  # compiling takes ten seconds, and float64 goes through the same lines


@pytest.mark.slow
def test_right_in_float64_too():
    for rung in RUNGS:
        check_any_shape(rung, "float64")


def views(A):
    """Yield views that hold the numbers of a batch: laid out otherwise, with other strides, read-only."""
    yield "transposed", np.ascontiguousarray(A.transpose(0, 2, 1)).transpose(0, 2, 1)
    yield "heads, transposed", np.ascontiguousarray(A.transpose(2, 0, 1)).transpose(1, 2, 0)
    yield "every second column", np.repeat(A, 2, axis=2)[:, :, ::2]
    yield "backwards", np.ascontiguousarray(A[::-1, ::-1, ::-1])[::-1, ::-1, ::-1]
    yield "repeated", np.broadcast_to(A[:1], A.shape)
    read_only = A.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only
    odd = np.empty(A.nbytes + 1, np.uint8)[1:].view(A.dtype).reshape(A.shape)
    odd[...] = A
    yield "unaligned", odd


@every_rung
def test_views_of_any_strides(rung):
    for shape in ((3, 25, 64, 37), (2, 5, 7, 3), (2, 18, 16, 48)):
        A, B = batched_ladder.operands(*shape)
        for (name, a), (_, b) in zip(views(A), views(B), strict=True):
            for left, right in ((a, B), (A, b), (a, b)):
                assert_right(rung.matmul(left, right), left, right), name


@every_rung
def test_empty_in_any_size(rung):
    for shape in ((0, 2, 3, 4), (2, 0, 3, 4), (2, 3, 0, 4), (2, 3, 4, 0)):
        A, B = batched_ladder.operands(*shape)
        np.full((shape[0], shape[1], shape[3]), 7.0, "f4")  # memory that has just held other numbers
        C = rung.matmul(A, B)
        assert C.shape == (shape[0], shape[1], shape[3]) and C.dtype == np.float32 and not C.any()


@every_rung
def test_nan_and_inf_reach_their_row_and_column_and_no_other_matrix(rung):
    A, B = batched_ladder.operands(3, 14, 20, 35)
    A[1, 13, 19] = np.nan
    B[2, 0, 34] = np.inf
    C = rung.matmul(A, B)
    is_nan = np.zeros(C.shape, bool)
    is_nan[1, 13] = True
    assert np.array_equal(np.isnan(C), is_nan)
    assert np.array_equal(C[2, :, 34], np.sign(A[2, :, 0]) * np.inf)
    assert np.isfinite(C[0]).all() and np.isfinite(C[2, :, :34]).all()


AT_THE_EDGE = """
import ctypes, mmap, os, sys
import numpy as np
from course_lib import batched_ladder

def at_the_edge(X):
    size = -(-X.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size), mmap.PAGESIZE, 0) == 0
    copied = np.frombuffer(memory, X.dtype, X.size, size - X.nbytes).reshape(X.shape)
    copied[...] = X
    return copied

def turned(X):
    return X.transpose(0, 2, 1)

rung = batched_ladder.rung(sys.argv[1])
for K in (5, 40):
    for N in (1, 7, 8, 15, 16, 17, 31, 33, 47, 48):
        for batch, M in ((1, 1), (3, 13), (9, 50)):
            A, B = batched_ladder.operands(batch, M, K, N)
            ends, begins = at_the_edge(B), turned(at_the_edge(np.ascontiguousarray(turned(B))))
            for right in (ends, begins):
                assert np.allclose(rung.matmul(at_the_edge(A), right), A @ B, atol=1e-4), (K, N, batch)
print("right", flush=True)
os._exit(0)  # Python would look at the memory once more
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows protects memory in another way")
@pytest.mark.parametrize("name", ["batched-numba", "batched-strided"])
def test_nothing_is_read_behind_the_operands(name):
    """Where they end the readable memory ends: whoever reads on, even to throw it away, dies."""
    command = [sys.executable, "-c", AT_THE_EDGE, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr[-2000:]


REFUSED = {
    "2-D": ((2, 3), (2, 3, 4), "f4", "f4", ValueError, "A is 2-D with shape .* 3-D, is needed"),
    "4-D": ((1, 2, 2, 3), (2, 3, 4), "f4", "f4", ValueError, "A is 4-D"),
    "batch": ((2, 3, 4), (3, 4, 5), "f4", "f4", ValueError, "A is a batch of 2 matrices and B of 3"),
    "inner": ((2, 3, 4), (2, 5, 6), "f4", "f4", ValueError, r"as many columns \(4\) as B has rows \(5\)"),
    "mixed": ((2, 3, 4), (2, 4, 5), "f4", "f8", TypeError, "both must have one dtype"),
    "integers": ((2, 3, 4), (2, 4, 5), "i4", "i4", TypeError, "A has dtype int32"),
}


def test_what_makes_no_sense_is_refused_in_one_sentence():
    for case in REFUSED:
        for rung in batched_ladder.BATCHED:
            a, b, of_a, of_b, error, words = REFUSED[case]
            if case == "mixed" and rung.id == "cuda-batched":
                words = "B has dtype float64, but this rung multiplies float32"
            with pytest.raises(error, match=words) as refusal:
                rung.matmul(np.zeros(a, of_a), np.zeros(b, of_b))
            assert "\n" not in str(refusal.value) and str(refusal.value).endswith("."), (case, rung)
