"""The ladder for batches: every way to multiply a batch of matrices that the course has, by name.

    batched_ladder.rung("batched-numba").matmul(A, B)      A (batch, M, K), B (batch, K, N)

A registry of its own: everything that walks along `ladder.LADDER` multiplies two matrices.
"""

from __future__ import annotations

import functools
from typing import Any

from course_lib.ladder import Rung, find_rung, make_rung

_rung = functools.partial(make_rung, batched=True)
_compiled_rung = functools.partial(_rung, requires=("numba",), parallel=True)

BATCHED: tuple[Rung, ...] = (
    _compiled_rung(
        "batched-loop",
        7,
        "A Python loop over the batch",
        "calls: Python, packing and waking the cores once for each matrix",
    ),
    _compiled_rung(
        "batched-numba",
        7,
        "One call, tiles cut to measure, no packing",
        "the FMA units of all cores; copies of operands that are views",
    ),
    _compiled_rung(
        "batched-strided",
        7,
        "The same on strides, without copies",
        "the FMA units of all cores; turning a transposed B round",
    ),
    _rung(
        "cuda-batched",
        7,
        "GPU: one launch, the batch is blockIdx.z",
        "two numbers from shared memory for one FMA",
        dtypes=("float32",),
        requires=("cuda",),
        gpu=True,
    ),
    _rung(
        "torch-bmm",
        0,
        "torch.bmm as installed",
        "the baseline",
        "batched_torch",
        requires=("torch",),
        gpu=True,
    ),
)


def rung(id: str) -> Rung:
    """Return the rung of that id; raises KeyError with the nearest names if there is none."""
    return find_rung(id, BATCHED, "batched rung", "")


def operands(batch: int, M: int, K: int, N: int, dtype: str = "float32", seed: int = 0) -> tuple[Any, Any]:
    """Return random A (batch, M, K) and B (batch, K, N), normal entries."""
    import numpy as np

    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((batch, M, K)), rng.standard_normal((batch, K, N))
    return A.astype(dtype), B.astype(dtype)
