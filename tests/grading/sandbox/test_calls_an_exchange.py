"""How many calls are timed together: as many as last long enough, also where some of them do nothing."""

import itertools
import math
import random

from course_lib.grading.sandbox import stopwatch

SHIPPING_S = 1e-4


class Calls:
    """Stands in for a process: each call takes what `seconds` says."""

    args = ([[1.0, 2.0, 3.0]],)
    calls = 1

    def __init__(self, seconds):
        self.seconds = seconds

    def run(self, changes):
        return SHIPPING_S + sum(self.seconds() for _ in changes)


def chosen(seconds):
    one = Calls(seconds)
    stopwatch._choose_calls(one, SHIPPING_S, random.Random(0))
    return one.calls


def test_an_exchange_lasts_as_long_as_it_should():
    for call_s in (1.0, 15e-3, 4e-3, 3e-4, 2e-5):
        assert chosen(lambda call_s=call_s: call_s) == max(1, math.ceil(stopwatch.SAMPLE_S / call_s)), call_s
    for call_s in (0.0, 1e-9):  # what takes no time is not called for ever
        assert chosen(lambda call_s=call_s: call_s) == stopwatch.MOST_CALLS, call_s


def test_of_calls_that_leave_their_work_out_in_turns_there_are_not_many():
    """Every other one takes 10 ms, the rest next to nothing: thousands of them would outlast the limit."""
    for first in (0, 1):
        turns = itertools.count(first)
        assert chosen(lambda turns=turns: 10e-3 if next(turns) % 2 else 1e-5) <= 16, first
    turns = itertools.count()  # a call that is disturbed decides nothing
    assert chosen(lambda: 20e-3 if not next(turns) else 20e-6) >= 900
