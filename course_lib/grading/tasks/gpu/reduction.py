"""Task 06.reduction: every block adds up its piece of a vector, as a tree in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.launch import Launch
from course_lib.grading.limits import (
    Atomics,
    BusiestWarp,
    SectorsPerRequest,
    SharedRequests,
    TotalSectors,
    WavefrontsPerRequest,
)
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.gpu.shared import ALIGNED, PER_SECTOR, numbers, pieces, unwritten

THREADS = 256
MOST_REQUESTS = 64  # of a block to shared memory, with its shuffles


def block_sums(x: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the sum of each piece of 256 numbers of x (n,), float32; the last piece may be shorter."""
    return _by_pieces(x, lambda piece: piece)


def _by_pieces(x: np.ndarray, part) -> np.ndarray:
    """Return the sums of what `part` takes of each piece."""
    wide = x.astype(np.float64)
    found = [part(wide[first : first + THREADS]).sum() for first in range(0, len(x), THREADS)]
    return np.array(found, np.float32)


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    for n in (256, 1, 31, 257, 768, int(rng.integers(300, 500)), int(rng.integers(1100, 1500))):
        x = numbers(rng, n)
        blocks = pieces(n, THREADS)
        yield Case(
            (x, unwritten(blocks)), f"x has length {n}, the grid {blocks} block{'s' * (blocks > 1)} of 256"
        )


#: The tree adds with 4, 2, 1 and five times again 1 warp: 12 times two loads and a store. With the 8 stores
#: of the filling and the last load these are 45 requests; 64 leave room for other trees. The one that asks
#: for t % (2 * s) == 0 needs 150, as nearly every warp has some thread that adds; a thread alone needs 264.
#: With shuffles: 5 for each of 8 warps, 8 stores, a load and 3 or 5 shuffles more, at most 54. And x is read
#: once, 32 numbers at a time: a thread that adds alone from global memory touches each sector eight times.
LIMITS = (
    SectorsPerRequest(ALIGNED),
    TotalSectors(
        lambda x, sums: pieces(len(x), PER_SECTOR) + 2 * len(sums),
        "every sector of x once, 32 neighbours at a time, and two for each block's sum; the adding happens "
        "in shared memory, or between the lanes of a warp",
    ),
    WavefrontsPerRequest(1),
    Atomics(lambda x, sums: len(sums), "one for a block at most, the tree does the rest"),
    SharedRequests(
        lambda x, sums: MOST_REQUESTS * len(sums),
        "64 for each block, if the threads that add are neighbours, so that whole warps have nothing to do",
    ),
    BusiestWarp(lambda x, sums: 36, "28 do, three at each of the tree's eight levels and four besides"),
)

TASK = Task(
    id="06.reduction",
    title="A tree of sums",
    kind="write",
    points=3,
    difficulty=3,
    minutes=20,
    good_for="the pattern behind every sum, maximum and norm on a GPU",
    entry="block_sums",
    cases=_vectors,
    reference=block_sums,
    comparison=close(rtol=1e-5, atol=1e-3),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda x, sums: (len(sums),), block=lambda x, sums: (THREADS,), result=1, limits=LIMITS
    ),
    lookalikes=(
        Lookalike(
            "Do you add to `sums`? NaN stands there before the launch, and NaN plus anything is NaN: store "
            "the "
            "sum of the block, once.",
            fits=lambda got, x, sums: bool(np.isnan(got).all()),
        ),
        Lookalike(
            "Those are the sums of the first 128 numbers of each block: the tree must begin with half = 128.",
            lambda x, sums: _by_pieces(x, lambda piece: piece[:128]) if len(x) > 128 else None,
        ),
        Lookalike(
            "Those are the sums of every second number: the tree ends a level too early.",
            lambda x, sums: _by_pieces(x, lambda piece: piece[::2]) if len(x) > 1 else None,
        ),
        Lookalike(
            "That is the first number of each block: is anything added to it?",
            lambda x, sums: x[::THREADS] if len(x) > 1 else None,
        ),
        Lookalike("Each block continues the sum of the one before it.", lambda x, sums: np.cumsum(x)[-1:]),
    ),
    hints=(
        "256 numbers lie in shared memory. If 128 threads add one number each, how many are left, where "
        "should they lie, and which threads can go home?",
        "Thread t adds number t + half to number t, for half = 128, 64, … 1, with a barrier before every "
        "level which all 256 threads reach. The threads that add are then neighbours: no bank conflicts, and "
        "whole warps are idle. Where x has ended, 0 stands in shared memory.",
        "while half > 0: cuda.syncthreads(); if t < half: part[t] += part[t + half]; then half //= 2. In the "
        "end thread 0 stores part[0].",
    ),
)
