"""Tiles against waves: the map is the schedule's, the words the model's, the controls reach every tile."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import views
from course_lib.fp8.choose import estimate, ranking
from course_lib.fp8.schedule import Schedule
from course_lib.fp8.tiles import Tile
from course_lib.views.tile_explorer import FIRST, finding, tile_name, tile_sawtooth, waves

SHAPE = (4096, 7168, 16384)
PAIRS = Tile(128, 128, 2)


@pytest.fixture(scope="module")
def view():
    view = views.tile_choice(*SHAPE)
    view.rows.value, view.columns.value, view.cluster.value = 128, 128, 2
    return view


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 2), st.integers(1, 16))
def test_the_map_has_every_tile_in_the_turn_that_the_schedule_says(rows, columns, clusters, cluster, band):
    schedule = Schedule(rows, columns, clusters, cluster, band)
    expected = np.full((rows, columns + 1), -1)  # the last unit of a row may stick out by one
    for turn in range(schedule.turns):
        for _, (row, column) in schedule.turn(turn):
            expected[row, column] = turn
    assert np.array_equal(waves(schedule), expected[:, :columns])


def test_the_saw_names_its_steepest_fall_and_the_shares_at_m():
    alt = tile_sawtooth((256, 7168, 4096), (PAIRS, Tile(128, 112, 2))).alt
    before, after = (estimate(PAIRS, M, 7168, 4096).efficiency for M in (256, 272))
    assert f"falls from {100 * before:.0f} % to {100 * after:.0f} % (M = 256 to 272)" in alt
    share = estimate(Tile(128, 112, 2), 256, 7168, 4096).efficiency
    assert f"At M = 256: 128 x 128 (pairs) {100 * before:.0f} %; 128 x 112 (pairs) {100 * share:.0f} %" in alt


def test_what_is_said_of_a_tile_is_what_the_model_says(view):
    found = estimate(PAIRS, *SHAPE)
    said = view.picture.value
    assert finding(found) == "Model: 128 x 128 (pairs): 14 waves, 91 % of the peak, limited by L2"
    assert finding(found) in said and finding(found) in view.status.value
    for words in ("76 tiles, 42 % idle", "194 KiB, 5 stages", "128 registers a thread", "618 µs"):
        assert words in said
    assert f"{found.flops / 1e12:,.0f} TFLOP/s" in said and "nothing is measured" in said
    read = 32 * 56 * 128 * ((64 + 128) * 128 + 512) / 2**30
    assert f"{read:.2f} GiB" in said


def test_the_still_twin_names_the_best_tiles_of_the_ranking(view):
    still, first = view.static(), views.tile_choice(256, 7168, 4096)
    for one in ranking(*SHAPE)[:FIRST]:
        assert f"{tile_name(one.tile)} {one.flops / 1e12:,.0f} TFLOP/s" in still.text
    assert "nothing is measured" in still.text and "Share of the peak against M" in still.text
    assert first.tile == ranking(256, 7168, 4096)[0].tile == Tile(128, 112, 2)


def test_other_rows_keep_the_width_or_take_the_nearest_and_a_size_that_cannot_be_is_answered():
    view = views.tile_choice(256, 512, 128)
    view.rows.value, view.columns.value, view.cluster.value = 128, 192, 2
    view.rows.value = 256
    assert view.tile == Tile(256, 128, 2) and "256 x 128 (pairs)" in view.status.value
    before = view.picture.value
    view.sizes["M"].value = 0
    assert "M is 0, but it must be a whole number from 1 to 65,536. The picture" in view.status.value
    assert view.picture.value == before
