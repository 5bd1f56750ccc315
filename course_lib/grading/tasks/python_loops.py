"""Tasks of chapter 01: the triple loop in plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from course_lib.grading.compare import Values, close, close_product, exact, product_tolerance, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.tape import CountsOperations
from course_lib.grading.task import Case, Code, SpeedRule, Task
from course_lib.grading.tasks import yours

Rows = list[list[float]]


def product(A: Rows, B: Rows) -> Rows:
    """Return the product of two lists of lists, exactly as defined, each entry rounded once."""
    return [
        [exact_sum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*B, strict=True)] for row in A
    ]


def exact_sum(terms: Iterable[float]) -> float:
    """Return the sum, rounded once; with NaN or inf among the terms what adding them gives."""
    terms = list(terms)
    return math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)


def rows(rng: np.random.Generator, M: int, N: int, decimals: int = 17) -> Rows:
    """Return M rows of N random floats, none of them 0, in no order that a mistake could keep."""
    return (rng.uniform(0.5, 2.0, (M, N)) * rng.choice([-1.0, 1.0], (M, N))).round(decimals).tolist()


def pair(rng: np.random.Generator, M: int, K: int, N: int, decimals: int = 17) -> tuple[Rows, Rows]:
    """Return A (M, K) and B (K, N)."""
    return rows(rng, M, K, decimals), rows(rng, K, N, decimals)


def sizes(rng: np.random.Generator, low: int, high: int, count: int = 3) -> tuple[int, ...]:
    """Return different sizes from low to high - 1, in random order."""
    return tuple(int(n) for n in rng.choice(np.arange(low, high), count, replace=False))


#: None, one, below four, and in fours 3 and none left over; 8 is whole in twos and eights, too.
SIDES = (0, 1, 2, 3, 7, 8, between(9, 16))
BESIDE_ZERO = [pair for one in (math.inf, -math.inf, math.nan) for pair in ((0.0, one), (one, 0.0))]
#: A number of A and one of B that meet: inf and NaN with a 0, which is NaN, and without one.
MEETING = {"": (1.5, 2.5)} | {
    f"{a:g} meets {b:g}": (a, b) for a, b in [*BESIDE_ZERO, (math.inf, -2.5), (1.5, math.nan)]
}
ZEROS = ("", "all else in the first is 0", "all else in the second is 0")
#: What all numbers are multiplied by. A small one is none that may be left out, a large one is no inf.
UNITS = {"": 1.0, "small numbers": 1e-40, "large numbers": 1e30}


def product_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield two plain products, then every two of M, K and N, again with MEETING and ZEROS, which hide much.

    One size comes twice, with other numbers; one leaves 2, 2 and 3 over in fours, two are whole in fives or
    sixes. K = 0 would hide N.
    """
    wide = sorted(sizes(rng, 2, 6))  # M < N
    for M, K, N in ((3, 3, 3), wide):  # short enough for a report: few digits
        yield Case(pair(rng, M, K, N, decimals=2), f"A {M} x {K}, B {K} x {N}")
    plain = every_pair(rng, M=SIDES, K=SIDES[1:], N=SIDES, meeting=("",), zeros=("",), unit=("",))
    most = {"meeting": tuple(MEETING), "zeros": ZEROS, "unit": tuple(UNITS)}
    special = every_pair(rng, M=SIDES[1:], K=SIDES[1:], N=SIDES[1:], **most)
    for M, K, N, *what in map(dict.values, sorted([*plain, *special], key=simple_first)):
        empty = "" if M and N else "the result has empty rows" if M else "the result has no rows"
        said = "; ".join(filter(None, (f"A {M} x {K}, B {K} x {N}", empty, *what)))
        yield Case(meeting_pair(rng, M, K, N, *what), said)
    again = sizes(rng, 5, 12)
    for M, K, N in (again, again, (6, 10, 7), (10, 12, 6), (12, 6, 10), sizes(rng, 24, 41)):
        yield Case(pair(rng, M, K, N), f"A {M} x {K}, B {K} x {N}")


def simple_first(row: dict) -> tuple[int, bool, float]:
    """Return what sorts the rows of every_pair: how many words and zeros say something special, the size."""
    numbers = [one for one in row.values() if isinstance(one, int | float)]
    return sum(map(bool, row.values())) + 2 * numbers.count(0), 0 in numbers, sum(numbers)


def meeting_pair(
    rng: np.random.Generator,
    M: int,
    K: int,
    N: int,
    meeting: str,
    zeros: str,
    unit: str,
    place: int | None = None,
) -> tuple[Rows, Rows]:
    """Return A and B. Two numbers meet at this k, or at three in other rows and columns if there are some."""
    A, B = pair(rng, M, K, N, decimals=2)
    A = [[0.0] * K for _ in A] if "first" in zeros else A
    B = [[0.0] * N for _ in B] if "second" in zeros else B
    i, j = rng.permutation(M), rng.permutation(N)
    places = (K - 1, 0, int(rng.integers(K))) if place is None else (place,)
    for n, k in enumerate(places if M and N and (meeting or zeros) else ()):
        A[i[n % M]][k], B[k][j[n % N]] = MEETING[meeting]
    return tuple([[x * UNITS[unit] for x in row] for row in X] for X in (A, B))


def _skipping_zeros(A: Rows, B: Rows) -> Rows:
    return [[_without_zeros(row, col) for col in zip(*B, strict=True)] for row in A]


def _without_zeros(row: Sequence[float], col: Sequence[float]) -> float:
    return exact_sum(a * b for a, b in zip(row, col, strict=True) if a and b)


def _going_on(A: Rows, B: Rows, within: str) -> Rows | None:
    C = product(A, B)
    sums = np.cumsum(C, axis=1 if within == "row" else None).reshape(np.shape(C)) if C and C[0] else None
    return None if sums is None or np.isnan(sums).any() else sums.tolist()


def _in_equal_places(A: Rows, B: Rows) -> Rows | None:
    if (len(A), len(A and A[0])) != (len(B), len(B[0])):
        return None
    return [[a * b for a, b in zip(row, other, strict=True)] for row, other in zip(A, B, strict=True)]


def stops_early(got: ArrayLike, A: ArrayLike, B: ArrayLike) -> bool:
    """Return whether every sum has only some of its first products, as where blocks leave a rest."""
    got, A, B = (np.array(X, np.float64) for X in (got, A, B))
    if A.ndim < 2 or not (A.size and np.isfinite(A).all() and np.isfinite(B).all()):
        return False
    parts = itertools.accumulate(A[:, k, None] * B[k] for k in range(len(B) - 1))
    return any(np.allclose(got, part, 0, 1e-4 * np.abs(part).max(initial=0.0)) for part in parts)


def spoiled(got: ArrayLike, want: ArrayLike, *given: ArrayLike) -> bool:
    """Return whether NaN stands where a number is due, all else is right, and inf or NaN was given."""
    got, want = np.array(got, np.float64), np.array(want, np.float64)
    if got.shape != want.shape or all(np.isfinite(X).all() for X in given):
        return False
    more = np.isnan(got) & ~np.isnan(want)
    return bool(more.any() and np.allclose(got[~more], want[~more], 1e-3, equal_nan=True))


SPOILED = (
    "A number is due where you have NaN. 0 * inf and inf - inf are NaN: does your way form one where the "
    "definition does not?"
)
LEFT_OUT = (
    "A product with a factor 0 is left out here, but 0 * inf and 0 * NaN are NaN: the definition has no "
    "exception."
)
EARLY = "Every sum ends too early: its last products are missing."
PRODUCT_SLIPS = {
    LEFT_OUT: _skipping_zeros,
    SPOILED: lambda got, A, B: spoiled(got, product(A, B), A, B),
    "This is B times A: the operands are swapped.": lambda A, B: product(B, A),
    "This is A times the transpose of B: you multiply rows by rows, but the definition pairs a row of A "
    "with a column of B.": lambda A, B: product(A, [list(col) for col in zip(*B, strict=True)]),
    "The first product of every sum is missing: the sum over k begins at 0.": (
        lambda A, B: product([row[1:] for row in A], B[1:]) if len(B) > 1 else None
    ),
    "The last product of every sum is missing: the sum over k has K terms.": (
        lambda A, B: product([row[:-1] for row in A], B[:-1]) if len(B) > 1 else None
    ),
    "Only the last product of every sum is there: add to the sum (+=) instead of replacing it.": (
        lambda A, B: product([row[-1:] for row in A], B[-1:])
    ),
    "Only the first product of every sum is there: does the function return too early?": (
        lambda A, B: product([row[:1] for row in A], B[:1])
    ),
    "The total goes on from element to element: set it to 0 before the sum of each.": (
        lambda A, B: _going_on(A, B, "all")
    ),
    "The total goes on along each row: set it to 0 before the sum of each element.": (
        lambda A, B: _going_on(A, B, "row")
    ),
    "Those are products of elements in equal places. An element of the result is a sum over a row of A and a "
    "column of B.": _in_equal_places,
    "After the first row all is 0: does the function return inside a loop?": (
        lambda got, A, B: (
            len(got) > 1
            and any(got[0])
            and not any(map(any, got[1:]))
            and bool(np.isfinite(product(A, B)[1:]).all())  # else NaN may be written as 0
        )
    ),
    EARLY: stops_early,
}

#: What the tasks that ask for a whole product share.
PRODUCT = {
    "cases": product_cases,
    "reference": product,
    "comparison": close_product(),
    "lookalikes": PRODUCT_SLIPS,
}
OWN_LOOPS = (Language(own="this task is to write it yourself"),)


# --- 01.count: how many operations a product takes, before running it ---------------------------------------


def operations(M: int, K: int, N: int) -> tuple[int, int]:
    """Return (multiplications, additions) of an M x K by K x N product, by the definition."""
    return M * N * K, M * N * max(K - 1, 0)


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    side = (0, 1, between(2, 10), between(10, 500))
    made = sorted(every_pair(rng, M=side, K=side, N=side), key=simple_first)
    for M, K, N in ((2, 3, 4), (100, 200, 300), *map(dict.values, made)):
        yield Case((M, K, N), f"{M} x {K} by {K} x {N}")
    few, many = int(rng.integers(2, 10)), int(rng.integers(10, 500))
    odd, even = 2 * int(rng.integers(300_000, 500_000)) + 1, 2 * int(rng.integers(300_000, 500_000))
    plain = ((many, many, many), (1, many, 1), (many, few, many))
    for M, K, N in (*plain, (odd, even, odd)):  # a float has no room for all digits of the last ones
        yield Case((M, K, N), f"{M} x {K} by {K} x {N}")


COUNT = Task(
    id="01.count",
    title="Count the operations",
    points=1,
    difficulty=1,
    minutes=5,
    cases=_sizes,
    reference=operations,
    comparison=exact(("multiplications", "additions")),
    rules=(Language(("math",)),),
    lookalikes={
        "One addition too many per element: the first product has nothing to be added to, so K products "
        "need K - 1 additions.": lambda M, K, N: (M * N * K, M * N * K),
        "The two numbers are swapped: multiplications come first.": (
            lambda M, K, N: operations(M, K, N)[::-1]
        ),
        "The number of additions is negative: with K = 0 there is nothing to add, and that is 0.": (
            lambda M, K, N: (M * N * K, M * N * (K - 1)) if K == 0 else None
        ),
        "Your additions are 0, but the K products of an element are joined by plus signs: K - 1 of them.": (
            lambda got, M, K, N: got[1] == 0 < operations(M, K, N)[1]
        ),
        "That is the work for one element. The result has M * N of them.": (
            lambda M, K, N: (K, K - 1) if K else None
        ),
        "A float has no room for all digits of so large a number: count in whole numbers, with // for /.": (
            lambda got, M, K, N: min(M, K, N) > 500 and any(isinstance(one, float) for one in got)
        ),
        "Those are the elements of the result. Each of them is a sum of K products.": (
            lambda M, K, N: (M * N, M * N)
        ),
    },
    hints=(
        "How many elements has the result, and how many products are summed for one of them?",
        "M * N elements, K products each. Put plus signs between K products: how many do you need? And if "
        "K is 0?",
        "Return M * N * K and M * N * max(K - 1, 0).",
    ),
)


# --- 01.dot: the innermost loop, one element of the product -------------------------------------------------


def dot(row: list[float], col: list[float]) -> float:
    """Return the sum of the products of the pairs in (row, col)."""
    return exact_sum(a * b for a, b in zip(row, col, strict=True))


def _vectors(rng: np.random.Generator) -> Iterator[Case]:
    for K in (2, 3, 1, 7, 7, 8, 31):  # one length comes twice, with other numbers
        row, col = rows(rng, 2, K, decimals=2 if K < 7 else 17)
        yield Case((row, col), f"two lists of {K}")
    yield Case(([], []), "two empty lists: an empty sum is 0")
    lengths = (1, 2, 3, between(4, 8), 8, between(9, 32), between(129, 200))
    special = {"meeting": tuple(MEETING), "zeros": ZEROS, "unit": tuple(UNITS)}
    made = every_pair(rng, K=lengths, **special, place=("at first", "at last", "in the middle"))
    for K, *special, place in map(dict.values, sorted(made, key=simple_first)):
        k = {"at first": 0, "at last": K - 1}.get(place, K // 2)
        A, B = meeting_pair(rng, 1, K, 1, *special, place=k)
        said = "; ".join(filter(None, (f"two lists of {K}", *special, special[0] and place)))
        yield Case((A[0], [b for (b,) in B]), said)
    yield Case(([1.5, 3.0, -0.5], [2.0, 1.0, 4.0]), "two equal products: both count")
    yield Case(([1e-101, 2.5, 3e101], [2e101, 1.5, 1e-101]), "small numbers times large ones")
    yield Case(tuple(rows(rng, 2, 1500)), "two lists of 1500")
    yield Case(([math.inf, 2.5, 2.5], [1.5, 1.5, -math.inf]), "inf and -inf: their sum is NaN")


def _finite(row: list[float], col: list[float]) -> bool:
    return all(map(math.isfinite, row + col))


DOT = Task(
    id="01.dot",
    title="A shortcut that is none",
    points=1,
    difficulty=1,
    minutes=5,
    cases=_vectors,
    reference=dot,
    comparison=Values(lambda want, args: product_tolerance(want.dtype, args[0], np.transpose([args[1]]))),
    rules=OWN_LOOPS,
    lookalikes={
        "Only the last pair is in the result: add to the total (+=) instead of replacing it.": (
            lambda row, col: row[-1] * col[-1] if len(row) > 1 and _finite(row, col) else None
        ),
        "Only the first pair is in the result: does the function return inside the loop?": (
            lambda row, col: row[0] * col[0] if len(row) > 1 and _finite(row, col) else None
        ),
        "The pairs are added; they have to be multiplied.": (
            lambda row, col: sum(row) + sum(col) if _finite(row, col) else None
        ),
        "The products are multiplied with each other; they have to be added up.": (
            lambda row, col: math.prod(row) * math.prod(col) if _finite(row, col) else None
        ),
        "The total stays 0: is anything added to it?": lambda row, col: 0.0 if _finite(row, col) else None,
        LEFT_OUT: lambda row, col: None if _finite(row, col) else _without_zeros(row, col),
    },
    hints=(
        "What is the first pair of two empty lists? And which numbers times 0 are not 0?",
        "An empty sum is 0, and that is where every sum may begin. 0 * inf is NaN, so no product may be left "
        "out for its zero.",
        "total = 0.0; for every pair total += a * b; nothing else.",
    ),
)


# --- 01.rows: a product whose first matrix is mostly zeros: rows of C are mixtures of rows of B -------------

Entries = list[list[tuple[int, float]]]


def by_rows(A: Entries, B: Rows, zeros: bool = True) -> Rows:
    """Return the product of A, given as pairs (k, number) for each row, and B, a list of rows."""
    factors = [[[(a, B[k][j]) for k, a in row] for j in range(len(B[0]))] for row in A]
    return [[exact_sum(a * b for a, b in sums if zeros or (a and b)) for sums in row] for row in factors]


def _sparse(rng: np.random.Generator) -> Iterator[Case]:
    plain = (2, 3, 2, (1, 2), (), "")
    sides = {"M": (1, between(2, 9)), "K": (1, 2, between(3, 25)), "N": (1, 2, between(3, 9))}
    sides["filled"] = ((0,), (1,), (99,), (1, 5, 0, 2))  # entries of the rows in turn, at most K
    simple = every_pair(rng, **sides | {"N": (0, *sides["N"])}, again=((),), meeting=("",))
    made = every_pair(
        rng,
        **sides,
        again=((), (2, 2), (3, -5, 3)),  # whole: where they are counted they may be sorted, too
        meeting=tuple(MEETING),
        unless=lambda row: row["K"] == 1 and row["again"] and (row["meeting"] or row["filled"] == (99,)),
    )
    for M, K, N, filled, again, meeting in (
        plain,
        *map(dict.values, sorted([*simple, *made], key=simple_first)),
    ):
        places = [rng.permutation(K)[: filled[i % len(filled)]].tolist() for i in range(M)]
        A, B = [list(zip(ks, rows(rng, 1, len(ks), 2)[0], strict=True)) for ks in places], rows(rng, K, N, 2)
        twice, k = rng.permutation(K)[[0, -1]].tolist()  # not at one place: some may be added first
        added = [(twice, number) for number in again]
        if meeting:
            number, B[k][rng.integers(N)] = MEETING[meeting]
            added.append((k, number))
        A = [[one for one in row if one[0] not in dict(added)] for row in A]  # only one row has entries there
        row = A[rng.integers(M)]
        del row[max(K - len(added), 0) :]  # what comes twice makes as many entries as in a row without zeros
        for one in added:
            row.insert(int(rng.integers(len(row) + 1)), one)
        said = (f"{M} x {K} by {K} x {N}", again and "several entries at one place all count", meeting)
        yield Case((A, B), "; ".join(filter(None, said)))
    yield Case(([], rows(rng, 3, 2)), "no rows")


ROWS = Task(
    id="01.rows",
    title="Only what is there",
    difficulty=2,
    minutes=10,
    cases=_sparse,
    reference=by_rows,
    comparison=close(rtol=1e-12, atol=1e-12),
    rules=OWN_LOOPS,
    counts=CountsOperations(
        multiplications=lambda A, B: len(B[0]) * sum(map(len, A)),
        whose="of an entry with a row of B",
        at_most=True,  # entries at one place may be added first
    ),
    lookalikes={
        "Of several entries at one place only one is there: all count.": (
            lambda got, A, B: any(
                same(got, by_rows([list(dict(row[::step]).items()) for row in A], B)) for step in (1, -1)
            )
        ),
        LEFT_OUT: {"zeros": False},
        SPOILED: lambda got, A, B: spoiled(got, by_rows(A, B), B),
        "The rows are not mixed: entry (k, a) takes row k of B, not the next one in turn.": (
            lambda A, B: by_rows([[(n, a) for n, (_, a) in enumerate(row)] for row in A], B)
        ),
    },
    hints=(
        "Row i of the result is a sum. Of how many terms, and what is each of them?",
        "Each entry (k, a) adds a times row k of B to the row. What has no entry adds nothing, so nobody "
        "needs to look for it.",
        "out = [0.0] * len(B[0]); for k, a in entries: for j, b in enumerate(B[k]): out[j] += a * b",
    ),
)


# --- 01.alias: a product with two bugs, one of them a list that is there only once --------------------------

ALIAS = Task(
    id="01.alias",
    title="Find the two bugs",
    points=2,
    difficulty=2,
    minutes=5,
    entry="repaired",
    rules=OWN_LOOPS,
    **PRODUCT,
    hints=(
        "Take A and B of 2 x 2. Print C after every change of one element: how many elements change?",
        "[x] * n does not make n lists, it makes n references to one list. And which of M and N is the "
        "number of rows?",
        "C = [[0.0] * N for _ in range(M)]",
    ),
)


# --- 01.faster: the same product, as fast as plain Python gets ----------------------------------------------

INDEXED = Code(
    """\
def matmul_indexed(A, B):
    M, K, N = len(A), len(B), len(B[0])
    C = [[0.0] * N for _ in range(M)]
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i][j] += A[i][k] * B[k][j]
    return C
""",
    "matmul_indexed",
)


FASTER = Task(
    id="01.faster",
    title="As fast as Python goes",
    minutes=20,
    entry="matmul_fast",
    rules=OWN_LOOPS,
    speed=SpeedRule(
        baseline=INDEXED,
        make_inputs=lambda rng: pair(rng, 61, 67, 59),
        thresholds=((1.3, 0.5), (1.8, 1.0)),
        points=2,
        fastest=2.4,
        on_the_way="Reading rows and columns directly is worth about half; for the rest let one pass serve "
        "several columns: hint 2.",
    ),
    **PRODUCT,
    hints=(
        "Per inner step the baseline looks up four lists by index to do one multiplication. Which look-ups "
        "give the same object again and again?",
        "Loop over the numbers, not over indices (zip), and keep the sum in a local name: that is about "
        "1.6x. "
        "Then let one pass over a row serve several columns, so that the cost of a loop step is shared.",
        "for a, b0, b1, b2, b3 in zip(row, *columns[j:j + 4]): c0 += a * b0; c1 += a * b1; … and the columns "
        "that are left over one by one.",
    ),
)


# --- 01.predict_time: the exponent and the time of a large product, from timings of small ones --------------


def extrapolate(sizes: list[float], seconds: list[float], N: float, slip: str = "") -> tuple[float, float]:
    """Return the exponent of the power law through the points (least squares in logs) and the time at N."""
    log = {"line": np.asarray, "log10": np.log10}.get(slip, np.log)
    axes = (log(sizes), log(seconds))[:: -1 if slip == "turned" else 1]
    slope, offset = np.polyfit(*axes, 1)
    line = {"line": offset + slope * N, "log c": offset * N**slope}
    return float(slope), float(line.get(slip, np.exp(offset) * N**slope))


def _timings(rng: np.random.Generator) -> Iterator[Case]:
    plain = [8.0, 16.0, 32.0, 64.0]
    yield Case((plain, [1e-9 * n**3 for n in plain], 500.0), "an exact cubic law, 1 ns per step")
    made = every_pair(
        rng,
        count=(2, 3, between(4, 8), 13),
        exponent=(3.0, 1.0, 2.0, 3.2),
        again=("", "the smallest twice", "the largest twice", "the smallest twice, in the same time"),
        last=("", "the largest took less than the one before", "one took fifty times as long"),
        order=("", "from the largest on", "in no order"),
        asked=("N above them", "N below them", "N is one of them", "N between them"),
    )
    first = (5, 2.5, "", "", "", "N above them")
    for count, exponent, *said in (first, *map(dict.values, sorted(made, key=simple_first))):
        sizes = np.sort(rng.choice(np.arange(10, 400, 30.0), count, replace=False)) + rng.integers(30)
        N = {"N above them": 1024.0, "N below them": 5.0, "N between them": sizes[-2:].mean()}
        N = float(N.get(said[-1], rng.choice(sizes)))
        again = sizes[-1:] if "largest" in said[0] else sizes[: bool(said[0])]
        sizes = np.sort([*sizes, *again])
        noise = 0.3 if exponent < 3 or said[1] else 0.001  # near 3 is not 3, nor is what is above
        seconds = 3e-8 * sizes**exponent * rng.uniform(1 - noise, 1 + noise, len(sizes))
        seconds[-1] = 0.8 * seconds[-2] if "less" in said[1] else seconds[-1]
        seconds[len(seconds) // 2] *= 50 if "fifty" in said[1] else 1  # all timings count
        seconds[0] = seconds[1] if "same" in said[0] else seconds[0]
        at = np.argsort({"": sizes, "from the largest on": -sizes}.get(said[2], rng.random(len(sizes))))
        label = ", ".join(filter(None, (f"{len(sizes)} noisy timings", *said)))
        yield Case((sizes[at].tolist(), seconds[at].tolist(), N), label)


def _two_points(sizes: list[float], seconds: list[float], N: float, first: int) -> tuple[float, float] | None:
    if len(set(sizes)) < 3 or sizes[-1] == sizes[first]:  # of two sizes a timing may just be missing
        return None
    p = math.log(seconds[-1] / seconds[first]) / math.log(sizes[-1] / sizes[first])
    return p, seconds[first] * (N / sizes[first]) ** p


PREDICT_TIME = Task(
    id="01.predict_time",
    title="How long would a large one take?",
    points=2,
    minutes=10,
    cases=_timings,
    reference=extrapolate,
    comparison=close(rtol=1e-8, parts=("exponent", "seconds at N")),
    rules=(Language(("math", "numpy")),),
    lookalikes={
        "The pair is swapped: exponent first, then the seconds.": (
            lambda sizes, seconds, N: extrapolate(sizes, seconds, N)[::-1]
        ),
        "Of a size that was timed twice only one timing is used: both count.": (
            lambda got, sizes, seconds, N: any(
                same(got, extrapolate([*kept], [*kept.values()], N))
                for step in (1, -1)
                if len(kept := dict(zip(sizes[::step], seconds[::step], strict=True))) < len(sizes)
            )
        ),
        "The exponent is just 3 here: measure the exponent, do not assume or round it.": (
            lambda got, sizes, seconds, N: got[0] == 3 and abs(extrapolate(sizes, seconds, N)[0] - 3) > 1e-6
        ),
        "That is log c: take exp of it.": "log c",
        "The slope and the offset are swapped: np.polyfit gives the highest power first, the slope.": (
            lambda got, sizes, seconds, N: np.isclose(
                got[0], np.polyfit(np.log(sizes), np.log(seconds), 1)[1]
            )
        ),
        "Only the first and the last point are used: noise in one of them spoils the fit. Use all points.": (
            lambda sizes, seconds, N: _two_points(sizes, seconds, N, 0)
        ),
        "Only the last two points are used: noise in one of them spoils the fit. Use all points.": (
            lambda sizes, seconds, N: _two_points(sizes, seconds, N, -2)
        ),
        "This "
        "is a straight line through the times themselves. A power law is straight in the logarithms.": "line",
        "The axes have changed places: fit log seconds over log sizes, np.polyfit(log sizes, log seconds, "
        "1).": "turned",
        "log10 "
        "and exp do not belong together: the opposite of log10 is 10 ** x, that of log is exp.": "log10",
        "The exponent is right. The time is taken from one point and its noise: take it from the fitted "
        "line, exp(offset) * N ** slope.": lambda got, sizes, seconds, N: (
            np.isclose(got[0], extrapolate(sizes, seconds, N)[0])
            and np.isclose(got[1], np.multiply(seconds, np.divide(N, sizes) ** got[0]), rtol=1e-9).any()
        ),
        "The second number is the logarithm of the time: take exp of it.": (
            lambda sizes, seconds, N: (
                extrapolate(sizes, seconds, N)[0],
                math.log(extrapolate(sizes, seconds, N)[1]),
            )
        ),
    },
    hints=(
        "If t = c * N^p, what is log t? Which kind of curve is that in log N?",
        "log t = log c + p * log N is a straight line: fit one through (log N, log t) by least squares. Its "
        "slope is p.",
        "slope, offset = np.polyfit(np.log(sizes), np.log(seconds), 1); the time at N is exp(offset) * N "
        "** slope.",
    ),
)


#: In the order of the chapter.
TASKS = (COUNT, DOT, ROWS, ALIAS, FASTER, PREDICT_TIME, yours.FASTER)
