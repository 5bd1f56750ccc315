"""The kernels of circle 6 multiply rightly: their Python source, run on the CPU thread by thread."""

import numpy as np
import pytest
from tools.looped import looped

pytest.importorskip("greenlet")

from plain_kernels import run

from course_lib.circles import (
    cuda_1d,
    cuda_2d,
    cuda_coalesced,
    cuda_naive,
    cuda_tiled,
    cuda_vectorised,
    cuda_warptiled,
)
from course_lib.circles.cuda_tuning import Tile

SQUARE = {"naive": cuda_naive.naive, "coalesced": cuda_coalesced.coalesced, "tiled": cuda_tiled.tiled}
BY_TILE = {"1d": cuda_1d, "2d": cuda_2d, "vectorised": cuda_vectorised, "warptiled": cuda_warptiled}
CASES = [
    pytest.param(name, tile, id=f"{name}-{tile}", marks=[pytest.mark.slow] if number else [])
    for name in BY_TILE
    for number, tile in enumerate(BY_TILE[name].TILES)
]


def multiplied(kernel, rows, columns, block, shape, seed=0):
    """Return the kernel's C, its frame, and what both should be."""
    M, K, N = shape
    random = np.random.default_rng(seed)
    A, B = (random.standard_normal(size).astype(np.float32) for size in ((M, K), (K, N)))
    C = np.full((M, N), np.nan, np.float32)
    run(kernel, (-(-N // columns), -(-M // rows)), block, A, B, C)
    return C, A.astype(np.float64) @ B.astype(np.float64)


def assert_right(C, exact):
    assert C.shape == exact.shape
    assert np.abs(C - exact).max() < 1e-5 * max(1.0, np.abs(exact).max())


@looped("shape", [(1, 1, 1), (3, 35, 33), (33, 7, 5)])
@looped("name", SQUARE)
def test_square_blocks_of_threads(name, shape):
    assert_right(*multiplied(SQUARE[name], 32, 32, (32, 32), shape))


@looped("name, tile", CASES)
def test_every_tile_on_a_shape_that_it_does_not_divide(name, tile):
    kernels = [BY_TILE[name].kernel(tile)]
    if name in ("vectorised", "warptiled"):  # multiples of four for 16-byte loads, anything without them
        kernels.append(BY_TILE[name].kernel(tile, wide=False))
    for kernel, K, N in zip(kernels, (20, 19), (44, 41), strict=False):
        assert_right(*multiplied(kernel, tile.BM, tile.BN, (tile.threads, 1), (35, K, N)))


@looped("name", BY_TILE)
def test_several_blocks_and_a_long_k(name):
    tile = BY_TILE[name].TILES[-1]
    shape = (tile.BM + 3, 2 * tile.BK + 4, tile.BN + 8)
    assert_right(*multiplied(BY_TILE[name].kernel(tile), tile.BM, tile.BN, (tile.threads, 1), shape))


@pytest.mark.filterwarnings("ignore:invalid value")
@looped("name", BY_TILE)
def test_nan_and_inf_beyond_the_edge_are_not_touched(name):
    """A zero that fills a tile up must not meet an infinity of the other operand."""
    tile = BY_TILE[name].TILES[-1]
    A, B = np.ones((2, 5), np.float32), np.ones((5, 3), np.float32)
    A[1, 4], B[4, 2] = np.inf, np.nan
    C = np.zeros((2, 3), np.float32)
    wide = {"wide": False} if name in ("vectorised", "warptiled") else {}
    run(BY_TILE[name].kernel(tile, **wide), (1, 1), (tile.threads, 1), A, B, C)
    assert C[0, 0] == 5 and np.isposinf(C[1, 0]) and np.isnan(C[0, 2]) and np.isnan(C[1, 2])


@looped(
    "sizes, words",
    [
        ({"BM": 64, "BN": 64, "BK": 8, "TM": 48, "TN": 1}, "does not divide evenly"),
        ({"BM": 128, "BN": 128, "BK": 1, "TM": 8, "TN": 8}, "does not divide evenly"),
        ({"BM": 64, "BN": 64, "BK": 64}, "has 4096 threads"),
        ({"BM": 4, "BN": 4, "BK": 4}, "has 16 threads"),
    ],
)
def test_a_tile_that_no_block_can_compute_is_refused(sizes, words):
    with pytest.raises(ValueError, match=words) as caught:
        Tile(**sizes)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
