"""The bench: measures what was asked, says what it leaves out, and writes JSON or nothing."""

import json
import re
import time
from types import SimpleNamespace

import pytest

from course_lib import ladder
from course_lib.__main__ import main
from course_lib.commands import bench
from course_lib.measure import machine


def run(*options):
    return main(["bench", *options])


def test_prints_a_table_and_writes_json(tmp_path, capsys):
    target = tmp_path / "results.json"
    code = run(
        "--rungs", "compiled-ikj", "numpy", "--sizes", "16", "24", "--budget", "0.1", "--json", str(target)
    )
    assert code == 0
    printed = capsys.readouterr().out
    assert "compiled-ikj" in printed and "GFLOP/s" in printed and "x baseline" in printed
    saved = json.loads(target.read_text())
    assert [sorted(row["name"] for row in table["rows"]) for table in saved["comparisons"]] == [
        ["compiled-ikj", "numpy"]
    ] * 2
    assert {result.shape[0] for result in ladder.results()} == {16, 24}


def test_slow_rungs_are_left_out_with_a_sentence(capsys):
    code = run("--rungs", "python-ndarray", "numpy", "--sizes", "400", "--longest", "0.5", "--budget", "0.1")
    assert code == 0
    printed = capsys.readouterr().out
    assert re.search(
        r"python-ndarray: left out, one call would take about [\d.,]+ s \(see --longest\)", printed
    )
    assert [result.rung for result in ladder.results()] == ["numpy"]


def fake_rung(id, cost_s):
    """A rung that does nothing but take `cost_s(size)` seconds."""

    def matmul(A, B):
        time.sleep(cost_s(len(A)))

    return SimpleNamespace(id=id, matmul=matmul)


def test_a_constant_cost_of_each_call_is_not_multiplied_by_the_size():
    """As of waking threads: 20 ms for a tiny product do not make minutes of a large one."""
    start = fake_rung("threads", lambda size: 20e-3)
    assert bench.expected_s(start, 1024, "float64", longest_s=5) < 5  # 48 -> 1024 times 20 ms would be 194 s
    work = fake_rung("loops", lambda size: 1e-6 * size**3)
    assert 60 < bench.expected_s(work, 400, "float64", longest_s=0.5) < 120  # and one that is slow stays slow


def test_bad_options_get_one_sentence(capsys):
    for options, words in (
        (["--rungs", "compiled-ikk"], "did you mean compiled-i"),
        (["--sizes", "0"], "--sizes has 0"),
        (["--threads", "100000"], "--threads is 100000"),
        (["--budget", "nan"], "--budget is nan"),
        (["--json", "no/such/folder/results.json"], "cannot be written"),
    ):
        assert run(*options) == 2
        printed = capsys.readouterr().out.strip()
        assert words in printed and "\n" not in printed


@pytest.mark.slow
def test_the_summit_shows_both_baselines(tmp_path, capsys):
    target = tmp_path / "summit.json"
    assert run("--summit", "--sizes", "48", "--budget", "0.1", "--json", str(target), "--no-save") == 0
    printed = capsys.readouterr().out
    assert "48 x 48 x 48, float32, 1 thread(s): simd" in printed and "x openblas, lowest" in printed
    saved = json.loads(target.read_text())
    assert saved["comparisons"] == [] and saved["summit"][0]["rows"][0]["name"] == "simd"


def test_gpu_rungs_are_left_to_the_recording_even_where_there_is_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(machine, "missing", lambda need: None)
    assert (
        run("--rungs", "cuda-naive", "numpy", "--sizes", "16", "--budget", "0.1", "--dtype", "float32") == 0
    )
    assert "cuda-naive: left out. `python -m course_lib record --gpu` measures" in capsys.readouterr().out
    assert [result.rung for result in ladder.results()] == ["numpy"]
