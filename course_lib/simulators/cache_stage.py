"""What one level of cache remembers while a program runs."""

from __future__ import annotations

import numpy as np

from course_lib.simulators import lru
from course_lib.simulators.cache_level import Level
from course_lib.simulators.lru import count_owners

__all__ = ["Stage", "count_owners", "new_stage"]


def new_stage(level: Level, arrays: int, room: int) -> Stage:
    """Return an empty level that tells `arrays` arrays apart and hands on at most `room` requests at once."""
    return (LongSets if level.set_ways > lru.MOST_SHORT else ShortSets)(level, arrays, room)


class Stage:
    """What one level remembers: its lines, its counts, and room for what it asks of the next level."""

    def __init__(self, level: Level, arrays: int, room: int) -> None:
        self.level = level
        self.shift = np.uint64(level.line_bytes.bit_length() - 1)
        self.tally = np.zeros(3, np.int64)
        self.missed = np.zeros(arrays + 1, np.int64)  # the last for what belongs to no array
        self._addresses = np.empty(room, np.uint64)
        self._kinds = np.empty(room, np.uint8)

    def _ways(self) -> tuple[np.uint64, np.uint64, np.uint64]:
        return self.shift, np.uint64(self.level.sets), np.uint64(self.level.set_ways)

    def _line(self, entry: np.uint64) -> tuple[int, bool]:
        return (int(entry >> lru.ONE) - 1) << int(self.shift), bool(entry & lru.ONE)


class ShortSets(Stage):
    """A level whose sets are kept in the order of use."""

    def __init__(self, level: Level, arrays: int, room: int) -> None:
        super().__init__(level, arrays, room)
        self.tags = np.zeros(level.lines, np.uint64)

    def send(self, addresses, kinds, starts, sizes):
        out = self._addresses, self._kinds
        sent = lru.short_sets(
            addresses, kinds, *self._ways(), self.tags, starts, sizes, self.tally, self.missed, *out
        )
        return out[0][:sent], out[1][:sent]

    def contents(self):
        sets = self.tags.reshape(self.level.sets, self.level.set_ways)
        return [[self._line(entry) for entry in entries if entry] for entries in sets]


class LongSets(Stage):
    """A level with many ways: a hash table and a linked list for each set."""

    def __init__(self, level: Level, arrays: int, room: int) -> None:
        super().__init__(level, arrays, room)
        bits = max(level.lines.bit_length(), 1) + 1
        self.entries = np.zeros(level.lines, np.uint64)
        self.lists = np.full((3, level.lines), lru.NONE, np.int64)
        self.ends = np.full((3, level.sets), lru.NONE, np.int64)
        self.ends[2] = 0
        self.buckets = np.full(1 << bits, lru.NONE, np.int64)
        self.hash_shift = np.uint64(64 - bits)

    def send(self, addresses, kinds, starts, sizes):
        out = self._addresses, self._kinds
        shift, sets, _ = self._ways()
        state = self.entries, self.lists, self.ends, self.buckets, self.hash_shift
        counts = starts, sizes, self.tally, self.missed
        sent = lru.long_sets(addresses, kinds, shift, sets, self.level.set_ways, *state, *counts, *out)
        return out[0][:sent], out[1][:sent]

    def contents(self):
        return [self._in_order(int(slot)) for slot in self.ends[0]]

    def _in_order(self, slot: int) -> list[tuple[int, bool]]:
        found = []
        while slot != lru.NONE:
            found.append(self._line(self.entries[slot]))
            slot = int(self.lists[0, slot])
        return found
