"""Tasks of chapter 05: threads that share memory, judged under every schedule, and work dealt out evenly."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from course_lib.grading.compare import Mismatch, close, describe, exact, is_number
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.language import Language
from course_lib.grading.rules import AtOnce, Scenario, UnderAllSchedules
from course_lib.grading.task import Case, Task, source
from course_lib.grading.tasks import yours
from course_lib.measure.scheduling import best_makespan, plan
from course_lib.simulators import coherence
from course_lib.simulators.interleavings import JointState, Lock, Semaphore

#: Handed out in the assignment. A mutex or a semaphore cannot be an argument of a judged function, so it has
#: a name; who asks for it first makes it.
LOCKS = source("""
    import threading


    def lock_of(name, made={}):  # noqa: B006 - the one mutex of that name, kept in `made`
        return made.setdefault(name, threading.Lock())


    def slots_of(name, made={}):  # noqa: B006 - the one semaphore of that name: 2 slots
        return made.setdefault(name, threading.Semaphore(2))


    def use(buffer, uses):  # stands for the work with that buffer
        uses[buffer] += 1
""")

#: The same for the checker: shared dicts hold them.
CHECKED_LOCKS = source("""
    def lock_of(name):
        return locks[name]


    def slots_of(name):
        return slots[name]


    def use(buffer, uses):
        uses[buffer] += 1
""")

THREADS = Language(("threading",), given=LOCKS)


# --- 05.team: the number of threads that is best, from three times, where each thread has a price -----------


def best_team(times: list[tuple[int, float]], most: int) -> tuple[int, float]:
    """Return the number of threads, at most `most`, with the shortest time, and the speed-up over one thread.

    The times are a + b / p + c * p on p threads, through the three (p, seconds) that are given.
    """
    law = _law(times)
    best = min(range(1, most + 1), key=law)
    return best, law(1) / law(best)


def _law(times: list[tuple[int, float]], powers: tuple[int, ...] = (0, -1, 1)) -> Callable[[float], float]:
    threads, seconds = np.array(times[: len(powers)], dtype=float).T
    parts = np.linalg.solve(threads[:, None] ** np.array(powers, float), seconds).tolist()
    return lambda p: sum(part * float(p) ** power for part, power in zip(parts, powers, strict=True))


def _teams(rng: np.random.Generator) -> Iterator[Case]:
    for measured, serial, divided, best, most, what in (
        ((1, 2, 4), 1.0, 18.0, 6.0, 16, "measured on 1, 2 and 4 threads"),
        ((1, 2, 4), 0.0, 10.0, 1.46, 64, "nothing serial, and a price that is high"),
        ((1, 2, 4), 0.0, 10.0, 1.38, 64, "nothing serial, and a price that is higher"),
        ((1, 2, 4), 1.0, 12.0, 2.43, 16, "between two and three threads"),
        ((2, 8, 12), 0.4, 20.0, 5.5, 32, "of those that were measured, one beyond the best is the fastest"),
        ((1, 2, 8), -0.5, 18.0, 6.0, 16, "the part that stays comes out below 0"),
    ):
        yield Case((_measured(measured, serial, divided, best), most), what)
    for row in every_pair(
        rng,
        most=(1, 2, between(3, 9), between(9, 49), between(260, 400)),
        threads=((1, 2, 8), (12, 4, 1), (3, 1, 8), (2, 4, 8), (8, 12, 3)),
        serial=(0.0, _uniform(0.1, 1)),
        divided=(_uniform(5, 90),),
        best=(_uniform(0.5, 0.9), _uniform(1.2, 3), _uniform(3, 12), _uniform(12, 30), math.inf),
        unit=(1.0, 1e-9, 3600.0),  # of the times, in seconds
        unless=lambda row: not _is_clear(*_program(**row)),
    ):
        what = f"measured on {', '.join(map(str, row['threads']))} threads, {row['most']} are there"
        yield Case(_program(**row), what)


def _uniform(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: float(rng.uniform(low, high))


def _program(most: int, best: float, **law: Any) -> tuple[list[tuple[int, float]], int]:
    """Return times, and how many threads there are: half of those that were best, if these are more."""
    return _measured(best=min(best, 2 * most), **law), most


def _measured(
    threads: Sequence[int], serial: float, divided: float, best: float, unit: float = 1.0
) -> list[tuple[int, float]]:
    """Return times on these numbers of threads, of a program that is fastest on `best` of them."""
    times = (unit * (serial + divided / p + divided / best**2 * p) for p in threads)
    return [(p, float(f"{time:.10g}")) for p, time in zip(threads, times, strict=True)]


def _is_clear(times: list[tuple[int, float]], most: int) -> bool:
    best, second = sorted(map(_law(times), range(1, max(most, 2) + 1)))[:2]
    return most == 1 or second > 1.001 * best


TEAM = Task(
    id="05.team",
    title="How many threads are best?",
    points=2,
    minutes=20,
    cases=_teams,
    reference=best_team,
    comparison=close(rtol=1e-9, parts=("threads", "speed-up")),
    rules=(Language(("math", "numpy", "itertools")),),
    lookalikes={
        "By Amdahl's law more threads never harm. Here each of them has a price: with three times there are "
        "three unknowns to solve for.": lambda times, most: (
            most,
            _law(times, (0, -1))(1) / _law(times, (0, -1))(most),
        ),
        "More threads than there are: `most` is the limit.": lambda got, times, most: got[0] > most,
        "There are no parts of threads.": lambda got, times, most: got[0] != int(got[0]),
        "One thread more or one less is faster: compare the times of both.": (
            lambda got, times, most: abs(got[0] - best_team(times, most)[0]) == 1
        ),
        "The threads are right. The speed-up is that over one thread, measured or not.": (
            lambda times, most: (
                best_team(times, most)[0],
                times[0][1] / _law(times)(best_team(times, most)[0]),
            )
        ),
        "The threads are right; the second number is the time over that of one thread, the inverse.": (
            lambda *args: (best_team(*args)[0], 1 / best_team(*args)[1])
        ),
    },
    hints=(
        "Which part of the time gets shorter with every thread, which stays, which grows? How many unknown "
        "numbers are that, and how many equations have you got?",
        "Each pair says seconds = a + b / p + c * p. Three such equations give a, b and c. Then the time on "
        "every number of threads is known, and there are not many of them.",
        "rows = [[1, 1 / p, p] for p, _ in times]; a, b, c = np.linalg.solve(rows, [t for _, t in times]); "
        "look for the shortest time among 1 to `most` threads.",
    ),
)


# --- 05.race: threads that hand themselves out tiles; two of them may get the same one ----------------------


def repaired(tiles: int, following: list[int], done: list[int]) -> int:
    """Return how many tiles one thread does alone: all that are left."""
    return max(0, tiles - following[0])


def _alone_of_race(rng: np.random.Generator) -> Iterator[Case]:
    """Yield what a single thread finds: nothing done yet, some done, all done, no tiles at all."""
    some, many = int(rng.integers(4, 30)), int(rng.choice((67, 131, 197)))  # no piece divides these
    for tiles, first in ((1, 0), (some, 0), (9, int(rng.integers(1, 8))), (5, 5), (0, 0), (many, 0)):
        args = (tiles, [first], [1] * first + [0] * (tiles - first))
        yield Case(args, f"one thread alone, tile {first} of {tiles} is the next", must_not_change=False)


BEFORE = (4,) * 4  # how often tiles were done in earlier rounds: those that are left end one higher


def _each_once(before: list[int], already: int):
    def right(final: dict[str, Any]) -> bool | str:
        if final["done"][:already] != before[:already]:
            return f"a tile before number {already} is done again"
        for tile in range(already, len(before)):
            if (times := final["done"][tile] - before[tile]) != 1:
                return f"tile {tile} is done {times} times instead of once"
        if sum(final["results"]) != (left := len(before) - already):
            return f"the threads say they did {sum(final['results'])} tiles instead of {left}"
        return True

    return right


def _stays(tiles: int):
    def kept(moment: JointState) -> bool | str:
        gone = [thread for thread, (kind, _) in enumerate(moment.coming) if kind == "end"]
        left = tiles - moment.shared["following"][0] if gone else 0
        return left <= 0 or (
            f"thread {gone[0]} has gone home although nobody has taken tile {tiles - left} yet. Who meets "
            "another one at the lock waits for it, or in the end one thread is left to work"
        )

    return kept


RACE_TOGETHER = AtOnce("done", "does its tile (`done[tile] += 1`)")


def _team(threads: int, tiles: int, already: int = 0, before: Sequence[int] = BEFORE) -> Scenario:
    done = [1] * already + [*before[: tiles - already]]
    return Scenario(
        f"{threads} thread{'s' * (threads > 1)} and {tiles} tile{'s' * (tiles > 1)}"
        + f", of which {tiles - already} {'is' if tiles == already + 1 else 'are'} left" * (already > 0),
        (f"{{entry}}({tiles}, following, done)",) * threads,
        {
            "following": [already],
            "done": done,
            "locks": {"following": Lock()},
            "slots": {},
        },
        _each_once(done, already),
        CHECKED_LOCKS,
        kept=_stays(tiles),
    )


RACE_SCENARIOS = (
    _team(1, 3),
    _team(2, 1),
    _team(2, 2),
    _team(2, 3, already=1),
    _team(3, 2),
    replace(_team(2, 4), said="2 threads that must be able to work at the same time", at_once=RACE_TOGETHER),
)


def _drawn_teams(rng: random.Random) -> Iterator[Scenario]:
    """Yield two threads near the end of more tiles."""
    already = rng.randrange(4, 9)  # an answer may look once for every tile there is
    team = _team(2, already + 3, already, (0, *rng.choices(range(10), k=2)))
    yield replace(team, at_once=RACE_TOGETHER)


RACE = Task(
    id="05.race",
    title="Every tile exactly once",
    minutes=20,
    cases=_alone_of_race,
    reference=repaired,
    rules=(THREADS, UnderAllSchedules(RACE_SCENARIOS, _drawn_teams)),
    lookalikes={
        "One tile too few: is the last one left out?": (
            lambda tiles, following, done: tiles - following[0] - 1 if tiles > following[0] else None
        ),
        "That counts from tile 0: others may have done some before this thread came.": (
            lambda got, tiles, following, done: following[0] > 0 and got == tiles
        ),
    },
    hints=(
        "Thread 0 has read following[0] and is interrupted before it takes the lock. What does thread 1 "
        "read?",
        "Reading the number, comparing it and counting it up belong together: take the number inside the "
        "lock, decide afterwards with the number you took. The work itself stays outside, or nobody works at "
        "the same time.",
        'while True: with lock_of("following"): tile = following[0]; following[0] += 1 – and then: if tile '
        ">= "
        "tiles: return mine.",
    ),
)


# --- 05.total: the sum of what others move meanwhile --------------------------------------------------------

#: What the others do: they move money from account to account, with locks in rising order, or pay some in; or
#: they pay into two accounts and take it back, until the total is known.
OTHERS = CHECKED_LOCKS + source("""

    def move_of_others(giver, taker, amount, balance):
        with lock_of(min(giver, taker)):
            with lock_of(max(giver, taker)):
                balance[giver] -= amount
                balance[taker] += amount
        return 0


    def pay_of_others(account, amount, balance):
        with lock_of(account):
            balance[account] += amount
        return 0


    def pay_until_others_know(one, other, amount, known, balance):
        while not slots_of(known).acquire(blocking=False):
            pay_of_others(one, amount, balance)
            pay_of_others(other, 2 * amount, balance)
            pay_of_others(other, -2 * amount, balance)
            pay_of_others(one, -amount, balance)
        return 0


    def known_by_others(total, known):
        slots_of(known).release()
        return total
""")


def total_of(balance: list[int]) -> int:
    """Return the sum of all accounts."""
    return sum(balance)


def _alone_of_total(rng: np.random.Generator) -> Iterator[Case]:
    for accounts in (1, 2, 3, 5, 8, 13, 0):
        balance = rng.integers(-30, 90, accounts).tolist()
        yield Case((balance,), f"{accounts} account{'s' * (accounts != 1)}, and nobody else")
    yield Case((rng.integers(-90, 0, 2).tolist(),), "2 accounts of who owes money, and nobody else")


def _bank(
    said: str,
    balance: list[int],
    *moves: tuple[int, int, int],
    paid: tuple[int, int] = (0, 0),
    totals: int = 1,
) -> Scenario:
    """Return threads that ask for the total while others move (giver, taker, amount) and pay in."""
    sums, after = {sum(balance), sum(balance) + paid[1]}, [*balance]
    after[paid[0]] += paid[1]
    for giver, taker, amount in moves:
        after[giver] -= amount
        after[taker] += amount

    def right(final: dict[str, Any]) -> bool | str:
        wrong = next((one for one in final["results"][:totals] if one not in sums), None)
        if wrong is not None or None in final["results"]:
            return f"the total is {wrong}; at every moment there was {' or '.join(map(str, sorted(sums)))}"
        return final["balance"] == after or f"the balances end as {final['balance']} instead of {after}"

    others = [f"move_of_others({giver}, {taker}, {amount}, balance)" for giver, taker, amount in moves]
    others += [f"pay_of_others({paid[0]}, {paid[1]}, balance)"] * (paid[1] > 0)
    locks = {account: Lock() for account in range(len(balance))}
    shared = {"balance": [*balance], "locks": locks, "slots": {}}
    return Scenario(said, ("{entry}(balance)",) * totals + (*others,), shared, right, OTHERS)


BANK = [10, 20, 30, 40]
TOTAL_SCENARIOS = (
    _bank("nobody else", BANK),
    _bank("one account, and somebody who pays in", [10], paid=(0, 7)),
    *(
        _bank(f"a transfer from account {giver} to account {taker}", BANK, (giver, taker, 5))
        for giver, taker in permutations(range(len(BANK)), 2)
    ),
    _bank("two transfers in opposite directions", BANK[:2], (0, 1, 5), (1, 0, 3)),
    _bank("a transfer, and somebody who pays in", BANK[:3], (2, 0, 5), paid=(1, 7)),
    _bank("two who ask for the total, and a transfer", BANK[:3], (1, 2, 5), totals=2),
)


def _restless(balance: list[int], one: int, other: int, amount: int, known: str) -> Scenario:
    """Return somebody who pays into two accounts and takes it back, over and over until the total is known.

    So who looks at an account at a time may see `other` paid and `one` not, which never was, at every look.
    """
    sums = [sum(balance) + paid for paid in (0, amount, 3 * amount)]

    def right(final: dict[str, Any]) -> bool | str:
        total = final["results"][0]
        return total in sums or f"the total is {total}; at every moment there was {', '.join(map(str, sums))}"

    said = f"{len(balance)} accounts and somebody who pays into {one}, then into {other}, and takes it back"
    calls = (
        f'known_by_others({{entry}}(balance), "{known}")',
        f'pay_until_others_know({one}, {other}, {amount}, "{known}", balance)',
    )
    locks = {account: Lock() for account in range(len(balance))}
    shared = {"balance": [*balance], "locks": locks, "slots": {known: Semaphore(0)}}
    return Scenario(said, calls, shared, right, OTHERS, restless=True)


def _drawn_banks(rng: random.Random) -> Iterator[Scenario]:
    """Yield more accounts, and who pays into any two of five, or into the first and the last of nine.

    The word that ends it is another for each text, so none can be written that says it itself.
    """
    for one, other in (*permutations(range(5), 2), (0, 8), (8, 0)):
        balance = rng.choices(range(20, 90), k=max(5, one + 1, other + 1))
        balance[one] *= rng.randrange(2)  # nothing is there yet
        yield _restless(balance, one, other, rng.randrange(1, 20), f"total known, {rng.getrandbits(64):x}")
    for low, accounts in ((2, 5), (3, 5), (7, 9), (9, 12)):  # whose order of many is another than of four
        said = f"{accounts} accounts, and a transfer from account {low} to account {low + 1}"
        yield _bank(said, rng.choices(range(20, 90), k=accounts), (low, low + 1, 5))


TOTAL = Task(
    id="05.total",
    title="How much is there?",
    minutes=20,
    cases=_alone_of_total,
    reference=total_of,
    rules=(THREADS, UnderAllSchedules(TOTAL_SCENARIOS, _drawn_banks)),
    hints=(
        "You have read account 0 and come to account 1. Between the two somebody moves money from the one to "
        "the other. Which total do you see?",
        "What belongs together is held together: all locks at once, in the order in which the others take "
        "theirs. Whoever holds one and waits for a lower one may wait for ever.",
        "for account in range(len(balance)): lock_of(account).acquire() – then the sum – then the same loop "
        "with release().",
    ),
)


# --- 05.pool: a semaphore counts the free buffers, a mutex guards the list that says which ------------------

POOL_TOGETHER = AtOnce("uses", "is inside `use`")


def borrow(busy: list[int], uses: list[int]) -> int:
    """Return the buffer that a thread alone gets: the first that is free."""
    return busy.index(0)


def _one_free(rng: np.random.Generator) -> Iterator[Case]:
    for buffers in (1, 2, 2, 3, 5, 8, 40):
        free = int(rng.integers(0, buffers)) if buffers < 9 else buffers - 1  # the last of many
        busy = [int(place != free) for place in range(buffers)]
        uses = [int(n) for n in rng.integers(0, 9, buffers)]
        label = f"{buffers} buffer{'s' * (buffers > 1)}, only number {free} is free"
        yield Case((busy, uses), label, must_not_change=False)


def _borrowed(before: list[int], uses: Sequence[int]):
    def right(final: dict[str, Any]) -> bool | str:
        if final["busy"] != before:
            return f"busy ends as {final['busy']} instead of {before}"
        if any(buffer not in range(len(before)) for buffer in final["results"]):
            return f"borrow returns {final['results']}, which are no numbers of buffers"
        used = [now - then for now, then in zip(final["uses"], uses, strict=True)]
        if used != [final["results"].count(buffer) for buffer in range(len(before))]:
            said = f"borrow returns {final['results']}, but `uses` goes up by {used}"
            return f"{said}: each calls `use` once, for what it returns, and two never for one at a time"
        return True

    return right


def _slot_first(moment: JointState) -> bool | str:
    """Whether of two places as many are taken as threads are about to look at `busy`."""
    looking = [name for _, name in moment.coming if name.startswith("busy[")]
    free = moment.free["slots['free']"]
    if free > 2:
        return f"slots['free'] has {free} places, of two: a thread gives back a place that it did not take"
    return len(looking) + free <= 2 or (
        f"a thread comes to {looking[0]} without a place of slots['free']. Take a place first and give it "
        "back last: whoever finds no free buffer asks again and again instead of sleeping"
    )


def _pool(said: str, threads: int, busy: list[int], uses: Sequence[int] = (0, 0)) -> Scenario:
    return Scenario(
        said,
        ("{entry}(busy, uses)",) * threads,
        {
            "busy": busy,
            "uses": [*uses],
            "locks": {"busy": Lock()},
            "slots": {"free": Semaphore(busy.count(0))},
        },
        _borrowed(busy, uses),
        CHECKED_LOCKS,
    )


POOL_SCENARIOS = (
    _pool("one thread and two buffers", 1, [0, 0]),
    _pool("one thread and one free buffer", 1, [1, 0]),
    _pool("two threads and one free buffer", 2, [0, 1]),
    _pool("three threads and two buffers", 3, [0, 0]),
    replace(
        _pool("two threads that must use their buffers at the same time", 2, [0, 0]),
        at_once=POOL_TOGETHER,
        kept=_slot_first,
    ),
)


def _drawn_pools(rng: random.Random) -> Iterator[Scenario]:
    """Yield two free buffers among more, used before."""
    for threads in (2, 3):
        busy = [0, 0, *[1] * rng.randrange(1, 4)]
        rng.shuffle(busy)
        uses = rng.choices(range(1, 90), k=len(busy))
        pool = _pool(f"{threads} threads, busy = {busy}", threads, busy, uses)
        yield replace(pool, at_once=POOL_TOGETHER, kept=_slot_first)


POOL = Task(
    id="05.pool",
    title="Two buffers for many threads",
    difficulty=4,
    minutes=20,
    cases=_one_free,
    reference=borrow,
    rules=(THREADS, UnderAllSchedules(POOL_SCENARIOS, _drawn_pools)),
    lookalikes={
        "That buffer is busy: look for one whose entry is 0.": (
            lambda got, busy, uses: got in range(len(busy)) and busy[int(got)] == 1
        ),
    },
    hints=(
        "Who lets a third thread wait until a buffer is free? And who keeps two threads from finding the "
        "same free buffer?",
        "The semaphore counts: take a slot first, give it back last. The mutex guards `busy`: hold it while "
        "you look for a 0 and make it 1, and again while you make it 0. Never while you use the buffer, and "
        "never while you wait for a slot.",
        'with slots_of("free"): with lock_of("busy"): find the first 0, make it 1 – then use(buffer, uses) '
        'without the mutex – then with lock_of("busy"): busy[buffer] = 0.',
    ),
)


# --- 05.invalidations: how often a core loses a cache line because another one writes to it -----------------

Event = tuple[int, int, int]  # core, byte address, 1 for a write


def invalidations(
    events: list[Event],
    line_bytes: int,
    *,
    counts: Callable[[set[int]], int] = len,
    own: bool = False,
    keeps: bool = False,
    writes: bool = False,
    misses: bool = False,
) -> int:
    """Return how many copies of lines the cores lose to other cores' writes (MESI, caches without limit).

    Slips are given by keyword: what a write `counts` of those who lose the line, whether the writer's `own`
    copy is one of them, and whether a core that lost a line `keeps` it all the same.
    With `writes` who writes to a line has no copy of it; with `misses` who has it takes it from nobody.
    """
    holders: dict[int, set[int]] = {}
    lost = 0
    for core, address, write in events:
        have = holders.get(address // line_bytes, set())
        write = write and not (misses and core in have)
        lost += counts(have if own else have - {core}) if write else 0
        holders[address // line_bytes] = have | {core} if keeps or not write else set() if writes else {core}
    return lost


def _counting(threads: int, times: int, stride: int) -> list[Event]:
    return [tuple(map(int, event)) for event in coherence.counters(threads, times, stride)]


def _traffic(
    rng: np.random.Generator, cores: int, writes: float, words: int, apart: int, count: int
) -> list[Event]:
    columns = rng.integers(0, cores, count), 8 * apart * rng.integers(0, words, count), rng.random(count)
    return [(int(core), int(at), int(chance < writes)) for core, at, chance in zip(*columns, strict=True)]


def _traces(rng: np.random.Generator) -> Iterator[Case]:
    reads = [(core, 8 * (core > 2), 0) for core in range(5)]  # three of one word: each slip has its number
    yield Case(([*reads, (5, 0, 1)], 64), "five cores read, a sixth writes")
    yield Case(([(0, 0, 1), (0, 0, 1), (1, 64, 1), (1, 64, 1)], 64), "two cores, a line each")
    yield Case(([(0, 0, 0), (1, 8, 0), (0, 0, 0), (1, 8, 0)], 64), "nobody writes")
    yield Case(([], 64), "nothing happens")
    for at, word in ((0, "the same word"), (8, "two words of a line")):
        yield Case(([(0, 0, 0), (1, at, 0), (0, 0, 1)], 64), f"two cores read {word}, one of them writes")
    yield Case(([(0, 0, 1), (1, 0, 1), (0, 0, 1)], 64), "two cores write to the same word in turn")
    for stride in (8, 64):
        yield Case((_counting(2, 3, stride), 64), f"two counters {stride} bytes apart, three increments each")
    yield Case((_counting(3, 4, 64), 128), "three counters 64 bytes apart, lines of 128 bytes")
    yield Case((_traffic(rng, 1, 0.5, 9, 1, 30), 16), "one core alone")
    lines = range(0, 128 * 1100, 128)  # more than real first caches hold, or a table of 1024 lines
    passes = [(core, at, core) for core in (0, 1) for at in lines]
    yield Case((passes, 128), f"one core reads {len(lines)} lines, then another one writes to each")
    high = 1 << 40  # where neither float32 nor a table has a place for each line
    traffic = enumerate(_traffic(rng, 3, 0.4, 20, 1, 60))
    events = [(core, high * (n % 2) + at, write) for n, (core, at, write) in traffic]
    yield Case((events, 16), f"3 cores, addresses from 0 and from {high} on, lines of 16")
    for row in every_pair(
        rng,
        line=(8, 16, 64, 128, 512),
        cores=((2, 0.4), (3, 0.4), (9, 0.1), (64, 0.1), (64, 1.0)),  # and how often they write
        words=((1, 1), (20, 1), (60, 1), (9, 1 << 13)),  # and how many words they are apart
        count=(between(150, 300), 1503),
    ):
        line, (cores, writes), (words, apart), count = row.values()
        label = f"{cores} cores, {count} accesses, lines of {line}"
        yield Case((_traffic(rng, cores, writes, words, apart, count), line), label)
    events = [(core, 56 + at, write) for core, at, write in _traffic(rng, 3, 0.4, 20, 1, 60)]
    yield Case((events, 64), "3 cores, the lowest address is the last word of a line of 64")


INVALIDATIONS = Task(
    id="05.invalidations",
    title="Who loses the line?",
    cases=_traces,
    reference=invalidations,
    rules=(Language(("math", "numpy", "collections", "itertools")),),
    lookalikes={
        "Lines do not all have 64 bytes: use line_bytes.": {"line_bytes": 64},
        "You count addresses that are the same. Caches know only whole lines: two addresses in one line are "
        "one thing to them.": {"line_bytes": 8},
        "You count the writer's own copy, too. It keeps that one: only the other cores lose theirs.": {
            "own": True
        },
        "Who writes to a line has a copy of it afterwards, which the next writer takes away.": {
            "writes": True
        },
        "A read takes nothing away from others: only writes do.": (
            lambda events, line_bytes: invalidations([(*at, 1) for *at, _ in events], line_bytes)
        ),
        "You count the writes that hit others. One write may take the line from several cores: count "
        "those.": {"counts": bool},
        "Who writes takes the line from the others even if it has a copy itself.": {"misses": True},
        "A core that has lost its copy cannot lose it again before it fetches it anew.": {"keeps": True},
    },
    hints=(
        "Which cores have a copy of the line just before a write, and which after it?",
        "Keep for each line (address // line_bytes) the set of cores that have it. A read adds the core. A "
        "write takes it from all others – count them – and leaves only the writer.",
        "others = holders.get(line, set()) - {core}; if write: lost += len(others); others = set(); then "
        "holders[line] = others | {core}.",
    ),
)


# --- 05.balance: tiles of unequal length dealt out so that nobody waits long for the last -------------------

MOST_OVER = 1.10
EASY = 1.05  # every input has an answer that is better than this, found by a simple rule


def deal(costs: list[float], threads: int, policy: str = "longest") -> list[int]:
    """Return the thread of each tile: the longest first, each to the thread that is free first."""
    bars = sorted(plan(costs, threads, policy).bars, key=lambda bar: bar.item)
    return [bar.thread for bar in bars]


def makespan(costs: Sequence[float], threads: int, owner: Sequence[int]) -> float:
    """Return when the last thread ends."""
    busy = [0.0] * threads
    for cost, thread in zip(costs, owner, strict=True):
        busy[int(thread)] += cost
    return max(busy)


@dataclass(frozen=True)
class WithinTenPercent:
    """Accepts any distribution whose last thread ends at most 10 % later than the best one's."""

    def compare(self, got: Any, want: list, args: tuple) -> Mismatch | None:
        """Return None if `got` has a thread for each tile of args (costs, threads) and is balanced."""
        found = exact().compare(got, want, args)
        if found is None or found.form:
            return found
        costs, threads = args
        strange = [thread for thread in got if thread not in range(threads)]
        if strange:
            return Mismatch((f"There is no thread {strange[0]:g}: they are 0 to {threads - 1}.",), form=True)
        best, exactly = best_makespan(costs, threads)
        over = makespan(costs, threads, got) / best - 1 if best else 0.0
        if over <= MOST_OVER - 1:
            return None
        limit = "the best that is possible" if exactly else "what nobody can beat (total / threads)"
        busy = makespan(costs, threads, got)
        late = f"{100 * over:.0f} % after {limit}, {best:.4g}"
        said = f"Your last thread ends at {busy:.4g}, {late}; 10 % are allowed."
        return Mismatch((said,))


def _works(rng: np.random.Generator) -> Iterator[Case]:
    yield Case(([1.0] * 6, 3), "six equal tiles, three threads")
    yield Case(([5.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2), "one tile as long as all others")
    yield Case(([1.0, 1.0, 1.0, 1.0, 1.0, 5.0], 2), "the one that is as long as all others comes last")
    yield Case(([1.0, 1.0, 1.0, 1.0, 4.0], 2), "the longest comes last")
    yield Case(([4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 4.0], 2), "the longest come first and last")
    yield Case(([2.0, 8.0, 2.0, 3.0, 7.0, 4.0], 3), "six tiles, three threads")
    yield Case(([3.0, 2.0], 4), "more threads than tiles")
    yield Case(([], 2), "no tile at all")
    yield Case(([2.0, 1.0, 3.0], 1), "one thread")
    yield Case(([float(row + 1) for row in range(16)], 2), "a triangle: every band of rows is longer")
    yield Case(([0.4, 0.1, 0.7, 0.2, 0.9, 0.3, 0.5, 0.6], 3), "costs below 1")
    scales = (2e-8, 1.0, 5e6)
    few = ((12, 2), (14, 3), (16, 4), (9, 5), (12, 6), (16, 8))  # the best one takes long
    for (tiles, threads), scale in zip(few, rng.permutation([*scales, *scales]), strict=True):
        yield Case((_unequal(rng, tiles, threads, scale), threads), f"{tiles} tiles, {threads} threads")
    for row in every_pair(rng, size=((60, 4), (96, 8), (150, 12)), scale=scales, turn=(1, -1)):
        (tiles, threads), scale, turn = row.values()
        costs = _unequal(rng, tiles, threads, scale)[::turn]
        yield Case((costs, threads), f"{tiles} tiles of very different length, {threads} threads")


def _unequal(rng: np.random.Generator, tiles: int, threads: int, scale: float) -> list[float]:
    """Return costs that a simple rule balances well, while dealing them out as they come does not."""
    while True:
        drawn = rng.lognormal(0.0, 0.7, tiles) * rng.uniform(0.5, 2.0) * scale
        in_rows = tiles >= 20  # of fewer, to begin at the end would be the longest first
        costs = [float(f"{cost:.6g}") for cost in (np.sort(drawn) if in_rows else drawn)]
        if not in_rows and not _is_hard(costs, threads):
            continue
        best, _ = best_makespan(costs, threads)
        blind = min(plan(costs, threads, policy).makespan for policy in ("static", "cyclic"))
        in_order = plan(costs, threads, "dynamic").makespan
        longest = plan(costs, threads, "longest").makespan
        if longest <= EASY * best and min(blind, in_order) > 1.12 * best:
            return costs


def _is_hard(costs: list[float], threads: int) -> bool:
    """Whether to take tiles from the front, from the back, or the longer of both ends is not enough."""
    at_best = max(sum(costs) / threads, max(costs))
    ways = (lambda: costs, lambda: costs[::-1], lambda: list(_from_both_ends(costs)))
    return all(plan(way(), threads, "dynamic").makespan > 1.2 * at_best for way in ways)  # seldom true


def _from_both_ends(costs: list[float]) -> Iterator[float]:
    left = list(costs)
    while left:
        yield left.pop(0 if left[0] >= left[-1] else -1)


def _dealt(policy: str) -> Callable[..., list[int] | None]:
    """Return what makes the distribution of a policy, where that one is not good enough."""

    def make(costs: list[float], threads: int) -> list[int] | None:
        owner = deal(costs, threads, policy)
        return (
            owner if makespan(costs, threads, owner) > MOST_OVER * best_makespan(costs, threads)[0] else None
        )

    return make


BALANCE = Task(
    id="05.balance",
    title="Nobody waits long",
    cases=_works,
    reference=deal,
    comparison=WithinTenPercent(),
    rules=(Language(("math", "heapq", "numpy", "itertools")),),
    lookalikes={
        "Those are contiguous parts of equal number (static): tiles are equal in number, not in length.": (
            _dealt("static")
        ),
        "Each tile goes to the thread that is free first, in the order they come (dynamic). A long tile that "
        "comes late finds everybody nearly done: which should come first?": _dealt("dynamic"),
        "The tiles are dealt out like cards: one in turn to each thread, however long they are.": (
            _dealt("cyclic")
        ),
        "Nearly: your list is in the order in which you dealt the tiles out. Entry i is for tile i.": (
            lambda got, costs, threads: (
                [got[at] for at in np.argsort(np.argsort(np.negative(costs), kind="stable"))]
                == deal(costs, threads)
            )
        ),
        "One thread does everything.": (
            lambda got, costs, threads: threads > 1 and len(costs) > 1 and len(set(got)) == 1
        ),
    },
    hints=(
        "Somebody gives each tile to the thread that is free first. Which tile should not come last?",
        "The longest. Sort the tiles by cost, longest first, and give each to the thread with the least work "
        "so far. Keep the numbers of the tiles, for the result is in their own order.",
        "for tile in sorted(range(len(costs)), key=lambda tile: -costs[tile]): free = busy.index(min(busy)); "
        "owner[tile] = free; busy[free] += costs[tile]",
    ),
)


# --- 05.leak: what a parent does so that its children leave nothing behind ----------------------------------

Entry = tuple[float, str, int]  # second, what is done, number of the child
#: What it means that an entry of the log is missing, or should not be there.
MISSING = {
    "terminate": "still works at the limit. Ask it to end: only who is asked can clean up.",
    "kill": "does not end within the grace. It lives on: an orphan, as soon as you end.",
    "wait": "has ended, and you do not ask how: a zombie.",
    "unlink": "could not remove its shared memory, since it was killed. Who else should?",
    "kill helper": "could not end its helper, since it was killed. The helper lives on: an orphan.",
}
NEEDLESS = {
    "terminate": "need not be asked then: it has ended, or its limit is not over.",
    "kill": "need not be killed then: it has ended, or its grace is not over.",
    "wait": "cannot be waited for then: it still runs, and you stand still with all others, or it was waited "
    "for already, and the number may be another's by now.",
    "unlink": "has no shared memory to be removed: none was made, or it has done so itself.",
    "kill helper": "has no helper that still runs: it had none, or has ended it itself.",
}


def parent(children: list[tuple[float, float, int, int]], limit: int, grace: int) -> list[Entry]:
    """Return what the parent does, in order of time, for children that begin at second 0.

    A child works so many seconds, ends so many after it was asked to, and has shared memory and a helper or
    not; it gives both back unless it is killed.
    """
    found: list[Entry] = []
    for child, (works, heeds, memory, helper) in enumerate(children):
        end, last = works, limit + grace
        if works > limit:
            found.append((limit, "terminate", child))
            end = min(works, limit + heeds)
        found += [(last, "kill", child)] * (end > last)
        found.append((min(end, last), "wait", child))
        found += [(last, "unlink", child)] * (end > last and memory)
        found += [(last, "kill helper", child)] * (end > last and helper)
    return sorted(found, key=lambda entry: entry[0])


@dataclass(frozen=True)
class NothingLeft:
    """Accepts a log with the right entries in order of time; who is killed is waited for before the rest."""

    def compare(self, got: Any, want: list[Entry], args: tuple) -> Mismatch | None:
        """Return None if `got` is such a log, else what its first fault leaves behind."""
        if type(got) is not list or not all(map(_is_entry, got)):
            said = f"Your function returned {describe(got)}, but a list of (second, what, child) is needed"
            words = "is a `return` missing?" if got is None else f"“what” is one of {', '.join(MISSING)}."
            return Mismatch((f"{said}: {words}",), form=True)
        mine = [tuple(entry) for entry in got]
        faults = [(entry, NEEDLESS) for entry in (Counter(mine) - Counter(want))]
        faults += [(entry, MISSING) for entry in (Counter(want) - Counter(mine))]
        if faults:
            (second, what, child), says = min(faults, key=lambda fault: fault[0][0])
            kind = "no" if says is MISSING else "your"
            return Mismatch((f"Second {second:g}, {kind} “{what}”: child {child} {says[what]}",))
        order = {"terminate": 0, "kill": 1, "wait": 2}
        for (at, what, child), (then, later, other) in combinations(mine, 2):
            if at > then or (child == other and order.get(what, 3) > order.get(later, 3)):
                one = "“{}” of child {} at second {:g}".format
                return Mismatch((f"{one(later, other, then)} comes after {one(what, child, at)}.",))
        return None


def _is_entry(entry: Any) -> bool:
    three = type(entry) in (tuple, list) and len(entry) == 3
    return three and is_number(entry[0]) and is_number(entry[2]) and str(entry[1]) in MISSING


def _families(rng: np.random.Generator) -> Iterator[Case]:
    inf = math.inf
    for children, what in (
        ([(3, 1, 0, 0), (inf, 2, 1, 0)], "a child that is done in time, and one that heeds"),
        ([(10, inf, 1, 1), (11, inf, 1, 1)], "done at the very limit, and a second later, deaf"),
        ([(inf, 5, 0, 1), (inf, 6, 1, 0)], "at the end of the grace, and a second later"),
        ([(inf, inf, 1, 1), (inf, inf, 0, 1), (inf, inf, 1, 0)], "deaf children"),
        ([(12, 4, 0, 0), (15, inf, 1, 1), (16, inf, 0, 0)], "work that is done within the grace"),
        ([], "no children"),
    ):
        yield Case((children, 10, 5), f"{what}; limit 10, grace 5")
    few, many = (int(n) for n in rng.integers((3, 61), (12, 400)))
    for limit, grace in ((many, few), (few, many), (few, few), (0, few)):
        end = limit + grace
        works = (int(rng.integers(1, limit)) if limit else 0, limit, limit + 1, end - 1, end, end + 1, inf)
        heeds = (1, grace - 1, grace, grace + 1, inf)
        children = [*product(works, heeds, (0, 1), (0, 1))]  # of every kind
        children = [children[n] for n in rng.permutation(len(children))[: None if limit else 40]]
        yield Case((children, limit, grace), f"{len(children)} children; limit {limit}, grace {grace}")


LEAK = Task(
    id="05.leak",
    title="A parent that leaks nothing",
    minutes=20,
    cases=_families,
    reference=parent,
    comparison=NothingLeft(),
    rules=(Language(("math", "numpy", "itertools")),),
    hints=(
        "Take one child. In how many ways can its life end, and what does each of them leave behind that "
        "only you can remove?",
        "It ends by itself in time; or it is asked, and ends within the grace, because it heeds or because "
        "its work is done; or it must be killed. Wait for everybody, and clean up behind a killed child.",
        "end = works; if that is beyond the limit: ask, and end = min(works, limit + heeds). If that is "
        "beyond limit + grace: kill, wait there, and remove what it has; else only wait, at `end`.",
    ),
)


#: In the order of the chapter.
TASKS = (TEAM, RACE, TOTAL, POOL, INVALIDATIONS, BALANCE, LEAK, yours.SERIAL)
