"""One level of cache: a stream of requests in, the requests to the next level out.

Two programs for the same rule, least recently used. `short_sets` keeps the lines of a set in the order of
their last use and moves the one that is used to the front: the fastest for up to some tens of ways.
`long_sets` finds a line through a hash table and keeps the order as a linked list: its cost does not grow
with the ways.

All arithmetic on addresses is uint64 with uint64, because Numba turns uint64 with int64 into float64. An
address below an array's start gives a difference that wraps around to something huge, so one comparison tells
whether it lies inside.
An entry is `(line + 1) << 1 | dirty`; 0 is an empty place.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.measure.jit import compiled, inlined

READ, WRITE, WRITE_BACK = 0, 1, 2  # kinds of request
ACCESSES, MISSES, WRITE_BACKS = 0, 1, 2  # places in a level's tally
MOST_SHORT = 32  # ways up to which moving to the front beats the linked list

ZERO, ONE = np.uint64(0), np.uint64(1)
NONE = -1  # no slot
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)


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
def to_front(slot, front, older, newer):
    """Make a slot the newest of its set, whose list begins and ends at `front`."""
    older[newer[slot]], newer[older[slot]] = older[slot], newer[slot]
    older[slot], newer[slot] = older[front], front
    newer[older[front]], older[front] = slot, slot


@compiled
def long_sets(
    addresses,
    kinds,
    shift,
    sets,
    ways,
    tags,
    older,
    newer,
    chain,
    hash_shift,
    starts,
    sizes,
    tally,
    missed,
    out_addresses,
    out_kinds,
):
    """Send the requests through sets of many ways; return how many requests go on to the next level.

    `tags` (sets * ways) holds an entry in each slot. `older` and `newer` (sets * ways + sets) link the slots
    of a set in a ring, with one more place for its front: behind that comes the newest, before it the oldest.
    `chain` leads from a slot to the next one of its bucket; behind the slots, from each bucket to its first.
    """
    slots = len(tags)
    sent = 0
    for n in range(len(addresses)):
        address = addresses[n]
        kind = kinds[n]
        line = address >> shift
        wanted = ((line + ONE) << ONE) | ONE
        front = slots + np.int64(line % sets)
        bucket = slots + np.int64((wanted * GOLDEN) >> hash_shift)
        slot = older[front]
        if tags[slot] | ONE != wanted:
            slot = chain[bucket]
            while slot != NONE and tags[slot] | ONE != wanted:
                slot = chain[slot]
        if kind == WRITE_BACK:
            if slot != NONE:
                tags[slot] = wanted
            else:
                out_addresses[sent] = address
                out_kinds[sent] = WRITE_BACK
                sent += 1
                tally[WRITE_BACKS] += 1
            continue
        tally[ACCESSES] += 1
        if slot != NONE:
            if slot != older[front]:
                to_front(slot, front, older, newer)
            if kind == WRITE:
                tags[slot] = wanted
            continue
        tally[MISSES] += 1
        owner = 0
        while owner < len(starts) and address - starts[owner] >= sizes[owner]:
            owner += 1
        missed[owner] += 1
        out_addresses[sent] = address
        out_kinds[sent] = READ
        sent += 1
        slot = newer[front]
        victim = tags[slot]
        if victim & ONE:
            out_addresses[sent] = ((victim >> ONE) - ONE) << shift
            out_kinds[sent] = WRITE_BACK
            sent += 1
            tally[WRITE_BACKS] += 1
        if victim:  # its bucket forgets the slot
            before = slots + np.int64(((victim | ONE) * GOLDEN) >> hash_shift)
            while chain[before] != slot:
                before = chain[before]
            chain[before] = chain[slot]
        to_front(slot, front, older, newer)
        tags[slot] = wanted if kind == WRITE else wanted ^ ONE
        chain[slot], chain[bucket] = chain[bucket], slot
    return sent


# -- what one level remembers while a program runs --------------------------------------------------------


class Stage:
    """What one level remembers: its lines, its counts, and room for what it asks of the next level."""

    def __init__(self, line_bytes: int, sets: int, ways: int, arrays: int, room: int) -> None:
        self.shift, self.sets, self.ways = np.uint64(line_bytes.bit_length() - 1), sets, ways
        self.tally = np.zeros(3, np.int64)
        self.missed = np.zeros(arrays + 1, np.int64)  # the last for what belongs to no array
        self.tags = np.zeros(sets * ways, np.uint64)
        self._program, self._order = short_sets, ()
        if ways > MOST_SHORT:
            self._program, self._order = long_sets, self._rings()
        self._addresses = np.empty(room, np.uint64)
        self._kinds = np.empty(room, np.uint8)

    def send(
        self, addresses: np.ndarray, kinds: np.ndarray, starts: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Send requests through the level; return those that go on to the next."""
        geometry = self.shift, np.uint64(self.sets), np.uint64(self.ways)
        counts, out = (starts, sizes, self.tally, self.missed), (self._addresses, self._kinds)
        sent = self._program(addresses, kinds, *geometry, self.tags, *self._order, *counts, *out)
        return out[0][:sent], out[1][:sent]

    def contents(self) -> list[list[tuple[int, bool]]]:
        """Return the lines of each set, newest first: (address of the first byte, whether it is dirty)."""
        sets = np.arange(len(self.tags)).reshape(self.sets, self.ways)
        in_order = [self._ring(n) for n in range(self.sets)] if self._order else sets
        return [[self._line(self.tags[slot]) for slot in slots if self.tags[slot]] for slots in in_order]

    def _rings(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.uint64]:
        """Return what `long_sets` wants beside the entries: rings through all slots, and empty buckets."""
        slots, bits = len(self.tags), len(self.tags).bit_length() + 1
        fronts = slots + np.arange(self.sets)[:, None]
        rings = np.hstack([fronts, np.arange(slots).reshape(self.sets, self.ways)])
        older, newer = np.empty((2, rings.size), np.int64)
        older[rings], newer[rings] = np.roll(rings, -1, 1), np.roll(rings, 1, 1)
        return older, newer, np.full(slots + (1 << bits), NONE, np.int64), np.uint64(64 - bits)

    def _ring(self, n: int) -> Iterator[int]:
        older, front = self._order[0], len(self.tags) + n
        slot = older[front]
        while slot != front:
            yield slot
            slot = older[slot]

    def _line(self, entry: np.uint64) -> tuple[int, bool]:
        return (int(entry >> ONE) - 1) << int(self.shift), bool(entry & ONE)
