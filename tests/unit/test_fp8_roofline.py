"""FP8 products under a Hopper GPU's roofline: the published figures agree with each other, the picture says
what it shows."""

from dataclasses import replace

import pytest
from test_hopper_recordings import RECORDING, ROWS

from course_lib import views
from course_lib.fp8 import published
from course_lib.fp8.choose import CLOCK_HZ, H100, KNOWN, PRODUCTS_A_CYCLE, intensity, moved_bytes
from course_lib.fp8.recordings import HopperRow

#: The same README gives GB/s beside its TFLOP/s: for M = 64, 128, 4096 in the order of published.DEEPGEMM.
PUBLISHED_GBPS = (
    *(1688, 2455, 2143, 2668, 2320, 2470),
    *(1509, 2448, 2103, 2604, 2221, 2277),
    *(527, 786, 1232, 343, 500, 697),
)


def test_the_published_rates_belong_to_the_shapes_and_bytes():
    assert len(published.DEEPGEMM) == len(PUBLISHED_GBPS)
    for one, gbps in zip(published.DEEPGEMM, PUBLISHED_GBPS, strict=True):
        assert 1e3 * one.tflops / one.intensity == pytest.approx(gbps, rel=0.01), one


def test_the_published_peak_is_that_of_the_model_at_its_clock():
    at_load = 2 * PRODUCTS_A_CYCLE * H100.sms * CLOCK_HZ
    assert pytest.approx(at_load, rel=0.002) == published.PEAK_FLOPS * CLOCK_HZ / 1.83e9


def test_bytes_count_every_matrix_that_is_read_once():
    assert moved_bytes(3, 8, 16) == 3 * 16 + 8 * 16 + 2 * 3 * 8
    assert moved_bytes(3, 8, 16, matrices=2, size=2) == 2 * (3 * 16 + 2 * 8 * 16) + 2 * 3 * 8
    assert intensity(64, 64, 64, matrices=2) == pytest.approx(2 * 64**3 / (5 * 64**2))


def test_without_a_recording_the_published_figures_are_shown_and_said_to_be_no_ones_of_ours():
    picture = views.fp8_roofline()
    assert (
        "DeepGEMM reaches 50–80 % of the memory roof for M = 64, 37–69 % of its roof for M = 4096"
        in picture.alt
    )
    assert "no kernel of this course has run" in picture.alt
    assert published.SOURCE in picture.alt and published.CAVEAT in picture.alt
    assert "peak 1,979 TFLOP/s" in picture.alt
    assert picture.alt.count(" TFLOP/s at ") == len(published.DEEPGEMM)


def test_a_recording_takes_their_place_under_the_roofs_of_its_gpu():
    rungs = (
        HopperRow("ladder", "v1_mma", "", 1, 128, 256, 512, 1e-6, 1e-5, 9, 1e-5, 1e-6),
        HopperRow("ladder", "v1_wgmma", "", 1, 128, 256, 512, 5e-7, 1e-5, 9, 1e-5, 1e-6),
    )
    recording = replace(RECORDING, device="NVIDIA H200", rows=(*ROWS, *rungs))
    picture = views.fp8_roofline(recording)
    assert "Memory roof 4.80 TB/s" in picture.alt
    assert recording.origin in picture.alt
    assert "M = 64, 512 x 256: 8.39 TFLOP/s at 78.8 FLOP/byte" in picture.alt  # 2 * 64 * 512 * 256 in 2 us
    assert "torch" not in picture.alt
    for name in ("the ladder, v0:", "the ladder, v1_mma:", "the ladder, v1_wgmma:"):
        assert name in picture.alt
    assert "DeepGEMM" not in picture.alt
    assert "no kernel of this course" not in picture.alt


def test_a_recording_without_dense_products_shows_its_ladder():
    ladder = tuple(row for row in ROWS if row.kind == "ladder")
    recording = replace(RECORDING, device="NVIDIA H800", rows=ladder)
    assert "of the memory roof for the ladder" in views.fp8_roofline(recording).alt
    with pytest.raises(ValueError, match="neither dense products nor a ladder"):
        views.fp8_roofline(replace(recording, rows=tuple(row for row in ROWS if row.kind == "masked")))


@pytest.mark.parametrize(
    "device", ["NVIDIA H20", "NVIDIA GH200 480GB", "NVIDIA H100 PCIe", "NVIDIA H100 NVL"]
)
def test_of_other_gpus_no_roofs_are_made_up(device):
    assert device not in KNOWN
    with pytest.raises(ValueError, match=f"The roofs of {device} are not known: NVIDIA H100 80GB HBM3, "):
        views.fp8_roofline(replace(RECORDING, device=device))
