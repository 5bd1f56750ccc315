"""A product as map and reduce, on Dask: blocks with a key, and a scheduler that loses nothing.

Source: Dean and Ghemawat, "MapReduce: simplified data processing on large clusters" (2004); the product in
two rounds as in Leskovec, Rajaraman, Ullman, "Mining of massive datasets", section 2.3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from course_lib.arguments import whole
from course_lib.distributed.matmul import cuts

Array = np.ndarray
Key = tuple[int, int]
Block = tuple[Key, Array]


@contextmanager
def workers(count: int = 2) -> Iterator[Any]:
    """Start a Dask cluster of `count` processes on this machine and give its client; end all of it."""
    import dask
    from distributed import Client, LocalCluster

    whole("count", count, most=16)
    with (
        dask.config.set({"distributed.logging.distributed": "error"}),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            memory_limit="1GiB",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def pairs(A: Array, B: Array, parts: int) -> list[tuple[Key, Array, Array]]:
    """Return ((i, j), A's block, B's block) for each of the parts³ products of blocks: what the map is given.

    They are in the order of k: those that need the same blocks are together, as the first round of MapReduce
    would bring them by their common k; here the caller has both matrices.
    """
    whole("parts", parts)
    (M, K), N = A.shape, B.shape[1]
    return [
        ((i, j), A[m, k], B[k, n])
        for k in cuts(K, parts)
        for i, m in enumerate(cuts(M, parts))
        for j, n in enumerate(cuts(N, parts))
    ]


def multiply_block(pair: tuple[Key, Array, Array]) -> Block:
    """Map: one block of A times one of B, under the key of the block of C that it belongs to."""
    (i, j), a, b = pair
    return (i, j), a @ b  # (m, k) @ (k, n)


def key_of(block: Block) -> Key:
    """Return what blocks are brought together by: the shuffle."""
    return block[0]


def add(total: Array, block: Block) -> Array:
    """Reduce: add a product to the sum of its block of C."""
    return total + block[1]


def bag_of(A: Array, B: Array, parts: int, partitions: int) -> Any:
    """Return the pairs in so many partitions, in order: where there are as many as parts, each has one k."""
    import dask.bag

    return dask.bag.from_sequence(pairs(A, B, parts), npartitions=partitions)


def map_reduce(
    A: Array, B: Array, parts: int = 4, partitions: int = 4, multiply: Callable = multiply_block
) -> Array:
    """Return A B by dask.bag on the current client: map `multiply`, fold by key with `add`."""
    products = bag_of(A, B, parts, partitions).map(multiply)
    sums = dict(products.foldby(key_of, add, 0, np.add, 0).compute())
    return np.block([[sums[i, j] for j in range(parts)] for i in range(parts)])


def moved_words(shape: tuple[int, int, int], parts: int) -> tuple[int, int]:
    """Return the elements that go out to the map as blocks, and those that leave their partition as sums.

    There are as many partitions as parts. Each has one k, and folds its products first (a combiner): to a sum
    for all of C, of which all but one must move.
    """
    M, K, N = shape
    return parts * (M * K + K * N), M * N * (parts - 1)
