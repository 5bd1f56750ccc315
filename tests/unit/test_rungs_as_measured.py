"""The first rungs stand to each other as they did on another machine (Zen 5, Python 3.11), in CPU time."""

import pytest
from pace import slowness

from course_lib import ladder

pytestmark = pytest.mark.timing
RUNGS = ("python-ndarray", "python-lists", "compiled-ijk", "compiled-ikj", "numpy")


def test_all_at_one_size_within_a_factor_of_two():
    found = ladder.climb(RUNGS, ladder.SMALL, budget_s=1.0, save=False)
    for fast, slow, planned in (
        ("python-lists", "python-ndarray", 7.3),
        ("compiled-ijk", "python-lists", 30),
        ("compiled-ikj", "python-lists", 400),  # "10,000x" holds against neither
        ("numpy", "python-ndarray", 5_300),
    ):
        room = 2 * slowness()  # a busy host slows the interpreter more than compiled loops
        assert planned / room < found.row(slow).seconds / found.row(fast).seconds < planned * room, fast
