"""The ladder plot: what it says in words, which results it takes, and that no label covers another."""

import dataclasses
import itertools
import math

import pytest
import view_samples
from view_samples import ladder_result as result

from course_lib import ladder, views
from course_lib.ladder import Rung
from course_lib.views import ladder_plot


@pytest.fixture
def words(figures):
    """Return a function that gives the words beside the picture."""
    return lambda *results, **options: ladder_plot(list(results), **options).alt


def test_the_alt_text_tells_what_the_picture_tells(words, monkeypatch):
    alt = words()
    assert "none of its" in alt and "chapter 01" in alt and "course_lib bench" in alt
    alt = words(result("python-lists", 0.05), result("compiled-ikj", 25.0), result("numpy", 50.0))
    said = "At 128³ compiled-ikj computes 500x as fast as python-lists; numpy is 2x as fast as that. Speed"
    assert alt.startswith(said)
    assert "limited by: interpreter: bytecode and boxed floats" in alt and "error 3.0e-16" in alt
    measured = {"python-lists", "compiled-ikj", "numpy"}
    possible = [e.id for e in ladder.LADDER if "float64" in e.dtypes and not e.missing()]
    assert f"Not measured yet: {', '.join(id for id in possible if id not in measured)}." in alt
    for speed, beside in (
        (60.0, " and 1.2x as fast as numpy"),
        (49.0, "; numpy is as fast as that, within 5 %"),
    ):
        assert f"GFLOP/s{beside}. Speed" in words(result("compiled-ikj", speed), result("numpy", 50.0))
    monkeypatch.setattr(ladder, "results", lambda: [result("python-lists", 0.06)])
    assert "python-lists 0.06 GFLOP/s at 128³ on 1 thread" in ladder_plot().alt  # the learner's own


def test_rungs_that_this_computer_cannot_run_have_no_place(words, monkeypatch):
    from course_lib.measure import machine

    baseline = result("numpy", 50.0, dtype="float32")
    monkeypatch.setattr(machine, "missing", lambda need: "There is no GPU." if need == "cuda" else None)
    alt = words(baseline)
    assert "threads" in alt and "cuda-" not in alt and "torch" not in alt
    alt = words(baseline, result("cuda-tiled", 5e3, dtype="float32"))
    assert "cuda-tiled 5,000 GFLOP/s" in alt and "cuda-naive" not in alt
    monkeypatch.setattr(machine, "missing", lambda need: None)
    assert "cuda-naive" in words(baseline)
    assert "cuda-naive" not in words(result("numpy", 50.0))  # they multiply float32 only


def test_only_sound_results_of_one_size_are_compared(words):
    two = [result("simd", 80.0, 1000), result("compiled-ikj", 8.0, 1000), result("numpy", 100.0, 4096)]
    small = [result("python-lists", 0.05, 200), result("simd", 50.0, 200)]
    alt = words(*two, *small)
    said = "At 1,000³ simd computes 10x as fast as compiled-ikj; at 200³ simd computes 1,000x as fast as py"
    hollow = "hollow, and in no ratio at 1,000³: measured at a size of its own."
    assert alt.startswith(said) and hollow in alt.lower()
    assert "numpy 100 GFLOP/s at 4,096³ on 1 thread (not compared)" in alt
    rough = dataclasses.replace(result("unrolled", 999.0, 1000), rough=True)
    alt = words(*two, *small, rough)
    assert alt.startswith(said) and "unrolled 999 GFLOP/s at 1,000³ on 1 thread (rough)" in alt
    assert words(rough).startswith("All times so far are rough")


def test_the_largest_size_on_the_fewest_threads_counts(words):
    alt = words(result("numpy", 90.0, 64), result("numpy", 50.0, 512), result("numpy", 70.0, 128))
    assert "numpy 50 GFLOP/s at 512³" in alt and "at 64³" not in alt
    on_one, on_eight = result("numpy", 50.0, 512), result("numpy", 300.0, 1024, threads=8)
    for found in ([on_one, on_eight], [on_eight, on_one]):
        assert "numpy 50 GFLOP/s at 512³ on 1 thread" in words(*found)


def test_both_baselines_are_drawn_as_such_and_the_faster_one_counts(words):
    results = [result("simd", 60.0), result("numpy", 50.0), result("openblas", 80.0), result("blocked", 6.0)]
    alt = words(*results)
    assert alt.startswith("At 128³ simd computes 10x as fast as blocked; openblas is 1.33x as fast as that.")


def test_a_rung_for_several_cores_is_not_judged_on_one(words):
    alone = [result("simd", 80.0, 512), result("threads", 75.0, 512), result("numpy", 70.0, 512)]
    assert "threads" not in words(*alone)  # neither a point nor an empty place
    alt = words(*alone, result("threads", 150.0, 512, threads=2))
    assert "threads 150 GFLOP/s at 512³ on 2 threads" in alt
    assert alt.startswith(
        "At 512³ threads on 2 threads computes 1.88x as fast as simd on 1 thread "
        "and 2.14x as fast as numpy on 1 thread."
    )


def test_labels_neither_collide_nor_leave_the_picture():
    from course_lib.views import ladder_figure
    from course_lib.views.standing import Standing

    # level, climbing, falling; and beside a baseline, whose line runs through no label
    for count, factor, size, speed in ((12, 1.01, 1024, 50), (22, 3, 1024, 50), (22, 0.5, 1024, 50),
                                       (12, 1.6, 128, 0.2), (22, 1.3, 128, 3.0)):  # fmt: skip
        ids = [*(f"rung-number-{n}" for n in range(count)), "numpy"]
        limit = "register pressure: not enough accumulators"
        made = [Rung(name, (1 + n * 9 // count) % 10, "title", None, (), limit) for n, name in enumerate(ids)]
        best = {name: {(128,) * 3: result(name, 0.02 * factor**n)} for n, name in enumerate(ids)}
        best["numpy"] = {(size,) * 3: result("numpy", speed, size)}
        figure = ladder_figure.draw(Standing(made, best, "float64"))
        figure.canvas.draw()
        notes = [one for one in figure.axes[0].get_children() if type(one).__name__ == "Annotation"]
        written = [(note.get_text(), note.get_window_extent()) for note in notes if note.get_text()]
        line = figure.axes[0].transData.transform((0, speed))[1]
        assert len(written) == count + 1
        for (first, box), (second, other) in itertools.combinations(written, 2):
            assert not box.overlaps(other), (count, factor, first, second)
        for label, box in written:
            assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, label
            assert size == 1024 or not box.y0 < line < box.y1, label


def test_the_table_multiplies_only_what_was_measured_at_one_size(monkeypatch):
    from course_lib.measure import machine

    monkeypatch.setattr(machine, "key", lambda: "elsewhere")
    monkeypatch.setattr(machine, "peaks", view_samples.peaks)  # 50 GFLOP/s on one core, 100 on both
    monkeypatch.setattr(machine, "missing", lambda need: None)

    def of(id, seconds, n, **options):
        return dataclasses.replace(result(id, 1e-9 * 2 * n**3 / seconds, n, **options), seconds=seconds)

    measured = {
        "python-ndarray": {200: 1.6, 512: 9.0},
        "python-lists": {200: 0.4, 512: 9.0},
        "compiled-ijk": {200: 0.02, 512: 9.0, 1000: 2.0, 1024: 9.0},
        "compiled-ikj": {200: 0.001, 1000: 0.25, 1024: 9.0, 2000: 90.0},
        "strassen": {1000: 9.0, 2000: 0.2},
        "simd": {1000: 0.05, 2000: 9.0},
        "numpy": {1000: 0.04},
    }
    results = [of(id, seconds, n) for id, at in measured.items() for n, seconds in at.items()]
    table = views.ladder_table([*results, of("threads", 0.025, 1000, threads=2)])
    said = {row[0]: row[1:] for row in table.rows}
    assert said["Python loops indexing NumPy arrays"] == ("200³", "1.60 s", "–", "1x", "0.020")
    assert said["Compiled loops, k innermost"] == ("1,000³", "2.00 s", "20x at 200³", "80x at 200³", "2.0")
    assert said["Compiled loops, j innermost"] == ("1,000³", "250 ms", "8x", "1,600x at 200³", "16")
    assert said["Strassen with explicit temporaries"][:4] == ("2,000³", "200 ms", "450x at 2,000³", "–")
    assert said["Packed panels, vector micro-kernel"][2:] == ("5x", "–", "80")  # than ikj
    assert said["The same on every core, 2 threads"] == ("1,000³", "25.0 ms", "2x", "–", "80")
    assert table.rows[-1][0] == table.marked and table.rows[-1][3:] == ("–", "–", "100")
    ids = ("compiled-ijk", "compiled-ikj", "blocked", "simd")
    one_size = [of(id, 2.0**-n, 1000) for n, id in enumerate(ids)]
    rows = views.ladder_table(one_size).rows
    assert math.prod(float(row[3][:-1]) for row in rows[1:]) == float(rows[-1][4][:-1]) == 8
    rough = dataclasses.replace(one_size[1], rough=True)
    _, held, after, last = views.ladder_table([one_size[0], rough, *one_size[2:]]).rows
    assert held[2:5] == ("≈ 500 ms", "–", "–") and after[3:5] == ("4x", "4x") and last[3] == "2x"
    assert "Nothing is measured" in str(views.ladder_table([]))
