"""Task 07.batch: the largest batch that still answers in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.grading.tasks.batched.shared import USUAL_IMPORTS

Measured = list[tuple[int, float]]  # batch, seconds


def largest_batch(measured: Measured, rate: float, target: float) -> tuple[int, float]:
    """Return the largest batch whose slowest answer comes within `target` seconds, and its utterances/s.

    Utterances come evenly, `rate` a second; a batch starts when it is full. Its first one has waited for all
    others, (batch - 1) / rate, and then takes the batch's seconds. A batch must be done before the next one
    is full, or the queue grows without end. (0, 0.0) if no batch will do.
    """
    good = [
        (batch, batch / seconds)
        for batch, seconds in measured
        if (batch - 1) / rate + seconds <= target and batch / seconds >= rate
    ]
    return max(good, default=(0, 0.0))


def _servers(rng: np.random.Generator) -> Iterator[Case]:
    sizes = (1, 2, 4, 8, 16, 32)
    even = [(batch, 0.0625 + 0.015625 * batch) for batch in sizes]  # powers of two: sums are exact
    yield Case((even, 16.0, 0.5), "16 utterances a second, half a second to answer")
    yield Case((even, 16.0, 0.65), "16 utterances a second, 0.65 s to answer")
    yield Case((even, 16.0, 0.3125), "a batch that needs exactly the target")
    yield Case((even, 16.0, 0.0625), "no batch is fast enough")
    yield Case((even, 8.0, 0.0703125), "no batch is fast enough, by a little")
    yield Case((even, 64.0, 60.0), "time enough, and no batch keeps up with 64 a second")
    yield Case(([(1, 0.125), (2, 0.1875)], 8.0, 0.125), "a batch of one that keeps up exactly")
    yield Case(([(4, 0.25)], 16.0, 2.0), "four in exactly the time in which four arrive")
    yield Case((even, 20.0, 60.0), "any batch in time: the smallest ones do not keep up")
    yield Case(([(2, 0.75)], 2.5, 10.0), "2.67 utterances a second, and 2.5 arrive")
    yield Case(([(2, 1.0)], 2.5, 10.0), "2 utterances a second, and 2.5 arrive")
    yield Case(([], 4.0, 1.0), "nothing was measured")
    falling = [(1, 0.05), (2, 0.06), (4, 0.09), (8, 0.3)]
    yield Case((falling, 10.0, 2.0), "the throughput falls again: 44 a second in fours, 27 in eights")
    bumpy = [(1, 0.05), (2, 0.06), (3, 0.5), (4, 0.09), (6, 0.11)]
    yield Case((bumpy, 30.0, 0.2), "batch 3 was measured at a bad moment, 4 is fine")
    for said in ("measured from small to large", "measured from large to small", "measured in any order"):
        for _ in range(2):
            yield _server(rng, said)


def _server(rng: np.random.Generator, said: str) -> Case:
    """Return a server whose answer lies in the middle, and no batch near a limit of it by less than 1 %."""
    while True:
        fixed, each = float(rng.uniform(0.02, 0.2)), float(rng.uniform(0.002, 0.02))
        batches = [int(n) for n in np.sort(rng.choice(np.arange(1, 65), 9, replace=False))]
        measured = [(n, round((fixed + each * n) * float(rng.uniform(0.97, 1.03)), 4)) for n in batches]
        rate, target = round(float(rng.uniform(0.3, 0.8) / each), 1), round(float(rng.uniform(0.3, 2)), 2)
        if said != "measured from small to large":
            measured = (
                measured[::-1] if "large to small" in said else [measured[n] for n in rng.permutation(9)]
            )
        best = largest_batch(measured, rate, target)[0]
        limits = [abs((n - 1) / rate + s - target) / target for n, s in measured]
        limits += [abs(n / s - rate) / rate for n, s in measured]
        wrong = {_lazy(measured, rate, target), _last_full(measured, rate, target)}
        if batches[2] < best < batches[-2] and min(limits) > 0.01 and best not in wrong:
            return Case((measured, rate, target), f"{said}, {rate} a second, {target} s to answer")


def _lazy(measured: Measured, rate: float, target: float) -> int:
    """Return the largest batch that computes within the target: waiting is forgotten."""
    return max((n for n, s in measured if s <= target and n / s >= rate), default=0)


def _last_full(measured: Measured, rate: float, target: float) -> int:
    """Return the largest batch if the first one waits half of the time, the mean."""
    return max((n for n, s in measured if (n - 1) / rate / 2 + s <= target and n / s >= rate), default=0)


def _swiftest(measured: Measured, rate: float, target: float) -> int:
    """Return, of the batches that will do, the one with the highest throughput."""
    good = [(n / s, n) for n, s in measured if (n - 1) / rate + s <= target and n / s >= rate]
    return max(good, default=(0.0, 0))[1]


def _is(batch: Callable[..., int]) -> Callable[..., bool]:
    """Return what tells whether the answer has the batch that `batch(measured, rate, target)` gives."""
    return lambda got, *args: got[0] == batch(*args) != largest_batch(*args)[0]


TASK = Task(
    id="07.batch",
    title="As large as patience allows",
    kind="write",
    points=2,
    difficulty=3,
    minutes=15,
    good_for="choosing a batch by what users feel, instead of by the largest figure in a table",
    entry="largest_batch",
    cases=_servers,
    reference=largest_batch,
    comparison=close(rtol=1e-9, parts=("the batch", "the throughput")),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "That batch has the highest throughput; the largest one that will do is asked for.",
            fits=_is(_swiftest),
        ),
        Lookalike(
            "That batch is computed in time, but its first utterance has waited for all others before.",
            fits=_is(_lazy),
        ),
        Lookalike(
            "That is for the mean: the first utterance of a batch waits for all the others, twice as long.",
            fits=_is(_last_full),
        ),
        Lookalike(
            "That batch answers in time once, but it takes longer than the next one takes to fill: the queue "
            "grows without end.",
            fits=lambda got, measured, rate, target: any(
                n == got[0] and (n - 1) / rate + s <= target and n / s < rate for n, s in measured
            ),
        ),
        Lookalike(
            "A limit that is met exactly is met: at most the target, at least the rate (a batch fills in "
            "batch / rate).",
            fits=_is(
                lambda measured, rate, target: max(
                    (n for n, s in measured if (n - 1) / rate + s < target and n / s > rate), default=0
                )
            ),
        ),
        Lookalike(
            "A larger batch will do. Does the first utterance wait for too many? The others are one less "
            "than the batch. Or was a measurement not looked at?",
            fits=_is(
                lambda measured, rate, target: max(
                    (n for n, s in measured if n / rate + s <= target and n / s >= rate), default=0
                )
            ),
        ),
        Lookalike(
            "That is the smallest batch that will do; the largest is asked for, and measurements come in any "
            "order.",
            fits=_is(
                lambda measured, rate, target: min(
                    (n for n, s in measured if (n - 1) / rate + s <= target and n / s >= rate), default=0
                )
            ),
        ),
        Lookalike(
            "The batch is right. The throughput is batch / seconds of computing: what the server could do, "
            "whatever arrives.",
            fits=lambda got, *args: got[0] == largest_batch(*args)[0] > 0,
        ),
    ),
    hints=(
        "Eight utterances arrive evenly, 16 a second. The batch starts with the eighth. How long has the "
        "first one "
        "waited, and when does it get its answer?",
        "(batch - 1) / rate, plus the seconds of the batch: at most the target. And the server must do "
        "at least as many "
        "as arrive: batch / seconds >= rate. Look at every measurement; they come in any order.",
        "if (batch - 1) / rate + seconds <= target and batch / seconds >= rate and batch > best[0]: "
        "best = batch, batch / seconds",
    ),
)
