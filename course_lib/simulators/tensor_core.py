"""How a tensor core adds up: the sum that is cut before it is summed.

    d = accumulate_e4m3(a, b, c)                   # one instruction: d = c + the dot product of 32 pairs
    D = gemm_e4m3(A, B)                            # a whole product, (M, K) times (N, K)
    D = gemm_e4m3(A, B, promote_every=128)         # a new sum every 128, added up in float32
    one_step(a, b, c).terms                        # one sum taken apart: what is kept of every term

One step of a tensor core adds `terms` products and the old sum, and it does so in fixed point:

1. The exponent of each product is the sum of its factors' exponents; the largest of them and of the old sum's
   is e.
2. Every term is cut, toward zero, to a multiple of 2^(e - sum_bits): what hangs out below is gone.
3. What is left is added exactly.
4. The sum is cut, toward zero, to 1 + result_bits significant bits.

For FP8 Hopper keeps 13 bits below the leading one in both places, where float32 has 23. The model agrees bit
for bit with H100 and H200, say the two papers it comes from: Xie et al. 2025, "MMA-Sim" (arXiv:2511.10909),
and Khattak & Mikaitis 2025 (arXiv:2512.07004). DeepSeek-AI 2024, "DeepSeek-V3 Technical Report"
(arXiv:2412.19437), section 3.5.2, met it first. On an H200 it agreed with `wgmma` in every bit, in the tests
of `tests/gpu`.

Only wgmma adds up so. `mma.sync` with e4m3 becomes, for Hopper, two products of float16 that start from zero
and an ordinary float32 addition (seen in its machine code): `gemm_e4m3(A, B, promote_every=32,
core=HOPPER_FP16)`, but for the order of the 32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from course_lib.arguments import is_whole, refusal

E4M3_LARGEST = 448.0
E4M3_SMALLEST_EXPONENT = -6  # of the normal numbers, and of the subnormal ones
E4M3_FRACTION_BITS = 3
OF_ZERO = -60  # the exponent of a zero: below all others, and the sum of two fits into eight bits
OF_NOTHING = -200  # the exponent of terms that are all zeros: below float32's smallest
SMALLEST_UNIT = -80  # below it there are no products but zeros: the old sum is alone

_Factors = tuple[NDArray[np.float32], NDArray[np.int8]]


@dataclass(frozen=True)
class TensorCore:
    """What a step does: products added at once; bits below the leading one in the sum and in the result."""

    name: str
    terms: int
    sum_bits: int
    result_bits: int


HOPPER = TensorCore("Hopper, wgmma", terms=32, sum_bits=13, result_bits=13)
HOPPER_FP16 = TensorCore("Hopper, FP16 mma.sync", terms=16, sum_bits=25, result_bits=23)
ADA = TensorCore("Ada, mma.sync", terms=16, sum_bits=13, result_bits=13)
BLACKWELL = TensorCore("Blackwell, tcgen05.mma", terms=32, sum_bits=25, result_bits=23)


def accumulate_e4m3(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, core: TensorCore = HOPPER
) -> NDArray[np.float32]:
    """Return c + the product of a (M, 32) and b (N, 32), as one instruction of 32 products computes it.

    a and b hold numbers of e4m3, c (M, N) float32; the result is (M, N) float32. Raises ValueError for other
    shapes and for numbers that e4m3 does not have.
    """
    a, b = _checked("a", a), _checked("b", b)
    c = np.asarray(c, np.float32)
    if a.shape[1:] != (32,) or b.shape[1:] != (32,) or c.shape != (len(a), len(b)):
        raise ValueError(
            f"a, b, c have shapes {a.shape}, {b.shape}, {c.shape}, but they must be (M, 32), (N, 32), (M, N)."
        )
    return _accumulate(_factors(a), _factors(b), c, core)


def gemm_e4m3(
    A: ArrayLike, B: ArrayLike, promote_every: int | None = None, core: TensorCore = HOPPER
) -> NDArray[np.float32]:
    """Return A (M, K) times B (N, K) transposed, float32 (M, N), summed as a tensor core sums.

    With `promote_every` (a multiple of the core's terms) the tensor core starts anew from zero that often,
    and its sums are added in float32. K may be anything: zeros fill the last step. Raises ValueError as
    `accumulate_e4m3`.
    """
    A, B = _checked("A", A), _checked("B", B)
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"A and B have shapes {A.shape} and {B.shape}, but both must have K columns.")
    if promote_every is not None:
        _check_interval(promote_every, core)
    every = promote_every or max(A.shape[1], 1)
    total = np.zeros((len(A), len(B)), np.float32)
    for start in range(0, A.shape[1], every):
        part = (_factors(x[:, start : start + every]) for x in (A, B))
        total = total + _accumulate(*part, np.zeros_like(total), core)
    return total


@dataclass(frozen=True)
class Term:
    """What a step adds: `value`, its `exponent` (None for 0, which has none) and what is `kept` of it.

    `factors` are the two numbers of a product; the old sum has none.
    """

    factors: tuple[float, float] | None
    value: Fraction
    exponent: int | None
    kept: Fraction


@dataclass(frozen=True)
class SumStep:
    """One step for one sum, taken apart; all numbers are exact.

    Terms are cut to multiples of 2^`unit`. `total` is the sum of what is kept, `result` that cut to the
    significant bits that the core keeps, `exact` the sum of the terms as they are.
    """

    terms: tuple[Term, ...]
    unit: int
    total: Fraction
    result: float
    exact: Fraction


def one_step(a: Sequence[float], b: Sequence[float], c: float = 0.0, core: TensorCore = HOPPER) -> SumStep:
    """Return one step for one sum, c + a . b, term by term in exact arithmetic; the old sum is the last term.

    a and b hold up to `core.terms` numbers of e4m3, c is rounded to float32. `result` is that of
    `accumulate_e4m3` for the same numbers followed by zeros. Raises ValueError for what cannot be a step.
    """
    a, b = _checked("a", np.atleast_2d(a))[0], _checked("b", np.atleast_2d(b))[0]
    if len(a) != len(b) or not 1 <= len(a) <= core.terms:
        raise ValueError(
            f"a and b have {len(a)} and {len(b)} numbers, but both must have the same number of them, "
            f"1 to {core.terms}."
        )
    c = float(np.float32(c))
    if not math.isfinite(c):
        raise ValueError(f"c is {c}, but it must be a finite number.")
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    added = [((x, y), Fraction(x) * Fraction(y), _exponent(x, y)) for x, y in pairs]
    added.append((None, Fraction(c), math.frexp(c)[1] - 1 if c else None))
    largest = max((exponent for *_, exponent in added if exponent is not None), default=0)
    unit = largest - core.sum_bits
    terms = tuple(Term(*term, _toward_zero(term[1], unit)) for term in added)
    total = sum((term.kept for term in terms), Fraction(0))
    leading = math.frexp(float(total))[1] - 1
    result = _toward_zero(total, leading - core.result_bits)
    return SumStep(terms, unit, total, float(result), sum((term.value for term in terms), Fraction(0)))


def _exponent(x: float, y: float) -> int | None:
    """Return the exponent of a product of two numbers of e4m3: the sum of theirs, and None for 0."""
    if not x or not y:
        return None
    return sum(max(math.frexp(factor)[1] - 1, E4M3_SMALLEST_EXPONENT) for factor in (x, y))


def _toward_zero(x: Fraction, exponent: int) -> Fraction:
    """Return x cut toward zero to a multiple of 2^exponent."""
    unit = Fraction(2) ** exponent
    return math.trunc(x / unit) * unit


def _factors(matrix: NDArray[np.float32]) -> _Factors:
    """Return numbers of e4m3 and their exponents, both (K, rows): so a step is a run of rows."""
    values = np.ascontiguousarray(matrix.T)
    _, exponents = np.frexp(values)
    exponents = np.maximum(exponents - 1, E4M3_SMALLEST_EXPONENT)
    return values, np.where(values == 0, OF_ZERO, exponents).astype(np.int8)


def _accumulate(a: _Factors, b: _Factors, c: NDArray[np.float32], core: TensorCore) -> NDArray[np.float32]:
    for start in range(0, len(a[0]), core.terms):
        step = slice(start, start + core.terms)
        c = _step(*(x[step] for x in (*a, *b)), c, core)
    return c


def _step(
    a: NDArray[np.float32],
    a_exponents: NDArray[np.int8],
    b: NDArray[np.float32],
    b_exponents: NDArray[np.int8],
    c: NDArray[np.float32],
    core: TensorCore,
) -> NDArray[np.float32]:
    wide = np.float32 if core.sum_bits <= 16 else np.float64  # holds the sum of the cut products exactly
    products = a.astype(wide)[:, :, None] * b[:, None, :]  # (terms, M, N), exact
    exponents = (a_exponents[:, :, None] + b_exponents[:, None, :]).max(axis=0).astype(np.int32)  # (M, N)
    exponents[exponents < 2 * E4M3_SMALLEST_EXPONENT] = OF_NOTHING  # a zero times a large number, too
    _, c_exponents = np.frexp(c)
    c_exponents = np.where(c == 0, OF_NOTHING, c_exponents - 1)
    unit = np.maximum(exponents, c_exponents) - core.sum_bits  # terms are cut to multiples of 2^unit
    products *= np.ldexp(wide(1), -np.maximum(unit, SMALLEST_UNIT))
    kept = np.trunc(products, out=products).sum(axis=0, dtype=wide).astype(np.float64)
    kept += np.trunc(np.ldexp(c.astype(np.float64), -unit))
    return _cut(np.ldexp(kept, unit), core.result_bits)


def _cut(x: NDArray[np.float64], bits: int) -> NDArray[np.float32]:
    """Return x cut toward zero to 1 + `bits` significant bits, as float32."""
    significand, exponent = np.frexp(x)  # the significand in [1/2, 1)
    return np.ldexp(np.trunc(np.ldexp(significand, bits + 1)), exponent - bits - 1).astype(np.float32)


def _checked(name: str, x: ArrayLike) -> NDArray[np.float32]:
    """Return a matrix of numbers that e4m3 has."""
    x = np.asarray(x)
    if x.ndim != 2 or x.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} is an array of shape {x.shape} and dtype {x.dtype}, but it must be a matrix of numbers."
        )
    x = x.astype(np.float64)
    _, exponent = np.frexp(x)
    steps = np.ldexp(x, E4M3_FRACTION_BITS - np.maximum(exponent - 1, E4M3_SMALLEST_EXPONENT))
    wrong = ~(np.abs(x) <= E4M3_LARGEST) | (steps != np.rint(steps))
    if wrong.any():
        raise ValueError(
            f"{name} has {x[wrong][0]:g}, which is no finite number of e4m3: "
            "round first (fp8.formats.E4M3.round)."
        )
    return x.astype(np.float32)


def _check_interval(promote_every: int, core: TensorCore) -> None:
    if not is_whole(promote_every) or promote_every < 1:
        raise refusal("promote_every", promote_every, "None or a whole number above 0")
    if promote_every % core.terms:
        raise ValueError(
            f"promote_every is {promote_every}, "
            f"but it must be a multiple of {core.terms}, one step of {core.name}."
        )
