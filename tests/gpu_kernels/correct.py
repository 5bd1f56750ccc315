"""Kernels that are right: a tracer must report no hazard on any of them, and the result must be NumPy's.

`CASES` holds them all. The kernels of `DISPUTED` work on GPUs while a strict reading of the rules calls them
wrong: neither answer is a fault.
"""

from __future__ import annotations

import numpy as np
from numba import cuda, float32

from gpu_kernels.arguments import floats, normal, zeros
from gpu_kernels.case import SYNCWARP, Case, case
from gpu_kernels.cases_own import OWN
from gpu_kernels.cases_third_party import THIRD_PARTY
from gpu_kernels.own import reduction
from gpu_kernels.third_party import numba_reduce, numba_warp_ops


@cuda.jit
def leave_early(x, out):
    """Threads past the end leave before a barrier that the rest of their block reaches."""
    kept = cuda.shared.array(32, dtype=float32)
    tid = cuda.threadIdx.x
    i = cuda.grid(1)
    if i >= x.size:
        return
    kept[tid] = 2 * x[i]
    cuda.syncthreads()
    out[i] = kept[tid]


@cuda.jit
def any_negative(x, found):
    """found[0] = 1 if any element is negative: several threads may store, all the same value."""
    i = cuda.grid(1)
    if i < x.size and x[i] < 0:
        found[0] = 1


CASES: tuple[Case, ...] = THIRD_PARTY + OWN

DISPUTED: tuple[Case, ...] = (
    # Not all threads of the second block reach the barrier; from compute capability 7.0 on it waits only for
    # those that have not left (CUDA C++ Programming Guide, Independent Thread Scheduling).
    case("early return before a barrier", leave_early, 2, 32)(normal(50, out=50), lambda x, out: 2 * x),
    # Unordered stores to one word, all of the same value.
    case("several threads store the same value", any_negative, 2, 32)(
        normal(64, out=1, out_dtype=np.int32), lambda x, found: np.array([1])
    ),
    # Lane 0 stores ary[0] over itself while the other lanes load it: a race of equal values.
    case("value spread by syncwarp", numba_warp_ops.useful_syncwarp, 1, 32)(
        zeros(32, np.int32), lambda ary: np.full(32, 42), needs=SYNCWARP
    ),
    # The blocks are ordered by a fence and an atomic, not by a barrier.
    case("sum by the last block", reduction.sum_by_last_block, 3, 64)(
        lambda seed: (*floats(seed, 150), *(np.zeros(n, t) for n, t in ((3, "f4"), (1, "i4"), (1, "f4")))),
        lambda x, partial, tickets, total: {1: np.add.reduceat(x, [0, 64, 128]), 2: [3], 3: [x.sum()]},
    ),
    # Two lanes in a branch call syncwarp() with the mask of all 32.
    case("Numba's own reduction, whole blocks", numba_reduce.kernel, 2, 128)(
        lambda seed: (*floats(seed, 512, dtype=np.float64), np.zeros(2), 3.0, True),
        lambda x, partials, init, use: {1: x.reshape(2, 2, 128).sum(axis=(0, 2)) + np.array([init, 0])},
        tolerance=1e-12,
        needs=SYNCWARP,
    ),
)
