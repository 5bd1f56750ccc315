"""Task 06.banks: four channels of a pixel lie side by side in shared memory, so four lanes share a bank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
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
from course_lib.grading.tasks.gpu.shared import (
    ALIGNED,
    PER_SECTOR,
    WARP,
    numbers,
    pieces,
    unwritten,
)

THREADS, CHANNELS = 64, 4


def brightness(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return X @ w for X (n, 4), the channels of n pixels, and their weights w (4,), float32."""
    with np.errstate(invalid="ignore"):  # 0 times inf is NaN, and that is right
        return (X.astype(np.float64) * w).sum(axis=1).astype(np.float32)


def _pixels(rng: np.random.Generator) -> Iterator[Case]:
    for n in (64, 1, 33, 127, 192, int(rng.integers(200, 300))):
        yield Case((numbers(rng, n, 4), numbers(rng, 4), unwritten(n)), f"{n} pixel{'s' * (n > 1)}")
    X, w = numbers(rng, 40, 4), numbers(rng, 4)
    w[1], X[7, 1], X[9, 2] = 0, np.inf, -np.inf
    yield Case((X, w, unwritten(40)), "40 pixels, a weight of 0 and an inf in each of two pixels")
    X, w = numbers(rng, 40, 4), numbers(rng, 4)
    w[2], X[11, 2] = np.inf, 0
    yield Case((X, w, unwritten(40)), "40 pixels, an inf among the weights and a 0 among the channels")


WARPS = THREADS // WARP
#: Of a block: two warps store four times and load four times, 16. Weights that are kept in shared memory take
#: 1 + 8 more, and zeros that are written first 8. Conflicts that are dodged (eight lanes at a time, so four
#: times as many loads) take 40.
MOST_REQUESTS = 36


def most_sectors(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> int:
    """Return the sectors of X and y, each once, and one for each weight that a warp reads."""
    return (
        pieces(X.size, PER_SECTOR) + pieces(len(y), PER_SECTOR) + CHANNELS * WARPS * pieces(len(X), THREADS)
    )


#: 32 banks, one word of each in a wavefront. From global memory 32 floats that begin with a sector.
LIMITS = (
    WavefrontsPerRequest(1),
    SectorsPerRequest(ALIGNED),
    TotalSectors(
        most_sectors,
        "every sector of X and y once, and for each warp four of w: 32 lanes at a time read neighbouring "
        "words of X, and what belongs together meets in shared memory",
    ),
    SharedRequests(
        lambda X, w, y: MOST_REQUESTS * pieces(len(X), THREADS),
        "36 for each block; 16 will do, if all 32 lanes of a warp store and load at a time",
    ),
    BusiestWarp(lambda X, w, y: 25, "17 do, if both warps of a block share its pixels"),
)

TASK = Task(
    id="06.banks",
    title="Four lanes at one door",
    kind="fast",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="arithmetic modulo 32, which tells a bank conflict before it costs anything",
    entry="brightness",
    cases=_pixels,
    reference=brightness,
    comparison=close(rtol=1e-5, atol=1e-5),
    rules=(KernelOnly(),),
    launch=Launch(
        grid=lambda X, w, y: (pieces(len(X), THREADS),),
        block=lambda X, w, y: (THREADS,),
        result=2,
        limits=LIMITS,
    ),
    lookalikes=(
        Lookalike("The weights are in reverse order.", lambda X, w, y: X @ w[::-1]),
        Lookalike("The channels are summed without their weights.", lambda X, w, y: X.sum(axis=1)),
    ),
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
