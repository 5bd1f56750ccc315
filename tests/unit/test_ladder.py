"""The registry, and the learner's results: they persist, and nothing loses them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from course_lib import ladder
from course_lib.measure.accuracy import relative_error
from course_lib.measure.store import data_dir


def test_an_unknown_rung_gets_the_nearest_name():
    with pytest.raises(KeyError, match="compiled-ikj"):
        ladder.rung("compiled-ijk2")


def test_climb_measures_records_and_survives():
    comparison = ladder.climb(["python-lists", "compiled-ikj", "numpy"], 24, budget_s=0.3)
    assert comparison.baseline == "numpy"
    saved = {result.rung: result for result in ladder.results()}
    assert set(saved) == {"python-lists", "compiled-ikj", "numpy"}
    for name, result in saved.items():
        row = comparison.row(name)
        assert result.shape == (24, 24, 24) and result.dtype == "float64" and result.threads == 1
        assert result.seconds == row.seconds
        assert result.gflops == pytest.approx(2 * 24**3 / result.seconds / 1e9)
        assert 0 <= result.max_error < 1e-14


def test_a_damaged_entry_in_a_sound_file_harms_nobody_and_is_kept(figures):
    from course_lib import views

    ladder.climb(["numpy", "compiled-ikj"], 8, budget_s=0.02)
    path = data_dir() / "ladder.json"
    sound = path.read_text()
    for field, value in (
        ("rung", ["x"]),
        ("shape", [8, 8, -8]),
        ("threads", None),
        ("seconds", "fast"),
        ("gflops", float("nan")),
        ("max_error", "small"),
        ("blas", None),
        ("rough", "no"),
    ):
        content = json.loads(sound)
        damaged = next(key for key in content["values"] if "compiled" in key)
        content["values"]["odd"] = content["values"].pop(damaged) | {field: value}
        path.write_text(json.dumps(content))
        assert [result.rung for result in ladder.results()] == ["numpy"], (field, value)
        assert "compiled-ikj" in views.ladder_plot().alt.partition("Not measured yet")[2], (field, value)
    ladder.climb(["compiled-ijk"], 8, budget_s=0.02)
    assert "odd" in json.loads(path.read_text())["values"]


def test_two_blas_kernels_are_two_baselines(monkeypatch):
    from course_lib.measure import machine

    ladder.climb(["numpy"], 8, budget_s=0.02)
    other = replace(machine.describe(), blas_architecture="Tuned")
    monkeypatch.setattr(machine, "describe", lambda: other)
    ladder.climb(["numpy"], 8, budget_s=0.02)
    assert len({result.blas for result in ladder.results()}) == 2


def test_relative_error_sees_one_wrong_entry_and_nan():
    A, B = ladder.operands((20, 30, 10))
    C = A @ B
    assert relative_error(C, A, B) < 1e-15
    C[:, 3] += 1.0
    assert relative_error(C, A, B) > 1e-2
    C[:, 3] = np.nan
    assert np.isnan(relative_error(C, A, B))


def test_a_new_measurement_replaces_the_old_of_the_same_kind_until_all_are_forgotten():
    for size in (8, 8, 9):
        ladder.climb(["compiled-ikj"], size, budget_s=0.05)
    assert [result.shape[0] for result in ladder.results()] == [8, 9]
    assert ladder.forget() == 2 and ladder.results() == []


def test_a_rough_time_replaces_no_sound_one():
    found = ladder.climb(["compiled-ikj"], 8, budget_s=0.05, save=False)
    for seconds, rough, kept in ((1.0, "busy", 1.0), (2.0, "busy", 2.0), (3.0, "", 3.0), (4.0, "busy", 3.0)):
        rows = (replace(found.rows[0], seconds=seconds),)
        calm = replace(found.conditions, held=rough, half_width=0.01)  # whatever this moment scattered
        ladder.record(replace(found, rows=rows, conditions=calm))
        assert [(one.seconds, one.rough) for one in ladder.results()] == [(kept, kept < 3)]


def test_rungs_are_climbed_at_each_size_at_which_they_are_themselves(monkeypatch):
    from course_lib.circles import strassen, strassen_fused

    assert ladder.rung("strassen").smallest == strassen.CUTOFF + 1
    assert ladder.rung("strassen-fused").smallest == strassen_fused.SMALLEST
    sizes = {id: ladder.rung(id).size for id in ("python-lists", "numpy", "strassen")}
    assert sizes == {"python-lists": 200, "numpy": 1000, "strassen": 2000}
    monkeypatch.setattr(ladder, "SIZE", 24)
    monkeypatch.setattr(ladder, "SMALL", 8)
    larger = ladder.climb_sizes(["python-lists", "compiled-ikj"], budget_s=0.05, baseline="python-lists")
    assert larger.shapes == ((24, 24), (24, 24))
    found = {(one.rung, one.shape[0]) for one in ladder.results()}
    assert found == {("python-lists", 8), ("compiled-ikj", 8), ("compiled-ikj", 24)}
    tried = []
    monkeypatch.setattr(ladder, "climb", lambda ids, size, **_: tried.append((size, ids)))
    ladder.climb_sizes(["simd", "strassen"])
    assert tried == [(8, ["simd"]), (24, ["simd"]), (2000, ["simd", "strassen"])]
