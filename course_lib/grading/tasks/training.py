"""Tasks of interlude C: what is averaged, cut, sent and kept where many ranks train one model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from course_lib.distributed.collectives import ring_all_reduce
from course_lib.distributed.wire import Array, Wire
from course_lib.grading.compare import Mismatch, Values, close, describe, exact, is_number, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.stage import OnTheWire, played
from course_lib.grading.task import Case, Task, source
from course_lib.training import data_parallel, pipeline, zero

PLAIN = Language(("math", "numpy", "itertools"))
FEW = (1, 2, 3, between(4, 9))
MANY = (*FEW, between(20, 60))
#: What the assignment hands out for the tasks that all ranks call: it stays as it is.
RING = source("""
    def ring_sum(wire, x):
        P, r = wire.size, wire.rank
        left, right = (r - 1) % P, (r + 1) % P
        blocks = np.array_split(np.ravel(x), P)
        for step in range(P - 1):
            out, into = (r - step) % P, (r - step - 1) % P
            came = wire.exchange(blocks[out], to=right, source=left, like=blocks[into])
            blocks[into] = blocks[into] + came
        for step in range(P - 1):
            out, into = (r + 1 - step) % P, (r - step) % P
            blocks[into] = wire.exchange(blocks[out], to=right, source=left, like=blocks[into])
        return np.concatenate(blocks).reshape(x.shape)
""")
WIRE = Language(("math", "numpy"), wire=("send", "receive", "exchange"), given=RING)


# --- C.average: a mean over ranks that have unequally many examples -----------------------------------------


def average(wire: Wire, gradient: Array, examples: int, slip: str = "") -> Array:
    """Return the gradient of the mean over all ranks' examples from that over this rank's own."""
    if slip == "of ranks":
        return ring_all_reduce(wire, gradient) / wire.size
    if slip in ("sum", "sum of ranks"):
        return ring_all_reduce(wire, gradient * examples) / (wire.size if "ranks" in slip else 1)
    return data_parallel.average(wire, [gradient], examples)[0]


def _slipped(slip: str) -> Callable[..., bool]:
    """Return what says whether the ranks' values are those of a slip."""
    wrong = played(lambda wire, *args: average(wire, *args, slip))

    def fits(got: Any, gradients: list, examples: list) -> bool:
        values, right = wrong(gradients, examples)[0], played(average)(gradients, examples)[0]
        return np.allclose(got[0], values) and not np.allclose(values, right)

    return fits


def _unequal(rng: np.random.Generator) -> Iterator[Case]:
    yield _gradients(rng, [16, 16], 5, "equally many")
    yield _gradients(rng, [1, 3], 4, "unequally many")
    yield _gradients(rng, [7, 0, 5], 11, "rank 1 has no example, and so no gradient: NaN")
    without = (slice(0), slice(1, 2), slice(1, None), slice(0, -1))  # these ranks have no example
    flat = (slice(0), slice(1), slice(None))  # these ranks' gradients are 0, and count as others do
    lengths, sizes = (1, between(2, 9), 900), (1, 1e-30, 1e30)
    rows = every_pair(
        rng, ranks=FEW, length=lengths, most=(1, 500, 10**7), without=without, size=sizes, flat=flat
    )
    for row in sorted(rows, key=lambda row: row["ranks"]):
        examples = rng.integers(1, row["most"] + 1, row["ranks"])
        examples[row["without"]] = 0
        yield _gradients(rng, examples.tolist(), row["length"], "drawn", row["size"], row["flat"])


def _gradients(
    rng: np.random.Generator,
    examples: list[int],
    length: int,
    what: str,
    size: float = 1,
    flat: slice = slice(0),
) -> Case:
    signs = rng.choice((-size, size), length)  # the same on all ranks: no digits are lost in their sum
    gradients = [signs * rng.uniform(1, 9, length) if n else np.full(length, np.nan) for n in examples]
    gradients[flat] = [0 * gradient for gradient in gradients[flat]]  # a NaN stays one
    return Case((gradients, examples), f"{', '.join(map(str, examples))} examples, {length} numbers: {what}")


AVERAGE = Task(
    id="C.average",
    title="The mean of unequal parts",
    cases=_unequal,
    reference=played(average),
    comparison=OnTheWire(
        close(1e-12), "one ring_sum is enough: a number more in it tells how many examples there are"
    ),
    rules=(WIRE,),
    collective=True,
    lookalikes={
        "That is the mean of the ranks' means: one example counts as much as a hundred elsewhere.": (
            _slipped("of ranks")
        ),
        "That is the sum over all examples: it has still to be divided by their number, of all ranks.": (
            _slipped("sum")
        ),
        "That is the sum over all examples divided by the number of ranks, not by that of examples.": (
            _slipped("sum of ranks")
        ),
        "A rank without examples has NaN for a gradient, and 0 times NaN is NaN.": (
            lambda got, gradients, examples: 0 in examples and np.isnan(got[0]).all()
        ),
        "You divide by so many examples as if each rank without any had one.": (
            lambda got, *args: (
                (zeros := args[1].count(0)) * 1000 > (total := sum(args[1]))
                and np.allclose(np.multiply(got[0], 1 + zeros / total), played(average)(*args)[0])
            )
        ),
    },
    hints=(
        "A rank's gradient is the mean over its own examples. What is the sum over them? And what do all "
        "ranks need to know beside the sum of these sums?",
        "Add up examples * gradient over the ranks, and the numbers of examples, too: both in one array, so "
        "that it is one ring_sum. A rank without examples adds zeros, whatever its gradient is.",
        "total = ring_sum(wire, np.append(examples * gradient, examples)), or zeros where there are none; "
        "then total[:-1] / total[-1].",
    ),
)


# --- C.tensor: an MLP whose matrices are cut, forward and backward ------------------------------------------


def mlp(wire: Wire, x: Array, A: Array, B: Array, dy: Array, slip: str = "") -> tuple[Array, ...]:
    """Return all of y = relu(x A) B and of dx, and this rank's columns of dA and rows of dB."""
    before = x @ A
    hidden = np.maximum(before, 0)
    after = dy @ B.T * (1 if slip == "no mask" else before >= 0 if slip == "at 0" else before > 0)
    y, dx = hidden @ B, after @ A.T
    sums = (y, dx) if slip == "no sum" else (y, ring_all_reduce(wire, dx)) if slip == "no y" else ()
    y, dx = sums or (ring_all_reduce(wire, y), dx if slip == "no dx" else ring_all_reduce(wire, dx))
    return y, dx, x.T @ after, hidden.T @ dy


def _cut(slip: str) -> Callable[..., bool]:
    """Return what says whether rank 0 has what a slip gives."""
    wrong = played(lambda wire, *args: mlp(wire, *args, slip))

    def holds(got, *args) -> bool:
        slipped, right = wrong(*args)[0][0], played(mlp)(*args)[0][0]
        return all(map(np.allclose, got[0][0], slipped)) and not all(map(np.allclose, slipped, right))

    return holds


def _layers(rng: np.random.Generator) -> Iterator[Case]:
    some, zeros = (1, between(2, 20)), (0, -1, slice(None))  # columns of A: relu at 0 itself
    hiddens, sizes = (1, 3, between(4, 30)), (1, 1e-30, 1e6)  # of x: relu has its corner at 0, not near it
    rows = every_pair(rng, ranks=FEW, batch=some, width=some, hidden=hiddens, column=zeros, size=sizes)
    drawn = sorted(map(tuple, map(dict.values, rows)), key=lambda row: row[0])
    for ranks, batch, width, hidden, column, size in ((1, 3, 4, 5, 0, 1), (2, 4, 6, 8, 0, 1), *drawn):
        x, dy = rng.uniform(-2, 2, (2, batch, width))
        x *= size
        A, B = rng.uniform(-2, 2, (width, hidden)), rng.uniform(-2, 2, (hidden, width))
        A[:, column] = 0
        parts = np.array_split(np.arange(hidden), ranks)
        label = f"{batch} examples, {width} x {hidden} x {width} on {ranks} rank{'s' * (ranks > 1)}"
        rows = [B[part] for part in parts]
        columns = [A[:, part].copy() for part in parts]
        yield Case(([x.copy() for _ in parts], columns, rows, [dy.copy() for _ in parts]), label)


TENSOR = Task(
    id="C.tensor",
    title="A layer cut in two",
    difficulty=4,
    minutes=20,
    cases=_layers,
    reference=played(mlp),
    comparison=OnTheWire(
        close(1e-10, 1e-10, parts=("y", "dx", "dA", "dB")),
        "two sums are enough: one of y's summands, one of dx's; dA and dB are this rank's own",
    ),
    rules=(WIRE,),
    collective=True,
    lookalikes={
        "Nothing was added up: a rank's own product is a summand of y, and so it is with dx.": _cut("no sum"),
        "y is this rank's summand alone: the others' hidden columns have theirs.": _cut("no y"),
        "dx is this rank's summand alone: x went into the columns of all ranks.": _cut("no dx"),
        "Where x A is not above 0, relu lets no derivative through.": _cut("no mask"),
        "Where x A is 0 itself, relu lets no derivative through, either.": _cut("at 0"),
    },
    hints=(
        "Which of the four need something from other ranks? Look at the shapes: which of them has `hidden` "
        "in it, of which this rank has a part?",
        "Columns of A give columns of x A, and relu needs no others. Each rank's product with its rows of B "
        "is a summand of y. Backward: dy goes to all rows of B, each rank's part of the derivative through A "
        "gives a summand of dx.",
        "h = x @ A; a = np.maximum(h, 0); y = ring_sum(wire, a @ B); dh = (dy @ B.T) * (h > 0); "
        "dx = ring_sum(wire, dh @ A.T); dA = x.T @ dh; dB = a.T @ dy.",
    ),
)


# --- C.schedule: one forward, one backward ------------------------------------------------------------------

Order = list[list[tuple[str, int]]]


def orders(stages: int, micro: int) -> Order:
    """Return for each stage its tasks ("F" or "B", micro-batch) in order."""
    return pipeline.one_forward_one_backward(stages, micro)


@dataclass(frozen=True)
class InTime:
    """Accepts any order that ends as early as can be while no stage keeps more than it must."""

    def compare(self, got: Any, want: Order, args: tuple) -> Mismatch | None:
        """Return None if the order, simulated, is as good as `want`."""
        if type(got) is not list or len(got) != len(want) or not all(map(_are_tasks, got)):
            said = f"Your function returned {describe(got)}, but a list for each of {len(want)} stages"
            end = ": is a `return` missing?" if got is None else "."
            return Mismatch((f"{said} is needed, in one list, with pairs like ('F', 0){end}",), form=True)
        order = [[(kind, int(m)) for kind, m in tasks] for tasks in got]
        for stage, (mine, right) in enumerate(zip(order, want, strict=True)):
            if sorted(mine) != sorted(right):
                said = f"Stage {stage} has {len(mine)} tasks; needed are F and B of each of {args[1]}"
                missing = [f": {kind}{m} is missing" for kind, m in right if (kind, m) not in mine]
                return Mismatch((f"{said} micro-batches, each once{(missing or [''])[0]}.",))
        try:
            mine, best = pipeline.timeline(order), pipeline.timeline(want)
        except ValueError as problem:
            return Mismatch((str(problem),))
        if mine.seconds > best.seconds + 1e-9:
            said = f"Your last task ends at {mine.seconds:g}, but {best.seconds:g} is possible"
            return Mismatch((f"{said}, if forward takes 1 and backward 2.",))
        for stage, (kept, least) in enumerate(
            zip(pipeline.most_kept(order), pipeline.most_kept(want), strict=True)
        ):
            if kept > least:
                said = f"Stage {stage} keeps activations of {kept} micro-batches at a time"
                return Mismatch((f"It ends in time. {said}; {least} are enough.",))
        return None


def _are_tasks(tasks: Any) -> bool:
    """Whether this is a list of pairs of "F" or "B" and a whole number."""
    return type(tasks) is list and all(
        type(one) in (tuple, list)
        and len(one) == 2
        and isinstance(one[0], str)
        and (is_number(one[1]) and one[1] % 1 == 0)
        for one in tasks
    )


def _pipelines(rng: np.random.Generator) -> Iterator[Case]:
    sizes = [(1, 3), (2, 1), (2, 4), (4, 4), *product(range(1, 6), range(1, 7))]
    sizes += [rng.integers((3, 9), (9, 25)).tolist(), rng.integers(4, 12, 2).tolist()]
    sizes += [rng.integers((2, 101), (5, 130)).tolist(), rng.integers((30, 2), (40, 5)).tolist()]
    sizes += [rng.integers((17, 20), (21, 26)).tolist()]  # many of both: nobody may stop at 8 or 16 ahead
    for stages, micro in sizes:
        yield Case((stages, micro), f"{stages} stages, {micro} micro-batches")


SCHEDULE = Task(
    id="C.schedule",
    title="One forward, one backward",
    difficulty=4,
    minutes=20,
    cases=_pipelines,
    reference=orders,
    comparison=InTime(),
    rules=(PLAIN,),
    lookalikes={
        "That is GPipe: nobody goes backward before all have gone forward, so all activations are kept.": (
            lambda got, stages, micro: got == pipeline.gpipe(stages, micro)
        ),
        "One micro-batch goes all the way before the next one begins: one stage works at a time.": (
            lambda got, stages, micro: (
                got == [[(kind, m) for m in range(micro) for kind in "FB"] for _ in range(stages)]
            )
        ),
    },
    hints=(
        "When can the last stage go backward with micro-batch 0? How many micro-batches has the stage before "
        "it sent on until the derivative of 0 comes back?",
        "Stage s first goes forward stages − 1 − s times (at most micro times). Then it goes forward and "
        "backward in turns, as long as there is something to go forward with; then backward alone.",
        'ahead = min(stages - 1 - s, micro); tasks = [("F", m) for m in range(ahead)]; then for each m: '
        '("F", m + ahead) if m + ahead < micro, and ("B", m).',
    ),
)


# --- C.stale: how old a gradient is when it comes -----------------------------------------------------------

Event = tuple[int, str]  # worker, "fetch" or "bring"


def stale(log: list[Event], slip: str = "") -> tuple[list[int], int]:
    """Return how stale each update was, and the worker whose updates were the stalest on average."""
    version, fetched, ages, of_worker = 0, {}, [], {}
    for worker, what in log:
        if what == "fetch":
            if "first" not in slip or worker not in fetched:
                fetched[worker] = version
            continue
        age = version - fetched[worker] + (slip == "itself")
        if slip == "first fetch":
            del fetched[worker]
        version += 1
        ages.append(age)
        of_worker.setdefault(worker, []).append(age)
    add = sum if slip == "total" else max if slip == "worst" else lambda ages: sum(ages) / len(ages)
    return ages, max(sorted(of_worker), key=lambda worker: add(of_worker[worker]))


def _stalest_by(slip: str) -> Callable[..., bool]:
    """Return what says whether a slip makes this worker alone the stalest: rounding takes it of equals."""
    return lambda got, log: (
        list(got[0]) == stale(log)[0] and stale(_renamed(log, got[1], math.inf), slip)[1] == math.inf
    )


def _renamed(log: list[Event], old: Any, new: float) -> list:
    return [(new if worker == old else worker, what) for worker, what in log]


def _logs(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((_round((5,)) * 2,), "one worker: never stale")
    yield Case((_round((5,)) + _round((3,)),), "two workers, one after the other: never stale")
    yield Case((_round((2, 0, 1)) * 2,), "three workers, all fetch and then all bring, twice")
    busy = [(7, "fetch"), (8, "fetch"), *_round((1, 2)), (1, "fetch"), (2, "fetch"), (1, "bring")]
    busy += [(7, "bring"), (2, "bring"), *_round((1, 2)) * 4]
    yield Case((busy,), "worker 7 brings one, worker 8 none, 1 and 2 many")
    late = [(2, "fetch"), *[(1, "fetch"), (1, "bring")] * 5, (2, "bring")]
    yield Case((busy + late,), "the same, and then worker 2 is late for once")
    yield Case((_round((9, 2, 4)) + _round((4, 2, 9)),), "three workers that are equally stale on average")
    alone = [(1, "fetch"), *[(3, "fetch"), (3, "bring")] * 12, (1, "bring")]
    yield Case((_round((1, 2)) * 3 + alone,), "worker 1 is very stale once, worker 2 a little each time")
    often = ([(4, "fetch")] * 2 + _round((6, 5, 4))) * 2 + [(4, "fetch"), *_round((5,)), *_round((4,))]
    yield Case((often,), "worker 4 fetches two or three times for each update")
    near = _round((3, 4)) + _round((4, 3)) + _round((3,)) * 46 + _round((4,)) * 45  # 1/48 and 1/47
    yield Case((near,), "two workers that are nearly equally stale")
    rows = every_pair(
        rng,
        workers=FEW,
        least=(0, 1, 7, 1000),
        updates=MANY,
        again=(0, 0.3, None),
        silent=(None, 0, -1),
        end=("", "fetch"),
    )
    yield from (_log(rng, *row.values()) for row in sorted(rows, key=lambda row: row["updates"]))


def _round(workers: tuple[int, ...]) -> list[Event]:
    """Return what is written where all fetch, and then all bring."""
    return [(worker, what) for what in ("fetch", "bring") for worker in workers]


def _log(
    rng: np.random.Generator,
    workers: int,
    least: int,
    updates: int,
    again: float | None,
    silent: int | None,
    end: str,
) -> Case:
    """Return what workers do that are unequally fast; the `silent` one, one more, brings nothing.

    Who has fetched does so `again` now and then; if that is None, it brings before anybody else comes, and
    nobody is stale.
    """
    names = (least + 2 * np.arange(workers + 1)).tolist()
    log, busy = [(names.pop(silent or 0), "fetch")] * (silent is not None), set()
    pace = rng.dirichlet(np.ones(workers))
    while updates > sum(what == "bring" for _, what in log):
        worker = min(busy) if again is None and busy else int(rng.choice(names[:workers], p=pace))
        brings = worker in busy and rng.uniform() >= (again or 0)
        log.append((worker, "bring" if brings else "fetch"))
        busy = busy - {worker} if brings else busy | {worker}
    log += [(names[0], end)] * bool(end)
    return Case((log,), f"{updates} updates, {workers} workers{' and a silent one' * (silent is not None)}")


STALE = Task(
    id="C.stale",
    title="How old is a gradient?",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_logs,
    reference=stale,
    comparison=exact(parts=("staleness", "the stalest worker")),
    rules=(PLAIN,),
    lookalikes={
        "An update does not make itself stale: only those count that came in between.": "itself",
        "A worker that fetches once more computes with newer weights: its last fetch counts.": (
            lambda got, log: (
                list(got[0]) in [stale(log, f"first {of}")[0] for of in ("fetch", "of all")]
                and list(got[0]) != stale(log)[0]
            )
        ),
        "The ages are right. On average, not at worst.": _stalest_by("worst"),
        "The ages are right. On average, not in sum: who brings often is not stale for that.": (
            _stalest_by("total")
        ),
        "Several are the stalest on average: of them the one with the smallest number is wanted.": (
            lambda got, log: got[1] != stale(log)[1] and stale(_renamed(log, got[1], -1))[1] == -1
        ),
    },
    hints=(
        "What has the server to remember of a worker that fetches, so that it can tell later how old the "
        "gradient is that it brings?",
        "Number the weights: each update makes the next version. A gradient is as stale as there are "
        "versions between the one that was fetched and the present one.",
        "fetch: fetched[worker] = version; bring: ages.append(version - fetched[worker]), then version += 1.",
    ),
)


# --- C.feedback: the largest entries, and what is owed ------------------------------------------------------


def feedback(gradients: Array, k: int, slip: str = "") -> tuple[Array, Array]:
    """Return what is sent of gradients (steps, n), zeros elsewhere, and what is owed at the end (n,)."""
    owed, sent = np.zeros(gradients.shape[1]), np.zeros_like(gradients)
    for step, gradient in enumerate(gradients):
        wanted = gradient if slip == "forgets" else gradient + owed
        by = gradient if slip == "chosen" else wanted
        order = np.argsort(wanted if slip == "signed" else -np.abs(by), kind="stable")
        places = (order[::-1] if slip == "signed" else order)[:k]
        sent[step, places] = wanted[places]
        owed = (owed if slip == "forgets" else 0) + wanted - sent[step]
        owed = sent[step] if slip == "sent" else gradient - sent[step] if slip == "last" else owed
    return sent, owed


def _steps(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((rng.normal(size=(1, 5)), 2), "2 of 5 numbers, one step")
    yield Case((rng.normal(size=(3, 4)), 1), "1 of 4 numbers, 3 steps")
    yield Case((np.array([[1, -1 - 1e-12], [0, 1 - 1e-12]]), 1), "1 of 2 numbers that differ by 1e-12")
    what = (
        "",
        "all below 0",
        "nothing new in one step",
        "two are equally large",
        "each time the same",
        "most are 0",
    )
    sizes = (1, 1e-20)  # no size is as good as 0
    rows = every_pair(rng, steps=MANY, n=MANY, k=MANY, what=what, size=sizes, unless=_lacks_two)
    for row in sorted(rows, key=lambda row: row["steps"] * row["n"]):
        steps, n, k, what, size = row.values()
        gradients = size * rng.normal(size=(steps, n))
        if what == "each time the same":  # nearly
            gradients = 0.01 * gradients + size * rng.uniform(0.5, 2.0, n) * rng.choice((-1, 1), n)
        elif what == "nothing new in one step":
            gradients[rng.integers(min(1, steps - 1), steps)] = 0
        elif what == "most are 0":
            gradients[rng.uniform(size=(steps, n)) < 0.7] = 0
        elif what == "two are equally large":  # the largest in the first step
            most, other = np.argsort(-np.abs(gradients[0]))[:2]
            gradients[0, other] = -gradients[0, most]
        elif what:
            gradients = -np.abs(gradients)
        yield Case((gradients, k), f"{k} of {n} numbers, {steps} steps{what and ': '}{what}")
    yield Case((rng.normal(size=(2, 4)), 6), "up to 6 of 4 numbers, 2 steps")


def _lacks_two(row: dict) -> bool:
    """Whether there are no two, or one of two equally large ones has to be chosen."""
    return "two" in row["what"] and min(row["n"], row["k"]) < 2


FEEDBACK = Task(
    id="C.feedback",
    title="What was not sent",
    cases=_steps,
    reference=feedback,
    comparison=Values(  # relative to the gradients: sums round, and what is owed may come from them
        lambda want, args: 1e-9 * np.abs(want) + 1e-12 * np.abs(args[0]).max(),
        ("what is sent", "what is owed"),
    ),
    rules=(PLAIN,),
    lookalikes={
        "What was not sent is forgotten: it belongs to the next gradient; send of their sum.": (
            lambda got, *args: (  # whatever is said to be owed
                same(got[0], feedback(*args, "forgets")[0]) and not same(got[0], feedback(*args)[0])
            )
        ),
        "More entries than k are sent in a step.": lambda got, _, k: (
            np.count_nonzero(got[0], axis=1).max() > k
        ),
        "The largest in size are to be sent, not those that are the most above zero.": "signed",
        "Choose by gradient + owed: what is owed for long is to be sent one day.": "chosen",
        "You add what was sent once more; what was not sent is owed.": "sent",
        "Only what the last step left is owed, but what was owed before and still not sent is, too.": "last",
    },
    hints=(
        "A small entry is never among the largest. How does it get its turn after all?",
        "In each step: wanted = gradient + owed. The k entries of wanted with the largest size are sent; the "
        "others are what is owed now.",
        "places = np.argsort(-np.abs(wanted))[:k]; sent[step, places] = wanted[places]; "
        "owed = wanted - sent[step].",
    ),
)


# --- C.memory: how many GPUs, and which stage of ZeRO -------------------------------------------------------


def fits(parameters: int, activations: int, memory: int, most: int, slip: str = "") -> tuple[int, int]:
    """Return the smallest number of ranks with which it fits, and the lowest stage then, else (0, 0)."""
    for ranks in range(1, most + 1):
        for stage in (3, 2, 1, 0) if slip == "highest" else (0, 1, 2, 3):
            kept = zero.kept(parameters, ranks, stage, mixed=slip != "float32").total
            needed = kept + activations
            if needed < memory or (needed == memory and slip != "less"):
                return ranks, stage
    return 0, 0


def _budgets(rng: np.random.Generator) -> Iterator[Case]:
    giga = 10**9
    for parameters, activations, memory, most, what in (
        (2 * giga, 8 * giga, 40 * giga, 64, "it fits on one: nothing need be cut"),
        (2 * giga, 10 * giga, 32 * giga, 64, "without activations it would fit on one"),
        (7 * giga + giga // 2, 10 * giga, 80 * giga, 64, "7.5 billion parameters on 80 GB"),
        (10**6, 81 * giga, 80 * giga, 1000, "activations alone are too much"),
        (1000 * giga, 66 * giga, 80 * giga, 1200, "10¹² parameters, and large activations, on 80 GB"),
        (10**13, 0, 8 * 10**13 - 1, 2, "two GPUs of 80 TB less a byte"),  # nearly is not enough
        (1001, 0, 5339, 3, "1001 parameters on three GPUs: what is shared has thirds of a byte"),
        (1110, 0, 59, 303, "301 GPUs would need a 301st of a byte more"),
    ):
        yield Case((parameters, activations, memory, most), what)
    rows = every_pair(
        rng,
        ranks_stage=((1, 0), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (4, 3), (8, 3), (50, 3)),
        parameters=(1, between(2, 1000), between(10**10, 10**11)),  # a byte is a billionth, or less
        activations=(0.0, 0.01, 1.0, 20.0),  # times what is kept of the model
        room=("to the last byte", "some bytes are left", "a byte too little", "nothing beside activations"),
        more=(-1, 0, between(1, 300)),  # ranks than these
        # With a rank too few nothing depends on a byte
        unless=lambda row: row["more"] < 0 and (row["ranks_stage"] == (1, 0) or "byte too" in row["room"]),
    )
    for (ranks, stage), parameters, activations, room, more in sorted(map(tuple, map(dict.values, rows))):
        kept = math.ceil(zero.kept(parameters, ranks, stage, mixed=True).total)
        own = int(activations * kept)
        left = {"t": ranks in (3, 50), "s": 1 + kept // 500, "a": -1, "n": -kept}[room[0]]
        label = f"stage {stage} on {ranks} of {ranks + more} ranks: {room}"
        yield Case((parameters, own, own + kept + left, ranks + more), label)
    for stage in range(3):  # a stage that were a little smaller would fit
        kept = math.ceil(zero.kept(giga, 2, stage, mixed=True).total)
        yield Case((giga, 0, kept - 1, 2), f"a byte too little for stage {stage} on 2 of 2 ranks")


MEMORY = Task(
    id="C.memory",
    title="How many GPUs are enough?",
    points=2,
    difficulty=2,
    cases=_budgets,
    reference=fits,
    comparison=exact(parts=("ranks", "stage")),
    rules=(PLAIN,),
    lookalikes={
        "That would be right if every GPU had one byte more: how does yours round?": (
            lambda got, *model: tuple(got) == fits(*model[:2], model[2] + 1, model[3])
        ),
        "Of the stages that fit on so many ranks the lowest is wanted: it sends the least.": "highest",
        # Not before: stage 3 may come from float32, or from a stage 2 that does not share gradients
        "In mixed precision a parameter has 2 bytes, its gradient 2, its states 12.": "float32",
        "One parameter needs 16 bytes, and no activations: does it fit into a GPU of 16 bytes?": "less",
        "It does not fit so: add up all that a rank keeps. Activations are its own, whatever the stage.": (
            lambda got, *model: (
                got[0] >= 1
                and got[1] in range(4)
                and zero.kept(model[0], *got, mixed=True).total + model[1] > model[2]
            )
        ),
        "Fewer ranks are enough: their number is to be the smallest first, then the stage.": (
            lambda got, *model: 0 < fits(*model)[0] < got[0]
        ),
    },
    hints=(
        "What of the 2 + 2 + 12 bytes of a parameter does a rank keep whole in each stage, and what is "
        "divided by the number of ranks?",
        "Stage 1 divides the 12, stage 2 the 12 and the gradient's 2, stage 3 all 16. Try 1, 2, 3 … ranks, "
        "and for each the stages from 0 on.",
        "whole = (16, 4, 2, 0)[stage]; whole * parameters + (16 - whole) * parameters / ranks + activations "
        "<= memory.",
    ),
)


# --- C.accumulate: gradients of micro-batches ---------------------------------------------------------------


def accumulated(batches: list, w: Array, rate: float, slip: str = "") -> Array:
    """Return the weights after each step, (steps, n): a step adds up its micro-batches' gradients."""
    kept, total, count = [], np.zeros_like(w), 0
    for micro_batches in batches:
        if slip not in ("carried", "broken"):
            total, count = np.zeros_like(w), 0
        for x, y in micro_batches:
            own = 2 * x.T @ (x @ w - y)
            total = total + (own / max(1, len(x)) if slip in ("of means", "broken") else own)
            count += len(x)
            w = w - rate * own / max(1, len(x)) if slip == "eager" else w
        if slip in ("of means", "broken"):
            count = len(micro_batches)
        w = w if slip == "eager" else w - rate * total / (1 if slip == "sum" else count)
        kept.append(w)
    return np.array(kept)


def _sizes(*most: int) -> Callable[[np.random.Generator], list[int]]:
    """Return a choice of micro-batches, with so many examples each at most, and 0 for none."""
    return lambda rng: [int(rng.integers(1, n + 1)) if n else 0 for n in most]


def _batches(rng: np.random.Generator) -> Iterator[Case]:
    steps = (
        _sizes(8),
        [4, 4, 4],
        _sizes(11, 1, 11, 5, 11),
        _sizes(0, 8, 8),
        _sizes(8, 0, 8),
        _sizes(8, 8, 0),
    )
    scales = (1, 1e-8, 1e3, 0)  # of weights and y, and so of gradients: 0 is a step, too
    rows = every_pair(rng, n=FEW, rate=(0.02, 0.1), scale=scales, a=steps, b=([], *steps), c=([], *steps))
    plain = ([4, 4],), ([4, 4], [4, 4], [4, 4]), ([5, 2], [1, 6, 3])
    for n, rate, scale, *sizes in (
        *((3, 0.05, 1, *of) for of in plain),
        *sorted(map(dict.values, rows), key=lambda row: sum(map(bool, row))),
    ):
        sizes = [step for step in sizes if step]
        given = [
            [(rng.normal(size=(size, n)), scale * rng.normal(size=size)) for size in step] for step in sizes
        ]
        label = f"micro-batches of {' | '.join(map(str, sizes))} examples, n = {n}"
        yield Case((given, scale * rng.normal(size=n), rate), label)


ACCUMULATE = Task(
    id="C.accumulate",
    title="One large batch in parts",
    points=2,
    cases=_batches,
    reference=accumulated,
    comparison=close(1e-9, 1e-12),
    rules=(PLAIN,),
    lookalikes={
        "The gradient of the step before is still in the sum: each step begins with nothing.": "carried",
        "A micro-batch of one example counts as much as one of six: that is the mean of means.": "of means",
        "That is as `broken` does: what does a step leave behind for the next one?": "broken",
        "Weights change once a step, not with each micro-batch: all of a step see the same.": "eager",
        "The sum of all examples' gradients has still to be divided by their number.": "sum",
    },
    hints=(
        "Run `broken` on two steps of one micro-batch each, then on one step of two unequal ones. Which "
        "weights would one large batch give?",
        "A step's gradient is the sum over all its examples, divided by their number. Where must sum and "
        "number begin at zero?",
        "Inside the outer loop: total, n = np.zeros_like(w), 0; for each micro-batch total = total + "
        "2 * x.T @ (x @ w - y); n += len(x); then w = w - rate * total / n.",
    ),
)


# --- C.mesh: data x tensor x pipeline -----------------------------------------------------------------------

Mesh = tuple[int, int, int, float]


def mesh(
    ranks: int,
    island: int,
    layers: int,
    batch: int,
    model_gb: float,
    memory_gb: float,
    compute_s: float,
    layer_s: float,
    gradient_s: float,
    slip: str = "",
    only: Sequence[float] = (),
) -> Mesh:
    """Return (data, tensor, pipeline, seconds) of the fastest mesh that fits (of `only` it), or zeros."""
    found = []
    for tensor in range(1, (ranks if slip == "beyond" else min(island, ranks)) + 1):
        for stages in range(1, min(layers, ranks) + 1):
            data, rest = divmod(ranks, tensor * stages)
            if rest or layers % stages or batch % max(1, data) or (slip == "divides" and island % tensor):
                continue
            if only and tuple(only) != (data, tensor, stages):
                continue
            part = model_gb / (tensor * stages)
            if part > memory_gb or (part == memory_gb and slip == "less"):
                continue
            turn = compute_s / (tensor * stages) + layers / stages * layer_s * (tensor - 1) / tensor
            turns = batch // data + (0 if slip == "no bubble" else stages - 1)
            gradients = gradient_s * (model_gb if slip == "whole" else part) * (data - 1) / data
            found.append((turns * turn + gradients, tensor, stages, data))
    seconds, tensor, stages, data = min(found, default=(0.0, 0, 0, 0))
    return data, tensor, stages, seconds


def _clusters(rng: np.random.Generator) -> Iterator[Case]:
    for args, what in (
        ((8, 8, 12, 64, 2.0, 75.0, 0.5, 0.003, 0.02), "a small model on one island"),
        ((64, 8, 48, 64, 2000.0, 80.0, 30.0, 0.01, 0.02), "a large model"),
        ((64, 4, 10, 64, 200.0, 80.0, 30.0, 0.01, 0.02), "ten layers, islands of four"),
        ((6, 4, 9, 12, 30.0, 20.0, 2.0, 0.002, 0.1), "nine layers, islands of four"),
        ((7, 4, 12, 64, 2.0, 80.0, 2.0, 0.002, 0.1), "seven cannot be arranged"),
        ((8, 8, 12, 64, 2.0, 80.0, 1.0, 0.0, 0.0), "a network that costs nothing: equally short steps"),
        ((2, 1, 4, 8, 4.0, 80.0, 1.0, 0.5, 0.25), "data and pipeline are equally short"),
        ((2, 1, 4, 8, 4.0, 80.0, 1.0, 0.5, 0.25000001), "pipeline is a little shorter"),
        ((2, 2, 4, 8, 4.0, 80.0, 1.0, 0.03125, 1.25), "tensor and pipeline are equally short"),
        ((4, 2, 4, 4, 4.0, 80.0, 1.0, 0.109375, 0.3125), "four stages, or two copies in two: equally short"),
        ((6, 2, 9, 12, 3.0, 80.0, 2.0, 0.002, 0.01), "a fast network"),
        ((8, 2, 12, 64, 40.0000001, 20.0, 30.0, 0.01, 0.02), "a half is a little too large"),
        ((126, 1, 126, 3, 810.0, 6.5, 30.0, 0.01, 0.02), "each has one of 126 layers"),
    ):
        yield Case(args, f"{args[0]} GPUs: {what}")
    rows = every_pair(
        rng,
        ranks=(1, 2, 6, 7, 8, 36, 64),
        island=(1, 2, 4, 8, 72),
        layers=(1, 2, 9, 14, 24, 64),
        batch=(1, 2, 12, 64, 252),
        parts=(0.5, 1, 1.005, 4, 4.02, 6, 1000),  # of the model: one of so many would just fit
        seconds=(  # roughly; one of them is long; all are short; all are long
            (20.0, 1e-4, 1e-3),
            (1.0, 0.05, 0.01),
            (1.0, 1e-3, 1.0),
            (1e-9, 1e-11, 1e-10),
            (1e10, 1e8, 1e9),
        ),
        unless=lambda row: row["parts"] != 1000 and not mesh(*_cluster(**row))[0],
    )
    for row in sorted(rows, key=lambda row: row["ranks"]):
        # Drawn, so that no two meshes are equally fast
        row["seconds"] = [float(f"{s * rng.uniform(0.5, 2):.7g}") for s in row["seconds"]]
        label = "{ranks} GPUs in islands of {island}, {layers} layers, {batch} examples".format(**row)
        yield Case(_cluster(**row, model_gb=12 * int(rng.integers(1, 8)) + 1.5), label)


def _cluster(*, parts: float, seconds: Sequence[float], model_gb: float = 12.0, **sizes: int) -> tuple:
    return *sizes.values(), model_gb, model_gb / parts, *seconds


MESH = Task(
    id="C.mesh",
    title="Which mesh?",
    difficulty=4,
    minutes=20,
    cases=_clusters,
    reference=mesh,
    comparison=close(1e-9, parts=("data", "tensor", "pipeline", "seconds")),
    rules=(PLAIN,),
    lookalikes={
        "More ranks share a layer than an island has: its all-reduces would cross the network.": "beyond",
        "Six GPUs in islands of four: three of an island may share a layer, and one is left for others.": (
            "divides"
        ),
        "A part may be just as large as memory_gb: does it fit?": "less",
        "That mesh does not fit: a rank has model_gb / (tensor * pipeline).": (
            lambda got, *args: args[4] > args[5] * got[1] * got[2] > 0
        ),
        "The pipeline has to fill and to empty: p − 1 turns more than micro-batches.": "no bubble",
        "A rank has gradients of its own part of the model: model_gb / (tensor * pipeline).": "whole",
        "It cannot be arranged so: p has to divide the layers, and d the examples.": (
            lambda got, *args: got[0] * got[2] and (args[2] % got[2] or args[3] % got[0])
        ),
        "Such a mesh fits, but its step takes another time than you say.": (
            lambda got, *args: (own := mesh(*args, only=got[:3])[3]) and not math.isclose(got[3], own)
        ),
    },
    hints=(
        "How many meshes are there at all, with 64 GPUs? Few enough to try each of them.",
        "Two loops, over tensor (at most the island) and pipeline (at most the layers); data follows. Leave "
        "out what does not divide and what does not fit, and keep the least time.",
        "turn = compute_s / (t * p) + layers / p * layer_s * (t - 1) / t; the step is (batch // d + p - 1) "
        "* turn + gradient_s * model_gb / (t * p) * (d - 1) / d; min over all of (seconds, t, p, d).",
    ),
)


#: In the order of the chapter.
TASKS = (AVERAGE, ACCUMULATE, STALE, MEMORY, TENSOR, SCHEDULE, FEEDBACK, MESH)
