"""Tasks of chapter 08: who holds what, who sends what to whom, and what to do when hardware fails."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.distributed.collectives import ring_all_reduce
from course_lib.distributed.faults import overhead, young_daly_s
from course_lib.distributed.matmul import cuts
from course_lib.distributed.wire import Array, Wire
from course_lib.grading.compare import Mismatch, close, describe, exact, is_number
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.stage import OnTheWire, played
from course_lib.grading.task import Case, Task

PLAIN = Language(("math", "numpy", "itertools"))
#: Sends and receives at once; what is mended has to do without.
WIRE = Language(("math", "numpy"), wire=("send", "receive", "exchange"))
HALF_WIRE = Language(("math", "numpy"), wire=("send", "receive"))


#: How many there are of what ranks share, as (times the number of ranks, and so many more).
MANY = (
    *((0, 1), (1, -1), (1, 0), (1, 1)),
    *(lambda rng, over=over: (int(rng.integers(2, 40)), over) for over in (0, 1, -1)),
    (0.5, 0),  # half as many as ranks, or half as many left over: neither one nor all but one
    lambda rng: (int(rng.integers(1, 40)) + 0.5, 0),
)


def _many(of: tuple[float, int], ranks: int) -> int:
    return int(of[0] * ranks) + of[1]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _returned(got: Any, wanted: str) -> Mismatch:
    """Return the mismatch of a result of another type than what is wanted."""
    end = ": is a `return` missing?" if got is None else "."
    return Mismatch((f"Your function returned {describe(got)}, but {wanted} is needed{end}",), form=True)


def _has_form(one: Any, form: Any) -> bool:
    """Whether a value is a whole number where the form is 0, and a tuple or list of such where it is one."""
    if form == 0:
        return is_number(one) and math.isfinite(one) and one == int(one)
    return type(one) in (tuple, list) and len(one) == len(form) and all(map(_has_form, one, form))


# --- 08.shards: which block goes from whom to whom when a product is transposed -----------------------------

Band = tuple[int, int]  # from and to
Sent = tuple[int, int, Band, Band]  # sender, receiver, rows, columns
MESSAGE = (0, 0, (0, 0), (0, 0))


def shards(M: int, N: int, ranks: int, slip: str = "") -> list[Sent]:
    """Return the messages that turn bands of rows of C (M, N) into bands of rows of its transpose.

    A message (sender, receiver, (row, to_row), (column, to_column)) is C[row:to_row, column:to_column].
    """
    rows, columns = cuts(M, ranks), cuts(M if slip == "one cut" else N, ranks)
    if slip == "longer last":
        rows, columns = ([slice(n * k // ranks, n * (k + 1) // ranks) for k in range(ranks)] for n in (M, N))
    found = [
        (sender, receiver, (band.start, band.stop), (part.start, part.stop))
        for sender, band in enumerate(rows)
        for receiver, part in enumerate(columns)
        if sender != receiver and band.stop > band.start and part.stop > part.start
    ]
    return [(to, of, *rest) for of, to, *rest in found] if slip == "backwards" else found


@dataclass(frozen=True)
class Messages:
    """Accepts the right messages in any order, each once."""

    def compare(self, got: Any, want: list[Sent], args: tuple) -> Mismatch | None:
        """Return None if `got` lists what `want` does."""
        if type(got) is not list or not all(_has_form(one, MESSAGE) for one in got):
            return _returned(got, "a list of (sender, receiver, (row, to_row), (column, to_column))")
        mine, right = (Counter(map(_message, messages)) for messages in (got, want))
        for one in mine - right:
            instead = (f", but {_said(other)} is" for other in right - mine if other[:2] == one[:2])
            return Mismatch((f"{_said(one)} is not needed{next(instead, '')}.",))
        for one in right - mine:
            counts = f"You have {_count(len(got), 'message')}, and {len(want)} are needed."
            return Mismatch((f"{_said(one)} is missing. {counts}",))
        return None


def _said(message: Sent) -> str:
    sender, receiver, (row, to_row), (column, to_column) = message
    return f"C[{row}:{to_row}, {column}:{to_column}] from rank {sender} to rank {receiver}"


def _message(one: Sequence) -> Sent:
    return (int(one[0]), int(one[1]), *(tuple(map(int, band)) for band in one[2:]))


def _slipped(slip: str) -> Callable[..., bool]:
    """Return what says whether messages are those of a slip."""
    return lambda got, *args: (
        sorted(map(_message, got)) == sorted(shards(*args, slip)) != sorted(shards(*args))
    )


def _products(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((4, 4, 2), "C is 4 x 4 on 2 ranks: a square")
    yield Case((7, 5, 3), "C is 7 x 5 on 3 ranks: what does not divide, the first bands are longer by one")
    drawn = every_pair(rng, M=MANY, N=MANY, ranks=(1, 2, 3, between(4, 13)))
    found = [(_many(row["M"], row["ranks"]), _many(row["N"], row["ranks"]), row["ranks"]) for row in drawn]
    for M, N, ranks in sorted(filter(all, found), key=lambda one: (min(one[:2]) < one[2], sum(one))):
        words = ", some ranks have nothing to send or to receive" * (min(M, N) < ranks)
        yield Case((M, N, ranks), f"C is {M} x {N} on {_count(ranks, 'rank')}{words}")


SHARDS = Task(
    id="08.shards",
    title="The shards of a transposed product",
    minutes=15,
    points=2,
    cases=_products,
    reference=shards,
    comparison=Messages(),
    rules=(PLAIN,),
    lookalikes={
        "What a rank keeps for itself is no message.": (
            lambda got, *args: any(sender == receiver for sender, receiver, *_ in got)
        ),
        "A block without an element is no message.": (
            lambda got, *args: any(begin == end for one in got for begin, end in one[2:])
        ),
        "Sender and receiver are exchanged: who has a band of rows of C sends from it.": _slipped(
            "backwards"
        ),
        "The bands of columns follow from N, not from M: they are the rows of the transpose.": (
            # With fewer rows or columns than ranks others look so: who leaves out the ranks that have none.
            lambda got, *args: min(args[:2]) >= args[2] and _slipped("one cut")(got, *args)
        ),
        "Of the bands the longer ones come first; yours do not.": _slipped("longer last"),
    },
    hints=(
        "Which rank holds C[i, j] before, and which one must hold it as element [j, i] of the transpose?",
        "Cut the rows of C for the senders and its columns for the receivers. Each pair of a sender and "
        "another rank has one block; it may be empty.",
        "edges = [r * (M // P) + min(r, M % P) for r in range(P + 1)] are the edges of the bands of rows; "
        "the same with N for columns; then two loops, and `if sender != receiver`, and no empty block.",
    ),
)


# --- 08.skew: which blocks Cannon's ranks multiply in each turn ---------------------------------------------

Block = tuple[int, int]


def skew(q: int, turn: int, slip: str = "") -> list[tuple[Block, Block]]:
    """Return for each rank i * q + j which block of A and which of B it multiplies in this turn, from 0."""
    places = [divmod(rank, q) for rank in range(q * q)]
    if slip == "no skew":
        return [((i, (j + turn) % q), ((i + turn) % q, j)) for i, j in places]
    if slip == "all alike":  # right for the sum, but rows of ranks want one block of B at a time
        return [((i, turn), (turn, j)) for i, j in places]
    way = -1 if slip == "other way" else 1
    inner = [(i + j + way * turn) % q for i, j in places]
    if slip == "exchanged":
        return [((k, j), (i, k)) for (i, j), k in zip(places, inner, strict=True)]
    return [((i, k), (k, j)) for (i, j), k in zip(places, inner, strict=True)]


@dataclass(frozen=True)
class Pairs:
    """Accepts a pair of blocks for each rank, and says of a wrong one why it is."""

    def compare(self, got: Any, want: list, args: tuple) -> Mismatch | None:
        """Return None if `got` is right."""
        if (
            type(got) is not list
            or len(got) != len(want)
            or not all(_has_form(one, MESSAGE[2:]) for one in got)
        ):
            return _returned(got, f"a list with a pair of blocks for each rank ({len(want)})")
        q = args[0]
        for rank, ((a, b), right) in enumerate(zip(got, want, strict=True)):
            if (tuple(a), tuple(b)) == right:
                continue
            said = f"Rank {rank} at ({rank // q}, {rank % q}) has blocks A{tuple(a)} and B{tuple(b)}"
            why = "" if a[1] == b[0] else ", which do not belong together: A's column is not B's row"
            return Mismatch((f"{said}{why}; expected are A{right[0]} and B{right[1]}.",))
        return None


def _skewed(slip: str) -> Callable[..., bool]:
    """Return what says whether pairs of blocks are those of a slip."""
    return lambda got, q, turn: [(tuple(a), tuple(b)) for a, b in got] == skew(q, turn, slip)


def _turns(rng: np.random.Generator) -> Iterator[Case]:
    for q in (1, 2, 3, 4, *map(int, rng.integers((5, 9), (9, 13)))):
        for turn in sorted({0, q // 2, int(rng.integers(q)), q - 1}):
            words = {q - 1: ": the last turn", 1: ": after one shift", 0: ": the skew itself"}
            yield Case((q, turn), f"{q} x {q} ranks, turn {turn}{words.get(turn, '')}")


SKEW = Task(
    id="08.skew",
    title="Cannon's skew",
    points=2,
    difficulty=2,
    minutes=15,
    cases=_turns,
    reference=skew,
    comparison=Pairs(),
    rules=(PLAIN,),
    lookalikes={
        "The blocks are shifted, but there was no skew before: rank (0, 1) has A(0, 1) and B(0, 1), which do "
        "not belong together.": _skewed("no skew"),
        "These blocks belong together, but a whole row of ranks has the same block of A: one rank would have "
        "to send it to all.": _skewed("all alike"),
        "A goes to the left and B goes up, so every turn brings the next block, not the one before.": _skewed(
            "other way"
        ),
        "A's block stays in its row i, B's in its column j: yours are the other way round.": _skewed(
            "exchanged"
        ),
    },
    hints=(
        "Rank (i, j) may multiply A(i, k) by B(k, j) for any k. Which ranks want the same block if all of "
        "them begin with k = 0?",
        "Row i of A is shifted i places to the left, column j of B is shifted j places up, before the first "
        "turn. Every turn shifts both by one more. What is k then on rank (i, j)?",
        "k = (i + j + turn) % q, and the pair is ((i, k), (k, j)).",
    ),
)


# --- 08.order: a ring's ranks on racks ----------------------------------------------------------------------


def order(racks: list[int]) -> list[int]:
    """Return for each rank of a ring the place where it runs; racks[place] is the rack of a place."""
    return sorted(range(len(racks)), key=lambda place: racks[place])


def crossings(racks: Sequence[int], places: Sequence[int]) -> int:
    """Return how many messages of one step of the ring go from rack to rack."""
    return sum(racks[places[rank - 1]] != racks[place] for rank, place in enumerate(places))


@dataclass(frozen=True)
class FewCrossings:
    """Accepts any order in which as few messages as can be go from rack to rack."""

    def compare(self, got: Any, want: list[int], args: tuple) -> Mismatch | None:
        """Return None if `got` names each place once, and leaves a rack no more often than `want`."""
        (racks,) = args
        if type(got) is not list or not all(map(is_number, got)):
            return _returned(got, "a list of places")
        if sorted(got) != sorted(want):
            said = f"Each of the places 0 to {len(racks) - 1} must have one rank: you have"
            return Mismatch((f"{said} {len(set(got))} different places for {len(racks)} ranks.",))
        mine, least = crossings(racks, [int(n) for n in got]), crossings(racks, want)
        said = f"{mine} of {len(racks)} messages of a step go from rack to rack; {least} are enough."
        return Mismatch((said,)) if mine > least else None


NUMBERS = ((0, 1), (5, 1), (3, 10), (1_999_000, 1), (7, 126_000))  # of racks: the first, and how far the next


def _machine_rooms(rng: np.random.Generator) -> Iterator[Case]:
    yield Case(([0, 0, 1, 1],), "four places, in order already")
    yield Case(([0, 1, 0, 1, 0, 1],), "two racks, dealt out in turns")
    yield Case(([5, 5, 5],), "one rack alone, number 5")
    yield Case(([3, 1, 2, 0],), "a rack for each rank")
    yield Case(([9],), "one place, in rack 9")
    yield Case(([4, 2, 2, 4],), "the first place's rack again at the end")
    racks, each = (2, 3, between(4, 9)), (2, between(3, 7), between(55, 75))  # places on average
    drawn = every_pair(rng, racks=racks, each=each, free=(False, True), numbers=NUMBERS)
    for row in sorted(drawn, key=lambda row: row["racks"] * row["each"]):
        racks, places, (first, step) = row["racks"], row["racks"] * row["each"], row["numbers"]
        room = rng.integers(0, racks, places) if row["free"] else np.arange(places) % racks
        words = "as they were free" if row["free"] else "dealt out in turns"
        where = (first + step * rng.permutation(racks))[room].tolist()
        yield Case((where,), f"{places} places in {racks} racks from number {first} on, {words}")


ORDER = Task(
    id="08.order",
    title="Ranks on racks",
    points=2,
    difficulty=2,
    minutes=10,
    cases=_machine_rooms,
    reference=order,
    comparison=FewCrossings(),
    rules=(PLAIN,),
    lookalikes={
        "The ranks are where they were: place 0, place 1 and so on.": (
            lambda got, racks: got == list(range(len(racks)))
        ),
        "That is the rack of each rank, but its place is needed.": (
            lambda got, racks: sorted(got) == sorted(racks)
        ),
        "That says for each place which rank runs there; for each rank its place is needed.": (
            lambda got, racks: len({*got}) == len(got) and np.argsort(got).tolist() == order(racks)
        ),
    },
    hints=(
        "A ring goes through all ranks and back to the first. How often must it leave a rack at least?",
        "Once for each rack: it visits all places of a rack before it goes on to the next.",
        "Sort the places by their rack: sorted(range(len(racks)), key=…).",
    ),
)


# --- 08.interval: how often to write a checkpoint (Young and Daly) ------------------------------------------


def interval(
    tile_s: float, write_s: float, mtbf_s: float, ranks: int, restart_s: float, slip: str = ""
) -> tuple[int, float]:
    """Return after how many tiles to write a checkpoint, and the part of the time that is lost then.

    `mtbf_s` is the mean time between failures of one rank.
    """
    ideal = young_daly_s(write_s / (2 if slip == "no two" else 1), mtbf_s / ranks) / tile_s
    around = {max(1, math.floor(ideal)), max(1, math.ceil(ideal))}
    tiles = min(around, key=lambda tiles: overhead(tiles * tile_s, write_s, mtbf_s / ranks, restart_s))
    lost = overhead((ideal if slip == "ideal" else tiles) * tile_s, write_s, mtbf_s / ranks, restart_s)
    if slip == "whole interval":
        lost += tiles * tile_s / 2 / (mtbf_s / ranks)
    return tiles, lost


def _runs(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((10.0, 5.0, 8.0e5, 4, 30.0), "four ranks")
    yield Case((1.0, 60.0, 3.0e7, 1000, 300.0), "a thousand ranks: one of them fails every eight hours")
    drawn = every_pair(
        rng,
        tiles=(0, 1, 2, 3, between(4, 13), between(50, 400), between(100_000, 120_000)),
        # A whole number of tiles, less than where two lose alike, from there to the middle, or more.
        ideal=(0.0, *(lambda rng, low=low: float(rng.uniform(low, low + 0.7)) for low in (0.1, 1.1, 2.1))),
        tile_s=(0.125, 1.0, 600.0, lambda rng: round(float(rng.uniform(2, 90)), 1)),
        ranks=(1, 2, between(3, 100), between(1000, 20_000)),
        restart=(0.0, 0.01, 0.15, 1.5),
        seldom=(9.0, 5000.0),  # does the cluster fail: times the interval
        unless=lambda row: not _is_clear(**row),
    )
    for row in sorted(drawn, key=lambda row: row["tiles"] or math.inf):
        words = f"between {row['tiles']} and {row['tiles'] + 1} tiles" + ": one it is at least" * (
            not row["tiles"]
        )
        yield Case(_run(**row), f"{_count(row['ranks'], 'rank')}, {words}")


def _run(
    tiles: int, ideal: float, tile_s: float, ranks: int, restart: float, seldom: float
) -> tuple[float, ...]:
    """Return the arguments of a run; `restart` is a part of the time between failures."""
    alike = math.sqrt(tiles * (tiles + 1))
    best = float(np.interp(ideal, range(4), (tiles, alike, tiles + 0.5, tiles + 1)))
    apart_s = seldom * max(1.0, best) * tile_s
    seconds = (best * tile_s) ** 2 / 2 / apart_s, apart_s * ranks, apart_s * restart
    write_s, mtbf_s, restart_s = (float(f"{s:.6g}") for s in seconds)
    return tile_s, write_s, mtbf_s, ranks, restart_s


def _is_clear(tiles: int, ideal: float, tile_s: float, **others: Any) -> bool:
    """Whether an interval ends within days, and one number of tiles is better than those beside it."""
    if tiles * tile_s > 3e5 or (tiles == 0 and ideal < 1):
        return False
    _, write_s, mtbf_s, ranks, restart_s = args = _run(tiles, ideal, tile_s, **others)
    best, lost = interval(*args)
    beside = (overhead(n * tile_s, write_s, mtbf_s / ranks, restart_s) for n in (best - 1, best + 1) if n)
    return min(beside) > lost * (1 + 1e-12)


INTERVAL = Task(
    id="08.interval",
    title="When to write a checkpoint",
    minutes=20,
    cases=_runs,
    reference=interval,
    comparison=close(rtol=1e-9, parts=("tiles", "the part that is lost")),
    rules=(PLAIN,),
    lookalikes={
        "That is for one rank: of many ranks the first that fails stops all, and it fails sooner.": {
            "ranks": 1
        },
        "Of the two whole numbers of tiles around the ideal interval yours loses more (the nearest whole "
        "number is not always the better one): compare what both lose.": (
            lambda got, tile_s, write_s, mtbf_s, ranks, restart_s: (
                abs(got[0] - young_daly_s(write_s, mtbf_s / ranks) / tile_s) < 1
                and got[0] != interval(tile_s, write_s, mtbf_s, ranks, restart_s)[0]
            )
        ),
        "The tiles are right. So much is lost at the ideal interval: what is lost at yours?": "ideal",
        "Half an interval is lost with each failure, on average: the derivative of w / t + t / (2 M) is zero "
        "at sqrt(2 w M).": "no two",
        "The tiles are right. A failure comes in mid-interval, on average: half of it is lost.": (
            "whole interval"
        ),
        "The tiles are right. Each failure costs the restart, too.": {"restart_s": 0.0},
        "The first number is seconds, but tiles are needed.": (
            lambda got, tile_s, *at: tile_s != 1 and math.isclose(got[0], tile_s * interval(tile_s, *at)[0])
        ),
    },
    hints=(
        "What does a checkpoint cost for every second of work, and what does a failure? How often does one "
        "of all the ranks fail?",
        "With M = mtbf_s / ranks and an interval t the part write_s / t + (t / 2 + restart_s) / M is lost. "
        "It is smallest at t = sqrt(2 * write_s * M), but t is a whole number of tiles.",
        "ideal = math.sqrt(2 * write_s * mtbf_s / ranks) / tile_s; compare what is lost with "
        "math.floor(ideal) and with math.ceil(ideal) tiles, each at least 1.",
    ),
)


# --- 08.abft: a wrong number that checksums find and repair -------------------------------------------------

ROUNDING = 1e-6  # what sums may differ by


def repaired(F: Array, slip: str = "") -> Array:
    """Return F (M + 1, N + 1) with its one wrong entry mended, or a copy where all sums agree.

    The last column holds the sums of the rows, the last row those of the columns, the checksums' own too.
    """
    rows, columns = F[:, :-1].sum(axis=1) - F[:, -1], F[:-1].sum(axis=0) - F[-1]
    off_rows, off_columns = (np.flatnonzero(~(np.abs(off) <= ROUNDING)) for off in (rows, columns))
    right = F.copy()
    if not off_rows.size:
        return right
    i, j, last = off_rows[0], off_columns[0], F.shape[1] - 1
    if slip == "inner" and (i == F.shape[0] - 1 or j == last):
        return right
    if slip == "add" or (slip == "subtract" and not abs(rows[i]) < 1e7):  # of less, no digits are lost
        right[i, j] += rows[i] if (slip == "add") == (j < last) else -rows[i]
    elif j == last:
        right[i, j] = F[i, :-1].sum()
    else:
        right[i, j] = F[i, -1] - np.delete(F[i, :-1], j).sum()
    return right


def _changed(got: Array, F: Array) -> list:
    return np.argwhere(~np.isclose(got, F, rtol=0, atol=1e-9, equal_nan=True)).tolist()


#: By how much an entry is too large. Of 7e7 and more too many digits are lost to take it away again.
FLIPS = (
    *(0.0, 4.0, -0.5, 2.0**-10, 3e-6, -3e-6, lambda rng: float(rng.uniform(0.1, 9.0))),
    *(7e7, -8e7, 9e7, -9.9e7, 2.0**29, -3e8, 2.0**33, 1e300, -1e300, math.inf, -math.inf, math.nan),
    lambda rng: float(rng.choice((-1.0, 1.0)) * 2.0 ** rng.integers(33, 900)),
)
SIDES = (1, 2, between(3, 9), between(20, 40))
PLACES = ("an entry", "a checksum of a row", "a checksum of a column", "the corner")
ROUNDED_0 = "0 and off by rounding of 9e-7"
LARGE = "tens of thousands"  # who allows sums to differ by a part of themselves misses a small flip
OTHERS = ("", "less than 1", "up to millions", "0", "off by rounding of 9e-7", ROUNDED_0)


def _checked(rng: np.random.Generator, M: int, N: int) -> Array:
    """Return a product with checksums, right but for rounding."""
    A, B = rng.uniform(-2, 2, (M, 6)), rng.uniform(-2, 2, (6, N))
    return np.vstack([A, A.sum(axis=0)]) @ np.column_stack([B, B.sum(axis=1)])


def _flipped(rng: np.random.Generator, M: int, N: int, place: str, wrong: float, others: str) -> Case:
    """Return a product with checksums, in one place of which stands what is `wrong` too large."""
    scales = {"less than 1": 0.01, "up to millions": 1e5, "0": 0.0, ROUNDED_0: 0.0, LARGE: 5e3}
    F = 0.0 + _checked(rng, M, N) * scales.get(others, 1.0)
    i, j = (int(rng.choice((0, n - 1, rng.integers(n)))) for n in (M, N))
    i, j = M if place in PLACES[2:] else i, N if place in PLACES[1::2] else j
    if others == LARGE:  # and it is small, with its row and its column summed up anew
        F[np.ix_([i, M], [j, N])] += rng.uniform(-1, 1) - F[i, j]
    if "off" in others:  # that stays: it is in a row and a column that the wrong entry is not in
        rows, columns = (rng.permutation(np.delete(np.arange(n + 1), at)) for n, at in ((M, i), (N, j)))
        F[rows[0], columns[0]] += 9e-7
        if place == "the corner":  # is the sum of all, too
            F[rows[1], columns[1]] -= 9e-7
    F[i, j] += wrong
    said = f"{place} is {f'{wrong:.3g} too large' if math.isfinite(wrong) else F[i, j]}"
    said = said + ": its exponent was hit" * (abs(wrong) > 1e7) if wrong else "nothing is wrong"
    return Case((F,), f"a product of {M} x {N}, {said}{others and '; the others are '}{others}")


def _flips(rng: np.random.Generator) -> Iterator[Case]:
    for wrong in (0.0, 4.0):
        yield _flipped(rng, 3, 4, "an entry", wrong, "")
    drawn = every_pair(
        rng,
        **{"M": SIDES, "N": SIDES, "place": PLACES, "wrong": FLIPS, "others": OTHERS},
        unless=lambda row: (
            (row["place"], "off" in row["others"], 1 in (row["M"], row["N"])) == (PLACES[3], 1, 1)
        ),
    )
    for row in sorted(drawn, key=_unusual):  # a report says the first that is wrong
        yield _flipped(rng, **row)
    yield _flipped(rng, 4, 5, "an entry", 3e-6, LARGE)


def _unusual(row: dict) -> tuple[int, int]:
    special = row["others"], row["place"] != PLACES[0], not 0.1 <= abs(row["wrong"]) < 10
    return sum(map(bool, special)), row["M"] + row["N"]


ABFT = Task(
    id="08.abft",
    title="The flipped bit",
    points=3,
    difficulty=4,
    minutes=25,
    cases=_flips,
    reference=repaired,
    comparison=close(rtol=1e-9, atol=1e-9),
    rules=(PLAIN,),
    lookalikes={
        "More than one number has changed: all but the wrong one stay as they were, sums that rounding makes "
        "differ, too.": lambda got, F: len(_changed(got, F)) > 1,
        "A checksum can be wrong, too: it is in a row and in a column like all others.": (
            # Among large numbers a right one may have been taken for the wrong one.
            lambda got, F: np.nanmedian(np.abs(F)) < 1e3 and not _changed(got, repaired(F, "inner"))
        ),
        "Yours is F as it was. But in one row and one column the sums differ by more than 10⁻⁶, or by NaN, "
        "which is not more than anything.": lambda got, F: not _changed(got, F),
        "That number was right; the wrong one is elsewhere, or there is none.": (
            lambda got, F: _changed(got, F) != _changed(repaired(F), F)
        ),
        "The entry is found. But taking a difference away from 1e300 leaves nothing of the number's own "
        "digits, and NaN stays NaN: compute it anew from those that are right.": "subtract",
        "The difference goes to the wrong side: what the sums differ by is twice as much now.": (
            lambda got, F: np.allclose(got, repaired(F, "add"), 1e-9, 1e-9, equal_nan=True)
        ),
        "The entry is found, but with your number in its place the sums still differ.": (
            lambda got, F: not np.array_equal(repaired(got), got)
        ),
    },
    hints=(
        "In which rows do the numbers not add up to the last one? In which columns? Is that also so for the "
        "last row and the last column?",
        "One row and one column disagree, and the wrong entry is where they cross. NaN is not larger than "
        "any tolerance: ask what is not within it. Then compute the entry from the others of its row.",
        "i = np.flatnonzero(~(np.abs(F[:, :-1].sum(axis=1) - F[:, -1]) <= 1e-6)), the same for j. The last "
        "column is the sum of the others; another entry is the last one minus the sum of the others.",
    ),
)


# --- 08.shares: work for ranks of unequal speed -------------------------------------------------------------


def shares(rows: int, speeds: list[float], starts: list[float]) -> list[int]:
    """Return how many rows each rank computes, so that the last one ends as soon as can be.

    Rank r computes speeds[r] rows a second, and begins after starts[r] seconds; without a row it takes none.
    """
    counts = [0] * len(speeds)
    ends = [(start + 1 / speed, rank) for rank, (speed, start) in enumerate(zip(speeds, starts, strict=True))]
    heapq.heapify(ends)
    for _ in range(rows):
        _, rank = ends[0]
        counts[rank] += 1
        heapq.heapreplace(ends, (starts[rank] + (counts[rank] + 1) / speeds[rank], rank))
    return counts


def last_end(counts: Sequence[int], speeds: Sequence[float], starts: Sequence[float]) -> float:
    """Return when the last rank ends, in seconds."""
    ranks = zip(counts, speeds, starts, strict=True)
    return max((start + count / speed for count, speed, start in ranks if count), default=0.0)


def _apart(counts: Sequence[int], rows: int, speeds: Sequence[float]) -> float:
    """Return how many rows the shares differ at most from those by speed."""
    return max(abs(n - rows * speed / sum(speeds)) for n, speed in zip(counts, speeds, strict=True))


@dataclass(frozen=True)
class EndsFirst:
    """Accepts any shares that add up and with which no rank ends later than the last of the best."""

    def compare(self, got: Any, want: list[int], args: tuple) -> Mismatch | None:
        """Return None if `got` has a share for each rank and ends as early as `want`."""
        found = exact().compare(got, want, args)
        if found is None or found.form:
            return found
        rows, *ranks = args
        strange = next((rank for rank, n in enumerate(got) if n < 0 or n != int(n)), None)
        if strange is not None:
            said = f"A share is a whole number of rows, 0 at least: rank {strange} has {got[strange]:g}."
            return Mismatch((said,))
        if sum(got) != rows:
            return Mismatch((f"Your shares are {sum(got):g} rows together; {rows} are needed.",))
        mine, best = last_end(got, *ranks), last_end(want, *ranks)
        late = max(range(len(got)), key=lambda rank: last_end(*([each[rank]] for each in (got, *ranks))))
        said = f"Rank {late} ends last with {_count(int(got[late]), 'row')}, after {mine:.6g} s"
        said = f"{said}; {best:.6g} s are possible."
        return Mismatch((said,)) if mine > best * (1 + 1e-9) else None


#: Rows a second of each rank; when they begin, as parts of the time that all rows take if all begin at once.
SPEEDS = {
    "of equal speed": lambda rng, ranks: np.full(ranks, rng.uniform(0.5, 9.0)),
    "of unequal speed": lambda rng, ranks: rng.uniform(0.5, 9.0, ranks),
    "one of them fast": lambda rng, ranks: rng.permutation([50.0] + [1.0] * (ranks - 1)),
    "some of them very slow": lambda rng, ranks: 10.0 ** rng.uniform(-2, 2, ranks),
    "one, two or three rows a second": lambda rng, ranks: rng.integers(1, 4, ranks) * 1.0,
}
STARTS = {
    "at once": lambda rng, speeds: speeds * 0,
    "later if it is faster": lambda rng, speeds: 0.8 * speeds / speeds.max(),
    "too late, but one": lambda rng, speeds: 99.0 * (np.arange(len(speeds)) != rng.integers(len(speeds))),
    "after the other": lambda rng, speeds: rng.permutation(np.linspace(0.0, 2.0, len(speeds))),
    "late": lambda rng, speeds: speeds * 0 + 1.0,
}
#: Without the last rank all would end sooner, so that the one before it begins too late, too, and so on.
ONE_BY_ONE = (
    *((1, (1, 5, 5, 1), (10, 28, 23, 16)), (2, (5, 5, 5, 5), (1, 5, 2, 18))),
    *((11, (1, 10, 1, 1), (0, 0, 3, 30)), (4, (1, 5, 10, 5), (0, 12, 8, 26))),
)


def _clusters(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((12, [1.0, 1.0, 1.0], [0.0] * 3), "12 rows: three equal ranks")
    yield Case((100, [3.0, 1.0], [0.0] * 2), "100 rows: one is three times as fast")
    yield Case((10, [1.0, 1.0, 1.0], [0.0] * 3), "10 rows: rounding each share gives nine")
    named = {"speeds": tuple(SPEEDS), "starts": tuple(STARTS), "unit": (1.0, 1e-6, 1e9)}
    drawn = every_pair(rng, ranks=(1, 2, 3, between(4, 17)), rows=((0, 0), *MANY), **named)
    for row in sorted(drawn, key=lambda row: (row["starts"] != "at once", row["unit"] != 1, row["ranks"])):
        rows, speeds = _many(row["rows"], row["ranks"]), SPEEDS[row["speeds"]](rng, row["ranks"]).round(2)
        starts = (STARTS[row["starts"]](rng, speeds) * rows / speeds.sum()).round(2)
        speeds, starts = (
            [float(f"{n * unit:.6g}") for n in given]
            for given, unit in ((speeds, row["unit"]), (starts, 1 / row["unit"]))
        )
        words = f"{_count(row['ranks'], 'rank')}, {row['speeds']}; each begins {row['starts']}"
        yield Case((rows, speeds, starts), f"{_count(rows, 'row')} on {words}")
    yield Case((9, [2.0, 2.0], [3.0, 0.0]), "9 rows: of two equal ranks one begins late")
    late = "10 rows: without the last one the second begins too late, too"
    yield Case((10, [5.0, 20.0, 9.0], [0.0, 3.0, 20.0]), late)
    yield Case((12, [2.0, 3.0, 1.0], [0.0, 0.0, 60.0]), "12 rows: the third begins when all is long done")
    for rows, speeds, starts in ONE_BY_ONE:
        at, later = int(rng.integers(4)), float(rng.integers(9))
        ranks = [(np.roll(given, at) + more).tolist() for given, more in ((speeds, 0.0), (starts, later))]
        yield Case((rows, *ranks), f"{_count(rows, 'row')}: without who begins too late others do, too")
    each = int(rng.integers(1, 9))  # and half a row
    parts = f"{2 * each + 1} rows: if rows could be cut, the fast one would begin too late"
    yield Case((2 * each + 1, [1.0, 50.0, 1.0], [0.0, each + 0.6, 0.0]), parts)


SHARES = Task(
    id="08.shares",
    title="Unequal ranks",
    minutes=20,
    cases=_clusters,
    reference=shares,
    comparison=EndsFirst(),
    rules=(Language(("math", "numpy", "itertools", "heapq")),),
    lookalikes={
        "All have the same share: the slow ones end last.": (
            lambda got, rows, speeds, starts: (
                len(set(speeds)) > 1 == len(set(starts))
                and list(got) == [rows // len(speeds) + (r < rows % len(speeds)) for r in range(len(speeds))]
            )
        ),
        "Those are shares by speed alone: who begins late needs a smaller one, or none.": (
            lambda got, rows, speeds, starts: (
                len(set(starts)) > 1 and rows > 2 * len(speeds) and _apart(got, rows, speeds) <= 1
            )
        ),
        "Nearly: those are shares by speed, rounded down, and what was left went to a rank that it makes "
        "late. To whom costs it least?": (
            lambda got, rows, speeds, starts: (
                sum(got) == rows
                and len(set(starts)) == 1
                and all(n > rows * speed / sum(speeds) - 1 for n, speed in zip(got, speeds, strict=True))
            )
        ),
    },
    hints=(
        "When does a rank end that has n rows? If you give out the rows one by one, who should get the next?",
        "The rank that would end first with one row more, its start included. No other order of giving is "
        "better, for each row more only makes a rank later.",
        "best = min(range(len(speeds)), key=lambda r: starts[r] + (counts[r] + 1) / speeds[r]); "
        "counts[best] += 1, and that `rows` times.",
    ),
)


# --- 08.all_reduce: a sum that all ranks get, with as few bytes as can be -----------------------------------


def _summands(rng: np.random.Generator) -> Iterator[Case]:
    yield _on_ranks(rng, 2, 4, "two ranks")
    yield _on_ranks(rng, 1, 6, "one rank, which has the sum already")
    for ranks in (4, 3, 2, int(rng.integers(5, 7))):
        fewer, more = (int(n) for n in rng.integers(1, ranks, 2))
        length = ranks * int(rng.integers(100, 200))
        yield _on_ranks(rng, ranks, length, "blocks of equal length")
        yield _on_ranks(rng, ranks, length + more, "blocks of unequal length")
        yield _on_ranks(rng, ranks, fewer, "fewer numbers than ranks: some blocks are empty")
    yield _on_ranks(rng, int(rng.integers(9, 12)), int(rng.integers(900, 1800)), "many ranks")


def _on_ranks(rng: np.random.Generator, ranks: int, length: int, what: str) -> Case:
    """Return an array for each rank: numbers that need all their digits, of sizes from 0.001 to a million.

    Those that are added have one sign and are about equally large, so no order of adding loses digits.
    """
    size = 10.0 ** rng.uniform(-3, 6, length) * rng.choice((-1.0, 1.0), length)
    label = f"{_count(ranks, 'rank')}, {_count(length, 'number')} each: {what}"
    return Case(([size * rng.uniform(1, 2, length) for _ in range(ranks)],), label)


ALL_REDUCE = Task(
    id="08.all_reduce",
    title="All-reduce by a ring",
    points=4,
    difficulty=4,
    minutes=30,
    cases=_summands,
    reference=played(ring_all_reduce),
    entry="all_reduce",
    comparison=OnTheWire(
        close(1e-14, 0.0),  # half of the digits would be fewer bytes
        "send blocks, first on the way to their sum, then the sums; no rank needs the whole array of another",
    ),
    rules=(WIRE,),
    collective=True,
    lookalikes={
        "Every rank still has its own numbers: is what it receives added?": (
            lambda got, given: len(given) > 1 and all(map(np.array_equal, got[0], given))
        ),
        "Only rank 0 has the sum: all ranks need it.": (
            lambda got, given: np.allclose(got[0][0], sum(given)) and not np.allclose(got[0][-1], sum(given))
        ),
        "Each rank has the sum in one of its blocks: now every block has to go round once more.": (
            lambda got, given: all(
                0 < np.isclose(mine, sum(given)).sum() <= -(-mine.size // len(given)) < mine.size
                for mine in got[0]
            )
        ),
        "Those sums have no more digits than float32: the numbers are float64.": (
            lambda got, given: all(
                np.array_equal(mine, mine.astype("f")) and np.allclose(mine, sum(given), rtol=1e-5)
                for mine in got[0]
            )
        ),
        "Something is added twice: does a block go round once too often?": (
            lambda got, given: all(
                np.isclose(mine, sum(given) + one).any() for mine, one in zip(got[0], given, strict=True)
            )
        ),
    },
    hints=(
        "With P ranks cut the array into P blocks. If each rank sends one block to its right in every step, "
        "and adds what comes from the left, where is a whole sum after P - 1 steps?",
        "Two rounds of P - 1 steps. In the first, what comes is added: rank r sends block r - step and adds "
        "to block r - step - 1. Then it has the sum of block r + 1, and in the second round what comes is "
        "kept as it is.",
        "blocks[into] = blocks[into] + wire.exchange(blocks[out], to=right, source=left, like=blocks[into]); "
        "in the second round out = (r + 1 - step) % P, into = (r - step) % P, without the sum.",
    ),
)


# --- 08.deadlock: ranks that all send first -----------------------------------------------------------------


def borders(wire: Wire, mine: Array) -> tuple[Array, Array]:
    """Return the last number of the left neighbour and the first one of the right, on a ring of ranks."""
    left, right = (wire.rank - 1) % wire.size, (wire.rank + 1) % wire.size
    if wire.rank % 2 == 0:
        wire.send(mine[-1:], to=right)
        from_left = wire.receive(mine[-1:], source=left)
        wire.send(mine[:1], to=left)
        from_right = wire.receive(mine[:1], source=right)
    else:
        from_left = wire.receive(mine[-1:], source=left)
        wire.send(mine[-1:], to=right)
        from_right = wire.receive(mine[:1], source=right)
        wire.send(mine[:1], to=left)
    return from_left, from_right


def _rings(rng: np.random.Generator) -> Iterator[Case]:
    dtypes = itertools.cycle(("float64", "float32", "int64"))  # who makes room for what comes may forget them
    for ranks in (2, 4, 3, 5, *map(int, rng.integers((6, 8, 16), (8, 10, 17)))):
        dtype = next(dtypes)
        arrays = [(1e4 * rng.normal(size=int(rng.integers(1, 9)))).astype(dtype) for _ in range(ranks)]
        for mine in arrays if dtype == "int64" else ():  # with more digits than float64 has
            mine += rng.integers(2**61, 2**62, mine.size)
        yield Case((arrays,), f"a ring of {ranks} ranks, arrays of {dtype}")


DEADLOCK = Task(
    id="08.deadlock",
    title="Everybody sends first",
    minutes=20,
    cases=_rings,
    reference=played(borders),
    comparison=OnTheWire(
        close(0.0, parts=("from the left", "from the right")),
        "let pairs of neighbours talk at the same time, not one after the other",
        steps=1.5,
    ),
    rules=(HALF_WIRE,),
    collective=True,
    lookalikes={
        "Left and right are exchanged, or first and last.": (  # the same on a ring of two
            lambda got, given: all(
                mine[1] == given[rank - 1][-1] and mine[0] == given[(rank + 1) % len(given)][0]
                for rank, mine in enumerate(got[0])
            )
        ),
        "The numbers have lost digits: of which dtype is what you send?": (
            lambda got, given: (
                given[0].dtype == "int64" and 0 < abs(int(got[0][0][0][0]) - int(given[-1][-1])) < 1e12
            )
        ),
    },
    hints=(
        "A send ends when its receiver is there. All ranks begin with a send: who receives?",
        "Of two neighbours one sends first and the other receives first. On which side of that a rank is can "
        "follow from its number.",
        "if wire.rank % 2 == 0: send to the right, then receive from the left; else the same two lines in "
        "the other order. Then the same for the other direction.",
    ),
)


#: In the order of the chapter.
TASKS = (SHARDS, SKEW, DEADLOCK, ALL_REDUCE, ORDER, INTERVAL, ABFT, SHARES)
