"""The compiled part of the traces of loop nests: loops that write down addresses instead of multiplying.

A nest is six loops, three over blocks and three inside a block. The two outer loops inside a block are
counted through as one number, the pair; so a trace is cut into pieces between two runs of the innermost loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from course_lib.measure.jit import compiled
from course_lib.simulators.emit_panels import Chunks, Sizes
from course_lib.simulators.placement import Matrix

LOOPS = "ikj"  # the order in which sizes, blocks and strides are kept: M, K, N
#: Which loop moves a matrix down its rows and which along its columns.
AXES = {"A": "ik", "B": "kj", "C": "ij"}


def nest(sizes: Sizes, blocks: Sizes, order: str, at: Mapping[str, Matrix], kept: str, most: int) -> Chunks:
    """Yield the accesses of loops over blocks, the order ijk, and inside a block in `order`.

    `kept` is the matrix that the innermost loop does not move and that stands in a register, "" for none.
    A piece has at most `most` accesses, or one run of the innermost loop.
    """
    if not all(sizes):
        return
    strides = np.zeros((3, 3), np.uint64)  # bytes that a matrix moves when i, k or j goes up by one
    for n, (name, (down, along)) in enumerate(AXES.items()):
        strides[n, LOOPS.index(down)] = at[name].row_stride
        strides[n, LOOPS.index(along)] = at[name].itemsize
    starts = np.array([at[name].start for name in AXES], np.uint64)
    inner = np.array([LOOPS.index(loop) for loop in order])
    longest = 4 * blocks[inner[2]] + 2
    place = np.zeros(2, np.int64)  # the next block, the next pair in it
    numbers = np.array(sizes), np.array(blocks), inner, starts, strides, ["", *AXES].index(kept)
    while True:
        addresses, writes = np.empty(max(most, longest), np.uint64), np.empty(max(most, longest), np.bool_)
        made = fill(*numbers, place, longest, addresses, writes)
        if not made:
            return
        yield addresses[:made], writes[:made]


@compiled
def fill(sizes, blocks, inner, starts, strides, kept, place, longest, addresses, writes):
    """Write down accesses from `place` on until the room is used or the nest ends; return how many."""
    counts = (sizes + blocks - 1) // blocks  # blocks along i, k, j
    low, length, first = np.zeros_like(sizes), np.empty_like(sizes), starts.copy()
    made = 0
    block, pair = place
    while block < counts[0] * counts[1] * counts[2]:
        low[1] = block % counts[1] * blocks[1]  # the loops over blocks run in the order ijk
        low[2] = block // counts[1] % counts[2] * blocks[2]
        low[0] = block // (counts[1] * counts[2]) * blocks[0]
        for loop in range(3):
            length[loop] = min(blocks[loop], sizes[loop] - low[loop])
        for matrix in range(3):
            first[matrix] = starts[matrix]
            for loop in range(3):
                first[matrix] += np.uint64(low[loop]) * strides[matrix, loop]
        middle = length[inner[1]]
        while pair < length[inner[0]] * middle:
            if made + longest > len(addresses):
                place[0], place[1] = block, pair
                return made
            x, y = np.uint64(pair // middle), np.uint64(pair % middle)
            a = first[0] + x * strides[0, inner[0]] + y * strides[0, inner[1]]
            b = first[1] + x * strides[1, inner[0]] + y * strides[1, inner[1]]
            c = first[2] + x * strides[2, inner[0]] + y * strides[2, inner[1]]
            made = run(a, b, c, strides[:, inner[2]], length[inner[2]], kept, addresses, writes, made)
            pair += 1
        pair = 0
        block += 1
    place[0], place[1] = block, 0
    return made


@compiled
def run(a, b, c, steps, length, kept, addresses, writes, at):
    """Write down one run of the innermost loop from place `at` on; return the place behind it."""
    if kept == 3:  # C: a sum in a register
        addresses[at], writes[at] = c, False
        at += 1
        for n in range(length):
            addresses[at + 2 * n], writes[at + 2 * n] = a, False
            addresses[at + 2 * n + 1], writes[at + 2 * n + 1] = b, False
            a += steps[0]
            b += steps[1]
        at += 2 * length
        addresses[at], writes[at] = c, True
        return at + 1
    if kept == 0:
        for n in range(length):
            here = at + 4 * n
            addresses[here], writes[here] = a, False
            addresses[here + 1], writes[here + 1] = b, False
            addresses[here + 2], writes[here + 2] = c, False
            addresses[here + 3], writes[here + 3] = c, True
            a += steps[0]
            b += steps[1]
            c += steps[2]
        return at + 4 * length
    start, moved, step = (a, b, steps[1]) if kept == 1 else (b, a, steps[0])
    addresses[at], writes[at] = start, False
    at += 1
    for n in range(length):
        here = at + 3 * n
        addresses[here], writes[here] = moved, False
        addresses[here + 1], writes[here + 1] = c, False
        addresses[here + 2], writes[here + 2] = c, True
        moved += step
        c += steps[2]
    return at + 3 * length


def nest_accesses(sizes: Sizes, blocks: Sizes, innermost: str, kept: str) -> int:
    """Return how many accesses `nest` makes."""
    steps = math.prod(sizes)
    if not steps or not kept:
        return 4 * steps
    loop = LOOPS.index(innermost)
    size, block = sizes[loop], blocks[loop]
    runs = steps // size * -(-size // block)
    return 2 * steps + 2 * runs if kept == "C" else 3 * steps + runs
