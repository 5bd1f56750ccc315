"""Who touched an element last: races between threads, found from access sets and not from luck.

Every element of a watched array has a shadow: its last writer, two of those that wrote the same value, two of
its readers and two of its atomic visitors. A later access conflicts with an
earlier one if at least one of them writes, not both are atomic, they are of different threads, and nothing
orders them: a barrier of their block, or, inside a warp, syncwarp. Threads of different blocks are never
ordered. Two visitors are enough to find a race on an element if they are of different warps, and such are
kept in preference: who writes next has met at most one of them. Of one warp, a syncwarp may name just these
two: what other lanes of it came is kept as a bit for each, with the time of the last.
"""

from __future__ import annotations

import numpy as np

from course_lib.measure.jit import compiled

LOAD, STORE, ATOMIC = 0, 1, 2
WARP = 32
WRITER, ALIKE, READERS, ATOMICS, END = 0, 3, 9, 15, 21  # columns of a shadow
CROWD = (
    4  # of visitors' columns, after the two: their warp and its other lanes (bits), and the last one's time
)
SITE_BITS, OWNER = 16, 28  # of a visit: its site, then what atomics do, from here on its thread
MIXED = 1 << (OWNER - 1)  # since the last barrier, some of its warp that it has met did another atomic
#: Of the last writer: since the last barrier, or since its last syncwarp, something else stood there, which
#: those that store the same may meet.
CHANGED, CHANGED_NOW = MIXED, 1 << SITE_BITS
UPDATES = MIXED - (1 << SITE_BITS)
SYNCWARPS = (1 << 32) - 1  # of a time, the bits that grow with syncwarps
#: what `check` reports: conflicts, and of the first one (of two warps, if there is such a pair) lane, other
#: thread, other site; then the same for stores that wrote what was there already
FOUND = 8


def shadow(elements: int, is_loaded: bool, has_atomics: bool) -> np.ndarray:
    """Return an empty shadow for so many elements, no wider than the kernel's accesses need."""
    columns = END if has_atomics else ATOMICS if is_loaded else READERS
    return np.zeros((elements, columns), np.int64)  # the system maps a page when it is first touched


@compiled(_nrt=False)
def _unordered(packed, then, thread, now, met, block_lanes):
    """Whether an earlier visit may collide with a visit of `thread` at `now`.

    A time is (barriers passed << 32) | what grows with each syncwarp; `met[w]` says of lane w of the thread's
    warp what that was when it last met the thread, itself or through others.
    """
    if packed == 0:
        return False
    other = (packed >> OWNER) - 1
    if other == thread:
        return False
    if other // block_lanes != thread // block_lanes:
        return True
    if then >> 32 != now >> 32:
        return False
    return other // WARP != thread // WARP or then & SYNCWARPS >= met[other % WARP]


@compiled(_nrt=False)
def _commute(one, other):
    """Whether two atomic visits give the same in either order: sums do, a maximum and an exchange do not."""
    both = (one | other) & UPDATES
    return both & (both - 1) == 0


@compiled(_nrt=False)
def _not_met(row, column, thread, now, met):
    """Return the crowd of the thread's warp, as bits, that may collide with what it does now."""
    crowd, then = row[column + CROWD], row[column + CROWD + 1]
    left = np.int64(0)
    if crowd >> WARP == thread // WARP + 1 and then >> 32 == now >> 32:
        for lane in range(WARP):
            if crowd >> lane & 1 and lane != thread % WARP and then & SYNCWARPS >= met[lane]:
                left |= 1 << lane
    return left


@compiled(_nrt=False)
def _lowest(crowd, thread, visit):
    """Return the visit of the lowest lane of a crowd; `visit` is of another of its warp at the same place."""
    lane = 0
    while not crowd >> lane & 1:
        lane += 1
    return ((thread // WARP * WARP + lane + 1) << OWNER) | visit & ((1 << OWNER) - 1)


@compiled(_nrt=False)
def _visitor(row, column, thread, now, met, block_lanes):
    """Return an earlier visit kept from `column` on that may collide with what the thread does now, or 0."""
    for at in (column + 2, column):
        if _unordered(row[at], row[at + 1], thread, now, met, block_lanes):
            return row[at]
    unmet = _not_met(row, column, thread, now, met)
    return _lowest(unmet, thread, row[column + 2]) if unmet else np.int64(0)


@compiled(_nrt=False)
def _remember(row, column, packed, thread, now, met, block_lanes):
    """Keep a visit in one of the two places from `column` on, or as one of the crowd of its warp."""
    for at in (column, column + 2):
        if row[at] == 0:
            row[at], row[at + 1] = packed, now
            return
        other = (row[at] >> OWNER) - 1
        same_block = other // block_lanes == thread // block_lanes
        is_older = same_block and not _unordered(row[at], row[at + 1], thread, now, met, block_lanes)
        if other == thread or is_older:
            if row[at + 1] >> 32 == now >> 32:
                packed |= row[at] & MIXED if _commute(row[at], packed) else MIXED
                if other == thread and row[at + 1] == now:
                    packed |= row[at] & UPDATES
            row[at], row[at + 1] = packed, now
            row[column + CROWD] = (thread // WARP + 1) << WARP | _not_met(row, column, thread, now, met)
            return
    one, two = (row[column] >> OWNER) - 1, (row[column + 2] >> OWNER) - 1
    both_in_block = one // block_lanes == two // block_lanes
    both_in_warp = one // WARP == two // WARP
    if (both_in_block and thread // block_lanes != one // block_lanes) or (
        both_in_warp and thread // WARP != one // WARP
    ):
        row[column + 2], row[column + 3] = packed, now
    elif both_in_warp:
        crowd, then = row[column + CROWD], row[column + CROWD + 1]
        if crowd >> WARP != thread // WARP + 1 or then >> 32 != now >> 32:
            crowd = (thread // WARP + 1) << WARP  # it was of another warp, or came before a barrier
        row[column + CROWD] = crowd | 1 << (thread % WARP)
        row[column + CROWD + 1] = max(then, now)


@compiled(_nrt=False)
def check(shadow, kind, lanes, base, shift, values, threads, now, met, block_lanes, site, found):
    """Compare one instruction's accesses with the shadow, lane by lane, and enter them into it.

    `values` are the bits that are stored (one, or one for each lane); `threads` the lanes' numbers in the
    whole grid, `now` their times and `met` (lanes or 1, WARP) whom they have met. `found` (FOUND,) is filled
    as described there.
    """
    found[:] = 0
    columns = shadow.shape[1]
    step, step_met = len(values) > 1, len(met) > 1
    for lane in range(len(lanes)):
        if not lanes[lane]:
            continue
        row, thread, time = shadow[base[lane] + shift], threads[lane], now[lane]
        known = met[lane * step_met]
        packed = ((thread + 1) << OWNER) | site
        if kind == ATOMIC:
            packed |= np.int64(values[0])
        other = np.int64(0)
        is_same = kind == STORE and row[WRITER + 2] == np.int64(values[lane * step])
        if kind != LOAD and not is_same:
            other = _visitor(row, ALIKE, thread, time, known, block_lanes)
        if _unordered(row[WRITER], row[WRITER + 1], thread, time, known, block_lanes):
            own_warp = ((row[WRITER] >> OWNER) - 1) // WARP == thread // WARP
            if is_same and not row[WRITER] & (CHANGED_NOW if own_warp else CHANGED):
                if found[4] == 0:
                    found[5], found[6] = lane, (row[WRITER] >> OWNER) - 1
                    found[7] = row[WRITER] & ((1 << SITE_BITS) - 1)
                found[4] += 1
            else:
                other = row[WRITER]
        if kind != LOAD and columns > READERS:
            other = _visitor(row, READERS, thread, time, known, block_lanes) or other
        if columns > ATOMICS:
            for at in (ATOMICS, ATOMICS + 2):
                commute = kind == ATOMIC and _commute(row[at], packed)
                if row[at] & MIXED:  # did the thread come after what the other had done before?
                    before = (row[at] >> OWNER) - 1
                    is_after = known[before % WARP] >= row[at + 1] & SYNCWARPS
                    commute = commute and before // WARP == thread // WARP and is_after
                if not commute and _unordered(row[at], row[at + 1], thread, time, known, block_lanes):
                    other = row[at]
            unmet = _not_met(row, ATOMICS, thread, time, known)
            if unmet and not other and not (kind == ATOMIC and _commute(row[ATOMICS + 2], packed)):
                other = _lowest(unmet, thread, row[ATOMICS + 2])
        if other:
            before = (other >> OWNER) - 1
            if found[0] == 0 or (
                threads[found[1]] // WARP == found[2] // WARP and thread // WARP != before // WARP
            ):
                found[1], found[2] = lane, before
                found[3] = other & ((1 << SITE_BITS) - 1)
            found[0] += 1
        if kind == STORE:
            if not is_same:
                row[ALIKE:READERS] = 0
            _remember(row, ALIKE, packed, thread, time, known, block_lanes)
            writer = (row[WRITER] >> OWNER) - 1
            if row[WRITER] and writer // block_lanes == thread // block_lanes:
                changed = row[WRITER] & (CHANGED | CHANGED_NOW) if is_same else CHANGED | CHANGED_NOW
                if row[WRITER + 1] >> 32 == time >> 32:
                    packed |= changed & CHANGED
                if row[WRITER + 1] == time and writer // WARP == thread // WARP:
                    packed |= changed & CHANGED_NOW
            row[WRITER], row[WRITER + 1], row[WRITER + 2] = packed, time, np.int64(values[lane * step])
        elif kind == LOAD:
            _remember(row, READERS, packed, thread, time, known, block_lanes)
        else:
            _remember(row, ATOMICS, packed, thread, time, known, block_lanes)


def nobody() -> np.ndarray:
    """Return what lanes know of each other before the first syncwarp: one row stands for all lanes."""
    return np.zeros((1, WARP), np.int32)


@compiled
def meet(lanes, masks, now, met):
    """Let the lanes that name each other in a syncwarp meet: a vector clock for each lane of a warp.

    `masks` are what the lanes give to syncwarp; those that give the same one meet. `now` and `met` (lanes,
    WARP) are changed in place. Source: C. Fidge, "Timestamps in message-passing systems that preserve the
    partial ordering", 1988, with a meeting in place of a message.
    """
    seen = np.empty(WARP, met.dtype)
    for first in range(0, len(lanes), WARP):
        for leader in range(first, first + WARP):
            is_first = lanes[leader]
            for lane in range(first, leader):
                is_first = is_first and not (lanes[lane] and masks[lane] == masks[leader])
            if not is_first:
                continue
            seen[:] = 0
            time = np.int64(0)  # one for all that meet: the time of a crowd is then that of each of it
            for lane in range(leader, first + WARP):
                if lanes[lane] and masks[lane] == masks[leader]:
                    time = max(time, (now[lane] & SYNCWARPS) + 1)
                    for w in range(WARP):
                        seen[w] = max(seen[w], met[lane, w])
            for lane in range(leader, first + WARP):
                if lanes[lane] and masks[lane] == masks[leader]:
                    now[lane] = now[lane] & ~SYNCWARPS | time
                    seen[lane - first] = time
            for lane in range(leader, first + WARP):
                if lanes[lane] and masks[lane] == masks[leader]:
                    for w in range(WARP):  # an array put into an array costs seconds to compile
                        met[lane, w] = seen[w]
