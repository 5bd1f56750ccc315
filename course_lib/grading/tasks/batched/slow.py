"""Task 07.slow: two profiles, and in the second one op has become slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.batched.shared import USUAL_IMPORTS

Row = tuple[str, int, float, float]  # name, calls, self_us, total_us


def suspect(before: list[Row], after: list[Row]) -> str:
    """Return the op, of those in both profiles, whose self time for a call grew by the largest factor."""
    usual = {name: self_us / calls for name, calls, self_us, _ in before}
    known = [row for row in after if row[0] in usual]
    return max(known, key=lambda row: row[2] / row[1] / usual[row[0]])[0]


#: name, calls in a forward, microseconds of its own for one call
_LEAVES = (
    ("addmm", 145, 1100.0),
    ("mm", 18, 300.0),
    ("bmm", 54, 150.0),
    ("mkldnn_convolution", 56, 900.0),
    ("native_layer_norm", 90, 60.0),
    ("silu", 54, 80.0),
    ("copy_", 338, 12.0),
    ("add", 131, 25.0),
)
_PARENTS = (("linear", 163, 4.0, ("addmm", "mm")), ("matmul", 54, 6.0, ("bmm", "copy_")))


def _pairs(rng: np.random.Generator) -> Iterator[Case]:
    for runs, said in ((1, "as many runs"), (3, "three times as many runs"), (0.25, "a quarter of the runs")):
        for slow in rng.permutation(["mm", "bmm", "silu", "copy_", "native_layer_norm"])[:3]:
            yield _pair(rng, str(slow), runs, f"the second profile is of {said}")
    yield _pair(rng, "matmul", 2, "the second profile is of twice as many runs; one parent is slow itself")
    before, after = _pair(rng, "bmm", 1, "one op").args
    calls = 4 * after[0][1]
    yield Case(
        (before, [("warm_up", calls, 9e6, 9e6), *after]), "an op that was not there before is no suspect"
    )
    yield Case(([*before, ("warm_up", calls, 9.0, 9.0)], after), "an op that has gone is no suspect")
    twice = [
        (name, 3 * calls, 2.4 * own, 2.4 * total) if name == "addmm" else (name, calls, own, total)
        for name, calls, own, total in before
    ]
    slower = [
        (name, calls, 1.2 * own, 1.2 * total) if name == "add" else (name, calls, own, total)
        for name, calls, own, total in twice
    ]
    half = [(name, calls, own / 2, total / 2) for name, calls, own, total in slower]
    yield Case((before, half), "a faster machine: one op has gained least from it")
    brief = [
        [(name, calls, own / 4000, total / 4000) for name, calls, own, total in rows]
        for rows in (before, slower)
    ]
    yield Case((brief[0], brief[1]), "calls of less than a microsecond")
    others = [row for row in before if row[0] != "add"]
    (added,) = [row for row in before if row[0] == "add"]
    (grown,) = [row for row in slower if row[0] == "add"]
    steady = [row for row in slower if row[0] != "add"]
    yield Case((before, [grown, *steady]), "the slow op comes first after")
    yield Case((before, [*steady[1:], grown]), "the slow op comes last after, and nine ops are left")
    yield Case(([added, *others], slower), "the slow op comes first before")
    yield Case(([*others[1:], added], slower), "the slow op comes last before, and nine ops are known")
    yield Case(
        (before, slower), "addmm is called three times as often; another op is 20 % slower for each call"
    )


def _pair(rng: np.random.Generator, slow: str, runs: float, said: str) -> Case:
    """Return two profiles that differ by noise of 5 %, by the runs, by their order, and by one slow op."""
    before, after = _profile(rng, 4.0, ""), _profile(rng, 4.0 * runs, slow)
    return Case((before, after), said)


def _profile(rng: np.random.Generator, runs: float, slow: str) -> list[Row]:
    rows = {}
    for name, calls, each in _LEAVES:
        own = calls * runs * each * float(rng.uniform(0.97, 1.03)) * (1.6 if name == slow else 1.0)
        rows[name] = (name, int(calls * runs), round(own, 1), round(own, 1))
    for name, calls, each, children in _PARENTS:
        own = calls * runs * each * float(rng.uniform(0.97, 1.03)) * (1.6 if name == slow else 1.0)
        total = own + sum(rows[child][3] for child in children)
        rows[name] = (name, int(calls * runs), round(own, 1), round(total, 1))
    listed = list(rows.values())
    return [listed[n] for n in rng.permutation(len(listed))]


def _most(key: Callable[..., float]) -> Callable[..., bool]:
    """Return what tells whether an op was chosen by `key(row before, row after)`, and that is another one."""

    def fits(got: str, before: list[Row], after: list[Row]) -> bool:
        known = {row[0]: row for row in before}
        chosen = max((row for row in after if row[0] in known), key=lambda row: key(known[row[0]], row))[0]
        return got == chosen != suspect(before, after)

    return fits


TASK = Task(
    id="07.slow",
    title="One op has become slow",
    kind="debug",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="comparing two profiles so that neither the number of runs nor a caller misleads you",
    entry="suspect",
    cases=_pairs,
    reference=suspect,
    comparison=exact(),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "That op was not there before, so it cannot have become slower. Was none found? On a faster "
            "machine every ratio may be below 1.",
            fits=lambda got, before, after: got not in {row[0] for row in before},
        ),
        Lookalike(
            "That op's self time has grown by the largest factor, but it was called more often: divide by "
            "the calls.",
            fits=_most(lambda was, now: now[2] / was[2]),
        ),
        Lookalike(
            "You compare total times: a total holds the time of the ops that it calls. Compare the "
            "self times.",
            fits=_most(lambda was, now: now[3] / now[1] / (was[3] / was[1])),
        ),
        Lookalike(
            "One call of that op has hardly grown. Are the rows paired by name? And of a large op a few per "
            "cent of noise are many microseconds, so take the ratio of what one call took, not a difference.",
            fits=lambda got, before, after: _growth(got, before, after) < 1.1,
        ),
    ),
    hints=(
        "Three things mislead `broken`: how are the rows paired? Whose time is in total_us? What if the "
        "second "
        "profile is of twice as many runs?",
        "Pair the rows by name. Self time is the op's own. Self time / calls does not depend on the "
        "number of runs, "
        "and a ratio not on how long an op takes anyway.",
        "usual = {name: self_us / calls for …before}; then the name with the largest "
        "self_us / calls / usual[name] of those in both.",
    ),
)


def _growth(name: str, before: list[Row], after: list[Row]) -> float:
    """Return by which factor the self time for one call of an op has grown."""
    (was,), (now,) = ([row[2] / row[1] for row in rows if row[0] == name] for rows in (before, after))
    return now / was
