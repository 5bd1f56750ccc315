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


def run(
    columns: list[np.ndarray], cores: int, line_bytes: int, word_bytes: int, counts: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (first byte of each line, counts per core, counts per line) for columns core, address, write."""
    core, address, write = columns
    line_shift, word_shift = line_bytes.bit_length() - 1, word_bytes.bit_length() - 1
    numbers, lines = number_lines(address, line_shift)
    per_core = np.zeros((cores, counts), np.int64)
    per_line = np.zeros((len(lines), counts), np.int64)
    words_mask = line_bytes // word_bytes - 1
    play(core, address, write, numbers, word_shift, words_mask, per_core, per_line)
    order = np.argsort(lines)
    return lines[order] << line_shift, per_core, per_line[order]


@compiled
def number_lines(address, line_shift):
    """Return for each access the number of its line, counted as they first appear, and the lines themselves.

    A hash table with open addressing; it doubles when it is half full.
    """
    size = 1024
    keys = np.full(size, -1, np.int64)
    values = np.zeros(size, np.int32)
    lines = np.zeros(size // 2, np.int64)
    numbers = np.zeros(len(address), np.int32)
    found = 0
    last, last_number = np.int64(-1), np.int32(0)
    for i in range(len(address)):
        line = address[i] >> line_shift
        if line != last:
            if found >= size // 2:
                size *= 2
                keys, values = np.full(size, -1, np.int64), np.zeros(size, np.int32)
                for old in range(found):
                    at = place(keys, lines[old])
                    keys[at], values[at] = lines[old], old
                more = np.zeros(size // 2, np.int64)
                more[:found] = lines[:found]
                lines = more
            at = place(keys, line)
            if keys[at] != line:
                keys[at], values[at] = line, found
                lines[found] = line
                found += 1
            last, last_number = line, values[at]
        numbers[i] = last_number
    return numbers, lines[:found].copy()


@compiled
def place(keys, line):
    """Return the place of a line in the hash table, or the free place where it belongs."""
    mask = len(keys) - 1
    at = (line * 0x9E3779B1 >> 7) & mask  # Knuth's multiplicative hashing: neighbours lie far apart
    while keys[at] != -1 and keys[at] != line:
        at = (at + 1) & mask
    return at


@compiled
def play(core, address, write, numbers, word_shift, words_mask, per_core, per_line):
    """Run every access through the protocol and count.

    `news` has a bit for each word that another core has written and this core has not been told of since its
    last miss that brought news; `useful` says whether the present stay of a line has touched such a word.
    """
    cores, lines = per_core.shape[0], per_line.shape[0]
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
        count(per_core, per_line, me, line, WRITES if writes else READS)
        if mine == INVALID:
            fetch(state, per_core, per_line, me, line, writes)
            useful[line, me] = 0
            is_cold[line, me] = 1 - known[line, me]
            known[line, me] = 1
        else:
            count(per_core, per_line, me, line, HITS)
            if writes and mine == SHARED:
                count(per_core, per_line, me, line, UPGRADES)
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
                count(per_core, per_line, other, line, INVALIDATIONS)
                close(per_core, per_line, other, line, is_cold, useful)
            news[line, other] |= word
        state[line, me] = MODIFIED
        if last_writer[line] != me:
            if last_writer[line] >= 0:
                count(per_core, per_line, me, line, OWNERSHIP_MOVES)
            last_writer[line] = me
    for line in range(lines):
        for me in range(cores):
            if state[line, me] != INVALID:
                close(per_core, per_line, me, line, is_cold, useful)


@compiled
def count(per_core, per_line, core, line, what):
    """Count one event for a core and for a line."""
    per_core[core, what] += 1
    per_line[line, what] += 1


@compiled
def close(per_core, per_line, core, line, is_cold, useful):
    """A stay of a line in a cache is over: now it is known what its miss was."""
    kind = COLD if is_cold[line, core] else (TRUE_SHARING if useful[line, core] else FALSE_SHARING)
    count(per_core, per_line, core, line, kind)


@compiled
def fetch(state, per_core, per_line, me, line, writes):
    """A miss: ask on the bus, and take the line from another cache or from memory."""
    count(per_core, per_line, me, line, MISSES)
    count(per_core, per_line, me, line, BUS_READ_EXCLUSIVES if writes else BUS_READS)
    has_it = False
    for other in range(state.shape[1]):
        if state[line, other] == INVALID:
            continue
        has_it = True
        if state[line, other] == MODIFIED:
            count(per_core, per_line, other, line, WRITE_BACKS)
        if not writes:
            state[line, other] = SHARED
    if has_it:
        count(per_core, per_line, me, line, CACHE_TO_CACHE)
    state[line, me] = SHARED if has_it else EXCLUSIVE
