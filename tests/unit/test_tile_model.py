"""Tiles and blocks that follow from a core's numbers, beside what was worked out on paper."""

from dataclasses import replace

from view_samples import peaks

from course_lib.measure.hardware import CacheLevel
from course_lib.measure.tile_model import Core, best, blocks, share


def test_the_tile_follows_from_registers_latency_and_loads():
    for core, tile in (
        (Core(32, 8, 1.0), (6, 4)),  # 24 sums, 4 of the row of B, 1 of A: 29; 0.417 loads an FMA
        (Core(16, 8, 1.0), (6, 2)),  # 12 + 2 + 1 = 15; (2, 4) would need 13, and loads 0.75 instead of 0.67
        (Core(16, 14, 1.0), (14, 1)),  # more in flight than 12: the most sums count, though each has a load
        (Core(32, 8, 0.2), (6, 4)),  # loads alone: the fewest
    ):
        assert best(core) == tile, core
    core = Core(32, 8, 0.5)
    # one sum of eight; 7 loads take 14 slots for 12 FMAs; 10 take 20 for 24
    assert (share(1, 1, core), share(4, 3, core), share(6, 4, core)) == (1 / 8, 12 / 14, 1)


def test_blocks_follow_from_the_caches():
    caches = [CacheLevel(n, size, 64, 16, 1) for n, size in ((1, 2**15), (2, 2**20), (3, 2**25))]
    limits = replace(peaks(), reads={"L1": 200.0, "memory": 18.0})
    # tile: 3,072 bytes at 18 GB/s, 171 ns; a step: 768 FLOP at 100 GFLOP/s, 7.7 ns: 444 steps for 5 %
    assert blocks(6, 64, 4, limits, caches) == {"KC": 512, "NC": 256, "MC": 8190}
