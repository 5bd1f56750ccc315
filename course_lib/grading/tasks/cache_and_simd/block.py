"""Task 04.block: the largest block that a cache holds three of."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task


def block_size(cache_bytes: int, itemsize: int, multiple: int) -> int:
    """Return the largest b, a multiple of `multiple`, with three b x b blocks in the cache; at least one."""
    return _largest(cache_bytes // (3 * itemsize), multiple)


def _largest(elements: int, multiple: int) -> int:
    """Return the largest multiple whose square is at most `elements`, but at least `multiple`."""
    return max(math.isqrt(elements) // multiple * multiple, multiple)


def _caches(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((32 * 1024, 8, 8), "32 KiB, float64, whole lines of 64 bytes")
    yield Case((48 * 1024, 4, 16), "48 KiB, float32, whole lines of 64 bytes")
    yield Case((3 * 64 * 64 * 8, 8, 8), "exactly three blocks")
    yield Case((3 * 64 * 64 * 8 - 1, 8, 8), "one byte too few for that")
    yield Case((3 * 35 * 35 * 4, 4, 1), "exactly three blocks of float32, any size allowed")
    yield Case((1000, 4, 16), "too small for three blocks of 16 x 16: at least `multiple`")
    yield Case((3 * 94906267**2 * 8 - 8, 8, 1), "so large that a rounded square root is one too many")
    for itemsize in (4, 8, 2):
        cache = 1024 * int(rng.integers(16, 4000))
        multiple = int(rng.choice([1, 4, 6, 8, 16]))
        yield Case((cache, itemsize, multiple), f"{cache // 1024} KiB, {itemsize} bytes each")
        exact_side = multiple * int(rng.integers(3, 40))
        yield Case((3 * exact_side**2 * itemsize, itemsize, multiple), "exactly three blocks")


TASK = Task(
    id="04.block",
    title="How large may a block be?",
    kind="write",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="the block size for any machine, in one line",
    entry="block_size",
    cases=_caches,
    reference=block_size,
    comparison=exact(),
    rules=(OnlyImports(("math",)),),
    lookalikes=(
        Lookalike(
            "That counts bytes as numbers: each number takes itemsize bytes.",
            lambda cache, itemsize, multiple: _largest(cache // 3, multiple),
        ),
        Lookalike(
            "That leaves room for one block only; A, B and C need one each.",
            lambda cache, itemsize, multiple: _largest(cache // itemsize, multiple),
        ),
        Lookalike(
            "That leaves room for two blocks; A, B and C need one each.",
            lambda cache, itemsize, multiple: _largest(cache // (2 * itemsize), multiple),
        ),
        Lookalike(
            "Round down to a multiple of `multiple`.",
            fits=lambda got, cache, itemsize, multiple: got % multiple != 0,
        ),
        Lookalike(
            "A block has at least `multiple` rows, even where three such blocks do not fit.",
            fits=lambda got, cache, itemsize, multiple: got == 0,
        ),
        Lookalike(
            "One step less: three blocks of yours take more than the cache has.",
            fits=lambda got, cache, itemsize, multiple: (
                got > multiple and 3 * int(got) ** 2 * itemsize > cache
            ),
        ),
        Lookalike(
            "A larger block still fits: three blocks may fill the cache exactly.",
            fits=lambda got, cache, itemsize, multiple: got < block_size(cache, itemsize, multiple),
        ),
    ),
    hints=(
        "How many numbers are in three b x b blocks, and how many bytes do they take?",
        "3 * b * b * itemsize <= cache_bytes. Take a root that is exact for whole numbers (math.isqrt), then "
        "round down to a multiple.",
        "b = math.isqrt(cache_bytes // (3 * itemsize)); return max(b // multiple * multiple, multiple)",
    ),
)
