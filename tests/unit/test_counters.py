"""Threads that count in memory: the loop really stores, atomic increments are not lost, one core is said."""

import pytest

from course_lib.measure import assembly, counters, hardware
from course_lib.measure.counters import false_sharing, one_total


def imports():
    global LOOPS
    from course_lib.measure.counting_loops import LOOPS


def test_every_turn_of_the_loop_stores_to_memory():
    for kind in ["plain", "atomic"]:
        code = assembly.inspect(LOOPS[kind])
        assert code.loops, "the loop was folded away: the compiler keeps the sum in a register"
        locked = ("lock", "ldadd", "stadd", "ldxr", "cas")
        for loop in code.loops:
            text = " ".join(loop.lines)
            assert "(%" in text or "[" in text, kind  # an address in memory
            assert any(word in text for word in locked) is (kind == "atomic"), kind
            if "(%" in text and kind == "plain":  # x86: incq (memory), or a store of its own
                assert any(line.rstrip().endswith(")") for line in loop.lines)


def test_only_plain_increments_of_one_counter_are_lost():
    tries = [one_total(2, 500_000, budget_s=0.05) for _ in range(5)]
    alone = one_total(1, 20_000, budget_s=0.05)
    assert (
        max(one.lost["plain"] for one in tries) > 0
        or hardware.cores() == 1
        or any(one.comparison.held for one in tries)
    )
    for one in [*tries, alone, one_total(3, 200_000, budget_s=0.05)]:
        assert [*one.lost] == ["plain", "mutex", "atomic", "private"]
        assert [way for way, lost in one.lost.items() if lost] in ([], ["plain"][one is alone :])
    assert "1 threads, 20,000 increments each." in str(alone)
    whole = alone.seconds("private") * 20_000
    assert whole == pytest.approx(alone.comparison.row("private").seconds)


@pytest.mark.timing
def test_a_mutex_costs_more_than_a_counter_of_its_own():
    counted = one_total(2, 200_000, budget_s=0.1)
    assert counted.seconds("mutex") > 1.5 * counted.seconds("private")


def test_nobody_counts_for_minutes():
    with pytest.raises(ValueError, match="times is 100000000"):
        one_total(2, counters.MOST_TIMES)


def test_one_core_is_said_in_a_sentence(monkeypatch):
    monkeypatch.setattr(hardware, "cores", lambda: 1)
    counting = false_sharing(2)
    assert counting.comparison is None and "one core only" in counting.note
    with pytest.raises(ValueError, match="one core only"):
        counting.ratio(8)
    monkeypatch.setattr(hardware, "cores", lambda: 4)
    assert "One thread has nobody" in false_sharing(1).note


@pytest.mark.timing
@pytest.mark.skipif(hardware.cores() < 2, reason="needs two cores")
def test_false_sharing_costs_time_when_the_threads_run_at_once(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(counters, "TOGETHER", 2)  # more than there can be
        assert false_sharing(2, (8, 128), budget_s=0.05).comparison.held
    for _ in range(3):
        counting = false_sharing(2, (8, 128), budget_s=0.5)
        if counting.at_once > 1.8:
            assert counting.ratio(8) > 2
            return
    pytest.skip("other programs had the cores")
