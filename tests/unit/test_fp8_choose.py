"""The model that chooses tiles: its parts by hand, and its choices where the answer is known."""

import pytest

from course_lib.fp8.choose import H100, H200, choose, estimate, ranking
from course_lib.fp8.tiles import TILES, Tile
from course_lib.measure.gpu_published import PUBLISHED


def test_a_large_product_by_hand():
    """4096 x 7168 x 16384 in tiles of 128 x 128: 32 x 56, 66 pairs at a time, 128 blocks of K each."""
    found = estimate(Tile(128, 128, 2), 4096, 7168, 16384)
    assert found.turns == -(-32 * 28 // 66) == 14
    tensor = 128 * 128 * 128 / 4096
    l2 = ((64 + 128) * 128 + 512) / (6100 / 132)
    assert found.limit == "L2" and l2 > tensor
    assert found.cycles == pytest.approx(14 * 128 * l2 + 128 * 128 * 2 / 64)
    assert found.seconds == pytest.approx(found.cycles / 1.575e9)
    assert found.flops == pytest.approx(2 * 4096 * 7168 * 16384 / found.seconds)
    assert found.efficiency == pytest.approx(found.flops / (132 * 8192 * 1.575e9))


def test_an_h100_is_what_its_maker_publishes():
    assert (H100.sms, H100.bytes_per_s) == (PUBLISHED["H100"].sms, PUBLISHED["H100"].bytes_per_s)


def test_few_rows_wait_for_memory():
    found = choose(64, 24576, 1536)
    assert found.limit == "memory" and found.own_cycles < found.cycles
    moved = 64 * 1536 + 24576 * 1536 + 2 * 64 * 24576 + 4 * (64 + 192) * 12
    assert found.seconds == pytest.approx(moved / 4.8e12)
    assert choose(64, 24576, 1536, H100).seconds == pytest.approx(moved / H100.bytes_per_s)


def test_a_width_that_fills_the_wave_is_preferred():
    """256 x 7168: widths of 128 leave 20 of 132 multiprocessors idle, of 112 only four."""
    narrow, usual = (estimate(Tile(128, BN, 2), 256, 7168, 4096) for BN in (112, 128))
    assert narrow.turns == usual.turns == 1 and narrow.idle_share < usual.idle_share
    assert narrow.cycles < usual.cycles


def test_no_tile_of_the_table_is_better_than_the_chosen_one():
    for shape in ((1, 576, 7168), (128, 2112, 7168), (4096, 4096, 7168), (4096, 32768, 512)):
        every = ranking(*shape)
        assert len(every) == len(TILES) and every[0] == choose(*shape)
        order = [(one.cycles, one.own_cycles) for one in every]
        assert order == sorted(order)
        assert every[0].flops <= 2 * 4096 * 132 * 1.575e9


def test_large_products_take_large_tiles_in_pairs():
    best = choose(4096, 7168, 16384, H200)
    assert best.tile.cluster == 2 and best.tile.BM * best.tile.BN >= 128 * 160


def test_nothing_takes_no_time():
    assert estimate(Tile(128, 128), 0, 128, 0).cycles == 0
    assert choose(0, 128, 128).flops == choose(0, 128, 128).efficiency == 0
    for wrong in ((-1, 1, 1), (1, 1.5, 1), (1, 1, True)):
        with pytest.raises(ValueError, match="must be a whole number, 0 or more"):
            choose(*wrong)
