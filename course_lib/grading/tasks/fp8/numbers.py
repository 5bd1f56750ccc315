"""Tasks of chapter 10 on numbers: e4m3, scales, and sums in two levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.fp8.formats import E4M3
from course_lib.grading.compare import Mismatch, close, exact, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.sources import load
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.fp8.shared import MODULES, TENSOR_CORE, USUAL_IMPORTS
from course_lib.simulators.tensor_core import ADA, BLACKWELL, HOPPER, HOPPER_FP16, TensorCore

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
    """Yield all that is special, all of e4m3 and all ties, each with both signs."""
    yield Case((0.3,), "an ordinary number")
    for x, said in (
        (0.0, "zero"),
        (448.0, "the largest number"),
        (464.0, "half a step beyond the largest number"),
        (465.0, "beyond the largest number"),
        (1e30, "far beyond the largest number"),
        (math.nextafter(math.inf, 0), "the largest number of float64"),  # times 512 it is infinite
        (math.inf, "infinity, which saturates"),
        (math.nan, "NaN"),
        (2.0**-9, "the smallest number"),
        (2.0**-10, "half the smallest number: a tie"),
        (1.001 * 2.0**-10, "a little more than half the smallest number"),
        (math.nextafter(2.0**-10, 0), "just below half the smallest number"),  # half a step more is 1.0
        (5e-324, "the smallest number of float64, which becomes zero"),
        (7.5 * 2.0**-9, "between the largest subnormal and the smallest normal number: a tie"),
        (1.9375, "a tie between two exponents"),
    ):
        yield from _with_both_signs(x, said)
    for code in rng.permutation(126):
        yield from _near_a_tie(int(code), float(rng.choice([-1.0, 1.0])))
    for value in rng.permutation(VALUES):
        yield from _with_both_signs(float(value), "a number of e4m3")
    for x in np.exp2(rng.uniform(-12, 9.5, 40)):
        yield from _with_both_signs(float(x), "any number")


def _near_a_tie(code: int, sign: float) -> Iterator[Case]:
    """Yield the number halfway between a code and the next, and its neighbours on both sides."""
    tie = (VALUES[code] + VALUES[code + 1]) / 2
    near = 2.0**-20 if code % 2 else 2.0**-50  # in float32 the nearer one would be a tie
    for factor, said in (
        (1.0, "a tie"),
        (1 - near, "just below a tie"),
        (1 + near, "just above a tie"),
    ):
        yield from _with_both_signs(sign * tie * factor, said)


def _with_both_signs(x: float, said: str) -> Iterator[Case]:
    yield Case((x,), said)
    yield Case((-x,), f"{said}, with the other sign")


def _odd_tie(got: int, x: float) -> bool:
    want = encode(x)
    low, high = sorted((got & 127, want & 127))
    tie = high - low == 1 and high < 127 and abs(x) * 2 == VALUES[low] + VALUES[high]
    return tie and got & 128 == want & 128


def _near_an_even_tie(got: int, x: float) -> bool:
    codes = got & 127, encode(x) & 127
    tie = sum(VALUES[code] for code in codes) / 2 if max(codes) < 127 else math.inf
    return abs(codes[0] - codes[1]) == 1 and not got % 2 and abs(abs(x) - tie) < 2.0**-10 * tie


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
        "That is what the tie beside x becomes, and x is not that tie: nothing may be rounded, or taken for "
        "equal, before the steps are whole.": _near_an_even_tie,
        "A zero keeps its sign: -0.0 has the code 0x80 (-0.0 < 0 is false; math.copysign sees the sign).": (
            lambda got, x: x == 0 and got == encode(x) ^ 128
        ),
        "What lies beyond 448 saturates: it becomes 448, whose code is 0x7e, with its sign.": (
            lambda got, x: abs(x) > 448
        ),
        "NaN becomes 127, whatever its sign.": lambda got, x: math.isnan(x),
        "The sign is missing: its bit has the value 128.": lambda got, x: got == encode(x) ^ 128,
        "Below 2^-6 the steps stay as wide as just above it, 2^-9, down to 0: which one is nearest?": (
            lambda got, x: 0 < abs(x) < 2.0**-6
        ),
        "Zero is a number of e4m3, too, all of whose bits but the sign are 0.": lambda got, x: x == 0,
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


#: None, one, fewer than a block, a whole one, one more: of one block, of two, of three, and four.
COLUMNS = (0, 1, between(2, 127), 127, 128, 129, between(130, 256), 256, between(257, 384), between(385, 500))
VIEWS = ("", "a transposed view", "every second column of a matrix")
#: What is special about a block, and the size of its largest number if that is it.
BLOCKS = {
    "": None,
    "a block of zeros": 0.0,
    "a block of very small numbers": 1e-30,  # also beside whatever is added lest something divide by 0
    "a block whose largest number is just below 1e-4": 9e-5,
    "a block whose largest number is just above 1e-4": 1.2e-4,
    "numbers far beyond 448": 3e38,  # 448 times that is none of float32
    "a block of numbers below 0": None,
    "a NaN: it spreads over its block": None,
    "the largest number is the first of its block": None,
    "the largest number is the last of its block": None,
}


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    for M, K in ((3, 128), (2, 256), (5, 300)):
        yield _with_special_blocks(rng, M, K)
    heights = (1, between(2, 9), between(129, 140))
    rows = every_pair(rng, M=heights, K=COLUMNS, special=(*BLOCKS,), view=VIEWS, unless=_has_no_block)
    for row in sorted(rows, key=_how_special):
        yield _with_special_blocks(rng, **row)


def _has_no_block(row: dict[str, Any]) -> bool:
    return bool(row["special"]) and row["K"] == 0


def _how_special(row: dict[str, Any]) -> tuple[int, int]:
    return bool(row["special"]) + bool(row["view"]) + (not 1 < row["M"] < SIDE), row["M"] * row["K"]


def _with_special_blocks(rng: np.random.Generator, M: int, K: int, special: str = "", view: str = "") -> Case:
    x = _matrix(rng, M, K)
    for n, k in enumerate(range(0, K, SIDE)):  # each in another row, if there are as many
        block = x[n % M, k : k + SIDE]
        largest = np.abs(block).max()
        if BLOCKS[special] is not None:
            block[:] = block / largest * np.float32(BLOCKS[special])
        elif "below 0" in special:
            block[:] = -np.abs(block)
        elif "NaN" in special:
            block[rng.integers(len(block))] = np.nan
        elif special:
            block[0 if "first" in special else -1] = rng.choice([-2, 2]) * largest
    if view:
        x = np.ascontiguousarray(x.T).T if "transposed" in view else np.repeat(x, 2, axis=1)[:, ::2]
    what = ", ".join(filter(None, ("" if K else "no columns", special, view)))
    return Case((x,), f"x {M} x {K}{what and ': '}{what}", guard=not view)


def _matrix(rng: np.random.Generator, M: int, K: int) -> np.ndarray:
    """Return numbers whose size differs from block to block, with signs."""
    sizes = np.exp2(rng.integers(-5, 7, (M, K // SIDE + 1)))
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
        "1e-4 is added: it is the least that amax counts as.": _scales(
            lambda x, scales: scales + np.float32(SMALLEST_AMAX / LARGEST)
        ),
        "240 is the end of an IEEE format of this width; e4m3 goes on to 448.": _scales(
            lambda x, scales: scales * (448 / 240)
        ),
        "e4m3 ends at 448: the code that would be 480 is NaN.": _scales(
            lambda x, scales: scales * (448 / 480)
        ),
        "A block of zeros (or of very small numbers) has the scale 1e-4 / 448: the largest absolute value "
        "counts as 1e-4 at least.": lambda got, x: _small_blocks_differ(got[1], quantise(x)[1]),
        "The scales are right, but the numbers are multiplied with them: divide.": (
            lambda got, x: (
                same(got[1], quantise(x)[1])
                and same(got[0], quantise(x)[0] * np.repeat(got[1], SIDE, axis=1)[:, : x.shape[1]] ** 2)
            )
        ),
        "The scales are right. The numbers are not x over them, unrounded.": (
            lambda got, x: np.allclose(got[1], quantise(x)[1], rtol=1e-5, atol=0)
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
    alike = same(np.where(small, 0, got), np.where(small, 0, scales))
    return bool(alike and not np.allclose(got[small], scales[small], rtol=1e-5, atol=0))


# --- 10.promotion: a new sum every so many products, and the sums in float32 --------------------------------


_TENSOR_CORE = load(TENSOR_CORE, "tensor_core")


def two_level(
    A: np.ndarray, B: np.ndarray, every: int, core: tuple[int, int, int], twice: bool = False
) -> np.ndarray:
    """Return A (M, K) times B (N, K) transposed, float32, with a new sum every `every` products.

    `twice` is a fault: each sum begins with the total, which then is added once more.
    """
    total = np.zeros((len(A), len(B)), np.float32)
    for start in range(0, A.shape[1], every):
        a, b = (one[:, start : start + every] for one in (A, B))
        total = total + _TENSOR_CORE(a, b, total if twice else np.zeros_like(total), core)
    return total


ROWS = (1, between(2, 6), between(6, 17))
#: None, one, less than a step, a run of 128, one more, and several of each length.
PRODUCTS = (0, 1, between(2, 32), 128, 129, between(257, 300), between(385, 512), 512)
EVERY = (20, 32, 48, 64, 100, 128, 256)  # steps of 16 and 32 may end in the middle
CORES = (HOPPER, ADA, BLACKWELL, HOPPER_FP16)
NUMBERS = (
    "",
    "no number below 0",
    "subnormal numbers",
    "a row of zeros in A and one in B",
    "one large product, and then small ones that are lost beside it one by one",
)


def _products(rng: np.random.Generator) -> Iterator[Case]:
    yield _product(rng, 2, 3, 256, 128, HOPPER)
    yield _product(rng, 13, 15, 512, 32, HOPPER)
    yield _product(rng, 32, 32, 32, 32, HOPPER)  # A, B and the result in one shape: none is another's place
    yield _product(rng, 1, 1, 512, 32, HOPPER, NUMBERS[4])  # np.sum takes lone elements in another order
    rows = every_pair(rng, M=ROWS, N=ROWS, K=PRODUCTS, every=EVERY, core=CORES, numbers=NUMBERS)
    for row in sorted(rows, key=_how_hard):
        yield _product(rng, **row)
    yield _product(rng, 9, 8, 1536, 32, HOPPER)  # so many sums that any other order rounds another way


def _how_hard(row: dict[str, Any]) -> int:
    return (row["core"] is not HOPPER) + bool(row["numbers"]) + bool(row["every"] % row["core"].terms)


def _product(
    rng: np.random.Generator, M: int, N: int, K: int, every: int, core: TensorCore, numbers: str = ""
) -> Case:
    A, B = (_e4m3(rng, rows, K) for rows in (M, N))
    if numbers == NUMBERS[1]:
        A, B = np.abs(A), np.abs(B)
    elif numbers == NUMBERS[2]:
        A, B = (E4M3.round(np.sign(one) * 2.0**-9 * rng.integers(1, 8, one.shape)) for one in (A, B))
    elif numbers == NUMBERS[3]:
        A[rng.integers(M)], B[rng.integers(N)] = 0, 0
    elif numbers:
        A[:], B[:] = 0, 1  # 2^16, and a quarter of its last bit for each sum that follows
        A[:, :1], B[:, :1], A[:, every::every] = 256, 256, 2.0**-9
    what = f", {numbers}" if numbers else ""
    said = f"A {M} x {K}, B {N} x {K}, a new sum every {every}, as {core.name}{what}"
    return Case((A, B, every, (core.terms, core.sum_bits, core.result_bits)), said)


def _e4m3(rng: np.random.Generator, rows: int, K: int) -> np.ndarray:
    """Return numbers whose size changes every 64 columns, so that the outer sums are rounded."""
    sizes = np.exp2(rng.integers(-5, 7, K // 64 + 1))
    return E4M3.round(rng.standard_normal((rows, K)) * np.repeat(sizes, 64)[:K])


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
        "`every` products.": _gives(lambda A, B, _, core: two_level(A, B, max(A.shape[1], 1), core)),
        "That sum is exact: the product must go through `tensor_core`, with all it cuts off.": _is_exact,
        "The old total is counted twice: the tensor core adds `c` already. Hand it zeros.": _gives(
            lambda *args: two_level(*args, twice=True)
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
        "That is the sum of Hopper's tensor core, whichever `core` is asked for.": _gives(
            lambda A, B, n, _: two_level(A, B, n, (HOPPER.terms, HOPPER.sum_bits, HOPPER.result_bits))
        ),
        "That is a new sum every 128 products: `every` says how many.": _gives(
            lambda A, B, _, core: two_level(A, B, 128, core)
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
