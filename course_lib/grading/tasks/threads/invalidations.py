"""Task 05.invalidations: how often a core loses a cache line because another one writes to it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import exact
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.simulators import coherence

Event = tuple[int, int, int]  # core, byte address, 1 for a write

SOLUTION = source("""
    def invalidations(events, line_bytes):
        holders, lost = {}, 0
        for core, address, write in events:
            line = address // line_bytes
            others = holders.get(line, set()) - {core}
            if write:
                lost += len(others)
                others = set()
            holders[line] = others | {core}
        return lost
""")


def invalidations(events: list[Event], line_bytes: int) -> int:
    """Return how many copies of lines the cores lose to other cores' writes (MESI, caches without limit)."""
    holders: dict[int, set[int]] = {}
    lost = 0
    for core, at, write in events:
        others = holders.get(at // line_bytes, set()) - {core}
        lost += len(others) if write else 0
        holders[at // line_bytes] = {core} if write else others | {core}
    return lost


def _counting(threads: int, times: int, stride: int) -> list[Event]:
    return [tuple(map(int, event)) for event in coherence.counters(threads, times, stride)]


def _traffic(rng: np.random.Generator, cores: int, count: int, words: int) -> list[Event]:
    columns = rng.integers(0, cores, count), 8 * rng.integers(0, words, count), rng.random(count) < 0.4
    return [(int(core), int(at), int(write)) for core, at, write in zip(*columns, strict=True)]


def _traces(rng: np.random.Generator) -> Iterator[Case]:
    yield Case(([(0, 0, 0), (1, 0, 0), (2, 8, 0), (3, 0, 1)], 64), "three cores read, a fourth writes")
    yield Case(([(0, 0, 1), (0, 0, 1), (1, 64, 1), (1, 64, 1)], 64), "two cores, a line each")
    yield Case(([(0, 0, 0), (1, 8, 0), (0, 0, 0), (1, 8, 0)], 64), "nobody writes")
    yield Case(([], 64), "nothing happens")
    yield Case(([(0, 0, 0), (1, 8, 0), (0, 0, 1)], 64), "two cores read, one of them writes")
    for stride in (8, 64):
        yield Case((_counting(2, 3, stride), 64), f"two counters {stride} bytes apart, three increments each")
    yield Case((_counting(3, 4, 64), 128), "three counters 64 bytes apart, lines of 128 bytes")
    for cores, count, words, line in ((2, 13, 10, 32), (3, 61, 24, 64), (4, 203, 60, 128), (8, 1503, 40, 16)):
        yield Case(
            (_traffic(rng, cores, count, words), line), f"{cores} cores, {count} accesses, lines of {line}"
        )


def _reads_count_too(events: list[Event], line_bytes: int) -> int:
    return invalidations([(core, at, 1) for core, at, _ in events], line_bytes)


def _writes_that_hit_others(events: list[Event], line_bytes: int) -> int:
    """Count writes that take a line from somebody, not the copies that are lost."""
    holders: dict[int, set[int]] = {}
    hits = 0
    for core, at, write in events:
        others = holders.get(at // line_bytes, set()) - {core}
        hits += bool(write and others)
        holders[at // line_bytes] = {core} if write else others | {core}
    return hits


def _never_lost(events: list[Event], line_bytes: int) -> int:
    """Count as if a core that lost a line still had it."""
    holders: dict[int, set[int]] = {}
    lost = 0
    for core, at, write in events:
        others = holders.get(at // line_bytes, set()) - {core}
        lost += len(others) if write else 0
        holders[at // line_bytes] = others | {core}
    return lost


def _the_writers_too(events: list[Event], line_bytes: int) -> int:
    """Count the writer's copy among those that are lost, if it had one."""
    holders: dict[int, set[int]] = {}
    lost = 0
    for core, at, write in events:
        have = holders.get(at // line_bytes, set())
        lost += len(have) if write else 0
        holders[at // line_bytes] = {core} if write else have | {core}
    return lost


TASK = Task(
    id="05.invalidations",
    title="Who loses the line?",
    kind="predict",
    points=3,
    difficulty=3,
    minutes=15,
    good_for="finding false sharing on paper, before it costs a factor",
    entry="invalidations",
    cases=_traces,
    reference=invalidations,
    comparison=exact(),
    rules=(OnlyImports(),),
    lookalikes=(
        Lookalike(
            "Lines do not all have 64 bytes: use line_bytes.",
            lambda events, line_bytes: invalidations(events, 64) if line_bytes != 64 else None,
        ),
        Lookalike(
            "You count addresses that are the same. Caches know only whole lines: two addresses in one "
            "line are one "
            "thing to them.",
            lambda events, line_bytes: invalidations(events, 8),
        ),
        Lookalike(
            "You count the writer's own copy, too. It keeps that one: only the other cores lose theirs.",
            _the_writers_too,
        ),
        Lookalike("A read takes nothing away from others: only writes do.", _reads_count_too),
        Lookalike(
            "You count the writes that hit others. One write may take the line from several cores: count "
            "those.",
            _writes_that_hit_others,
        ),
        Lookalike(
            "A core that has lost its copy cannot lose it again before it fetches it anew.", _never_lost
        ),
    ),
    hints=(
        "Which cores have a copy of the line just before a write, and which after it?",
        "Keep for each line (address // line_bytes) the set of cores that have it. A read adds the core. A "
        "write "
        "takes it from all others – count them – and leaves only the writer.",
        "others = holders.get(line, set()) - {core}; if write: lost += len(others); others = set(); then "
        "holders[line] = others | {core}.",
    ),
)
