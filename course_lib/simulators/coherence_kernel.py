"""The loop of the coherence simulator, compiled: it must manage millions of accesses a second.

`coherence.access` is the same protocol in plain Python; a test compares the two.
"""

from __future__ import annotations

import numpy as np

from course_lib.measure.jit import compiled

INVALID, SHARED, EXCLUSIVE, MODIFIED = 0, 1, 2, 3
#: Columns of the counts, in the order of `coherence.COUNTS`.
READS, WRITES, HITS, MISSES, BUS_READS, BUS_READ_EXCLUSIVES, UPGRADES = range(7)
INVALIDATIONS, WRITE_BACKS, CACHE_TO_CACHE, COLD, TRUE_SHARING, FALSE_SHARING, OWNERSHIP_MOVES = range(7, 14)


@compiled
def play(core, address, write, numbers, lines, word_shift, words_mask, per_core):
    """Run every access through the protocol and count in `per_core` (cores, counts).

    The accesses are columns; `numbers` has the number of each one's line, of `lines` lines.
    `news` has a bit for each word that another core has written and this core has not been told of since its
    last miss that brought news; `useful` says whether the present stay of a line has touched such a word.
    """
    cores = per_core.shape[0]
    state = np.zeros((lines, cores), np.uint8)
    known = np.zeros((lines, cores), np.uint8)  # the core has had the line before
    news = np.zeros((lines, cores), np.uint64)
    useful = np.zeros((lines, cores), np.uint8)
    is_cold = np.zeros((lines, cores), np.uint8)
    last_writer = np.full(lines, -1, np.int16)
    for i in range(len(core)):
        me, line, writes = core[i], numbers[i], write[i] != 0
        word = np.uint64(1) << np.uint64((address[i] >> word_shift) & words_mask)
        mine = state[line, me]
        per_core[me, WRITES if writes else READS] += 1
        if mine == INVALID:
            fetch(state, per_core, me, line, writes)
            useful[line, me] = 0
            is_cold[line, me] = 1 - known[line, me]
            known[line, me] = 1
        else:
            per_core[me, HITS] += 1
            if writes and mine == SHARED:
                per_core[me, UPGRADES] += 1
        if news[line, me] & word:  # with this touch the line was worth fetching: all its news has come
            useful[line, me] = 1
            news[line, me] = 0
        if not writes:
            continue
        for other in range(cores):
            if other == me:
                continue
            if state[line, other] != INVALID:
                state[line, other] = INVALID
                per_core[other, INVALIDATIONS] += 1
                close(per_core, other, line, is_cold, useful)
            news[line, other] |= word
        state[line, me] = MODIFIED
        if last_writer[line] != me:
            if last_writer[line] >= 0:
                per_core[me, OWNERSHIP_MOVES] += 1
            last_writer[line] = me
    for line in range(lines):
        for me in range(cores):
            if state[line, me] != INVALID:
                close(per_core, me, line, is_cold, useful)


@compiled
def close(per_core, core, line, is_cold, useful):
    """A stay of a line in a cache is over: now it is known what its miss was."""
    kind = COLD if is_cold[line, core] else (TRUE_SHARING if useful[line, core] else FALSE_SHARING)
    per_core[core, kind] += 1


@compiled
def fetch(state, per_core, me, line, writes):
    """A miss: ask on the bus, and take the line from another cache or from memory."""
    per_core[me, MISSES] += 1
    per_core[me, BUS_READ_EXCLUSIVES if writes else BUS_READS] += 1
    has_it = False
    for other in range(state.shape[1]):
        if state[line, other] == INVALID:
            continue
        has_it = True
        if state[line, other] == MODIFIED:
            per_core[other, WRITE_BACKS] += 1
        if not writes:
            state[line, other] = SHARED
    if has_it:
        per_core[me, CACHE_TO_CACHE] += 1
    state[line, me] = SHARED if has_it else EXCLUSIVE
