"""Kernels at fault, each with what must be found: the kind of hazard and its line.

A tracer must report the fault's `kind` at one of `lines` (the access at fault or one that it collides with),
may report kinds of `may_also` that follow from it, and nothing else: for `kind` no other line, and no other
kind. The result of most of them proves nothing: it is right when the threads of a block go statement by
statement together and blocks take turns; the others are `wrong_in_lockstep`. gpu_kernels.oracle checks this.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gpu_kernels.arguments import (
    by_block,
    floats,
    integers,
    normal,
    of_product,
    product,
    softmax,
    whole,
    with_output,
)
from gpu_kernels.case import SYNCWARP, Fault, fault
from gpu_kernels.seeded import barriers, bounds
from gpu_kernels.seeded import global_memory as in_global
from gpu_kernels.seeded import shared_memory as shared

race, unwritten = partial(fault, "race"), partial(fault, "uninitialised")
outside, diverging = partial(fault, "out-of-bounds"), partial(fault, "divergent-barrier")

UNINITIALISED = frozenset({"uninitialised"})
RACE = frozenset({"race"})


def counts_of(x, counts):
    return {1: np.bincount(x, minlength=counts.size)}


def both_neighbours(x):
    return np.roll(x, 1) + np.roll(x, -1)


def inner_sums(x):
    wanted = x.copy()
    wanted[1:-1] = x[:-2] + x[2:]
    return {0: wanted}


def three_point(x, out):
    wanted = out.copy()
    wanted[1:-1] = x[:-2] + x[1:-1] + x[2:]
    return {0: wanted, 1: wanted} if np.shares_memory(x, out) else {1: wanted}


def doubled_until_large(x, out):
    wanted = x.copy()
    for _ in range(8):
        wanted = np.where(wanted > 10, wanted, 2 * wanted)
    return {1: wanted}


IN_SHARED_MEMORY = (
    race("matmul without the first barrier", shared.matmul_without_first_barrier, (2, 2), (8, 8))(
        product(16, 24, 16), of_product, may_also=UNINITIALISED
    ),
    race("matmul without the second barrier", shared.matmul_without_second_barrier, (2, 2), (8, 8))(
        product(16, 24, 16), of_product
    ),
    unwritten("half of a tile never fetched", shared.half_a_tile, (2, 2), (8, 8))(
        product(16, 32, 16), of_product, wrong_in_lockstep=True
    ),
    race("neighbours read without a barrier", shared.neighbours_without_barrier, 1, 64)(
        normal(64, out=64), lambda x, out: np.convolve(x, [1, 0, 1], "same"), may_also=UNINITIALISED
    ),
    race("halo filled by one thread after the barrier", shared.halo_by_one_thread, 1, 64)(
        normal(64, out=64), lambda x, out: both_neighbours(x), may_also=UNINITIALISED
    ),
    unwritten("halo filled after it is read", shared.halo_too_late, 1, 64)(
        normal(64, out=64), lambda x, out: both_neighbours(x), wrong_in_lockstep=True
    ),
    unwritten("block sums over words that were never set", shared.sums_without_zeros, 2, 64)(
        normal(100, out=2), lambda x, sums: by_block(x, 64, np.sum), wrong_in_lockstep=True
    ),
    race("reduction without the loop's barrier", shared.sums_without_barrier, 1, 64)(
        normal(64, out=1), lambda x, sums: by_block(x, 64, np.sum)
    ),
    race("warp-synchronous sum without syncwarp", shared.sums_without_syncwarp, 1, 64)(
        normal(64, out=1), lambda x, sums: by_block(x, 64, np.sum)
    ),
    race("syncwarp with a mask of half the lanes", shared.syncwarp_of_too_few, 1, 32)(
        normal(32, out=16), lambda x, sums: x[:16] + x[16:], needs=SYNCWARP, may_also=UNINITIALISED
    ),
    race("scan in place with one barrier a step", shared.scan_in_place, 1, 64)(
        integers(64, -9, 9, out=64), lambda x, out: np.cumsum(x)
    ),
    race("tile transposed over itself", shared.transpose_over_itself, 1, (8, 8))(
        normal((8, 8)), lambda x: x.T
    ),
    race("softmax that uses its buffer again too early", shared.softmax_buffer_used_again, 2, 64)(
        normal((2, 64), out=(2, 64)), lambda x, out: softmax(x)
    ),
    race("pivot read without a barrier", shared.pivot_without_barrier, 1, 64)(
        normal(64, out=64), lambda x, out: x - x[0], may_also=UNINITIALISED
    ),
    race("shared histogram without atomics", shared.shared_histogram_without_atomics, 1, 64)(
        integers(64, 0, 16, out=16), counts_of, wrong_in_lockstep=True
    ),
    race("counting before all bins are clear", shared.counting_before_all_is_clear, 1, 64)(
        integers(64, 0, 16, out=16), counts_of, may_also=UNINITIALISED
    ),
    race("bins read before all is counted", shared.reading_before_all_is_counted, 1, 64)(
        integers(64, 0, 16, out=16), counts_of
    ),
    race("column sums without atomics", shared.column_sums_without_atomics, 1, (8, 8))(
        normal((8, 8), out=8), lambda x, sums: x.sum(axis=0), wrong_in_lockstep=True
    ),
)

IN_GLOBAL_MEMORY = (
    race("histogram without atomics", in_global.histogram_without_atomics, 2, 32)(
        integers(60, 0, 16, out=16), counts_of, wrong_in_lockstep=True
    ),
    race("blocks add to one word", in_global.blocks_add_to_one_word, 3, 32)(
        normal(96, out=1), lambda x, total: np.array([x.sum()])
    ),
    race("two blocks write one row", in_global.blocks_write_one_row, 2, 32)(
        normal(64, out=64), lambda x, out: x, wrong_in_lockstep=True
    ),
    race("stencil in place over the blocks' edges", in_global.neighbours_in_place, 2, 32)(
        normal(64), inner_sums, wrong_in_lockstep=True
    ),
    race("neighbour that another block writes", in_global.neighbour_of_another_block, 2, 32)(
        lambda seed: (*floats(seed, 64), *np.zeros((2, 64), np.float32)),
        lambda x, doubled, out: {1: 2 * x, 2: np.append(np.float32(0), np.diff(2 * x))},
    ),
    race("stencil launched with one array for input and output", in_global.three_point_sum, 1, 64)(
        lambda seed: tuple(floats(seed, 64)) * 2, three_point, needs=frozenset({"aliasing"})
    ),
    race("counter read back after the atomic", in_global.count_read_back, 1, 32)(
        lambda seed: (whole(seed, 32, -9, 9), np.zeros(1, np.int32), np.zeros(32, np.int32)),
        lambda x, count, places: {1: np.array([(x > 0).sum()]), 2: np.where(x > 0, np.cumsum(x > 0), 0)},
        wrong_in_lockstep=True,
    ),
    race("transpose in place by both threads of a pair", in_global.transpose_by_everybody, 1, (8, 8))(
        normal((8, 8)), lambda x: x.T
    ),
)

OUT_OF_BOUNDS = (
    outside("load without a guard", bounds.load_without_guard, 2, 32)(
        normal(50, out=50), lambda x, out: 2 * x
    ),
    outside("store without a guard", bounds.store_without_guard, 2, 32)(
        normal(50, out=50), lambda x, out: 2 * x
    ),
    outside("neighbour past the end", bounds.neighbour_past_the_end, 2, 32)(
        normal(64, out=64), lambda x, out: np.roll(x, -1) - np.roll(x, 1), wrong_in_lockstep=True
    ),
    outside("indices of the output not swapped", bounds.indices_swapped, (3, 2), (8, 8))(
        normal((13, 21), out=(21, 13)), lambda x, out: x.T, wrong_in_lockstep=True
    ),
    outside("columns past the end of a row", bounds.rows_run_over, (2, 2), (8, 8))(
        product(16, 13, 16), of_product
    ),
    outside("shared array too small", bounds.shared_array_too_small, 1, 64)(
        normal(64, out=64), lambda x, out: x[::-1], wrong_in_lockstep=True
    ),
    outside("halo with room on one side", bounds.halo_of_one_side, 2, 32)(
        normal(64, 5, out=64),
        lambda x, taps, out: np.correlate(np.pad(x, 2), taps, "valid"),
        wrong_in_lockstep=True,
    ),
    outside("launched with too few bytes of shared memory", bounds.launched_with_too_few_bytes, 1, 64)(
        normal(64, out=64), lambda x, out: x[::-1], shared_bytes=128, wrong_in_lockstep=True
    ),
    outside("atomic on a bin past the last", bounds.bin_past_the_last, 1, 32)(
        with_output(lambda seed: (np.append(whole(seed, 30, 0, 16), 16),), 16, np.int32),
        lambda x, counts: np.bincount(x)[:16],
    ),
    outside("local array too small", bounds.local_array_too_small, 1, 32)(
        normal((32, 5), out=(32, 4)), lambda x, out: x[:, 3::-1]
    ),
)

DIVERGENT_BARRIERS = (
    diverging("barrier inside the branch of a reduction", barriers.barrier_in_branch, 1, 64)(
        normal(64, out=1), lambda x, sums: by_block(x, 64, np.sum), may_also=RACE
    ),
    diverging("a barrier in each branch", barriers.barrier_in_both_branches, 1, 64)(
        normal(64, out=64), lambda x, out: np.where(np.arange(64) < 32, -x[::-1], x[::-1]), may_also=RACE
    ),
    diverging("barrier in loops of different length", barriers.loops_of_different_length, 1, 64)(
        normal(64, out=64), lambda x, out: np.choose(np.arange(64) % 3, [x, 2 * x + 1, 3 * x + 3])
    ),
    diverging("some threads break off before the barrier", barriers.some_break_off, 1, 64)(
        with_output(lambda seed: (np.arange(1, 65, dtype=np.float32),), 64, np.float32), doubled_until_large
    ),
    diverging(
        "barrier in a device function called from a branch", barriers.barrier_in_device_function, 1, 64
    )(normal(64, out=64), lambda x, out: np.maximum(x, 0), marked=barriers.publish),
)

FAULTS: tuple[Fault, ...] = IN_SHARED_MEMORY + IN_GLOBAL_MEMORY + OUT_OF_BOUNDS + DIVERGENT_BARRIERS
