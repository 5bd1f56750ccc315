"""What holds on every machine: the filter's program, the sentences where there is no sandbox, and how many
calls are timed together."""

import itertools
import math
import random

import pytest

from course_lib.grading.sandbox import bubblewrap, stopwatch
from course_lib.grading.sandbox.bubblewrap import NoSandbox, Sandbox

SHIPPING_S = 1e-4


class Calls:
    """Stands in for a process: each call takes what `seconds` says."""

    args = ([[1.0, 2.0, 3.0]],)
    calls = 1

    def __init__(self, seconds):
        self.seconds = seconds

    def run(self, calls, rng):
        return SHIPPING_S + sum(self.seconds() for _ in range(calls))


def chosen(seconds):
    one = Calls(seconds)
    stopwatch._choose_calls(one, SHIPPING_S, random.Random(0), stopwatch.MOST_CALLS)
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


def test_the_filter_knows_only_machines_it_was_written_for():
    assert bubblewrap.filter_program("sparc64") is None
    for machine, (_, clone, refused) in bubblewrap.MACHINES.items():
        assert len(bubblewrap.filter_program(machine)) % 8 == 0
        assert clone not in refused.values() and len(set(refused.values())) == len(refused)


def test_without_bubblewrap_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    bubblewrap._bubblewrap.cache_clear()
    try:
        with pytest.raises(NoSandbox, match=r"install bubblewrap.*--unsafe-no-sandbox"):
            Sandbox().check()
        Sandbox(unsafe=True).check()
    finally:
        bubblewrap._bubblewrap.cache_clear()


def test_a_bubblewrap_that_fails_is_one_sentence(monkeypatch, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text(
        "#!/bin/sh\n[ \"$1\" = --help ] && echo ' --size' && exit\necho no namespaces here >&2\nexit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "_bubblewrap", lambda: str(fake))
    with pytest.raises(NoSandbox, match="no namespaces here"):
        Sandbox().check()
