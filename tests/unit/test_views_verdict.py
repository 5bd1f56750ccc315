"""The guess beside the measurement: the sentence tells the truth, with and without a guess."""

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
