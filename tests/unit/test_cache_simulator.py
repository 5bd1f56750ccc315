"""The cache simulator against an obvious model in Python, and its promises one by one."""

import time
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.looped import looped

from course_lib.measure.hardware import CacheLevel
from course_lib.simulators import traces
from course_lib.simulators.cache import Cache, Level, levels_of, simulate


class Obvious:
    """One level of LRU sets, as one would explain it: the dictionary's order is the order of use."""

    def __init__(self, level, below):
        self.level, self.below = level, below
        self.sets = [OrderedDict() for _ in range(level.sets)]
        self.accesses = self.misses = self.write_backs = 0

    def use(self, address, write):
        line = address // self.level.line_bytes
        lines = self.sets[line % self.level.sets]
        self.accesses += 1
        if line not in lines:
            self.misses += 1
            self.below.use(address, False)
            if len(lines) == self.level.set_ways:
                victim, dirty = lines.popitem(last=False)
                if dirty:
                    self.write_backs += 1
                    self.below.take_back(victim * self.level.line_bytes)
        dirty = lines.pop(line, False)
        lines[line] = dirty or write

    def take_back(self, address):
        line = address // self.level.line_bytes
        lines = self.sets[line % self.level.sets]
        if line in lines:
            lines[line] = True
        else:
            self.write_backs += 1
            self.below.take_back(address)


class Memory:
    def use(self, address, write):
        pass

    def take_back(self, address):
        pass


def obviously(addresses, levels, writes):
    below, stages = Memory(), []
    for level in reversed(levels):
        below = Obvious(level, below)
        stages.insert(0, below)
    for address, write in zip(addresses, writes, strict=True):
        below.use(int(address), bool(write))
    return stages


ways = st.sampled_from([1, 2, 3, 8, 33, None])
lines = st.sampled_from([16, 32, 64, 128])


@st.composite
def hierarchies(draw):
    sizes = sorted(draw(st.lists(lines, min_size=1, max_size=3)))
    levels = []
    for line in sizes:
        associativity, sets = draw(ways), draw(st.integers(1, 7))
        levels.append(Level((associativity or 5) * sets * line, associativity, line))
    return levels


@st.composite
def accesses(draw):
    """A few streams with strides and some noise, cut short: what loops do, and what they do not."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    reach = draw(st.sampled_from([200, 2000, 20000]))
    count = draw(st.integers(0, 400))
    base = draw(st.sampled_from([0, 1 << 40, (1 << 64) - (1 << 20)]))
    walk = np.arange(count) * draw(st.sampled_from([1, 8, 64, 520])) % reach
    noise = generator.integers(0, reach, count)
    offsets = np.where(generator.random(count) < draw(st.floats(0, 1)), walk, noise)
    return np.uint64(base) + offsets.astype(np.uint64), generator.random(count) < 0.4


@settings(max_examples=300, deadline=None)
@given(accesses(), hierarchies(), st.booleans())
def test_counts_and_contents_are_those_of_the_obvious_model(stream, levels, reads_only):
    addresses, writes = stream
    cache = Cache(levels)
    cache.run(addresses, None if reads_only else writes)
    result = cache.result()
    stages = obviously(addresses, levels, 0 * writes if reads_only else writes)
    for name in ("accesses", "misses", "write_backs"):
        assert getattr(result, name) == tuple(getattr(stage, name) for stage in stages)
    for n, stage in enumerate(stages):
        size = stage.level.line_bytes
        wanted = [[(line * size, dirty) for line, dirty in reversed(s.items())] for s in stage.sets]
        assert cache.contents(n) == wanted


@pytest.mark.timing
def test_a_miss_costs_no_more_where_a_set_has_many_ways():
    stream, spent = np.arange(1 << 19, dtype=np.uint64) * np.uint64(64) % np.uint64(2 << 20), {}
    for ways in (16, None) * 3:  # the first ones compile
        started = time.process_time()
        assert simulate(stream, [Level(1 << 20, ways)]).misses == (len(stream),)
        spent[ways] = time.process_time() - started
    assert spent[None] < 10 * spent[16]


def test_table_names_levels_arrays_and_bytes():
    trace = traces.loops("ikj", 64, 64, 64)
    text = str(simulate(trace, [Level(8192, 4), Level(64 * 1024, None, name="shared")]).table())
    assert "L1, 8 KiB, 4 ways, 64-byte lines" in text and "shared, 64 KiB, fully associative" in text
    assert "in A" in text and "misses / FLOP" in text and "From memory" not in text
    assert "Read from behind shared, the last level simulated: 96 KiB; written back to there: " in text
    assert "not translated" in text


# -- levels of a machine -----------------------------------------------------------------------------------


def test_levels_of_a_machine_keep_what_is_known_and_say_what_is_assumed():
    found = [
        CacheLevel(1, 48 << 10, 64, 12, 2),
        CacheLevel(2, 2 << 20, 64, None, 2),
        CacheLevel(3, 100 << 20, 64, 7, None),  # ways that cannot be
    ]
    levels = levels_of(found)
    assert [level.size_bytes for level in levels] == [48 << 10, 2 << 20, 100 << 20]
    assert [level.ways for level in levels] == [12, 8, 8]
    assert [level.is_assumed for level in levels] == [False, True, True]
    text = str(simulate(traces.loops("ikj", 8, 8, 8), levels).table())
    assert "the ways of L2, L3: 8 are assumed" in text


# -- what is refused ---------------------------------------------------------------------------------------


GOOD = [Level(1024, 2)]
HERE = np.arange(4, dtype=np.uint64)


@looped(
    "call, sentence",
    [
        (lambda: Level(1000, 2, 64), "must be a multiple of a set"),
        (lambda: Level(1024, 2, 48), "a cache line is a power of two"),
        (lambda: Level(1024, 0, 64), "ways is 0"),
        (lambda: simulate(HERE, []), "must be a list of Level"),
        (lambda: simulate(HERE, [Level(1024, 2, 128), *GOOD]), "order the levels outwards"),
        (lambda: simulate(HERE.astype(float), GOOD), "float64 with shape"),
        (lambda: simulate([-64], GOOD), "not negative"),
        (lambda: simulate(HERE, GOOD, [True]), "one bool for each of the 4 addresses"),
        (lambda: simulate(HERE, GOOD, arrays={"A": (0, 9), "B": (8, 8)}), "A and B overlap"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_sentence(call, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
