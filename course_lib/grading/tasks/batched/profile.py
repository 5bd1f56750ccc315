"""Task 07.profile: where to begin, from a profile and two numbers of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.patterns import same
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.batched.shared import USUAL_IMPORTS

Row = tuple[str, int, float, float, float, float]  # name, calls, self_us, total_us, flops, bytes


def begin_with(rows: list[Row], gflops: float, gbytes: float) -> tuple[str, float, float]:
    """Return the op whose self time is furthest above its roofline, its share of all self time, and the
    speed-up of the whole, by Amdahl's law, if this op came down to its roofline.

    Times in microseconds; `gflops` in GFLOP/s, `gbytes` in GB/s: 1000 FLOP or bytes a microsecond for each.
    """
    time = sum(row[2] for row in rows)
    gain, name, own = max((_gain(row, gflops, gbytes), row[0], row[2]) for row in rows)
    return name, own / time, time / (time - gain)


def _gain(row: Row, gflops: float, gbytes: float) -> float:
    _, _, self_us, _, flops, moved = row
    return self_us - max(flops / gflops, moved / gbytes) / 1000


_NAMES = ("addmm", "bmm", "mkldnn_convolution", "copy_", "silu", "native_layer_norm", "add", "_softmax")


def _profiles(rng: np.random.Generator) -> Iterator[Case]:
    for said in (
        "the op with most time has the most to gain",
        "the op with most time is at its roofline already",
        "an op that moves much and computes nothing",
        "a parent whose total holds its children",
        "the op with the most calls, the one with the most FLOP and the one to begin with are three",
    ):
        for _ in range(2):
            yield _profile(rng, said)
    rows, gflops, gbytes = _profile(rng, "the op with most time has the most to gain").args
    turned = [(rows[n - 1][0], *row[1:]) for n, row in enumerate(rows)]
    yield Case((rows, gflops, gbytes), "six ops")
    yield Case((turned, gflops, gbytes), "the same numbers, with other names")
    inside = [("forward", 3, 700.0, 1200.5, 0.0, 0.0), ("addmm", 12, 500.5, 500.5, 2.4e7, 4e5)]
    yield Case((inside, 50.0, 10.0), "a parent that spends most of the time itself")
    even = [("silu", 10, 900.0, 900.0, 4e5, 8.5e6), ("bmm", 10, 600.0, 600.0, 1e7, 2e5)]
    yield Case((even, 50.0, 10.0), "an op with some arithmetic that is at its memory roof")
    yield Case(([("add", 2, 1.5, 1.5, 400.0, 8000.0)], 50.0, 10.0), "less than a microsecond to gain")
    yield Case(([("addmm", 10, 900.0, 900.0, 2e7, 4e5)], 50.0, 10.0), "one op only")


def _profile(rng: np.random.Generator, said: str) -> Case:
    """Return a profile in which the op to begin with is neither the first nor near a second one.

    Ops at their roofline lie 2 to 10 % above it. Wrong ways to choose lead elsewhere, as the words say.
    """
    gflops, gbytes = float(rng.integers(40, 120)), float(rng.integers(8, 25))
    names = [str(name) for name in rng.permutation(_NAMES)]
    top = 10000.0 * float(rng.uniform(1, 5))
    near, dear = float(rng.uniform(1.02, 1.1)), float(rng.uniform(2.5, 4.0))
    first = "most time has" in said
    # (name, calls, self, how far above its roofline, bound by compute or by memory)
    kinds = [
        (names[0], 40, top, dear if first else near, "compute"),
        (names[1], 300, 0.8 * top, near if first else dear, "memory" if "moves" in said else "compute"),
        (names[2], 900, 0.3 * top, 2.0, "memory"),
        (names[3], 120, 0.2 * top, 9.0, "compute"),
        (names[4], 60, 0.7 * top, near, "memory"),
    ]
    rows = []
    for name, calls, self_us, above, bound in kinds:
        self_us = round(self_us * float(rng.uniform(0.97, 1.03)), 1)
        least = self_us / above * 1000  # FLOP for each GFLOP/s, bytes for each GB/s
        other = float(rng.uniform(0.05, 0.6))
        flops = round(least * gflops * (1.0 if bound == "compute" else other))
        moved = round(least * gbytes * (1.0 if bound == "memory" else other))
        flops = 0 if "moves" in said and bound == "memory" else flops
        rows.append((name, int(calls * rng.integers(1, 4)), self_us, self_us, float(flops), float(moved)))
    everything = round(sum(row[2] for row in rows), 1)
    own = round(0.02 * top * float(rng.uniform(0.5, 1.5)), 1)
    rows.append(("forward", 1, own, round(everything + own, 1), 0.0, 0.0))
    rows = [rows[n] for n in rng.permutation(len(rows))]
    return Case((rows, gflops, gbytes), said)


def _chosen(key: Callable[..., float]) -> Callable[..., bool]:
    """Return what the answer would be if the op were chosen by `key(row, gflops, gbytes)`."""

    def make(rows: list[Row], gflops: float, gbytes: float) -> tuple[str, float, float] | None:
        row = max(rows, key=lambda one: key(one, gflops, gbytes))
        if row[0] == begin_with(rows, gflops, gbytes)[0]:
            return None
        return row[0]

    return lambda got, *args: got[0] == make(*args)


TASK = Task(
    id="07.profile",
    title="Where to begin",
    kind="predict",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="not spending a week on the op at the top of the list when it is as fast as it can be",
    entry="begin_with",
    cases=_profiles,
    reference=begin_with,
    comparison=close(rtol=1e-9, parts=("the op", "its share", "the speed-up")),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "That one has the largest total time, but a total holds the time of the ops it calls: self time "
            "is its own.",
            fits=_chosen(lambda row, *peaks: row[3]),
        ),
        Lookalike(
            "That one takes the most time, but its roofline leaves little to gain: ask for self time minus "
            "the least possible time.",
            fits=_chosen(lambda row, *peaks: row[2]),
        ),
        Lookalike(
            "That one is furthest above its roofline as a ratio. What counts is the time to be gained: a "
            "difference.",
            fits=_chosen(lambda row, gflops, gbytes: _ratio(row, gflops, gbytes)),
        ),
        Lookalike(
            "That one has the most calls; many calls may take little time.",
            fits=_chosen(lambda row, *peaks: row[1]),
        ),
        Lookalike(
            "The share is that of the total time, which counts the ops inside others twice: divide by "
            "the sum "
            "of the self times.",
            fits=lambda got, rows, *peaks: same(
                got[1], begin_with(rows, *peaks)[1] * sum(r[2] for r in rows) / sum(r[3] for r in rows)
            ),
        ),
        Lookalike(
            "The share is that of what there is to gain; it should be that of the op's self time.",
            fits=lambda got, rows, *peaks: same(got[1], 1 - 1 / begin_with(rows, *peaks)[2]),
        ),
        Lookalike(
            "The share is in per cent: 20 % is 0.2.",
            fits=lambda got, *args: same(got[1], 100 * begin_with(*args)[1]),
        ),
        Lookalike(
            "At its roofline an op takes the longer of the two times, arithmetic or memory.",
            fits=lambda got, *args: any(same(got[2], _speed_up(*args, of)) for of in (sum, min)),
        ),
        Lookalike(
            "That is the speed-up if the op took no time at all; it cannot be below its roofline, in "
            "microseconds: flops / (gflops * 1000).",
            fits=lambda got, *args: same(got[2], 1 / (1 - begin_with(*args)[1])),
        ),
        Lookalike(
            "That is the time that is left; the speed-up is its inverse.",
            fits=lambda got, *args: same(got[2], 1 / begin_with(*args)[2]),
        ),
        Lookalike(
            "That is how many times as fast the op alone becomes. All the others take as long as before.",
            fits=lambda got, rows, *peaks: same(
                got[2], max((_gain(r, *peaks), _ratio(r, *peaks)) for r in rows)[1]
            ),
        ),
    ),
    hints=(
        "An op with 10 million FLOP and 1 million bytes, on a machine with 100 GFLOP/s and 10 GB/s: how long "
        "does it take at least?",
        "The longer one of flops / (gflops * 1000) and bytes / (gbytes * 1000) microseconds. What can be "
        "gained is "
        "self time minus that; take the op with the largest gain. The whole then takes the sum of all self "
        "times minus the gain.",
        "gain = self_us - max(flops / (gflops * 1000), bytes / (gbytes * 1000)); return name, self_us / "
        "time, "
        "time / (time - gain)",
    ),
)


def _speed_up(rows: list[Row], gflops: float, gbytes: float, of: Callable[..., float]) -> float:
    """Return the speed-up if the op took `of` both times, sum or min, in place of the longer one."""
    op = begin_with(rows, gflops, gbytes)[0]
    (row,) = [row for row in rows if row[0] == op]
    time, least = sum(row[2] for row in rows), of((row[4] / gflops, row[5] / gbytes)) / 1000
    return time / (time - (row[2] - least))


def _ratio(row: Row, gflops: float, gbytes: float) -> float:
    """Return how many times as long as its roofline allows an op takes; 0 if it has nothing to do."""
    least = max(row[4] / gflops, row[5] / gbytes) / 1000
    return row[2] / least if least else 0.0
