"""Amdahl's law: exact data give exact numbers, noise an interval that covers; two points test nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.measure import amdahl, hardware
from course_lib.measure.amdahl import Speedups, fit, speedups


def law(serial, counts, seconds=1.0):
    return {p: seconds * (serial + (1 - serial) / p) for p in counts}


@given(st.floats(0.0, 1.0), st.floats(1e-6, 1e3), st.sets(st.integers(1, 64), min_size=2, max_size=6))
def test_exact_times_give_back_the_fraction(serial, seconds, counts):
    found = fit(law(serial, counts, seconds))
    assert found.serial_fraction == pytest.approx(serial, abs=1e-6)
    assert found.time(1) == pytest.approx(seconds, rel=1e-6)
    assert found.exact is (len(counts) == 2)
    assert amdahl.karp_flatt(1 / (serial + (1 - serial) / 5), 5) == pytest.approx(serial, abs=1e-9)
    if serial > 1e-3:
        assert found.limit == pytest.approx(1 / serial, rel=1e-3)


def test_two_points_are_solved_and_said_to_test_nothing():
    found = fit({1: 1.0, 2: 0.6})
    assert found.serial_fraction == pytest.approx(0.2) and found.speedup(2) == pytest.approx(1 / 0.6)
    assert found.interval is None and found.exact
    assert "cannot test whether the law holds" in str(found) and "%: " not in str(found).split(":")[0]


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(3)
    covered = 0
    for _ in range(60):
        noisy = {p: t * math.exp(0.01 * random.standard_normal()) for p, t in law(0.1, (1, 2, 4, 8)).items()}
        low, high = fit(noisy).interval
        covered += low <= 0.1 <= high
    assert covered >= 51  # 95 % of 60 are 57


def test_measures_each_count_and_leaves_oversubscription_out_of_the_fit(monkeypatch):
    import time

    monkeypatch.setattr(hardware, "cores", lambda: 2)
    for _ in range(3):  # a busy machine wakes sleepers late
        measured = speedups(lambda p: time.sleep(0.02 / min(p, 2)), (1, 2, 4), budget_s=0.3)
        if measured.fit().serial_fraction < 0.5:
            break
    assert list(measured.times) == [1, 2, 4] and measured.cores == 2
    assert list(measured.fit().times) == [1, 2]
    assert "4 (oversubscribed)" in str(measured)
    assert 0 <= measured.fit().serial_fraction < 0.5


def test_one_core_cannot_be_fitted():
    alone = Speedups({1: 1.0, 2: 1.0}, {1: 0.0, 2: 0.0}, 1, None)
    with pytest.raises(ValueError, match=r"Only 1 of the thread counts \[1, 2\]"):
        alone.fit()
    assert amdahl.TWO_POINTS.endswith(".")


def test_what_cannot_be_told_is_not_called_serial():
    said = str(amdahl.fit({1: 10, 2: 11, 4: 12, 8: 20}))
    assert "cannot be told" in said and "everything counts as serial" not in said
