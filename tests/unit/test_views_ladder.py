"""The ladder plot: what it says in words, which results it takes, and that no label covers another."""

import itertools

import pytest

from course_lib import ladder
from course_lib.ladder import Result, Rung
from course_lib.theme import Picture
from course_lib.views import ladder_figure, ladder_plot

LIMITS = (
    "interpreter: bytecode and boxed floats",
    "one number at a time: strided B defeats SIMD",
    "register pressure: not enough accumulators",
    "packing traffic and edge tiles",
)


@pytest.fixture
def in_words(monkeypatch):
    """Figures are drawn, their pixels are not: where only the words beside them are asked for."""
    monkeypatch.setattr(Picture, "of", lambda fig, alt: Picture(b"", alt, 0))


def result(rung, gflops, n=128, dtype="float64", threads=1, error=3e-16):
    return Result(
        rung, (n, n, n), dtype, threads, 1.0, 0.1, gflops, error, "2025-01-01T00:00:00", "elsewhere"
    )


def rungs(count):
    made = [
        Rung(f"rung-number-{n}", 1 + n * 9 // count, "title", None, (), LIMITS[n % 4]) for n in range(count)
    ]
    return (*made, Rung("numpy", 0, "NumPy as installed (its BLAS)", None, (), "the baseline"))


def test_an_empty_ladder_says_what_to_run():
    alt = ladder_plot([]).alt
    assert "none of its" in alt and "chapter 01" in alt and "course_lib bench" in alt


@pytest.mark.usefixtures("in_words")
def test_the_learners_own_results_are_the_default(monkeypatch):
    monkeypatch.setattr(ladder, "results", lambda: [result("python-lists", 0.06)])
    assert "python-lists 0.06 GFLOP/s at 128³ on 1 thread" in ladder_plot().alt


def test_the_alt_text_tells_what_the_picture_tells():
    picture = ladder_plot(
        [result("python-lists", 0.05), result("compiled-ikj", 25.0, 512), result("numpy", 50.0)]
    )
    assert picture.alt.startswith(
        "compiled-ikj computes 500x as fast as python-lists; numpy is 2x as fast as that."
    )
    assert "limited by: interpreter: bytecode and boxed floats" in picture.alt
    assert "error 3.0e-16" in picture.alt
    measured = {"python-lists", "compiled-ikj", "numpy"}
    possible = [e.id for e in ladder.LADDER if "float64" in e.dtypes and not e.missing()]
    missing = ", ".join(id for id in possible if id not in measured)
    assert f"Not measured yet: {missing}." in picture.alt
    assert picture.png.startswith(b"\x89PNG")


@pytest.mark.usefixtures("in_words")
def test_rungs_that_this_computer_cannot_run_have_no_place(monkeypatch):
    from course_lib.measure import machine

    monkeypatch.setattr(machine, "missing", lambda need: "There is no GPU." if need == "cuda" else None)
    alt = ladder_plot([result("numpy", 50.0, dtype="float32")]).alt
    assert "threads" in alt and "cuda-" not in alt and "torch" not in alt
    alt = ladder_plot(
        [result("numpy", 50.0, dtype="float32"), result("cuda-tiled", 5e3, dtype="float32")]
    ).alt
    assert "cuda-tiled 5,000 GFLOP/s" in alt and "cuda-naive" not in alt
    monkeypatch.setattr(machine, "missing", lambda need: None)
    assert "cuda-naive" in ladder_plot([result("numpy", 50.0, dtype="float32")]).alt
    assert "cuda-naive" not in ladder_plot([result("numpy", 50.0)]).alt  # they multiply float32 only


@pytest.mark.usefixtures("in_words")
def test_the_largest_size_of_several_results_counts():
    alt = ladder_plot([result("numpy", 90.0, 64), result("numpy", 50.0, 512), result("numpy", 70.0, 128)]).alt
    assert "numpy 50 GFLOP/s at 512³" in alt and "at 64³" not in alt
    same = [result("numpy", 50.0, 512), result("numpy", 60.0, 512), result("numpy", 40.0, 512)]
    assert "numpy 60 GFLOP/s at 512³" in ladder_plot(same).alt


@pytest.mark.usefixtures("in_words")
def test_sizes_that_differ_are_said_to():
    one, other = result("compiled-ikj", 2.0, 512), result("numpy", 50.0, 512)
    assert "izes differ" not in ladder_plot([one, other]).alt
    assert "Sizes differ: each label names its own." in ladder_plot([one, result("numpy", 50.0, 64)]).alt
    figure = ladder_figure.draw(
        ladder.LADDER, {"compiled-ikj": one, "numpy": result("numpy", 9.0, 64)}, "float64"
    )
    upper, lower = figure.axes
    titles = {upper.get_title(loc=place) for place in ("left", "center")}
    assert any(title.endswith("\nsizes differ: each label names its own") for title in titles)
    assert lower.get_ylabel() == "error against\nexact entries\n(relative)"


@pytest.mark.usefixtures("in_words")
def test_rungs_are_compared_on_the_fewest_threads():
    on_one, on_eight = result("numpy", 50.0, 512), result("numpy", 300.0, 1024, threads=8)
    for found in ([on_one, on_eight], [on_eight, on_one]):
        assert "numpy 50 GFLOP/s at 512³ on 1 thread" in ladder_plot(found).alt
    assert "numpy 300 GFLOP/s" in ladder_plot([on_eight]).alt


@pytest.mark.usefixtures("in_words")
def test_the_dtype_with_most_rungs_is_shown_unless_one_is_asked_for():
    results = [
        result("python-lists", 1.0, dtype="float32"),
        result("compiled-ijk", 2.0, dtype="float64"),
        result("compiled-ikj", 3.0, dtype="float64"),
    ]
    assert "in float64" in ladder_plot(results).alt
    assert "in float32" in ladder_plot(results, dtype="float32").alt
    assert "none of its" in ladder_plot(results, dtype="float16").alt


def test_a_rung_ahead_of_the_baseline_is_said_to_be():
    best = {"compiled-ikj": result("compiled-ikj", 60.0), "numpy": result("numpy", 50.0)}
    assert ladder_figure._finding(ladder.LADDER, best).endswith("and 1.2x as fast as numpy")


def texts(figure):
    """Return what is written in the upper axes and what its extent is, drawn."""
    figure.canvas.draw()
    upper = figure.axes[0]
    notes = [child for child in upper.get_children() if type(child).__name__ == "Annotation"]
    return upper, [(note.get_text(), note.get_window_extent()) for note in notes]


@pytest.mark.parametrize("speeds", ["climbing", "level", "falling"])
@pytest.mark.parametrize("count", [3, 6, 12, 22])
def test_labels_neither_collide_nor_leave_the_picture(count, speeds):
    factor = {"climbing": 3.0, "level": 1.01, "falling": 0.5}[speeds]
    made = rungs(count)
    best = {rung.id: result(rung.id, 0.02 * factor**n) for n, rung in enumerate(made[:-1])}
    best["numpy"] = result("numpy", 50.0, 1024)
    figure = ladder_figure.draw(made, best, "float64")
    upper, written = texts(figure)
    assert len(written) == count + 1
    frame = upper.get_window_extent()
    for (first, box), (second, other) in itertools.combinations(written, 2):
        assert not box.overlaps(other), (first, second)
    for words, box in written:
        assert box.y1 <= frame.y1 + 2 and box.x0 >= 0 and box.x1 <= figure.bbox.x1, words
    ticks = [tick.get_window_extent() for tick in figure.axes[1].get_xticklabels()]
    for left, right in itertools.pairwise(ticks):
        assert left.x1 <= right.x0 + 1
    title = (
        upper.title.get_window_extent() if upper.title.get_text() else upper._left_title.get_window_extent()
    )
    assert title.x1 <= figure.bbox.x1 and title.y1 <= figure.bbox.y1


def test_rungs_without_a_result_have_an_empty_place():
    made = rungs(6)
    figure = ladder_figure.draw(made, {"rung-number-1": result("rung-number-1", 1.0)}, "float64")
    places = [line for line in figure.axes[0].get_lines() if line.get_markerfacecolor() == "white"]
    assert list(places[0].get_xdata()) == [0, 2, 3, 4, 5, 6]
    assert "empty circle: not measured yet" in figure.axes[1].get_xlabel()


def test_threads_are_said_once_or_at_each_point():
    made = rungs(3)
    one = {rung.id: result(rung.id, 1.0) for rung in made}
    assert "float64, 1 thread" in ladder_figure.draw(made, one, "float64").axes[0].get_ylabel()
    two = {**one, "numpy": result("numpy", 2.0, threads=8)}
    _, written = texts(ladder_figure.draw(made, two, "float64"))
    assert any("8 threads" in words for words, _ in written) and any(
        "1 thread" in words for words, _ in written
    )


def test_an_exact_result_and_an_unknown_error_are_not_drawn_as_errors():
    made = rungs(3)
    best = {
        "rung-number-0": result("rung-number-0", 1.0, error=0.0),
        "rung-number-1": result("rung-number-1", 2.0, error=None),
        "rung-number-2": result("rung-number-2", 3.0, error=float("nan")),
    }
    lower = ladder_figure.draw(made, best, "float64").axes[1]
    assert [text.get_text() for text in lower.texts] == ["exact"]


@pytest.mark.usefixtures("in_words")
def test_both_baselines_are_drawn_as_such_and_the_faster_one_counts():
    results = [result("simd", 60.0), result("numpy", 50.0), result("openblas", 80.0), result("blocked", 6.0)]
    alt = ladder_plot(results).alt
    assert alt.startswith("simd computes 10x as fast as blocked; openblas is 1.33x as fast as that.")
    assert "limited by: the second baseline" not in alt
    best = {one.rung: one for one in results}
    on_cpu = [entry for entry in ladder.LADDER if "float64" in entry.dtypes]
    lower = ladder_figure.draw(on_cpu, best, "float64").axes[1]
    ticks = [tick.get_text() for tick in lower.get_xticklabels()]
    assert {"numpy\nbaseline", "openblas\nbaseline"} <= set(ticks)
    assert not any("circle 0" in tick for tick in ticks)
    assert lower.get_xlabel().endswith("dashed: openblas")


@pytest.mark.usefixtures("in_words")
def test_a_rung_for_several_cores_is_not_judged_on_one():
    alone = [result("simd", 80.0, 512), result("threads", 75.0, 512), result("numpy", 70.0, 512)]
    assert "threads" not in ladder_plot(alone).alt  # neither a point nor an empty place
    alt = ladder_plot([*alone, result("threads", 150.0, 512, threads=2)]).alt
    assert "threads 150 GFLOP/s at 512³ on 2 threads" in alt
    assert alt.startswith(
        "threads on 2 threads computes 1.88x as fast as simd on 1 thread "
        "and 2.14x as fast as numpy on 1 thread."
    )
