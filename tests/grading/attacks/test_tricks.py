"""Every known trick in every task that it could serve gains nothing. The table is tricks.txt."""

from __future__ import annotations

from itertools import groupby

import pytest
import tricks

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("tracer_ready")]
QUICK = 60


def undeserved(combinations, monkeypatch) -> tuple[int, list[str]]:
    """Judge them; return how many there were, and what was let through or got more than it is worth."""
    from course_lib.grading.sandbox.bubblewrap import AnswerLimits, Sandbox

    sandbox = Sandbox(limits=AnswerLimits(call_s=10, task_s=60, memory_mb=1000, disk_mb=16, processes=16))
    combinations, found = list(combinations), []
    for one in combinations:
        said = tricks.refusal(one, monkeypatch, sandbox)
        if said is None and one.trick and one.trick.must_be == "refused":
            found.append(f"{one.name}: was not refused")
            continue
        points = tricks.judged(one, sandbox)["points"] if said is None else 0.0
        if points > one.worth:
            found.append(f"{one.name}: got {points}, and is worth {one.worth}")
        if said is not None and ("could not be judged" in said or not said):
            found.append(f"{one.name}: {said or 'nothing was said of it'}")
    return len(combinations), found


def spread(number: int) -> list[tricks.Combination]:
    """Return so many combinations, of all places the same number, and whole answers, other tricks in each."""
    places = groupby(tricks.combinations(every=7), key=lambda one: one.trick and one.trick.place)
    lists = [list(ones) for _, ones in places]
    each = -(-number // len(lists))
    return [one for ones in lists for one in ones[:: max(1, len(ones) // each)][:each]]


def test_known_tricks_gain_nothing(monkeypatch):
    number, found = undeserved(spread(QUICK), monkeypatch)
    assert number >= QUICK and found == []


@pytest.mark.slow
def test_no_trick_gains_anything_in_any_task(monkeypatch):
    number, found = undeserved(tricks.combinations(every=7), monkeypatch)
    assert number >= 1500 and found == []


def test_a_trick_that_worked_would_be_seen(monkeypatch):
    solution = next(one for one in tricks.combinations(every=7) if one.id == "01.count")
    right = "def operations(M, K, N):\n    return M * N * K, M * N * max(K - 1, 0)\n"
    planted = tricks.Combination("01.count", right, 0.0, None, "a right answer")
    harmless = tricks.Combination("01.count", right, 1.0, solution.trick, "a harmless trick")
    _, found = undeserved([planted, harmless], monkeypatch)
    assert found == ["a right answer: got 1.0, and is worth 0.0", "a harmless trick: was not refused"]
