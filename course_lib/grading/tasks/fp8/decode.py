"""Task 10.decode: what the eight bits of e4m3 mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.fp8.formats import E4M3
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS
from course_lib.grading.tasks.fp8.signed import SIGNED

SOLUTION = source("""
    def decode(code):
        sign = -1.0 if code >= 128 else 1.0
        exponent, fraction = code // 8 % 16, code % 8
        if exponent == 15 and fraction == 7:
            return math.nan
        if exponent == 0:
            return sign * fraction * 2.0**-9
        return sign * (8 + fraction) * 2.0 ** (exponent - 10)
""")


def decode(code: int) -> float:
    """Return the value of a code 0 ... 255 of e4m3 (Micikevicius et al. 2022, arXiv:2209.05433)."""
    return float(E4M3.values[code])


def _codes(rng: np.random.Generator) -> Iterator[Case]:
    for code in (0x41, 0x38, 0xB8, 0x08, 0x7E, 0x01, 0x07, 0x00, 0x80, 0x7F, 0xFF, 0x78):
        yield _case(code)
    for code in rng.permutation(256):
        yield _case(int(code))


def _case(code: int) -> Case:
    text = f"{code:08b}"
    return Case((code,), f"the code 0x{code:02x}, bits {text[0]} {text[1:5]} {text[5:]}")


def _fields(code: int) -> tuple[int, int, int]:
    return code >> 7, code >> 3 & 15, code & 7


def _with(code: int, bias: int = 7, lead: float = 1.0, subnormal: bool = True) -> float | None:
    """Return what a slip would give; None where it is right all the same."""
    sign, exponent, fraction = _fields(code)
    if code & 127 == 127:
        return None
    if exponent == 0 and subnormal:
        value = fraction / 8 * 2.0 ** (1 - bias)
    else:
        value = (lead + fraction / 8) * 2.0 ** (exponent - bias)
    found = -value if sign else value
    return None if found == decode(code) else found


TASK = Task(
    id="10.decode",
    title="Eight bits by hand",
    kind="predict",
    points=1,
    difficulty=2,
    minutes=10,
    good_for="knowing what 256 numbers can and cannot say, before a network is made of them",
    entry="decode",
    cases=_codes,
    reference=decode,
    comparison=SIGNED,
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "e4m3 has no infinity, and the exponent 15 is one like all others; only the fraction 7 there "
            "is NaN.",
            fits=lambda got, code: code & 0x78 == 0x78 and not np.isfinite(got) and code & 7 < 7,
        ),
        Lookalike(
            "Only the exponent 15 with the fraction 7 is NaN: the largest number, 448, has the code before.",
            fits=lambda got, code: code & 127 == 127 and not np.isnan(got),
        ),
        Lookalike(
            "With the exponent field 0 there is no leading one: the fraction alone counts, in steps of 2^-9.",
            fits=lambda got, code: code & 0x78 == 0 and got == _with(code, subnormal=False),
        ),
        Lookalike(
            "Subnormal numbers have the exponent of the smallest normal ones, 1 - 7 and not 0 - 7.",
            fits=lambda got, code: code & 0x78 == 0 and got == decode(code) / 2 != 0,
        ),
        Lookalike(
            "That is the value of five bits of exponent and two of fraction, e5m2.",
            lambda code: (
                None
                if code & 0x7F > 0x7B or code & 0x7F == 0
                else float(np.array([code << 8], np.uint16).view(np.float16)[0])
            ),
        ),
        Lookalike("The bias is 7: 2^(4 - 1) - 1.", lambda code: _with(code, bias=8)),
        Lookalike("The leading one is missing: 1 + fraction / 8.", lambda code: _with(code, lead=0.0)),
        Lookalike(
            "The sign is the first bit, so codes from 128 on are negative.",
            fits=lambda got, code: got == -decode(code) != 0,
        ),
    ),
    hints=(
        "0x39 is 0 0111 001. Which power of two stands for 0111 with a bias of 7, and how many eighths are "
        "added to 1?",
        "Sign, 4 bits of exponent E, 3 bits of fraction F: (1 + F/8) 2^(E-7). For E = 0 it is (F/8) 2^-6, "
        "without the one. E = 15 is an ordinary exponent but for F = 7, which is NaN. A zero keeps "
        "its sign.",
        "E, F = code // 8 % 16, code % 8; return sign * (8 + F) * 2.0 ** (E - 10), and for E == 0: "
        "sign * F * 2.0 ** -9.",
    ),
)
