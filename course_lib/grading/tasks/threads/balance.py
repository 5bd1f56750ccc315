"""Task 05.balance: tiles of unequal length dealt out so that nobody waits long for the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch, exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.measure.scheduling import best_makespan, plan

MOST_OVER = 1.10
EASY = 1.05  # every input has an answer that is better than this, found by a simple rule

SOLUTION = source("""
    def deal(costs, threads):
        busy, owner = [0.0] * threads, {}
        for tile in sorted(range(len(costs)), key=lambda tile: -costs[tile]):
            free = busy.index(min(busy))
            owner[tile] = free
            busy[free] += costs[tile]
        return [owner[tile] for tile in range(len(costs))]
""")


def deal(costs: list[float], threads: int) -> list[int]:
    """Return the thread of each tile: the longest first, each to the thread that is free first."""
    owner = [0] * len(costs)
    for bar in plan(costs, threads, "longest").bars:
        owner[bar.item] = bar.thread
    return owner


def makespan(costs: Sequence[float], threads: int, owner: Sequence[int]) -> float:
    """Return when the last thread ends."""
    busy = [0.0] * threads
    for cost, thread in zip(costs, owner, strict=True):
        busy[int(thread)] += cost
    return max(busy)


@dataclass(frozen=True)
class WithinTenPercent:
    """Accepts any distribution whose last thread ends at most 10 % later than the best one's."""

    def compare(self, got: Any, want: list, args: tuple) -> Mismatch | None:
        """Return None if `got` has a thread for each tile of args (costs, threads) and is balanced."""
        found = exact().compare(got, want, args)
        if found is None or found.form:
            return found
        costs, threads = args
        strange = [thread for thread in got if thread not in range(threads)]
        if strange:
            return Mismatch((f"There is no thread {strange[0]:g}: they are 0 to {threads - 1}.",), form=True)
        best, exactly = best_makespan(costs, threads)
        over = makespan(costs, threads, got) / best - 1 if best else 0.0
        if over <= MOST_OVER - 1:
            return None
        limit = "the best that is possible" if exactly else "what nobody can beat (total / threads)"
        busy = makespan(costs, threads, got)
        late = f"{100 * over:.0f} % after {limit}, {best:.4g}"
        said = f"Your last thread ends at {busy:.4g}, {late}; 10 % are allowed."
        return Mismatch((said,))


def _works(rng: np.random.Generator) -> Iterator[Case]:
    yield Case(([1.0] * 6, 3), "six equal tiles, three threads")
    yield Case(([5.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2), "one tile as long as all others")
    yield Case(([1.0, 1.0, 1.0, 1.0, 1.0, 5.0], 2), "the one that is as long as all others comes last")
    yield Case(([1.0, 1.0, 1.0, 1.0, 4.0], 2), "the longest comes last")
    yield Case(([2.0, 8.0, 2.0, 3.0, 7.0, 4.0], 3), "six tiles, three threads")
    yield Case(([3.0, 2.0], 4), "more threads than tiles")
    yield Case(([], 2), "no tile at all")
    yield Case(([2.0, 1.0, 3.0], 1), "one thread")
    yield Case(([float(row + 1) for row in range(16)], 2), "a triangle: every band of rows is longer")
    for tiles, threads in ((12, 2), (14, 3), (16, 4), (60, 4), (96, 8)):
        costs = _unequal(rng, tiles, threads)
        yield Case((costs, threads), f"{tiles} tiles of very different length, {threads} threads")


def _unequal(rng: np.random.Generator, tiles: int, threads: int) -> list[float]:
    """Return costs that a simple rule balances well, while dealing them out as they come does not."""
    while True:
        costs = [round(float(cost), 3) for cost in np.sort(rng.lognormal(0.0, 0.7, tiles))]
        best, _ = best_makespan(costs, threads)
        blind = min(plan(costs, threads, policy).makespan for policy in ("static", "cyclic"))
        in_order = plan(costs, threads, "dynamic").makespan
        longest = plan(costs, threads, "longest").makespan
        if longest <= EASY * best and min(blind, in_order if tiles < 20 else blind) > 1.12 * best:
            return costs


def _owners(policy: str):
    """Return what makes the distribution of a policy, where that one is not good enough."""

    def make(costs: list[float], threads: int) -> list[int] | None:
        owner = [0] * len(costs)
        for bar in plan(costs, threads, policy).bars:
            owner[bar.item] = bar.thread
        best, _ = best_makespan(costs, threads)
        return owner if makespan(costs, threads, owner) > MOST_OVER * best else None

    return make


TASK = Task(
    id="05.balance",
    title="Nobody waits long",
    kind="open",
    points=3,
    difficulty=3,
    minutes=15,
    good_for="a schedule within ten per cent of the best one, although finding the best is NP-hard",
    entry="deal",
    cases=_works,
    reference=deal,
    comparison=WithinTenPercent(),
    rules=(OnlyImports(("math", "heapq", "numpy", "itertools")),),
    lookalikes=(
        Lookalike(
            "Those are contiguous parts of equal number (static): tiles are equal in number, not in length.",
            _owners("static"),
        ),
        Lookalike(
            "Each tile goes to the thread that is free first, in the order they come (dynamic). A long "
            "tile that "
            "comes late finds everybody nearly done: which should come first?",
            _owners("dynamic"),
        ),
        Lookalike(
            "The tiles are dealt out like cards: one in turn to each thread, however long they are.",
            _owners("cyclic"),
        ),
        Lookalike(
            "One thread does everything.",
            fits=lambda got, costs, threads: threads > 1 and len(costs) > 1 and len(set(got)) == 1,
        ),
    ),
    hints=(
        "Somebody gives each tile to the thread that is free first. Which tile should not come last?",
        "The longest. Sort the tiles by cost, longest first, and give each to the thread with the least "
        "work so "
        "far. Keep the numbers of the tiles, for the result is in their own order.",
        "for tile in sorted(range(len(costs)), key=lambda tile: -costs[tile]): free = busy.index(min(busy)); "
        "owner[tile] = free; busy[free] += costs[tile]",
    ),
)
