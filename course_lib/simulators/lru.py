"""One level of cache: a stream of requests in, the requests to the next level out.

Two programs for the same rule, least recently used. `short_sets` keeps the lines of a set in the order of
their last use and moves the one that is used to the front: the fastest for up to some tens of ways.
`long_sets` finds a line through a hash table and keeps the order as a linked list: its cost does not grow
with the ways.

All arithmetic on addresses is uint64 with uint64, because Numba turns uint64 with int64 into float64. An
address below an array's start gives a difference that wraps around to something huge, so one comparison tells
whether it lies inside. A helper with arrays
for arguments is inlined: a call would count references to each of them, atomically.
An entry is `(line + 1) << 1 | dirty`; 0 is an empty place.
"""

from __future__ import annotations

import numpy as np

from course_lib.measure.jit import compiled, inlined

READ, WRITE, WRITE_BACK = 0, 1, 2  # kinds of request
ACCESSES, MISSES, WRITE_BACKS = 0, 1, 2  # places in a level's tally
MOST_SHORT = 32  # ways up to which moving to the front beats the linked list

ZERO, ONE = np.uint64(0), np.uint64(1)
NONE = -1  # no slot
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)


@compiled
def count_owners(addresses, starts, sizes, counts):
    """Add to counts[n] how many of the addresses lie in array n; the compiler makes vectors of this."""
    for n in range(len(starts)):
        start, size, found = starts[n], sizes[n], 0
        for place in range(len(addresses)):
            found += addresses[place] - start < size
        counts[n] += found


@compiled
def short_sets(
    addresses, kinds, shift, sets, ways, tags, starts, sizes, tally, missed, out_addresses, out_kinds
):
    """Send the requests through sets of a few ways; return how many requests go on to the next level.

    `tags` (sets * ways) holds each set's entries, the one used last first. `missed` counts misses by array.
    """
    mask = sets - ONE
    is_power_of_two = sets & mask == ZERO
    sent, accesses, misses, written = 0, 0, 0, 0
    for n in range(len(addresses)):
        address = addresses[n]
        kind = kinds[n]
        line = address >> shift
        wanted = ((line + ONE) << ONE) | ONE
        first = (line & mask if is_power_of_two else line % sets) * ways
        front = tags[first]
        if kind == WRITE_BACK:  # no access: the line is marked where it stands, or goes on
            at = first
            while at < first + ways and tags[at] | ONE != wanted:
                at += ONE
            if at < first + ways:
                tags[at] = wanted
            else:
                out_addresses[sent] = address
                out_kinds[sent] = WRITE_BACK
                sent += 1
                written += 1
            continue
        accesses += 1
        if front | ONE == wanted:  # used last in its set: the order stays
            if kind == WRITE:
                tags[first] = wanted
            continue
        at = first + ONE
        end = first + ways
        carried = front
        while at < end:  # every entry moves back one place, up to where the wanted one was
            here = tags[at]
            tags[at] = carried
            carried = here
            if here | ONE == wanted:
                break
            at += ONE
        if at < end:
            tags[first] = wanted if kind == WRITE else carried
            continue
        tags[first] = wanted if kind == WRITE else wanted ^ ONE
        misses += 1
        owner = 0
        while owner < len(starts) and address - starts[owner] >= sizes[owner]:
            owner += 1
        missed[owner] += 1
        out_addresses[sent] = address
        out_kinds[sent] = READ
        sent += 1
        if carried & ONE:
            out_addresses[sent] = ((carried >> ONE) - ONE) << shift
            out_kinds[sent] = WRITE_BACK
            sent += 1
            written += 1
    tally[ACCESSES] += accesses
    tally[MISSES] += misses
    tally[WRITE_BACKS] += written
    return sent


@inlined
def find(wanted, buckets, chain, entries, hash_shift):
    """Return the slot that holds the wanted line, NONE if there is none."""
    slot = buckets[(wanted * GOLDEN) >> hash_shift]
    while slot != NONE and entries[slot] | ONE != wanted:
        slot = chain[slot]
    return slot


@inlined
def forget(entry, slot, buckets, chain, hash_shift):
    """Take a slot out of the hash table, in which its line stands as `entry`."""
    bucket = ((entry | ONE) * GOLDEN) >> hash_shift
    if buckets[bucket] == slot:
        buckets[bucket] = chain[slot]
        return
    before = buckets[bucket]
    while chain[before] != slot:
        before = chain[before]
    chain[before] = chain[slot]


@inlined
def to_front(slot, place, older, newer, newest, oldest):
    """Make a slot that stands somewhere in its set's list, not in front, the newest."""
    before, behind = newer[slot], older[slot]
    older[before] = behind
    if behind == NONE:
        oldest[place] = before
    else:
        newer[behind] = before
    put_in_front(slot, place, older, newer, newest, oldest)


@inlined
def put_in_front(slot, place, older, newer, newest, oldest):
    """Link a slot that is in no list as the newest of its set."""
    front = newest[place]
    older[slot], newer[slot] = front, NONE
    if front == NONE:
        oldest[place] = slot
    else:
        newer[front] = slot
    newest[place] = slot


@compiled
def long_sets(
    addresses,
    kinds,
    shift,
    sets,
    ways,
    entries,
    lists,
    ends,
    buckets,
    hash_shift,
    starts,
    sizes,
    tally,
    missed,
    out_addresses,
    out_kinds,
):
    """Send the requests through sets of many ways; return how many requests go on to the next level.

    `lists` (3, sets * ways): the next older slot, the next newer one, the next of the same bucket.
    `ends` (3, sets): the newest slot, the oldest one, the slots in use.
    """
    older, newer, chain = lists[0], lists[1], lists[2]
    newest, oldest, used = ends[0], ends[1], ends[2]
    sent = 0
    for n in range(len(addresses)):
        address = addresses[n]
        kind = kinds[n]
        line = address >> shift
        wanted = ((line + ONE) << ONE) | ONE
        place = np.int64(line % sets)
        slot = newest[place]
        if slot == NONE or entries[slot] | ONE != wanted:
            slot = find(wanted, buckets, chain, entries, hash_shift)
        if kind == WRITE_BACK:
            if slot != NONE:
                entries[slot] = wanted
            else:
                out_addresses[sent] = address
                out_kinds[sent] = WRITE_BACK
                sent += 1
                tally[WRITE_BACKS] += 1
            continue
        tally[ACCESSES] += 1
        if slot != NONE:
            if slot != newest[place]:
                to_front(slot, place, older, newer, newest, oldest)
            if kind == WRITE:
                entries[slot] = wanted
            continue
        tally[MISSES] += 1
        owner = 0
        while owner < len(starts) and address - starts[owner] >= sizes[owner]:
            owner += 1
        missed[owner] += 1
        out_addresses[sent] = address
        out_kinds[sent] = READ
        sent += 1
        if used[place] < ways:
            slot = place * ways + used[place]
            used[place] += 1
            put_in_front(slot, place, older, newer, newest, oldest)
        else:
            slot = oldest[place]
            victim = entries[slot]
            if victim & ONE:
                out_addresses[sent] = ((victim >> ONE) - ONE) << shift
                out_kinds[sent] = WRITE_BACK
                sent += 1
                tally[WRITE_BACKS] += 1
            forget(victim, slot, buckets, chain, hash_shift)
            if slot != newest[place]:
                to_front(slot, place, older, newer, newest, oldest)
        entries[slot] = wanted if kind == WRITE else wanted ^ ONE
        bucket = (wanted * GOLDEN) >> hash_shift
        chain[slot] = buckets[bucket]
        buckets[bucket] = slot
    return sent
