"""Products on many ranks as a table whose verdict is bytes."""

import subprocess
import sys

import pytest

from course_lib import distributed_ladder
from course_lib.distributed.matmul import ALGORITHMS

forks = pytest.mark.skipif(sys.platform == "win32", reason="ranks are forked")


@forks
def test_the_table_has_the_bytes_of_every_product_that_can_use_so_many_ranks():
    table = distributed_ladder.climb((96, 48, 144), ranks=4, rounds=2)
    assert [row[0] for row in table.rows] == list(ALGORITHMS)
    for name, speed, sent, formula, error in table.rows:
        assert float(speed.replace(",", "")) > 0 and sent == formula and float(error) < 1e-6, name
    assert table.rows[3][2] == "0.012"  # (A + B) / 4: 4 bytes x (96 x 48 + 48 x 144) / 4
    table = distributed_ladder.climb((24, 24, 24), ranks=2, rounds=1, dtype="float64")
    assert not {"cannon"} & {row[0] for row in table.rows}
    for arguments, said in (
        ({"ranks": 0}, "ranks is 0"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
    ):
        with pytest.raises(ValueError, match=said):
            distributed_ladder.climb((8, 8, 8), **arguments)


def test_the_clock_means_nothing_where_ranks_take_turns():
    said = distributed_ladder.what_the_clock_says
    assert said(4, 2).startswith("The clock means nothing here: 4 ranks take turns on 2 cores.")
    assert "nothing" not in said(2, 2)


def test_to_load_it_loads_no_torch():
    program = "import sys; from course_lib import distributed_ladder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
