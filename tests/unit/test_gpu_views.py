"""Figures of circle 6: warps, latency hiding, reads in flight, the GPU's ladder; and published figures."""

import numpy as np
import pytest

from course_lib import ladder, views
from course_lib.measure import gpu_published, latency, parallel_chase, recordings
from course_lib.measure.hardware import CacheLevel
from course_lib.measure.parallel_chase import InFlight
from course_lib.measure.recordings import HidingPoint, Recording, Row
from course_lib.simulators.gpu import warp_scheduler
from course_lib.simulators.gpu.occupancy import REGISTERS_PER_SM
from course_lib.views import gpu_ladder_figure, warp_figure

LOOP = "a = shared; b = shared; s = fma a b s"
#: No measurement: figures made up for these tests, of a device that does not exist.
MADE_UP = Recording(
    when="2020-02-03T04:05:06+00:00",
    commit="0123456789abcdef0123456789abcdef01234567",
    device="NVIDIA Test 9",
    compute_capability="9.9",
    memory_bytes=2**30,
    multiprocessors=7,
    driver="999.1",
    versions=dict.fromkeys(recordings.VERSIONS, "1.0"),
    state=dict.fromkeys(recordings.STATES),
    power_limit_w=None,
    highest_sm_mhz=None,
    method="Made up.",
    rows=(
        Row("cuda-naive", (256, 256, 256), 4e-4, 1e-5, 9, 3e-5, 2e-7),
        Row("cuda-2d", (256, 256, 256), 4e-5, 1e-6, 9, 3e-5, 2e-7),
        Row("torch", (256, 256, 256), 2e-5, 1e-6, 9, 1e-5, 1e-7),
        Row("torch", (512, 512, 512), 1e-4, 1e-6, 9, 1e-5, 1e-7),
    ),
    latency_hiding=(HidingPoint(1, 1.0, 2e12), HidingPoint(1, 4.0, 8e12)),
)


# -- warps -------------------------------------------------------------------------------------------------


def test_the_picture_of_warps_says_what_the_simulation_found():
    few, many = (warp_scheduler.simulate(LOOP, count, cycles=400) for count in (1, 12))
    picture = views.warps({"few": few, "many": many})
    assert picture.png.startswith(b"\x89PNG")
    assert f"few: 1 warp: {100 * few.utilisation:.2g} %" in picture.alt
    assert "many: 12 warps" in picture.alt and "short scoreboard" in picture.alt


def test_every_state_but_finished_has_a_look_of_its_own():
    from course_lib.simulators.gpu.warp_scheduler import STATES

    assert set(warp_figure.LOOKS) == set(STATES) - {"finished"}
    assert len({look[1:] for look in warp_figure.LOOKS.values()}) >= 4, "told apart without colour"


@pytest.mark.parametrize(("results", "cycles"), [({}, 100), (None, 0), (None, 10_000)])
def test_warps_that_cannot_be_drawn_are_refused(results, cycles):
    results = warp_scheduler.simulate(LOOP, 2, cycles=50) if results is None else results
    with pytest.raises(ValueError, match=r"nothing to draw|a picture holds"):
        views.warps(results, cycles=cycles)


# -- latency hiding ----------------------------------------------------------------------------------------


def test_the_title_names_the_knee_or_says_that_there_are_too_few_warps():
    near = warp_scheduler.occupancy_curve("s = fma s", range(1, 9))
    assert near.knee == 4 and "simulated: from 4 warps on" in views.latency_hiding(near).alt
    far = warp_scheduler.occupancy_curve("a = load; s = fma a s", range(1, 9))
    assert far.knee > 100 and "8 warps use" in views.latency_hiding(far).alt


def test_measured_points_and_a_guess_are_drawn_with_their_origin():
    curve = warp_scheduler.occupancy_curve("s = fma s", range(1, 9))
    picture = views.latency_hiding({"a sum": curve}, MADE_UP.hiding(), guess=9)
    assert "recorded on an NVIDIA Test 9" in picture.alt and "1 25 %, 4 100 %" in picture.alt
    assert picture.png != views.latency_hiding({"a sum": curve}, MADE_UP.hiding()).png
    with pytest.raises(ValueError, match="no curve"):
        views.latency_hiding({})


# -- reads in flight ---------------------------------------------------------------------------------------


def test_reads_in_flight_follow_from_the_shortest_step():
    found = InFlight((1, 2, 4, 8), (120.0, 50.0, 25.0, 25.0), 2**24)
    assert found.latency_ns == 100.0, "the first was disturbed: two chases made a step in 100 ns"
    assert found.most == 4.0 and found.gbps[2] == 64 / 25
    assert "about 4.0 reads" in views.in_flight(found).alt
    assert "up to 4.0 reads in flight (16 MiB, answered by memory)" in str(found.table())


def test_chases_go_where_the_memory_says():
    memory = np.array([2, 0, 3, 1], np.uint64)  # one cycle: 0, 2, 3, 1
    places = np.array([0, 3], np.uint64)
    parallel_chase.walk(memory, places, 3)
    assert places.tolist() == [1, 2]


def test_a_pass_reads_every_line_once():
    memory, order = np.zeros(64, np.uint64), np.random.default_rng(0).permutation(64).astype(np.uint64)
    memory[order] = np.roll(order, -1)
    for count in (1, 2, 8):
        places = order[np.arange(count) * 64 // count]
        parallel_chase.walk(memory, places, 64 // count)
        assert places.tolist() == np.roll(order[np.arange(count) * 64 // count], -1).tolist()


@pytest.mark.parametrize(("l2", "expected"), [(0, 2**24), (2**20, 2**24), (2**21, 2**25), (2**30, 2**26)])
def test_the_working_set_lies_beyond_l2(l2, expected):
    caches = (CacheLevel(2, l2, 64, 16, 1),) if l2 else ()
    assert parallel_chase.working_set(caches) == expected


def test_more_chases_than_one_are_faster_on_this_machine():
    found = parallel_chase.measure((1, 4))
    assert found.size_bytes % 64 == 0 and found.nanoseconds[1] < 0.7 * found.nanoseconds[0]


@pytest.mark.parametrize("chases", [(), (2, 4), (1, 4, 2), (1, 1)])
def test_other_chases_are_refused(chases):
    with pytest.raises(ValueError, match="rising whole numbers that begin with 1"):
        parallel_chase.measure(chases)


def test_memory_for_a_chase_begins_at_a_page():
    memory, notes = latency.allocate(2**20, "system")
    assert memory.ctypes.data % 2**21 == 0 and memory.nbytes == 2**20 and notes == ()


# -- published figures -------------------------------------------------------------------------------------


def test_published_peaks_are_those_of_the_data_sheets():
    """The clocks, lanes and SMs must make the float32 peak that the same papers print."""
    printed = {"A100": 19.5, "RTX A6000": 38.7, "RTX 4090": 82.6, "H100": 66.9}
    assert {name: round(gpu.peak_flops / 1e12, 1) for name, gpu in gpu_published.PUBLISHED.items()} == printed
    assert all(gpu.register_bytes == 4 * REGISTERS_PER_SM for gpu in gpu_published.PUBLISHED.values())


def test_published_shares_are_those_that_the_source_prints():
    printed = (1.3, 8.5, 12.8, 36.5, 68.7, 78.4, 93.7, 100.0)
    ladder_of = gpu_published.BOEHM
    assert tuple(round(100 * ladder_of.share(rung), 1) for rung in ladder_of.gflops) == printed
    assert list(ladder_of.gflops) == [rung.id for rung in ladder.LADDER if "cuda" in rung.requires]


def test_the_specifications_name_their_sources():
    table = str(gpu_published.specifications("H100"))
    assert "66.9 TFLOP/s" in table and "V1.04" in table and "A100" not in table


# -- the GPU's ladder --------------------------------------------------------------------------------------


def test_without_a_recording_the_figure_says_that_nothing_was_recorded():
    alt = views.gpu_ladder(None).alt
    assert "not yet recorded" in alt and "not measured by this course" in alt and "S. Boehm" in alt


def test_with_a_recording_both_are_told_apart():
    alt = views.gpu_ladder(MADE_UP).alt
    assert "cuda-2d reaches 50.0 % of cuBLAS on the NVIDIA Test 9" in alt
    assert "Recorded on an nvidia test 9" in alt.replace("NVIDIA Test 9", "nvidia test 9")
    assert "not yet recorded" not in alt and gpu_ladder_figure.NOT_OURS in alt.lower()


def test_sizes_are_drawn_for_a_recording():
    alt = views.gpu_sizes(MADE_UP).alt
    assert "1.6 times as slow per operation" in alt and "torch 512: 2.68 TFLOP/s" in alt


# -- the learner's own ladder ------------------------------------------------------------------------------


def test_a_recording_of_this_machine_is_added_to_the_learners_ladder():
    added = ladder.record_gpu(MADE_UP)
    assert {(one.rung, one.shape[0], round(one.gflops, 1)) for one in ladder.results()} == {
        ("cuda-naive", 256, 83.9),
        ("cuda-2d", 256, 838.9),
        ("torch", 256, 1677.7),
        ("torch", 512, 2684.4),
    }
    assert sorted(added, key=str) == sorted(ladder.results(), key=str)
    assert "cuda-2d 839 GFLOP/s" in views.ladder_plot().alt
