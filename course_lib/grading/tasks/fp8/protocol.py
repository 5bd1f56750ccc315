"""What a table of waits leads to: every order of a producer, a consumer and the copies is tried.

A small sister of `simulators.ring`, in which the table says who waits for what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

DEADLOCK, OVERWRITTEN, NOT_THERE = "deadlock", "overwritten", "not there"
MOST_VISITS = 16  # the first laps show what all laps do
State = tuple[int, int, frozenset[int]]  # visits begun, visits consumed, copies under way


def outcome(table: Sequence[Sequence[int]], stages: int) -> str | None:
    """Return what can go wrong under some order of events: DEADLOCK, OVERWRITTEN, NOT_THERE or None.

    A row is [stage, parity of the producer's wait, parity of the consumer's]. Raises ValueError for a table
    that names no such stage or parity.
    """
    table = [tuple(row) for row in table[:MOST_VISITS]]
    if any(row[0] not in range(stages) or not {*row[1:]} <= {0, 1} for row in table):
        raise ValueError("a row of the table is no stage with two parities.")
    todo, seen, stuck = [(0, 0, frozenset())], set(), False
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        steps = list(_steps(table, state))
        wrong = next((one for one in steps if isinstance(one, str)), None)
        if wrong:
            return wrong
        stuck |= not steps and state[1] < len(table)
        todo += steps
    return DEADLOCK if stuck else None


def _steps(table: list[tuple[int, ...]], state: State) -> Iterator[State | str]:
    """Yield the states that may follow, or what goes wrong."""
    begun, consumed, under_way = state
    if begun < len(table):
        stage, parity, _ = table[begun]
        if (_visits(table, stage, consumed) - 1) % 2 == parity:  # phases of `empty` that are over
            yield begun + 1, consumed, under_way | {begun}
    for visit in under_way:
        earlier = range(consumed, visit)
        if any(table[one][0] == table[visit][0] for one in earlier):
            yield OVERWRITTEN
        yield begun, consumed, under_way - {visit}
    if consumed < len(table):
        stage, _, parity = table[consumed]
        come = _visits(table, stage, begun) - sum(table[one][0] == stage for one in under_way)
        if (come - 1) % 2 == parity:  # phases of `full` that are over
            if consumed >= begun or consumed in under_way:
                yield NOT_THERE
            else:
                yield begun, consumed + 1, under_way


def _visits(table: list[tuple[int, ...]], stage: int, first: int) -> int:
    return sum(row[0] == stage for row in table[:first])
