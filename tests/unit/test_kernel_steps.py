"""The time slider on a kernel: true to the tracer, driven by keys, readable without colour, and harmless."""

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


def recorded(*launch):
    from course_lib.simulators.gpu import trace

    return trace(*launch, record=(0, 0)).steps


def sentences(*launch):
    from course_lib.views.kernel_access import sentence

    return [sentence(step) for step in recorded(*launch)]


@pytest.fixture(scope="module")
def transposed(kernels):
    """Return a function that shows the transpose in shared memory, with its bank conflict."""
    return lambda **which: views.gpu_steps(
        kernels.transpose, 1, (32, 32), zeros(32, 32), zeros(32, 32), **which
    )


class TestEveryKernel:
    def test_costs_are_the_tracers(self, kernels):
        from course_lib.views.kernel_access import passes, sectors

        for name, launch in kernels.LAUNCHES.items():
            steps = [step for step in recorded(*launch) if step.kind != "barrier"]
            assert steps, name
            for step in steps:
                found = sectors(step) if step.space == "global" else passes(step)
                assert len(found) == step.cost, name


class TestWhatIsSaid:
    def test_the_sentences(self, kernels):
        tiled = kernels.tiled
        a, b = line_of(tiled, "a[y, x] ="), line_of(tiled, "total +=")
        said = sentences(tiled, (2, 2), (32, 32), zeros(64, 64), zeros(64, 64), zeros(64, 64))
        assert said[0] == (
            f"line {a}: load of A: 32 lanes, 32 elements, 4 sectors: coalesced, every byte moved is used"
        )
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

    def test_the_title_says_the_finding_and_a_hazard_comes_first(self, kernels, transposed):
        line = line_of(kernels.transpose, "B[i, j]")
        said = f"a 32-way bank conflict in line {line}, 32 wavefronts where 1 would do"
        assert transposed().title == f"transpose, block 0, warp 0: {said}"
        square = zeros(64, 64)
        clean = views.gpu_steps(kernels.tiled, (2, 2), (32, 32), square, square, square.copy(), warp=3)
        assert clean.title.endswith("warp 3: no access costs more than it must")
        line = line_of(kernels.strided, "x[i")
        strided = views.gpu_steps(*kernels.LAUNCHES["strided"]).title
        assert f"the load of x in line {line} moves 32 sectors where 4 would do" in strided
        outside = views.gpu_steps(kernels.strided, 1, 32, zeros(20), zeros(32), 1)
        assert outside.title == f"strided, block 0, warp 0: out-of-bounds in line {line}"
        assert "Hazard: line" in outside.frame(0) and "Hazard: line" in outside.static().body
        assert "Hazard" not in views.gpu_steps(kernels.strided, 1, 32, zeros(32), zeros(32), 1).frame(0)


class TestTheSlider:
    def test_buttons_jump_to_what_costs_and_to_the_next_line(self, transposed):
        live = transposed(warp=5)
        live.jumps["next costly »"].click()
        assert live.step == 3 and "32-way bank conflict" in live.picture.value
        live.slider.value = 0
        live.jumps["next line »"].click()
        assert "barrier" in live.picture.value

    def test_another_block_or_warp_is_traced_anew(self, kernels):
        A = np.arange(6400, dtype=np.float32).reshape(80, 80)
        launch = (kernels.tiled, (3, 3), (32, 32), A, A, zeros(80, 80))
        live = views.gpu_steps(*launch, block=(1, 2), warp=3)
        assert live.warp.max == 31 and [field.max for field in live.block] == [2, 2]
        assert live.steps[0].places[0] == 67 * 80
        live.slider.value = 9
        live.block[1].value = 0
        assert live.step == 0 and live.steps[0].places[0] == 3 * 80
        live.warp.value = 4
        assert live.steps[0].places[0] == 4 * 80
        assert "block (1, 0), warp 4" in live.picture.value

    def test_a_warp_that_touches_nothing_is_shown_too_and_what_cannot_be_is_refused(
        self, kernels, transposed
    ):
        live = views.gpu_steps(kernels.nothing, 1, 32, zeros(4))
        assert "it touches no global or shared memory" in live.title
        for jump in live.jumps.values():
            jump.click()
        assert live.step == 0 and "This warp touches no global" in live.frame(0)
        for which, said in (({"warp": 32}, "warp 32"), ({"block": 1}, "outside")):
            with pytest.raises(ValueError, match=said):
                transposed(**which)


class TestTheArguments:
    def test_each_run_begins_with_the_arrays_as_they_were_and_leaves_them(self, kernels):
        x, y = np.arange(64, dtype=np.float32), zeros(64)
        live = views.gpu_steps(kernels.add_one, 2, 32, x, y)
        live.block[0].value = 1
        assert (x == np.arange(64)).all() and not y.any()
