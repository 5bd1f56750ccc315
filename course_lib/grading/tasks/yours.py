"""One task of each of the chapters 01 to 05: what do numbers say that were measured?

Graded on numbers that are drawn; the learner's own are one input more (see `own_numbers`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from course_lib.grading import own_numbers
from course_lib.grading.compare import close, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.task import Case, Task

Timed = tuple[float, float]  # seconds and their spread


def _task(
    reference: Callable, yours: Callable[[], Case], parts: tuple[str, ...], lookalikes: Mapping, **fields
) -> Task:
    return Task(
        reference=reference,
        yours=yours,
        comparison=close(rtol=1e-9, atol=1e-12, parts=parts),
        lookalikes=lookalikes,
        points=2,
        rules=(Language(("math", "numpy", "itertools", "collections")),),
        **fields,
    )


def _limits(one: Timed, other: Timed, slip: str) -> tuple[float, float]:
    """Return the least and the largest quotient other / one that the spreads of both leave."""
    (a, around_a), (b, around_b) = one, other
    if slip == "median":
        return b / a, b / a
    around_a *= -1 if slip == "alike" else 1
    return (b - around_b) / (a + around_a), (b + around_b) / (a - around_a)


# --- 01.yours: which of two rungs is faster, out of a ladder ------------------------------------------------


def faster(
    results: list[tuple[str, int, float, float]], one: str, other: str, slip: str = ""
) -> tuple[float, float, str]:
    """Return how many times as fast `one` is at least and at most, and which is faster or "cannot tell".

    Compared at the largest N at which both were measured. A result is (rung, N, seconds, spread).
    """
    named = str.__contains__ if slip == "part" else str.__eq__
    own, others = ({row[1]: row[2:] for row in results if named(row[0], rung)} for rung in (one, other))
    both = own.keys() & others.keys()
    N = {"small": min(both), "sizes": max(own)}.get(slip, max(both))
    low, high = _limits(own[N], others[max(others) if slip == "sizes" else N], slip)
    return low, high, one if low > 1 else other if high < 1 else "cannot tell"


def _ladders(rng: np.random.Generator) -> Iterator[Case]:
    tidy = [("lists", 100, 0.08, 0.002), ("lists", 64, 0.02, 0.001), ("arrays", 64, 0.11, 0.01)]
    for pair in (("lists", "arrays"), ("arrays", "lists")):
        yield Case((tidy, *pair), "both at 64")
    rows = every_pair(
        rng,
        both=(1, 2, 3),  # so many sizes
        # 1/1024 s between the slowest call of the one and the quickest of the other
        apart=(-9, 0, 2**-12, 1, 300),
        spreads=((0, 0), (40, 0), (0, 70), (40, 70)),
        larger=((), (0,), (1,), (0, 1)),  # who was measured at larger N, too
        before=(1 / 9, 3),  # the times at smaller N: they need not grow with it
        third=((None,), (None, 6), (4, 5)),  # where another rung was: with both, at larger N
        order=("rising", "falling", "no"),
        turned=(1, -1),
    )
    for row in sorted(rows, key=lambda row: row["both"]):
        *pair, third = rng.permutation(["lists", "arrays", "lists of lists"]).tolist()  # one in another
        N, both, (around, others) = [32, 64, 101, 200, 250, 321, 400], row["both"], row["spreads"]
        a = int(rng.integers(200, 900))
        b = a + around + others + row["apart"]
        times = [(pair[0], N[both], a, around), (pair[1], N[both], b, others)]
        early = zip(pair, (2 * b * row["before"], a * row["before"]), strict=True)
        times += [(rung, n, t, 1) for (rung, t), n in itertools.product(early, N[1:both])]
        times += [(pair[n], N[5 - n], 7 * (b, 3 * a)[n], 1) for n in row["larger"]]
        times += [(third, N[both if n is None else n], 5, 1) for n in row["third"]]
        sign = {"rising": [1], "falling": [-1]}.get(row["order"], [-1, 1])
        times.sort(key=lambda one: one[1] * rng.choice(sign))
        results = [(rung, n, t / 1024, spread / 1024) for rung, n, t, spread in times]
        label = f"common sizes: {both}, results in {row['order']} order"
        yield Case((results, *pair[:: row["turned"]]), label)


def _own_ladder() -> Case:
    rungs = ("python-lists", "python-ndarray")
    found = [own_numbers.result(rung, 200) for rung in rungs]
    results = [(one.rung, 200, one.seconds, one.spread_s) for one in found]
    return Case((results, *rungs), " against ".join(rungs))


FASTER = _task(
    faster,
    _own_ladder,
    ("at least", "at most", "faster"),
    {
        "Timed at different N: of N x N x N only equal sizes compare.": "sizes",
        "Both were measured at a larger N, too.": "small",
        'A rung counts by its whole name: "lists of lists" is not "lists".': "part",
        "Those are medians. How slow may the one be, how fast the other?": "median",
        "At worst one is slow *and* the other fast: add one spread only.": "alike",
        "1 lies within your limits: then it may be either.": (
            lambda got, *given: same(got[:2], faster(*given)[:2]) and faster(*given)[2] == "cannot tell"
        ),
        "Your limits lie both on one side of 1: then it can be told.": (
            lambda got, *given: same(got[:2], faster(*given)[:2]) and got[2] == "cannot tell"
        ),
        "Those are the limits for the other one: of two times, the shorter one is faster.": (
            lambda got, results, one, other: same(got[:2], faster(results, other, one)[:2])
        ),
    },
    id="01.yours",
    title="Is it really faster?",
    difficulty=2,
    cases=_ladders,
    hints=(
        "At which sizes were both measured? And what is the worst for `one` that the two spreads allow?",
        "At the largest common N; at least: the other's seconds - spread over one's seconds + spread; at "
        "most: the other way round. 1 decides: below both, above both, or between them.",
        "low, high = (b - db) / (a + da), (b + db) / (a - da); then `one` if low > 1, `other` if high < 1.",
    ),
)


# --- 02.yours: what a speed says about caches and roofs -----------------------------------------------------


def reading(
    gflops: float, N: int, itemsize: int, peak: float, gbps: float, slip: str = ""
) -> tuple[float, float, str]:
    """Return the share of its bytes that caches must have served an `ikj` of N x N x N, how many times as
    fast the roofline allows it to be with every matrix moved once, and which roof that is."""
    memory = gbps * {"half": N / 2, "adds": N, "four": 1.5 * N}.get(slip, 2 * N) / (3 * itemsize)
    served = gbps / (gflops * 3 * itemsize / (1 if slip == "step" else 2))
    share = served if slip == "memory" else max(1 - served, 0.0)
    roof = peak if slip == "peak" else min(peak, memory)
    return share, roof / gflops, "memory" if roof < peak else "arithmetic"


def _speeds(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((6.0, 100, 8, 50.0, 18.0), "72 GB/s asked for, 18 are there")
    rows = every_pair(
        rng,
        itemsize=(1, 2, 4, 8, 16),
        asked=((0.3, 0.9), (1.1, 2), (3, 9), (20, 40), (110, 200)),  # times what the memory delivers
        peak=((1.05, 2), (3, 40)),  # times the speed, at least
        # times that at which both roofs are equally high
        N=((0.1, 0.4), (0.5, 0.9), (0.97, 0.998), (1.002, 1.018), (1.1, 3), (3, 9)),
    )
    for row in sorted(rows, key=lambda row: -row["N"][0]):  # first far above the ridge
        itemsize, *spans = row.values()
        asked, fast, size = (float(rng.uniform(*span)) for span in spans)
        gflops = round(float(rng.uniform(2, 300)), 2)
        N, gbps = math.ceil(size * fast * asked), round(1.5 * itemsize * gflops / asked, 3)
        peak = float(f"{gbps * N / (1.5 * itemsize * size):.6g}")  # a whole N is as near to the ridge
        yield Case((gflops, N, itemsize, peak, gbps), f"{gflops} GFLOP/s in numbers of {itemsize} bytes")


def _own_speed() -> Case:
    known, loop = own_numbers.limits(), own_numbers.result("compiled-ikj", 1000)
    numbers = (loop.gflops, 1000, 8, known.gflops("float64"), known.gbps())
    return Case(numbers, f"compiled-ikj at N = 1000, {loop.gflops:.3g} GFLOP/s")


READING = _task(
    reading,
    _own_speed,
    ("share", "times as fast", "roof"),
    {
        "A step of `ikj` moves three numbers for two FLOP: you count one.": "step",
        "That share memory may have served; the caches served the rest.": "memory",
        "A step reads two numbers and writes one: all three count.": (
            lambda got, gflops, N, itemsize, peak, gbps: same(got[0], 1 - gbps / (gflops * itemsize))
        ),
        "Memory may have served all of it: then the share is 0.": lambda got, *speed: got[0] < 0,
        "N^3 multiply-adds are 2 N^3 FLOP, for three N x N matrices that move once each.": (
            lambda got, *speed: (
                got[1] < reading(*speed)[1]
                and any(same(got[1], reading(*speed, slip)[1]) for slip in ("half", "adds", "four"))
            )
        ),
        "The lower roof counts: even moved once, matrices take their time.": "peak",
        "What lies in a cache may be faster than memory allows: then that is below 1.": (
            lambda got, *speed: got[1] == 1
        ),
        "The roof is asked for matrices that move once each, not for your loop as it is.": (
            lambda got, gflops, N, itemsize, peak, gbps: (  # nearer to the ridge it has other causes
                same(got[:2], reading(gflops, N, itemsize, peak, gbps)[:2])
                and gbps * 2 * N > 8.9 * itemsize * peak
            )
        ),
    },
    id="02.yours",
    title="What did the caches carry?",
    cases=_speeds,
    hints=(
        "How many bytes does a step of the loop read and write, and how many FLOP does it do for them? How "
        "many GB/s would that be at your speed?",
        "3 numbers for 2 FLOP. Memory delivers at most gbps of that; the rest came from caches. Moved once, "
        "three matrices of N * N numbers bring 2 N^3 FLOP: peak or memory, the lower roof counts.",
        "max(0, 1 - gbps / (gflops * 3 * itemsize / 2)); roof = min(peak, gbps * 2 * N / (3 * itemsize)).",
    ),
)


# --- 03.yours: from which N on one level pays, by three measured times --------------------------------------


def pays_from(n: int, half: float, whole: float, level: float, slip: str = "") -> tuple[float, float]:
    """Return the seconds of the sums, and the N from which one level of Strassen is faster.

    `half` and `whole` are the classical seconds at n / 2 and n, `level` those of one level at n. Products
    grow with N^3, sums with N^2; what comes out below 0 counts as 0, and inf means never.
    """
    products = {"eighth": 7 / 8 * whole, "eight": 8 * half}.get(slip, 7 * half)
    sums, saved = max(level - products, 0.0), max(whole - (level if slip == "gain" else products), 0.0)
    return sums, n * sums / saved if saved else math.inf


def _levels(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((1000, 1.0, 8.0, 8.5), "seven products take 7 of the 8.5 s, eight would take 8")
    times = {"little": 0.25, "about an eighth of the": 1, "much": 2.5, "no": 0, "less than no": -0.25}
    times["hardly any"] = 1e-4  # but more than none: of a microsecond, 0.1 ns
    saves = tuple(times)
    times["very much"] = 50  # several times the classical product: it pays all the same, further on
    rows = every_pair(rng, sums=tuple(times), saved=saves, unit=(2**-30, 2**-10, 1.0))
    for sums, saved, unit in sorted(
        (tuple(row.values()) for row in rows), key=lambda row: row[0] != "little"
    ):
        half = int(rng.integers(1000, 5000)) * unit  # 7 of them are exact: nothing saved is 0
        whole, level = (7 * half + times[of] * half * rng.uniform(0.9, 1.1) for of in (saved, sums))
        n = 2 * int(rng.integers(1, 2500))
        yield Case((n, half, whole, level), f"{sums} time for sums, {saved} time saved")


def _own_level() -> Case:
    rungs = (("simd", 1000), ("simd", 2000), ("strassen", 2000))
    seconds = (own_numbers.result(*rung).seconds for rung in rungs)
    return Case((2000, *seconds), "simd at N = 1000 and 2000, strassen at 2000")


PAYS_FROM = _task(
    pays_from,
    _own_level,
    ("seconds of the sums", "pays from N ="),
    {
        "However little the products save, there is an N that is large enough.": (
            lambda got, n, half, whole, level: got[1] == math.inf and 0 < whole - 7 * half < half / 1000
        ),
        "7/8 only if half the size runs as fast: that was measured.": "eighth",
        # Only where sums are left: that they take 0 has other causes.
        "One level needs seven products of half the size; you count eight.": (
            lambda n, half, whole, level: (
                pays_from(n, half, whole, level, "eight") if level > 8 * half else None
            )
        ),
        "Also where the products save nothing, the sums take their time.": (
            lambda got, *times: same(got, (0, math.inf)) and pays_from(*times)[1] == math.inf
        ),
        "If the products save nothing, no N is large enough: inf.": (
            lambda got, *times: pays_from(*times)[1] == math.inf != got[1]
        ),
        "The sums take nothing off what products save: slower at n, one level may pay further on.": "gain",
        "A time below 0 is noise: count it as 0.": lambda got, *times: got[0] < 0,
        "An eighth is saved only if half the size runs as fast: that was measured.": (
            lambda got, n, half, whole, level: any(
                same(got, (got[0], n * got[0] / saved)) for saved in (whole / 8, half) if got[0] > 0
            )
        ),
        "Where the sums take no time and the products save some, every N pays: from 0 on.": (
            lambda got, *times: pays_from(*times)[1] == 0
        ),
        "Do not round N.": lambda got, *times: got[1] % 1 == 0 and abs(got[1] - pays_from(*times)[1]) < 1,
        "It may pay below n, too.": lambda got, n, *times: got[1] == n > pays_from(n, *times)[1],
        "How do sums and savings grow from n on: with N^2 and with N^3?": (
            lambda got, n, *times: any(
                same(got[1], n * (pays_from(n, *times)[1] / n) ** power)
                for power in (1 / 3, 1 / 2, 2 / 3, 3 / 2, 2)
            )
        ),
    },
    id="03.yours",
    title="Where would it begin to pay?",
    cases=_levels,
    hints=(
        "How long do seven products of half the size take, and how much longer than that are the two others?",
        "sums = level - 7 half, saved = whole - 7 half, neither below 0. At N = r n the sums take r^2, what "
        "is saved r^3 times as long: equal at r = sums / saved.",
        "n * sums / saved, and math.inf if saved is 0.",
    ),
)


# --- 04.yours: which rung is furthest below what its loads allow --------------------------------------------


def least_explained(
    peak: float, loads: float, rungs: list[tuple[str, float, float]], slip: str = ""
) -> tuple[str, float, str]:
    """Return the rung furthest below its bound, the share of it that it reaches, and what sets the bound.

    A rung is (name, GFLOP/s, loads for an FMA); `loads` can begin in the time of an FMA.
    """
    most = {"loads": math.inf, "peak": 0.0}.get(slip, 1.0)
    bounds = {name: peak * (min(most, loads / each) or 1) for name, _, each in rungs}
    shares = {name: gflops / bounds[name] for name, gflops, _ in rungs}
    name = (max if slip == "best" else min)(shares, key=shares.__getitem__)
    return name, shares[name], "FMAs" if bounds[name] == peak else "loads"


def _rungs(rng: np.random.Generator) -> Iterator[Case]:
    tidy = [("simple", 20.0, 2.0), ("tiled", 60.0, 0.5), ("packed", 30.0, 0.2)]
    for rungs in (tidy, tidy[::-1]):
        yield Case((100.0, 1.0, rungs), "20 of 50 GFLOP/s, 60 of 100, 30 of 100")
    more = [("simple", 60.0, 3.0), ("tiled", 40.0, 1.5)]
    yield Case((100.0, 2.0, more), "two loads in the time of an FMA: 60 of 67 GFLOP/s, 40 of 100")
    even = [("blocked", 90.0, 0.25), ("unrolled", 60.0, 0.5), ("simple", 9.0, 5.0)]
    yield Case((100.0, 0.5, even), "90 of 100 GFLOP/s, 60 of 100 as loads leave just the peak, 9 of 10")
    near = [*tidy[:2], ("packed", 95.0, 0.2)]
    yield Case((100.0, 1.0, near), "20 of 50 GFLOP/s, 60 of 100, 95 of 100: shares count, not GFLOP/s")
    alike = [("blocked", 30.0, 2.0), ("packed", 58.0, 0.2), ("tiled", 90.0, 0.5)]
    yield Case((100.0, 1.0, alike), "30 of 50 GFLOP/s, 58 of 100, 90 of 100: 60, 58 and 90 %")
    names, times = ["ikj", "blocked", "unrolled", "packed", "tiled"], (0.25, 1.0, 1.02, 1.5, 8.0)
    # How many times as many loads as can begin are needed by the rung furthest below its bound, and others
    rows = every_pair(
        rng,
        rungs=(1, 2, between(3, 6)),
        loads=(0.25, 1.0, 2.35),
        needs=times,
        others=times,
        least=((0.003, 0.05), (0.3, 0.5), (0.9, 0.97), (1.01, 1.1)),  # the share that is asked for
        above=((1.0005, 1.003), (1.25, 2)),  # so many times as large are the other shares
        unless=lambda row: row["loads"] == 2.35 and row["needs"] == 1,  # p * 2.35 / 2.35 may be less than p
    )
    for many, loads, needs, others, least, above in sorted(tuple(row.values()) for row in rows):
        peak, each = round(float(rng.uniform(20, 300)), 1), np.full(many, others * loads)
        shares, place = rng.uniform(*above, many), rng.integers(many)
        each[place], shares[place] = needs * loads, 1
        rates = (peak * np.minimum(1, loads / each) * shares * rng.uniform(*least)).round(7).tolist()
        rungs = list(zip(rng.permutation(names).tolist(), rates, each.tolist(), strict=False))
        yield Case((peak, loads, rungs), f"rungs: {many}, {loads:g} loads in the time of an FMA")
    lifted = [("blocked", 130.0, 0.2), ("tiled", 104.0, 0.5), ("simple", 120.0, 1.0)]
    yield Case((100.0, 1.0, lifted), "130, 104 and 120 % of their bounds: noise has lifted all of them")


def _own_rungs() -> Case:
    from course_lib.circles.simd import MR, REGISTERS

    n, known = 4 if REGISTERS == 32 else 2, own_numbers.limits()
    each = {"compiled-ikj": 2.0, "blocked": 2.0, "unrolled": 12 / 32, "simd": (MR + n) / (MR * n)}
    rungs = [(name, own_numbers.result(name, 1000, "float32").gflops, each[name]) for name in each]
    return Case((known.gflops("float32"), known.loads, rungs), "four rungs at N = 1000 in float32")


def _names(got: tuple, name: str, share: float, limit: str) -> bool:
    """Whether a result names this rung and its share, whatever it says of the limit."""
    return got[0] == name and same(got[1], share)


LEAST_EXPLAINED = _task(
    least_explained,
    _own_rungs,
    ("rung", "share of its bound", "limit"),
    {
        "How much of the peak do the loads of each rung leave?": "peak",
        "Few loads do not lift a bound above the peak.": (
            lambda got, *given: (
                _names(got, *least_explained(*given, slip="loads"))
                and not _names(got, *least_explained(*given))
            )
        ),
        "In the time of an FMA `loads` loads can begin, not one.": {"loads": 1.0},
        "That rung has the largest share of its bound; asked is the smallest.": "best",
        "Shares above 1 count as they are: noise may lift a rung over its bound.": (
            lambda got, *given: got[1] == 1 < least_explained(*given)[1]
        ),
        "Not the GFLOP/s below a bound count, but the share of it that is reached.": (
            lambda got, peak, loads, rungs: (
                got[0] == max(rungs, key=lambda rung: peak * min(1.0, loads / rung[2]) - rung[1])[0]
                and got[0] != least_explained(peak, loads, rungs)[0]
            )
        ),
        'Where the loads leave the whole peak, the limit is "FMAs", and "loads" where they leave less.': (
            lambda got, *given: got[:2] == least_explained(*given)[:2]
        ),
    },
    id="04.yours",
    title="Which rung is not explained yet?",
    difficulty=2,
    cases=_rungs,
    hints=(
        "If a rung needs 2 loads for an FMA and one can begin in its time, how much of the peak is left?",
        "bound = peak * min(1, loads / loads for an FMA); the share is GFLOP/s over bound, and the smallest "
        "share tells where something else costs time.",
        "bounds = {name: peak * min(1, loads / each) for name, gflops, each in rungs}; then the smallest "
        "gflops / bounds[name].",
    ),
)


# --- 05.yours: what two measured times say about a serial part ----------------------------------------------


def serial(one: Timed, several: Timed, threads: int, slip: str = "") -> tuple[float, float, float]:
    """Return the serial fraction at least and at most, and the speed-up that no number of threads exceeds.

    Both times are (seconds, spread); the fraction lies between 0 and 1.
    """
    whole = 1 if slip == "share" else 1 - 1 / threads
    low, high = ((end - 1 / threads) / whole for end in _limits(one, several, slip))
    low, high = min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)
    bound = high if slip == "high" else low
    return low, high, 1 / bound if bound else math.inf


def _two_times(rng: np.random.Generator) -> Iterator[Case]:
    yield Case(((10.0, 0.5), (6.0, 0.6), 2), "10 s on one thread, 6 s on two")
    yield Case(((10.0, 0.0), (10.0, 0.0), 4), "no gain at all")
    parts = ((-0.2, -0.05), (2e-6, 9e-6), (0.002, 0.02), (0.05, 0.3), (0.6, 0.95), (1.0, 1.6))
    around = ((0, 0), (0, 0.01), (0.06, 0), (0.01, 0.06), (0, 0.6), (0.6, 0.06), (0.6, 0.6))  # of a time
    rows = every_pair(
        rng, threads=(2, 3, 4, between(5, 17), 64), part=parts, around=around, unit=(1.0, 1e-9, 1e4)
    )
    for threads, (low, high), around, unit in sorted(tuple(row.values()) for row in rows):
        a, part = float(rng.uniform(0.3, 9)), float(rng.uniform(low, high))
        b = a * max(0.2 / threads, part + (1 - part) / threads)
        spreads = (share * t for share, t in zip(around, (a, b), strict=True))
        times = zip(*(map(lambda s: float(f"{s * unit:.9g}"), of) for of in ((a, b), spreads)), strict=True)
        yield Case((*times, threads), f"{threads} threads, {b / a:.2g} times as long as on one")


def _own_times() -> Case:
    from course_lib.measure import machine

    cores = max(2, machine.describe().threads)
    found = [own_numbers.result("threads", 1000, threads=p) for p in (1, cores)]
    times = ((one.seconds, one.spread_s) for one in found)
    return Case((*times, cores), f"threads at N = 1000 on 1 and on {cores} threads")


SERIAL = _task(
    serial,
    _own_times,
    ("serial at least", "at most", "speed-up at most"),
    {
        "Medians are not exact. What do the spreads leave open?": "median",
        "At worst one time was long *and* the other short: add one spread only.": "alike",
        "A fraction lies between 0 and 1: what comes out beyond is noise.": (
            lambda got, *times: not 0 <= got[0] <= got[1] <= 1
        ),
        "Divide by 1 - 1 / threads: so much of the parallel part has gone.": "share",
        "The speed-up is bounded by the fraction at least; 0 bounds nothing.": "high",
        "More threads than were measured count, too.": lambda got, one, several, threads: got[2] == threads,
    },
    id="05.yours",
    title="Can it be told?",
    cases=_two_times,
    hints=(
        "Which serial fraction do two exact times ask for? And which times within the spreads give the "
        "smallest one?",
        "s = (several / one - 1 / p) / (1 - 1 / p). Smallest: several - spread over one + spread; largest: "
        "the other way round. Keep both between 0 and 1; the speed-up stays below 1 / smallest.",
        "low = max(0, ((b - db) / (a + da) - 1 / p) / (1 - 1 / p)); 1 / low if low > 0 else math.inf.",
    ),
)
