"""The registry, and the learner's results: they persist, and nothing loses them."""

import inspect
import json

import numpy as np
import pytest

from course_lib import ladder
from course_lib.measure.accuracy import exact_dot, relative_error
from course_lib.measure.store import data_dir


def test_the_registry_is_in_order():
    ids = [entry.id for entry in ladder.LADDER]
    assert len(set(ids)) == len(ids)
    assert {"python-lists", "python-ndarray", "compiled-ijk", "compiled-ikj", "numpy"} <= set(ids)
    assert all(entry.bottleneck and entry.title and entry.dtypes for entry in ladder.LADDER)


def test_every_rung_has_a_module_with_one_matmul():
    for entry in ladder.LADDER:
        module = entry.module()
        assert len(module.__doc__) > 80, entry
        assert list(inspect.signature(module.matmul).parameters)[:2] == ["A", "B"], entry


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


def test_a_new_measurement_replaces_the_old_of_the_same_kind_only():
    for size in (8, 8, 9):
        ladder.climb(["compiled-ikj"], size, budget_s=0.05)
    assert [result.shape[0] for result in ladder.results()] == [8, 9]


def test_forget_empties_the_ladder():
    ladder.climb(["compiled-ikj", "numpy"], 8, budget_s=0.05)
    assert ladder.forget() == 2 and ladder.results() == []


def test_rows_that_are_no_rungs_are_not_recorded():
    from course_lib.measure.timing import compare

    A, B = ladder.operands((4, 4, 4))
    comparison = compare({"mine": np.matmul, "numpy": np.matmul}, A, B, budget_s=0.05)
    assert [result.rung for result in ladder.record(comparison)] == ["numpy"]


def test_an_entry_nobody_understands_is_skipped_and_kept():
    ladder.climb(["numpy"], 8, budget_s=0.05)
    path = data_dir() / "ladder.json"
    content = json.loads(path.read_text())
    content["values"]["odd"] = {"rung": "numpy", "colour": "green"}
    path.write_text(json.dumps(content))
    assert len(ladder.results()) == 1
    ladder.climb(["compiled-ikj"], 8, budget_s=0.05)
    assert "odd" in json.loads(path.read_text())["values"]


def test_climb_refuses_shapes_that_are_none():
    for arguments, words in [
        ({}, "Give either a size"),
        ({"size": 4, "shape": (1, 2, 3)}, "Give either a size"),
        ({"size": 0}, "three positive whole numbers"),
        ({"size": True}, "three positive whole numbers"),
        ({"size": 2.0}, "three positive whole numbers"),
        ({"shape": 8}, "three positive whole numbers"),
        ({"shape": (1, 2)}, "three positive whole numbers"),
        ({"size": 4, "dtype": "foo"}, "dtype is 'foo', but 'numpy' multiplies float32 or float64"),
    ]:
        with pytest.raises(ValueError, match=words):
            ladder.climb(["numpy"], **arguments)


def test_climb_takes_every_three_whole_numbers_as_a_shape():
    for shape in (np.array([4, 5, 6]), [4, 5, 6], iter((4, 5, 6))):
        comparison = ladder.climb(["numpy"], shape=shape, budget_s=0.01, save=False)
        assert comparison.shapes == ((4, 5), (5, 6))


def test_climb_wants_a_list_of_rungs():
    for ids in [[], "numpy"]:
        with pytest.raises(ValueError, match="a list of rungs is needed"):
            ladder.climb(ids, 8)


def test_a_damaged_entry_in_a_sound_file_harms_nobody(monkeypatch):
    from course_lib import views
    from course_lib.theme import Picture

    monkeypatch.setattr(Picture, "of", lambda fig, alt: Picture(b"", alt, 0))  # its words are asked for
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
    ):
        content = json.loads(sound)
        next(one for key, one in content["values"].items() if "compiled" in key)[field] = value
        path.write_text(json.dumps(content))
        assert [result.rung for result in ladder.results()] == ["numpy"], (field, value)
        assert "compiled-ikj" in views.ladder_plot().alt.partition("Not measured yet")[2], (field, value)


def test_two_blas_kernels_are_two_baselines(monkeypatch):
    import dataclasses

    from course_lib.measure import machine

    ladder.climb(["numpy"], 8, budget_s=0.02)
    other = dataclasses.replace(machine.describe(), blas_architecture="Tuned")
    monkeypatch.setattr(machine, "describe", lambda: other)
    ladder.climb(["numpy"], 8, budget_s=0.02)
    assert len({result.blas for result in ladder.results()}) == 2


def test_exact_dot_is_exact_where_a_plain_sum_is_lost():
    x = np.array([1e16, 1.0, -1e16, 3.0])
    assert exact_dot(x, np.ones(4)) == 4.0
    assert exact_dot(np.array([0.1]), np.array([0.1])) == 0.1 * 0.1


def test_relative_error_sees_one_wrong_entry_and_nan():
    A, B = ladder.operands((20, 30, 10))
    C = A @ B
    assert relative_error(C, A, B) < 1e-15
    C[:, 3] += 1.0
    assert relative_error(C, A, B) > 1e-2
    C[:, 3] = np.nan
    assert np.isnan(relative_error(C, A, B))
