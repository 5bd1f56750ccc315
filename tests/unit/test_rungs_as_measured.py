"""The first rungs stand to each other as on other machines (Zen 5 and Xeon, Python 3.11), in CPU time."""

import pytest
from pace import slowness

from course_lib import ladder

pytestmark = pytest.mark.timing
RUNGS = ("python-ndarray", "python-lists", "compiled-ijk", "compiled-ikj", "numpy")


def test_all_at_one_size_by_their_order_of_magnitude():
    found = ladder.climb(RUNGS, ladder.SMALL, budget_s=1.0, save=False)
    for fast, slow, low, high in (
        ("python-lists", "python-ndarray", 7.3, 7.3),
        ("compiled-ijk", "python-lists", 30, 30),
        ("compiled-ikj", "python-lists", 180, 400),  # Xeon and Zen 5: "10,000x" holds against neither
        ("numpy", "python-ndarray", 5_300, 5_300),
    ):
        room = 2 * slowness()  # a busy host slows the interpreter more than compiled loops
        assert low / room < found.row(slow).seconds / found.row(fast).seconds < high * room, fast
