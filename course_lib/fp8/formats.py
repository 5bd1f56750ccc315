"""Floating-point numbers bit by bit: e4m3 and e5m2, and beside them bfloat16 and float32.

    E4M3.encode(0.3)                     # the code: 0x2a
    E4M3.decode(0x2A)                    # its value: 0.3125
    E4M3.look_at(0.3)                    # sign, exponent, fraction, neighbours, error
    FLOAT32.store(0.3).value             # 0.30000001192092896

A code is sign, exponent and fraction: `s eeee mmm` in e4m3, `s eeeee mm` in e5m2. With exponent field E,
fraction field F of m bits and bias b the value is

    (-1)^s * 2^(E-b) * (1 + F/2^m)   where E > 0  (normal),
    (-1)^s * 2^(1-b) * (F/2^m)       where E = 0  (subnormal: the smallest steps go on to zero).

e5m2 keeps IEEE's last exponent for infinities and NaN. e4m3 (the variant "fn", finite) has no infinity and
gives that exponent to numbers, all but its last code, which is NaN; so its largest number is 448 and not 240
(Micikevicius et al. 2022, "FP8 formats for deep learning", arXiv:2209.05433).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course_lib.arguments import refusal

Codes = NDArray[np.uint8]
SIGN = 0x80


@dataclass(frozen=True)
class Format:
    """A floating-point format of eight bits: one of the sign, `exponent_bits`, `fraction_bits`.

    `largest_code` is the code of its largest number, `overflow_code` that of what lies beyond: infinity, or
    NaN in a format without infinities.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    largest_code: int
    overflow_code: int
    nan_code: int

    @property
    def bias(self) -> int:
        """What is subtracted from the exponent field."""
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def smallest_exponent(self) -> int:
        """The exponent of the smallest normal numbers, and of all subnormal ones."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The largest number."""
        return float(self.values[self.largest_code])

    @property
    def smallest_normal(self) -> float:
        """The smallest number with the full precision."""
        return 2.0**self.smallest_exponent

    @property
    def smallest(self) -> float:
        """The smallest number above 0: one step of the subnormal numbers."""
        return 2.0 ** (self.smallest_exponent - self.fraction_bits)

    @cached_property
    def values(self) -> NDArray[np.float32]:
        """The values of all codes 0 ... 255, float32 (every one of them is exact)."""
        code = np.arange(256)
        field = code >> self.fraction_bits & (2**self.exponent_bits - 1)
        fraction = code & (2**self.fraction_bits - 1)
        significand = np.where(field > 0, 2**self.fraction_bits + fraction, fraction)  # in steps
        steps = 2.0 ** (np.maximum(field, 1) - self.bias - self.fraction_bits)
        values = significand * steps
        beyond = code & ~SIGN
        values[beyond > self.largest_code] = np.nan
        if self.overflow_code != self.nan_code:
            values[beyond == self.overflow_code] = np.inf
        values = np.copysign(values, np.where(code & SIGN, -1.0, 1.0)).astype(np.float32)
        values.flags.writeable = False
        return values

    def decode(self, codes: ArrayLike) -> NDArray[np.float32]:
        """Return the values of codes, float32, in their shape; raises ValueError for what is no code."""
        codes = np.asarray(codes)
        if codes.dtype != np.uint8:
            if codes.dtype.kind not in "iu":
                raise ValueError(
                    f"codes has dtype {codes.dtype}, but codes are whole numbers, best np.uint8."
                )
            if codes.size and (codes.min() < 0 or codes.max() > 255):
                raise ValueError(
                    f"codes reach from {codes.min()} to {codes.max()}, but eight bits hold 0 to 255."
                )
        return self.values[codes]

    def encode(self, x: ArrayLike, saturate: bool = True) -> Codes:
        """Return the codes of the nearest numbers, uint8, in the shape of x; a tie goes to the even code.

        What lies beyond the largest number becomes the largest (`saturate`, as NVIDIA's cvt.satfinite does)
        or else infinity, or NaN where there is none, as a cast of torch does. NaN becomes NaN, and zeros keep
        their sign.
        """
        x = np.asarray(x)
        if x.dtype.kind not in "fiu":
            raise ValueError(f"x has dtype {x.dtype}, but it must hold real numbers.")
        with np.errstate(invalid="ignore", over="ignore"):  # NaN of another kind, numbers far beyond
            x = x.astype(np.float64)
            _, exponent = np.frexp(x)  # |x| = significand * 2^exponent with the significand in [1/2, 1)
            # Subnormal numbers share the smallest exponent, and zero is one of them.
            exponent = np.maximum(exponent - 1, self.smallest_exponent)
            exponent = np.where(x == 0, self.smallest_exponent, exponent)
            steps = np.rint(np.ldexp(np.abs(x), self.fraction_bits - exponent))  # ties to even
            # Codes of positive numbers are in order: a step on is a code on, across exponents too.
            steps = np.nan_to_num(steps, posinf=1e6)
            code = (exponent - self.smallest_exponent << self.fraction_bits) + steps
        code = np.where(code > self.largest_code, self.largest_code if saturate else self.overflow_code, code)
        code = np.where(np.isnan(x), self.nan_code, code)
        return (code.astype(np.uint8) | np.where(np.signbit(x), SIGN, 0)).astype(np.uint8)

    def round(self, x: ArrayLike, saturate: bool = True) -> NDArray[np.float32]:
        """Return the nearest numbers of the format, float32: `decode(encode(x))`."""
        return self.decode(self.encode(x, saturate))

    def look_at(self, x: float) -> Look:
        """Return what becomes of one number, NaN or infinity; raises ValueError if it is none."""
        if not isinstance(x, Real) or isinstance(x, bool):
            raise refusal("x", x, "a number")
        return Look(self, float(x), int(self.encode(float(x))))


@dataclass(frozen=True)
class Look:
    """What a format makes of the number `x`: its code, fields, neighbours and error."""

    format: Format
    x: float
    code: int

    @property
    def value(self) -> float:
        """The number that stands for x."""
        return float(self.format.values[self.code])

    @property
    def bits(self) -> tuple[str, str, str]:
        """Sign, exponent and fraction as text of 0 and 1."""
        text = f"{self.code:08b}"
        end = 1 + self.format.exponent_bits
        return text[0], text[1:end], text[end:]

    @property
    def kind(self) -> str:
        """One of "zero", "subnormal", "normal", "infinity", "NaN"."""
        if math.isnan(self.value):
            return "NaN"
        if math.isinf(self.value):
            return "infinity"
        if self.value == 0:
            return "zero"
        return "subnormal" if abs(self.value) < self.format.smallest_normal else "normal"

    @property
    def neighbours(self) -> tuple[float, float]:
        """The next smaller and the next larger number; -inf or inf beyond the last, NaN for NaN."""
        if math.isnan(self.value):
            return math.nan, math.nan
        numbers = np.unique(self.format.values[np.isfinite(self.format.values)])
        below, above = numbers[numbers < self.value], numbers[numbers > self.value]
        return float(below[-1]) if below.size else -math.inf, float(above[0]) if above.size else math.inf

    @property
    def error(self) -> float:
        """By how much the number is too large (negative: too small); NaN where there is no telling."""
        return self.value - self.x if math.isfinite(self.x) else math.nan

    @property
    def relative_error(self) -> float:
        """The size of the error as a share of x; 0 for 0."""
        return abs(self.error / self.x) if self.x else abs(self.error)

    @property
    def formula(self) -> str:
        """How the fields give the value, in one line."""
        if self.kind in ("NaN", "infinity"):
            return self.kind
        sign, exponent, fraction = (int(bits, 2) for bits in self.bits)
        whole = 2**self.format.fraction_bits
        lead, power = (1, exponent - self.format.bias) if exponent else (0, self.format.smallest_exponent)
        return f"{'-' if sign else '+'}2^{power} * {lead + fraction / whole:g} = {self.value:g}"


E4M3 = Format("e4m3", 4, 3, largest_code=0x7E, overflow_code=0x7F, nan_code=0x7F)
E5M2 = Format("e5m2", 5, 2, largest_code=0x7B, overflow_code=0x7C, nan_code=0x7F)
FORMATS = {one.name: one for one in (E4M3, E5M2)}


# -- bfloat16 and float32, to set eight bits beside them -----------------------------------------------------
#
# They follow IEEE 754: the last exponent is kept for infinity and NaN, a tie goes to the even code. bfloat16
# is float32 with the last 16 fraction bits left out, so it has float32's range.

WIDE_SMALLEST_EXPONENT = -126  # of the normal numbers, and of all subnormal ones
WIDE_BEYOND = 2.0**128  # what is rounded to this is infinity


@dataclass(frozen=True)
class Stored:
    """A number as a format stores it: `bits` (sign, exponent, fraction) as text, and the value they have."""

    bits: tuple[str, str, str]
    value: float
    step: float  # from this number to the next larger one in size; NaN where there is none


@dataclass(frozen=True)
class WideFormat:
    """A floating-point format with infinities: a bit of sign, eight of the exponent, `fraction_bits`."""

    name: str
    fraction_bits: int

    def store(self, x: float) -> Stored:
        """Return what is stored for x: the nearest number, or infinity for what lies beyond the largest."""
        value, step = x, math.nan
        if math.isfinite(x):
            step = self._step(x)
            value = math.copysign(round(x / step) * step, x)  # ties to even
            step = self._step(value)
            if abs(value) >= WIDE_BEYOND:
                value, step = math.copysign(math.inf, x), math.nan
        text = f"{int.from_bytes(struct.pack('>f', value)):032b}"  # as float32: the same, and zeros
        return Stored((text[0], text[1:9], text[9 : 9 + self.fraction_bits]), value, step)

    def _step(self, x: float) -> float:
        exponent = max(math.frexp(x)[1] - 1, WIDE_SMALLEST_EXPONENT) if x else WIDE_SMALLEST_EXPONENT
        return math.ldexp(1.0, exponent - self.fraction_bits)


BFLOAT16 = WideFormat("bfloat16", 7)
FLOAT32 = WideFormat("float32", 23)
