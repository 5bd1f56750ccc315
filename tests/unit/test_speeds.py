"""Speed against size: dips at powers of two, where a rung falls, and what is left out."""

import pytest

from course_lib import ladder
from course_lib.measure.speeds import Speeds

POINTS = {
    "walks": {120: 2.0, 128: 0.5, 136: 2.0, 248: 2.0, 256: 1.9, 264: 2.0},
    "streams": {120: 18.0, 128: 20.0, 136: 20.0, 248: 10.0, 256: 10.0, 264: 9.0},
    "alone": {128: 5.0},
}
FOUND = Speeds(POINTS, 16, "float64", 1, {"L1": 130.0, "L3": 9e3}, 50.0)


def test_a_dip_is_told_from_a_fall():
    assert FOUND.dips("walks") == pytest.approx({128: 4.0, 256: 2 / 1.9}) and FOUND.dips("alone") == {}
    assert FOUND.fallen("streams") == 248 and FOUND.fallen("walks") is None
    assert FOUND.table().rows[1] == ("128", "0.500", "20.0", "5.00")


def test_the_figure_tells_the_deepest_dip():
    alt = FOUND.figure().alt
    assert "At n = 128 walks takes 4.0x as long as beside it, the others at most 1.00x." in alt
    assert "Peak 50.0. B fills L1 at n = 130" in alt and "streams 18.0 at 120" in alt
    level = Speeds({"streams": POINTS["streams"]}, None, "float32", 2, {}, None).figure().alt
    assert "Powers of two cost nothing here." in level and "n of (n, n, n), float32, 2 threads" in level
    assert "streams is below 80 % of its best from n = 248 on." in FOUND.figure(fall_of="streams").alt
    assert "walks stays above 80 % of its best." in FOUND.figure(fall_of="walks").alt


def test_rungs_are_measured_and_slow_ones_left_out():
    found = ladder.speeds(["python-lists", "numpy"], (24, 16, 64), rows=4, longest_s=3e-4)
    assert list(found.points["numpy"]) == [16, 24, 64] and found.rows == 4
    assert list(found.points["python-lists"]) == [16, 24]  # 4 x 64 x 64 multiply-adds take Python longer
    assert found.filled.keys() <= {"L1", "L2", "L3", "L4"} and not ladder.results()
