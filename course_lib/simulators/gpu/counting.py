"""What a memory instruction of a warp costs: 32-byte sectors, or passes through the banks of shared memory.

Every function here goes once over the lanes, warp by warp, and is compiled. A lane's place is an element
number: `base[lane] + shift`, where `shift` is the part of the address that all lanes have in common.
"""

from __future__ import annotations

import numpy as np

from course_lib.measure.jit import compiled

WARP = 32
SECTOR_BYTES = 32
BANKS, BANK_BYTES = 32, 4
_SLOTS = 128  # of a small hash table: a warp has at most 32 keys


def scratch() -> np.ndarray:
    """Return the memory that the counting functions need: keys, stamps, tallies, and the last stamp given."""
    return np.zeros((4, _SLOTS), np.int64)


@compiled(_nrt=False)
def split(lanes, condition, yes, no):
    """Part the active lanes by a condition; return (lanes, warps) of the yes side, then of the no side."""
    counts = (0, 0, 0, 0)
    for first in range(0, len(lanes), WARP):
        y = n = 0
        for lane in range(first, first + WARP):
            a = lanes[lane] and condition[lane]
            b = lanes[lane] and not condition[lane]
            yes[lane] = a
            no[lane] = b
            y += a
            n += b
        counts = (counts[0] + y, counts[1] + (y > 0), counts[2] + n, counts[3] + (n > 0))
    return counts


@compiled(_nrt=False)
def count(lanes):
    """Return how many lanes are active, and in how many warps."""
    total = warps = 0
    for first in range(0, len(lanes), WARP):
        active = 0
        for lane in range(first, first + WARP):
            active += lanes[lane]
        total += active
        warps += active > 0
    return total, warps


@compiled(_nrt=False)
def place(lanes, i, j, k, strides, block_lanes, block_size, base, low, high):
    """Set base[lane] to the element that a lane's indices name; idle lanes get that of an active one.

    So base[lane] plus a shift is inside of the array for every lane if it is for the active ones. `i`, `j`,
    `k` hold an index for each lane, or a single one for all. `low` and `high` become the smallest and the
    largest index of each dimension among active lanes.
    """
    step_i, step_j, step_k = len(i) > 1, len(j) > 1, len(k) > 1
    low[:] = np.iinfo(np.int64).max
    high[:] = np.iinfo(np.int64).min
    inside = np.int64(0)
    for first in range(0, len(lanes), block_lanes):
        start = first // block_lanes * block_size
        for lane in range(first, first + block_lanes):
            if not lanes[lane]:
                base[lane] = inside
                continue
            a, b, c = i[lane * step_i], j[lane * step_j], k[lane * step_k]
            low[0], high[0] = min(low[0], a), max(high[0], a)
            low[1], high[1] = min(low[1], b), max(high[1], b)
            low[2], high[2] = min(low[2], c), max(high[2], c)
            base[lane] = inside = start + a * strides[0] + b * strides[1] + c * strides[2]
    for lane in range(len(lanes)):  # those before the first active one
        if lanes[lane]:
            break
        base[lane] = inside


@compiled(_nrt=False)
def sectors(lanes, base, shift, item_bytes, scratch):
    """Return (requests, sectors): warps with an active lane, and the distinct sectors that each touches."""
    requests = total = 0
    keys, stamps, stamp = scratch[0], scratch[1], scratch[3, 0]
    for first in range(0, len(lanes), WARP):
        low, high, active = np.int64(1) << 62, np.int64(-1), 0
        for lane in range(first, first + WARP):
            if lanes[lane]:
                sector = (base[lane] + shift) * item_bytes // SECTOR_BYTES
                low, high = min(low, sector), max(high, sector)
                active += 1
        if not active:
            continue
        requests += 1
        if high - low < 64:
            seen = np.uint64(0)
            for lane in range(first, first + WARP):
                if lanes[lane]:
                    sector = (base[lane] + shift) * item_bytes // SECTOR_BYTES
                    seen |= np.uint64(1) << np.uint64(sector - low)
            while seen:
                seen &= seen - np.uint64(1)
                total += 1
            continue
        stamp += 1
        for lane in range(first, first + WARP):
            if lanes[lane]:
                sector = (base[lane] + shift) * item_bytes // SECTOR_BYTES
                slot = sector % _SLOTS
                while stamps[slot] == stamp and keys[slot] != sector:
                    slot = (slot + 1) % _SLOTS
                total += stamps[slot] != stamp
                keys[slot], stamps[slot] = sector, stamp
    scratch[3, 0] = stamp
    return requests, total


@compiled(_nrt=False)
def wavefronts(lanes, base, shift, item_bytes, scratch):
    """Return (requests, wavefronts) of shared memory.

    A wavefront serves one 4-byte word of each of the 32 banks; lanes that want the same word share it. Items
    of 8 bytes go by half-warps, of 16 by quarters, as the CUDA guide describes for 64- and 128-bit accesses.
    """
    requests = total = 0
    group = WARP * BANK_BYTES // max(BANK_BYTES, item_bytes)
    words = max(1, item_bytes // BANK_BYTES)
    banks = BANKS // words  # of items of this size
    keys, stamps, loads, stamp = scratch[0], scratch[1], scratch[2], scratch[3, 0]
    for first in range(0, len(lanes), WARP):
        any_active = False
        for start in range(first, first + WARP, group):
            low, high, active = np.int64(1) << 62, np.int64(-1), 0
            for lane in range(start, start + group):
                if lanes[lane]:
                    item = (base[lane] + shift) * item_bytes // (BANK_BYTES * words)
                    low, high = min(low, item), max(high, item)
                    active += 1
            if not active:
                continue
            any_active = True
            if high - low < banks:  # no two of them in one bank
                total += 1
                continue
            stamp += 1
            loads[:banks] = 0
            most = 0
            for lane in range(start, start + group):
                if lanes[lane]:
                    item = (base[lane] + shift) * item_bytes // (BANK_BYTES * words)
                    slot = item % _SLOTS
                    while stamps[slot] == stamp and keys[slot] != item:
                        slot = (slot + 1) % _SLOTS
                    if stamps[slot] != stamp:
                        keys[slot], stamps[slot] = item, stamp
                        loads[item % banks] += 1
                        most = max(most, loads[item % banks])
            total += most
        requests += any_active
    scratch[3, 0] = stamp
    return requests, total


def meeting(lanes, words):
    """Return (bank, its lanes) for the first warp that has two words in one bank: one lane for each word."""
    for first in range(0, len(lanes), WARP):
        banks = {}
        for lane in np.flatnonzero(lanes[first : first + WARP]).tolist():
            word = int(words[first + lane])
            banks.setdefault(word % BANKS, {}).setdefault(word, lane)
        bank, found = max(banks.items(), key=lambda one: len(one[1]), default=(0, {}))
        if len(found) > 1:
            break
    return bank, tuple(found.values())


@compiled(_nrt=False)
def contention(lanes, base, shift, scratch):
    """Return (requests, rounds): a warp's atomics on one address take turns; the busiest address counts."""
    requests = rounds = 0
    keys, stamps, hits, stamp = scratch[0], scratch[1], scratch[2], scratch[3, 0]
    for first in range(0, len(lanes), WARP):
        most = 0
        stamp += 1
        for lane in range(first, first + WARP):
            if lanes[lane]:
                item = base[lane] + shift
                slot = item % _SLOTS
                while stamps[slot] == stamp and keys[slot] != item:
                    slot = (slot + 1) % _SLOTS
                if stamps[slot] != stamp:
                    keys[slot], stamps[slot], hits[slot] = item, stamp, 0
                hits[slot] += 1
                most = max(most, hits[slot])
        requests += most > 0
        rounds += most
    scratch[3, 0] = stamp
    return requests, rounds


@compiled(_nrt=False)
def gather(flat, base, shift, out):
    """Set out[lane] to flat[base[lane] + shift]."""
    for lane in range(len(base)):
        out[lane] = flat[base[lane] + shift]


@compiled(_nrt=False)
def scatter(flat, lanes, base, shift, values):
    """Set flat[base[lane] + shift] to values[lane] (or the only value) for active lanes, in order."""
    step = len(values) > 1
    for lane in range(len(base)):
        if lanes[lane]:
            flat[base[lane] + shift] = values[lane * step]


@compiled(_nrt=False)
def mark(written, lanes, base, shift):
    """Mark what active lanes write; return how many elements had not been written before."""
    new = 0
    for lane in range(len(base)):
        if lanes[lane]:
            new += not written[base[lane] + shift]
            written[base[lane] + shift] = True
    return new


@compiled(_nrt=False)
def first_unwritten(written, lanes, base, shift):
    """Return the first active lane that reads what nobody has written, and how many do (-1, 0: none)."""
    lane_found, found = -1, 0
    for lane in range(len(base)):
        if lanes[lane] and not written[base[lane] + shift]:
            found += 1
            if lane_found < 0:
                lane_found = lane
    return lane_found, found
