"""Task 06.transpose: rows are read and rows are written; the turn happens in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.launch import Launch
from course_lib.grading.limits import BusiestWarp, SectorsPerRequest, TotalSectors, WavefrontsPerRequest
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.gpu.shared import ANYWHERE, exact_sectors, numbers, pieces, unwritten

SIDE, ROWS = 32, 8  # of a tile; rows of threads in a block


def transpose(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A.T (N, M) for A (M, N), float32, in rows."""
    return np.ascontiguousarray(A.T)


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, said in (
        (64, 64, "square, whole tiles"),
        (96, 32, "whole tiles"),
        (37, 53, "no multiples of a tile"),
        (1, 70, "a single row"),
        (33, 1, "a single column"),
        (1, 1, "a single element"),
        (int(rng.integers(5, 30)), int(rng.integers(40, 90)), "any shape"),
        (int(rng.integers(65, 90)), int(rng.integers(33, 60)), "any shape"),
    ):
        yield Case((numbers(rng, M, N), unwritten(N, M)), f"A {M} x {N}, {said}")


def _tiles(A: np.ndarray, turn_tiles: bool) -> np.ndarray | None:
    """Return A with its tiles in the transposed places, each unturned; or each turned in its old place."""
    if A.shape[0] != A.shape[1] or A.shape[0] % SIDE or A.shape[0] == SIDE:
        return None
    n = A.shape[0] // SIDE
    tiles = A.reshape(n, SIDE, n, SIDE)
    return tiles.transpose((0, 3, 2, 1) if turn_tiles else (2, 1, 0, 3)).reshape(A.shape)


def _rows_left_out(got: np.ndarray) -> bool:
    """Return whether the first 8 of every 32 rows are there and all others are not."""
    nobody = np.isnan(got)
    late = np.arange(len(got)) % SIDE >= ROWS
    return bool(late.any() and nobody[late].all() and not nobody[~late].any())


#: Every row of A is read once and every row of B is written once, in pieces of 32: 4 or 5 sectors each.
LIMITS = (
    SectorsPerRequest(ANYWHERE),
    WavefrontsPerRequest(1),
    TotalSectors(
        lambda A, B: exact_sectors(*A.shape) + exact_sectors(*B.shape),
        "every row of A and of B once, 32 neighbours at a time",
    ),
    BusiestWarp(
        lambda A, B: 24,
        "with the tile's 32 rows shared by eight warps, four reads and four writes in each memory do, 16 in "
        "all",
    ),
)

TASK = Task(
    id="06.transpose",
    title="Rows in, rows out",
    kind="write",
    points=3,
    difficulty=3,
    minutes=20,
    good_for="using shared memory to change the order of a copy, the cure for most strided accesses",
    entry="transpose",
    cases=_matrices,
    reference=transpose,
    comparison=exact(),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda A, B: (pieces(A.shape[1], SIDE), pieces(A.shape[0], SIDE)),
        block=lambda A, B: (SIDE, ROWS),
        result=1,
        limits=LIMITS,
    ),
    lookalikes=(
        Lookalike(
            "Only a part of each tile is there: a block has 32 x 8 threads and a tile 32 x 32 elements, so "
            "each thread has four elements of each tile, 8 rows apart.",
            fits=lambda got, A, B: _rows_left_out(got) or _rows_left_out(got.T),
        ),
        Lookalike(
            "That is A itself: nothing is turned.", lambda A, B: A if A.shape[0] == A.shape[1] else None
        ),
        Lookalike(
            "The tiles are in their places, but not turned inside: read the tile by columns.",
            lambda A, B: _tiles(A, turn_tiles=False),
        ),
        Lookalike(
            "Every tile is turned inside, but stays where it was: B's tile begins at (j0, i0).",
            lambda A, B: _tiles(A, turn_tiles=True),
        ),
    ),
    hints=(
        "A warp reads 32 neighbours of a row of A. Where in B do they go, and what would be 32 neighbours of "
        "a row of B?",
        "Copy a tile of 32 x 32 from A into shared memory by rows, wait, and write it to B by rows, reading "
        "the tile by columns. Each thread has four elements of each. Guard reading with A's shape and "
        "writing with B's. A column of a tile 32 wide lies in one bank.",
        "Read: tile[r, x] = A[i0 + r, j0 + x] for r = y, y + 8, …; write: B[j0 + r, i0 + x] = tile[x, r], "
        "both guarded, a barrier between; and the tile has a 33rd column that nobody uses.",
    ),
)
