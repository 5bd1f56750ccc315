"""The order of tiles: every tile once, teams agree, and the kernels' own text says the same."""

import ctypes
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.fp8 import kernels_folder
from course_lib.fp8.schedule import Schedule

SCHEDULES = st.builds(
    Schedule,
    rows=st.integers(0, 40),
    columns=st.integers(0, 40),
    teams=st.integers(1, 70),
    team=st.sampled_from((1, 2, 4)),
    band=st.sampled_from((1, 3, 8, 16)),
)


def walk(schedule):
    """All tiles in the order in which each team meets them."""
    return [tile for turn in range(schedule.turns) for _, tile in schedule.turn(turn)]


@given(SCHEDULES)
def test_every_tile_comes_once_and_what_sticks_out_is_less_than_a_team(schedule):
    tiles = walk(schedule)
    inside = [tile for tile in tiles if tile[1] < schedule.columns]
    wanted = {(row, column) for row in range(schedule.rows) for column in range(schedule.columns)}
    assert len(inside) == len(wanted) and set(inside) == wanted
    assert all(tile[1] - schedule.columns < schedule.team - 1 for tile in tiles if tile not in wanted)


@given(SCHEDULES, st.integers(0, 50), st.integers(0, 69))
def test_a_team_shares_its_row_and_ends_together(schedule, turn, number):
    found = [schedule.tile(turn, number, rank) for rank in range(schedule.team)]
    assert len({tile is None for tile in found}) == 1
    if found[0]:
        assert len({row for row, _ in found}) == 1
        assert [column for _, column in found] == list(range(found[0][1], found[0][1] + schedule.team))


@given(SCHEDULES)
def test_who_has_nothing_left_has_nothing_after_that(schedule):
    for number in range(schedule.teams):
        alive = [schedule.tile(turn, number) is not None for turn in range(schedule.turns + 2)]
        assert alive == sorted(alive, reverse=True) and not alive[schedule.turns]


def test_turns_and_idle_blocks():
    """M = 256, N = 7168 on 132 multiprocessors: tiles of 128 x 128 leave 20 idle, of 128 x 112 only 4."""
    assert Schedule(2, 56, 132).idle_share == pytest.approx(20 / 132)
    assert Schedule(2, 64, 132).idle_share == pytest.approx(4 / 132)
    assert Schedule(3, 5, 2, team=2).turns == 5  # three units a row, of which the last sticks out
    assert Schedule(0, 5, 2).turns == 0 == Schedule(0, 5, 2).idle_share


def test_neighbours_in_time_are_neighbours_in_d():
    """In a turn of 132 blocks the tiles take fewer rows and columns of operands than row by row."""
    banded = [tile for _, tile in Schedule(32, 56, 132, band=16).turn(0)]
    rows, columns = ({tile[i] for tile in banded} for i in (0, 1))
    assert (len(rows), len(columns)) == (16, 9)
    by_rows = [tile for _, tile in Schedule(32, 56, 132, band=1).turn(0)]
    assert len({r for r, _ in by_rows}) + len({c for _, c in by_rows}) == 3 + 56


def test_numbers_that_make_no_sense_are_refused():
    for wrong in ({"rows": -1}, {"columns": 1.5}, {"teams": 0}, {"team": True}, {"band": 0}):
        with pytest.raises(
            ValueError, match=rf"{next(iter(wrong))} is .*, but it must be a whole number of at least"
        ):
            Schedule(**{"rows": 1, "columns": 1, "teams": 1} | wrong)


# -- the kernels' text --------------------------------------------------------------------------------------

CALLER = """
#include "scheduler.cuh"
extern "C" int tile(int rows, int columns, int teams, int team, int band, int turn, int number, int rank,
                    int* out) {
  Schedule schedule{rows, columns, teams, team, band};
  return schedule.tile(turn, number, rank, out[0], out[1]);
}
struct Table { const int* heights; int operator()(int group) const { return heights[group]; } };
extern "C" int grouped(const int* heights, int groups, int columns, int teams, int team, int band, int number,
                       int rank, int* out) {
  GroupedSchedule<Table> schedule{groups, columns, teams, team, band, Table{heights}};
  int turn = 0;
  for (; schedule.tile(turn, number, rank, out[3 * turn + 1], out[3 * turn + 2]); ++turn)
    out[3 * turn] = schedule.group;
  return turn;
}
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The kernels' scheduler, compiled for this machine: it is plain C++."""
    compiler = shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("scheduler")
    (folder / "caller.cpp").write_text(CALLER)
    order = [
        compiler,
        "-shared",
        "-fPIC",
        "-std=c++17",
        f"-I{kernels_folder()}",
        "caller.cpp",
        "-o",
        "scheduler.so",
    ]
    subprocess.run(order, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "scheduler.so"))


@given(schedule=SCHEDULES)
def test_the_kernels_deal_the_same_tiles(text, schedule):
    out = (ctypes.c_int * 2)()
    numbers = (schedule.rows, schedule.columns, schedule.teams, schedule.team, schedule.band)
    for turn in range(schedule.turns + 1):
        for number in range(0, schedule.teams, 3):
            for rank in range(schedule.team):
                found = tuple(out) if text.tile(*numbers, turn, number, rank, out) else None
                assert found == schedule.tile(turn, number, rank)


@given(
    heights=st.lists(st.integers(0, 6), max_size=8),
    columns=st.integers(1, 9),
    teams=st.integers(1, 20),
    team=st.sampled_from((1, 2)),
)
def test_groups_get_every_tile_once(text, heights, columns, teams, team):
    table = (ctypes.c_int * max(len(heights), 1))(*heights)
    met = []
    for number in range(teams):
        ends = set()
        for rank in range(team):
            out = (ctypes.c_int * 3000)()
            turns = text.grouped(table, len(heights), columns, teams, team, 4, number, rank, out)
            met += [tuple(out[3 * turn : 3 * turn + 3]) for turn in range(turns)]
            ends.add(turns)
        assert len(ends) == 1
    wanted = {(g, r, c) for g, height in enumerate(heights) for r in range(height) for c in range(columns)}
    inside = [tile for tile in met if tile[2] < columns]
    assert len(inside) == len(wanted) and set(inside) == wanted
