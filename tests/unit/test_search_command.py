"""`python -m course_lib search M N K`: the model's order without a GPU, the measured one with a GPU."""

import pytest

from course_lib.__main__ import main
from course_lib.fp8.choice import KernelChoice, candidates
from course_lib.fp8.choose import H200
from course_lib.fp8.tiles import Tile
from course_lib.measure import machine


@pytest.fixture(scope="module", autouse=True)
def modules():
    """Torch is imported when the first test runs, not when tests are collected."""
    global torch, launch, searching
    import torch

    from course_lib.fp8 import launch, searching


def test_without_a_gpu_it_says_what_the_model_expects_and_that_it_is_a_model(monkeypatch, capsys):
    monkeypatch.setattr(launch, "missing_here", lambda: "There is no GPU.")
    assert main(["search", "20", "7168", "2048"]) == 0
    told = capsys.readouterr().out
    assert searching.words(candidates(20, 7168, 2048)[0]) in told and "nothing here is measured" in told
    assert told.rstrip().endswith("Nothing was measured. There is no GPU.")


def test_with_a_gpu_the_fastest_comes_first(monkeypatch, capsys):
    ranked = {KernelChoice("v6_tuned", Tile(128, 112, 2)): 1e-4, KernelChoice("v6_tuned", Tile(64, 64)): 2e-4}
    monkeypatch.setattr(launch, "missing_here", lambda: None)
    monkeypatch.setattr(launch, "gpu", lambda device: H200)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(searching, "here", lambda *shape: ranked)
    assert main(["search", "4096", "4096", "7168"]) == 0
    told = capsys.readouterr().out
    assert told.index("v6_tuned 128x112 in 2s") < told.index("v6_tuned 64x64")
    assert "2,405" in told or "2405" in told  # 2 x 4096 x 4096 x 7168 in 100 us


def test_what_cannot_be_searched_is_one_sentence(monkeypatch, capsys):
    for sizes, words in (
        (("4", "33", "64"), "N is 33, but it must be a whole number from 8 to 1048576, in steps of 8."),
        (("65536", "65536", "65536"), "has more than 2147483648 numbers: take smaller sizes."),
    ):
        assert main(["search", *sizes]) == 2
        assert words in capsys.readouterr().out
    monkeypatch.setattr(machine, "missing", lambda need: f"There is no {need}.")
    assert main(["search", "64", "64", "64"]) == 2
    assert capsys.readouterr().out == "search: There is no torch.\n"
