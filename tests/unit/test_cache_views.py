"""The cache animation and the miss curves: true to the simulator, driven by keys, readable without colour."""

from xml.etree import ElementTree

import pytest

from course_lib import views
from course_lib.simulators import traces
from course_lib.simulators.cache import Level, simulate
from course_lib.views.cache_animation import NESTS, Setting, moments, total_misses

SMALL = Setting(n=4, block=2, lines=6, line=2, ways=None)


def simulated(nest, setting):
    n, size = setting.n, setting.line * 8
    options = {"in_registers": False}
    trace = (
        traces.blocked(n, n, n, setting.block, **options)
        if nest == "blocked"
        else traces.loops(nest, n, n, n, **options)
    )
    return trace, simulate(trace, [Level(setting.lines * size, setting.ways, size)])


class TestCacheWalk:
    @pytest.mark.parametrize("nest", NESTS)
    @pytest.mark.parametrize("ways", [None, 2])
    def test_every_count_is_the_simulators(self, nest, ways):
        setting = Setting(n=4, block=2, lines=6, line=2, ways=ways)
        _, result = simulated(nest, setting)
        last = moments(nest, setting)[-1]
        for name, part in result.by_array.items():
            assert last.misses[name] == part.misses[0]
            assert last.misses[name] + last.hits[name] == part.accesses
        assert total_misses(nest, setting) == result.misses[0]

    def test_lines_enter_when_touched_and_leave_when_pushed_out(self):
        before = ()
        for moment in moments("jki", SMALL):
            held = {line for line in moment.slots if line}
            entered = held - set(before)
            touched = {line for line, _ in moment.touched.values()}
            assert touched <= held and entered <= touched
            assert set(before) - held == set(moment.evicted)
            assert len(moment.slots) == SMALL.lines
            before = held

    def test_the_lesson_of_the_default_cache(self):
        """Three blocks fit: blocked misses least, and the orders with i innermost miss most."""
        setting = views.cache_walk().setting
        assert 3 * setting.block**2 == setting.lines * setting.line
        totals = {nest: total_misses(nest, setting) for nest in NESTS}
        ranking = sorted(totals, key=totals.get)
        assert ranking[0] == "blocked" and set(ranking[-2:]) == {"jki", "kji"}
        assert totals[ranking[-1]] > 10 * totals["blocked"]

    def test_slider_and_drop_down_change_the_picture(self):
        walk = views.cache_walk("ikj", n=4, block=2, lines=6, line=2)
        first = walk.player.picture.value
        assert "ikj, step 1 of 64: 3 misses in 4 accesses" in first
        walk.player.slider.value = 9
        assert "step 10 of 64" in walk.player.picture.value
        assert walk.player.slider.readout is False  # it would say 9
        walk.nest.value = "blocked"
        assert walk.player.slider.value == 0
        assert "blocked 2 × 2, step 1 of 64" in walk.player.picture.value

    def test_buttons_jump_to_the_next_miss_and_the_next_run(self):
        walk = views.cache_walk("ikj", n=4, block=2, lines=6, line=2)
        steps = moments("ikj", SMALL)
        miss, run = walk.player.jumps["next miss »"], walk.player.jumps["next run »"]
        miss.click()
        at = walk.player.slider.value
        assert at > 0 and not all(hit for _, hit in steps[at].touched.values())
        assert all(hit for step in steps[1:at] for _, hit in step.touched.values())
        walk.player.slider.value = 0
        run.click()
        assert walk.player.slider.value == 4
        walk.nest.value = "blocked"
        run.click()
        assert walk.player.slider.value == 2  # a run is as long as a block
        walk.player.slider.value = 63
        for button in (miss, run):
            button.click()
            assert walk.player.slider.value == 63

    @pytest.mark.parametrize("nest", NESTS)
    def test_frames_are_labelled_drawings_of_one_size(self, nest):
        walk = views.cache_walk(nest, n=4, block=2, lines=6, line=2)
        sizes = set()
        for step in (0, 17, 63):
            drawing = ElementTree.fromstring(walk.frame(nest, step))
            assert drawing.get("role") == "img" and f"step {step + 1} of 64" in drawing.get("aria-label")
            sizes.add((drawing.get("width"), drawing.get("height")))
        assert len(sizes) == 1

    def test_a_miss_and_an_eviction_can_be_told_without_colours(self):
        walk = views.cache_walk("ikj", n=4, block=2, lines=6, line=2)
        steps = moments("ikj", SMALL)
        evicting = next(n for n, moment in enumerate(steps) if moment.evicted)
        quiet = next(n for n, m in enumerate(steps) if n and all(hit for _, hit in m.touched.values()))
        assert 'stroke-dasharray="4 3"' in walk.frame("ikj", evicting)
        assert 'stroke-dasharray="4 3"' not in walk.frame("ikj", quiet)
        assert 'stroke-width="3"' in walk.frame("ikj", 0) and 'stroke-width="3"' not in walk.frame(
            "ikj", quiet
        )

    def test_the_still_twin_shows_every_nest_and_the_misses_at_the_end(self):
        still = views.cache_walk(n=4, block=2, lines=6, line=2).static()
        assert still.body.count("<svg") == len(NESTS)
        for nest in NESTS:
            assert f"{nest} {total_misses(nest, SMALL)}" in still.text
        assert "text/html" in views.cache_walk()._repr_mimebundle_()

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"nest": "xyz"}, "nest is 'xyz'"),
            ({"n": 32}, "at most 16 can be followed by eye"),
            ({"n": 6}, "a row of 6 be whole lines"),
            ({"line": 3, "n": 9}, "line is 3"),
            ({"lines": 0}, "lines is 0"),
            ({"lines": 7, "ways": 2}, "a multiple of the 2 ways"),
            ({"block": 1.5}, "block is 1.5"),
        ],
    )
    def test_what_cannot_be_walked_is_refused_in_one_sentence(self, arguments, sentence):
        with pytest.raises(ValueError, match=sentence) as caught:
            views.cache_walk(**arguments)
        assert "\n" not in str(caught.value)


LEVELS = [Level(1024, 2), Level(4096, 4)]


def results(nest, sizes=(8, 16, 32)):
    return {n: simulate(traces.loops(nest, n, n, n), LEVELS) for n in sizes}


class TestMissCurves:
    def test_title_and_alt_text_tell_the_numbers(self):
        curves = {"ikj": results("ikj"), "jki": results("jki")}
        speed = {"ikj": {8: 1.0, 32: 8.0}, "jki": {8: 1.0, 32: 2.0}}
        picture = views.miss_curves(curves, speed)
        factor = curves["jki"][32].misses[0] / curves["ikj"][32].misses[0]
        assert picture.alt.startswith(f"N = 32: jki misses L1 {factor:.2g} times as often as ikj")
        assert "was 4 times slower" in picture.alt
        assert "L1 misses per FLOP, simulated" in picture.alt and "GFLOP/s, measured" in picture.alt
        assert f"{curves['jki'][32].misses_per_flop[1]:.3g} at N 32" in picture.alt
        assert picture.png[:4] == b"\x89PNG"

    def test_curves_that_agree_are_said_to_agree(self):
        curves = {"one": results("ikj"), "two": results("ikj")}
        assert views.miss_curves(curves).alt.startswith("one, two: L1 misses differ by less than 10 %")

    def test_the_title_names_the_place_where_they_differ_most(self):
        curves = {"ikj": results("ikj"), "jki": results("jki")}
        curves["jki"][64] = curves["ikj"][64] = simulate(traces.loops("ikj", 64, 64, 64), LEVELS)
        assert views.miss_curves(curves).alt.startswith("N = 32: ")

    def test_without_measurements_there_is_no_panel_of_speed(self):
        curves = {"ikj": results("ikj"), "jki": results("jki")}
        with_speed = views.miss_curves(curves, {"ikj": {8: 1.0}})
        without = views.miss_curves(curves)
        assert "measured" not in without.alt and with_speed.width > without.width

    def test_one_curve_is_judged_by_its_best_place(self):
        by_block = {b: simulate(traces.blocked(32, 32, 32, b), LEVELS) for b in (2, 4, 8, 16, 32)}
        best = min(by_block, key=lambda b: by_block[b].misses[0])
        expected = {"L1": {"1 / 8b": {b: 1 / (8 * b) for b in by_block}}}
        speed = {"blocked": {2: 1.0, 8: 3.0, 32: 2.0}}
        picture = views.miss_curves({"blocked": by_block}, speed, x="block size", expected=expected)
        assert f"fewest L1 misses at block size {best}" in picture.alt and "fastest at 8" in picture.alt

    def test_per_access_is_the_miss_rate(self):
        curves = {"ikj": results("ikj"), "jki": results("jki")}
        alt = views.miss_curves(curves, per="access").alt
        assert f"{curves['jki'][32].miss_rates[0]:.3g} at N 32" in alt and "per FLOP" not in alt

    @pytest.mark.parametrize(
        ("call", "sentence"),
        [
            (lambda: views.miss_curves({}), "holds no results"),
            (lambda: views.miss_curves({"ikj": {}}), "holds no results"),
            (lambda: views.miss_curves({"ikj": results("ikj")}, per="byte"), "per is 'byte'"),
            (
                lambda: views.miss_curves({"ikj": results("ikj")}, {"ijk": {8: 1.0}}),
                "ijk was measured but not",
            ),
            (
                lambda: views.miss_curves({"a": results("ikj", (8,)), "b": results("ikj", (16,))}),
                "no x in common",
            ),
            (
                lambda: views.miss_curves(
                    {"a": results("ikj"), "b": {8: simulate(traces.loops("ikj", 8, 8, 8), LEVELS[:1])}}
                ),
                "different caches",
            ),
            (
                lambda: views.miss_curves({"a": results("ikj")}, expected={"L9": {"x": {8: 1.0}}}),
                "expected names L9",
            ),
        ],
    )
    def test_what_cannot_be_drawn_is_refused_in_one_sentence(self, call, sentence):
        with pytest.raises(ValueError, match=sentence) as caught:
            call()
        assert "\n" not in str(caught.value)
