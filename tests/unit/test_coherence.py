"""MESI: the table and the invariants, false and true sharing, the compiled loop against a plain one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.looped import looped

from course_lib.simulators.coherence import COUNTS, access, counters, simulate

READ, WRITE = False, True

#: MESI with cache-to-cache supply (Papamarcos & Patel 1984; Culler & Singh 1999, chapter 5):
#: (own state, other's state, operation) -> (own, other's, bus, source, written back)
PROTOCOL = {
    ("I", "I", READ): ("E", "I", "BusRd", "memory", False),
    ("I", "E", READ): ("S", "S", "BusRd", "core 1", False),
    ("I", "S", READ): ("S", "S", "BusRd", "core 1", False),
    ("I", "M", READ): ("S", "S", "BusRd", "core 1", True),
    ("I", "I", WRITE): ("M", "I", "BusRdX", "memory", False),
    ("I", "E", WRITE): ("M", "I", "BusRdX", "core 1", False),
    ("I", "S", WRITE): ("M", "I", "BusRdX", "core 1", False),
    ("I", "M", WRITE): ("M", "I", "BusRdX", "core 1", True),
    ("S", "I", READ): ("S", "I", "", "", False),
    ("S", "S", READ): ("S", "S", "", "", False),
    ("S", "I", WRITE): ("M", "I", "BusUpgr", "", False),
    ("S", "S", WRITE): ("M", "I", "BusUpgr", "", False),
    ("E", "I", READ): ("E", "I", "", "", False),
    ("E", "I", WRITE): ("M", "I", "", "", False),
    ("M", "I", READ): ("M", "I", "", "", False),
    ("M", "I", WRITE): ("M", "I", "", "", False),
}

events_of_three = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 255), st.booleans()), max_size=80)


@looped("case", PROTOCOL)
def test_the_table_cell_by_cell(case):
    own, other, write = case
    wanted = PROTOCOL[case]
    assert access(own + other, 0, write) == (wanted[0] + wanted[1], *wanted[2:])
    source = {"core 1": "core 0"}.get(wanted[3], wanted[3])
    assert access(other + own, 1, write) == (wanted[1] + wanted[0], wanted[2], source, wanted[4])


def plainly(events, cores, line_bytes):
    """Count with the plain protocol, values included: memory changes by write-backs only."""
    states, memory, caches, newest = {}, {}, {}, {}
    news, useful, cold, known, writer = {}, {}, {}, set(), {}
    counts = np.zeros((cores, len(COUNTS)), np.int64)

    def add(core, name):
        counts[core, COUNTS.index(name)] += 1

    def close(core, line):
        if cold[core, line]:
            add(core, "cold_misses")
        else:
            add(core, "true_sharing_misses" if useful[core, line] else "false_sharing_misses")

    for number, (core, address, write) in enumerate(events):
        line, word = address // line_bytes, address // 8
        before = states.get(line, "I" * cores)
        after, bus, source, written_back = access(before, core, write)
        add(core, "writes" if write else "reads")
        add(core, "hits" if before[core] != "I" else "misses")
        if written_back:
            owner = before.index("M")
            memory[line] = dict(caches[owner, line])
            add(owner, "write_backs")
        if before[core] == "I":
            supplier = None if source == "memory" else int(source.split()[1])
            caches[core, line] = dict(memory.get(line, {}) if supplier is None else caches[supplier, line])
            if supplier is not None:
                add(core, "cache_to_cache")
            useful[core, line], cold[core, line] = False, (core, line) not in known
            known.add((core, line))
        for name, what in (
            ("BusRd", "bus_reads"),
            ("BusRdX", "bus_read_exclusives"),
            ("BusUpgr", "upgrades"),
        ):
            if bus == name:
                add(core, what)
        if word in news.get((core, line), set()):
            useful[core, line], news[core, line] = True, set()
        assert caches[core, line].get(word, 0) == newest.get(word, 0), "a stale value was read"
        if write:
            caches[core, line][word] = newest[word] = number + 1
            for other in set(range(cores)) - {core}:
                if before[other] != "I":
                    add(other, "invalidations")
                    close(other, line)
                news.setdefault((other, line), set()).add(word)
            if writer.get(line, core) != core:
                add(core, "ownership_moves")
            writer[line] = core
        states[line] = after
    for line, letters in states.items():
        for core in range(cores):
            if letters[core] != "I":
                close(core, line)
    return counts


@given(events_of_three, st.sampled_from([8, 32, 64, 128]))
@settings(max_examples=100, deadline=None)
def test_the_compiled_loop_counts_as_the_plain_protocol_and_no_value_is_stale(events, line_bytes):
    wanted = plainly(events, 3, line_bytes)
    result = simulate(events, 3, line_bytes)
    assert result.per_core.tolist() == wanted.tolist()
    assert result.accesses == len(events) == result.hits + result.misses
    assert result.misses == result.cold_misses + result.true_sharing_misses + result.false_sharing_misses
    assert result.misses == result.bus_reads + result.bus_read_exclusives


@looped(
    "events, wanted",
    [  # the line goes round with every increment; padding leaves the first miss only
        (
            counters(3, 100, 8),
            {"false_sharing_misses": 297, "true_sharing_misses": 0, "ownership_moves": 299},
        ),
        (
            counters(4, 100, 64),
            {"misses": 4, "cold_misses": 4, "invalidations": 0, "bus_reads": 4, "upgrades": 0},
        ),
        (counters(2, 100, 0), {"false_sharing_misses": 0, "true_sharing_misses": 198}),
        (counters(2, 100, 8, locked=True), {"accesses": 200, "bus_read_exclusives": 200, "upgrades": 0}),
    ],
)
def test_counters_of_threads_share_truly_or_falsely(events, wanted):
    result = simulate(events)
    assert {name: getattr(result, name) for name in wanted} == wanted


@looped(
    "arguments, sentence",
    [
        (([(0, 1)],), "core, byte address, is a write"),
        (([(0, -8, True)],), "address -8"),
        (([(3, 8, True)], 2), "core 3, but with 2 cores they are 0 to 1"),
        (([(0, 8, True)], 65), "cores is 65"),
        (([(0, 8, True)], 1, 48), "line_bytes is 48"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        simulate(*arguments)
    assert "\n" not in str(caught.value)
