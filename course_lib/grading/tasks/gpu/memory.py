"""Tasks of chapter 06 on one access: which thread reads what, and what a warp costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.launch import (
    Barriers,
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
    numbers,
    pieces,
    row_sectors,
    unwritten,
)

# --- 06.sectors: how many 32-byte sectors one request of a warp touches -------------------------------------

LANES, SECTOR = 32, 32


def sectors(start: int, stride: int, size: int, piece: int = SECTOR) -> int:
    """Return how many sectors of 32 bytes 32 lanes touch; lane t reads element start + t * stride of `size`
    bytes (a power of two, at most 16: no element lies in two sectors)."""
    return len({(start + lane * stride) * size // piece for lane in range(LANES)})


def _of_bytes(places: Iterator[int]) -> int:
    return len({place // SECTOR for place in places})


#: Here each slip gives another number; in others it may give that of another slip.
PLAIN = {
    (0, 1, 16): "complex128 side by side",
    (0, 1, 8): "float64 side by side",
    (0, 1, 4): "float32 side by side",
    (5, 1, 4): "float32 side by side, from within a sector",
    (16, 3, 4): "one float32 of three, from the beginning of a sector",
    (0, 9, 4): "a column of a matrix with 9 columns",
}


def _sure(slip: Callable) -> Callable:
    return lambda *request: slip(*request) if request in PLAIN else None


def _requests(rng: np.random.Generator) -> Iterator[Case]:
    yield from (Case(request, said) for request, said in PLAIN.items())
    rows = every_pair(
        rng,
        lowest=(0, 31, 32, between(1, 16), between(16, 500)),  # 32 begins a sector, 31 is the last of one
        stride=(0, 1, -1, 2, 3, between(4, 9), between(-8, -1), 9, between(9, 33), between(-40, -8), 4096),
        size=(1, 2, 4, 8, 16),
    )
    for row in sorted(rows, key=lambda row: (row["stride"] < 0, abs(row["stride"]))):
        lowest, stride, size = row.values()
        start = lowest - min(0, 31 * stride)  # the last lane has the lowest if stride < 0
        yield Case((start, stride, size), f"elements of {size} bytes, {stride} apart, from number {start}")
    for size in (1, 2, 4, 8):  # the last lane's element ends a sector: the gap behind it is not touched
        stride = int(rng.integers(2, 9))
        start = -(31 * stride + 1) % (SECTOR // size)
        said = f"elements of {size} bytes, {stride} apart, the last at the end of a sector"
        yield Case((start, stride, size), said)


SECTORS = Task(
    id="06.sectors",
    title="What does a warp ask for?",
    points=2,
    difficulty=1,
    minutes=10,
    cases=_requests,
    reference=sectors,
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "That is a sector for each lane. Lanes whose elements lie in one sector share it.": (
            lambda got, *args: got == LANES
        ),
        "You left out `start`: a request that begins within a sector may touch one more.": _sure(
            lambda start, stride, size: sectors(0, stride, size)
        ),
        "`start` counts elements, not bytes.": _sure(
            lambda start, stride, size: _of_bytes(start + lane * stride * size for lane in range(LANES))
        ),
        "`stride` counts elements, not bytes.": _sure(
            lambda start, stride, size: _of_bytes(start * size + lane * stride for lane in range(LANES))
        ),
        "Those are the sectors of 32 elements side by side: the stride is missing.": _sure(
            lambda start, stride, size: sectors(start, 1, size)
        ),
        "Those are pieces of 128 bytes, a line of the L1 cache, or elements of 4 bytes: a sector has 32, an "
        "element has `size`.": _sure(lambda *request: sectors(*request, 128)),
        "Those are places within a sector (% 32): which sector a byte is in says // 32.": _sure(
            lambda start, stride, size: len(
                {(start + lane * stride) * size % SECTOR for lane in range(LANES)}
            )
        ),
        "Those are pieces of 64 bytes, a cache line of a CPU. A sector has 32.": _sure(
            lambda *request: sectors(*request, 64)
        ),
        "That counts every sector from the first to the last. With a large stride nobody touches those "
        "between.": _sure(
            lambda start, stride, size: (start + 31 * stride) * size // SECTOR - start * size // SECTOR + 1
        ),
    },
    hints=(
        "At which byte does the element of lane t begin, and which sector is that byte in?",
        "Byte = (start + t * stride) * size, sector = byte // 32. Count different sectors, not lanes.",
        "len of a set: {(start + t * stride) * size // 32 for all 32 lanes t}",
    ),
)


# --- 06.index: which element is a thread's, where the grid does not divide the matrix -----------------------

BLOCK = (32, 8)
#: What about half of each operand is: 0 times inf is NaN, and no number says that there is none.
ODD = {"": (), "0": (0.0,), "inf and -inf": (np.inf, -np.inf), "NaN": (np.nan,)}
ALPHAS = (lambda rng: float(rng.uniform(2, 3)), lambda rng: -float(rng.uniform(2, 3)), 0.0, 1.0)


def add_row(alpha: float, A: np.ndarray, b: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return alpha * A + b (M, N), float32, for A (M, N) and b (N,), a row that is added to every row."""
    with np.errstate(invalid="ignore"):  # 0 times inf is NaN, and that is right
        return (alpha * A.astype(np.float64) + b).astype(np.float32)


def _matrices(rng: np.random.Generator) -> Iterator[Case]:
    M, N = (1, between(2, 8), 8, between(9, 40)), (1, between(2, 32), 32, between(33, 100))
    yield from _sums(rng, (40, 40), (43, 101), M=M, N=N)


def _sums(rng: np.random.Generator, *plain: tuple[int, ...], **sides: tuple) -> Iterator[Case]:
    """Yield alpha times a matrix (or a vector) plus a vector, of plain shapes and of every two sides."""
    rows = every_pair(rng, alpha=ALPHAS, odd=tuple(ODD), **sides)
    hard = sorted(rows, key=lambda row: ((row["alpha"] <= 1) + bool(row["odd"]), row["N"]))
    for alpha, odd, *shape in (*((2.5, "", *of) for of in plain), *(row.values() for row in hard)):
        operands = numbers(rng, *shape), numbers(rng, shape[-1])
        for operand in operands if odd else ():
            there = rng.random(operand.shape) < 0.5
            operand[there] = rng.choice(ODD[odd], there.sum())
        said = f", alpha = {alpha:g}" * (alpha <= 1) + f", about half of each operand {odd}" * bool(odd)
        many = " x ".join(map(str, shape)) + " number" + "s" * (shape != [1])
        yield Case((alpha, *operands, unwritten(*shape)), f"{many}{said}")


#: A warp of a block (32, 8) is 32 neighbours along x. Three arrays, each read or written in such pieces. (Who
#: numbers the elements one after the other has warps that go on in the next row: one sector of b more.)
INDEX_LIMITS = (
    SectorsPerRequest(ANYWHERE + 1),
    TotalSectors(
        lambda alpha, A, b, C: 2 * exact_sectors(*A.shape) + len(A) * exact_sectors(1, len(b)),
        "A, b and C once for every row, 32 neighbours at a time",
    ),
    BusiestWarp(lambda alpha, A, b, C: 4, "three do, one for each array, if each thread has one element"),
)

INDEX = Task(
    id="06.index",
    title="One thread, one element",
    points=2,
    difficulty=1,
    minutes=10,
    cases=_matrices,
    reference=add_row,
    comparison=close(rtol=1e-5, atol=1e-5),
    launch=Launch(
        grid=lambda alpha, A, b, C: (pieces(A.shape[1], BLOCK[0]), pieces(A.shape[0], BLOCK[1])),
        block=BLOCK,
        limits=INDEX_LIMITS,
    ),
    lookalikes={
        "You add b along the rows: every row of C gets b[i] instead of the whole b.": (
            lambda alpha, A, b, C: alpha * A + b[:, None] if A.shape[0] == A.shape[1] else None
        ),
        "b is multiplied by alpha too.": lambda alpha, A, b, C: alpha * (A + b),
    },
    hints=(
        "Which of the thread's coordinates, x or y, should run along a row? Think of what a warp reads.",
        "x runs fastest within a warp, so x is the column. A coordinate is block index times block size plus "
        "thread index. Threads behind the last row or column leave.",
        "j = blockIdx.x * blockDim.x + threadIdx.x, i the same with y; if i or j is at or behind the shape: "
        "return. (`cuda.grid(2)` gives the pair (j, i).)",
    ),
)


# --- 06.barrier: a kernel that lacks two barriers, and is right in lockstep all the same --------------------

BARRIER_THREADS, BARRIER_BLOCKS = 64, 2
BARRIER_WARPS = BARRIER_THREADS // WARP


def repaired(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return X (M, N) float32, N at most 64, less the largest number of each row."""
    return X - X.max(axis=1, keepdims=True)


#: A maximum must not begin at 0, nor at -1e9, nor at -1e30: these go on nearly to the end of float32. And a 0
#: does not say that none was found yet.
DEPTHS = {0: "", 1: ", every number below 0", 4e37: ", every number far below 0", -1: ", 0 is the largest"}


def _rows(rng: np.random.Generator) -> Iterator[Case]:
    M, N = (1, 2, between(3, 9)), (1, between(2, 32), 32, 33, 64)
    place = (0, 1, 31, 32, -1)  # of each row's largest number
    rows = every_pair(rng, lambda row: row["place"] >= row["N"], M=M, N=N, place=place, depth=tuple(DEPTHS))
    plain = {"M": 7, "N": 50, "place": np.arange(0, 49, 8), "depth": 0}
    # 195 rows for a block: its shared memory has room for 192, so that no row has a place of its own
    many = {"M": 390, "N": 3, "place": 0, "depth": 1}
    for row in (plain, *sorted(rows, key=lambda row: (abs(row["depth"]), row["M"] * row["N"])), many):
        M, N, place, depth = row.values()
        X = numbers(rng, M, N)
        X[np.arange(M), place] = rng.uniform(2, 4, M)
        if depth < 0:
            X -= X.max(axis=1, keepdims=True)
        elif depth:
            X = (X - np.float32(6)) * np.float32(depth)
        said = f"{DEPTHS[depth]}, row 0 has its largest in column {X[0].argmax()}"
        yield Case((X, unwritten(M, N)), f"X {M} x {N}, two blocks of 64 threads{said}")


def _takes_another(got: np.ndarray, X: np.ndarray) -> bool:
    taken = X - got
    return bool(np.allclose(taken, taken[:, :1]) and np.isclose(X, taken[:, :1]).any(axis=1).all())


#: Two barriers for each row, both warps. X is read once into shared memory and, if you like, once more; Y is
#: written once: three times the sectors of the rows. Y as a notepad for what all threads read costs N more.
BARRIER_LIMITS = (
    TotalSectors(
        lambda X, Y: 3 * row_sectors(*X.shape),
        "the block reads its row of X from global memory once or twice and writes that of Y once; the other "
        "reads go to shared memory",
    ),
    Barriers(
        lambda X, Y: 2 * BARRIER_WARPS * X.shape[0],
        "two barriers for each row (one, with two buffers), and both warps come to each",
        least=lambda X, Y: pieces(X.shape[1], WARP) * X.shape[0],  # a warp without a column may have returned
    ),
    BusiestWarp(
        lambda X, Y: (X.shape[1] + 16) * pieces(X.shape[0], BARRIER_BLOCKS),
        "one for each number of a row, and a few more, if the two blocks share the rows",
    ),
)

BARRIER = Task(
    id="06.barrier",
    title="Right in lockstep, wrong on a GPU",
    cases=_rows,
    reference=repaired,
    launch=Launch(
        grid=lambda X, Y: (BARRIER_BLOCKS,),
        block=(BARRIER_THREADS,),
        limits=BARRIER_LIMITS,
    ),
    lookalikes={
        "Every number is far below 0 here. Does the largest begin at a number that is none of the row's? It "
        "must begin with one of them, or at -inf.": lambda got, X, Y: X.max() < -1e9,
        "That is X itself: the largest of each row is not taken off.": lambda X, Y: X,
        "What you take off is a number of the row, but not its largest: is every number of it compared, from "
        "the first to the last?": lambda got, X, Y: _takes_another(got, X),
    },
    hints=(
        "Thread 40 reads `row[0]`. Which thread wrote it, in which warp, and what makes thread 40 wait for "
        "it? And who still reads while a fast warp begins the next row?",
        "One barrier between writing `row` and reading it, one between reading it and the next turn's "
        "writing. All threads must come to a barrier, also those without a column: it cannot stand inside "
        "`if j < X.shape[1]`.",
        "Part the `if` in two: write under the first; cuda.syncthreads(); search and store under the second; "
        "at the end of the loop's body cuda.syncthreads() again.",
    ),
)


# --- 06.coalesce: bands of numbers, good for the threads of a CPU, cost a warp eight times the sectors ------

COALESCE_BLOCKS, COALESCE_THREADS = 2, 64
GRID = COALESCE_BLOCKS * COALESCE_THREADS


def coalesced(alpha: float, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return alpha * x + y for x and y (n,), float32."""
    return add_row(alpha, x, y, out)


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    sizes = (1, between(2, 33), between(33, 128), 128, 129, between(130, 1000))
    yield from _sums(rng, (1000,), (13_000,), N=sizes)


#: Pieces of 32 numbers that begin with number 0, 32, 64 … begin with a sector: 4 sectors, and in all each
#: sector of x, y and out once. In one turn the whole grid does 128 numbers; a turn more
#: for those that give a thread two at a time.
COALESCE_LIMITS = (
    BusiestWarp(
        lambda alpha, x, y, out: 3 * (pieces(len(x), GRID) + 1),
        "the four warps of the grid share the numbers, three requests for 32 of them",
    ),
    SectorsPerRequest(ALIGNED),
    TotalSectors(
        lambda alpha, x, y, out: 3 * pieces(len(x), PER_SECTOR), "every sector of x, y and out once"
    ),
)

COALESCE = Task(
    id="06.coalesce",
    title="Eight times too much",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_vectors,
    reference=coalesced,
    comparison=close(rtol=1e-5, atol=1e-5),
    launch=Launch(
        grid=lambda alpha, x, y, out: (COALESCE_BLOCKS,),
        block=(COALESCE_THREADS,),
        limits=COALESCE_LIMITS,
    ),
    lookalikes={
        "One number for each thread is done. There are more numbers than threads: each goes on to others.": (
            lambda got, alpha, x, y, out: len(x) > GRID and bool(np.isnan(got[GRID:]).all())
        ),
        "alpha multiplies y too; it belongs to x alone.": lambda a, x, y, out: a * (x + y),
        "x and y have changed places.": lambda a, x, y, out: a * y + x,
    },
    hints=(
        "In one turn of the loop lanes 0, 1, 2 … of a warp read x[0], x[8], x[16] … How many sectors is "
        "that, and which 32 numbers would be four?",
        "Let the threads take turns: in the first turn thread t of the whole grid takes number t, in the "
        "next one the grid steps on by as many numbers as it has threads (a grid-stride loop).",
        "The loop's range begins at cuda.grid(1), ends at len(x), and its step is cuda.gridsize(1).",
    ),
)


# --- 06.banks: four channels of a pixel lie side by side in shared memory, so four lanes share a bank -------

BANKS_THREADS, CHANNELS = 64, 4


def brightness(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return X @ w for X (n, 4), the channels of n pixels, and their weights w (4,), float32."""
    with np.errstate(invalid="ignore"):  # 0 times inf is NaN, and that is right
        return (X.astype(np.float64) * w).sum(axis=1).astype(np.float32)


def _pixels(rng: np.random.Generator) -> Iterator[Case]:
    n = (64, 1, between(2, 33), 33, between(65, 128), between(257, 300))
    rows = every_pair(rng, n=n, channel=range(CHANNELS), zero=("", "w", "X"))
    for row in sorted(rows, key=lambda row: (row["zero"], row["n"] != 64, row["n"])):
        n, channel, zero = row.values()
        X, w, some = numbers(rng, n, 4), numbers(rng, 4), rng.integers(n, size=2)
        if zero:
            w[channel], X[some, channel] = (0, (np.nan, -np.inf)) if zero == "w" else (np.inf, 0)
        other = {"w": "NaN and -inf", "X": "an inf"}.get(zero)
        meets = f", in channel {channel} a 0 in {zero} meets {other}" if zero else ""
        yield Case((X, w, unwritten(n)), f"{n} pixel{'s' * (n > 1)}{meets}")


BANKS_WARPS = BANKS_THREADS // WARP
#: Of a block: two warps store four times and load four times, 16. Weights that are kept in shared memory take
#: 1 + 8 more, and zeros that are written first 8. Conflicts that are dodged (eight lanes at a time, so four
#: times as many loads) take 40.
MOST_REQUESTS = 36


def most_sectors(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> int:
    """Return the sectors of X and y, each once, and one for each weight that a warp reads."""
    return (
        pieces(X.size, PER_SECTOR)
        + pieces(len(y), PER_SECTOR)
        + CHANNELS * BANKS_WARPS * pieces(len(X), BANKS_THREADS)
    )


#: 32 banks, one word of each in a wavefront. From global memory 32 floats that begin with a sector.
BANKS_LIMITS = (
    WavefrontsPerRequest(1),
    SectorsPerRequest(ALIGNED),
    TotalSectors(
        most_sectors,
        "every sector of X and y once, and for each warp four of w: 32 lanes at a time read neighbouring "
        "words of X, and what belongs together meets in shared memory",
    ),
    SharedRequests(
        lambda X, w, y: MOST_REQUESTS * pieces(len(X), BANKS_THREADS),
        "if all 32 lanes of a warp store and load at a time (16 for each block will do, 36 are the most)",
    ),
    BusiestWarp(lambda X, w, y: 25, "17 do, if both warps of a block share its pixels"),
)

BANKS = Task(
    id="06.banks",
    title="Four lanes at one door",
    points=2,
    cases=_pixels,
    reference=brightness,
    comparison=close(rtol=1e-5, atol=1e-5),
    launch=Launch(
        grid=lambda X, w, y: (pieces(len(X), BANKS_THREADS),),
        block=(BANKS_THREADS,),
        limits=BANKS_LIMITS,
    ),
    lookalikes={
        "The weights are in reverse order.": lambda X, w, y: X @ w[::-1],
        "The channels are summed without their weights.": lambda X, w, y: X.sum(axis=1),
    },
    hints=(
        "For c = 0 lane t reads word 4t. Which lanes meet in bank 0, and how far apart are their words?",
        "Lanes t, t + 8, t + 16 and t + 24 meet: their words are 32, 64 and 96 apart. Shift every stretch of "
        "32 words by one more word than the stretch before, for writing and for reading alike. (A tile of "
        "64 x 5, one column of padding, cures the reading, as 5 is odd, and spoils the writing: 32 "
        "neighbours of X then have seven gaps among them, and the first meet the last in a bank. Or keep a "
        "channel's numbers together, a number of words apart that suits both. Or let the four groups of "
        "lanes begin with different channels.)",
        "Word e moves to place e + e // 32, and e is 4 * t + c when you read; the tile needs 256 + 8 words.",
    ),
)
