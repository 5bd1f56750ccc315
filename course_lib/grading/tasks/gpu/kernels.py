"""Tasks of chapter 06 on whole kernels: sums, a transpose, products and a softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import close, close_product
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.launch import (
    Atomics,
    BusiestWarp,
    Launch,
    SectorsPerRequest,
    SharedRequests,
    TotalSectors,
    WavefrontsPerRequest,
)
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.gpu.shared import (
    ALIGNED,
    ANYWHERE,
    PER_SECTOR,
    WARP,
    exact_sectors,
    has_computed_nan,
    numbers,
    pieces,
    row_sectors,
    unwritten,
)

# --- 06.reduction: every block adds up its piece of a vector, as a tree in shared memory --------------------

THREADS = 256
REDUCTION_MOST_REQUESTS = 100  # of a block to shared memory, with its shuffles


def block_sums(x: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Return the sum of each piece of 256 numbers of x (n,), float32; the last piece may be shorter."""
    return _by_pieces(x, lambda piece: piece)


def _by_pieces(x: np.ndarray, part: Callable) -> np.ndarray:
    wide = x.astype(np.float64)
    found = [part(wide[first : first + THREADS]).sum() for first in range(0, len(x), THREADS)]
    return np.array(found, np.float32)


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    whole, rest = (
        (0, 1, between(3, 5)),  # 4 and more: beyond number 1023
        (0, 1, between(2, 32), 32, 33, between(34, 128), 128, between(129, 256)),
    )
    sizes = "", ", numbers from 1 to 1e30", ", all of it 0"
    rows = every_pair(rng, lambda row: not (row["whole"] or row["rest"]), whole=whole, rest=rest, said=sizes)
    lengths = ((row["said"], THREADS * row["whole"] + row["rest"]) for row in rows)
    for said, n in (("", THREADS), *sorted(lengths)):
        blocks, x = pieces(n, THREADS), numbers(rng, n)
        if "1e30" in said:  # of one sign: nothing cancels, so any order of adding is close
            x = (np.abs(x) * 10 ** rng.uniform(0, 30, n)).astype(np.float32)
            if blocks > 1:  # the other blocks show their numbers
                x[rng.integers(n)] = odd = rng.choice((np.nan, np.inf, -np.inf))
                said += f", one is {odd:g}"
        elif said:
            x[:] = 0
        label = f"x has length {n}, the grid {blocks} block{'s' * (blocks > 1)} of 256{said}"
        yield Case((x, unwritten(blocks)), label)


#: The tree adds with 4, 2, 1 and five times again 1 warp: 12 times two loads and a store. With the 8 stores
#: of the filling and the last load these are 45 requests; 100 leave room for other trees. The one that asks
#: for t % (2 * s) == 0 needs 150, as nearly every warp has some thread that adds; a thread alone needs 264.
#: With shuffles: 5 for each of 8 warps, 8 stores, a load and 3 or 5 shuffles more, at most 54, or 99 with
#: float64, which counts twice. And x is read once, 32 numbers at a time: a thread that adds alone from global
#: memory touches each sector eight times.
REDUCTION_LIMITS = (
    SectorsPerRequest(ALIGNED),
    TotalSectors(
        lambda x, sums: pieces(len(x), PER_SECTOR) + 2 * len(sums),
        "every sector of x once, 32 neighbours at a time, and two for each block's sum; the adding happens "
        "in shared memory, or between the lanes of a warp",
    ),
    WavefrontsPerRequest(1),
    Atomics(lambda x, sums: len(sums), "one for a block at most, the tree does the rest"),
    SharedRequests(
        lambda x, sums: REDUCTION_MOST_REQUESTS * len(sums),
        "if the threads that add are neighbours, so that whole warps have nothing to do (100 for each block)",
    ),
    BusiestWarp(lambda x, sums: 36, "28 do, three at each of the tree's eight levels and four besides"),
)

REDUCTION = Task(
    id="06.reduction",
    title="A tree of sums",
    minutes=20,
    cases=_vectors,
    reference=block_sums,
    comparison=close(rtol=1e-5, atol=1e-3),
    launch=Launch(grid=lambda x, sums: (len(sums),), block=(THREADS,), limits=REDUCTION_LIMITS),
    lookalikes={
        "Do you add to `sums`? NaN stands there before the launch, and NaN plus anything is NaN: store the "
        "sum of the block, once.": lambda got, x, sums: bool(np.isnan(got).all()),
        "Those are the sums of the first 128 numbers of each block: "
        "the tree must begin with half = 128.": lambda x, sums: _by_pieces(x, lambda piece: piece[:128]),
        "Those are the sums of every second number: the tree ends a level too early.": lambda x, sums: (
            _by_pieces(x, lambda piece: piece[::2])
        ),
        "Behind the end of x its last number is added again; 0 must stand there.": (
            lambda x, sums: block_sums(np.pad(x, (0, -len(x) % THREADS), mode="edge"), sums)
        ),
        "That is the first number of each block: is anything added to it?": (lambda x, sums: x[::THREADS]),
        "Each block continues the sum of the one before it.": lambda x, sums: np.cumsum(x)[-1:],
    },
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


# --- 06.transpose: rows are read and rows are written; the turn happens in shared memory --------------------

TURNED_SIDE, TRANSPOSE_ROWS = 32, 8  # of a tile; rows of threads in a block


def transpose(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return A.T (N, M) for A (M, N), float32, in rows."""
    return np.ascontiguousarray(A.T)


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    sides = (1, between(2, 9), between(9, 32), 32, between(33, 97))
    # no number may stand for a place of the tile that nobody filled
    rows = every_pair(rng, M=sides, N=sides, often=("", 0.0, np.inf, -np.inf, np.nan))
    plain = ({"M": M, "N": N, "often": ""} for M, N in ((64, 64), (96, 32), (67, 69)))
    for row in (*plain, *sorted(rows, key=lambda row: (row["often"] != "", row["M"] * row["N"]))):
        M, N, often = row.values()
        A, said = numbers(rng, M, N), ""
        if often != "":
            A[rng.random((M, N)) < 0.5], said = often, f", about half of it {often:g}"
        yield Case((A, unwritten(N, M)), f"A {M} x {N}{said}")


def _tiles(A: np.ndarray, turn_tiles: bool) -> np.ndarray | None:
    """Return A with its tiles in the transposed places, each unturned; or each turned in its old place."""
    if A.shape[0] != A.shape[1] or A.shape[0] % TURNED_SIDE or A.shape[0] == TURNED_SIDE:
        return None
    n = A.shape[0] // TURNED_SIDE
    tiles = A.reshape(n, TURNED_SIDE, n, TURNED_SIDE)
    return tiles.transpose((0, 3, 2, 1) if turn_tiles else (2, 1, 0, 3)).reshape(A.shape)


def _rows_left_out(got: np.ndarray) -> bool:
    nobody = np.isnan(got)
    late = np.arange(len(got)) % TURNED_SIDE >= TRANSPOSE_ROWS
    return bool(late.any() and nobody[late].all() and not nobody[~late].any())


#: Every row of A is read once and every row of B is written once, in pieces of 32: 4 or 5 sectors each.
TRANSPOSE_LIMITS = (
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

TRANSPOSE = Task(
    id="06.transpose",
    title="Rows in, rows out",
    minutes=20,
    cases=_matrices,
    reference=transpose,
    launch=Launch(
        grid=lambda A, B: (pieces(A.shape[1], TURNED_SIDE), pieces(A.shape[0], TURNED_SIDE)),
        block=(TURNED_SIDE, TRANSPOSE_ROWS),
        limits=TRANSPOSE_LIMITS,
    ),
    lookalikes={
        "Only a part of each tile is there: a block has 32 x 8 threads and a tile 32 x 32 elements, so "
        "each thread has four elements of each tile, 8 rows apart.": (
            lambda got, A, B: _rows_left_out(got) or _rows_left_out(got.T)
        ),
        "That is A itself: nothing is turned.": lambda A, B: A if A.shape[0] == A.shape[1] else None,
        "The tiles are in their places, but not turned inside: read the tile by columns.": (
            lambda A, B: _tiles(A, turn_tiles=False)
        ),
        "Every tile is turned inside, but stays where it was: B's tile begins at (j0, i0).": (
            lambda A, B: _tiles(A, turn_tiles=True)
        ),
    },
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


# --- 06.matmul: a tiled product of any shape, its traffic bounded by its tile -------------------------------

SIDE = 16
#: Sectors of 16 float32 side by side: two, or three if they do not begin with a sector. A warp is two rows.
ROW, REQUEST = 3, 6


def product(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return A @ B (M, N) for A (M, K), B (K, N), summed in float64, as float32."""
    with np.errstate(invalid="ignore"):  # inf times 0 is NaN, and that is right
        return (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)


#: Numbers of A's last column and B's last row: read again behind the end, an inf is no harmless number.
LAST = ((1, 1), (0, np.nan), (np.nan, 0), (-np.inf, 1), (1, np.inf))


def shapes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield products of many shapes; no number is small, and nowhere are A and B alike."""
    sides, inner = (1, between(2, 9), 32, between(17, 48)), (0, 1, between(2, 16), 16, between(17, 49))
    rows = every_pair(rng, _has_no_last, M=sides, K=inner, N=sides, last=LAST)
    hard = sorted(rows, key=lambda row: (row["last"] != LAST[0], row["M"] * row["K"] * row["N"]))
    plain = ((M, K, N, LAST[0]) for M, K, N in ((16, 16, 16), (32, 48, 16), (29, 23, 41), (2, 300, 3)))
    for M, K, N, last in (*plain, *(row.values() for row in hard)):
        A, B, said = numbers(rng, M, K), numbers(rng, K, N), ""
        if last != LAST[0]:
            A[[0, -1], -1], B[-1, [0, -1]] = last  # rows 0 and 31 are of both halves of a tile
            said = f", {last[0]:g} in A's last column, {last[1]:g} in B's last row"
        yield Case((A, B, unwritten(M, N)), f"A {M} x {K}, B {K} x {N}{said}")
    # whichever row of B or column of A is read again behind the end, or left in a tile, it holds an inf
    A, B = numbers(rng, 20, 20), numbers(rng, 20, 20)
    infinite = np.where(np.eye(20, dtype=bool), np.float32(np.inf), A)
    yield Case((A[:3].copy(), infinite, unwritten(3, 20)), "A 3 x 20, B 20 x 20, each row of B with an inf")
    yield Case((infinite, B[:, :3].copy(), unwritten(20, 3)), "A 20 x 20, each column with an inf, B 20 x 3")


def _has_no_last(row: dict) -> bool:
    return row["last"] != LAST[0] and row["K"] == 0


def steps(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> int:
    """Return how many pairs of tiles 16 x 16 all blocks together multiply."""
    return pieces(A.shape[1], SIDE) * blocks(A, B, C)


def blocks(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> int:
    """Return how many blocks there are."""
    return pieces(A.shape[0], SIDE) * pieces(B.shape[1], SIDE)


#: The product's sectors: each step brings 16 rows of a tile of A and 16 of one of B.
READS = TotalSectors(
    lambda A, B, C: 2 * SIDE * ROW * steps(A, B, C),
    "a block reads each number of its tiles once, and all its threads use it from shared memory",
    kind="load",
)
#: In each step each of the eight warps stores twice to fill the tiles, or four times if it writes zeros
#: first, and loads two numbers for each of 16 k: 8 * (4 + 32). A thread that multiplies for others
#: takes far more.
TILED_REQUESTS = SIDE * SIDE // WARP * (2 * 2 + 2 * SIDE)
#: Of a block that writes zeros before its first step, into each place of both tiles; K may be 0.
ZEROS = 2 * SIDE * SIDE // WARP
MATMUL_LIMITS = (
    SectorsPerRequest(REQUEST),
    READS,
    WavefrontsPerRequest(1),
    SharedRequests(
        lambda A, B, C: TILED_REQUESTS * steps(A, B, C) + ZEROS * blocks(A, B, C),
        f"{TILED_REQUESTS} for each step of a block and {ZEROS} besides, if every thread adds up its own "
        "element of C",
    ),
    BusiestWarp(
        lambda A, B, C: 48 * pieces(A.shape[1], SIDE) + 4,
        "36 for each step do, if all eight warps of a block fill the tiles and multiply",
    ),
)

SLIPS = {
    "NaN where an inf stands in A or B: behind the end of K both tiles need zeros. A number that is read "
    "again, or left over, is not harmless because the other factor is 0: 0 * inf is NaN.": (
        lambda got, A, B, C: has_computed_nan(np.where(np.isnan(product(A, B, C)), C, got))
    ),
    "Only the first 16 terms of each sum are there: does the loop over k go on behind the first tile, and "
    "do both tiles end with K?": (lambda A, B, C: A[:, :SIDE] @ B[:SIDE] if A.shape[1] >= 2 * SIDE else None),
    "Each sum has only as many terms as A has rows; they end where A's columns end.": (
        lambda A, B, C: A[:, : len(A)] @ B[: len(A)] if SIDE < len(A) < A.shape[1] else None
    ),
    "Only the last tile's terms are there: is the sum set to 0 at every step?": (
        lambda A, B, C: A[:, (k := (A.shape[1] - 1) // SIDE * SIDE) :] @ B[k:] if A.shape[1] > SIDE else None
    ),
    "The terms of the last, unfinished tile are missing.": (
        lambda A, B, C: A[:, : (k := A.shape[1] // SIDE * SIDE)] @ B[:k] if A.shape[1] % SIDE else None
    ),
    "The last term of each sum is missing: the last column of A is number K - 1, as is the last row of B.": (
        lambda A, B, C: A[:, :-1] @ B[:-1]
    ),
    "Behind the end of K the last column of A and the last row of B are read again, and their products are "
    "added once more.": lambda A, B, C: A @ B + -A.shape[1] % SIDE * np.outer(A[:, -1], B[-1]),
    "Behind the end of K the tiles still hold numbers of the step before, and their products are added.": (
        lambda A, B, C: (
            A @ B + A[:, (old := slice(A.shape[1] - SIDE, A.shape[1] // SIDE * SIDE))] @ B[old]
            if A.shape[1] > SIDE and A.shape[1] % SIDE
            else None
        )
    ),
    "That is B @ A.": lambda A, B, C: B @ A if A.shape == B.shape else None,
}


MATMUL = Task(
    id="06.matmul",
    title="Tiles of any shape",
    difficulty=4,
    minutes=20,
    entry="tiled",
    cases=shapes,
    reference=product,
    comparison=close_product(),
    launch=Launch(
        grid=lambda A, B, C: (pieces(B.shape[1], SIDE), pieces(A.shape[0], SIDE)),
        block=(SIDE, SIDE),
        limits=MATMUL_LIMITS,
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


# --- 06.register: a thread computes two elements of C, and a number of B serves both from a register --------

THREAD_ROWS = 8  # of threads in a block: half of the tile's
WARPS = SIDE * THREAD_ROWS // WARP


def most_requests(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> int:
    """Return the requests to shared memory with a register tile of two rows.

    In each step a warp (of four) stores 2 + 2 times to fill the tiles, or twice as often if it writes zeros
    first, and then loads, for each of 16 k, one number of B and two of A: 4 * (8 + 16 * 3) = 224 for 4 * 32
    FMA instructions. Without the register it loads four numbers for two FMAs: 272 and more. A number that
    comes from another lane by a shuffle counts as one that is loaded. Zeros before the first step are 16.
    """
    in_a_step = WARPS * (2 * 2 * SIDE // THREAD_ROWS + SIDE * 3)
    return in_a_step * steps(A, B, C) + ZEROS * blocks(A, B, C)


TWO_ROWS_LIMITS = (
    SectorsPerRequest(REQUEST),
    READS,
    WavefrontsPerRequest(1),
    SharedRequests(
        most_requests,
        "for two FMAs three loads (or shuffles), two of A's tile and one of B's",
    ),
    BusiestWarp(
        lambda A, B, C: 72 * pieces(A.shape[1], SIDE) + 6,
        "56 for each step do, if all four warps of a block fill the tiles and multiply",
    ),
)


REGISTER = Task(
    id="06.register",
    title="Two for one",
    points=2,
    difficulty=4,
    entry="two_rows",
    cases=shapes,
    reference=product,
    comparison=close_product(),
    launch=Launch(
        grid=lambda A, B, C: (pieces(B.shape[1], SIDE), pieces(A.shape[0], SIDE)),
        block=(SIDE, THREAD_ROWS),
        limits=TWO_ROWS_LIMITS,
    ),
    lookalikes=SLIPS,
    hints=(
        "A thread has C[i, j] and C[i + 8, j]. Which numbers do their sums share at step k?",
        "B[k, j]. Read it from the tile into a variable and use it twice. With half the threads each fills "
        "two places of each tile: rows r and r + 8, with guards of their own. So has C.",
        "of_b = b[k, c]; low += a[r, k] * of_b; high += a[r + 8, k] * of_b. At the end store low if i < M "
        "and high if i + 8 < M (and j < N).",
    ),
)


# --- 06.softmax: a stable softmax of rows, a warp for each, whose lanes tell each other what they found -----

SOFTMAX_ROWS = 4  # of a block: one for each of its warps
LOADS, STORES = 3, 2  # passes over the rows
#: Of a warp: shuffles and requests to shared memory. The exchange needs 10 shuffles; 2 stores and 64 loads
#: do if every lane reads what all 32 found. A lane that adds up N numbers alone takes 2 N loads and more.
MOST_EXCHANGES = 80


def softmax(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return exp(X) with every row divided by its sum, for X (M, N) float32; computed in float64."""
    wide = X.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


#: The levels of the first and the last row, and what is said of them; no -9.9e29 is low enough, -1e30 is.
LEVELS = {1: "", 200: ", numbers around 200", -300: ", numbers around -300", -9.95e29: ", each row lower"}
#: How far one number of each row is from the others, and the share of these that is -inf.
OTHERS = {
    "": (0, 0),
    ", one number of each row far above": (3000, 0),
    ", one number of each row far below": (-5000, 0),
    ", half of it -inf, as attention masks it": (0, 0.5),
    ", all but one number of each row -inf": (0, 1),
    ", one number 15 above very many": (15, 0),  # only in a long row do powers below 1e-6 count together
}


def _rows(rng: np.random.Generator) -> Iterator[Case]:
    M, N = (1, between(2, 4), 4, 5, between(6, 12)), (1, between(2, 32), 32, 33, between(34, 150))
    rows = every_pair(rng, M=M, N=N, level=tuple(LEVELS), others=tuple(OTHERS)[:-1], apart=(6, 30))
    # in the last one a lane has 260 numbers: no local array holds them that was made for a usual row
    plain = (*((M, N, 1, "", 6) for M, N in ((4, 32), (1, 1), (3, 5))), (1, 8300, 1, tuple(OTHERS)[-1], 1))
    special = sorted((tuple(row.values()) for row in rows), key=_how_special)
    for M, N, level, others, apart in (*plain, *special):
        X = _spread(rng, M, N, apart) + np.geomspace(max(level, -300), level, M)[:, None].astype(np.float32)
        (far, masked), one = OTHERS[others], (np.arange(M), rng.integers(N, size=M))
        one[1][0] = N - 1
        kept = X[one] + far
        X[rng.random((M, N)) < masked] = -np.inf
        X[one] = kept
        others += f", up to {apart} apart" * (apart > 6)
        yield Case((X, unwritten(M, N)), f"X {M} x {N}{LEVELS[level]}{others}")
    yield Case(
        (_with_outliers(rng, 50, 97), unwritten(50, 97)), "X 50 x 97, two numbers of each row far above"
    )
    # whoever begins a number earlier, at the row's last, comes to more than 5 sectors for each request here
    yield Case((_spread(rng, 16, 63, 6), unwritten(16, 63)), "X 16 x 63")
    alone = _spread(rng, 33, 66)
    # whoever leaves one out finds no maximum there
    alone[np.arange(33), np.arange(32, 65)] = rng.uniform(1000, 5000, 33)
    yield Case((alone, unwritten(33, 66)), "X 33 x 66, one number of each row far above")


def _how_special(row: tuple[int, int, float, str, int]) -> tuple[int, float, int]:
    M, N, level, others, apart = row
    return (level != 1) + (others != "") + (apart > 6), -level, M * N


def _spread(rng: np.random.Generator, M: int, N: int, apart: int = 6) -> np.ndarray:
    return rng.uniform(-apart / 2, apart / 2, (M, N)).astype(np.float32)


def _with_outliers(rng: np.random.Generator, M: int, N: int) -> np.ndarray:
    """Return rows in each of which two numbers, 2 apart, are far above, each row at its own height."""
    X, rows, places = _spread(rng, M, N), np.arange(M), rng.permutation(N)[:M]
    X[rows, places] = rng.permutation(M) * 1000 + rng.uniform(1000, 2000)
    X[rows, places - 1] = X[rows, places] - 2
    return X


def _sum_of_lanes(X: np.ndarray) -> np.ndarray:
    wide = np.exp(X.astype(np.float64))
    sums = np.stack([wide[:, lane::WARP].sum(axis=1) for lane in range(min(WARP, X.shape[1]))], axis=1)
    return wide / sums[:, np.arange(X.shape[1]) % WARP]


def _lanes_disagree(got: np.ndarray, X: np.ndarray, Y: np.ndarray) -> bool:
    wanted = softmax(X, Y)
    counts = (wanted > 1e-20) & np.isfinite(got) & (got != 0)  # a weight left out says nothing of a sum
    factors = np.where(counts, got / np.where(counts, wanted, 1), np.nan)
    some = factors[counts.sum(axis=1) > 1]
    if np.abs(X, where=np.isfinite(X), out=np.zeros_like(X)).max() > 50:  # powers may be cut, or inexact
        return False
    return bool(len(some)) and bool((np.nanmax(some, axis=1) > 1.01 * np.nanmin(some, axis=1)).any())


#: A row of X is read three times (for the largest, the sum, the result) and one of Y written once, 32
#: neighbours at a time. With the powers kept in Y: X read twice, Y written, read, and written.
SOFTMAX_LIMITS = (
    SectorsPerRequest(ANYWHERE),
    TotalSectors(
        lambda X, Y: LOADS * row_sectors(*X.shape),
        "three passes to read the rows, 5 sectors for 32 neighbours",
        kind="load",
    ),
    TotalSectors(
        lambda X, Y: STORES * row_sectors(*X.shape),
        "two passes to write the rows, and one will do",
        kind="store",
    ),
    SharedRequests(
        lambda X, Y: MOST_EXCHANGES * SOFTMAX_ROWS * pieces(len(X), SOFTMAX_ROWS),
        f"{MOST_EXCHANGES} for each warp; each lane puts its own numbers together first, then 32 lanes "
        "exchange one number each",
    ),
    BusiestWarp(
        lambda X, Y: (LOADS + STORES) * pieces(X.shape[1], WARP) + 70,
        "a warp has one row, and the four warps of a block have four",
    ),
)

SOFTMAX = Task(
    id="06.softmax",
    title="Softmax by a warp",
    points=2,
    difficulty=4,
    cases=_rows,
    reference=softmax,
    comparison=close(rtol=1e-4, atol=1e-37),  # small weights are as right as large ones
    launch=Launch(
        grid=lambda X, Y: (pieces(len(X), SOFTMAX_ROWS),),
        block=(WARP, SOFTMAX_ROWS),
        limits=SOFTMAX_LIMITS,
    ),
    lookalikes={
        "NaN in rows whose numbers are all far below 0. Does the largest begin at a number above all these, "
        "as 0 or -1e9? It must begin at -inf.": lambda got, X, Y: X.max() < -100 and has_computed_nan(got),
        "NaN comes from inf / inf or 0 / 0 (is the row's largest number taken off before taking powers?) "
        "or from -inf - (-inf): a lane that met no number, or only -inf, has -inf for its largest.": (
            lambda got, X, Y: has_computed_nan(got)
        ),
        "Every lane divides by its own sum: the lanes' sums are not put together.": (
            lambda X, Y: _sum_of_lanes(X)
        ),
        "Those are the powers: they are not divided by their sum.": lambda X, Y: np.exp(X),
        "Those are the powers, the largest 1: they are not divided by their sum.": (
            lambda got, X, Y: (
                bool((got.sum(axis=1) > 1.1).all())  # divided by some other sum they are near 1
                and np.allclose(got, np.exp(X - X.max(axis=1, keepdims=True)), 1e-4)
            )
        ),
        "The weights of a row are all alike, and its numbers are not: cut nothing off before the largest is "
        "taken off.": lambda got, X, Y: bool(
            X.max() > 50 and (np.ptp(X, axis=1) > 1).all() and got.min() > 0 == np.ptp(got, axis=1).max()
        ),
        "The lanes of a warp divide by different sums, or took off different largest numbers: after the "
        "exchanges all 32 must know the same one. Does each lane meet those at a distance of 1, 2, 4, 8 "
        "and 16, and does every lane get the result?": _lanes_disagree,
    },
    hints=(
        "Each lane knows the largest of its own numbers. After which five exchanges does every lane know the "
        "largest of all 32?",
        "shfl_xor_sync(0xFFFFFFFF, value, n) gives the value of lane (own ^ n): take the larger of both for "
        "n = 1, 2, 4, 8, 16, then the same with sums of exp(x - largest). The larger one begins at -inf, so "
        "that a lane without numbers does no harm. Only whole warps may leave.",
        "largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, 1 << n)) for n in range(5), and in "
        "the same way total += …; Y[i, j] = math.exp(X[i, j] - largest) / total.",
    ),
)
