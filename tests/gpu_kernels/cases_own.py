"""Cases with kernels written for these tests (own/): right, and each with something to trip over."""

from __future__ import annotations

import numpy as np

from gpu_kernels.arguments import (
    NEARLY,
    by_block,
    exclusive,
    floats,
    of_product,
    product,
    softmax,
    whole,
    with_output,
)
from gpu_kernels.case import SHUFFLE, SYNCWARP, VOTE, Case
from gpu_kernels.own import counting, elementwise, matmul, reduction, scan, sorting, stencil, transpose
from gpu_kernels.third_party import numba_vecadd


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


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
    return {1: wanted}


def smoothed(x, steps, out):
    x = x.astype(np.float64)
    for _ in range(steps):
        x[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    return {2: x}


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
    Case(
        "saxpy, a grid-stride loop",
        elementwise.saxpy,
        3,
        40,
        lambda seed: (np.float32(1.5), *floats(seed, 500, 500)),
        lambda a, x, y: {2: a * x + y},
        tolerance=NEARLY,
    ),
    Case(
        "vector add in place, all arguments the same array",
        numba_vecadd.f,
        2,
        33,
        lambda seed: (whole(seed, 60, -9, 9),) * 3,
        lambda a, b, c: {i: 2 * a for i in range(3)},
        needs=frozenset({"aliasing"}),
    ),
    Case(
        "periodic difference by the index -1",
        elementwise.periodic_difference,
        2,
        32,
        with_output(lambda seed: (whole(seed, 45, -99, 99),), 45, np.int32),
        lambda x, out: {1: x - np.roll(x, 1)},
    ),
    Case(
        "circular convolution by remainders of negative numbers",
        elementwise.circular_convolution,
        2,
        20,
        lambda seed: (*floats(seed, 37, 5), np.zeros(37, np.float32)),
        lambda x, taps, out: {2: sum(taps[k] * np.roll(x, k) for k in range(5))},
        tolerance=NEARLY,
    ),
    Case(
        "Collatz steps, a while loop of another length in each lane",
        elementwise.collatz_steps,
        2,
        32,
        with_output(lambda seed: (whole(seed, 50, 1, 60, np.int64),), 50, np.int32),
        lambda x, steps: {1: np.array([collatz(int(n)) for n in x])},
    ),
    Case(
        "first larger element, with continue and break",
        elementwise.first_larger,
        1,
        32,
        lambda seed: (with_nans(seed, (30, 12)), np.float32(1), np.zeros(30, np.int32)),
        first_above,
    ),
    Case(
        "insertion sort in local arrays",
        elementwise.sort_each_row,
        2,
        16,
        with_output(lambda seed: floats(seed, (29, 8)), (29, 8), np.float32),
        lambda x, out: {1: np.sort(x, axis=1)},
    ),
    Case(
        "axes reordered on a 3-D grid",
        elementwise.reorder_axes,
        (2, 2, 2),
        (4, 3, 2),
        with_output(lambda seed: floats(seed, (3, 5, 7)), (7, 3, 5), np.float32),
        lambda x, out: {1: x.transpose(2, 0, 1)},
    ),
    Case(
        "polynomial by fused multiply-adds",
        elementwise.polynomial,
        2,
        32,
        lambda seed: (*floats(seed, 50, 5), np.zeros(50, np.float32)),
        lambda x, c, out: {2: np.polyval(c.astype(float), x.astype(float))},
        tolerance=1e-4,
    ),
    Case(
        "bytes reversed through shared memory",
        elementwise.reverse_bytes_of_block,
        2,
        48,
        with_output(lambda seed: (whole(seed, 96, 0, 256, np.uint8),), 96, np.uint8),
        lambda x, out: {1: x.reshape(2, 48)[:, ::-1].ravel()},
    ),
    Case(
        "whole blocks leave before the barrier",
        elementwise.flags_of_halves,
        4,
        32,
        with_output(lambda seed: floats(seed, 50), 50, np.int32),
        halves_larger,
    ),
    Case(
        "coalesced matmul",
        matmul.coalesced_matmul,
        (2, 3),
        (8, 4),
        product(10, 7, 13),
        of_product,
        tolerance=NEARLY,
    ),
    Case(
        "double-buffered matmul, one barrier a step",
        matmul.double_buffered_matmul,
        (2, 2),
        (8, 8),
        product(11, 27, 13),
        of_product,
        tolerance=NEARLY,
    ),
    Case(
        "matmul with a column of results a thread",
        matmul.row_tiled_matmul,
        (2, 2),
        8,
        product(11, 19, 13),
        of_product,
        tolerance=NEARLY,
    ),
    Case(
        "register-tiled matmul",
        matmul.register_tiled_matmul,
        (2, 2),
        (8, 8),
        product(21, 10, 19),
        of_product,
        tolerance=NEARLY,
    ),
    Case(
        "sums of blocks",
        reduction.block_sums,
        3,
        64,
        with_output(lambda seed: floats(seed, 150), 3, np.float32),
        lambda x, sums: {1: by_block(x, 64, np.sum)},
        tolerance=NEARLY,
    ),
    Case(
        "sums of blocks, warp-synchronous at the end",
        reduction.warp_synchronous_sums,
        2,
        128,
        with_output(lambda seed: floats(seed, 200), 2, np.float32),
        lambda x, sums: {1: by_block(x, 128, np.sum)},
        tolerance=NEARLY,
        needs=SYNCWARP,
    ),
    Case(
        "sum by shuffles and an atomic a block",
        reduction.shuffled_sum,
        2,
        64,
        with_output(lambda seed: floats(seed, 500), 1, np.float32),
        lambda x, total: {1: np.array([x.sum()])},
        tolerance=1e-4,
        needs=SHUFFLE,
    ),
    Case(
        "row means by a butterfly",
        reduction.butterfly_row_means,
        2,
        (32, 3),
        with_output(lambda seed: floats(seed, (6, 32)), (6, 32), np.float32),
        lambda x, out: {1: x - x.mean(axis=1, keepdims=True)},
        tolerance=NEARLY,
        needs=SHUFFLE,
    ),
    Case(
        "softmax of rows",
        reduction.softmax_rows,
        3,
        32,
        with_output(lambda seed: floats(seed, (3, 45)), (3, 45), np.float32),
        lambda x, out: {1: softmax(x)},
        tolerance=NEARLY,
    ),
    Case(
        "scan with two buffers",
        scan.double_buffered_scan,
        2,
        64,
        with_output(lambda seed: (whole(seed, 100, -9, 9),), 100, np.int32),
        lambda x, out: {1: by_block(x, 64, np.cumsum)},
    ),
    Case(
        "scan in place with two barriers",
        scan.two_barrier_scan,
        2,
        64,
        with_output(lambda seed: (whole(seed, 100, -9, 9),), 100, np.int32),
        lambda x, out: {1: by_block(x, 64, np.cumsum)},
    ),
    Case(
        "work-efficient scan",
        scan.work_efficient_scan,
        2,
        64,
        with_output(lambda seed: (whole(seed, 200, -9, 9),), 200, np.int32),
        lambda x, out: {1: by_block(x, 128, exclusive)},
    ),
    Case(
        "scan by shuffles",
        scan.shuffled_scan,
        2,
        64,
        with_output(lambda seed: (whole(seed, 100, -9, 9),), 100, np.int32),
        lambda x, out: {1: by_block(x, 64, np.cumsum)},
        needs=SHUFFLE,
    ),
    Case(
        "histogram in global memory",
        counting.global_histogram,
        2,
        48,
        with_output(lambda seed: (whole(seed, 300, 0, 16),), 16, np.int32),
        lambda x, counts: {1: np.bincount(x, minlength=16)},
    ),
    Case(
        "histogram in shared memory",
        counting.shared_histogram,
        2,
        48,
        with_output(lambda seed: (whole(seed, 300, 0, 16),), 16, np.int32),
        lambda x, counts: {1: np.bincount(x, minlength=16)},
    ),
    Case(
        "compaction by the value an atomic returns",
        counting.compact,
        2,
        32,
        lambda seed: (whole(seed, 55, -9, 9), np.zeros(1, np.int32), np.zeros(55, np.int32)),
        lambda x, count, out: {1: np.array([(x > 0).sum()]), 2: np.append(x[x > 0], 0 * x[x <= 0])},
        canonical=np.sort,  # the places are drawn in no promised order
    ),
    Case(
        "compaction by ballots",
        counting.ballot_compact,
        2,
        64,
        lambda seed: (whole(seed, 110, -9, 9), np.zeros(1, np.int32), np.zeros(110, np.int32)),
        lambda x, count, out: {1: np.array([(x > 0).sum()]), 2: np.append(x[x > 0], 0 * x[x <= 0])},
        canonical=np.sort,
        needs=SHUFFLE | VOTE,
    ),
    Case(
        "maximum by atomics",
        counting.largest_by_atomics,
        2,
        32,
        lambda seed: (whole(seed, 60, -99, 99), np.full(1, -1000, np.int32)),
        lambda x, largest: {1: np.array([x.max()])},
    ),
    Case(
        "naive transpose",
        transpose.naive_transpose,
        (3, 2),
        (8, 8),
        with_output(lambda seed: floats(seed, (13, 21)), (21, 13), np.float32),
        lambda x, out: {1: x.T},
    ),
    Case(
        "tiled transpose",
        transpose.tiled_transpose,
        (3, 2),
        (8, 8),
        with_output(lambda seed: floats(seed, (13, 21)), (21, 13), np.float32),
        lambda x, out: {1: x.T},
    ),
    Case(
        "padded transpose, several rows a thread",
        transpose.padded_transpose,
        (3, 2),
        (8, 4),
        with_output(lambda seed: floats(seed, (13, 21)), (21, 13), np.float32),
        lambda x, out: {1: x.T},
    ),
    Case(
        "transpose in place by swapping",
        transpose.transpose_in_place,
        (2, 2),
        (8, 8),
        lambda seed: tuple(floats(seed, (14, 14))),
        lambda x: {0: x.T},
    ),
    Case(
        "tile transposed in place, held over the barrier",
        transpose.transpose_tile_in_place,
        1,
        (8, 8),
        lambda seed: tuple(floats(seed, (8, 8))),
        lambda x: {0: x.T},
    ),
    Case(
        "1-D convolution with a halo",
        stencil.convolve_1d,
        3,
        32,
        lambda seed: (*floats(seed, 75, 5), np.zeros(75, np.float32)),
        lambda x, taps, out: {2: np.correlate(np.pad(x, 2), taps, "valid")},
        tolerance=NEARLY,
    ),
    Case(
        "five-point stencil with a halo",
        stencil.five_point,
        (2, 2),
        (8, 8),
        lambda seed: (*floats(seed, (13, 15)), np.full((13, 15), 9, np.float32)),
        inner_mean,
        tolerance=NEARLY,
    ),
    Case(
        "smoothing steps, buffers swapped by name",
        stencil.smooth,
        1,
        32,
        lambda seed: (*floats(seed, 32), 5, np.zeros(32, np.float32)),
        smoothed,
        tolerance=NEARLY,
        hard="two names of shared arrays change places",
    ),
    Case(
        "blocks reversed through dynamic shared memory",
        stencil.reverse_dynamic,
        2,
        40,
        with_output(lambda seed: floats(seed, 80), 80, np.float32),
        lambda x, out: {1: x.reshape(2, 40)[:, ::-1].ravel()},
        shared_bytes=160,
    ),
    Case(
        "bitonic sort",
        sorting.bitonic_sort,
        1,
        32,
        lambda seed: (whole(seed, 32, 0, 99),),
        lambda x: {0: np.sort(x)},
    ),
    Case(
        "odd-even sort, left by all together",
        sorting.odd_even_sort,
        1,
        16,
        lambda seed: (whole(seed, 32, 0, 99), np.zeros(1, np.int32)),
        lambda x, rounds: {0: np.sort(x), 1: np.array([odd_even_rounds(x)])},
    ),
    Case(
        "odd-even sort, left by a vote of the block",
        sorting.sort_by_vote,
        1,
        16,
        lambda seed: (whole(seed, 32, 0, 99),),
        lambda x: {0: np.sort(x)},
    ),
)
