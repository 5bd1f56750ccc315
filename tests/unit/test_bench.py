"""The bench: measures what was asked, says what it leaves out, and writes JSON or nothing."""

import argparse
import json
import re

import pytest

from course_lib import ladder
from course_lib.commands import bench


def run(*options):
    parser = argparse.ArgumentParser()
    bench.add_arguments(parser)
    return bench.run(parser.parse_args(list(options)))


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
    assert "python-ndarray: left out, one call would take about" in capsys.readouterr().out
    assert [result.rung for result in ladder.results()] == ["numpy"]


def test_no_save_keeps_the_ladder(capsys):
    run("--rungs", "numpy", "--sizes", "16", "--budget", "0.1", "--no-save")
    assert ladder.results() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rungs", "compiled-ikk"], "did you mean compiled-i"),
        (["--sizes", "0"], "--sizes has 0"),
        (["--threads", "100000"], "--threads is 100000"),
        (["--threads", "0"], "--threads is 0"),
        (["--budget", "0"], "--budget is 0, but it must be"),
        (["--budget", "-1"], "--budget is -1"),
        (["--budget", "nan"], "--budget is nan"),
        (["--longest", "0"], "--longest is 0, but it must be"),
        (["--json", "no/such/folder/results.json"], "cannot be written"),
        (["--json", "."], "it is a folder"),
    ],
)
def test_bad_options_get_one_sentence(options, words, capsys):
    assert run(*options) == 2
    printed = capsys.readouterr().out.strip()
    assert words in printed and "\n" not in printed


def test_a_disk_that_fails_after_the_measuring_is_said(tmp_path, capsys, monkeypatch):
    def no_space(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench.os, "replace", no_space)
    code = run(
        "--rungs", "numpy", "--sizes", "8", "--budget", "0.05", "--no-save", "--json", str(tmp_path / "a")
    )
    assert code == 1
    assert "cannot be written (No space left on device)" in capsys.readouterr().out


def test_a_short_expected_time_is_not_zero_seconds(capsys):
    assert run("--rungs", "python-lists", "--sizes", "48", "--longest", "1e-6") == 1
    said = capsys.readouterr().out
    assert "one call would take about 0 s" not in said
    assert re.search(r"one call would take about [\d.,]+ (us|ms) \(see --longest\)", said)


def test_list_names_every_rung(capsys):
    assert run("--list") == 0
    printed = capsys.readouterr().out
    assert all(entry.id in printed for entry in ladder.LADDER)
