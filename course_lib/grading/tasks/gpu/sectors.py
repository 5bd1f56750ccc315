"""Task 06.sectors: how many 32-byte sectors one request of a warp touches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task

LANES, SECTOR = 32, 32


def sectors(start: int, stride: int, size: int) -> int:
    """Return how many sectors of 32 bytes 32 lanes touch; lane t reads element start + t * stride of `size`
    bytes (a power of two, at most 16: no element lies in two sectors)."""
    return len({(start + lane * stride) * size // SECTOR for lane in range(LANES)})


def _of_bytes(places: Iterator[int], piece: int = SECTOR) -> int:
    return len({place // piece for place in places})


def _requests(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((0, 1, 8), "float64 side by side")
    yield Case((0, 1, 4), "float32 side by side")
    yield Case((5, 1, 4), "float32 side by side, from within a sector")
    yield Case((0, 2, 4), "every second float32")
    yield Case((16, 3, 4), "one float32 of three, from the beginning of a sector")
    yield Case((3, 0, 4), "all lanes read the same float32")
    yield Case((31, -1, 4), "float32 side by side, backwards")
    yield Case((0, 9, 4), "a column of a matrix with 9 columns")
    yield Case((2, 1000, 8), "a column of a matrix with 1000 columns of float64")
    yield Case((20, 1, 1), "bytes side by side")
    yield Case((7, 5, 2), "one float16 of five")
    for size in (1, 2, 4, 8, 16):
        stride = int(rng.integers(-12, 40))
        start = int(rng.integers(0, 500)) - min(0, 31 * stride)
        yield Case((start, stride, size), f"elements of {size} bytes, {stride} apart, from number {start}")


TASK = Task(
    id="06.sectors",
    title="What does a warp ask for?",
    kind="predict",
    points=2,
    difficulty=1,
    minutes=10,
    good_for="seeing the cost of an index expression before any profiler does",
    entry="sectors",
    cases=_requests,
    reference=sectors,
    comparison=exact(),
    rules=(OnlyImports(("math", "numpy")),),
    lookalikes=(
        Lookalike(
            "That is a sector for each lane. Lanes whose elements lie in one sector share it.",
            fits=lambda got, *args: got == LANES,
        ),
        Lookalike(
            "You left out `start`: a request that begins within a sector may touch one more.",
            lambda start, stride, size: _of_bytes(lane * stride * size for lane in range(LANES)),
        ),
        Lookalike(
            "`start` counts elements, not bytes.",
            lambda start, stride, size: _of_bytes(start + lane * stride * size for lane in range(LANES)),
        ),
        Lookalike(
            "`stride` counts elements, not bytes.",
            lambda start, stride, size: _of_bytes(start * size + lane * stride for lane in range(LANES)),
        ),
        Lookalike(
            "Those are the sectors of 32 elements side by side: the stride is missing.",
            lambda start, stride, size: _of_bytes((start + lane) * size for lane in range(LANES)),
        ),
        Lookalike(
            "Those are pieces of 128 bytes, a line of the L1 cache. A sector is a quarter of it.",
            lambda start, stride, size: _of_bytes(
                ((start + lane * stride) * size for lane in range(LANES)), 128
            ),
        ),
        Lookalike(
            "Those are pieces of 64 bytes, a cache line of a CPU. A sector has 32.",
            lambda start, stride, size: _of_bytes(
                ((start + lane * stride) * size for lane in range(LANES)), 64
            ),
        ),
        Lookalike(
            "That counts every sector from the first to the last. With a large stride nobody touches those "
            "between.",
            lambda start, stride, size: (
                (start + 31 * stride) * size // SECTOR - start * size // SECTOR + 1 if stride > 0 else None
            ),
        ),
    ),
    hints=(
        "At which byte does the element of lane t begin, and which sector is that byte in?",
        "Byte = (start + t * stride) * size, sector = byte // 32. Count different sectors, not lanes.",
        "len of a set: {(start + t * stride) * size // 32 for all 32 lanes t}",
    ),
)
