"""Amdahl's law: exact data give exact numbers, noise an interval that covers; two points test nothing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib.measure import amdahl, hardware
from course_lib.measure.amdahl import Speedups, fit, karp_flatt, speedups


def law(serial, counts, seconds=1.0):
    return {p: seconds * (serial + (1 - serial) / p) for p in counts}


@given(st.floats(0.0, 1.0), st.floats(1e-6, 1e3), st.sets(st.integers(1, 64), min_size=2, max_size=6))
def test_exact_times_give_back_the_fraction(serial, seconds, counts):
    found = fit(law(serial, counts, seconds))
    assert found.serial_fraction == pytest.approx(serial, abs=1e-6)
    assert found.time(1) == pytest.approx(seconds, rel=1e-6)
    assert found.exact is (len(counts) == 2)
    if serial > 1e-3:
        assert found.limit == pytest.approx(1 / serial, rel=1e-3)


def test_two_points_are_solved_and_said_to_test_nothing():
    found = fit({1: 1.0, 2: 0.6})
    assert found.serial_fraction == pytest.approx(0.2) and found.speedup(2) == pytest.approx(1 / 0.6)
    assert found.interval is None and found.exact and found.universal is None
    assert "cannot test whether the law holds" in str(found) and "%: " not in str(found).split(":")[0]


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(3)
    covered = 0
    for _ in range(60):
        noisy = {p: t * math.exp(0.01 * random.standard_normal()) for p, t in law(0.1, (1, 2, 4, 8)).items()}
        low, high = fit(noisy).interval
        covered += low <= 0.1 <= high
    assert covered >= 51  # 95 % of 60 are 57


def test_superlinear_and_useless_threads_are_said():
    super_ = fit({1: 1.0, 2: 0.45})
    assert super_.serial_fraction == 0 and math.isinf(super_.limit) and "superlinear" in super_.note
    assert "no limit" in str(super_)
    useless = fit({1: 1.0, 2: 1.2})
    assert useless.serial_fraction == 1 and "no faster at all" in useless.note and "100 %" in str(useless)


def test_the_universal_law_is_found_from_four_points_on():
    times = {p: (1 + 0.05 * (p - 1) + 0.01 * p * (p - 1)) / p for p in (1, 2, 4, 8, 16)}
    found = fit(times)
    assert found.universal.sigma == pytest.approx(0.05) and found.universal.kappa == pytest.approx(0.01)
    assert found.universal.peak == pytest.approx(math.sqrt(0.95 / 0.01))
    assert "If every pair of threads costs" in found.note and "number of threads is 10" in found.note
    assert not found.is_told and "does not describe this program" in str(found)
    assert fit(times, pairs=False).universal is None and "pair" not in fit(times, pairs=False).note
    assert fit(law(0.1, (1, 2, 4))).universal is None
    plain = fit(law(0.1, (1, 2, 4, 8))).universal
    assert plain.kappa == pytest.approx(0, abs=1e-9) and plain.sigma == pytest.approx(0.1)
    assert math.isinf(plain.peak) or plain.peak > 1e3


def test_karp_and_flatt():
    assert karp_flatt(1 / (0.1 + 0.9 / 8), 8) == pytest.approx(0.1)
    assert "0.100" in str(fit(law(0.1, (1, 2, 8))).table())


def test_what_makes_no_sense_is_refused_in_one_sentence():
    for times, sentence in [
        ({}, "needs two"),
        ({1: 1.0}, "has 1 thread count, but"),
        ({1: 1.0, 2: 0.0}, "the time on 2 threads is 0.0"),
        ({1: 1.0, 2: math.nan}, "is nan"),
        ({0: 1.0, 2: 1.0}, "a number of threads is 0"),
        ({1: 1.0, 2.5: 1.0}, "a number of threads is 2.5"),
    ]:
        with pytest.raises(ValueError, match=sentence) as caught:
            fit(times)
        assert "\n" not in str(caught.value), (times, sentence)


def test_measures_each_count_and_leaves_oversubscription_out_of_the_fit(monkeypatch):
    import time

    monkeypatch.setattr(hardware, "cores", lambda: 2)
    measured = speedups(lambda p: time.sleep(0.004 / min(p, 2)), (1, 2, 4), budget_s=0.3)
    assert list(measured.times) == [1, 2, 4] and measured.cores == 2
    assert list(measured.fit().times) == [1, 2]
    assert "4 (oversubscribed)" in str(measured)
    assert 0 <= measured.fit().serial_fraction < 0.5


def test_more_threads_than_numba_takes_are_refused_in_the_courses_own_sentence(monkeypatch):
    def run(p):
        if p > 2:
            raise ValueError("The number of threads must be between 1 and 2")

    monkeypatch.setattr(hardware, "cores", lambda: 2)
    with pytest.raises(
        ValueError, match=r"run\(4\) does not take 4 threads .*: leave out the counts above 2"
    ) as said:
        speedups(run, (1, 2, 4), budget_s=0.1)
    assert "NUMBA_NUM_THREADS=4" in str(said.value) and "\n" not in str(said.value)

    def faulty(p):
        raise ValueError("a fault of its own")

    with pytest.raises(ValueError, match="a fault of its own"):
        speedups(faulty, (1, 2), budget_s=0.1)


def test_one_core_cannot_be_fitted():
    alone = Speedups({1: 1.0, 2: 1.0}, {1: 0.0, 2: 0.0}, 1, None)
    with pytest.raises(ValueError, match=r"Only 1 of the thread counts \[1, 2\]"):
        alone.fit()
    assert amdahl.TWO_POINTS.endswith(".")


def test_what_cannot_be_told_is_not_called_serial():
    said = str(amdahl.fit({1: 10, 2: 11, 4: 12, 8: 20}))
    assert "cannot be told" in said and "everything counts as serial" not in said
