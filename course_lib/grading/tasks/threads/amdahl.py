"""Task 05.amdahl: the serial fraction behind a measured time, and what more threads would bring."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.patterns import same
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task


def forecast(one: float, several: float, threads: int, more: float) -> tuple[float, float]:
    """Return the serial fraction that the times on 1 and on `threads` threads ask for, and the speed-up that
    Amdahl's law then allows on `more` threads."""
    serial = (several / one - 1 / threads) / (1 - 1 / threads)
    return serial, 1 / (serial + (1 - serial) / more)


def _times(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((10.0, 6.0, 2, 4), "10 s on one thread, 6 s on two: what do four bring?")
    yield Case((10.0, 5.5, 2, math.inf), "10 s and 5.5 s: what is the limit?")
    yield Case((8.0, 8.0, 4, 64), "four threads are no faster than one")
    yield Case((8.0, 2.0, 4, 64), "four threads take a quarter of the time")
    for threads in (2, 4, 8, 16):
        serial, one = float(rng.uniform(0.01, 0.4)), float(rng.uniform(0.5, 90))
        several = round(one * (serial + (1 - serial) / threads), 6)
        more = int(threads * rng.integers(2, 20))
        yield Case(
            (round(one, 6), several, threads, more), f"measured on {threads}, asked for {more} threads"
        )


TASK = Task(
    id="05.amdahl",
    title="What would more cores bring?",
    kind="predict",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="judging from two timings whether a larger machine is worth its money",
    entry="forecast",
    cases=_times,
    reference=forecast,
    comparison=close(rtol=1e-9, atol=1e-12, parts=("serial fraction", "speed-up")),
    rules=(OnlyImports(("math",)),),
    lookalikes=(
        Lookalike(
            "The pair is swapped: the serial fraction first, then the speed-up.",
            lambda *args: forecast(*args)[::-1],
        ),
        Lookalike(
            "That is the part of the time that is left; the threads' share of the parallel part is still "
            "in it.",
            lambda one, several, threads, more: _both(several / one, more),
        ),
        Lookalike(
            "Nearly: on `threads` threads only 1 - 1/threads of the parallel part has gone. Divide by that.",
            lambda one, several, threads, more: _both(several / one - 1 / threads, more),
        ),
        Lookalike(
            "That is the parallel fraction; the serial one is what is left of 1.",
            fits=lambda got, *args: same(got[0], 1 - forecast(*args)[0]),
        ),
        Lookalike(
            "That is in per cent: a fraction of 20 % is 0.2.",
            fits=lambda got, *args: forecast(*args)[0] != 0 and same(got[0], 100 * forecast(*args)[0]),
        ),
        Lookalike(
            "1 / s is the limit for threads without end. On `more` of them the parallel part still takes "
            "(1 - s) / more.",
            lambda *args: (forecast(*args)[0], 1 / forecast(*args)[0]),
        ),
        Lookalike(
            "The serial fraction is right. The speed-up does not grow in step with the threads: the serial "
            "part "
            "stays.",
            lambda one, several, threads, more: (
                forecast(one, several, threads, more)[0],
                one / several * more / threads,
            ),
        ),
        Lookalike(
            "The second number is the part of the time that is left: the speed-up is its inverse.",
            lambda *args: (forecast(*args)[0], 1 / forecast(*args)[1]),
        ),
        Lookalike(
            "You divide by the threads of the measurement; the question is about `more` threads.",
            lambda one, several, threads, more: (forecast(one, several, threads, more)[0], one / several),
        ),
    ),
    hints=(
        "Let s be the serial fraction and the time on one thread 1. How long does it take on p threads?",
        "s + (1 - s) / p. This is several / one with p = threads: solve it for s. Then put p = more in; "
        "the speed-up "
        "is the inverse.",
        "serial = (several / one - 1 / threads) / (1 - 1 / threads); speed-up = 1 / (serial + (1 - serial) "
        "/ more)",
    ),
)


def _both(serial: float, more: float) -> tuple[float, float]:
    return serial, 1 / (serial + (1 - serial) / more)
