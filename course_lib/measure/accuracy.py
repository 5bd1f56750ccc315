"""How wrong is a product? Against exact entries, not against another rounded answer.

A product of two floats is the sum of two floats exactly (Dekker 1971), and `math.fsum` adds floats with one
rounding (Shewchuk 1997). So an entry of A @ B can be had exactly, up to that one rounding; a few hundred
sampled entries are enough to see the error and cost next to nothing.
"""

from __future__ import annotations

import math

import numpy as np

SAMPLES = 256
SPLITTER = 2.0**27 + 1.0  # halves a float64's 53 bits (Veltkamp)


def relative_error(C: np.ndarray, A: np.ndarray, B: np.ndarray) -> float:
    """Return max|C - exact| / max|exact| over 256 random entries; A (M, K), B (K, N), C (M, N).

    NaN when an entry or the exact value is not finite; 0.0 for an empty product.
    """
    if 0 in (*A.shape, *B.shape):
        return 0.0
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(A.shape[0], size=SAMPLES), rng.integers(B.shape[1], size=SAMPLES)
    exact = np.array([exact_dot(A[i], B[:, j]) for i, j in zip(rows, columns, strict=True)])
    wrong = np.abs(C[rows, columns].astype(np.float64) - exact)
    largest = np.abs(exact).max()
    return float(wrong.max() / largest) if largest else float(wrong.max())


def exact_dot(x: np.ndarray, y: np.ndarray) -> float:
    """Return the dot product of x (K,) and y (K,), rounded once; values up to about 1e150."""
    products, remainders = two_product(x.astype(np.float64), y.astype(np.float64))
    terms = np.concatenate([products, remainders])
    return math.fsum(terms) if np.isfinite(terms).all() else math.nan


def two_product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return p and e with p = fl(x * y) and x * y = p + e exactly (Dekker's product, float64)."""
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    product = x * y
    remainder = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, remainder


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    big = SPLITTER * x
    high = big - (big - x)
    return high, x - high
