"""The tracer counts what a profiler would, runs kernels right, and finds what no kernel may do."""

import numpy as np
import pytest
from numba import cuda, float32

from course_lib.simulators.gpu import trace
from gpu_kernels.small import kernel, line_of
from gpu_kernels.stepped import TILE, tiled, transpose

# -- counts -------------------------------------------------------------------------------------------------


@cuda.jit
def copy_columns(A, B):
    i = cuda.threadIdx.x
    for j in range(A.shape[1]):
        B[i, j] = A[i, j]


@cuda.jit
def naive(A, B, C):
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        total = float32(0)
        for k in range(A.shape[1]):
            total += A[i, k] * B[k, j]
        C[i, j] = total


def product(kernel, M, K, N, **options):
    random = np.random.default_rng(3)
    A, B = random.random((M, K)).astype(np.float32), random.random((K, N)).astype(np.float32)
    C = np.full((M, N), np.nan, np.float32)
    seen = trace(kernel, (-(-N // TILE), -(-M // TILE)), (TILE, TILE), A, B, C, **options)
    return seen, C, A.astype(np.float64) @ B


def test_the_busiest_warp_is_that_with_most_requests_wherever_it_is():
    unequal = kernel("x, turns, out", "for n in range(turns[i // 32]):\n    out[i] += x[n]  # three requests")
    warps = 2000  # more lanes than are run at a time
    for busiest in (0, 777, warps - 1):
        turns = np.ones(warps, np.int64)
        turns[busiest] = 5
        seen = trace(unequal, warps // 8, 256, np.ones(5), turns, np.zeros(32 * warps))
        assert seen.imbalance == pytest.approx(16 / (4 + 12 / warps))
        assert "the busiest warp makes 16 requests to memory, a warp on average 4.01;" in str(seen.report())


def test_what_matmul_moves():
    seen, _, _ = product(naive, 64, 64, 64)
    tiles, _, _ = product(tiled, 64, 64, 64)
    assert tiles.flops == seen.flops == 2 * 64**3
    assert tiles.intensity > 6 * seen.intensity
    assert tiles.shared_bytes == 2 * 4 * TILE * TILE
    assert sum(tiles.barriers.values()) == 2 * 2 * 4 * 32  # 2 barriers, 2 tiles, 4 blocks of 32 warps


def test_some_blocks_stand_for_all():
    every, _, expected = product(tiled, 128, 64, 128)
    some, C, _ = product(tiled, 128, 64, 128, blocks=4)
    _, D, _ = product(tiled, 128, 64, 128, blocks=iter([(1, 2)]))
    assert some.row("A").sectors * 4 == every.row("A").sectors
    assert np.isfinite(C).sum() == 4 * 1024 and "4 of 16 blocks" in repr(some)
    np.testing.assert_allclose(D[64:96, 32:64], expected[64:96, 32:64], rtol=1e-5)
    assert np.isfinite(D).sum() == 1024


# -- control flow --------------------------------------------------------------------------------------------


JUMPS = """
total = 0
for k in range(i % 7, 40, 1 + i % 3):
    if k % 5 == 4:
        continue
    for l in range(k):
        if l > 6:
            break
        if l * k > 150:
            out[i] = -total
            return
        total += l
    if total > 200 and not (i % 2 == 0 or k < 20):
        break
out[i] = total if 3 < total < 180 else -1
"""


def test_break_continue_and_return_in_nested_loops():
    out, ours = np.zeros(96, np.int64), np.zeros(96, np.int64)
    trace(kernel("out", JUMPS), 3, 32, ours)
    jumped = kernel("i, out", JUMPS, device=True)
    for i in range(96):
        jumped.py_func(i, out)  # what Python makes of it
    assert ours.tolist() == out.tolist()


# -- steps and report ----------------------------------------------------------------------------------------


def test_the_steps_of_one_warp_are_kept():
    A = np.arange(4096, dtype=np.float32).reshape(64, 64)
    C = np.zeros_like(A)
    seen = trace(tiled, (2, 2), (32, 32), A, A, C, record=((1, 0), 3))
    load, store, *_ = seen.steps
    assert (load.array, load.kind, load.space, load.cost) == ("A", "load", "global", 4)
    assert load.places == tuple(3 * 64 + x for x in range(32))  # row 3 of the first tile of A
    assert (store.array, store.kind, store.places) == ("a", "store", tuple(3 * 32 + x for x in range(32)))
    last = seen.steps[-1]
    assert (last.array, last.places) == ("C", tuple(3 * 64 + 32 + x for x in range(32)))  # block (1, 0)
    assert [step.kind for step in seen.steps].count("barrier") == 4
    assert len(seen.steps) == 2 * (4 + 2 + 64) + 1 and not seen.steps_cut
    for record in ((4, 0), ((0, 0), 32)):
        with pytest.raises(ValueError, match=r"record|blocks"):
            trace(tiled, (2, 2), (32, 32), A, A, C, record=record)


def test_the_report_says_what_each_line_costs_and_what_is_wrong():
    A = np.arange(1024, dtype=np.float32).reshape(32, 32)
    report = trace(transpose, 1, (32, 32), A, np.zeros_like(A)).report()
    text, page = str(report), report._repr_html_()
    for said in (text, page):
        assert "s load: 32 wavefronts for each of 32 requests (bank conflicts)" in said
        assert "A load: 4 sectors for each of 32 requests" in said
        assert "No hazards." in said
    body = "s = cuda.shared.array(64, float32)\ns[i] = x[i]\nx[i] = s[i ^ 1]\nx[i] = s[63 - i]  # races"
    racing = kernel("x", body, float32=float32)
    report = trace(racing, 1, 64, np.ones(64, np.float32)).report()
    text, page, line = str(report), report._repr_html_(), line_of(racing, "races")
    assert f"line {line}, block (0, 0, 0): thread" in text and "no barrier is between them" in text
    assert text.index("of another warp") < text.index("of the same warp")  # though it is lower down
    assert "&lt;" not in text and "<b" in page and "hazard</b> race" in page
    assert str(trace(copy_columns, 1, 32, A, A.copy()).report()).count("together they would be 4") == 2
