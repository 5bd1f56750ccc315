"""The time slider on a kernel: true to the tracer, driven by keys, readable without colour, and harmless."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from numba import cuda, float32, float64

from course_lib import views
from course_lib.simulators.gpu import trace
from course_lib.views.kernel_access import bytes_used, conflict, fewest, passes, sectors, sentence
from course_lib.views.kernel_steps import copied
from course_lib.views.kernel_window import MOST, Layout, Window, runs

TILE = 32


@cuda.jit
def tiled(A, B, C):
    a = cuda.shared.array((TILE, TILE), float32)
    b = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    j, i = cuda.grid(2)
    total = float32(0)
    for first in range(0, A.shape[1], TILE):
        a[y, x] = A[i, first + x] if i < A.shape[0] and first + x < A.shape[1] else float32(0)
        b[y, x] = B[first + y, j] if first + y < B.shape[0] and j < B.shape[1] else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += a[y, k] * b[k, x]
        cuda.syncthreads()
    if i < C.shape[0] and j < C.shape[1]:
        C[i, j] = total


@cuda.jit
def transpose(A, B):
    s = cuda.shared.array((32, 32), float32)
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    s[i, j] = A[i, j]
    cuda.syncthreads()
    B[i, j] = s[j, i]


@cuda.jit
def strided(x, out, stride):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i * stride]


@cuda.jit
def wide(out, stride):
    s = cuda.shared.array(1024, float64)
    i = cuda.threadIdx.x
    for k in range(i, 1024, 32):
        s[k] = k
    cuda.syncthreads()
    out[i] = s[i * stride]


@cuda.jit
def histogram(x, counts):
    i = cuda.grid(1)
    cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def one_flag(out):
    flag = cuda.shared.array(1, float32)
    flag[0] = 1
    cuda.syncthreads()
    out[0] = flag[0]


@cuda.jit
def add_one(x, y):
    i = cuda.grid(1)
    x[i] += 1
    y[i] += x[i]


@cuda.jit
def cube(A, out):
    x, y, z = cuda.grid(3)
    out[z, y, x] = A[x, y, z]


@cuda.jit
def nothing(x):
    i = cuda.grid(1)
    if i < 0:
        x[i] = 0


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def line_of(kernel, words):
    import inspect

    lines, first = inspect.getsourcelines(kernel.py_func)
    return next(first + n for n, line in enumerate(lines) if words in line)


def transposed(**options):
    return views.gpu_steps(transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), **options)


def drawings(html):
    return [ElementTree.fromstring(drawing) for drawing in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def recorded(kernel, griddim, blockdim, *args, at=(0, 0)):
    return trace(kernel, griddim, blockdim, *args, record=at).steps


LAUNCHES = {
    "tiled": (tiled, (2, 2), (32, 32), zeros(40, 40), zeros(40, 37), zeros(40, 37)),
    "transpose": (transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32)),
    "strided": (strided, 2, 64, zeros(90_000), zeros(128), 700),
    "bytes": (strided, 1, 32, zeros(1000, dtype=np.uint8), zeros(32, dtype=np.uint8), 3),
    "wide": (wide, 1, 32, zeros(32, dtype=np.float64), 2),
    "complex": (strided, 1, 32, zeros(100, dtype=np.complex128), zeros(32, dtype=np.complex128), 2),
    "cube": (cube, (4, 4, 4), (8, 4, 4), zeros(32, 16, 16), zeros(16, 16, 32)),
    "reversed": (strided, 1, 32, zeros(200)[::-2], zeros(32), 3),
    "histogram": (histogram, 1, 32, np.arange(32, dtype=np.int32) % 3, zeros(3, dtype=np.int32)),
}


class TestWhatIsSaid:
    @pytest.mark.parametrize("name", LAUNCHES)
    def test_sectors_and_wavefronts_are_the_tracers(self, name):
        steps = recorded(*LAUNCHES[name])
        assert any(step.kind != "barrier" for step in steps)
        for step in steps:
            if step.space == "global":
                assert len(sectors(step)) == step.cost
            elif step.space == "shared":
                assert len(passes(step)) == step.cost
                assert sum(pass_.is_repeat for pass_ in passes(step)) == step.cost - fewest(step)

    def test_every_lane_is_served_by_one_bank_in_one_wavefront(self):
        for name in ("tiled", "transpose", "wide"):
            for step in recorded(*LAUNCHES[name]):
                if step.space == "shared":
                    served = [
                        lane for pass_ in passes(step) for lanes in pass_.lanes.values() for lane in lanes
                    ]
                    assert sorted(served) == [n for n, place in enumerate(step.places) if place is not None]

    def test_the_sentences(self):
        a, b = line_of(tiled, "a[y, x] ="), line_of(tiled, "total +=")
        square = zeros(64, 64)
        said = [sentence(step) for step in recorded(tiled, (2, 2), (32, 32), square, square, zeros(64, 64))]
        assert said[0] == (
            f"line {a}: load of A: 32 lanes, 32 elements, 4 sectors: coalesced, every byte moved is used"
        )
        assert said[1] == f"line {a}: store to a: 32 lanes, 32 elements, 1 wavefront: no bank conflict"
        assert said[4].endswith("barrier: the warp waits until all warps of its block are here")
        assert said[5] == f"line {b}: load of a: 32 lanes, 1 element, 1 wavefront: a broadcast"
        load = recorded(*LAUNCHES["transpose"])[3]
        assert sentence(load).endswith(
            "load of s: 32 lanes, 32 elements, 32 wavefronts: a 32-way bank conflict"
        )

    @pytest.mark.parametrize(
        ("dtype", "stride", "start", "ending"),
        [
            (np.float32, 0, 0, "32 lanes, 1 element, 1 sector: a broadcast"),
            (np.float32, 2, 0, "8 sectors: 4 would do, 128 of 256 bytes moved are used"),
            (
                np.float32,
                8,
                0,
                "32 sectors: each element in a sector of its own, 128 of 1,024 bytes moved are used",
            ),
            (np.float32, 1, 1, "5 sectors: 4 would do, 128 of 160 bytes moved are used"),
            (np.float64, 1, 0, "8 sectors: coalesced, every byte moved is used"),
        ],
    )
    def test_the_verdict_on_a_read(self, dtype, stride, start, ending):
        x = np.zeros(1000, dtype)[start:]
        assert sentence(recorded(strided, 1, 32, x, np.zeros(32, dtype), stride)[0]).endswith(ending)

    def test_a_part_of_a_warp_is_not_blamed_for_a_sector_it_cannot_fill(self):
        load = recorded(strided, 1, 32, zeros(32), zeros(3), 1)[0]
        assert sentence(load).endswith(
            "3 lanes, 3 elements, 1 sector: as few as can be, 12 of 32 bytes moved are used"
        )

    def test_eight_bytes_go_by_half_warps_and_that_is_no_conflict(self):
        store, load = recorded(*LAUNCHES["wide"])[0], recorded(*LAUNCHES["wide"])[-2]
        assert sentence(store).endswith("2 wavefronts: no bank conflict, 8-byte elements go by half-warps")
        assert (load.cost, conflict(load), bytes_used(load)) == (4, 2, 256)
        assert sentence(load).endswith("4 wavefronts: a 2-way bank conflict")

    def test_only_a_load_is_a_broadcast(self):
        same = recorded(histogram, 1, 32, np.zeros(32, np.int32), np.zeros(3, np.int32))
        assert sentence(same[1]).endswith(
            "1 sector: all lanes update one element; 32 lanes want one element and take turns"
        )
        said = [sentence(step) for step in recorded(one_flag, 1, 32, zeros(1))]
        assert said[0].endswith("1 wavefront: all lanes write one element")
        assert said[2].endswith("1 wavefront: a broadcast")
        assert said[3].endswith("1 sector: all lanes write one element")

    def test_lanes_of_an_atomic_take_turns(self):
        said = views.gpu_steps(*LAUNCHES["histogram"])
        assert "11 lanes want one element and take turns" in said.frame(1)
        assert (
            f"11 lanes take turns at the atomic in line {line_of(histogram, 'atomic')}" in said.frames.title
        )

    def test_the_title_says_the_finding(self):
        line = line_of(transpose, "B[i, j]")
        said = f"a 32-way bank conflict in line {line}, 32 wavefronts where 1 would do"
        assert transposed().frames.title == f"transpose, block 0, warp 0: {said}"
        square = zeros(64, 64)
        clean = views.gpu_steps(tiled, (2, 2), (32, 32), square, square, square.copy(), block=(1, 0), warp=3)
        assert clean.frames.title == "tiled, block (1, 0), warp 3: no access costs more than it must"
        assert f"the load of x in line {line_of(strided, 'x[i')} moves 32 sectors where 4 would do" in (
            views.gpu_steps(*LAUNCHES["strided"]).frames.title
        )

    def test_a_hazard_comes_first(self):
        outside = views.gpu_steps(strided, 1, 32, zeros(20), zeros(32), 1)
        line = line_of(strided, "x[i")
        assert outside.frames.title == f"strided, block 0, warp 0: out-of-bounds in line {line}"
        assert "Hazard: line" in outside.frame(0) and "Hazard: line" in outside.static().body
        assert "Hazard" not in views.gpu_steps(strided, 1, 32, zeros(32), zeros(32), 1).frame(0)


class TestTheArray:
    @pytest.mark.parametrize("name", LAUNCHES)
    def test_every_element_has_its_cell_and_back(self, name):
        for step in recorded(*LAUNCHES[name]):
            if step.kind != "barrier":
                layout = Layout(step)
                for place in {place for place in step.places if place is not None}:
                    assert layout.place(*layout.cell(place)) == place
                    index = layout.index(place)
                    assert place == step.offset + sum(i * s for i, s in zip(index, step.strides, strict=True))

    def test_what_is_drawn_is_what_the_warp_touches(self):
        window = Window(recorded(transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), at=(0, 5))[3])
        assert set(window.touched) == {(row, 5) for row in range(32)}
        assert window.rows == window.columns == [range(32)] and not window.moved
        assert "Touched: from s[0, 5] (first lane) to s[31, 5] (last lane)" in window.words()

    def test_what_moves_along_is_the_rest_of_the_sectors(self):
        x = zeros(96)
        window = Window(recorded(strided, 1, 32, x, zeros(32), 3)[0])
        assert set(window.touched) == {divmod(3 * lane, 32) for lane in range(32)}
        assert set(window.moved) == {divmod(n, 32) for n in range(96)} - set(window.touched)
        view = Window(recorded(strided, 1, 16, np.zeros(64, np.float32)[1::2], zeros(16), 2)[0])
        assert len(view.moved) == 16  # elements between those of the view belong to nobody here

    def test_a_view_with_holes_marks_no_element_of_another_sector(self):
        step = recorded(strided, 1, 32, zeros(64)[::3], zeros(2), 6)[0]
        assert step.places[:2] == (0, 18)  # in sectors 0 (0 to 7) and 2 (16 to 23); element 5 is place 15
        assert {column for _, column in Window(step).moved} == {1, 2, 7}

    @pytest.mark.parametrize(
        ("wanted", "size", "expected"),
        [
            ({3}, 33, [range(33)]),
            ({3}, 1000, [range(0, 16)]),
            (set(range(100, 132)), 1000, [range(96, 132)]),
            ({998}, 1000, [range(984, 1000)]),
            ({0, 1, 500}, 1000, [range(0, 2), range(500, 501)]),
        ],
    )
    def test_a_window_lies_around_what_is_wanted(self, wanted, size, expected):
        assert runs(wanted, set(), size, 16) == expected

    def test_a_window_is_never_larger_than_can_be_drawn(self):
        for low in range(0, 200):
            for length in (1, 8, 31, 32):
                wanted = set(range(low, min(low + length, 200)))
                pieces = runs(wanted, set(), 200)
                drawn = {n for piece in pieces for n in piece}
                assert wanted <= drawn and len(drawn) <= MOST and max(drawn) < 200

    def test_what_has_no_room_is_counted(self):
        spread = recorded(cube, (1, 1, 1), (2, 16, 2), zeros(100, 100, 100), zeros(2, 16, 2))[0]
        window = Window(spread)
        drawn = sum(row in {r for run in window.rows for r in run} for row, _ in window.touched)
        assert drawn + window.left_out == len(window.touched) == 32
        many = Window(recorded(strided, 1, 64, zeros(4000), zeros(64), 40, at=(0, 1))[0])
        assert many.left_out == 0


class TestTheSlider:
    def test_slider_and_buttons_change_the_picture(self):
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
        for _ in range(3):
            player.jumps["next line »"].click()
        assert live.step == 4

    def test_another_block_or_warp_is_traced_anew(self):
        A = np.arange(6400, dtype=np.float32).reshape(80, 80)
        live = views.gpu_steps(tiled, (3, 3), (32, 32), A, A, zeros(80, 80), block=(1, 2), warp=3)
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

    def test_the_fields_are_used_by_keyboard(self):
        live = views.gpu_steps(*LAUNCHES["cube"])
        for field in (*live.block, live.warp):
            assert "Keyboard" in field.tooltip
        assert [field.description for field in live.block] == ["block x", "block y", "block z"]
        assert "arrow keys" in live.player.KEYS

    def test_a_trace_alone_is_shown_as_it_was_recorded(self):
        seen = trace(transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), record=(0, 7))
        live = views.gpu_steps(seen)
        assert live.frames.steps is seen.steps and "warp 7" in live.frame(0)
        assert all(field.disabled for field in (*live.block, live.warp))
        live.warp.value = 3
        assert "warp 7" in live.player.picture.value

    def test_a_warp_that_touches_nothing_is_shown_too(self):
        live = views.gpu_steps(nothing, 1, 32, zeros(4))
        assert "it touches no global or shared memory" in live.frames.title
        assert "This warp touches no global" in live.frame(0) and live.player.slider.max == 0
        assert "it touches no global or shared memory" in live.static().text
        for jump in live.player.jumps.values():
            jump.click()
        assert live.step == 0

    @pytest.mark.parametrize(
        ("call", "sentence_"),
        [
            (lambda: views.gpu_steps(transpose), "gpu_steps needs the launch"),
            (
                lambda: views.gpu_steps(transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), warp=32),
                "warp 32",
            ),
            (
                lambda: views.gpu_steps(transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), block=1),
                "outside",
            ),
            (lambda: views.gpu_steps(trace(nothing, 1, 32, zeros(4))), "must have been made with record="),
        ],
    )
    def test_what_cannot_be_shown_is_refused_in_one_sentence(self, call, sentence_):
        with pytest.raises(ValueError, match=sentence_) as caught:
            call()
        assert "\n" not in str(caught.value)


class TestTheArguments:
    def test_arrays_of_the_notebook_stay_as_they_are(self):
        x, y = np.arange(64, dtype=np.float32), zeros(64)
        live = views.gpu_steps(add_one, 2, 32, x, y)
        live.block[0].value = 1
        assert (x == np.arange(64)).all() and not y.any()

    def test_each_run_begins_with_the_arrays_as_they_were(self):
        x = np.zeros(4, np.int32)
        live = views.gpu_steps(histogram, 2, 4, np.zeros(8, np.int32), x)
        live.block[0].value = 1
        live.block[0].value = 0
        kept = live._runs._args[1]
        assert not kept.any() and not x.any()

    def test_what_the_notebook_changes_later_is_not_seen(self):
        x = np.arange(64, dtype=np.int32) % 3
        live = views.gpu_steps(histogram, 2, 32, x, np.zeros(3, np.int32))
        x[:] = 0
        live.block[0].value = 1
        assert set(live.frames.steps[1].places) == {0, 1, 2}

    def test_a_copy_lies_as_the_original_does(self):
        base = np.arange(100, dtype=np.float32)
        matrix = np.asfortranarray(np.arange(12.0).reshape(3, 4))
        fixed = np.arange(3)
        fixed.flags.writeable = False
        args = (base[1:], base[::-2], (matrix, 5), fixed, 2.5)
        one, two, (other, five), still, number = copied(args)
        assert (one == base[1:]).all() and (two == base[::-2]).all() and (other == matrix).all()
        assert one.strides == (4,) and two.strides == (-8,) and other.strides == matrix.strides
        assert (five, number) == (5, 2.5) and not still.flags.writeable
        assert np.shares_memory(one, two) and not np.shares_memory(one, base)
        one[0] = -1
        assert base[1] == 1

    def test_a_shifted_view_still_takes_five_sectors(self):
        live = views.gpu_steps(strided, 1, 32, zeros(100)[1:], zeros(32), 1)
        assert live.frames.steps[0].cost == 5


class TestThePicture:
    @pytest.mark.parametrize("name", LAUNCHES)
    def test_every_drawing_is_labelled_and_no_step_changes_its_size(self, name):
        live = views.gpu_steps(*LAUNCHES[name])
        sizes = set()
        for step in range(0, live.frames.last + 1, 7):
            shown = drawings(live.frame(step))
            assert len(shown) == 3
            assert all(one.get("role") == "img" and one.get("aria-label").endswith(".") for one in shown)
            sizes.add(tuple((one.get("width"), one.get("height")) for one in shown))
            label = re.search(r'role="figure" aria-label="([^"]*)"', live.frame(step))[1]
            assert f"Step {step + 1} of {live.frames.last + 1}: line" in label
        assert len(sizes) == 1

    def test_the_labels_say_what_is_drawn(self):
        place, array, memory = (one.get("aria-label") for one in drawings(transposed(warp=5).frame(3)))
        assert "block of 32 × 32 threads, warp 5 chosen: threads (0, 5) to (31, 5)" in place
        assert "32 lanes of 32 active" in place
        assert array.startswith("s: 32 × 32 elements of 4 bytes, shared")
        assert memory == "32 wavefronts: a 32-way bank conflict; bank 5 serves 32 words."

    def test_the_line_is_marked_by_a_sign(self):
        live = transposed()
        for step in (0, 3):
            (marked,) = re.findall(r"▶ +(\d+)", live.frame(step))
            assert int(marked) == live.frames.steps[step].line

    def test_a_long_kernel_is_shown_around_the_current_line(self):
        from course_lib.views.kernel_steps import LINES, _shown

        source = {n: f"    line {n}" for n in range(100, 200)}
        for now in source:
            shown = _shown(source, now)
            assert now in shown and len(shown) == LINES
        assert next(iter(_shown(source, 150).values())).startswith("line")

    def test_what_is_moved_in_vain_is_hatched_and_lanes_are_numbered(self):
        drawing = drawings(views.gpu_steps(strided, 1, 32, zeros(64), zeros(32), 2).frame(0))[2]
        words = ["".join(text.itertext()) for text in drawing.iter() if text.tag.endswith("text")]
        assert {str(lane) for lane in range(32)} <= set(words)
        assert any("Hatched" in line for line in words)
        paths = [path for path in drawing.iter() if path.tag.endswith("path")]
        assert len(paths) == 2 * 8  # cells and strokes of 8 sectors

    def test_missing_and_idle_lanes_differ_from_active_ones_without_colour(self):
        place = drawings(views.gpu_steps(strided, 2, 40, zeros(80), zeros(75), 1, block=1, warp=1).frame(0))[
            0
        ]
        assert "3 lanes of 32 active" in place.get("aria-label")
        boxes = [box for box in place.iter() if box.tag.endswith("rect")]
        assert sum(box.get("stroke-dasharray") == "2 2" for box in boxes) == 24
        bold = [t for t in place.iter() if t.tag.endswith("text") and t.get("font-size") == "9"]
        assert sum(t.get("font-weight") == "700" for t in bold) == 3

    def test_the_still_twin_shows_a_few_telling_steps(self):
        still = transposed(warp=5).static()
        said = ("load of A", "store to s", "load of s", "store to B")
        for words in said:
            assert words in still.text and words in still.body
        assert still.text.count("Step") == 4 and "32-way bank conflict" in still.text
        assert len(drawings(still.body)) == 1 + 2 * 4
        assert all(one.get("aria-label") for one in drawings(still.body))

    def test_the_still_twin_does_not_repeat_itself(self):
        still = views.gpu_steps(*LAUNCHES["tiled"]).static()
        found = re.findall(r"Step [\d,]+ of \d+: (line \d+: \w+ \w+ \w+)", still.text)
        assert len(found) == len(set(found)) == 4

    def test_a_notebook_gets_widget_and_twin(self):
        live = transposed()
        bundle = live._repr_mimebundle_()
        assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == live.widget.model_id
        assert bundle["text/html"] == live.static()._repr_html_() and repr(live) == live.static().text
