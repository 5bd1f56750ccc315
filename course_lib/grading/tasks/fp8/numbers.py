"""Tasks of chapter 10 on numbers: e4m3, scales, and sums in two levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.fp8.formats import E4M3
from course_lib.grading.compare import Mismatch, close, exact, same
from course_lib.grading.language import Language
from course_lib.grading.sources import load
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.fp8.shared import MODULES, TENSOR_CORE, USUAL_IMPORTS
from course_lib.simulators.tensor_core import ADA, BLACKWELL, HOPPER, TensorCore, gemm_e4m3

# --- Comparing numbers of which zero has a sign, too --------------------------------------------------------


@dataclass(frozen=True)
class Signed:
    """Compares exactly; beyond that, -0.0 is another number than 0.0."""

    def compare(self, got: Any, want: float, args: tuple) -> Mismatch | None:
        """Return None if `got` is the number wanted, with its sign."""
        found = exact().compare(got, want, args)
        if found is None and want == 0 and math.copysign(1, got) != math.copysign(1, want):
            said = f"Yours is {float(got)}, expected is {want}: the sign of zero counts, too."
            return Mismatch((said,), wrong=1, total=1)
        return found


# --- 10.decode: what the eight bits of e4m3 mean ------------------------------------------------------------


def decode(code: int) -> float:
    """Return the value of a code 0 ... 255 of e4m3 (Micikevicius et al. 2022, arXiv:2209.05433)."""
    return float(E4M3.values[code])


def _codes(rng: np.random.Generator) -> Iterator[Case]:
    first = (0x41, 0x38, 0xB8, 0x08, 0x7E, 0x01, 0x07, 0x00, 0x80, 0x7F, 0xFF, 0x78)
    for code in (*first, *rng.permutation(256).tolist()):
        text = f"{code:08b}"
        yield Case((code,), f"the code 0x{code:02x}, bits {text[0]} {text[1:5]} {text[5:]}")


def _with(code: int, bias: int = 7, lead: float = 1.0, subnormal: bool = True) -> float | None:
    sign, exponent, fraction = code >> 7, code >> 3 & 15, code & 7
    if code & 127 == 127:
        return None
    if exponent == 0 and subnormal:
        value = fraction / 8 * 2.0 ** (1 - bias)
    else:
        value = (lead + fraction / 8) * 2.0 ** (exponent - bias)
    return -value if sign else value


DECODE = Task(
    id="10.decode",
    title="Eight bits by hand",
    points=1,
    difficulty=2,
    minutes=10,
    cases=_codes,
    reference=decode,
    comparison=Signed(),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "e4m3 has no infinity, and the exponent 15 is one like all others; only the fraction 7 there "
        "is NaN.": lambda got, code: code & 0x78 == 0x78 and not np.isfinite(got) and code & 7 < 7,
        "Only the exponent 15 with the fraction 7 is NaN: the largest number, 448, has the code before.": (
            lambda got, code: code & 127 == 127 and not np.isnan(got)
        ),
        "With the exponent field 0 there is no leading one: the fraction alone counts, in steps of 2^-9.": (
            lambda got, code: code & 0x78 == 0 and got == _with(code, subnormal=False)
        ),
        "Subnormal numbers have the exponent of the smallest normal ones, 1 - 7 and not 0 - 7.": (
            lambda got, code: code & 0x78 == 0 and got == decode(code) / 2 != 0
        ),
        "That is the value of five bits of exponent and two of fraction, e5m2.": (
            lambda code: (
                None
                if code & 0x7F > 0x7B or code & 0x7F == 0
                else float(np.array([code << 8], np.uint16).view(np.float16)[0])
            )
        ),
        "The bias is 7: 2^(4 - 1) - 1.": lambda code: _with(code, bias=8),
        "The leading one is missing: 1 + fraction / 8.": lambda code: _with(code, lead=0.0),
        "The sign is the first bit, so codes from 128 on are negative.": (
            lambda got, code: got == -decode(code) != 0
        ),
    },
    hints=(
        "0x39 is 0 0111 001. Which power of two stands for 0111 with a bias of 7, and how many eighths are "
        "added to 1?",
        "Sign, 4 bits of exponent E, 3 bits of fraction F: (1 + F/8) 2^(E-7). For E = 0 it is (F/8) 2^-6, "
        "without the one. E = 15 is an ordinary exponent but for F = 7, which is NaN. A zero keeps its sign.",
        "E, F = code // 8 % 16, code % 8; return sign * (8 + F) * 2.0 ** (E - 10), and for E == 0: "
        "sign * F * 2.0 ** -9.",
    ),
)


# --- 10.encode: rounding to e4m3 by hand, ties, subnormals, saturation and the sign of zero included --------

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
        (-math.nan, "NaN whose sign is set"),
        (2.0**-9, "the smallest number"),
        (2.0**-10, "half the smallest number: a tie"),
        (1.001 * 2.0**-10, "a little more than half the smallest number"),
        (math.nextafter(2.0**-10, 0), "just below half the smallest number"),  # half a step more is 1.0
        (5e-324, "the smallest number of float64"),
        (-5e-324, "the same with a minus, which its zero keeps"),
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
    near = 2.0**-20 if code % 2 else 2.0**-50  # in float32 the nearer one would be a tie
    for factor, said in (
        (1.0, "a tie"),
        (1 - near, "just below a tie"),
        (1 + near, "just above a tie"),
    ):
        yield Case((sign * tie * factor,), said)


def _odd_tie(got: int, x: float) -> bool:
    want = encode(x)
    low, high = sorted((got & 127, want & 127))
    tie = high - low == 1 and high < 127 and abs(x) * 2 == VALUES[low] + VALUES[high]
    return tie and got & 128 == want & 128


ENCODE = Task(
    id="10.encode",
    title="To the nearest of 256",
    difficulty=4,
    minutes=25,
    cases=_numbers,
    reference=encode,
    comparison=Signed(),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "A tie goes to the even code, whose last bit is 0.": _odd_tie,
        "A zero keeps its sign: -0.0 has the code 0x80 (-0.0 < 0 is false; math.copysign sees the sign).": (
            lambda got, x: x == 0 and got == encode(x) ^ 128
        ),
        "What lies beyond 448 saturates: it becomes 448, whose code is 0x7e, with its sign.": (
            lambda got, x: abs(x) > 448
        ),
        "NaN becomes 127, whatever its sign.": lambda got, x: math.isnan(x),
        "The sign is missing: its bit has the value 128.": lambda got, x: got == encode(x) ^ 128,
        "Below 2^-6 the steps stay as wide as above it, 2^-9: numbers get smaller down to one step.": (
            lambda got, x: abs(x) < 2.0**-6
        ),
        "That is the next code toward zero: rounded off, not to the nearest.": (
            lambda got, x: got == encode(x) - 1
        ),
    },
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


# --- 10.quantise: a scale for every 128 numbers of a row ----------------------------------------------------

SIDE, LARGEST, SMALLEST_AMAX = 128, 448.0, 1e-4  # as in `fp8.quantise`, which would load torch


def quantise(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x (M, K) float32 over its scales, still unrounded, and the scales (M, K/128 rounded up)."""
    M, K = x.shape
    blocks = -(-K // SIDE)
    padded = np.zeros((M, blocks * SIDE), np.float32)
    padded[:, :K] = x
    amax = np.abs(padded.reshape(M, blocks, SIDE)).max(axis=2)
    scales = (np.maximum(amax, np.float32(SMALLEST_AMAX)) / np.float32(LARGEST)).astype(np.float32)
    return (x / np.repeat(scales, SIDE, axis=1)[:, :K]).astype(np.float32), scales


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    for M, K, said in (
        (3, 128, "one block"),
        (2, 256, "two blocks"),
        (5, 300, "the last block has 44 columns"),
        (1, 1, "one number"),
        (4, 129, "the last block has one column"),
        (7, 127, "one block that is not full"),
        (2, 0, "no columns"),
        (int(rng.integers(3, 9)), int(rng.integers(390, 500)), "any size"),
    ):
        yield Case((_matrix(rng, M, K),), f"x {M} x {K}: {said}", guard=True)
    x = _matrix(rng, 4, 384)
    x[1, 128:256] = 0
    yield Case((x,), "x 4 x 384, a block of zeros", guard=True)
    x = _matrix(rng, 4, 260)
    x[2, 128:256] = 1e-6 * rng.standard_normal(128)
    for row, largest in ((0, 9e-5), (1, 1.2e-4), (3, 1e-3)):  # below the smallest that counts, and above it
        x[row, 128:256] *= largest / np.abs(x[row, 128:256]).max()
    yield Case((x,), "x 4 x 260, blocks of very small numbers", guard=True)
    x = -np.abs(_matrix(rng, 3, 200))
    yield Case((x,), "x 3 x 200, all numbers below 0", guard=True)
    x = _matrix(rng, 3, 260)
    x[1, 140] = np.nan
    yield Case((x,), "x 3 x 260, a NaN: it spreads over its block")
    yield Case((_matrix(rng, 5, 300),), "x 5 x 300 again, with other numbers", guard=True)
    yield Case((_matrix(rng, 200, 6).T,), "x 6 x 200, a transposed view")
    yield Case((_matrix(rng, 5, 520)[:, ::2],), "x 5 x 260, every second column of a matrix")
    yield Case((np.float32(1e4) * _matrix(rng, 3, 200),), "x 3 x 200, numbers far beyond 448")


def _matrix(rng: np.random.Generator, M: int, K: int) -> np.ndarray:
    """Return numbers whose size differs from block to block, with signs."""
    sizes = np.exp2(rng.integers(-5, 8, (M, K // SIDE + 1)))
    x = rng.standard_normal((M, K)) * np.repeat(sizes, SIDE, axis=1)[:, :K]
    return x.astype(np.float32)


def _scales(*slips: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., bool]:
    """Return whether the scales are those of `slip(x, right scales)`, for one of the slips."""

    def fits(got: tuple, x: np.ndarray) -> bool:
        right = quantise(x)[1]
        return any(same(got[1], wrong := slip(x, right)) and not same(wrong, right) for slip in slips)

    return fits


def _of_rows(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.repeat(np.maximum(np.abs(x).max(axis=1, keepdims=True), 1e-4) / 448, scales.shape[1], axis=1)


def _signed_max(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    cut = range(0, x.shape[1], SIDE)
    return np.stack([np.maximum(x[:, k : k + SIDE].max(axis=1), 1e-4) / 448 for k in cut], axis=1)


QUANTISE = Task(
    id="10.quantise",
    title="A scale for every 128",
    points=2,
    minutes=20,
    cases=_matrices,
    reference=quantise,
    comparison=close(rtol=3e-6, atol=1e-30, parts=("the scaled numbers", "the scales")),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "Those scales are too large by 448: the largest number of a block becomes 448, not 1.": _scales(
            lambda x, scales: scales * 448
        ),
        "Those are the inverse scales: x is about codes times scale.": _scales(lambda x, scales: 1 / scales),
        "Those are scales of whole rows: each block of 128 columns has its own.": _scales(
            _of_rows, lambda x, scales: _of_rows(x, scales)[:, :1]
        ),
        "Every row has a scale of its own in each block: take the largest absolute value along the row "
        "only.": _scales(
            lambda x, scales: np.repeat(scales.max(axis=0, keepdims=True), len(x), axis=0),
            lambda x, scales: np.full_like(scales, scales.max()),
        ),
        "The largest absolute value counts, not the largest value: think of a block of negative "
        "numbers.": _scales(_signed_max),
        "240 is the end of an IEEE format of this width; e4m3 goes on to 448.": _scales(
            lambda x, scales: scales * (448 / 240)
        ),
        "A block of zeros (or of very small numbers) has the scale 1e-4 / 448: the largest absolute value "
        "counts as 1e-4 at least.": lambda got, x: _small_blocks_differ(got[1], quantise(x)[1]),
        "The scales are right, but the numbers are multiplied with them: divide.": (
            lambda got, x: (
                same(got[1], quantise(x)[1])
                and same(got[0], quantise(x)[0] * np.repeat(got[1], SIDE, axis=1)[:, : x.shape[1]] ** 2)
            )
        ),
    },
    hints=(
        "A block's largest absolute value is 3.5, and e4m3 ends at 448. By what do you divide the block so "
        "that nothing overflows and no room is left?",
        "By amax / 448, where amax is at least 1e-4. Go from block to block: x[:, 128 * b : 128 * b + 128] "
        "ends by itself where x ends. There are (K + 127) // 128 blocks, and every row has a scale of its "
        "own in each.",
        "part = x[:, 128 * b : 128 * b + 128]; scales[:, b] = np.maximum(np.abs(part).max(axis=1), 1e-4) / "
        "448; scaled[:, …] = part / scales[:, b : b + 1].",
    ),
)


def _small_blocks_differ(got: np.ndarray, scales: np.ndarray) -> bool:
    small = scales <= np.float32(SMALLEST_AMAX / LARGEST) * (1 + 1e-6)
    return bool(
        small.any()
        and (~small).any()
        and same(got[~small], scales[~small])
        and (got[small] < scales[small]).all()
    )


# --- 10.promotion: a new sum every so many products, and the sums in float32 --------------------------------


def two_level(A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int]) -> np.ndarray:
    """Return A (M, K) times B (N, K) transposed, float32, with a new sum every `every` products."""
    return gemm_e4m3(A, B, promote_every=every, core=TensorCore("", *core))


def _products(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, K, every, core in (
        (2, 3, 256, 128, HOPPER),
        (13, 15, 512, 32, HOPPER),
        (14, 13, 896, 256, HOPPER),
        (1, 1, 128, 128, HOPPER),
        (5, 2, 300, 128, HOPPER),
        (4, 3, 129, 128, HOPPER),
        (32, 32, 32, 32, HOPPER),
        (2, 4, 97, 64, HOPPER),
        (3, 2, 40, 128, HOPPER),
        (3, 3, 0, 128, HOPPER),
        (3, 4, 384, 128, ADA),
        (2, 5, 320, 64, BLACKWELL),
        (int(rng.integers(3, 7)), int(rng.integers(3, 7)), int(rng.integers(700, 999)), 128, HOPPER),
        (9, 8, 1536, 32, HOPPER),  # so many sums that any other order rounds another way
    ):
        A, B = (_e4m3(rng, rows, K) for rows in (M, N))
        if rng.integers(2):
            A, B = np.abs(A), np.abs(B)
        key = core.terms, core.sum_bits, core.result_bits
        yield Case((A, B, every, key), f"A {M} x {K}, B {N} x {K}, a new sum every {every}, as {core.name}")


def _e4m3(rng: np.random.Generator, rows: int, K: int) -> np.ndarray:
    """Return numbers whose size changes every 64 columns, so that the outer sums are rounded."""
    sizes = np.exp2(rng.integers(-5, 7, K // 64 + 1))
    return E4M3.round(rng.standard_normal((rows, K)) * np.repeat(sizes, 64)[:K])


def _counted_twice(A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int]) -> np.ndarray:
    tensor_core = load(TENSOR_CORE, "tensor_core")
    total = np.zeros((len(A), len(B)), np.float32)
    for k in range(0, A.shape[1], every):
        total = total + tensor_core(A[:, k : k + every], B[:, k : k + every], total, core)
    return total


def _is_exact(got: np.ndarray, A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int]) -> bool:
    A, B = A.astype(np.float64), B.astype(np.float64)
    exact, size = A @ B.T, np.abs(A) @ np.abs(B).T
    near, far = (np.abs(one - exact) <= 2.0**-20 * size for one in (got, two_level(A, B, every, core)))
    return bool(near.all() and not far.all())


def _gives(slip: Callable[..., np.ndarray]) -> Callable[..., bool]:
    """Return whether all bits are those that a slip gives, and not the right ones."""

    def fits(got: np.ndarray, *args) -> bool:
        wrong = slip(*args)
        return np.array_equal(got, wrong) and not np.array_equal(wrong, two_level(*args))

    return fits


PROMOTION = Task(
    id="10.promotion",
    title="Begin again every 128",
    points=2,
    difficulty=2,
    cases=_products,
    reference=two_level,
    rules=(Language(MODULES, given=TENSOR_CORE),),
    lookalikes={
        "That is one sum from beginning to end: the tensor core's sum must begin anew, from zero, every "
        "`every` products.": _gives(lambda A, B, _, core: gemm_e4m3(A, B, core=TensorCore("", *core))),
        "That sum is exact: the product must go through `tensor_core`, with all it cuts off.": _is_exact,
        "The old total is counted twice: the tensor core adds `c` already. Hand it zeros.": _gives(
            _counted_twice
        ),
        "Only the last of the inner sums is there: add them up.": _gives(
            lambda A, B, n, core: two_level(A[:, (k := (A.shape[1] - 1) // n * n) :], B[:, k:], n, core)
        ),
        "The last inner sum is missing: it has fewer products than the others.": _gives(
            lambda A, B, n, core: two_level(A[:, : (k := A.shape[1] // n * n)], B[:, :k], n, core)
        ),
        "A last bit is different here and there: the outer sum is float32, rounded after each addition, from "
        "the first block to the last.": (
            lambda got, *args: np.allclose(got, two_level(*args), rtol=3e-6, atol=1e-6)
        ),
    },
    hints=(
        "`tensor_core(a, b, c, core)` gives c plus a product. Which c does each run of `every` products "
        "begin with, and who adds up the results?",
        "Begin each run with zeros. What comes back is float32, and so is the total: `total + part` is then "
        "one rounded addition of float32, as the kernel does it. Slices end by themselves where K ends.",
        "total = total + tensor_core(A[:, start : start + every], B[:, start : start + every], "
        "np.zeros_like(total), core)",
    ),
)
