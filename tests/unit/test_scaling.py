"""The exponent of a power law is found, from exact and from measured times."""

import pytest

from course_lib.measure.scaling import Scaling, scaling

CUBIC = Scaling(
    {
        "cubic": [(n, 2e-9 * n**3) for n in (16, 32, 64)],
        "square": [(n, 5e-8 * n**2) for n in (16, 32, 64)],
    }
)
ALONE = Scaling({"cubic": CUBIC.points["cubic"]})


def test_a_power_law_is_fitted_exactly():
    assert CUBIC.exponent("cubic") == pytest.approx(3)
    assert CUBIC.exponent("square") == pytest.approx(2)
    assert CUBIC.predict("cubic", 1024) == pytest.approx(2e-9 * 1024**3)
    assert CUBIC.predict("square", 100) == pytest.approx(5e-8 * 100**2)
    with pytest.raises(ValueError, match="no function 'log' here; there are 'cubic', 'square'"):
        CUBIC.exponent("log")


@pytest.mark.timing
def test_work_that_grows_quadratically_is_seen():
    def pairs(n):
        count = 0
        for i in range(n):
            for j in range(n):
                count += i < j
        return count

    grown = scaling({"pairs": pairs}, (480, 60, 240, 240), lambda n: (n,), budget_s=0.5)
    assert [n for n, _ in grown.points["pairs"]] == [60, 240, 480]
    assert grown.exponent("pairs") == pytest.approx(2, abs=0.3)
    measured = dict(grown.points["pairs"])[480]
    assert grown.predict("pairs", 480) == pytest.approx(measured, rel=0.5)


def test_the_figure_says_the_growth_and_the_guess():
    picture = ALONE.figure()
    assert picture.png.startswith(b"\x89PNG")
    assert "cubic: twice the size takes 8.0x the time (n^3.00)" in picture.alt
    assert "8.19 us at n = 16" in picture.alt and "dashed" not in picture.alt
    guessed = ALONE.figure(guess=2)
    assert "your guess, n^2" in guessed.alt and guessed.png != picture.png
    assert "Time grows as n^2.00 to n^3.00" in CUBIC.figure().alt
