"""Cases with kernels of others (third_party/), each with a reference in NumPy."""

from __future__ import annotations

import math

import numpy as np

from gpu_kernels.arguments import floats, integers, normal, of_product, product, whole, zeros
from gpu_kernels.case import MATCH, SHUFFLE, SYNCWARP, VOTE, case
from gpu_kernels.third_party import (
    fbpic_prefix_sum,
    numba_array_sum,
    numba_atomics,
    numba_blackscholes,
    numba_laplace,
    numba_local_memory,
    numba_matmul,
    numba_reduce,
    numba_shared_memory,
    numba_square_matmul,
    numba_sync,
    numba_transpose,
    numba_vecadd,
    numba_warp_ops,
    warprnnt_alphas,
    warprnnt_reduce,
    xrspatial_convolution,
    xrspatial_focal,
)

LANES = np.arange(32)


def with_number(number: int):
    return lambda seed: (np.zeros(32, np.int32), number)


def black_scholes(S, X, T, R, V):
    """Return call and put prices, with the normal distribution by math.erf instead of a polynomial."""
    normal = np.vectorize(lambda d: 0.5 * (1 + math.erf(d / math.sqrt(2))))
    d1 = (np.log(S / X) + (R + 0.5 * V * V) * T) / (V * np.sqrt(T))
    d2 = d1 - V * np.sqrt(T)
    call = S * normal(d1) - X * np.exp(-R * T) * normal(d2)
    return call, call - S + X * np.exp(-R * T)


def jacobi(A, Anew, error):
    inner = 0.25 * (A[1:-1, 2:] + A[1:-1, :-2] + A[:-2, 1:-1] + A[2:, 1:-1])
    new = Anew.copy()
    new[1:-1, 1:-1] = inner
    change = np.zeros_like(A)
    change[1:-1, 1:-1] = inner - A[1:-1, 1:-1]
    tile = numba_laplace.tpb
    blocks = change.reshape(A.shape[0] // tile, tile, A.shape[1] // tile, tile)
    return {1: new, 2: blocks.max(axis=(1, 3))}


def windows(x, rows, cols):
    return np.lib.stride_tricks.sliding_window_view(x, (rows, cols))


def focal(function):
    """Return a reference: function of the unmasked elements of each window, cut off at the border."""

    def reference(data, mask, out):
        padded = np.pad(data, [(n // 2, n // 2) for n in mask.shape], constant_values=np.nan)
        result = [[function(w[mask != 0]) for w in row] for row in windows(padded, *mask.shape)]
        return {2: np.array(result)}

    return reference


def cross_shaped(dtype):
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    return lambda seed: (*floats(seed, (10, 13), dtype=dtype), cross, np.zeros((10, 13), dtype))


def forward_variables(acts, denom, alphas, ll, xlen, ylen, labels, minibatch, maxT, maxU, alphabet, blank):
    """The recursion of Graves (2012), eq. 16, over t and u instead of over anti-diagonals."""
    logp = acts.reshape(minibatch, maxT, maxU, alphabet) + denom.reshape(minibatch, maxT, maxU)[..., None]
    a = alphas.reshape(minibatch, maxT, maxU).astype(np.float64)
    likelihood = ll.astype(np.float64)
    for b in range(minibatch):
        T, U = xlen[b], ylen[b] + 1
        for t in range(T):
            for u in range(U):
                ways = [a[b, t - 1, u] + logp[b, t - 1, u, blank]] if t else []
                ways += [a[b, t, u - 1] + logp[b, t, u - 1, labels[b, u - 1]]] if u else []
                a[b, t, u] = np.logaddexp.reduce(ways) if ways else 0
        likelihood[b] = a[b, T - 1, U - 1] + logp[b, T - 1, U - 1, blank]
    return {2: a.ravel(), 3: likelihood}


def sorted_by_cell(seed, particles=40, cells=24):
    cell = np.sort(whole(seed, particles, 3, cells - 3))
    return cell, np.zeros(cells, np.int32)


def filled_between(cell, sums):
    """What incl_prefix_sum does: cells from the first particle's to before the last one's."""
    wanted = sums.copy()
    inside = np.arange(cell[0], cell[-1])
    wanted[inside] = np.searchsorted(cell, inside, side="right")
    return {1: wanted}


def cas(res, old, ary, fill_val):
    """Of compare-and-swap, each thread on its own element: it finds what was there, and swaps fill_val."""
    return {0: np.where(res == fill_val, ary, res), 1: res}


THIRD_PARTY = (
    case("vector add", numba_vecadd.f, 4, 24)(
        lambda seed: (*floats(seed, 77, 77), np.full(77, np.nan, np.float32)), lambda a, b, c: a + b
    ),
    case("sum of a block in shared memory", numba_array_sum.array_sum, 1, 64)(
        lambda seed: (whole(seed, 64, -50, 50, np.int64),), lambda x: np.concatenate([[x.sum()], x[1:]])
    ),
    case("naive matmul", numba_matmul.matmul, (2, 3), (8, 4))(
        product(13, 9, 11, dtype=np.float64), of_product, tolerance=1e-12
    ),
    case("naive matmul, A column by column", numba_matmul.matmul, (2, 3), (8, 4))(
        product(13, 9, 11, order="F", dtype=np.float64), of_product, tolerance=1e-12
    ),
    case("tiled matmul of any shape", numba_matmul.fast_matmul, (2, 1), (16, 16))(
        product(5, 23, 7), of_product
    ),
    case("tiled matmul of squares", numba_square_matmul.cu_square_matrix_mul, (2, 2), (8, 8))(
        product(16, 16, 16), of_product
    ),
    case("transpose through a padded tile", numba_transpose.kernel, (3, 2), (8, 8))(
        normal((14, 19), out=(19, 14)), lambda x, out: x.T
    ),
    case("Jacobi step and its largest change", numba_laplace.jocabi_relax_core, (2, 2), (4, 4))(
        lambda seed: (*floats(seed, (8, 8), (8, 8), dtype=np.float64), np.zeros((2, 2))),
        jacobi,
        tolerance=1e-12,
    ),
    case("Black-Scholes prices", numba_blackscholes.black_scholes_cuda, 2, 40)(
        lambda seed: (
            np.zeros(70),
            np.zeros(70),
            *np.random.default_rng(seed).uniform([[5], [1], [0.25]], [[30], [100], [10]], (3, 70)),
            0.02,
            0.30,
        ),
        lambda call, put, S, X, T, R, V: dict(enumerate(black_scholes(S, X, T, R, V))),
        tolerance=1e-4,  # the polynomial is good to 7.5e-8 of prices up to 100
    ),
    case("warp-synchronous sum with masks", numba_sync.coop_syncwarp, 1, 32)(
        zeros(1, np.int32), lambda res: np.array([496]), needs=SYNCWARP
    ),
    case("shared memory filled by one thread", numba_sync.simple_smem, 1, 100)(
        zeros(100, np.int32), lambda ary: np.arange(100)
    ),
    case("shared memory of two dimensions", numba_sync.coop_smem2d, 1, (10, 20))(
        zeros((10, 20), np.float32), lambda ary: np.arange(1, 11)[:, None] / np.arange(1, 21)
    ),
    case("dynamic shared memory", numba_sync.dyn_shared_memory, 1, 50)(
        zeros(50, np.float32), lambda ary: 2 * np.arange(50), shared_bytes=200
    ),
    case("barrier that counts", numba_sync.use_syncthreads_count, 1, 72)(
        integers(72, 0, 2, out=72), lambda x, out: np.full(72, np.count_nonzero(x))
    ),
    case("shuffle from one lane", numba_warp_ops.use_shfl_sync_idx, 1, 32)(
        with_number(4), lambda ary, idx: {0: np.full(32, 4)}, needs=SHUFFLE
    ),
    case("shuffle up", numba_warp_ops.use_shfl_sync_up, 1, 32)(
        with_number(4), lambda ary, delta: {0: np.where(LANES < 4, LANES, LANES - 4)}, needs=SHUFFLE
    ),
    case("shuffle down", numba_warp_ops.use_shfl_sync_down, 1, 32)(
        with_number(4), lambda ary, delta: {0: np.where(LANES > 27, LANES, LANES + 4)}, needs=SHUFFLE
    ),
    case("shuffle by exclusive or", numba_warp_ops.use_shfl_sync_xor, 1, 32)(
        with_number(16), lambda ary, xor: {0: LANES ^ 16}, needs=SHUFFLE
    ),
    case("vote: do all", numba_warp_ops.use_vote_sync_all, 1, 64)(
        lambda seed: ((np.arange(64) != 60).astype(np.int32), np.zeros(64, np.int32)),
        lambda x, out: np.repeat([1, 0], 32),
        needs=VOTE,
    ),
    case("vote: does any", numba_warp_ops.use_vote_sync_any, 1, 64)(
        lambda seed: ((np.arange(64) == 40).astype(np.int32), np.zeros(64, np.int32)),
        lambda x, out: np.repeat([0, 1], 32),
        needs=VOTE,
    ),
    case("ballot", numba_warp_ops.use_vote_sync_ballot, 1, 32)(
        zeros(32, np.uint32), lambda ary: np.full(32, 0xFFFFFFFF), needs=VOTE
    ),
    case("ballots of four groups of lanes", numba_warp_ops.use_independent_scheduling, 1, 32)(
        zeros(32, np.uint32),
        lambda ary: np.tile([0x11111111, 0x22222222, 0x44444444, 0x88888888], 8),
        needs=VOTE,
    ),
    case("match: who has my value", numba_warp_ops.use_match_any_sync, 1, 32)(
        lambda seed: (np.arange(32, dtype=np.int32) % 2, np.zeros(32, np.uint32)),
        lambda x, out: np.tile([0x55555555, 0xAAAAAAAA], 16),
        needs=MATCH,
    ),
    case("copy by the first thread of each block", numba_shared_memory.use_sm_chunk_copy, 4, 16)(
        normal(64, out=64), lambda x, y: x
    ),
    case("copy through two slices of dynamic shared memory", numba_shared_memory.sm_slice_copy, 4, 16)(
        lambda seed: (*floats(seed, 64), np.zeros(64, np.float32), 8),
        lambda x, y, chunk: {1: x},
        shared_bytes=64,
    ),
    case("histogram in shared memory, of a warp", numba_atomics.atomic_add, 1, 32)(
        lambda seed: (whole(seed, 32, 0, 32, np.uint32),), lambda x: np.bincount(x, minlength=32)
    ),
    case("histogram in global memory, of a warp", numba_atomics.atomic_add_double_global, 1, 32)(
        lambda seed: (whole(seed, 32, 0, 32, np.uint32), np.zeros(32)),
        lambda idx, ary: np.bincount(idx, minlength=32),
    ),
    case("compare and swap", numba_atomics.atomic_cas_1dim, 2, 32)(
        lambda seed: (whole(seed, 50, 0, 2), np.zeros(50, np.int32), whole(seed + 1, 50, 5, 9), 1), cas
    ),
    case("copy through a local array", numba_local_memory.culocal1tuple, 1, 1)(
        integers(5, 0, 99, out=5), lambda A, B: A
    ),
    case("Numba's own reduction, part of a block", numba_reduce.kernel, 1, 45)(
        lambda seed: (*floats(seed, 45, dtype=np.float64), np.zeros(1), 3.0, True),
        lambda x, partials, init, use: {1: np.array([x.sum() + init])},
        tolerance=1e-12,
        needs=SYNCWARP,
    ),
    case("largest of a row, for a softmax", warprnnt_reduce._reduce_rows, 3, 128)(
        lambda seed: (1, 1, *floats(seed, 3 * 150), np.zeros(3, np.float32), 150),
        lambda i, r, acts, out, rows: {3: acts.reshape(3, 150).max(axis=1)},
        needs=SHUFFLE,
    ),
    case("logarithm of a softmax's denominator", warprnnt_reduce._reduce_minus, 3, 128)(
        lambda seed: (0, 0, *floats(seed, 3 * 150, 3), 150),
        lambda i, r, acts, out, rows: {3: -np.logaddexp.reduce(acts.reshape(3, 150).astype(float), axis=1)},
        tolerance=1e-4,
        needs=SHUFFLE,
    ),
    case("forward variables of a transducer", warprnnt_alphas.compute_alphas_kernel, 2, 5)(
        lambda seed: (
            *floats(seed, 2 * 4 * 5 * 6, 2 * 4 * 5),
            np.zeros(2 * 4 * 5, np.float32),
            np.zeros(2, np.float32),
            np.array([4, 3]),
            np.array([4, 2]),
            whole(seed, (2, 4), 1, 6),
            *(2, 4, 5, 6, 0),
        ),
        forward_variables,
        tolerance=1e-4,
    ),
    case("2-D convolution", xrspatial_convolution._convolve_2d_cuda, (2, 2), (8, 8))(
        lambda seed: (*floats(seed, (12, 15), (3, 5)), np.full((12, 15), 7, np.float32)),
        lambda x, k, out: np.pad(
            (windows(x, 3, 5) * k).sum(axis=(2, 3)), [(1, 1), (2, 2)], constant_values=np.float32(7)
        ),
    ),
    case("smallest in a masked window", xrspatial_focal._focal_min_cuda, (2, 2), (8, 8))(
        cross_shaped(np.float32),
        focal(np.nanmin),
    ),
    case("standard deviation in a masked window", xrspatial_focal._focal_std_cuda, (2, 2), (8, 8))(
        cross_shaped(np.float64),
        focal(np.nanstd),
        tolerance=1e-7,
    ),
    case("particles up to each cell", fbpic_prefix_sum.incl_prefix_sum, 2, 32)(
        sorted_by_cell, filled_between
    ),
    case("particles before the first and after the last cell", fbpic_prefix_sum.prefill_prefix_sum, 1, 32)(
        lambda seed: (*sorted_by_cell(seed), 40),
        lambda cell, sums, n: {1: np.where(np.arange(24) >= cell[-1], 40, 0)},
    ),
)
