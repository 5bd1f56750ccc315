"""`python -m course_lib search M N K` without a GPU: the model's order. (With one: tests/gpu.)"""

from course_lib.__main__ import main
from course_lib.fp8.choice import candidates
from course_lib.measure import machine


def imports():
    global launch, searching
    from course_lib.fp8 import launch, searching


def test_without_a_gpu_it_says_what_the_model_expects_and_that_it_is_a_model(monkeypatch, capsys):
    monkeypatch.setattr(launch, "missing_here", lambda: "There is no GPU.")
    assert main(["search", "20", "7168", "2048"]) == 0
    told = capsys.readouterr().out
    assert searching.words(candidates(20, 7168, 2048)[0]) in told and "The model is one of waves" in told
    assert told.rstrip().endswith("Nothing was measured. There is no GPU.")


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
