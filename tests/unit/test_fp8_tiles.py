"""Tiles of the tuned kernels: what fits, by the limits that are stated."""

import pytest

from course_lib.fp8.tiles import MOST_ACCUMULATORS, SHARED_BYTES, TILES, Tile


def test_the_stages_are_those_that_fit():
    """As in the table of DeepGEMM's tiles, but for the room that the way out takes."""
    assert {
        (t.BM, t.BN): t.stages for t in (Tile(64, 128), Tile(128, 64), Tile(128, 128), Tile(128, 192))
    } == {
        (64, 128): 8,
        (128, 64): 8,
        (128, 128): 5,
        (128, 192): 4,
    }
    assert Tile(256, 128).stages == 3


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile_keeps_within_the_limits(tile):
    assert tile.accumulators <= MOST_ACCUMULATORS
    assert 2 <= tile.stages <= 8 and tile.shared_bytes + 1024 <= SHARED_BYTES
    assert tile.stages == 8 or tile.shared_bytes + 1024 + tile.stage_bytes > SHARED_BYTES
    assert tile.d_bytes % 1024 == 0 == (tile.BN * 128) % 1024  # swizzled tiles begin at multiples of 1024
    met = {(n0 % 128 + column) // 128 for n0 in range(0, 128 * tile.BN, tile.BN) for column in range(tile.BN)}
    assert len(met) == 1 + tile.straddles


def test_no_tile_meets_three_blocks_of_scales():
    for tile in TILES:
        for n0 in range(0, 128 * tile.BN, tile.BN):
            assert (n0 + tile.BN - 1) // 128 - n0 // 128 <= 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ((96, 128), "BM is 96, but a block computes 64, 128 or 256 rows"),
        ((128, 24), "BN is 24, but it must be a multiple of 16"),
        ((128, 176), "BN is 176, so a tile could meet three blocks of scales: take 144, 160 or 192"),
        ((256, 144), "needs 216 accumulators a thread, but above 192 registers spill"),
        ((128, 256), "needs 256 accumulators"),
        ((128, 128, 3), "cluster is 3, but it must be 1 or 2"),
    ],
)
def test_what_is_no_tile_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Tile(*wrong)
