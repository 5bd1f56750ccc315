"""Task 05.transfer: two locks at a time, and no deadlock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules_threads import Scenario, UnderAllSchedules
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.threads.shared import CHECKED_LOCKS, LOCKS, THREADING_ONLY
from course_lib.simulators.interleavings import Lock

SOLUTION = source("""
    def transfer(giver, taker, amount, balance):
        if giver == taker:
            with lock_of(giver):
                return amount if balance[giver] >= amount else 0
        with lock_of(min(giver, taker)):
            with lock_of(max(giver, taker)):
                if balance[giver] < amount:
                    return 0
                balance[giver] -= amount
                balance[taker] += amount
                return amount
""")


def transfer(giver: int, taker: int, amount: int, balance: list[int]) -> int:
    """Return the amount that is moved: all of it, or 0 if the giver has less."""
    return amount if balance[giver] >= amount else 0


def _alone(rng: np.random.Generator) -> Iterator[Case]:
    for giver, taker in ((0, 1), (2, 0), (1, 2), (1, 1), (3, 2)):
        balance = [int(n) for n in rng.integers(20, 90, 4)]
        amount = int(rng.integers(1, 20))
        own = balance[giver]
        words = f"from account {giver} to account {taker}"
        yield Case((giver, taker, amount, [*balance]), words, must_not_change=False)
        yield Case((giver, taker, own, [*balance]), f"{words}, all it has", must_not_change=False)
        yield Case((giver, taker, own + 1, [*balance]), f"{words}, more than it has", must_not_change=False)


def _ends_as(*allowed: tuple[list[int], list[int]]):
    """Return what accepts final balances and results if the pair is among the allowed ones."""

    def right(final: dict[str, Any]) -> bool | str:
        got = final["balance"], final["results"]
        if any(got == one for one in allowed):
            return True
        balances = [balance for balance, _ in allowed]
        if got[0] not in balances:
            wanted = " or ".join(map(str, dict.fromkeys(map(tuple, balances))))
            return f"the balances end as {tuple(got[0])} instead of {wanted}"
        return f"the balances are right, but the transfers return {got[1]}"

    return right


def _all_there(total: int):
    def kept(values: dict[str, Any]) -> bool | str:
        there = sum(values["balance"])
        return there == total or f"the accounts hold {there} instead of {total}"

    return kept


def _bank(said: str, balance: list[int], orders: list[tuple[int, int, int]], *allowed) -> Scenario:
    return Scenario(
        said,
        tuple(f"{{entry}}({giver}, {taker}, {amount}, balance)" for giver, taker, amount in orders),
        {
            "balance": balance,
            "locks": {account: Lock() for account in range(len(balance))},
            "slots": {"-": 0},
        },
        _ends_as(*allowed),
        CHECKED_LOCKS,
    )


SCENARIOS = (
    _bank("one transfer", [10, 20], [(0, 1, 4)], ([6, 24], [4])),
    _bank("one transfer of all there is", [10, 20], [(1, 0, 20)], ([30, 0], [20])),
    _bank("one transfer of too much", [10, 20], [(0, 1, 11)], ([10, 20], [0])),
    _bank("one transfer from an account to itself", [10, 20], [(1, 1, 5)], ([10, 20], [5])),
    _bank("too much from an account to itself", [10, 20], [(1, 1, 21)], ([10, 20], [0])),
    _bank("two transfers the same way", [10, 20], [(0, 1, 3), (0, 1, 4)], ([3, 27], [3, 4])),
    _bank("two transfers in opposite directions", [10, 20], [(0, 1, 5), (1, 0, 3)], ([8, 22], [5, 3])),
    _bank(
        "two transfers of which one is covered",
        [10, 0],
        [(0, 1, 8), (0, 1, 7)],
        ([2, 8], [8, 0]),
        ([3, 7], [0, 7]),
    ),
    _bank(
        "a transfer from an account to itself, and one from this account at the same time",
        [10, 20],
        [(0, 0, 10), (0, 1, 5)],
        ([5, 25], [10, 5]),
        ([5, 25], [0, 5]),
    ),
    _bank(
        "three transfers in a ring",
        [10, 20, 30],
        [(0, 1, 1), (1, 2, 2), (2, 0, 4)],
        ([13, 19, 28], [1, 2, 4]),
    ),
    replace(
        _bank("two transfers that somebody watches", [10, 20], [(0, 1, 4), (1, 0, 3)], ([9, 21], [4, 3])),
        kept=_all_there(30),
    ),
)

TASK = Task(
    id="05.transfer",
    title="A transfer that never hangs",
    kind="write",
    points=4,
    difficulty=4,
    minutes=25,
    good_for="ordering locks, the one cure for deadlock that needs no luck and no timeout",
    entry="transfer",
    cases=_alone,
    reference=transfer,
    comparison=exact(),
    rules=(THREADING_ONLY, UnderAllSchedules(SCENARIOS, LOCKS)),
    lookalikes=(
        Lookalike(
            "It moves nothing although the giver has just enough: exactly the amount is enough.",
            fits=lambda got, giver, taker, amount, balance: balance[giver] == amount and got == 0,
        ),
        Lookalike(
            "That is more than the giver has: nothing is moved then, return 0.",
            fits=lambda got, giver, taker, amount, balance: balance[giver] < amount and got == amount,
        ),
    ),
    hints=(
        "Thread 0 moves money from 0 to 1 and holds the lock of 0; thread 1 moves money from 1 to 0 and "
        "holds the "
        "lock of 1. What would have to be true of the order of locks so that this cannot happen?",
        "If everybody takes the lock of the smaller number first, the thread that holds the larger one "
        "waits for "
        "nobody: no cycle. A mutex cannot be taken twice, so giver == taker needs care.",
        "with lock_of(min(giver, taker)): with lock_of(max(giver, taker)): compare, subtract, add, return "
        "– and "
        "before that a branch for giver == taker with one lock.",
    ),
)
