"""The roofline's arithmetic, and a figure whose labels do not cover each other."""

from dataclasses import replace

import pytest

from course_lib import theme
from course_lib.measure import roofline, roofline_labels
from course_lib.measure.peaks import Peaks
from course_lib.measure.roofline import Point

PEAKS = Peaks(
    flops={"float32": {"one": 200.0, "all": 400.0}, "float64": {"one": 100.0, "all": 200.0}},
    bandwidth={"one": 20.0, "all": 25.0},
    threads=2,
    when="2030-01-01T00:00:00+00:00",
    array_bytes=2**27,
)
WIDE = replace(
    PEAKS, flops_256={"float32": {"one": 108.0, "all": 210.0}, "float64": {"one": 54.0, "all": 105.0}}
)
CIRCLES = [
    Point("numpy", 95, 42.7),
    Point("compiled-ikj", 12, 42.7),
    Point("compiled-ijk", 1.2, 42.7),
    Point("python-lists", 0.06, 42.7),
    Point("python-ndarray", 0.012, 42.7),
]
CROWD = [
    Point("addmm", 90, 40),
    Point("bmm", 80, 35),
    Point("layer norm", 1.2, 0.5),
    Point("softmax", 1.5, 0.6),
    Point("gemv", 4.9, 0.25),
    Point("copy", 1.0, 0.06),
]


def test_the_smaller_roof_counts():
    assert roofline.attainable(2, 100, 20) == 40
    assert roofline.attainable(5, 100, 20) == roofline.attainable(50, 100, 20) == 100
    assert roofline.limit(4.9, 100, 20) == "memory"
    assert roofline.limit(5.0, 100, 20) == "compute"


def test_the_intensity_of_a_product_moves_each_matrix_once():
    assert roofline.matmul_intensity(512, 512, 512, 8) == pytest.approx(2 * 512 / (3 * 8))
    assert roofline.matmul_intensity(2, 3, 4, 8) == pytest.approx(48 / (8 * (6 + 12 + 8)))


def test_what_makes_no_sense_is_refused():
    for numbers in [(0, 0, 0, 8), (2, 3, 2.5, 8), (2, True, 3, 8), (2, 2, 2, 0)]:
        with pytest.raises(ValueError, match="must be a whole number of at least 1"):
            roofline.matmul_intensity(*numbers)
    for numbers, wrong in [
        ((-1, 100, 20), "intensity is -1"),
        (("2", 100, 20), "intensity is '2'"),
        ((2, 0, 20), "peak_gflops is 0"),
        ((2, 100, float("inf")), "gbps is inf"),
    ]:
        for function in (roofline.attainable, roofline.limit):
            with pytest.raises(ValueError, match=wrong):
                function(*numbers)
    for points in ([("numpy", 95, 42.7)], "x", None):
        with pytest.raises(TypeError, match=r"must be a .*Point\(name, gflops, intensity\)"):
            roofline.figure(points, peaks=PEAKS)
    for point in (Point("p", 0, 1), Point("p", 1, -1), Point("p", float("nan"), 1)):
        with pytest.raises(ValueError, match="cannot be drawn"):
            roofline.figure([point], peaks=PEAKS)


def test_the_alt_text_tells_the_roofs_the_ridge_and_each_point():
    alt = roofline.figure(CIRCLES[:2], peaks=PEAKS).alt
    assert "float64, 1 thread" in alt
    assert "Memory roof 20.0 GB/s, peak 100 GFLOP/s, ridge at 5.00 flop/byte" in alt
    assert "numpy reaches 95 % of its roof, compiled-ikj 12 %" in alt
    assert "numpy at 42.7 flop/byte reaches 95.0 GFLOP/s, under the compute roof of 100" in alt
    memory = roofline.figure([Point("gemv", 4, 0.25)], peaks=PEAKS).alt
    assert "gemv reaches 80 % of its memory roof" in memory
    assert "under the memory roof of 5.00" in memory


@pytest.mark.usefixtures("drawn")
def test_a_point_above_its_roof_is_called_what_it_is():
    alt = roofline.figure([Point("ikj", 12, 1 / 12), Point("numpy", 95, 40)], peaks=PEAKS).alt
    assert "ikj lies above its roof: memory did not move that many bytes" in alt
    # 2 flop/byte: 40 GFLOP/s at 20 GB/s; a kernel that only reads may come to 4/3 of STREAM's count
    assert "sum reaches 133 % of its memory roof" in roofline.figure([Point("sum", 53.3, 2)], peaks=PEAKS).alt
    assert "sum lies above its roof" in roofline.figure([Point("sum", 55, 2)], peaks=PEAKS).alt
    near = [Point("sum", 53, 2), Point("strassen", 120, 40)]  # no such allowance for arithmetic
    assert "strassen lies above the peak: it did fewer" in roofline.figure(near, peaks=PEAKS).alt


@pytest.fixture
def drawn(monkeypatch):
    """Return a function that draws a roofline, though no pixel of it, and returns its axes."""
    figures = []

    def of(fig, alt):
        figures.append(fig)
        return theme.Picture(b"", alt, 0)

    monkeypatch.setattr(theme.Picture, "of", of)

    def draw(points, peaks=PEAKS):
        roofline.figure(points, peaks=peaks)
        figures[-1].draw_without_rendering()
        return figures[-1].axes[0]

    return draw


def test_labels_cover_neither_each_other_nor_markers_and_stay_inside(drawn):
    for peaks in [PEAKS, WIDE]:
        for points in [CIRCLES, [*CIRCLES, Point("tiled", 40, 42.7)], CROWD, CIRCLES + CROWD[2:], []]:
            axes = drawn(points, peaks)
            labels = [text for text in axes.texts if text.get_text()]
            boxes = {
                label.get_text(): label.get_window_extent() for label in labels if not label.get_rotation()
            }
            assert len(boxes) >= 2 + 0.8 * len(points), (peaks, points)
            legend = {
                text.get_text().split(":")[0] for each in axes.figure.legends for text in each.get_texts()
            }
            assert legend == {point.name for point in points}, (peaks, points)
            names = list(boxes)
            for place, name in enumerate(names):
                for other in names[place + 1 :]:
                    assert roofline_labels.overlap(boxes[name], boxes[other]) == 0, (name, other)
                for point in points:
                    x, y = axes.transData.transform((point.intensity, point.gflops))
                    assert not boxes[name].contains(x, y), (name, point.name)
                assert roofline_labels.outside(boxes[name], axes.bbox) < 1, name


def test_where_compilers_stop_at_256_bits_a_lower_roof_says_so(drawn):
    axes = drawn(CIRCLES, WIDE)
    label = "peak with 256-bit vectors: 54.0 GFLOP/s"
    assert label in [text.get_text().replace("\n", " ") for text in axes.texts]
    assert any(list(line.get_ydata()) == [54.0, 54.0] for line in axes.lines)
    alt = roofline.figure([], "float32", 2, WIDE).alt
    assert "Peak with 256-bit vectors: 210 GFLOP/s" in alt and "peak 400 GFLOP/s" in alt
