"""Every CUDA rung of the ladder in the tracer: right for any shape, no hazard, and the counts it claims.

The counts are derived here from the tile, never from a run. A warp's request for 32 numbers that lie side by
side is 4 sectors of 32 bytes, or one wavefront of the 32 banks of shared memory. The tracer counts accesses
as the source has them: four numbers a thread are four requests, which a GPU joins into one of 16 bytes.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from course_lib import ladder


def imports():
    global CudaTile, trace, SQUARE, KERNELS, KINDS, OF_RUNG
    from course_lib.circles.cuda_tuning import CudaTile
    from course_lib.simulators.gpu import trace

    SQUARE = CudaTile(BM=32, BN=32, BK=32)  # what the rungs without a choice of tiles compute with a block
    KERNELS = list(kernels())
    KINDS = {(one.rung, one.wide): one for one in reversed(KERNELS)}  # with the first tile of each
    OF_RUNG = {id: [one for one in KERNELS if one.rung == id] for id in RUNGS}


ONE_KERNEL = {"cuda-naive": "naive", "cuda-coalesced": "coalesced", "cuda-tiled": "tiled"}
WIDE = ("cuda-vectorised", "cuda-warptiled")  # these are compiled twice, for rows of 16 bytes and for others
RUNGS = [entry.id for entry in ladder.LADDER if entry.id.startswith("cuda-")]
GUARD = 64  # numbers before and after C that nobody may write


@dataclass(frozen=True)
class Launched:
    """A kernel with the tile it was made for."""

    rung: str
    kernel: Any
    tile: Any
    wide: bool | None = None  # None: the rung makes no difference

    def __str__(self) -> str:
        width = {None: "", True: " wide", False: " narrow"}[self.wide]
        return f"{self.rung} {self.tile}{width}"


def kernels():
    for id in RUNGS:
        module = ladder.rung(id).module()
        if id in ONE_KERNEL:
            yield Launched(id, getattr(module, ONE_KERNEL[id]), SQUARE)
        for tile in getattr(module, "TILES", ()):
            for wide in (True, False) if id in WIDE else (None,):
                options = {} if wide is None else {"wide": wide}
                yield Launched(id, module.kernel(tile, **options), tile, wide)


def traced(one, M, K, N, seed=0, **options):
    """Return the trace, C with its surroundings, and A and B as they were before."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((M, K)).astype(np.float32)
    B = random.standard_normal((K, N)).astype(np.float32)
    memory = np.full(GUARD + M * N + GUARD, np.nan, np.float32)
    C = memory[GUARD : GUARD + M * N].reshape(M, N)
    grid = (-(-N // one.tile.BN), -(-M // one.tile.BM))
    block = (32, 32) if one.tile is SQUARE else one.tile.threads
    A_given, B_given = A.copy(), B.copy()
    seen = trace(one.kernel, grid, block, A_given, B_given, C, progress=False, **options)
    assert np.array_equal(A, A_given) and np.array_equal(B, B_given), "an operand was written"
    return seen, memory, C, A, B


def assert_right(memory, C, A, B):
    """|C - exact| <= 2 K u |A||B|, twice the bound of a float32 sum of K products (Higham 2002, 3.5)."""
    exact = A.astype(np.float64) @ B
    bound = 2 * A.shape[1] * 2.0**-24 * (np.abs(A).astype(np.float64) @ np.abs(B))
    assert (np.abs(C - exact) <= bound).all()  # NaN, where nothing was written, is not below anything
    assert np.isnan(memory[:GUARD]).all() and np.isnan(memory[-GUARD:]).all(), "written outside of C"


def shapes(one):
    """Return shapes for a kernel: one element, within a tile, primes, whole tiles, tiles that stick out."""
    t = one.tile
    if one.wide:  # K and N multiples of four
        return [(1, 4, 4), (3, 8, 12), (31, 20, 36), (t.BM, 2 * t.BK, t.BN), (t.BM + 5, t.BK + 4, t.BN + 4)]
    return [(1, 1, 1), (3, 5, 7), (31, 19, 37), (t.BM, 2 * t.BK, t.BN), (t.BM + 5, t.BK + 3, t.BN + 1)]


def check_right(launched):
    for M, K, N in shapes(launched):
        seen, *result = traced(launched, M, K, N)
        assert_right(*result)
        assert seen.hazards == [], (str(launched), M, K, N)


@pytest.mark.parametrize("id", RUNGS)
def test_right_for_any_shape_and_without_a_hazard(id):
    for launched in KINDS.values():
        if launched.rung == id:
            check_right(launched)


@pytest.mark.slow
def test_right_with_every_tile():
    for launched in KERNELS:
        check_right(launched)


# -- counts ------------------------------------------------------------------------------------------------


def counts(seen):
    """Return {(array, kind): (requests, sectors or wavefronts)} over all lines."""
    total = defaultdict(lambda: [0, 0])
    for row in seen.global_accesses:
        total[row.array, row.kind][0] += row.requests
        total[row.array, row.kind][1] += row.sectors
    for row in seen.shared_accesses:
        total[row.array, row.kind][0] += row.requests
        total[row.array, row.kind][1] += row.wavefronts
    return {key: tuple(value) for key, value in total.items()}


def per_request(expected):
    """Return expected {key: (requests, cost of each)} with the cost of all."""
    return {key: (requests, requests * each) for key, (requests, each) in expected.items()}


def whole(one):
    """Return a shape of four whole tiles, M and N, and two steps along k."""
    return 2 * one.tile.BM, 2 * one.tile.BK, 2 * one.tile.BN


def without_tiles(M, K, N, a, b, c):
    """Every thread walks along k: sectors that a request of A, B, C takes."""
    warps = M * N // 32
    return {("A", "load"): (warps * K, a), ("B", "load"): (warps * K, b), ("C", "store"): (warps, c)}


def by_tiles(one, shape, fetch, store_c, a, b, **stores):
    """What every tiled rung does: (requests, cost of each) from the tile and the costs of one request.

    `fetch`: sectors of a request of A and B; `a`, `b`: wavefronts of a read; `store_a`, `store_b`: of a
    write; `turns`: steps along k that write to shared memory, if not K / BK.
    """
    t, (M, K, N) = one.tile, shape
    steps, blocks, warps = K // t.BK, (M // t.BM) * (N // t.BN), t.threads // 32
    turns = stores.get("turns", steps)
    return {
        ("A", "load"): (blocks * steps * t.BM * t.BK // 32, fetch),
        ("B", "load"): (blocks * steps * t.BK * t.BN // 32, fetch),
        ("C", "store"): (M * N // 32, store_c),
        ("a", "store"): (blocks * turns * t.BM * t.BK // 32, stores.get("store_a", 1)),
        ("b", "store"): (blocks * turns * t.BK * t.BN // 32, stores.get("store_b", 1)),
        ("a", "load"): (blocks * warps * K * t.TM, a),
        ("b", "load"): (blocks * warps * K * t.TN, b),
    }


def expected(one, shape):
    """Return what the rung's docstring claims, as numbers."""
    t = one.tile
    if one.rung == "cuda-naive":  # lanes: 32 rows of A and C, each in another sector; one number of B
        return without_tiles(*shape, a=32, b=1, c=32)
    if one.rung == "cuda-coalesced":
        return without_tiles(*shape, a=1, b=4, c=4)
    if one.rung == "cuda-tiled":  # a row of 32 lanes reads one number of a, and a row of b
        return by_tiles(one, shape, fetch=4, store_c=4, a=1, b=1)
    if one.rung == "cuda-1d":  # BK = 8: four rows of A, a sector each; BK = 16: two rows, two sectors each
        return by_tiles(one, shape, fetch=4, store_c=4, a=1, b=1)
    lanes = t.BN // t.TN  # that lie side by side in C
    columns = min(32, lanes) * t.TN // 32  # numbers of b that lie in one bank, of those that a warp wants
    apart = 32 // max(1, 8 // t.TN)  # sectors of C: TN numbers from a lane to the next, 8 to a sector
    if one.rung == "cuda-2d":  # the 32 / lanes rows of a lie TM * BK numbers apart: all in one bank
        return by_tiles(one, shape, fetch=4, store_c=apart, a=32 // lanes, b=columns)
    if one.rung == "cuda-vectorised":
        # Lanes fetch four numbers 16 bytes apart: two lanes a sector. A is written transposed: BK / 4 lanes
        # of a row write to rows of a that lie BM numbers apart, in one bank. b: 32 lanes, 4 numbers apart.
        return by_tiles(one, shape, fetch=16, store_c=apart, a=1, b=columns, store_a=t.BK // 4, store_b=4)
    # cuda-warptiled: 8 columns of lanes, 4 numbers apart, 4 rows; one turn more writes (zeros) than computes
    turns = shape[1] // t.BK + 1
    return by_tiles(one, shape, fetch=16, store_c=16, a=1, b=1, store_a=1, store_b=4, turns=turns)


@pytest.mark.parametrize("id", RUNGS)
def test_the_counts_are_those_of_the_docstring(id):
    for launched in OF_RUNG[id]:
        shape = whole(launched)
        seen, *result = traced(launched, *shape, races=False)
        assert_right(*result)
        assert counts(seen) == per_request(expected(launched, shape)), str(launched)
        M, K, N = shape
        assert seen.flops == 2 * M * K * N, str(launched)


def test_nan_and_inf_beyond_the_edge_are_not_touched():
    """A zero that fills a tile up must not meet an infinity of the other operand."""
    for one in (OF_RUNG[id][-1] for id in RUNGS):
        A, B, C = np.ones((2, 5), np.float32), np.ones((5, 3), np.float32), np.zeros((2, 3), np.float32)
        A[1, 4], B[4, 2] = np.inf, np.nan
        block = (32, 32) if one.tile is SQUARE else one.tile.threads
        trace(one.kernel, 1, block, A, B, C, progress=False)
        assert C[0, 0] == 5 and np.isposinf(C[1, 0]) and np.isnan(C[:, 2]).all(), str(one)


def test_a_tile_that_no_block_can_compute_is_refused():
    for sizes, words in (
        ({"BM": 64, "BN": 64, "BK": 8, "TM": 48, "TN": 1}, "does not divide evenly"),
        ({"BM": 64, "BN": 64, "BK": 64}, "has 4096 threads"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            CudaTile(**sizes)
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value), sizes
