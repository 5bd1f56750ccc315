"""The rungs stand to each other as they did when the course was planned, within a factor of two.

The planned figures are ratios measured on another machine (Zen 5, Python 3.11); each rung has its own size,
rates are GFLOP/s on one thread in CPU time.
"""

import statistics

import pytest
from pace import slowness

from course_lib import ladder

WANTED = {
    "python-lists": (96, "float64"),
    "python-ndarray": (64, "float64"),
    "compiled-ijk": (128, "float64"),
    "compiled-ikj": (512, "float32"),
    "numpy": (512, "float32"),
}


def rate(id):
    size, dtype = WANTED[id]
    return ladder.climb([id], size, dtype=dtype, budget_s=0.5, save=False).row(id).gflops


@pytest.mark.timing
def test_within_a_factor_of_two():
    turns = [{id: rate(id) for id in WANTED} for _ in range(3)]  # the machine's speed changes: in turns
    rates = {id: statistics.median(turn[id] for turn in turns) for id in WANTED}
    room = 2 * slowness()  # a busy host slows the interpreter more than compiled loops
    for fast, slow, least, most in (
        ("python-lists", "python-ndarray", 0.063 / 0.012 / room, 0.063 / 0.012 * room),
        ("compiled-ijk", "python-lists", 27 / room, 27 * room),
        ("compiled-ikj", "python-lists", 500 / room, min(500 * room, 10_000 / 2)),
        ("numpy", "python-ndarray", 10_000 / 2, float("inf")),  # there the famous factor holds
    ):
        assert least < rates[fast] / rates[slow] < most, (fast, slow)
