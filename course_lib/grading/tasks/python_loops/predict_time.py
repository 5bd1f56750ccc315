"""Task 01.predict_time: the exponent and the time of a large product, from timings of small ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task


def extrapolate(sizes: list[float], seconds: list[float], N: float) -> tuple[float, float]:
    """Return the exponent of the power law through the points (least squares in logs) and the time at N."""
    slope, offset = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope), float(np.exp(offset) * N**slope)


def _timings(rng: np.random.Generator) -> Iterator[Case]:
    plain = [8.0, 16.0, 32.0, 64.0]
    yield Case((plain, [1e-9 * n**3 for n in plain], 500.0), "an exact cubic law, 1 ns per step")
    for exponent, count in ((3.0, 5), (2.0, 4), (2.81, 7), (1.0, 3), (2.5, 7)):  # 7 twice, not the same
        sizes = sorted(float(n) for n in rng.choice(np.arange(10, 400), count, replace=False))
        noise = rng.uniform(0.75, 1.35, count)
        seconds = [float(3e-8 * n**exponent * e) for n, e in zip(sizes, noise, strict=True)]
        yield Case((sizes, seconds, 1024.0), f"{count} noisy timings")
    yield Case(([100.0, 200.0], [0.5, 4.1], 50.0), "two points, N below them")
    yield Case(([64.0, 16.0, 128.0, 32.0], [0.11, 0.002, 0.9, 0.012], 500.0), "timings in no order of size")


def _two_points(sizes: list[float], seconds: list[float], N: float, first: int) -> tuple[float, float] | None:
    if len(sizes) < 3:
        return None
    p = math.log(seconds[-1] / seconds[first]) / math.log(sizes[-1] / sizes[first])
    return p, seconds[first] * (N / sizes[first]) ** p


def _line(sizes: list[float], seconds: list[float], N: float) -> tuple[float, float]:
    slope, offset = np.polyfit(sizes, seconds, 1)
    return float(slope), float(offset + slope * N)


def _log_c(sizes: list[float], seconds: list[float], N: float) -> tuple[float, float]:
    slope, offset = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope), float(offset * N**slope)


TASK = Task(
    id="01.predict_time",
    title="How long would a large one take?",
    kind="open",
    points=2,
    difficulty=3,
    minutes=20,
    good_for="reading an exponent off your own timings, and knowing when not to wait",
    entry="extrapolate",
    cases=_timings,
    reference=extrapolate,
    comparison=close(rtol=1e-8, parts=("exponent", "seconds at N")),
    rules=(OnlyImports(("math", "numpy")),),
    lookalikes=(
        Lookalike(
            "The pair is swapped: exponent first, then the seconds.",
            lambda sizes, seconds, N: extrapolate(sizes, seconds, N)[::-1],
        ),
        Lookalike(
            "The exponent is fixed at 3: measure the exponent, do not assume it.",
            fits=lambda got, sizes, seconds, N: (
                got[0] == 3 and abs(extrapolate(sizes, seconds, N)[0] - 3) > 1e-6
            ),
        ),
        Lookalike(
            "That is log c: take exp of it.",
            lambda sizes, seconds, N: _log_c(sizes, seconds, N),
        ),
        Lookalike(
            "The slope and the offset are swapped: np.polyfit gives the highest power first, the slope.",
            fits=lambda got, sizes, seconds, N: np.isclose(
                got[0], np.polyfit(np.log(sizes), np.log(seconds), 1)[1]
            ),
        ),
        Lookalike(
            "Only the first and the last point are used: noise in one of them spoils the fit. Use all "
            "points.",
            lambda sizes, seconds, N: _two_points(sizes, seconds, N, 0),
        ),
        Lookalike(
            "Only the last two points are used: noise in one of them spoils the fit. Use all points.",
            lambda sizes, seconds, N: _two_points(sizes, seconds, N, -2),
        ),
        Lookalike(
            "This is a straight line through the times themselves. A power law is straight in the "
            "logarithms.",
            lambda sizes, seconds, N: _line(sizes, seconds, N),
        ),
        Lookalike(
            "The second number is the logarithm of the time: take exp of it.",
            lambda sizes, seconds, N: (
                extrapolate(sizes, seconds, N)[0],
                math.log(extrapolate(sizes, seconds, N)[1]),
            ),
        ),
    ),
    hints=(
        "If t = c * N^p, what is log t? Which kind of curve is that in log N?",
        "log t = log c + p * log N is a straight line: fit one through (log N, log t) by least squares. Its "
        "slope is p.",
        "slope, offset = np.polyfit(np.log(sizes), np.log(seconds), 1); the time at N is exp(offset) * N "
        "** slope.",
    ),
)
