"""Cases with kernels written for these tests (own/): right, and each with something to trip over."""

from __future__ import annotations

import numpy as np

from gpu_kernels.arguments import (
    by_block,
    exclusive,
    floats,
    integers,
    normal,
    of_product,
    product,
    softmax,
    whole,
    with_output,
)
from gpu_kernels.case import SHUFFLE, SYNCWARP, VOTE, case
from gpu_kernels.own import counting, elementwise, matmul, reduction, scan, sorting, stencil, transpose
from gpu_kernels.third_party import numba_vecadd


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def block_scans(x, out):
    return by_block(x, 64, np.cumsum)


def histogram(x, counts):
    return np.bincount(x, minlength=16)


def first_above(x, limit, out):
    found = x > limit
    return {2: np.where(found.any(axis=1), found.argmax(axis=1), -1)}


def with_nans(seed, shape):
    (x,) = floats(seed, shape)
    x[whole(seed + 1, shape, 0, 4) == 0] = np.nan
    return x


def halves_larger(x, out):
    padded = np.zeros((-(-x.size // 32), 32), np.float32)
    padded.ravel()[: x.size] = x
    return {1: (padded > np.roll(padded, -16, axis=1)).ravel()[: x.size]}


def inner_mean(x, out):
    wanted = out.copy()
    wanted[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return wanted


def smoothed(x, steps, out):
    x = x.astype(np.float64)
    for _ in range(steps):
        x[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return x


def compacted(x, count, out):
    return {1: np.array([(x > 0).sum()]), 2: np.append(x[x > 0], 0 * x[x <= 0])}


def odd_even_rounds(x) -> int:
    """Return how many rounds of odd-even transposition change something, and one more."""
    x = x.copy()
    for done in range(x.size):
        before = x.copy()
        for first in (0, 1):
            pairs = x[first : first + (x.size - first) // 2 * 2].reshape(-1, 2)
            pairs.sort(axis=1)
        if (x == before).all():
            return done + 1
    return x.size


OWN = (
    case("saxpy, a grid-stride loop", elementwise.saxpy, 3, 40)(
        lambda seed: (np.float32(1.5), *floats(seed, 500, 500)), lambda a, x, y: a * x + y
    ),
    case("vector add in place, all arguments the same array", numba_vecadd.f, 2, 33)(
        lambda seed: (whole(seed, 60, -9, 9),) * 3,
        lambda a, b, c: {i: 2 * a for i in range(3)},
        needs=frozenset({"aliasing"}),
    ),
    case("periodic difference by the index -1", elementwise.periodic_difference, 2, 32)(
        integers(45, -99, 99, out=45), lambda x, out: x - np.roll(x, 1)
    ),
    case("circular convolution by remainders of negative numbers", elementwise.circular_convolution, 2, 20)(
        normal(37, 5, out=37), lambda x, taps, out: sum(taps[k] * np.roll(x, k) for k in range(5))
    ),
    case("Collatz steps, a while loop of another length in each lane", elementwise.collatz_steps, 2, 32)(
        with_output(lambda seed: (whole(seed, 50, 1, 60, np.int64),), 50, np.int32),
        lambda x, steps: np.array([collatz(int(n)) for n in x]),
    ),
    case("first larger element, with continue and break", elementwise.first_larger, 1, 32)(
        lambda seed: (with_nans(seed, (30, 12)), np.float32(1), np.zeros(30, np.int32)), first_above
    ),
    case("insertion sort in local arrays", elementwise.sort_each_row, 2, 16)(
        normal((29, 8), out=(29, 8)), lambda x, out: np.sort(x, axis=1)
    ),
    case("axes reordered on a 3-D grid", elementwise.reorder_axes, (2, 2, 2), (4, 3, 2))(
        normal((3, 5, 7), out=(7, 3, 5)), lambda x, out: x.transpose(2, 0, 1)
    ),
    case("polynomial by fused multiply-adds", elementwise.polynomial, 2, 32)(
        normal(50, 5, out=50), lambda x, c, out: np.polyval(c.astype(float), x.astype(float)), tolerance=1e-4
    ),
    case("bytes reversed through shared memory", elementwise.reverse_bytes_of_block, 2, 48)(
        with_output(lambda seed: (whole(seed, 96, 0, 256, np.uint8),), 96, np.uint8),
        lambda x, out: x.reshape(2, 48)[:, ::-1].ravel(),
    ),
    case("whole blocks leave before the barrier", elementwise.flags_of_halves, 4, 32)(
        normal(50, out=50, out_dtype=np.int32), halves_larger
    ),
    case("coalesced matmul", matmul.coalesced_matmul, (2, 3), (8, 4))(product(10, 7, 13), of_product),
    case("double-buffered matmul, one barrier a step", matmul.double_buffered_matmul, (2, 2), (8, 8))(
        product(11, 27, 13), of_product
    ),
    case("matmul with a column of results a thread", matmul.row_tiled_matmul, (2, 2), 8)(
        product(11, 19, 13), of_product
    ),
    case("register-tiled matmul", matmul.register_tiled_matmul, (2, 2), (8, 8))(
        product(21, 10, 19), of_product
    ),
    case("sums of blocks", reduction.block_sums, 3, 64)(
        normal(150, out=3), lambda x, sums: by_block(x, 64, np.sum)
    ),
    case("sums of blocks, warp-synchronous at the end", reduction.warp_synchronous_sums, 2, 128)(
        normal(200, out=2), lambda x, sums: by_block(x, 128, np.sum), needs=SYNCWARP
    ),
    case("sum by shuffles and an atomic a block", reduction.shuffled_sum, 2, 64)(
        normal(500, out=1), lambda x, total: np.array([x.sum()]), tolerance=1e-4, needs=SHUFFLE
    ),
    case("row means by a butterfly", reduction.butterfly_row_means, 2, (32, 3))(
        normal((6, 32), out=(6, 32)), lambda x, out: x - x.mean(axis=1, keepdims=True), needs=SHUFFLE
    ),
    case("softmax of rows", reduction.softmax_rows, 3, 32)(
        normal((3, 45), out=(3, 45)), lambda x, out: softmax(x)
    ),
    case("scan with two buffers", scan.double_buffered_scan, 2, 64)(
        integers(100, -9, 9, out=100), block_scans
    ),
    case("scan in place with two barriers", scan.two_barrier_scan, 2, 64)(
        integers(100, -9, 9, out=100), block_scans
    ),
    case("work-efficient scan", scan.work_efficient_scan, 2, 64)(
        integers(200, -9, 9, out=200), lambda x, out: by_block(x, 128, exclusive)
    ),
    case("scan by shuffles", scan.shuffled_scan, 2, 64)(
        integers(100, -9, 9, out=100), block_scans, needs=SHUFFLE
    ),
    case("histogram in global memory", counting.global_histogram, 2, 48)(
        integers(300, 0, 16, out=16), histogram
    ),
    case("histogram in shared memory", counting.shared_histogram, 2, 48)(
        integers(300, 0, 16, out=16), histogram
    ),
    case("compaction by the value an atomic returns", counting.compact, 2, 32)(
        lambda seed: (whole(seed, 55, -9, 9), np.zeros(1, np.int32), np.zeros(55, np.int32)),
        compacted,
        canonical=np.sort,  # the places are drawn in no promised order
    ),
    case("compaction by ballots", counting.ballot_compact, 2, 64)(
        lambda seed: (whole(seed, 110, -9, 9), np.zeros(1, np.int32), np.zeros(110, np.int32)),
        compacted,
        canonical=np.sort,  # the places are drawn in no promised order
        needs=SHUFFLE | VOTE,
    ),
    case("maximum by atomics", counting.largest_by_atomics, 2, 32)(
        lambda seed: (whole(seed, 60, -99, 99), np.full(1, -1000, np.int32)),
        lambda x, largest: np.array([x.max()]),
    ),
    case("naive transpose", transpose.naive_transpose, (3, 2), (8, 8))(
        normal((13, 21), out=(21, 13)), lambda x, out: x.T
    ),
    case("tiled transpose", transpose.tiled_transpose, (3, 2), (8, 8))(
        normal((13, 21), out=(21, 13)), lambda x, out: x.T
    ),
    case("padded transpose, several rows a thread", transpose.padded_transpose, (3, 2), (8, 4))(
        normal((13, 21), out=(21, 13)), lambda x, out: x.T
    ),
    case("transpose in place by swapping", transpose.transpose_in_place, (2, 2), (8, 8))(
        normal((14, 14)), lambda x: x.T
    ),
    case("tile transposed in place, held over the barrier", transpose.transpose_tile_in_place, 1, (8, 8))(
        normal((8, 8)), lambda x: x.T
    ),
    case("1-D convolution with a halo", stencil.convolve_1d, 3, 32)(
        normal(75, 5, out=75), lambda x, taps, out: np.correlate(np.pad(x, 2), taps, "valid")
    ),
    case("five-point stencil with a halo", stencil.five_point, (2, 2), (8, 8))(
        lambda seed: (*floats(seed, (13, 15)), np.full((13, 15), 9, np.float32)), inner_mean
    ),
    case("smoothing steps, buffers swapped by name", stencil.smooth, 1, 32)(
        lambda seed: (*floats(seed, 32), 5, np.zeros(32, np.float32)), smoothed
    ),
    case("blocks reversed through dynamic shared memory", stencil.reverse_dynamic, 2, 40)(
        normal(80, out=80), lambda x, out: x.reshape(2, 40)[:, ::-1].ravel(), shared_bytes=160
    ),
    case("bitonic sort", sorting.bitonic_sort, 1, 32)(integers(32, 0, 99), np.sort),
    case("odd-even sort, left by all together", sorting.odd_even_sort, 1, 16)(
        lambda seed: (whole(seed, 32, 0, 99), np.zeros(1, np.int32)),
        lambda x, rounds: {0: np.sort(x), 1: np.array([odd_even_rounds(x)])},
    ),
    case("odd-even sort, left by a vote of the block", sorting.sort_by_vote, 1, 16)(
        integers(32, 0, 99), np.sort
    ),
)
