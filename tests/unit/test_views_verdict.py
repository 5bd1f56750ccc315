"""The guess beside the measurement: the sentence tells the truth, with and without a guess."""

import math

import pytest

from course_lib import views


class Locked:
    value = 40.0


@pytest.mark.parametrize(
    ("guess", "measured", "unit", "words"),
    [
        (None, 27.1, "ms", "27.1 ms (no guess was locked in): lock one in above and run"),
        (270, 27, "ms", "your guess was 10 times too high"),
        (Locked(), 80.0, "x", "80x, your guess was 2 times too low"),
        (28, 27, "ms", "and you guessed it"),
        (50, 80, "%", "80 %, you guessed 50 %"),
        (0, 80, "ms", "80 ms, you guessed 0 ms"),
        (3, 12_345, "x", "12,345x"),
    ],
)
def test_the_sentence(guess, measured, unit, words):
    picture = views.verdict(guess, measured, unit=unit, what="the loop")
    assert words in picture.alt and "the loop" in picture.alt
    assert ("lock one in above" in picture.alt) is (guess is None)
    assert picture.png.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("guess", "interval", "words"),
    [
        (20, (0.3, 1.4), "cannot be told on this run (0.3x to 1.4x): run again (your guess, 20x, is above"),
        (0.1, (0.3, math.inf), "(0.3x or more): run again (your guess, 0.1x, is below all of it)"),
        (1, (0.3, 1.4), "(0.3x to 1.4x): run again."),
        (0.55, (0.4, 0.56), "0.5x, and you guessed it"),
        (5, (0.48, 0.52), "0.5x, your guess was 10 times too high"),
        (None, (0.3, 1.4), "on this run (0.3x to 1.4x): measure again, with a guess locked in above."),
    ],
)
def test_a_measurement_that_tells_nothing_judges_no_guess(guess, interval, words):
    picture = views.verdict(guess, 0.5, unit="x", what="the loop", interval=interval)
    assert words in picture.alt and picture.png.startswith(b"\x89PNG")


def test_a_busy_machine_judges_no_guess():
    picture = views.verdict(5, 0.5, unit="x", interval=(0.48, 0.52), busy=True)
    assert "this machine was busy, so it cannot be told on this run: run again." in picture.alt
    assert "too high" not in picture.alt
    nobody_guessed = views.verdict(None, 0.5, unit="x", interval=(0.48, 0.52), busy=True).alt
    assert "told on this run: measure again, with a guess locked in above." in nobody_guessed


@pytest.mark.parametrize("ends", [(math.inf, math.inf), (math.nan, math.nan)])
def test_an_interval_without_an_end_is_drawn_as_none(ends):
    assert "Number line" in views.verdict(None, 2.0, "x", what="the loop", interval=ends).alt
