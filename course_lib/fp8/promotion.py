"""How wrong long sums become: with promotion every so many products, for numbers of one sign and of both.

    table = promotion_errors()           # a model's figures: no GPU has been asked
    table[0].relative_error              # RMS of the error over RMS of the exact product

Promotion: the tensor core starts anew from zero after `promote_every` products, and its sums are added up in
float32. Without it every sum in `simulators.tensor_core` is cut at each step, always toward zero. Sums of
one sign lose a share that grows with K; sums that wander around zero lose and win.

The data are those of the course's error tables: normal random numbers, for one sign relu(normal) times
|normal|, scaled as a whole so that the largest is 448, and rounded to e4m3 before anything is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from course_lib.arguments import one_of, whole
from course_lib.fp8.errors import exact
from course_lib.fp8.formats import E4M3
from course_lib.simulators.tensor_core import gemm_e4m3

ONE_SIGN, BOTH_SIGNS = "one sign", "both signs"
KINDS = (ONE_SIGN, BOTH_SIGNS)
K_VALUES = (512, 1024, 2048, 4096, 8192, 16384)
PROMOTE_VALUES = (None, 512, 128, 32)


@dataclass(frozen=True)
class PromotionError:
    """The error of sums of K products. `promote_every` is None for one long sum.

    `relative_error` is the RMS of the error over the RMS of the exact product, `mean_error` the mean error
    over the mean size (negative: too small), `bfloat16_error` what rounding the exact product to bfloat16
    alone costs, measured as `relative_error` is.
    """

    kind: str
    K: int
    promote_every: int | None
    relative_error: float
    mean_error: float
    bfloat16_error: float


def promotion_errors(
    K_values: Sequence[int] = K_VALUES,
    promote_values: Sequence[int | None] = PROMOTE_VALUES,
    rows: int = 32,
) -> list[PromotionError]:
    """Return the errors of rows x rows sums for each kind of data, K and promotion, in this order.

    The figures are those of a model of the tensor core, the same each time. Raises ValueError for K or rows
    below 1 and for a promotion that the core's steps do not divide.
    """
    whole("rows", rows)
    for K in K_values:
        whole("K", K)
    found = []
    for kind in KINDS:
        for K in K_values:
            A, B = operands(kind, K, rows=rows)
            reference, _ = exact(A, B)
            rounded = _relative(_bfloat16(reference), reference)
            for every in promote_values:
                product = gemm_e4m3(A, B, every)
                mean = float(np.mean((product - reference) * np.sign(reference)) / np.mean(np.abs(reference)))
                error = _relative(product, reference)
                found.append(PromotionError(kind, int(K), every, error, mean, rounded))
    return found


def operands(
    kind: str, K: int, seed: int = 0, rows: int = 64
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return A and B (rows, K), float32 with values of e4m3: random numbers of one sign or of both."""
    one_of("kind", kind, KINDS)
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((rows, K)), rng.standard_normal((rows, K))
    if kind == ONE_SIGN:
        A, B = np.maximum(A, 0), np.abs(B)
    return tuple(E4M3.round(x * (E4M3.largest / max(np.abs(x).max(), 1e-4))) for x in (A, B))


def _relative(product: NDArray, reference: NDArray) -> float:
    size = float(np.sqrt(np.mean(reference**2)))
    return float(np.sqrt(np.mean((product - reference) ** 2))) / size if size else 0.0


def _bfloat16(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x rounded to bfloat16's eight significant bits (its range is wide enough here)."""
    significand, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(significand, 8)), exponent - 8)
