"""How wrong a product is: three measures, because one alone lets faults pass.

    reference, size = exact(a, b)                      # float64: the product, and that of the absolute values
    calc_diff(d, reference)                            # one number for the whole: 1.3e-6 is bf16's rounding
    worst_element(d, reference, size)                  # at most 1, or an element is wrong
    mean_signed_error(d, reference)                    # sums that lose a little each time

`calc_diff` is the metric of DeepGEMM's tests (deepseek-ai/DeepGEMM). Against the product before quantisation,
where it is used with a limit of 1e-3, quantisation's own noise is 7e-4: a wrong element, scales sixteen
columns late or a missing promotion pass. So the reference here is the product of the *dequantised* matrices
in float64, every element is looked at, and sums of numbers of one sign show what cancels elsewhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]
LIMIT = 1e-5  # of calc_diff, for a result in bf16
MOST_BIAS = 5e-4  # of the mean signed error, for relu(normal) times |normal|


def exact(a: ArrayLike, b: ArrayLike) -> tuple[Matrix, Matrix]:
    """Return A B^T and |A| |B|^T for A (M, K) and B (N, K), float64 (M, N)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return a @ b.T, np.abs(a) @ np.abs(b).T


def calc_diff(d: ArrayLike, reference: ArrayLike) -> float:
    """Return 1 - 2 sum(d r) / sum(d^2 + r^2): 0 for equal matrices, about half the squared relative error
    else.

    Not finite where one of them is not. Two matrices of zeros are equal. Tensors must be float64, both.
    """
    if not (hasattr(d, "double") and hasattr(reference, "double")):  # tensors stay where they are
        d, reference = np.asarray(d, np.float64), np.asarray(reference, np.float64)
    both = (d * d + reference * reference).sum()
    # the same number, without its cancellation
    return float(((d - reference) ** 2).sum() / both) if both else 0.0


def worst_element(d: ArrayLike, reference: ArrayLike, size: ArrayLike) -> float:
    """Return the largest |d - r| / (2^-8 |r| + 2^-10 size); above 1 an element is wrong, NaN counts as
    infinity.

    The first part is the rounding to bf16. `size` is |A| |B|^T: what the sum would be if nothing cancelled,
    and what the tensor core's cut is measured by (a correct kernel needs less than half of the second part).
    """
    d, reference, size = (np.asarray(x, np.float64) for x in (d, reference, size))
    allowed = 2.0**-8 * np.abs(reference) + 2.0**-10 * size
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(d == reference, 0.0, np.abs(d - reference) / allowed)
    return float(np.nan_to_num(shares, nan=np.inf, posinf=np.inf).max(initial=0.0))


def mean_signed_error(d: ArrayLike, reference: ArrayLike) -> float:
    """Return the mean of (d - r) / r: what is lost on average when all terms have one sign.

    Raises ValueError where the reference is 0.
    """
    d, reference = np.asarray(d, np.float64), np.asarray(reference, np.float64)
    if not reference.all():
        raise ValueError("reference has a 0, but the relative error needs elements that are none.")
    return float(np.mean((d - reference) / reference))
