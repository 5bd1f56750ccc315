"""The cache animation and the miss curves: true to the simulator, driven by keys, readable without colour."""

from view_samples import cache_levels, misses

from course_lib import views


class TestCacheWalk:
    def test_every_count_is_the_simulators(self):
        from course_lib.simulators import traces
        from course_lib.simulators.cache import Level, simulate
        from course_lib.views.cache_animation import NESTS, moments, total_misses

        options = {"in_registers": False}
        for nest in NESTS:
            blocked = nest == "blocked"
            trace = (
                traces.blocked(8, 8, 8, 4, **options) if blocked else traces.loops(nest, 8, 8, 8, **options)
            )
            result = simulate(trace, [Level(12 * 32, None, 32)])
            last = moments(nest)[-1]
            for name, (missed,) in result.by_array.items():
                start, size = trace.arrays[name]
                inside = (start <= trace.addresses) & (trace.addresses < start + size)
                assert last.misses[name] == missed, nest
                assert last.misses[name] + last.hits[name] == inside.sum()
            assert total_misses(nest) == result.misses[0]

    def test_the_lesson_of_the_cache(self):
        """Three blocks fit: blocked misses least, and the orders with i innermost miss most."""
        from course_lib.views.cache_animation import NESTS, total_misses

        totals = {nest: total_misses(nest) for nest in NESTS}
        ranking = sorted(totals, key=totals.get)
        assert ranking[0] == "blocked" and set(ranking[-2:]) == {"jki", "kji"}
        assert totals[ranking[-1]] > 10 * totals["blocked"]
        text = views.cache_walk().static().text
        assert all(f"{nest} {total:,}" in text for nest, total in totals.items())

    def test_buttons_jump_to_a_miss_and_to_a_run(self):
        from course_lib.views.cache_animation import moments

        walk, steps = views.cache_walk(), moments("ikj")
        walk.jumps["next miss »"].click()
        missing = [n for n, step in enumerate(steps) if not all(hit for _, hit in step.touched.values())]
        assert walk.step == next(n for n in missing if n > 0)
        walk.slider.value = 0
        walk.jumps["next run »"].click()
        assert walk.step == 8 and "ikj, step 9 of 512" in walk.picture.value
        walk.nest.value = "blocked"
        assert "blocked 4 × 4, step 1 of 512" in walk.picture.value


class TestMissCurves:
    def test_title_and_alt_text_tell_the_numbers(self):
        curves = {"ikj": misses("ikj"), "jki": misses("jki")}
        speed = {"ikj": {8: 1.0, 32: 8.0}, "jki": {8: 1.0, 32: 2.0}}
        picture, without = views.miss_curves(curves, speed), views.miss_curves(curves)
        factor = curves["jki"][32].misses[0] / curves["ikj"][32].misses[0]
        assert picture.alt.startswith(f"N = 32: jki misses L1 {factor:.2g} times as often as ikj")
        assert "was 4 times slower" in picture.alt
        assert "L1 misses per FLOP, simulated" in picture.alt and "GFLOP/s, measured" in picture.alt
        assert f"{curves['jki'][32].misses_per_flop[1]:.3g} at N 32" in picture.alt
        assert "measured" not in without.alt and picture.width > without.width  # a panel of speed

    def test_one_curve_is_judged_by_its_best_place(self):
        from course_lib.simulators import traces
        from course_lib.simulators.cache import simulate

        blocks = (2, 4, 8, 16, 32)
        by_block = {b: simulate(traces.blocked(32, 32, 32, b), cache_levels()) for b in blocks}
        best = min(by_block, key=lambda b: by_block[b].misses[0])
        speed = {"blocked": {2: 1.0, 8: 3.0, 32: 2.0}}
        picture = views.miss_curves({"blocked": by_block}, speed, x="block size")
        assert f"fewest L1 misses at block size {best}" in picture.alt and "fastest at 8" in picture.alt
