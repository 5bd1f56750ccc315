"""Kernels at fault, each with what must be found: the kind of hazard and its line.

A tracer must report the fault's `kind` at one of `lines` (the access at fault or one that it collides with),
may report kinds of `may_also` that follow from it, and nothing else: for `kind` no other line, and no other
kind. `right_in_lockstep` marks the ones whose result proves nothing: it is right when the threads of a block
go statement by statement together and blocks take turns. gpu_kernels.oracle checks all of this.
"""

from __future__ import annotations

import numpy as np

from gpu_kernels.arguments import NEARLY, by_block, floats, of_product, product, softmax, whole, with_output
from gpu_kernels.case import SYNCWARP, Fault
from gpu_kernels.seeded import barriers, bounds, global_memory, shared_memory

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
    Fault(
        "matmul without the first barrier",
        shared_memory.matmul_without_first_barrier,
        (2, 2),
        (8, 8),
        product(16, 24, 16),
        of_product,
        tolerance=NEARLY,
        kind="race",
        may_also=UNINITIALISED,
        right_in_lockstep=True,
    ),
    Fault(
        "matmul without the second barrier",
        shared_memory.matmul_without_second_barrier,
        (2, 2),
        (8, 8),
        product(16, 24, 16),
        of_product,
        tolerance=NEARLY,
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "half of a tile never fetched",
        shared_memory.half_a_tile,
        (2, 2),
        (8, 8),
        product(16, 32, 16),
        of_product,
        tolerance=NEARLY,
        kind="uninitialised",
    ),
    Fault(
        "neighbours read without a barrier",
        shared_memory.neighbours_without_barrier,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: np.convolve(x, [1, 0, 1], "same")},
        tolerance=NEARLY,
        kind="race",
        may_also=UNINITIALISED,
        right_in_lockstep=True,
    ),
    Fault(
        "halo filled by one thread after the barrier",
        shared_memory.halo_by_one_thread,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: both_neighbours(x)},
        kind="race",
        may_also=UNINITIALISED,
        right_in_lockstep=True,
    ),
    Fault(
        "halo filled after it is read",
        shared_memory.halo_too_late,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: both_neighbours(x)},
        kind="uninitialised",
    ),
    Fault(
        "block sums over words that were never set",
        shared_memory.sums_without_zeros,
        2,
        64,
        with_output(lambda seed: floats(seed, 100), 2, np.float32),
        lambda x, sums: {1: by_block(x, 64, np.sum)},
        tolerance=NEARLY,
        kind="uninitialised",
    ),
    Fault(
        "reduction without the loop's barrier",
        shared_memory.sums_without_barrier,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 1, np.float32),
        lambda x, sums: {1: by_block(x, 64, np.sum)},
        tolerance=NEARLY,
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "warp-synchronous sum without syncwarp",
        shared_memory.sums_without_syncwarp,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 1, np.float32),
        lambda x, sums: {1: by_block(x, 64, np.sum)},
        tolerance=NEARLY,
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "syncwarp with a mask of half the lanes",
        shared_memory.syncwarp_of_too_few,
        1,
        32,
        with_output(lambda seed: floats(seed, 32), 16, np.float32),
        lambda x, sums: {1: x[:16] + x[16:]},
        needs=SYNCWARP,
        kind="race",
        may_also=UNINITIALISED,
        right_in_lockstep=True,
    ),
    Fault(
        "scan in place with one barrier a step",
        shared_memory.scan_in_place,
        1,
        64,
        with_output(lambda seed: (whole(seed, 64, -9, 9),), 64, np.int32),
        lambda x, out: {1: np.cumsum(x)},
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "tile transposed over itself",
        shared_memory.transpose_over_itself,
        1,
        (8, 8),
        lambda seed: tuple(floats(seed, (8, 8))),
        lambda x: {0: x.T},
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "softmax that uses its buffer again too early",
        shared_memory.softmax_buffer_used_again,
        2,
        64,
        with_output(lambda seed: floats(seed, (2, 64)), (2, 64), np.float32),
        lambda x, out: {1: softmax(x)},
        tolerance=NEARLY,
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "pivot read without a barrier",
        shared_memory.pivot_without_barrier,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: x - x[0]},
        kind="race",
        may_also=UNINITIALISED,
        right_in_lockstep=True,
    ),
    Fault(
        "shared histogram without atomics",
        shared_memory.shared_histogram_without_atomics,
        1,
        64,
        with_output(lambda seed: (whole(seed, 64, 0, 16),), 16, np.int32),
        counts_of,
        kind="race",
    ),
    Fault(
        "counting before all bins are clear",
        shared_memory.counting_before_all_is_clear,
        1,
        64,
        with_output(lambda seed: (whole(seed, 64, 0, 16),), 16, np.int32),
        counts_of,
        kind="race",
        may_also=UNINITIALISED,
        right_in_lockstep=True,
    ),
    Fault(
        "bins read before all is counted",
        shared_memory.reading_before_all_is_counted,
        1,
        64,
        with_output(lambda seed: (whole(seed, 64, 0, 16),), 16, np.int32),
        counts_of,
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "column sums without atomics",
        shared_memory.column_sums_without_atomics,
        1,
        (8, 8),
        with_output(lambda seed: floats(seed, (8, 8)), 8, np.float32),
        lambda x, sums: {1: x.sum(axis=0)},
        tolerance=NEARLY,
        kind="race",
    ),
)

IN_GLOBAL_MEMORY = (
    Fault(
        "histogram without atomics",
        global_memory.histogram_without_atomics,
        2,
        32,
        with_output(lambda seed: (whole(seed, 60, 0, 16),), 16, np.int32),
        counts_of,
        kind="race",
    ),
    Fault(
        "blocks add to one word",
        global_memory.blocks_add_to_one_word,
        3,
        32,
        with_output(lambda seed: floats(seed, 96), 1, np.float32),
        lambda x, total: {1: np.array([x.sum()])},
        tolerance=NEARLY,
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "two blocks write one row",
        global_memory.blocks_write_one_row,
        2,
        32,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: x},
        kind="race",
    ),
    Fault(
        "stencil in place over the blocks' edges",
        global_memory.neighbours_in_place,
        2,
        32,
        lambda seed: tuple(floats(seed, 64)),
        inner_sums,
        kind="race",
    ),
    Fault(
        "neighbour that another block writes",
        global_memory.neighbour_of_another_block,
        2,
        32,
        lambda seed: (*floats(seed, 64), *np.zeros((2, 64), np.float32)),
        lambda x, doubled, out: {1: 2 * x, 2: np.append(np.float32(0), np.diff(2 * x))},
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "stencil launched with one array for input and output",
        global_memory.three_point_sum,
        1,
        64,
        lambda seed: tuple(floats(seed, 64)) * 2,
        three_point,
        needs=frozenset({"aliasing"}),
        kind="race",
        right_in_lockstep=True,
    ),
    Fault(
        "counter read back after the atomic",
        global_memory.count_read_back,
        1,
        32,
        lambda seed: (whole(seed, 32, -9, 9), np.zeros(1, np.int32), np.zeros(32, np.int32)),
        lambda x, count, places: {1: np.array([(x > 0).sum()]), 2: np.where(x > 0, np.cumsum(x > 0), 0)},
        kind="race",
    ),
    Fault(
        "transpose in place by both threads of a pair",
        global_memory.transpose_by_everybody,
        1,
        (8, 8),
        lambda seed: tuple(floats(seed, (8, 8))),
        lambda x: {0: x.T},
        kind="race",
        right_in_lockstep=True,
    ),
)

OUT_OF_BOUNDS = (
    Fault(
        "load without a guard",
        bounds.load_without_guard,
        2,
        32,
        with_output(lambda seed: floats(seed, 50), 50, np.float32),
        lambda x, out: {1: 2 * x},
        kind="out-of-bounds",
        right_in_lockstep=True,
    ),
    Fault(
        "store without a guard",
        bounds.store_without_guard,
        2,
        32,
        with_output(lambda seed: floats(seed, 50), 50, np.float32),
        lambda x, out: {1: 2 * x},
        kind="out-of-bounds",
        right_in_lockstep=True,
    ),
    Fault(
        "neighbour past the end",
        bounds.neighbour_past_the_end,
        2,
        32,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: np.roll(x, -1) - np.roll(x, 1)},
        kind="out-of-bounds",
    ),
    Fault(
        "indices of the output not swapped",
        bounds.indices_swapped,
        (3, 2),
        (8, 8),
        with_output(lambda seed: floats(seed, (13, 21)), (21, 13), np.float32),
        lambda x, out: {1: x.T},
        kind="out-of-bounds",
    ),
    Fault(
        "columns past the end of a row",
        bounds.rows_run_over,
        (2, 2),
        (8, 8),
        product(16, 13, 16),
        of_product,
        tolerance=NEARLY,
        kind="out-of-bounds",
        right_in_lockstep=True,
    ),
    Fault(
        "shared array too small",
        bounds.shared_array_too_small,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: x[::-1]},
        kind="out-of-bounds",
    ),
    Fault(
        "halo with room on one side",
        bounds.halo_of_one_side,
        2,
        32,
        lambda seed: (*floats(seed, 64, 5), np.zeros(64, np.float32)),
        lambda x, taps, out: {2: np.correlate(np.pad(x, 2), taps, "valid")},
        tolerance=NEARLY,
        kind="out-of-bounds",
    ),
    Fault(
        "launched with too few bytes of shared memory",
        bounds.launched_with_too_few_bytes,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: x[::-1]},
        shared_bytes=128,
        kind="out-of-bounds",
    ),
    Fault(
        "atomic on a bin past the last",
        bounds.bin_past_the_last,
        1,
        32,
        with_output(lambda seed: (np.append(whole(seed, 30, 0, 16), 16),), 16, np.int32),
        lambda x, counts: {1: np.bincount(x)[:16]},
        kind="out-of-bounds",
        right_in_lockstep=True,
    ),
    Fault(
        "local array too small",
        bounds.local_array_too_small,
        1,
        32,
        with_output(lambda seed: floats(seed, (32, 5)), (32, 4), np.float32),
        lambda x, out: {1: x[:, 3::-1]},
        kind="out-of-bounds",
        right_in_lockstep=True,
    ),
)

DIVERGENT_BARRIERS = (
    Fault(
        "barrier inside the branch of a reduction",
        barriers.barrier_in_branch,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 1, np.float32),
        lambda x, sums: {1: by_block(x, 64, np.sum)},
        tolerance=NEARLY,
        kind="divergent-barrier",
        may_also=RACE,
        right_in_lockstep=True,
    ),
    Fault(
        "a barrier in each branch",
        barriers.barrier_in_both_branches,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: np.where(np.arange(64) < 32, -x[::-1], x[::-1])},
        kind="divergent-barrier",
        may_also=RACE,
        right_in_lockstep=True,
    ),
    Fault(
        "barrier in loops of different length",
        barriers.loops_of_different_length,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: np.choose(np.arange(64) % 3, [x, 2 * x + 1, 3 * x + 3])},
        tolerance=NEARLY,
        kind="divergent-barrier",
        right_in_lockstep=True,
    ),
    Fault(
        "some threads break off before the barrier",
        barriers.some_break_off,
        1,
        64,
        with_output(lambda seed: (np.arange(1, 65, dtype=np.float32),), 64, np.float32),
        doubled_until_large,
        kind="divergent-barrier",
        right_in_lockstep=True,
    ),
    Fault(
        "barrier in a device function called from a branch",
        barriers.barrier_in_device_function,
        1,
        64,
        with_output(lambda seed: floats(seed, 64), 64, np.float32),
        lambda x, out: {1: np.maximum(x, 0)},
        marked=barriers.publish,
        kind="divergent-barrier",
        right_in_lockstep=True,
    ),
)

FAULTS: tuple[Fault, ...] = IN_SHARED_MEMORY + IN_GLOBAL_MEMORY + OUT_OF_BOUNDS + DIVERGENT_BARRIERS
