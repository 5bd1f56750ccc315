"""Task 04.visits: an order of all (i, k, j) that misses a small cache seldom, judged by the simulator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch, describe
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task

ITEMSIZE, LINE = 8, 64
SLACK = 1.3  # times the misses of the reference's order


def visits(M: int, K: int, N: int, cache_bytes: int) -> np.ndarray:
    """Return all (i, k, j) of a product, M * K * N rows of three, block by block: int64.

    The blocks are b x b with b the largest multiple of a line of which three fit into the cache.
    """
    per_line = LINE // ITEMSIZE
    b = max(math.isqrt(cache_bytes // (3 * ITEMSIZE)) // per_line * per_line, per_line)
    return in_blocks(M, K, N, b)


def in_blocks(M: int, K: int, N: int, b: int) -> np.ndarray:
    """Return all (i, k, j) in blocks of b x b x b, blocks and steps each with j innermost."""
    whole = np.indices((M, K, N)).reshape(3, -1).T  # in the order i, k, j
    i, k, j = whole.T
    return whole[np.lexsort((j, k, i, j // b, k // b, i // b))]


def misses(order: np.ndarray, M: int, K: int, N: int, cache_bytes: int) -> int:
    """Return the misses of A[i, k], B[k, j], C[i, j] for each row of the order, fully associative, LRU."""
    from course_lib.simulators.cache import Level, simulate
    from course_lib.simulators.placement import place

    where = place(M, K, N, ITEMSIZE)
    i, k, j = np.asarray(order, np.int64).T
    addresses = np.empty((len(i), 3), np.uint64)
    for column, (name, row, col) in enumerate((("A", i, k), ("B", k, j), ("C", i, j))):
        addresses[:, column] = where[name].start + row * where[name].row_stride + col * ITEMSIZE
    return simulate(addresses.reshape(-1), [Level(cache_bytes, None, LINE)]).misses[0]


@dataclass(frozen=True)
class FewMisses:
    """Accepts every order of all triples that misses at most SLACK times as often as the reference."""

    def compare(self, got: Any, want: np.ndarray, args: tuple) -> Mismatch | None:
        """Return None if `got` is such an order for args (M, K, N, cache_bytes), else what is wrong."""
        M, K, N, _ = args
        if type(got) is not np.ndarray or got.shape != want.shape or got.dtype.kind not in "iu":
            said = f"Your function returned {describe(got)}, but {len(want)} rows of three whole numbers"
            end = ": is a `return` missing?" if got is None else ": np.array(list of (i, k, j))."
            return Mismatch((f"{said} are needed{end}",), form=True)
        if said := _not_all(got, (M, K, N)):
            return Mismatch((said,))
        limit, done = int(SLACK * misses(want, *args)), misses(got, *args)
        if done <= limit:
            return None
        plain = misses(in_blocks(M, K, N, max(M, K, N, 1)), *args)
        return Mismatch(
            (
                f"All triples are there, but the cache misses {done:,} times; {limit:,} is the target "
                f"(the plain order i, k, j: {plain:,}).",
            )
        )


def _not_all(got: np.ndarray, shape: tuple[int, int, int]) -> str | None:
    """Say what keeps the rows from being every triple once."""
    order = got.astype(np.int64)
    if ((order < 0) | (order >= np.array(shape))).any():
        bad = order[((order < 0) | (order >= np.array(shape))).any(axis=1)][0]
        return f"({bad[0]}, {bad[1]}, {bad[2]}) is no (i, k, j) of this product."
    seen = np.bincount(np.ravel_multi_index(tuple(order.T), shape), minlength=math.prod(shape))
    if (seen != 1).any():
        place = int(np.argmax(seen != 1))
        i, k, j = (int(n) for n in np.unravel_index(place, shape))
        return f"Every triple must come once, but ({i}, {k}, {j}) comes {seen[place]} times."
    return None


def _products(rng: np.random.Generator) -> Iterator[Case]:
    for M, K, N, cache in ((6, 5, 7, 4096), (1, 24, 1, 2048), (3, 1, 9, 2048)):
        yield Case((M, K, N, cache), f"{M} x {K} x {N}: all of it fits")
    yield Case((40, 40, 40, 2048), "squares of 40, 2 KiB of cache")
    yield Case((48, 48, 48, 3 * 24 * 24 * 8), "squares of 48, 13.5 KiB of cache")
    for cache in (2048, 6144):
        M, K, N = (int(n) for n in rng.choice(np.arange(37, 60), 3, replace=False))
        yield Case((M, K, N, cache), f"{M} x {K} x {N}, {cache // 1024} KiB of cache")
    yield Case((11, 60, 60, 2048), "few rows of A")
    yield Case((57, 38, 46, 2048), "more rows of A than of B")


def _swapped(got: np.ndarray, M: int, K: int, N: int, cache_bytes: int) -> bool:
    """Whether the rows are (i, j, k)."""
    wanted = set(itertools.product(range(M), range(N), range(K)))
    return K != N and {tuple(map(int, row)) for row in got} == wanted


def _block(got: np.ndarray, M: int, K: int, N: int) -> int:
    """Return b if the rows are in blocks b x b x b, else 0."""
    ends = np.flatnonzero(np.diff(got[:, 2]) != 1)  # after the first run of j
    b = int(ends[0]) + 1 if len(ends) else N
    return b if b < N and np.array_equal(got, in_blocks(M, K, N, b)) else 0


def _too_large(got: np.ndarray, M: int, K: int, N: int, cache_bytes: int) -> bool:
    """Whether three of the blocks do not fit into the cache."""
    return 3 * _block(got, M, K, N) ** 2 * ITEMSIZE > cache_bytes


def _parts_of_lines(got: np.ndarray, M: int, K: int, N: int, cache_bytes: int) -> bool:
    """Whether the blocks fit, but end within a line."""
    b = _block(got, M, K, N)
    return b % (LINE // ITEMSIZE) != 0 and 3 * b * b * ITEMSIZE <= cache_bytes


TASK = Task(
    id="04.visits",
    title="Hit the target",
    kind="open",
    points=3,
    difficulty=3,
    minutes=25,
    good_for="blocking as it is: nothing but another order of the same steps",
    entry="visits",
    cases=_products,
    reference=visits,
    comparison=FewMisses(),
    rules=(OnlyImports(("math", "numpy", "itertools")),),
    lookalikes=(
        Lookalike("Those rows are (i, j, k): the task wants i, k, j.", fits=_swapped),
        Lookalike(
            "With the plain order i, k, j all of B passes through the cache for every row of A.",
            fits=lambda got, M, K, N, cache: bool((got == in_blocks(M, K, N, max(M, K, N, 1))).all()),
        ),
        Lookalike(
            "Three blocks of yours do not fit into the cache together: one of A, one of B and one of C.",
            fits=_too_large,
        ),
        Lookalike(
            "Your blocks fit, but their size is no multiple of the 8 numbers of a line: what else came with "
            "their first and last lines is fetched in vain.",
            fits=_parts_of_lines,
        ),
    ),
    hints=(
        "In the plain order, how much passes through the cache between two uses of the same number of B?",
        "Cut all three loops into blocks of b, and choose b so that three blocks fit together and a block's "
        "rows are whole lines.",
        "b = max(math.isqrt(cache_bytes // 24) // 8 * 8, 8); six loops: i0, k0, j0 in steps of b, then i, k, "
        "j from there to min(start + b, end); append (i, k, j); return np.array(order).",
    ),
)
