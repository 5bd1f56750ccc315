"""How the wider formats store one number: bfloat16 and float32, to set eight bits beside them.

    FLOAT32.store(0.3).value             # 0.30000001192092896
    BFLOAT16.store(0.3).bits             # ("0", "01111101", "0011010")

They follow IEEE 754: the last exponent is kept for infinity and NaN, a tie goes to the even code. bfloat16 is
float32 with the last 16 fraction bits left out, so it has float32's range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Stored:
    """A number as a format stores it: `bits` (sign, exponent, fraction) as text, and the value they have."""

    bits: tuple[str, str, str]
    value: float
    step: float  # from this number to the next larger one in size; NaN where there is none


@dataclass(frozen=True)
class WideFormat:
    """A floating-point format with infinities: one bit of sign, `exponent_bits`, `fraction_bits`."""

    name: str
    exponent_bits: int
    fraction_bits: int

    @property
    def smallest_exponent(self) -> int:
        """The exponent of the smallest normal numbers, and of all subnormal ones."""
        return 2 - 2 ** (self.exponent_bits - 1)

    def store(self, x: float) -> Stored:
        """Return what is stored for x: the nearest number, or infinity for what lies beyond the largest."""
        f = self.fraction_bits
        last = 2**self.exponent_bits - 1 << f  # the code of infinity; beyond it lie the NaNs
        sign = "1" if math.copysign(1, x) < 0 else "0"
        if math.isnan(x):
            return Stored(self._bits(sign, last | 1 << f - 1), math.nan, math.nan)
        exponent, steps = self.smallest_exponent, math.inf
        if math.isfinite(x):
            exponent = max(math.frexp(x)[1] - 1, exponent) if x else exponent
            steps = round(math.ldexp(abs(x), f - exponent))  # ties to even; a step on is a code on
        code = min(steps + (exponent - self.smallest_exponent << f), last)
        if code == last:
            return Stored(self._bits(sign, last), math.copysign(math.inf, x), math.nan)
        step = math.ldexp(1.0, max((code >> f) - 1, 0) + self.smallest_exponent - f)
        value = math.copysign(math.ldexp(steps, exponent - f), x)
        return Stored(self._bits(sign, code), value, step)

    def _bits(self, sign: str, code: int) -> tuple[str, str, str]:
        text = f"{code:0{self.exponent_bits + self.fraction_bits}b}"
        return sign, text[: self.exponent_bits], text[self.exponent_bits :]


BFLOAT16 = WideFormat("bfloat16", 8, 7)
FLOAT32 = WideFormat("float32", 8, 23)
