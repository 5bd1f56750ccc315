"""The kernels of circle 6 multiply rightly: their Python source, run on the CPU thread by thread."""

import importlib

import numpy as np
import pytest

pytestmark = pytest.mark.needs("greenlet")

SQUARE = ("naive", "coalesced", "tiled")
BY_TILE = ("1d", "2d", "vectorised", "warptiled")
WITH_WIDE_LOADS = ("vectorised", "warptiled")  # 16 bytes at a time where K and N are multiples of four


def rung(name):
    return importlib.import_module(f"course_lib.circles.cuda_{name}")


def multiply(kernel, rows, columns, block, A, B):
    """Return the kernel's C."""
    from plain_kernels import run

    C = np.full((len(A), B.shape[1]), np.nan, np.float32)
    run(kernel, (-(-B.shape[1] // columns), -(-len(A) // rows)), block, A, B, C)
    return C


def assert_right(kernel, rows, columns, block, shape, case):
    M, K, N = shape
    random = np.random.default_rng(0)
    A, B = (random.standard_normal(size).astype(np.float32) for size in ((M, K), (K, N)))
    C, exact = multiply(kernel, rows, columns, block, A, B), A.astype(np.float64) @ B.astype(np.float64)
    assert np.abs(C - exact).max() < 1e-5 * max(1.0, np.abs(exact).max()), case


def assert_tile_is_right(name, tile):
    """Multiply in a shape that the tile does not divide."""
    kernels = [rung(name).kernel(tile)]
    if name in WITH_WIDE_LOADS:
        kernels.append(rung(name).kernel(tile, wide=False))
    for kernel, K, N in zip(kernels, (20, 19), (44, 41), strict=False):
        assert_right(kernel, tile.BM, tile.BN, (tile.threads, 1), (35, K, N), (name, tile, K))


def test_square_blocks_of_threads():
    for name in SQUARE:
        for shape in ((1, 1, 1), (3, 35, 33), (33, 7, 5)):
            assert_right(getattr(rung(name), name), 32, 32, (32, 32), shape, (name, shape))


def test_the_first_tile_and_several_blocks_and_a_long_k():
    for name in BY_TILE:
        assert_tile_is_right(name, rung(name).TILES[0])
        tile = rung(name).TILES[-1]
        shape = (tile.BM + 3, 2 * tile.BK + 4, tile.BN + 8)
        assert_right(rung(name).kernel(tile), tile.BM, tile.BN, (tile.threads, 1), shape, (name, shape))


@pytest.mark.slow
def test_every_other_tile():
    for name in BY_TILE:
        for tile in rung(name).TILES[1:]:
            assert_tile_is_right(name, tile)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_and_inf_beyond_the_edge_are_not_touched():
    """A zero that fills a tile up must not meet an infinity of the other operand."""
    for name in BY_TILE:
        tile = rung(name).TILES[-1]
        A, B = np.ones((2, 5), np.float32), np.ones((5, 3), np.float32)
        A[1, 4], B[4, 2] = np.inf, np.nan
        kernel = rung(name).kernel(tile, **({"wide": False} if name in WITH_WIDE_LOADS else {}))
        C = multiply(kernel, tile.BM, tile.BN, (tile.threads, 1), A, B)
        assert C[0, 0] == 5 and np.isposinf(C[1, 0]) and np.isnan(C[0, 2]) and np.isnan(C[1, 2]), name


def test_a_tile_that_no_block_can_compute_is_refused():
    from course_lib.circles.cuda_tuning import CudaTile

    for sizes, words in (
        ({"BM": 64, "BN": 64, "BK": 8, "TM": 48, "TN": 1}, "does not divide evenly"),
        ({"BM": 128, "BN": 128, "BK": 1, "TM": 8, "TN": 8}, "does not divide evenly"),
        ({"BM": 64, "BN": 64, "BK": 64}, "has 4096 threads"),
        ({"BM": 4, "BN": 4, "BK": 4}, "has 16 threads"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            CudaTile(**sizes)
        assert str(caught.value).endswith(".") and "\n" not in str(caught.value), sizes
