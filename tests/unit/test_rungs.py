"""Every rung, through the registry: right for every shape, dtype and layout; a sentence otherwise."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib import ladder
from course_lib.circles.front_door import through_the_door


def imports():
    global FUSE_AND_REORDER, compiled_loops
    from course_lib.circles.compiled import FUSE_AND_REORDER, compiled_loops


RUNGS = [entry for entry in ladder.LADDER if not entry.missing()]
LAYOUTS = ("C", "F", "strided", "reversed", "read-only", "unaligned")
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def laid_out(X, layout):
    """The same values in another memory layout."""
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, X.dtype)
        wide[::2, ::3] = X
        return wide[::2, ::3]
    if layout == "reversed":
        return X[::-1, ::-1].copy()[::-1, ::-1]
    if layout == "unaligned":
        raw = np.zeros(X.nbytes + 1, np.uint8)
        view = raw[1:].view(X.dtype).reshape(X.shape) if X.size else X
        view[...] = X
        return view
    if layout == "read-only":
        X = X.copy()
        X.flags.writeable = False
    return X


def tolerance(dtype, K):
    """Twice the classical bound for a sum of K products, |C - exact| <= K eps |A||B| (Higham 2002)."""
    return 2 * max(K, 1) * np.finfo(dtype).eps


@pytest.mark.parametrize("entry", RUNGS, ids=lambda entry: entry.id)
@QUICK
@given(
    shape=st.tuples(*[st.integers(0, 13) | st.sampled_from([17, 31])] * 3),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
    seed=st.integers(0, 2**31),
)
def test_every_rung_is_right(entry, shape, layouts, seed):
    M, K, N = shape
    rng = np.random.default_rng(seed)
    dtype = entry.dtypes[seed % len(entry.dtypes)]
    A = laid_out(rng.standard_normal((M, K)).astype(dtype), layouts[0])
    B = laid_out(rng.standard_normal((K, N)).astype(dtype), layouts[1])
    A_before, B_before = A.copy(), B.copy()
    C = entry.matmul(A, B)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    bound = tolerance(dtype, K) * (np.abs(A).astype(np.float64) @ np.abs(B).astype(np.float64))
    assert C.dtype == np.dtype(dtype) and C.shape == (M, N) and C.flags.c_contiguous
    assert np.all(np.abs(C - exact) <= bound + np.finfo(dtype).tiny)
    assert np.array_equal(A, A_before) and np.array_equal(B, B_before)
    assert not np.shares_memory(C, A) and not np.shares_memory(C, B)


@pytest.mark.parametrize("entry", RUNGS, ids=lambda entry: entry.id)
def test_nan_inf_and_overflow_go_where_numpy_sends_them_in_silence(entry, recwarn):
    for dtype in entry.dtypes:
        rng = np.random.default_rng(3)
        A = rng.standard_normal((5, 19)).astype(dtype)
        B = rng.standard_normal((19, 7)).astype(dtype)
        A[1, 2], A[2, 3], A[3, 4], B[4, 5], B[4, 6] = np.nan, np.inf, np.inf, 0.0, -np.inf
        with np.errstate(invalid="ignore"):
            expected = A @ B
        C = entry.matmul(A, B)
        for kind in (np.isnan, np.isposinf, np.isneginf):
            assert np.array_equal(kind(C), kind(expected)), (dtype, kind)
    A = np.full((2, 3), 3e38, np.float32)
    assert np.isposinf(entry.matmul(A, A.T.copy())).all()
    assert not recwarn.list


GOOD = np.ones((3, 4))
BAD = {
    "list": ([[1.0]], np.ones((1, 1)), TypeError, "A is of type list"),
    "masked": (np.ma.masked_array(GOOD), GOOD, TypeError, "masked"),
    "1-D": (np.ones(4), GOOD, ValueError, r"A is 1-D with shape \(4,\)"),
    "integers": (np.ones((3, 4), int), np.ones((4, 2), int), TypeError, "A has dtype int64"),
    "complex": (GOOD, np.ones((4, 2), complex), TypeError, "B has dtype complex128"),
    "mixed": (GOOD.astype(np.float32), np.ones((4, 2)), TypeError, "A is float32 and B is float64"),
    "byte order": (GOOD.astype(GOOD.dtype.newbyteorder()), np.ones((4, 2)), TypeError, "byte order"),
    "mismatch": (GOOD, np.ones((5, 2)), ValueError, r"A is 3 x 4 and B is 5 x 2"),
    "empty mismatch": (np.ones((0, 3)), np.ones((2, 0)), ValueError, "0 x 3"),
}


def in_its_dtype(operand, dtypes):
    """The operand in a dtype that the rung multiplies, if it is of one that most rungs do."""
    if not isinstance(operand, np.ndarray) or operand.dtype.name != "float64" or "float64" in dtypes:
        return operand
    return operand.astype(np.dtype(dtypes[0]).newbyteorder(operand.dtype.byteorder))


@pytest.mark.parametrize("entry", RUNGS, ids=lambda entry: entry.id)
def test_every_rung_stands_behind_the_door(entry):
    for case, (A, B, error, words) in BAD.items():
        if case == "mixed" and "float64" not in entry.dtypes:
            words = "B has dtype float64"
        else:
            A, B = in_its_dtype(A, entry.dtypes), in_its_dtype(B, entry.dtypes)
        with pytest.raises(error, match=words) as caught:
            entry.matmul(A, B)
        message = str(caught.value)
        assert "\n" not in message and message.endswith("."), case


class OnGpu:
    """What the door sees of a torch tensor on a GPU."""

    __module__ = "torch"

    def __init__(self, shape, dtype="torch.float32", wants_gradient=False):
        self.shape, self.dtype, self.wants_gradient = shape, dtype, wants_gradient

    @property
    def __cuda_array_interface__(self):
        if self.wants_gradient:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        return {}


def test_arrays_on_the_gpu_pass_the_door_of_a_gpu_rung_only():
    def multiply(A, B):
        return A.shape[0], B.shape[1]

    gpu_rung = through_the_door(lambda: multiply, "warp", ("float32",), lambda: None, gpu=True)
    assert gpu_rung(OnGpu((0, 4)), OnGpu((4, 2))) == (0, 2)  # its zeros belong on the GPU as well
    assert gpu_rung(OnGpu((3, 4), wants_gradient=True), OnGpu((4, 2))) == (3, 2)
    with pytest.raises(TypeError, match=r"A has dtype torch.float64, .* A\.to\(torch\.float32\)"):
        gpu_rung(OnGpu((3, 4), "torch.float64"), OnGpu((4, 2)))
    with pytest.raises(TypeError, match="NumPy array or an array on the GPU is needed"):
        gpu_rung([[1.0]], OnGpu((1, 1)))
    cpu_rung = through_the_door(lambda: multiply, "loops", ("float32",), lambda: None)
    with pytest.raises(TypeError, match=r"A is of type .*OnGpu, but a 2-D NumPy array is needed"):
        cpu_rung(OnGpu((3, 4)), OnGpu((4, 2)))


def test_fastmath_settings_do_not_share_machine_code():
    """(1 + e)(1 - e) - 1 is -e^2; with a rounding after the product, as strict IEEE asks, it is 0."""
    e = 2.0**-30
    A, B = np.full((1, 1), 1 + e), np.full((1, 1), 1 - e)
    for permissions, expected in (
        (FUSE_AND_REORDER, -(e**2)),
        (frozenset(), 0.0),
        (FUSE_AND_REORDER, -(e**2)),
    ):
        C = np.full((1, 1), -1.0)
        compiled_loops("ikj", permissions)(A, B, C)
        assert C[0, 0] == expected


def test_threads_prefer_short_edges_to_a_part_that_is_hardly_smaller():
    from course_lib.circles.threads import grid

    assert grid(4096, 256, 4, 8) == (4, 1)  # 1 x 4 has parts 0.15 % smaller and edges 3.2 times as long
    assert grid(1024, 1024, 4, 8) == (2, 2) and grid(3000, 3000, 6, 8) == (2, 3)
    assert grid(5, 1000, 4, 8) == (1, 4) and grid(1, 1, 4, 8) == (1, 1)  # no more parts than there are tiles
