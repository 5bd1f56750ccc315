"""Figures of circle 6: warps, latency hiding, reads in flight, the GPU's ladder; and published figures."""

import pytest
from view_samples import in_flight, recording

from course_lib import ladder, views

LOOP = "a = shared; b = shared; s = fma a b s"


def test_the_picture_of_warps_says_what_the_simulation_found():
    from course_lib.simulators.gpu import warp_scheduler

    few, many = (warp_scheduler.simulate(LOOP, count, cycles=400) for count in (1, 12))
    alt = views.warps({"few": few, "many": many}).alt
    assert f"few: 1 warp: {100 * few.utilisation:.3g} %" in alt
    assert "many: 12 warps" in alt and "short scoreboard" in alt and "MIO throttle" in alt
    assert ". 1 warp: " in views.warps(few).alt


def test_latency_hiding_names_the_knee_or_says_that_there_are_too_few_warps():
    from course_lib.simulators.gpu import warp_scheduler

    near = warp_scheduler.occupancy_curve("s = fma s", range(1, 9))
    picture = views.latency_hiding({"near": near})
    assert near.knee == 4 and "near: from 4 warps on" in picture.alt
    far = warp_scheduler.occupancy_curve("a = l2; s = fma a s", range(1, 9))
    assert far.knee > 30 and "simulated: 8 warps use" in views.latency_hiding(far).alt
    said = "from 4.25 warps on more bring nothing; shared memory allows 37.5 % of the issue slots"
    assert said in views.latency_hiding({"tile": warp_scheduler.occupancy_curve(LOOP, (1, 8))}).alt
    measured = views.latency_hiding({"a sum": near}, recording().hiding())
    assert "recorded on an NVIDIA Test 9" in measured.alt and "1 25 %, 4 100 %" in measured.alt


def test_the_tile_of_a_thread_is_the_one_that_the_kernel_computes():
    from course_lib.circles import cuda_1d, cuda_2d

    said = str(views.register_tile(cuda_2d.TILES[0], 37))
    assert "rows 16 to 23 and columns 40 to 47" in said and "a[16 to 23, k] and b[k, 40 to 47]" in said
    assert "rows 8 to 15 and column 6 " in str(views.register_tile(cuda_1d.TILES[0], 70))


def test_reads_in_flight_follow_from_the_shortest_step():
    assert "about 4.0 reads" in views.in_flight(in_flight()).alt
    assert "up to 4.0 reads in flight (16 MiB, answered by memory)" in str(in_flight().table())


@pytest.mark.timing
def test_more_chases_than_one_are_faster_on_this_machine(monkeypatch):
    from course_lib.measure import parallel_chase

    monkeypatch.setattr(parallel_chase, "CHASES", (1, 4))
    found = parallel_chase.measure()
    assert found.size_bytes % 64 == 0 and found.nanoseconds[1] < 0.7 * found.nanoseconds[0]


def test_published_figures_are_those_that_the_sources_print():
    """The clocks, lanes and SMs must make the float32 peak that the same papers print."""
    from course_lib.measure import gpu_published
    from course_lib.simulators.gpu.occupancy import REGISTERS_PER_SM

    printed = {"A100": 19.5, "RTX A6000": 38.7, "RTX 4090": 82.6, "H100": 66.9}
    assert {name: round(gpu.peak_flops / 1e12, 1) for name, gpu in gpu_published.PUBLISHED.items()} == printed
    assert all(gpu.register_bytes == 4 * REGISTERS_PER_SM for gpu in gpu_published.PUBLISHED.values())
    shares = (1.3, 8.5, 12.8, 36.5, 68.7, 78.4, 93.7, 100.0)
    published = gpu_published.BOEHM
    assert tuple(round(100 * published.share(rung), 1) for rung in published.gflops) == shares
    assert list(published.gflops) == [rung.id for rung in ladder.LADDER if "cuda" in rung.requires]
    table = str(gpu_published.specifications("H100"))
    assert "66.9 TFLOP/s" in table and "V1.04" in table and "A100" not in table


def test_the_gpus_ladder_tells_published_and_recorded_apart():
    alt = views.gpu_ladder(None).alt
    assert "not yet recorded" in alt and "not measured by this course" in alt and "S. Boehm" in alt
    alt = views.gpu_ladder(recording()).alt
    assert "cuda-2d reaches 50.0 % of cuBLAS on the NVIDIA Test 9" in alt
    assert "Recorded on an NVIDIA Test 9" in alt
    assert "not yet recorded" not in alt and "not measured by this course" in alt.lower()
    alt = views.gpu_sizes(recording()).alt
    assert "Per operation, cuBLAS at N = 256 is 1.6 times as slow" in alt and "torch 512: 2.68 TFLOP/s" in alt


def test_a_recording_of_this_machine_is_added_to_the_learners_ladder():
    added = ladder.record_gpu(recording())
    assert {(one.rung, one.shape[0], round(one.gflops, 1)) for one in ladder.results()} == {
        ("cuda-naive", 256, 83.9),
        ("cuda-2d", 256, 838.9),
        ("torch", 256, 1677.7),
        ("torch", 512, 2684.4),
    }
    assert sorted(added, key=str) == sorted(ladder.results(), key=str)
    assert "cuda-2d 839 GFLOP/s" in views.ladder_plot().alt
