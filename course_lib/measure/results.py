"""How far results of compared functions lie apart: measured against the baseline's result."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def numbers(result: Any) -> np.ndarray | None:
    """Return a float64 (or complex128) copy of a result, None when it holds no numbers.

    A copy, because a function may return one of its inputs or a buffer that its next call overwrites.
    """
    if result is None:
        return None
    if hasattr(result, "detach") and hasattr(result, "cpu"):  # a torch tensor; NumPy knows no bfloat16
        result = result.detach().cpu()
        result = (result if result.is_complex() else result.double()).numpy()
    try:
        array = np.asarray(result)
    except (ValueError, TypeError):  # a ragged list, or something that is no data at all
        return None
    if array.dtype.kind not in "biufc":
        return None
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def max_error(result: np.ndarray | None, reference: np.ndarray | None) -> float | None:
    """Return max|C - C_reference| / max|C_reference|, both as `numbers` gives them.

    Infinite when the shapes differ or when NaN or inf stand in different places; None without numbers.
    """
    if result is None or reference is None:
        return None
    if result.shape != reference.shape:
        return math.inf
    if result.size == 0:
        return 0.0
    same = (result == reference) | (np.isnan(result) & np.isnan(reference))  # also equal infinities
    if same.all():
        return 0.0
    if not (np.isfinite(result[~same]).all() and np.isfinite(reference[~same]).all()):
        return math.inf
    largest = float(np.abs(reference[np.isfinite(reference)]).max())
    apart = float(np.abs(result[~same] - reference[~same]).max())
    return apart / largest if largest else math.inf
