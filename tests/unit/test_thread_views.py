"""The pictures of the fifth circle: what they say is what was found, and every widget has its still twin."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_lib import views
from course_lib.measure import amdahl
from course_lib.measure.comparison import Comparison, Conditions, Row
from course_lib.measure.counters import ONE_CORE, Counting
from course_lib.measure.scheduling import Bar, Timeline, plan
from course_lib.simulators.coherence import counters
from course_lib.simulators.interleavings import Lock, Semaphore, explore, run_schedule
from course_lib.theme import Picture

RACE = "def work():\n    s[0] += 1"
STUCK = """
def forwards():
    with a:
        with b:
            pass

def backwards():
    with b:
        with a:
            pass
"""


def race():
    return explore(["work", "work"], {"s": [0]}, source=RACE)


def is_png(picture):
    return isinstance(picture, Picture) and picture.png.startswith(b"\x89PNG") and picture.alt


def texts(drawing):
    return [
        element.text or ""
        for element in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")
    ]


class TestInterleaving:
    def test_a_verdict_shows_its_witness_step_by_step(self):
        shown = views.interleaving(race())
        assert shown.last == 4 and shown.step == 0
        assert "Before the first step: s = [0]" in texts(shown.frame(0))
        assert "s = [1]" in texts(shown.frame(4)) and "Step 4 of 4:" in " ".join(texts(shown.frame(4)))
        assert any("All threads ended" in text for text in texts(shown.frame(4)))

    @given(st.lists(st.integers(0, 1), max_size=4))
    def test_a_frame_holds_the_steps_so_far_and_no_more(self, schedule):
        replay = run_schedule(["work", "work"], {"s": [0]}, schedule, source=RACE)
        shown = views.interleaving(replay)
        for step in range(shown.last + 1):
            drawn = texts(shown.frame(step))
            done = [text for text in drawn if text.startswith(("reads", "writes"))]
            assert done == [one.does for one in replay.steps[:step]]
            value = replay.steps[step - 1].shared["s"] if step else [0]
            assert f"s = {value}" in drawn
            label = ElementTree.fromstring(shown.frame(step)).get("aria-label")
            assert (f"thread {replay.steps[step - 1].thread}" if step else "Before") in label

    def test_frames_keep_their_width(self):
        shown = views.interleaving(
            explore(["forwards", "backwards"], {"a": Lock(), "b": Lock()}, source=STUCK)
        )
        sizes = {re.search(r'viewBox="0 0 (\S+) ', shown.frame(step))[1] for step in range(shown.last + 1)}
        assert len(sizes) == 1

    def test_locks_and_waiting_are_shown(self):
        shown = views.interleaving(
            explore(["forwards", "backwards"], {"a": Lock(), "b": Lock()}, source=STUCK)
        )
        drawn = texts(shown.frame(shown.last))
        assert "a: thread 0" in drawn and "b: thread 1" in drawn
        assert [text for text in drawn if text.startswith("waits")] == ["waits for b", "waits for a"]
        assert "Deadlock: thread 0 holds a and waits for b" in shown.static().body
        said = " ".join(text for text in drawn if text not in texts(shown.frame(shown.last - 1)))
        assert said.endswith(shown.replay.sentence)  # to its last word, on as many lines as it needs
        assert "a: free" in texts(shown.frame(0))
        text = "def work():\n    with slots:\n        pass"
        counted = views.interleaving(run_schedule(["work"], {"slots": Semaphore(2)}, source=text))
        assert "slots: 1 free" in texts(counted.frame(1))

    def test_buttons_slider_and_the_jump_to_the_next_switch(self):
        shown = views.interleaving(run_schedule(["work", "work"], {"s": [0]}, [0, 0, 1, 1], source=RACE))
        shown.player.jumps["next switch »"].click()
        assert shown.step == 3  # the first step of the other thread is done
        shown.player.back.click()
        assert shown.step == 2 and "Step 2 of 4" in shown.player.picture.value
        shown.player.jumps["next switch »"].click()
        shown.player.jumps["next switch »"].click()
        assert shown.step == 4

    def test_the_still_twin_has_every_step_and_the_source(self):
        shown = views.interleaving(race())
        still = shown.static()
        for one in shown.replay.steps:
            assert one.does in still.body and one.does in still.text
        assert "s[0] += 1" in still.body and 'role="figure"' in still.body
        assert "text/html" in shown._repr_mimebundle_()

    def test_long_schedules_move_past(self):
        text = "def work():\n    for _ in range(40):\n        s[0] += 1"
        shown = views.interleaving(run_schedule(["work"], {"s": [0]}, source=text))
        drawn = texts(shown.frame(60))
        assert drawn[:4] == ["step", "thread 0: work", "50", "writes s[0] = 25"]
        assert "60" in drawn and "writes s[0] = 30" in drawn
        assert "… 20 more steps" in shown.static().body

    def test_nothing_to_show_is_a_sentence(self):
        right = explore(["work"], {"s": [0]}, source=RACE)
        with pytest.raises(ValueError, match="There is no schedule to show: Right in all 1 schedules"):
            views.interleaving(right)
        empty = run_schedule(["work"], {"s": [0]}, source=RACE, complete=False)
        with pytest.raises(ValueError, match="has no step"):
            views.interleaving(empty)


# -- false sharing -----------------------------------------------------------------------------------------


def row(name, seconds, ratio, low, high):
    return Row(name, seconds, seconds / 50, 20, None, ratio, low, high, 0.0)


def counted(near_ratio=8.0, at_once=2.0, kind="locked"):
    low, high = 0.97 * near_ratio, 1.03 * near_ratio
    rows = (
        row("8 B apart", 5e-6 * near_ratio, near_ratio, low, high),
        row("64 B apart", 5e-6, 1.0, 1.0, 1.0),
    )
    how = Conditions((), None, "wall", "", 20, 1e-3, "certain enough", 0.03, 0.02, False, 1.0, ())
    return Counting(2, kind, (8, 64), 1000, Comparison(rows, "64 B apart", 2, "", (), how), "", at_once)


class TestFalseSharing:
    def test_says_how_much_longer_and_how_many_misses(self):
        picture = views.false_sharing(counted())
        assert is_png(picture)
        assert "take 8.0x as long: 1.00 coherence misses per increment" in picture.alt
        assert "8 bytes apart 1.00 misses simulated and 40.0 ns measured" in picture.alt
        assert "64 bytes apart 0 misses simulated and 5.00 ns measured" in picture.alt

    def test_a_busy_machine_is_not_taken_for_an_answer(self):
        assert "only 1.0 of 2 threads ran at once" in views.false_sharing(counted(1.0, at_once=1.0)).alt

    def test_no_difference_is_said(self):
        assert "no cost measured here" in views.false_sharing(counted(1.0)).alt
        assert "store buffer" in views.false_sharing(counted(1.0, kind="plain")).alt

    def test_longer_turns_of_the_simulator(self):
        assert "0.099 misses simulated" in views.false_sharing(counted(), turn=10).alt

    def test_one_core_says_so(self):
        picture = views.false_sharing(Counting(1, "locked", (8, 64), 0, None, ONE_CORE))
        assert is_png(picture) and "one core only" in picture.alt and "not measured here" in picture.alt


class TestLineStates:
    def test_every_access_has_its_row_and_its_states(self):
        shown = views.line_states(counters(2, 2, 8))
        assert "7 of 8 accesses to this line need the bus" in shown.body
        drawing = shown.body[shown.body.index("<svg") : shown.body.index("</svg>") + 6]
        letters = [text for text in texts(drawing) if text in list("MESI")]
        assert "".join(letters[:16]) == "EIMISSIMSSMISSIM" and len(letters) == 16 + 4
        assert "core 1 writes byte 8" in texts(drawing)
        assert "upgrade: others drop it" in texts(drawing)

    def test_a_line_nobody_touched(self):
        with pytest.raises(ValueError, match="line of byte 640"):
            views.line_states(counters(2, 2, 8), 640)


# -- Gantt and Amdahl --------------------------------------------------------------------------------------


class TestGantt:
    def test_names_the_best_and_the_worst(self):
        plans = [plan([5, 3, 3, 2, 2, 1], 3, policy) for policy in ("static", "longest")]
        picture = views.gantt(plans)
        assert is_png(picture) and "1.33x as long with “static” as with “longest”" in picture.alt
        assert "static: 6 items done at 8.00 units of the costs, the bound is 5.33" in picture.alt

    def test_one_alone_is_held_against_its_bound(self):
        assert "dynamic: 50 % longer than the bound" in views.gantt(plan([1, 1, 2], 2, "dynamic")).alt

    def test_measured_times_stopped_and_starved(self):
        bars = (Bar(0, 0, 0.0, 0.02, 0.005), Bar(1, 1, 0.001, 0.004, 0.003))
        stopped = Timeline("dynamic", 1, 2, bars, 9, "The time limit …", measured=True)
        picture = views.gantt({"mine": stopped})
        assert is_png(picture) and "mine: 2 items done at 20.0 ms" in picture.alt
        assert "the threads often had no CPU" in picture.alt

    def test_names_may_repeat_and_equal_times_are_said(self):
        twice = [plan([1, 1], 2), plan([1, 1], 2)]
        assert (
            "the same time, within 5 %" in views.gantt(twice).alt and "dynamic (2)" in views.gantt(twice).alt
        )
        assert is_png(views.gantt(plan([], 2)))

    def test_what_cannot_be_drawn_is_a_sentence(self):
        with pytest.raises(ValueError, match="no timeline to draw"):
            views.gantt([])
        measured = Timeline("dynamic", 1, 1, (Bar(0, 0, 0.0, 1.0, 1.0),), 1, "done", measured=True)
        with pytest.raises(ValueError, match="draw them apart"):
            views.gantt([plan([1], 1), measured])


class TestAmdahl:
    def test_the_law_its_limit_and_the_points(self):
        picture = views.amdahl(amdahl.fit({1: 1.0, 2: 0.6}), guess=1.9)
        assert is_png(picture)
        assert "2 threads are 1.67x as fast: 20 % serial, so never more than 5.00x" in picture.alt
        assert "cannot test whether the law holds" in picture.alt

    def test_oversubscribed_points_are_drawn_but_not_fitted(self):
        measured = amdahl.Speedups({1: 1.0, 2: 0.6, 4: 0.7}, {1: 0.01, 2: 0.01, 4: 0.01}, 2, None)
        picture = views.amdahl(measured)
        assert "20 % serial" in picture.alt and "4: 1.43x" in picture.alt

    def test_no_limit_is_told_where_the_times_allow_no_serial_part(self):
        alt = views.amdahl(amdahl.fit({1: 1.0, 2: 0.51}, errors={1: 0.05, 2: 0.05})).alt
        assert "perhaps 2.0 % serial, perhaps nothing" in alt and "never more" not in alt

    def test_all_or_nothing_serial(self):
        assert "no serial part shows" in views.amdahl(amdahl.fit({1: 1.0, 2: 0.5})).alt
        all_serial = views.amdahl(amdahl.fit({1: 1.0, 2: 1.0})).alt
        assert "nothing of it is divided, or other programs held the cores" in all_serial

    def test_a_wide_interval_tells_no_serial_part(self):
        law = amdahl.fit({1: 1.0, 2: 0.94}, {1: 0.1, 2: 0.1})
        low, high = law.interval
        assert high - low > 0.2 and not law.is_told
        for said in (views.amdahl(law).alt, str(law)):
            assert "cannot be told on this run" in said and "run again" in said
            assert "never more" not in said and "at most" not in said
        assert amdahl.fit({1: 1.0, 2: 0.94}, {1: 0.01, 2: 0.01}).is_told

    def test_the_universal_law_is_drawn_where_it_is_known(self):
        times = {p: (1 + 0.05 * (p - 1) + 0.01 * p * (p - 1)) / p for p in (1, 2, 4, 8)}
        assert is_png(views.amdahl(amdahl.fit(times), most=32))
