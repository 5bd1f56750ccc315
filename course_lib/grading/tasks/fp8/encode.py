"""Task 10.encode: rounding to e4m3 by hand, ties, subnormals, saturation and the sign of zero included."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.fp8.formats import E4M3
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS
from course_lib.grading.tasks.fp8.signed import SIGNED

SOLUTION = source("""
    def encode(x):
        if math.isnan(x):
            return 127
        sign = 128 if math.copysign(1.0, x) < 0 else 0
        size = min(abs(x), 448.0)
        exponent = -6 if size < 2.0**-6 else math.frexp(size)[1] - 1
        steps = round(size * 2.0 ** (3 - exponent))
        return sign + 8 * (exponent + 6) + steps
""")
VALUES = [float(value) for value in E4M3.values[:127]]  # 0 ... 448, in order


def encode(x: float) -> int:
    """Return the code of the nearest number of e4m3; a tie goes to the even code, 448 is the end."""
    return int(E4M3.encode(x)) & (127 if math.isnan(x) else 255)


def _numbers(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((0.3,), "an ordinary number")
    for x, said in (
        (0.0, "zero"),
        (-0.0, "zero with a minus"),
        (448.0, "the largest number"),
        (464.0, "half a step beyond the largest number"),
        (465.0, "beyond the largest number"),
        (-1e30, "far beyond the largest number"),
        (math.inf, "infinity, which saturates"),
        (-math.inf, "infinity with a minus, which saturates"),
        (math.nan, "NaN"),
        (2.0**-9, "the smallest number"),
        (2.0**-10, "half the smallest number: a tie"),
        (1.001 * 2.0**-10, "a little more than half the smallest number"),
        (5e-324, "the smallest number of float64"),
        (7.5 * 2.0**-9, "between the largest subnormal and the smallest normal number: a tie"),
        (1.9375, "a tie between two exponents"),
    ):
        yield Case((x,), said)
    for code in rng.permutation(126):
        yield from _near_a_tie(int(code), float(rng.choice([-1.0, 1.0])))
    for value in rng.permutation(VALUES):
        for x in (float(value), -float(value)):
            yield Case((x,), "a number of e4m3")
    for x in rng.choice([-1.0, 1.0], 80) * np.exp2(rng.uniform(-12, 9.5, 80)):
        yield Case((float(x),), "any number")


def _near_a_tie(code: int, sign: float) -> Iterator[Case]:
    """Yield the number halfway between a code and the next, and its neighbours on both sides."""
    tie = (VALUES[code] + VALUES[code + 1]) / 2
    for factor, said in (
        (1.0, "a tie"),
        (1 - 2.0**-20, "just below a tie"),
        (1 + 2.0**-20, "just above a tie"),
    ):
        yield Case((sign * tie * factor,), said)


def _odd_tie(got: int, x: float) -> bool:
    want = encode(x)
    low, high = sorted((got & 127, want & 127))
    tie = high - low == 1 and high < 127 and abs(x) * 2 == VALUES[low] + VALUES[high]
    return tie and got & 128 == want & 128


TASK = Task(
    id="10.encode",
    title="To the nearest of 256",
    kind="write",
    points=3,
    difficulty=4,
    minutes=25,
    good_for="rounding as hardware does it: every number format of the last ten years is this function",
    entry="encode",
    cases=_numbers,
    reference=encode,
    comparison=SIGNED,
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike("A tie goes to the even code, whose last bit is 0.", fits=_odd_tie),
        Lookalike(
            "A zero keeps its sign: -0.0 has the code 0x80 (-0.0 < 0 is false; math.copysign sees the sign).",
            fits=lambda got, x: x == 0 and got == encode(x) ^ 128,
        ),
        Lookalike(
            "What lies beyond 448 saturates: it becomes 448, whose code is 0x7e, with its sign.",
            fits=lambda got, x: abs(x) > 448,
        ),
        Lookalike(
            "The sign is missing: its bit has the value 128.", fits=lambda got, x: got == encode(x) ^ 128
        ),
        Lookalike(
            "Below 2^-6 the steps stay as wide as above it, 2^-9: numbers get smaller down to one step.",
            fits=lambda got, x: abs(x) < 2.0**-6,
        ),
        Lookalike(
            "That is the next code toward zero: rounded off, not to the nearest.",
            fits=lambda got, x: got == encode(x) - 1,
        ),
    ),
    hints=(
        "Between 2^e and 2^(e+1) there are 8 numbers. How wide is a step there, and how many steps is x?",
        "Take the size, at most 448. Its exponent e is that of frexp less 1, but never below -6: there the "
        "steps stay 2^-9. The size is size * 2^(3 - e) steps, which Python's round brings to the nearest "
        "whole number, ties to even. Codes of positive numbers are in order: one step further is the next "
        "code, also across exponents, so nothing special happens when 15.6 steps become 16.",
        "steps = round(size * 2.0 ** (3 - e)); return sign + 8 * (e + 6) + steps, with sign = 128 if "
        "math.copysign(1.0, x) < 0 else 0. NaN goes first, as 127.",
    ),
)
