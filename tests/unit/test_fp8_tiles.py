"""Tiles, their order, their bytes in shared memory, what TMA is told, and which tile is best."""

import ctypes
import itertools
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.fp8 import choice, jit, kernels_folder
from course_lib.fp8.choice import best, candidates
from course_lib.fp8.choose import H100, H200, choose, estimate
from course_lib.fp8.schedule import Schedule
from course_lib.fp8.swizzle import WIDTHS, conflicts, swizzled
from course_lib.fp8.tiles import MOST_ACCUMULATORS, SHARED_BYTES, TILES, Tile

# -- what fits -----------------------------------------------------------------------------------------------


def test_every_tile_keeps_within_the_limits():
    for tile in TILES:
        assert tile.accumulators <= MOST_ACCUMULATORS, tile
        assert 2 <= tile.stages <= 8 and tile.shared_bytes + 1024 <= SHARED_BYTES, tile
        assert tile.stages == 8 or tile.shared_bytes + 1024 + tile.stage_bytes > SHARED_BYTES, tile
        assert tile.d_bytes % 1024 == 0, tile  # swizzled tiles begin at multiples of 1024
        starts = range(0, 128 * tile.BN, tile.BN)
        met = {(start % 128 + column) // 128 for start in starts for column in range(tile.BN)}
        assert len(met) == 1 + tile.straddles, tile  # blocks of scales
    stages = {(64, 128): 8, (128, 64): 8, (128, 128): 5, (128, 192): 4, (256, 128): 3}
    assert {sides: Tile(*sides).stages for sides in stages} == stages  # as in DeepGEMM's table
    for wrong, words in (
        ((128, 24), "BN is 24, but it must be a multiple of 16"),
        ((128, 176), "BN is 176, so a tile could meet three blocks of scales: take 144, 160 or 192"),
        ((256, 144), "needs 216 accumulators a thread, but above 192 registers spill"),
    ):
        with pytest.raises(ValueError, match=words):
            Tile(*wrong)


# -- the order -----------------------------------------------------------------------------------------------

SCHEDULES = st.builds(
    Schedule,
    rows=st.integers(0, 40),
    columns=st.integers(0, 40),
    clusters=st.integers(1, 70),
    cluster=st.sampled_from((1, 2, 4)),
    band=st.sampled_from((1, 3, 8, 16)),
)


@given(SCHEDULES, st.integers(0, 50), st.integers(0, 69))
def test_every_tile_comes_once_and_teams_agree(schedule, turn, number):
    tiles = [tile for turn in range(schedule.turns) for _, tile in schedule.turn(turn)]
    inside = [tile for tile in tiles if tile[1] < schedule.columns]
    wanted = {(row, column) for row in range(schedule.rows) for column in range(schedule.columns)}
    assert len(inside) == len(wanted) and set(inside) == wanted
    assert all(tile[1] - schedule.columns < schedule.cluster - 1 for tile in tiles if tile not in wanted)
    cluster = [schedule.tile(turn, number, rank) for rank in range(schedule.cluster)]
    assert len({tile is None for tile in cluster}) == 1  # they end together
    if cluster[0]:
        row, column = cluster[0]
        assert cluster == [(row, column + rank) for rank in range(schedule.cluster)]


CALLER = """
#include "scheduler.cuh"
extern "C" int tile(int rows, int columns, int clusters, int cluster, int band, int turn, int number,
                    int rank, int* out) {
  Schedule schedule{rows, columns, clusters, cluster, band};
  return schedule.tile(turn, number, rank, out[0], out[1]);
}
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The kernels' scheduler, compiled for this machine: it is plain C++."""
    folder = tmp_path_factory.mktemp("scheduler")
    (folder / "caller.cpp").write_text(CALLER)
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    options = ["-shared", "-fPIC", "-std=c++17", f"-I{kernels_folder()}", "caller.cpp", "-o", "scheduler.so"]
    subprocess.run([compiler, *options], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "scheduler.so"))


@pytest.mark.needs("c++ compiler")
@given(schedule=SCHEDULES)
def test_the_kernels_deal_the_same_tiles(text, schedule):
    out = (ctypes.c_int * 2)()
    numbers = (schedule.rows, schedule.columns, schedule.clusters, schedule.cluster, schedule.band)
    clusters = range(0, schedule.clusters, 3)
    for place in itertools.product(range(schedule.turns + 1), clusters, range(schedule.cluster)):
        dealt = tuple(out) if text.tile(*numbers, *place, out) else None
        assert dealt == schedule.tile(*place), place


# -- bytes in shared memory ----------------------------------------------------------------------------------


def test_swizzled_bytes_are_where_the_documents_say():
    for width in WIDTHS:
        places = [swizzled(byte, width) for byte in range(8 * width * 4)]
        assert sorted(places) == list(range(len(places))), width  # every byte has one place
        for byte, place in enumerate(places):  # pieces of 16 stay together, nothing leaves its row
            assert (place % 16, place // width) == (byte % 16, byte // width), (width, byte)
    for row in range(16):  # PTX ISA, figure of the 128-byte mode
        pieces = [swizzled(row * 128 + 16 * piece) // 16 % 8 for piece in range(8)]
        assert pieces == [piece ^ row % 8 for piece in range(8)]
    for piece in range(8):
        assert conflicts([swizzled(row * 128 + 16 * piece) for row in range(8)]) == 1
        assert conflicts([row * 128 + 16 * piece for row in range(8)]) == 8
    plain = {width: conflicts([row * width for row in range(8)]) for width in WIDTHS}
    assert plain == {32: 2, 64: 4, 128: 8}  # rows of 32 bytes: four of them fill all banks


# -- which tile is best --------------------------------------------------------------------------------------


def test_the_model_weighs_memory_waves_and_what_feeds_the_tensor_core():
    few = choose(64, 24576, 1536)
    assert few.limit == "memory" and few.own_cycles < few.cycles
    moved = 64 * 1536 + 24576 * 1536 + 2 * 64 * 24576 + 4 * (64 + 192) * 12
    assert few.seconds == pytest.approx(moved / 4.8e12)
    # 256 x 7168: widths of 128 leave 20 of 132 multiprocessors idle, of 112 only four
    narrow, usual = (estimate(Tile(128, BN, 2), 256, 7168, 4096) for BN in (112, 128))
    assert narrow.turns == usual.turns == 1 and narrow.idle_share < usual.idle_share
    assert narrow.cycles < usual.cycles
    # shared memory feeds no 256 x 80; 112 is 128 cycles ahead of 128, whose columns have one scale
    assert estimate(Tile(256, 80, 2), 4096, 7168, 16384).limit == "shared memory"
    for shape, tile in (
        ((4096, 7168, 16384), Tile(256, 128, 2)),
        ((4096, 7168, 2048), Tile(256, 128, 2)),
        ((4096, 32768, 512), Tile(128, 160, 2)),
        ((256, 7168, 4096), Tile(128, 112, 2)),
    ):
        assert choose(*shape).tile == candidates(*shape)[0].tile == tile, shape


# -- what a search has found ---------------------------------------------------------------------------------

SHAPE = (4096, 4096, 7168)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("NINE_CIRCLES_HOME", str(tmp_path))
    monkeypatch.setattr(choice, "_known", {})
    monkeypatch.setattr(jit, "compiler", lambda: "NVRTC 13.0")
    choice._text.cache_clear()
    yield
    choice._text.cache_clear()


def test_what_was_kept_is_the_best_of_its_kind(fresh, monkeypatch):
    favourite, kept = candidates(*SHAPE, H200)[0], candidates(*SHAPE, H200)[4]
    assert best(*SHAPE, H200) == favourite
    choice.keep(kept, 1e-4, *SHAPE, H200)
    assert best(*SHAPE, H200) == kept
    monkeypatch.setattr(choice, "_known", {})  # another process
    assert best(*SHAPE, H200) == kept == best(3000, 4096, 7168, H200)  # of the same class of rows
    for other in ((2048, 4096, 7168, H200), (4096, 4096, 7296, H200), (*SHAPE, H100)):
        assert best(*other) == candidates(*other)[0], other
    monkeypatch.setattr(choice, "_known", {})
    monkeypatch.setattr(jit, "compiler", lambda: "NVRTC 13.1")  # what was found belongs to the compiler
    choice._text.cache_clear()
    assert best(*SHAPE, H200) == favourite
