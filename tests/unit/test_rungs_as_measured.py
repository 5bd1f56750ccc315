"""The rungs stand to each other as they did when the course was planned, within a factor of two.

The planned figures are ratios measured on another machine (Zen 5, Python 3.11); each rung has its own size,
rates are GFLOP/s on one thread in CPU time.
"""

import statistics

import pytest
from pace import slowness

from course_lib import ladder

pytestmark = pytest.mark.timing


@pytest.fixture(scope="module")
def rates():
    wanted = {
        "python-lists": (96, "float64"),
        "python-ndarray": (64, "float64"),
        "compiled-ijk": (128, "float64"),
        "compiled-ikj": (512, "float32"),
        "numpy": (512, "float32"),
    }
    turns = [  # the machine's speed changes: the rungs take turns
        {
            id: ladder.climb([id], size, dtype=dtype, budget_s=0.5, save=False).row(id).gflops
            for id, (size, dtype) in wanted.items()
        }
        for _ in range(3)
    ]
    return {id: statistics.median(turn[id] for turn in turns) for id in wanted}


def test_within_a_factor_of_two(rates):
    for fast, slow, planned in [
        ("python-lists", "python-ndarray", 0.063 / 0.012),
        ("compiled-ijk", "python-lists", 27),
        ("compiled-ikj", "python-lists", 500),
    ]:
        room = 2 * slowness()  # a busy host slows the interpreter more than compiled loops
        assert planned / room < rates[fast] / rates[slow] < planned * room, fast


def test_ten_thousand_times_holds_against_arrays_picked_apart_and_not_against_lists(rates):
    assert rates["numpy"] / rates["python-ndarray"] > 10_000 / 2
    assert rates["compiled-ikj"] / rates["python-lists"] < 10_000 / 2
