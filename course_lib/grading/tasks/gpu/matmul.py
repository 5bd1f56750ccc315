"""Task 06.matmul: a tiled product of any shape, its traffic bounded by its tile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close_product
from course_lib.grading.launch import Launch
from course_lib.grading.limits import (
    BusiestWarp,
    SectorsPerRequest,
    SharedRequests,
    TotalSectors,
    WavefrontsPerRequest,
)
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.gpu.shared import WARP, numbers, pieces, unwritten

SIDE = 16
#: Sectors of 16 float32 side by side: two, or three if they do not begin with a sector. A warp is two rows.
ROW, REQUEST = 3, 6


def product(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return A @ B (M, N) for A (M, K), B (K, N), summed in float64, as float32."""
    with np.errstate(invalid="ignore"):  # inf times 0 is NaN, and that is right
        return (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)


def shapes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield products of many shapes; no number is small, and nowhere are A and B alike."""
    for M, K, N, said in (
        (16, 16, 16, "one tile of each"),
        (32, 48, 16, "whole tiles"),
        (29, 23, 41, "primes"),
        (1, 1, 1, "one number"),
        (5, 7, 3, "smaller than a tile"),
        (19, 64, 33, "K is a multiple of the tile, M and N are not"),
        (16, 1, 32, "an outer product"),
        (3, 0, 5, "nothing to sum"),
        (*(int(n) for n in rng.integers(17, 48, 3)), "any shape"),
    ):
        yield Case(
            (numbers(rng, M, K), numbers(rng, K, N), unwritten(M, N)), f"A {M} x {K}, B {K} x {N}, {said}"
        )
    A, B = numbers(rng, 18, 20), numbers(rng, 20, 18)
    B[9, 5] = A[2, 9] = np.inf  # what is left in a tile from the step before must not meet them
    A[10, 9] = -np.inf
    A[4, 9] = A[12, 9] = B[9, 7] = 0  # 0 times inf is NaN
    yield Case((A, B, unwritten(18, 18)), "A 18 x 20, B 20 x 18, in each an inf that meets a 0")


def steps(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> int:
    """Return how many pairs of tiles 16 x 16 all blocks together multiply."""
    return pieces(A.shape[0], SIDE) * pieces(A.shape[1], SIDE) * pieces(B.shape[1], SIDE)


#: The product's sectors: each step brings 16 rows of a tile of A and 16 of one of B.
READS = TotalSectors(
    lambda A, B, C: 2 * SIDE * ROW * steps(A, B, C),
    "a block reads each number of its tiles once, and all its threads use it from shared memory",
    kind="load",
)
#: In each step each of the eight warps stores twice to fill the tiles, or four times if it writes zeros
#: first, and loads two numbers for each of 16 k: 8 * (4 + 32). A thread that multiplies for others
#: takes far more.
MOST_REQUESTS = SIDE * SIDE // WARP * (2 * 2 + 2 * SIDE)
LIMITS = (
    SectorsPerRequest(REQUEST),
    READS,
    WavefrontsPerRequest(1),
    SharedRequests(
        lambda A, B, C: MOST_REQUESTS * steps(A, B, C),
        f"{MOST_REQUESTS} for each step of a block, if every thread adds up its own element of C",
    ),
    BusiestWarp(
        lambda A, B, C: 48 * pieces(A.shape[1], SIDE) + 4,
        "36 for each step do, if all eight warps of a block fill the tiles and multiply",
    ),
)

SLIPS = (
    Lookalike(
        "Only the first 16 terms of each sum are there: does the loop over k go on behind the first tile?",
        lambda A, B, C: A[:, :SIDE] @ B[:SIDE] if A.shape[1] >= 2 * SIDE else None,
    ),
    Lookalike(
        "Only the last tile's terms are there: is the sum set to 0 at every step?",
        lambda A, B, C: _last_tile(A, B) if A.shape[1] > SIDE else None,
    ),
    Lookalike(
        "The terms of the last, unfinished tile are missing.",
        lambda A, B, C: _whole_tiles(A, B) if A.shape[1] % SIDE else None,
    ),
    Lookalike("That is B @ A.", lambda A, B, C: B @ A if A.shape == B.shape else None),
)


def _last_tile(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    first = (A.shape[1] - 1) // SIDE * SIDE
    return A[:, first:] @ B[first:]


def _whole_tiles(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    whole = A.shape[1] // SIDE * SIDE
    return A[:, :whole] @ B[:whole]


TASK = Task(
    id="06.matmul",
    title="Tiles of any shape",
    kind="write",
    points=3,
    difficulty=4,
    minutes=20,
    good_for="the kernel that all later ones grow from, right at every edge",
    entry="tiled",
    cases=shapes,
    reference=product,
    comparison=close_product(),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda A, B, C: (pieces(B.shape[1], SIDE), pieces(A.shape[0], SIDE)),
        block=lambda A, B, C: (SIDE, SIDE),
        result=2,
        limits=LIMITS,
    ),
    lookalikes=SLIPS,
    hints=(
        "A thread computes C[i, j]. Which two numbers does it bring to the tiles at step k0, and what should "
        "it bring where the matrix has ended?",
        "A zero: it adds nothing to any sum, so the loop over k need not know about edges. A's tile is "
        "guarded by (i, k0 + c), B's by (k0 + r, j), C by (i, j). One barrier when the tiles are full, one "
        "before the next step overwrites them. A thread without an element in C still brings its numbers.",
        "a[r, c] = A[i, k0 + c] if i < A.shape[0] and k0 + c < A.shape[1] else float32(0); b the same with "
        "B[k0 + r, j]; barrier; 16 times total += a[r, k] * b[k, c]; barrier.",
    ),
)
