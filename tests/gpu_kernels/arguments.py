"""Arguments for kernels, from a seed, and the references that several cases share."""

from __future__ import annotations

import numpy as np


def floats(seed: int, *shapes, dtype=np.float32) -> list[np.ndarray]:
    """Return one array of normally distributed numbers for each shape."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def whole(seed: int, shape, low: int, high: int, dtype=np.int32) -> np.ndarray:
    """Return whole numbers from low to high - 1."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def product(rows: int, inner: int, cols: int, order: str = "C", dtype=np.float32):
    """Return a maker of A (rows, inner), B (inner, cols) and a C (rows, cols) full of nan."""

    def make(seed):
        A, B = floats(seed, (rows, inner), (inner, cols), dtype=dtype)
        return np.asarray(A, order=order), B, np.full((rows, cols), np.nan, dtype)

    return make


def of_product(A, B, C):
    return A.astype(np.float64) @ B.astype(np.float64)


def with_output(make_inputs, shape, dtype, fill=0):
    """Return a maker of the inputs and, last, an output array of that shape."""
    return lambda seed: (*make_inputs(seed), np.full(shape, fill, dtype))


def normal(*shapes, out=None, out_dtype=np.float32):
    """Return a maker of normally distributed float32 arrays and, if asked for, an output of zeros."""
    outputs = () if out is None else (out,)
    return lambda seed: (*floats(seed, *shapes), *(np.zeros(shape, out_dtype) for shape in outputs))


def integers(shape, low: int, high: int, out=None):
    """Return a maker of whole numbers from low to high - 1 and, if asked for, an output of zeros."""
    outputs = () if out is None else (out,)
    return lambda seed: (whole(seed, shape, low, high), *(np.zeros(shape, np.int32) for shape in outputs))


def zeros(shape, dtype):
    """Return a maker of one array of zeros."""
    return lambda seed: (np.zeros(shape, dtype),)


def by_block(x: np.ndarray, size: int, function) -> np.ndarray:
    """Return function of each stretch of `size` elements, joined."""
    return np.concatenate([np.atleast_1d(function(x[i : i + size])) for i in range(0, x.size, size)])


def exclusive(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x) - x


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
