"""The time slider on a kernel: true to the tracer, driven by keys, readable without colour, and harmless."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from course_lib import views


@pytest.fixture(scope="module")
def kernels():
    """The kernels and their launches; numba is imported with them."""
    from gpu_kernels import stepped

    return stepped


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def line_of(kernel, words):
    import inspect

    lines, first = inspect.getsourcelines(kernel.py_func)
    return next(first + n for n, line in enumerate(lines) if words in line)


def drawings(html):
    return [ElementTree.fromstring(drawing) for drawing in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def words_of(drawing):
    return [text for text in drawing.iter() if text.tag.endswith("text")]


def recorded(kernel, griddim, blockdim, *args, at=(0, 0)):
    from course_lib.simulators.gpu import trace

    return trace(kernel, griddim, blockdim, *args, record=at).steps


def sentences(*launch, **options):
    from course_lib.views.kernel_access import sentence

    return [sentence(step) for step in recorded(*launch, **options)]


@pytest.fixture(scope="module")
def transposed(kernels):
    """Return a function that shows the transpose in shared memory, with its bank conflict."""
    return lambda **which: views.gpu_steps(
        kernels.transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), **which
    )


class TestEveryKernel:
    def test_costs_and_cells_are_the_tracers(self, kernels):
        from course_lib.views.kernel_access import fewest, passes, sectors
        from course_lib.views.kernel_window import Layout

        for name, launch in kernels.LAUNCHES.items():
            steps = recorded(*launch)
            assert any(step.kind != "barrier" for step in steps), name
            for step in steps:
                if step.kind == "barrier":
                    continue
                if step.space == "global":
                    assert len(sectors(step)) == step.cost, name
                else:
                    found = passes(step)
                    assert len(found) == step.cost, name
                    assert sum(one.is_repeat for one in found) == step.cost - fewest(step), name
                    served = [lane for one in found for lanes in one.lanes.values() for lane in lanes]
                    assert sorted(served) == [n for n, place in enumerate(step.places) if place is not None]
                layout = Layout(step)
                for place in {place for place in step.places if place is not None}:
                    assert layout.place(*layout.cell(place)) == place, name
                    index = layout.index(place)
                    assert place == step.offset + sum(i * s for i, s in zip(index, step.strides, strict=True))

    def test_every_drawing_is_labelled_and_no_step_changes_its_size(self, kernels):
        for name, launch in kernels.LAUNCHES.items():
            live = views.gpu_steps(*launch)
            sizes = set()
            for step in range(0, live.frames.last + 1, max(1, live.frames.last // 4)):
                frame = live.frame(step)
                shown = drawings(frame)
                assert len(shown) == 3, name
                assert all(one.get("aria-label").endswith(".") for one in shown), name
                sizes.add(tuple((one.get("width"), one.get("height")) for one in shown))
                label = re.search(r'role="figure" aria-label="([^"]*)"', frame)[1]
                assert f"Step {step + 1} of {live.frames.last + 1}: line" in label
                (marked,) = re.findall(r"▶ +(\d+)", frame)  # the line is marked by a sign
                assert int(marked) == live.frames.steps[step].line
            assert len(sizes) == 1, name


class TestWhatIsSaid:
    def test_the_sentences(self, kernels):
        tiled = kernels.tiled
        a, b = line_of(tiled, "a[y, x] ="), line_of(tiled, "total +=")
        said = sentences(tiled, (2, 2), (32, 32), zeros(64, 64), zeros(64, 64), zeros(64, 64))
        assert said[0] == (
            f"line {a}: load of A: 32 lanes, 32 elements, 4 sectors: coalesced, every byte moved is used"
        )
        assert said[1] == f"line {a}: store to a: 32 lanes, 32 elements, 1 wavefront: no bank conflict"
        assert said[4].endswith("barrier: the warp waits until all warps of its block are here")
        assert said[5] == f"line {b}: load of a: 32 lanes, 1 element, 1 wavefront: a broadcast"
        load = sentences(*kernels.LAUNCHES["transpose"])[3]
        assert load.endswith("load of s: 32 lanes, 32 elements, 32 wavefronts: a 32-way bank conflict")

    def test_the_verdict_on_a_read(self, kernels):
        few = "as few as can be"  # a part of a warp is not blamed for a sector that it cannot fill
        for dtype, stride, start, lanes, ending in (
            ("f4", 0, 0, 32, "32 lanes, 1 element, 1 sector: a broadcast"),
            ("f4", 2, 0, 32, "8 sectors: 4 would do, 128 of 256 bytes moved are used"),
            ("f4", 8, 0, 32, "each element in a sector of its own, 128 of 1,024 bytes moved are used"),
            ("f4", 1, 1, 32, "5 sectors: 4 would do, 128 of 160 bytes moved are used"),
            ("f8", 1, 0, 32, "8 sectors: coalesced, every byte moved is used"),
            ("f4", 1, 0, 3, f"3 lanes, 3 elements, 1 sector: {few}, 12 of 32 bytes moved are used"),
        ):
            x, out = np.zeros(1000, dtype)[start:], np.zeros(lanes, dtype)
            assert sentences(kernels.strided, 1, 32, x, out, stride)[0].endswith(ending), ending

    def test_half_warps_broadcasts_and_atomics(self, kernels):
        counts = np.zeros(32, np.int32), np.zeros(3, np.int32)
        for launch, place, ending in (
            (kernels.LAUNCHES["wide"], 0, "no bank conflict, 8-byte elements go by half-warps"),
            (kernels.LAUNCHES["wide"], -2, "4 wavefronts: a 2-way bank conflict"),
            ((kernels.histogram, 1, 32, *counts), 1, "one element; 32 lanes want one element and take turns"),
            ((kernels.one_flag, 1, 32, zeros(1)), 0, "1 wavefront: all lanes write one element"),
            ((kernels.one_flag, 1, 32, zeros(1)), 2, "1 wavefront: a broadcast"),
            ((kernels.one_flag, 1, 32, zeros(1)), 3, "1 sector: all lanes write one element"),
        ):
            assert sentences(*launch)[place].endswith(ending), ending
        shown = views.gpu_steps(*kernels.LAUNCHES["histogram"])
        assert "11 lanes want one element and take turns" in shown.frame(1)
        line = line_of(kernels.histogram, "atomic")
        assert f"11 lanes take turns at the atomic in line {line}" in shown.frames.title

    def test_the_title_says_the_finding_and_a_hazard_comes_first(self, kernels, transposed):
        line = line_of(kernels.transpose, "B[i, j]")
        said = f"a 32-way bank conflict in line {line}, 32 wavefronts where 1 would do"
        assert transposed().frames.title == f"transpose, block 0, warp 0: {said}"
        square = zeros(64, 64)
        which = {"block": (1, 0), "warp": 3}
        clean = views.gpu_steps(kernels.tiled, (2, 2), (32, 32), square, square, square.copy(), **which)
        assert clean.frames.title == "tiled, block (1, 0), warp 3: no access costs more than it must"
        line = line_of(kernels.strided, "x[i")
        assert f"the load of x in line {line} moves 32 sectors where 4 would do" in (
            views.gpu_steps(*kernels.LAUNCHES["strided"]).frames.title
        )
        outside = views.gpu_steps(kernels.strided, 1, 32, zeros(20), zeros(32), 1)
        assert outside.frames.title == f"strided, block 0, warp 0: out-of-bounds in line {line}"
        assert "Hazard: line" in outside.frame(0) and "Hazard: line" in outside.static().body
        assert "Hazard" not in views.gpu_steps(kernels.strided, 1, 32, zeros(32), zeros(32), 1).frame(0)


class TestTheArray:
    def test_what_is_drawn_is_what_the_warp_touches_and_what_moves_along(self, kernels):
        from course_lib.views.kernel_window import Window

        load = recorded(kernels.transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), at=(0, 5))[3]
        window = Window(load)
        assert set(window.touched) == {(row, 5) for row in range(32)}
        assert window.rows == window.columns == [range(32)] and not window.moved
        assert "Touched: from s[0, 5] (first lane) to s[31, 5] (last lane)" in window.words()
        window = Window(recorded(kernels.strided, 1, 32, zeros(96), zeros(32), 3)[0])
        assert set(window.touched) == {divmod(3 * lane, 32) for lane in range(32)}
        assert set(window.moved) == {divmod(n, 32) for n in range(96)} - set(window.touched)
        step = recorded(kernels.strided, 1, 32, zeros(64)[::3], zeros(2), 6)[0]
        assert step.places[:2] == (0, 18)  # in sectors 0 (0 to 7) and 2 (16 to 23); element 5 is place 15
        assert {column for _, column in Window(step).moved} == {1, 2, 7}


class TestTheSlider:
    def test_slider_and_buttons_change_the_picture(self, transposed):
        live = transposed(warp=5)
        player = live.player
        assert player.slider.max == 4 and player.slider.readout is False  # the picture counts, from 1
        assert "step 1 of 5" in player.picture.value and player.picture.value == live.frame(0)
        player.forward.click()
        assert live.step == 1 and "store to s" in player.picture.value
        player.slider.value = 0
        player.jumps["next costly »"].click()
        assert live.step == 3 and "32-way bank conflict" in player.picture.value
        player.slider.value = 0
        player.jumps["next line »"].click()
        assert live.frames.steps[live.step].kind == "barrier"

    def test_another_block_or_warp_is_traced_anew(self, kernels):
        A = np.arange(6400, dtype=np.float32).reshape(80, 80)
        launch = (kernels.tiled, (3, 3), (32, 32), A, A, zeros(80, 80))
        live = views.gpu_steps(*launch, block=(1, 2), warp=3)
        assert [field.value for field in live.block] == [1, 2] and live.warp.value == 3
        assert live.warp.max == 31 and [field.max for field in live.block] == [2, 2]
        first = live.frames.steps[0]
        assert first.places[0] == 67 * 80
        live.player.slider.value = 9
        live.block[1].value = 0
        assert live.step == 0 and live.frames.steps[0].places[0] == 3 * 80
        live.warp.value = 4
        assert live.frames.steps[0].places[0] == 4 * 80
        assert "block (1, 0), warp 4" in live.player.picture.value
        live.block[1].value, live.warp.value = 2, 3
        assert live.frames.steps[0] == first

    def test_a_trace_alone_is_shown_as_it_was_recorded(self, kernels):
        from course_lib.simulators.gpu import trace

        seen = trace(kernels.transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), record=(0, 7))
        live = views.gpu_steps(seen)
        assert live.frames.steps is seen.steps and "warp 7" in live.frame(0)
        assert all(field.disabled for field in (*live.block, live.warp))
        live.warp.value = 3
        assert "warp 7" in live.player.picture.value

    def test_a_warp_that_touches_nothing_is_shown_too_and_what_cannot_be_is_refused(
        self, kernels, transposed
    ):
        from course_lib.simulators.gpu import trace

        live = views.gpu_steps(kernels.nothing, 1, 32, zeros(4))
        assert "it touches no global or shared memory" in live.frames.title
        assert "This warp touches no global" in live.frame(0) and live.player.slider.max == 0
        assert "it touches no global or shared memory" in live.static().text
        for jump in live.player.jumps.values():
            jump.click()
        assert live.step == 0
        for call, said in (
            (lambda: views.gpu_steps(kernels.transpose), "gpu_steps needs the launch"),
            (lambda: transposed(warp=32), "warp 32"),
            (lambda: transposed(block=1), "outside"),
            (lambda: views.gpu_steps(trace(kernels.nothing, 1, 32, zeros(4))), "been made with record="),
        ):
            with pytest.raises(ValueError, match=said) as caught:
                call()
            assert "\n" not in str(caught.value)


class TestTheArguments:
    def test_each_run_begins_with_the_arrays_as_they_were_and_leaves_them(self, kernels):
        x, y = np.arange(64, dtype=np.float32), zeros(64)
        live = views.gpu_steps(kernels.add_one, 2, 32, x, y)
        live.block[0].value = 1
        assert (x == np.arange(64)).all() and not y.any()
        counts = np.zeros(4, np.int32)
        live = views.gpu_steps(kernels.histogram, 2, 4, np.zeros(8, np.int32), counts)
        for block in (1, 0):
            live.block[0].value = block
        assert not live._runs._args[1].any() and not counts.any()

    def test_what_the_notebook_changes_later_is_not_seen(self, kernels):
        x = np.arange(64, dtype=np.int32) % 3
        live = views.gpu_steps(kernels.histogram, 2, 32, x, np.zeros(3, np.int32))
        x[:] = 0
        live.block[0].value = 1
        assert set(live.frames.steps[1].places) == {0, 1, 2}

    def test_a_copy_lies_as_the_original_does(self, kernels):
        x = zeros(100)[1:]
        live = views.gpu_steps(kernels.strided, 1, 32, x, zeros(32), 1)
        assert live.frames.steps[0].cost == 5  # a shifted view still takes five sectors
        live = views.gpu_steps(kernels.add_one, 1, 32, x[:32], x[:32])  # what shares memory still does
        live.warp.value = 0
        one, two = live._runs._args
        assert np.shares_memory(one, two) and not np.shares_memory(one, x) and not x.any()


class TestThePicture:
    def test_what_is_moved_in_vain_is_hatched_and_idle_lanes_differ_without_colour(self, kernels):
        drawing = drawings(views.gpu_steps(kernels.strided, 1, 32, zeros(64), zeros(32), 2).frame(0))[2]
        words = ["".join(text.itertext()) for text in words_of(drawing)]
        assert {str(lane) for lane in range(32)} <= set(words)
        assert any("Hatched" in line for line in words)
        paths = [path for path in drawing.iter() if path.tag.endswith("path")]
        assert len(paths) == 2 * 8  # cells and strokes of 8 sectors
        launch = (kernels.strided, 2, 40, zeros(80), zeros(75), 1)
        place = drawings(views.gpu_steps(*launch, block=1, warp=1).frame(0))[0]  # of 8 threads, 3 active
        assert "3 lanes of 32 active" in place.get("aria-label")
        boxes = [box for box in place.iter() if box.tag.endswith("rect")]
        assert sum(box.get("stroke-dasharray") == "2 2" for box in boxes) == 24  # missing
        numbers = [text for text in words_of(place) if text.get("font-size") == "9"]
        assert sum(text.get("font-weight") == "700" for text in numbers) == 3
