"""The rungs of circles 3 to 5 beyond what every rung must do: edges, widths of tiles, error bounds, code."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.ladder import operands
from course_lib.measure import hardware, machine


def imports():
    global blocked, openblas, simd, strassen, strassen_fused, threads, unrolled
    from course_lib.circles import blocked, openblas, simd, strassen, strassen_fused, threads, unrolled


DTYPES = ("float32", "float64")
#: Sizes around the tile (MR = 6, NR up to 64), the depth of a block (KC = 512) and its columns.
EDGES = ((1, 1, 1), (5, 511, 63), (6, 512, 64), (7, 513, 65), (12, 1030, 128), (13, 100, 1100), (70, 9, 16))
RUNGS = {
    "simd": lambda A, B: simd.matmul(A, B),
    "threads": lambda A, B: threads.matmul(A, B),
    "unrolled": lambda A, B: unrolled.matmul(A, B),
    "blocked": lambda A, B: blocked.matmul(A, B, block=8),
    "strassen": lambda A, B: strassen.matmul(A, B, cutoff=3),
    "strassen-fused": lambda A, B: strassen_fused.matmul(A, B, smallest=2),
    "openblas": lambda A, B: openblas.matmul(A, B),
}


def exact(A, B):
    return A.astype(np.longdouble) @ B.astype(np.longdouble)


def guarded(A, B):
    """Copies of A and B that lie between NaN: a read outside would show in the result."""
    out = []
    for X in (A, B):
        around = np.full(X.size + 512, np.nan, X.dtype)
        around[256:-256] = X.reshape(-1)
        out.append(around[256:-256].reshape(X.shape))
    return out


@pytest.mark.parametrize("name", RUNGS)
def test_edges_are_right_and_nothing_outside_is_read(name):
    levels = 12 if name == "strassen" else 1
    for dtype, shape in itertools.product(DTYPES, EDGES):
        A, B = guarded(*operands(shape, dtype))
        C = RUNGS[name](A, B)
        scale = np.abs(A).astype(float) @ np.abs(B).astype(float)
        size = scale.max() * levels if "strassen" in name else scale
        bound = 2 * shape[1] * np.finfo(dtype).eps * size
        assert np.all(np.abs(C - exact(A, B)) <= bound), (dtype, shape)


def test_a_tile_writes_nothing_beside_itself():
    """Every tile size at the edge, into the middle of a larger C."""
    for dtype in DTYPES:
        depth, width = 5, simd.ROW_BYTES // np.dtype(dtype).itemsize
        A, B = operands((simd.MR, depth, width), dtype)
        spare = np.full(simd.MR * (simd.KC + width), np.nan, dtype)
        for rows in range(1, simd.MR + 1):
            for columns in (1, width // 2, width - 1, width):
                C = np.full((10, 3 * width), 7.0, dtype)
                panel = np.empty(depth * width, dtype)
                simd.pack(B.reshape(-1), 0, width, depth, columns, panel)
                start = 2 * C.shape[1] + width
                where = (C.reshape(-1), start, C.shape[1])
                simd.edge_tile(rows, columns, depth, A.reshape(-1), 0, depth, panel, 0, *where, True, spare)
                inside = C[2 : 2 + rows, width : width + columns]
                assert np.allclose(inside, 7 + A[:rows] @ B[:, :columns], rtol=1e-5), dtype
                inside[:] = 7
                assert np.all(C == 7.0), dtype


ALL_THAT_USE_TILES = '{"float32": (simd.matmul, fused), "float64": (simd.matmul, threads.matmul)}'


@pytest.mark.parametrize(
    ("bits", "cpu", "rungs"),
    [
        pytest.param(256, "haswell", '{"float32": (simd.matmul,)}', id="256-haswell"),
        pytest.param(256, "haswell", ALL_THAT_USE_TILES, marks=pytest.mark.slow, id="256-haswell-all"),
        pytest.param(128, "nehalem", ALL_THAT_USE_TILES, marks=pytest.mark.slow, id="128-nehalem-all"),
    ],
)
def test_narrower_tiles_are_right_too(bits, cpu, rungs):
    """As on an older CPU: LLVM is told to know no wider registers (16 of them), and no FMA on the oldest."""
    if bits > hardware.simd()[1] or "sse2" not in hardware.cpu_features():
        pytest.skip(f"this CPU has no {bits}-bit vectors of x86")
    program = f"""
import numpy as np
from course_lib.circles import simd, strassen_fused, threads
from course_lib.measure.assembly import inspect
assert simd.BITS == {bits}
def fused(A, B):
    return strassen_fused.matmul(A, B, smallest=2)
rungs = {rungs}
for dtype, multiplies in rungs.items():
    for M, K, N in ((7, 513, 65), (30, 40, 33)):
        A, B = np.random.rand(M, K).astype(dtype), np.random.rand(K, N).astype(dtype)
        for multiply in multiplies:
            assert np.allclose(multiply(A, B), A @ B, rtol=1e-4), (multiply, dtype, M, K, N)
from course_lib.views.machine_code import spills
loop = inspect(simd.micro_kernel).hot
print(loop.vector_bits, spills(loop))
"""
    narrow = {"COURSE_LIB_SIMD_BITS": str(bits), "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    environment = {**os.environ, **narrow}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(bits), "0"]


def test_strassen_keeps_its_error_bound_and_is_less_exact_than_the_classical_product():
    for dtype in DTYPES:
        for levels, size in [(1, 256), (2, 256), (4, 250)]:
            A, B = operands((size, size, size), dtype)
            cutoff = -(-size // 2**levels)
            error = np.max(np.abs(strassen.matmul(A, B, cutoff=cutoff) - exact(A, B)))
            classical = np.max(np.abs(simd.matmul(A, B) - exact(A, B)))
            assert classical < error <= strassen.error_bound(A, B, levels), dtype


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(1, 70)] * 3), st.integers(1, 20), st.sampled_from(DTYPES), st.booleans())
def test_strassen_is_right_for_any_shape_and_cutoff(shape, cutoff, dtype, fused):
    A, B = operands(shape, dtype, seed=cutoff)
    if fused:
        C, levels = strassen_fused.matmul(A, B, smallest=cutoff), 1
    else:
        C, levels = strassen.matmul(A, B, cutoff=cutoff), max(max(shape) // cutoff, 1).bit_length()
    assert C.shape == (shape[0], shape[2]) and C.dtype == dtype
    assert np.max(np.abs(C - exact(A, B))) <= strassen.error_bound(A, B, levels)


def test_the_seven_products_make_the_matrix_product():
    """The sum over p of LEFT[p] x RIGHT[p] x INTO[p] is the tensor of the product: an identity, no sample."""
    tensor = np.einsum("pa,pb,pc->abc", strassen.LEFT, strassen.RIGHT, strassen.INTO)
    wanted = np.zeros((4, 4, 4), int)
    for i, j, k in np.ndindex(2, 2, 2):
        wanted[2 * i + k, 2 * k + j, 2 * i + j] = 1
    assert np.array_equal(tensor, wanted)


def test_strassen_leaves_what_would_spread_to_the_classical_product():
    for multiply in [strassen.matmul, strassen_fused.matmul]:
        for odd in [np.nan, np.inf, -np.inf, 3e38]:
            small = {"cutoff": 2} if multiply is strassen.matmul else {"smallest": 2}
            A, B = operands((8, 8, 8), "float32")
            A[1, 2] = odd
            expected = simd.matmul(A, B)
            assert np.array_equal(multiply(A, B, **small), expected, equal_nan=True), (multiply, odd)
            assert np.isfinite(expected[0]).all(), (multiply, odd)


def test_products_in_several_python_threads_do_not_mix_their_memory():
    from concurrent.futures import ThreadPoolExecutor

    pairs = [operands((90, 700, 140), "float32", seed) for seed in range(6)]
    wanted = [simd.matmul(*pair) for pair in pairs]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            got = list(pool.map(lambda pair: simd.matmul(*pair), pairs))
            assert all(np.array_equal(one, other) for one, other in zip(got, wanted, strict=True))


def test_products_on_all_cores_from_several_python_threads():
    """On the threading layer that aborts the process when two callers meet."""
    program = """
import threading
import numpy as np
from course_lib.circles import threads
A = np.random.rand(200, 200)
wanted = threads.matmul(A, A)
def many():
    for _ in range(30):
        assert np.array_equal(threads.matmul(A, A), wanted)
callers = [threading.Thread(target=many) for _ in range(3)]
[caller.start() for caller in callers]
[caller.join() for caller in callers]
"""
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_second_openblas_takes_the_kernels_it_is_told(monkeypatch):
    if machine.missing("openblas"):
        pytest.skip(machine.missing("openblas"))
    from threadpoolctl import threadpool_info

    choice = machine.openblas_choice()
    if choice is not None:
        assert openblas.kernels().lower() == choice.lower()
    if machine.describe().simd == "AVX-512":
        assert openblas.kernels("Haswell") == "Haswell"
    A, B = operands((20, 30, 40), "float64")
    assert np.allclose(openblas.matmul(A, B), A @ B)
    loaded = [one for one in threadpool_info() if one.get("internal_api") == "openblas"]
    assert len(loaded) >= 2  # both can be held to a number of threads
