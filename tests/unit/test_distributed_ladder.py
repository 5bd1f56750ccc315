"""Rungs on many ranks: right through the door, and a table whose verdict is bytes."""

import subprocess
import sys

import numpy as np
import pytest

from course_lib import distributed_ladder
from course_lib.circles.front_door import RungUnavailable
from course_lib.measure import machine

forks = pytest.mark.skipif(sys.platform == "win32", reason="ranks are forked")


@forks
def test_a_rung_multiplies_what_its_door_lets_in():
    multiply = distributed_ladder.rung("distributed-cannon").matmul
    rng = np.random.default_rng(8)
    A, B = rng.integers(-9, 10, (7, 5)).astype(float), rng.integers(-9, 10, (5, 3)).astype(float)
    np.testing.assert_array_equal(multiply(A, B), A @ B)
    assert multiply(np.ones((0, 2)), np.ones((2, 3))).shape == (0, 3)
    with pytest.raises(TypeError, match="A is of type list"):
        multiply([[1.0]], B)
    with pytest.raises(KeyError, match=r"did you mean .*distributed-summa"):
        distributed_ladder.rung("summa")


@forks
def test_the_table_has_the_bytes_of_every_rung_that_can_use_so_many_ranks():
    table = distributed_ladder.climb((96, 48, 144), ranks=4, rounds=2)
    assert [row[0] for row in table.rows] == [entry.id for entry in distributed_ladder.DISTRIBUTED]
    for name, speed, sent, formula, error in table.rows:
        assert float(speed.replace(",", "")) > 0 and sent == formula and float(error) < 1e-6, name
    assert table.rows[3][2] == "0.012"  # (A + B) / 4: 4 bytes x (96 x 48 + 48 x 144) / 4
    table = distributed_ladder.climb((24, 24, 24), ranks=2, rounds=1, dtype="float64")
    assert not {"distributed-cannon"} & {row[0] for row in table.rows}
    for arguments, said in (({"ranks": 0}, "ranks is 0"), ({"dtype": "int8"}, "dtype is 'int8'")):
        with pytest.raises(ValueError, match=said):
            distributed_ladder.climb((8, 8, 8), **arguments)
    with pytest.raises(ValueError, match="There are 6 ranks, but Cannon's"):
        distributed_ladder.climb((8, 8, 8), ranks=6, ids=["distributed-cannon"])


def test_the_clock_means_nothing_where_ranks_take_turns():
    said = distributed_ladder.what_the_clock_says
    assert said(4, 2).startswith("The clock means nothing here: 4 ranks take turns on 2 cores.")
    assert "nothing" not in said(2, 2)


def test_without_ranks_it_is_a_sentence(monkeypatch):
    monkeypatch.setattr(machine, "missing", lambda need: f"There are no {need}." if need == "ranks" else None)
    for call in (
        lambda: distributed_ladder.rung("distributed-row").matmul(np.ones((2, 2)), np.ones((2, 2))),
        lambda: distributed_ladder.climb((8, 8, 8)),
    ):
        with pytest.raises(RungUnavailable, match=r"'distributed-row' cannot run here: There are no ranks."):
            call()


def test_to_list_the_rungs_loads_no_torch():
    program = "import sys; from course_lib import distributed_ladder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
