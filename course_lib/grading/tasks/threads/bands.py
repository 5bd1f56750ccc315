"""Task 05.bands: the rows of C dealt out evenly, so that no two threads write the same one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch, exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task


def bands(rows: int, threads: int) -> list[list[int]]:
    """Return [start, stop] of each thread's rows; stop is exclusive, sizes differ by one at most."""
    edges = [rows * thread // threads for thread in range(threads + 1)]
    return [[start, stop] for start, stop in pairwise(edges)]


@dataclass(frozen=True)
class EvenBands:
    """Accepts any bands that cover every row once, in order, with sizes that differ by one at most."""

    def compare(self, got: Any, want: list, args: tuple) -> Mismatch | None:
        """Return None if `got` is such a list for args (rows, threads), else what is wrong."""
        if type(got) is list:  # pairs may be tuples, as in the chapter
            got = [list(pair) if type(pair) is tuple else pair for pair in got]
        found = exact().compare(got, want, args)
        if found and found.form:
            return found
        edges = [edge for pair in got for edge in pair]
        floats = [edge for edge in edges if not isinstance(edge, int | np.integer)]
        if floats and all(edge == int(edge) for edge in edges):
            return Mismatch((f"The edge {floats[0]!r} is no int, so it cannot be an index.",))
        if found is None:
            return None
        said = _what_is_wrong([list(map(float, pair)) for pair in got], args[0])
        return Mismatch((said,)) if said else None


def _what_is_wrong(got: list[list[float]], rows: int) -> str | None:
    """Return where the bands fail, in numbers; None if they do not."""
    if any(edge != int(edge) for pair in got for edge in pair):
        return "Some edges lie inside a row."
    for thread, (start, stop) in enumerate(got):
        if stop < start:
            return f"The band of thread {thread} stops at {stop:g}, before it begins at {start:g}."
    if got[0][0] != 0:
        return f"The first band begins at row {got[0][0]:g}."
    for thread, ((_, stop), (start, _)) in enumerate(pairwise(got)):
        if start != stop:
            return f"Thread {thread} stops before row {stop:g}, thread {thread + 1} begins at row {start:g}."
    if got[-1][1] != rows:
        return f"The last band stops at {got[-1][1]:g}; there are {rows} rows."
    sizes = [stop - start for start, stop in got]
    if max(sizes) - min(sizes) > 1:
        return f"One thread gets {max(sizes):g} rows, another {min(sizes):g}."
    return None


def _owners(got: list[list[int]], rows: int) -> list[int]:
    """Return how many bands each row is in."""
    return [sum(start <= row < stop for start, stop in got) for row in range(rows)]


SLIPS = (
    Lookalike(
        "A band begins and stops at whole rows: divide with //.",
        fits=lambda got, rows, threads: any(
            not isinstance(edge, int | np.integer) for pair in got for edge in pair
        ),
    ),
    Lookalike(
        "A band cannot stop before it begins: the second number is where it stops, not how long it is.",
        fits=lambda got, rows, threads: any(stop < start for start, stop in got),
    ),
    Lookalike(
        "Some rows are in two bands: two threads would write the same elements of C.",
        fits=lambda got, rows, threads: max(_owners(got, rows), default=0) > 1,
    ),
    Lookalike(
        "Some rows belong to nobody: their elements of C would never be computed.",
        fits=lambda got, rows, threads: min(_owners(got, rows), default=1) < 1,
    ),
    Lookalike(
        "All wait for the slowest: the sizes of two bands may differ by one row at most.",
        fits=lambda got, rows, threads: True,
    ),
)


def _teams(rng: np.random.Generator) -> Iterator[Case]:
    for rows, threads in ((12, 4), (7, 1), (10, 4), (11, 4), (1000, 7), (3, 5), (0, 3), (1, 1)):
        yield Case((rows, threads), f"{rows} rows for {threads} thread{'s' * (threads > 1)}")
    for _ in range(4):
        threads = int(rng.integers(2, 20))
        rows = threads * int(rng.integers(1, 60)) + int(rng.integers(1, threads))
        yield Case((rows, threads), f"{rows} rows for {threads} threads")


TASK = Task(
    id="05.bands",
    title="A band for everybody",
    kind="complete",
    points=1,
    difficulty=2,
    minutes=10,
    good_for="the one line on which it depends that no thread needs a lock and none waits long",
    entry="bands",
    cases=_teams,
    reference=bands,
    comparison=EvenBands(),
    rules=(OnlyImports(("math",)),),
    lookalikes=SLIPS,
    hints=(
        "Where would the band of thread t begin if rows could be cut into pieces of any size?",
        "At rows * t / threads. Rounded down it is a whole row – and the band before must stop at the same "
        "one.",
        "start, stop = rows * thread // threads, rows * (thread + 1) // threads",
    ),
)
