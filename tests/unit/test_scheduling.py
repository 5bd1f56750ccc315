"""Work on threads: plans are OpenMP's and optimal where they say so, measured timelines are complete."""

import itertools
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.measure.scheduling import (
    POLICIES,
    Hand,
    best_makespan,
    plan,
    schedule,
)


def assignment(timeline):
    return tuple(tuple(bar.item for bar in timeline.of(thread)) for thread in range(timeline.threads))


costs_of_some = st.lists(st.integers(0, 20), max_size=12)


@given(costs_of_some, st.integers(1, 4), st.sampled_from(POLICIES))
def test_every_plan_does_every_item_once_and_never_two_at_a_time(costs, threads, policy):
    timeline = plan(costs, threads, policy)
    assert sorted(itertools.chain(*assignment(timeline))) == list(range(len(costs)))
    for thread in range(threads):
        bars = timeline.of(thread)
        assert all(one.end <= after.start for one, after in itertools.pairwise(bars))
        assert timeline.busy[thread] == sum(costs[bar.item] for bar in bars)
    assert timeline.makespan >= best_makespan(costs, threads)[0] - 1e-9
    assert timeline.bound <= timeline.makespan + 1e-9


class TestPolicies:
    def test_static_cyclic_and_dynamic_are_openmps(self):
        for costs, threads, policy, wanted in (
            ([1] * 7, 3, "static", ((0, 1, 2), (3, 4), (5, 6))),
            ([1] * 7, 3, "cyclic", ((0, 3, 6), (1, 4), (2, 5))),
            ([5, 1, 1, 1, 1], 2, "dynamic", ((0,), (1, 2, 3, 4))),
            ([1] * 10, 2, "guided", ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9))),
        ):
            assert assignment(plan(costs, threads, policy)) == wanted, policy

    def test_guided_chunks_shrink_as_openmp_has_it(self):
        hand = Hand(range(20), 4, "guided")
        assert [len(chunk) for chunk in iter(lambda: hand.take(0), [])] == [5, 4, 3, 2, 2, 1, 1, 1, 1]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_the_best_makespan_is_what_trying_everything_gives(costs, threads):
    every = itertools.product(range(threads), repeat=len(costs))
    loads = (
        [sum(c for c, t in zip(costs, chosen, strict=True) if t == n) for n in range(threads)]
        for chosen in every
    )
    assert best_makespan(costs, threads) == (min(map(max, loads)), True)


class TestMeasured:
    def test_every_item_is_done_once_by_the_thread_that_is_named(self):
        for policy in POLICIES:
            seen, lock = [], threading.Lock()

            def run(item, seen=seen, lock=lock):
                with lock:
                    seen.append((item, threading.current_thread().name))
                time.sleep(0.001)

            timeline = schedule(list("abcdefghij"), run, 3, policy, costs=range(10))
            assert sorted(item for item, _ in seen) == list("abcdefghij"), policy
            assert {("abcdefghij"[bar.item], f"worker {bar.thread}") for bar in timeline.bars} == set(seen)
            for thread in range(3):
                assert all(a.end <= b.start for a, b in itertools.pairwise(timeline.of(thread))), policy
            assert timeline.measured and len(timeline.bars) == 10 and timeline.without_cpu > 0.5  # it slept

    def test_an_exception_comes_to_the_caller_and_stops_the_others(self):
        done = []

        def run(item):
            if item == 1:
                raise KeyError("item 1")
            time.sleep(0.01)
            done.append(item)

        with pytest.raises(KeyError, match="item 1"):
            schedule(range(100), run, 2)
        assert len(done) < 50
        assert not [one for one in threading.enumerate() if one.name.startswith("worker")]
