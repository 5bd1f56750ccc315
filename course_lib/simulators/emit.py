"""The compiled part of the traces: loop nests that write down addresses instead of multiplying.

A nest is six loops, three over blocks and three inside a block. The two outer loops inside a block are
counted through as one number, the pair; so a trace is cut into pieces between two runs of the innermost loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from course_lib.measure.jit import compiled
from course_lib.simulators.placement import Matrix

LOOPS = "ikj"  # the order in which sizes, blocks and strides are kept: M, K, N
#: Which loop moves a matrix down its rows and which along its columns.
AXES = {"A": ("i", "k"), "B": ("k", "j"), "C": ("i", "j")}
IN_REGISTER = {"": 0, "A": 1, "B": 2, "C": 3}


class Nest:
    """Numbers that describe a nest to the compiled loops."""

    def __init__(
        self,
        sizes: tuple[int, int, int],
        blocks: tuple[int, int, int],
        order: str,
        matrices: Mapping[str, Matrix],
        register: str,
    ) -> None:
        """`order` names the loops inside a block from outside in."""
        self.sizes, self.blocks = np.array(sizes, np.int64), np.array(blocks, np.int64)
        self.outer, self.inner = (np.array([LOOPS.index(x) for x in loops]) for loops in ("ijk", order))
        self.starts = np.array([matrices[name].start for name in AXES], np.uint64)
        self.strides = np.zeros((3, 3), np.uint64)  # (matrices, loops): bytes when i, k or j goes up by one
        for n, (name, (down, along)) in enumerate(AXES.items()):
            self.strides[n, LOOPS.index(down)] = matrices[name].row_stride
            self.strides[n, LOOPS.index(along)] = matrices[name].column_stride
        self.register = IN_REGISTER[register]  # of the matrix that the innermost loop does not move

    def accesses(self) -> int:
        """Return how many accesses the nest makes in all."""
        M, K, N = (int(size) for size in self.sizes)
        steps = M * K * N
        if not steps or not self.register:
            return 4 * steps
        innermost = int(self.inner[2])
        size, block = int(self.sizes[innermost]), int(self.blocks[innermost])
        runs = steps // size * -(-size // block)
        return 2 * steps + 2 * runs if self.register == IN_REGISTER["C"] else 3 * steps + runs

    def chunks(self, length: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (addresses, writes) of about `length` accesses each: whole runs of the innermost loop."""
        if not self.sizes.all():
            return
        longest = 4 * int(self.blocks[self.inner[2]]) + 2
        room = max(length, longest)
        place = np.zeros(2, np.int64)  # the next block, the next pair in it
        numbers = self.sizes, self.blocks, self.outer, self.inner, self.starts, self.strides, self.register
        while True:
            addresses, writes = np.empty(room, np.uint64), np.empty(room, np.bool_)
            made = fill(*numbers, place, longest, addresses, writes)
            if not made:
                return
            yield addresses[:made], writes[:made]


@compiled
def fill(sizes, blocks, outer, inner, starts, strides, register, place, longest, addresses, writes):
    """Write down accesses from `place` on until the room is used or the nest ends; return how many."""
    counts = np.empty(3, np.int64)  # blocks along i, k, j
    for loop in range(3):
        counts[loop] = (sizes[loop] + blocks[loop] - 1) // blocks[loop]
    all_blocks = counts[0] * counts[1] * counts[2]
    low, high = np.empty(3, np.int64), np.empty(3, np.int64)
    made = 0
    block, pair = place
    while block < all_blocks:
        rest = block
        for n in range(2, -1, -1):  # the digits of the block's number are its place along each loop
            loop = outer[n]
            low[loop] = rest % counts[loop] * blocks[loop]
            high[loop] = min(low[loop] + blocks[loop], sizes[loop])
            rest //= counts[loop]
        middle = high[inner[1]] - low[inner[1]]
        pairs = (high[inner[0]] - low[inner[0]]) * middle
        length = high[inner[2]] - low[inner[2]]
        while pair < pairs:
            if made + longest > len(addresses):
                place[0], place[1] = block, pair
                return made
            x, y, z = low[inner[0]] + pair // middle, low[inner[1]] + pair % middle, low[inner[2]]
            a = start_of(starts, strides, 0, inner, x, y, z)
            b = start_of(starts, strides, 1, inner, x, y, z)
            c = start_of(starts, strides, 2, inner, x, y, z)
            steps = strides[0, inner[2]], strides[1, inner[2]], strides[2, inner[2]]
            made = run(a, b, c, steps, length, register, addresses, writes, made)
            pair += 1
        pair = 0
        block += 1
    place[0], place[1] = block, 0
    return made


@compiled
def start_of(starts, strides, matrix, inner, x, y, z):
    """Return the address of a matrix's element at the start of a run of the innermost loop."""
    return (
        starts[matrix]
        + np.uint64(x) * strides[matrix, inner[0]]
        + np.uint64(y) * strides[matrix, inner[1]]
        + np.uint64(z) * strides[matrix, inner[2]]
    )


@compiled
def run(a, b, c, steps, length, register, addresses, writes, at):
    """Write down one run of the innermost loop from place `at` on; return the place behind it."""
    if register == 3:  # C: a sum in a register
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
    if register == 0:
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
    kept, moved, step = (a, b, steps[1]) if register == 1 else (b, a, steps[0])
    addresses[at], writes[at] = kept, False
    at += 1
    for n in range(length):
        here = at + 3 * n
        addresses[here], writes[here] = moved, False
        addresses[here + 1], writes[here + 1] = c, False
        addresses[here + 2], writes[here + 2] = c, True
        moved += step
        c += steps[2]
    return at + 3 * length
