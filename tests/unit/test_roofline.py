"""The roofline's arithmetic, and a figure whose labels do not cover each other."""

from dataclasses import replace

import pytest

from course_lib.measure import roofline
from course_lib.measure.peaks import Peaks
from course_lib.measure.roofline import Point

PEAKS = Peaks(
    flops={"float32": {"one": 200.0, "all": 400.0}, "float64": {"one": 100.0, "all": 200.0}},
    bandwidth={"one": 20.0, "all": 25.0},
    threads=2,
    when="2030-01-01T00:00:00+00:00",
    array_bytes=2**27,
    chain=12.5,
    ghz=3.1,
    reads={"L1": 400.0, "L2": 120.0, "L3": 60.0, "memory": 24.0},
)
WIDE = replace(
    PEAKS, flops_256={"float32": {"one": 108.0, "all": 210.0}, "float64": {"one": 54.0, "all": 105.0}}
)
CIRCLES = {
    "numpy": 95,
    "compiled-ikj": 12,
    "compiled-ijk": 1.2,
    "python-lists": 0.06,
    "python-ndarray": 0.012,
}
CIRCLES = [Point(name, gflops, 42.7) for name, gflops in CIRCLES.items()]
CROWD = [Point("addmm", 90, 40), Point("bmm", 80, 35), Point("layer norm", 1.2, 0.5)]
CROWD += [Point("softmax", 1.5, 0.6), Point("gemv", 4.9, 0.25), Point("copy", 1.0, 0.06)]


def test_the_smaller_roof_counts():
    assert roofline.attainable(2, 100, 20) == 40
    assert roofline.attainable(5, 100, 20) == roofline.attainable(50, 100, 20) == 100
    assert roofline.limit(4.9, 100, 20) == "memory"
    assert roofline.limit(5.0, 100, 20) == "compute"


def test_the_alt_text_tells_the_roofs_the_ridge_and_each_point():
    alt = roofline.figure(CIRCLES[:2], peaks=PEAKS).alt
    assert "float64, 1 thread" in alt
    assert "Memory roof 20.0 GB/s, peak 100 GFLOP/s, ridge at 5.00 flop/byte" in alt
    assert "numpy reaches 95 % of its roof, compiled-ikj 12 %" in alt
    assert "numpy at 42.7 flop/byte reaches 95.0 GFLOP/s, under the compute roof of 100" in alt
    assert "reads from" not in alt
    alt = roofline.figure(CIRCLES[:2], peaks=PEAKS, caches=True).alt
    assert "One core reads from L1 400 GB/s, L2 120 GB/s, L3 60.0 GB/s. Memory roof" in alt
    with pytest.raises(ValueError, match="drawn for 2 threads"):
        roofline.figure([], peaks=PEAKS, threads=2, caches=True)
    memory = roofline.figure([Point("gemv", 4, 0.25)], peaks=PEAKS).alt
    assert "gemv reaches 80 % of its memory roof" in memory
    assert "under the memory roof of 5.00" in memory


def test_the_intensity_of_a_product_moves_each_matrix_once():
    assert roofline.matmul_intensity(2, 3, 4, 8) == pytest.approx(48 / (8 * (6 + 12 + 8)))


def test_a_point_above_its_roof_is_called_what_it_is(figures):
    for point, words in (
        (Point("ikj", 12, 1 / 12), "ikj lies above its roof: memory did not move that many bytes"),
        # 2 flop/byte: 40 GFLOP/s at 20 GB/s; a kernel that only reads may come to 4/3 of STREAM's count
        (Point("sum", 53.3, 2), "sum reaches 133 % of its memory roof"),
        (Point("sum", 55, 2), "sum lies above its roof"),
        (Point("strassen", 120, 40), "strassen lies above the peak: it did fewer"),  # no such allowance here
    ):
        assert words in roofline.figure([point], peaks=PEAKS).alt, point


def test_labels_cover_neither_each_other_nor_markers_and_stay_inside(figures):
    for peaks in [PEAKS, WIDE]:
        for points in [CIRCLES, [*CIRCLES, Point("tiled", 40, 42.7)], CROWD, CIRCLES + CROWD[2:], []]:
            roofline.figure(points, peaks=peaks)
            figures[-1].draw_without_rendering()
            axes = figures[-1].axes[0]
            labels = [text for text in axes.texts if text.get_text()]
            flat = [label for label in labels if not label.get_rotation()]
            boxes = {label.get_text(): label.get_window_extent() for label in flat}
            assert len(boxes) >= 2 + 0.8 * len(points), (peaks, points)
            texts = [text.get_text() for each in axes.figure.legends for text in each.get_texts()]
            legend = {text.split(":")[0] for text in texts}
            assert legend == {point.name for point in points}, (peaks, points)
            names = list(boxes)
            for place, name in enumerate(names):
                for other in names[place + 1 :]:
                    assert roofline.overlap(boxes[name], boxes[other]) == 0, (name, other)
                for point in points:
                    x, y = axes.transData.transform((point.intensity, point.gflops))
                    assert not boxes[name].contains(x, y), (name, point.name)
                assert roofline.outside(boxes[name], axes.bbox) < 1, name
