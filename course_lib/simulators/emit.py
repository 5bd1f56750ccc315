"""The accesses of loop nests as arrays of addresses, whose dimensions are the loops.

What two traces share stands here: nested loops as addresses, accesses one after the other, and the six loops
of a blocked product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from course_lib.simulators.placement import Matrix

Sizes = tuple[int, int, int]  # M, K, N
Chunks = Iterator[tuple[np.ndarray, np.ndarray]]  # addresses (uint64), writes (bool)
#: Addresses in their order, and whether they are written: one bool, or one for each place of the last loops.
Accesses = tuple[np.ndarray, bool | list]
#: Which loop moves a matrix down its rows and which along its columns.
AXES = {"A": "ik", "B": "kj", "C": "ij"}


def addresses(start: int, *loops: tuple[int, int]) -> np.ndarray:
    """Return the addresses of nested loops, (step in bytes, turns) from outside in: a dimension for each."""
    found = np.array(start)
    for step, turns in loops:
        found = found[..., None] + step * np.arange(turns)
    return found


def joined(parts: list[Accesses]) -> tuple[np.ndarray, np.ndarray]:
    """Return (addresses, writes) of accesses one after the other."""
    writes = [np.broadcast_to(write, at.shape).ravel() for at, write in parts]
    return np.concatenate([at.ravel() for at, _ in parts]).view(np.uint64), np.concatenate(writes)


def copied(source: np.ndarray, target: np.ndarray) -> Accesses:
    """Return: load a number, store it, and so on."""
    return np.stack([source, target], -1), [False, True]


def corner(matrix: Matrix, row: int, column: int) -> int:
    """Return the address of an element."""
    return matrix.start + row * matrix.row_stride + column * matrix.column_stride


# -- six loops ---------------------------------------------------------------------------------------------


def nest(sizes: Sizes, blocks: Sizes, order: str, at: Mapping[str, Matrix], kept: str, most: int) -> Chunks:
    """Yield the accesses of loops over blocks, the order ijk, and inside a block in `order`, at most `most`.

    `kept` is the matrix that the innermost loop does not move and that stands in a register, "" for none.
    """
    size, block = dict(zip("ikj", sizes, strict=True)), dict(zip("ikj", blocks, strict=True))
    if not all(sizes):
        return
    whole, rest = divmod(size["k"], block["k"])
    for i in range(0, size["i"], block["i"]):
        for j in range(0, size["j"], block["j"]):
            turns = {"i": min(block["i"], size["i"] - i), "j": min(block["j"], size["j"] - j)}
            for k, count, depth in ((0, whole, block["k"]), (whole * block["k"], 1, rest)):
                if count and depth:  # blocks of one depth are a loop more
                    inside = [(loop, 1, (turns | {"k": depth})[loop]) for loop in order]
                    first = {"i": i, "k": k, "j": j}
                    for corners, loops in _pieces(first, [("k", depth, count), *inside], most // 4):
                        yield _run(corners, loops, at, kept)


def _pieces(first: dict, loops: list[tuple[str, int, int]], most: int) -> Iterator[tuple[dict, list]]:
    """Yield nested loops, (which of i, k, j, its step, turns), in pieces of about `most` steps at most."""
    (name, step, turns), *inner = loops
    inside = math.prod(count for *_, count in inner)
    taken = min(max(most // inside, 1), turns) if inner else turns
    for n in range(0, turns, taken):
        here = first | {name: first[name] + n * step}
        if inside > most and len(inner) > 1:
            yield from _pieces(here, inner, most)
        else:
            yield here, [(name, step, min(taken, turns - n)), *inner]


def _run(
    first: dict, loops: list[tuple[str, int, int]], at: Mapping[str, Matrix], kept: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the accesses of nested loops from the element `first` on."""
    found = {}
    for name, (down, along) in AXES.items():
        matrix = at[name]
        strides = {down: matrix.row_stride, along: matrix.column_stride}
        steps = [(strides.get(loop, 0) * step, turns) for loop, step, turns in loops]
        found[name] = addresses(corner(matrix, first[down], first[along]), *steps)
    A, B, C = found.values()
    if not kept:
        return joined([(np.stack([A, B, C, C], -1), [False, False, False, True])])
    length = C.shape[-1]
    body = [A, B] if kept == "C" else [B if kept == "A" else A, C, C]
    writes = [False] + ([False, False] if kept == "C" else [False, False, True]) * length
    ends = [found[kept][..., :1]] * (2 if kept == "C" else 1)
    parts = [ends[0], np.stack(body, -1).reshape(*C.shape[:-1], -1), *ends[1:]]
    return joined([(np.concatenate(parts, -1), writes + [True] * (len(ends) - 1))])


def nest_accesses(sizes: Sizes, blocks: Sizes, innermost: str, kept: str) -> int:
    """Return how many accesses `nest` makes."""
    steps = math.prod(sizes)
    if not steps or not kept:
        return 4 * steps
    size, block = sizes["ikj".index(innermost)], blocks["ikj".index(innermost)]
    runs = steps // size * -(-size // block)
    return 2 * steps + 2 * runs if kept == "C" else 3 * steps + runs
