"""FP8 products under a Hopper GPU's roofline: the published figures agree with each other, the picture says
what it shows."""

from dataclasses import replace

import pytest

from course_lib import views
from course_lib.fp8 import published
from course_lib.fp8.choose import CLOCK_HZ, H100, KNOWN, PRODUCTS_A_CYCLE, intensity, moved_bytes

#: The same README gives GB/s beside its TFLOP/s: for M = 64, 128, 4096 in the order of published.DEEPGEMM.
PUBLISHED_GBPS = (
    *(1688, 2455, 2143, 2668, 2320, 2470),
    *(1509, 2448, 2103, 2604, 2221, 2277),
    *(527, 786, 1232, 343, 500, 697),
)


@pytest.fixture
def recording():
    """No measurement: figures of a device that does not exist."""
    from course_lib.fp8 import recordings
    from course_lib.fp8.recordings import HopperRecording, HopperRow
    from course_lib.measure.recorded_gpu import Gpu

    us = 1e-6
    rows = [
        HopperRow("dense", what, "", 1, 64, 512, 256, seconds * us, 0.0, 9, 1e-5, us)
        for what, seconds in (("ours", 2), ("torch block-wise", 3), ("torch bf16", 4))
    ]
    rows += [
        HopperRow("ladder", what, "", 1, 128, 256, 512, seconds * us, 0.0, 9, 1e-5, us)
        for what, seconds in (("v0_naive", 1000), ("v1_mma", 1), ("v1_wgmma", 0.5))
    ]
    rows.append(HopperRow("masked", "ours", "", 3, 100, 512, 256, 2 * us, 0.0, 9, 1e-5, us, 3))
    gpu = Gpu("999.1", "9.0", "13.0", 7, {}, 700.0, None)
    versions = dict.fromkeys(recordings.VERSIONS, "1.0")
    commit = "0123456789abcdef0123456789abcdef01234567"
    return HopperRecording(
        "2020-02-03T04:05:06+00:00", commit, "NVIDIA H200", gpu, versions, "Made up.", tuple(rows)
    )


def test_the_published_rates_are_those_of_the_shapes_the_bytes_and_the_model():
    assert len(published.DEEPGEMM) == len(PUBLISHED_GBPS)
    for one, gbps in zip(published.DEEPGEMM, PUBLISHED_GBPS, strict=True):
        assert 1e3 * one.tflops / one.intensity == pytest.approx(gbps, rel=0.01), one
    at_load = 2 * PRODUCTS_A_CYCLE * H100.sms * CLOCK_HZ
    assert pytest.approx(at_load, rel=0.002) == published.PEAK_FLOPS * CLOCK_HZ / 1.83e9
    assert moved_bytes(3, 8, 16) == 3 * 16 + 8 * 16 + 2 * 3 * 8
    assert moved_bytes(3, 8, 16, matrices=2, size=2) == 2 * (3 * 16 + 2 * 8 * 16) + 2 * 3 * 8
    assert intensity(64, 64, 64, matrices=2) == pytest.approx(2 * 64**3 / (5 * 64**2))


def test_without_a_recording_the_published_figures_are_shown_and_said_to_be_no_ones_of_ours():
    alt = views.fp8_roofline().alt
    assert "DeepGEMM reaches 50–80 % of the memory roof for M = 64, 37–69 % of its roof for M = 4096" in alt
    assert "no kernel of this course has run" in alt and "peak 1,979 TFLOP/s" in alt
    assert published.SOURCE in alt and published.CAVEAT in alt
    assert alt.count(" TFLOP/s at ") == len(published.DEEPGEMM)


def test_a_recording_takes_their_place_under_the_roofs_of_its_gpu(recording):
    alt = views.fp8_roofline(recording).alt
    assert "Memory roof 4.80 TB/s" in alt and recording.origin in alt
    assert "M = 64, 512 x 256: 8.39 TFLOP/s at 78.8 FLOP/byte" in alt  # 2 * 64 * 512 * 256 in 2 us
    for name in ("the ladder, v0:", "the ladder, v1_mma:", "the ladder, v1_wgmma:"):
        assert name in alt
    for other in ("torch", "DeepGEMM", "no kernel of this course"):
        assert other not in alt
    ladder = replace(recording, device="NVIDIA H800", rows=recording.ladder())
    assert "of the memory roof for the ladder" in views.fp8_roofline(ladder).alt
    with pytest.raises(ValueError, match="neither dense products nor a ladder"):
        views.fp8_roofline(replace(recording, rows=recording.of("masked")))


def test_of_other_gpus_no_roofs_are_made_up(recording):
    for device in ("NVIDIA H20", "NVIDIA GH200 480GB", "NVIDIA H100 PCIe", "NVIDIA H100 NVL"):
        assert device not in KNOWN
        with pytest.raises(ValueError, match=f"The roofs of {device} are not known: NVIDIA H100 80GB HBM3, "):
            views.fp8_roofline(replace(recording, device=device))
