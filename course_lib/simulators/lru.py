"""One level of cache: a stream of requests in, the requests to the next level out.

The lines of a set are kept in the order of their last use, and the one that is used moves to the front: the
fastest for the ways that caches have. A miss costs as many steps as a set has ways.

All arithmetic on addresses is uint64 with uint64, because Numba turns uint64 with int64 into float64. An
address below an array's start gives a difference that wraps around to something huge, so one comparison tells
whether it lies inside.
An entry is `(line + 1) << 1 | dirty`; 0 is an empty place.
"""

from __future__ import annotations

import numpy as np

from course_lib.measure.jit import compiled

READ, WRITE, WRITE_BACK = 0, 1, 2  # kinds of request
ACCESSES, MISSES, WRITE_BACKS = 0, 1, 2  # places in a level's tally

ZERO, ONE = np.uint64(0), np.uint64(1)


@compiled
def through_sets(
    addresses, kinds, shift, sets, ways, tags, starts, sizes, tally, missed, out_addresses, out_kinds
):
    """Send the requests through the sets; return how many requests go on to the next level.

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


# -- what one level remembers while a program runs --------------------------------------------------------


class Stage:
    """What one level remembers: its lines, its counts, and room for what it asks of the next level."""

    def __init__(self, line_bytes: int, sets: int, ways: int, arrays: int, room: int) -> None:
        self.shift, self.sets, self.ways = np.uint64(line_bytes.bit_length() - 1), sets, ways
        self.tally = np.zeros(3, np.int64)
        self.missed = np.zeros(arrays + 1, np.int64)  # the last for what belongs to no array
        self.tags = np.zeros(sets * ways, np.uint64)  # the entries of each set, the one used last first
        self._addresses = np.empty(room, np.uint64)
        self._kinds = np.empty(room, np.uint8)

    def send(
        self, addresses: np.ndarray, kinds: np.ndarray, starts: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Send requests through the level; return those that go on to the next."""
        geometry = self.shift, np.uint64(self.sets), np.uint64(self.ways)
        out = self._addresses, self._kinds
        sent = through_sets(
            addresses, kinds, *geometry, self.tags, starts, sizes, self.tally, self.missed, *out
        )
        return out[0][:sent], out[1][:sent]

    def contents(self) -> list[list[tuple[int, bool]]]:
        """Return the lines of each set, newest first: (address of the first byte, whether it is dirty)."""
        sets = self.tags.reshape(self.sets, self.ways)
        return [[self._line(entry) for entry in entries if entry] for entries in sets]

    def _line(self, entry: np.uint64) -> tuple[int, bool]:
        return (int(entry >> ONE) - 1) << int(self.shift), bool(entry & ONE)
