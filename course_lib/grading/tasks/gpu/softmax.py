"""Task 06.softmax: a stable softmax of rows, a warp for each, whose lanes tell each other what they found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.launch import Launch
from course_lib.grading.limits import BusiestWarp, SectorsPerRequest, SharedRequests, TotalSectors
from course_lib.grading.rules_gpu import KernelOnly
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.gpu.shared import (
    ANYWHERE,
    WARP,
    has_computed_nan,
    pieces,
    row_sectors,
    unwritten,
)

ROWS = 4  # of a block: one for each of its warps
LOADS, STORES = 3, 2  # passes over the rows
#: Of a warp: shuffles and requests to shared memory. The exchange needs 10 shuffles; 2 stores and 64 loads
#: do if every lane reads what all 32 found. A lane that adds up N numbers alone takes 2 N loads and more.
MOST_EXCHANGES = 80


def softmax(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return exp(X) with every row divided by its sum, for X (M, N) float32; computed in float64."""
    wide = X.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


def _rows(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, said in (
        (4, 32, "a number for each lane"),
        (1, 1, "a single number"),
        (3, 5, "most lanes have none"),
        (5, 33, "one lane has two"),
        (7, 100, "several for each lane, and the last block has no row for its last warp"),
        (int(rng.integers(5, 12)), int(rng.integers(70, 150)), "any shape"),
    ):
        yield Case((_spread(rng, M, N), unwritten(M, N)), f"X {M} x {N}: {said}")
    yield Case((_spread(rng, 6, 50) + np.float32(200), unwritten(6, 50)), "X 6 x 50, numbers around 200")
    yield Case((_spread(rng, 6, 50) - np.float32(300), unwritten(6, 50)), "X 6 x 50, numbers around -300")
    yield Case(
        (_with_outliers(rng, 50, 97), unwritten(50, 97)), "X 50 x 97, one number of each row far above"
    )
    masked = _spread(rng, 5, 40)
    masked[rng.random((5, 40)) < 0.5] = -np.inf
    masked[:, 7] = 1  # something is left in every row
    yield Case((masked, unwritten(5, 40)), "X 5 x 40, half of it -inf, as attention masks it")


def _spread(rng: np.random.Generator, M: int, N: int) -> np.ndarray:
    """Return numbers from -3 to 3."""
    return rng.uniform(-3, 3, (M, N)).astype(np.float32)


def _with_outliers(rng: np.random.Generator, M: int, N: int) -> np.ndarray:
    """Return rows in each of which one number is far above the others, and in each row at another height."""
    X = _spread(rng, M, N)
    X[np.arange(M), rng.permutation(N)[:M]] += 1000 * np.arange(1, M + 1, dtype=np.float32)
    return X


def _sum_of_lanes(X: np.ndarray) -> np.ndarray:
    """Return exp(X) with every number divided by the sum of its lane alone."""
    wide = np.exp(X.astype(np.float64))
    sums = np.stack([wide[:, lane::WARP].sum(axis=1) for lane in range(min(WARP, X.shape[1]))], axis=1)
    return wide / sums[:, np.arange(X.shape[1]) % WARP]


def _lanes_disagree(got: np.ndarray, X: np.ndarray, Y: np.ndarray) -> bool:
    """Return whether the numbers of one row are off by factors that differ."""
    wanted = softmax(X, Y)
    counts = (wanted > 1e-20) & np.isfinite(got)
    factors = np.where(counts, got / np.where(counts, wanted, 1), np.nan)
    some = factors[counts.sum(axis=1) > 1]
    return bool(len(some)) and bool((np.nanmax(some, axis=1) > 1.01 * np.nanmin(some, axis=1)).any())


#: A row of X is read three times (for the largest, the sum, the result) and one of Y written once, 32
#: neighbours at a time. With the powers kept in Y: X read twice, Y written, read, and written.
LIMITS = (
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
        lambda X, Y: MOST_EXCHANGES * ROWS * pieces(len(X), ROWS),
        f"{MOST_EXCHANGES} for each warp; each lane puts its own numbers together first, then 32 lanes "
        "exchange one number each",
    ),
    BusiestWarp(
        lambda X, Y: (LOADS + STORES) * pieces(X.shape[1], WARP) + 70,
        "a warp has one row, and the four warps of a block have four",
    ),
)

TASK = Task(
    id="06.softmax",
    title="Softmax by a warp",
    kind="open",
    points=2,
    difficulty=4,
    minutes=15,
    good_for="the reduction inside attention, without shared memory and without a barrier",
    entry="softmax",
    cases=_rows,
    reference=softmax,
    comparison=close(rtol=1e-4, atol=1e-7),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda X, Y: (pieces(len(X), ROWS),), block=lambda X, Y: (WARP, ROWS), result=1, limits=LIMITS
    ),
    lookalikes=(
        Lookalike(
            "NaN comes from inf / inf or 0 / 0 (is the row's largest number taken off before taking powers?) "
            "or from -inf - (-inf): a lane that met no number, or only -inf, has -inf for its largest.",
            fits=lambda got, X, Y: has_computed_nan(got),
        ),
        Lookalike(
            "Every lane divides by its own sum: the lanes' sums are not put together.",
            lambda X, Y: _sum_of_lanes(X),
        ),
        Lookalike("Those are the powers: they are not divided by their sum.", lambda X, Y: np.exp(X)),
        Lookalike(
            "Those are the powers, the largest 1: they are not divided by their sum.",
            lambda X, Y: np.exp(X - X.max(axis=1, keepdims=True)),
        ),
        Lookalike(
            "The lanes of a warp divide by different sums, or took off different largest numbers: after the "
            "exchanges all 32 must know the same one. Does each lane meet those at a distance of 1, 2, 4, 8 "
            "and 16, and does every lane get the result?",
            fits=_lanes_disagree,
        ),
    ),
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
