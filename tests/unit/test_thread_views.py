"""The pictures of the fifth circle: what they say is what was found, and every widget has its still twin."""

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from view_samples import RACE, counted, deadlock, sped_up

from course_lib import views


def texts(drawing):
    return [
        element.text or ""
        for element in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")
    ]


class TestInterleaving:
    @given(st.lists(st.integers(0, 1), max_size=4))
    def test_a_frame_holds_the_steps_so_far_and_no_more(self, order):
        from course_lib.simulators.interleavings import run_schedule

        replay = run_schedule(["work"] * 2, {"s": [0]}, order, source=RACE)
        shown = views.interleaving(replay)
        for step in range(shown.last + 1):
            drawn = texts(shown.frame(step))
            done = [text for text in drawn if text.startswith(("reads", "writes"))]
            assert done == [one.does for one in replay.steps[:step]]
            value = replay.steps[step - 1].shared["s"] if step else [0]
            assert f"s = {value}" in drawn
            label = ElementTree.fromstring(shown.frame(step)).get("aria-label")
            assert (f"thread {replay.steps[step - 1].thread}" if step else "Before") in label
        assert any("All threads ended" in text for text in drawn)
        assert all(one.does in shown.static().body for one in replay.steps)

    def test_locks_and_waiting_are_shown(self):
        shown = views.interleaving(deadlock())
        drawn = texts(shown.frame(shown.last))
        assert "a: thread 0" in drawn and "b: thread 1" in drawn
        assert [text for text in drawn if text.startswith("waits")] == ["waits for b", "waits for a"]
        assert "Deadlock: thread 0 holds a and waits for b" in shown.static().body
        assert "a: free" in texts(shown.frame(0))


class TestCoherence:
    def test_says_how_much_longer_and_how_many_misses(self):
        from course_lib.measure.counters import ONE_CORE, Counting

        alt = views.false_sharing(counted()).alt
        assert "take 8.0x as long: 1.00 coherence misses per increment" in alt
        assert "8 bytes apart 1.00 misses simulated and 40.0 ns measured" in alt
        assert "64 bytes apart 0 misses simulated and 5.00 ns measured" in alt
        alt = views.false_sharing(counted(1.0, at_once=1.0)).alt
        assert "Busy: only 1.0 of 2 threads ran at once." in alt
        assert "take 6.0x to 10.0x as long" in views.false_sharing(counted(scatter=0.25)).alt
        assert "no cost measured here" in views.false_sharing(counted(1.0)).alt
        alt = views.false_sharing(Counting(1, (8, 64), 0, None, ONE_CORE)).alt
        assert "one core only" in alt and "not measured here" in alt

    def test_every_access_to_a_line_has_its_row_and_its_states(self):
        from course_lib.simulators.coherence import counters

        shown = views.line_states(counters(2, 2, 8))
        assert "7 of 8 accesses to this line need the bus" in shown.body
        drawn = texts(shown.body[shown.body.index("<svg") : shown.body.index("</svg>") + 6])
        assert "".join(text for text in drawn if text in list("MESI"))[:16] == "EIMISSIMSSMISSIM"
        assert {"core 1 writes byte 8", "upgrade: others drop it"} <= set(drawn)


class TestGantt:
    def test_names_the_best_and_the_worst_or_the_bound(self):
        from course_lib.measure.scheduling import plan

        plans = [plan([5, 3, 3, 2, 2, 1], 3, policy) for policy in ("static", "longest")]
        alt = views.gantt(plans).alt
        assert "1.33x as long with “static” as with “longest”" in alt
        assert "static: 6 items done at 8.00 units of the costs, the bound is 5.33" in alt
        assert "dynamic: 50 % longer than the bound" in views.gantt([plan([1, 1, 2], 2, "dynamic")]).alt
        assert "the same time, within 5 %" in views.gantt([plan([1, 1], 2), plan([1, 1], 2)]).alt

    def test_measured_times_of_the_starved(self):
        from course_lib.measure.scheduling import Bar, Timeline

        bars = (Bar(0, 0, 0.0, 0.02, 0.005), Bar(1, 1, 0.001, 0.004, 0.003))
        alt = views.gantt([Timeline("dynamic", 2, bars, measured=True)]).alt
        assert "dynamic: 2 items done at 20.0 ms" in alt and "the threads often had no CPU" in alt


class TestAmdahl:
    def test_the_law_its_limit_and_what_cannot_be_told(self):
        from course_lib.measure.amdahl import Speedups

        def alt(times, errors=(), cores=2):
            return views.amdahl(Speedups(times, dict(errors), cores, None)).alt

        said = alt({1: 1.0, 2: 0.6})
        expected = "2 threads are 1.67x as fast: if Amdahl's law holds, 20 % serial and never more than 5.00x"
        assert expected in said
        assert "cannot test whether the law holds" in said
        said = alt({1: 1.0, 2: 0.6, 4: 0.7}, {1: 0.01, 2: 0.01, 4: 0.01})
        assert "20 % serial" in said and "4: 1.43x" in said  # drawn but not fitted
        assert "no serial part shows" in alt({1: 1.0, 2: 0.5})
        assert "nothing of it is divided, or other programs held the cores" in alt({1: 1.0, 2: 1.0})
        said = alt({1: 1.0, 2: 0.94}, {1: 0.1, 2: 0.1})  # a wide interval tells no serial part
        assert "cannot be told on this run" in said and "run again" in said
        assert "never more" not in said and "at most" not in said

    def test_several_programs_stand_in_the_order_of_their_gain(self):

        slow = sped_up()
        slow.times[2] = 0.8
        alt = views.thread_curves({"triad": slow, "simd": sped_up()}, {"triad": {1: 1.0, 2: 1.3}}).alt
        assert (
            "Speed-up on 2 threads: simd 1.7x, triad 1.25x" in alt
            and "triad, predicted 1: 1.00x, 2: 1.3x" in alt
        )
        held = replace(slow, comparison=counted().comparison.called_held("Others ran."))
        assert "This machine was busy" in views.thread_curves({"triad": held}, {}).alt
