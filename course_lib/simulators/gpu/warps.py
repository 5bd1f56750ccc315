"""What the lanes of a warp tell each other: shuffles and votes.

The lanes that a mask names must come to the same call, or have left the kernel, and a lane must name itself.
CUDA leaves what happens undefined otherwise ("CUDA C++ Programming Guide", warp vote and warp shuffle
functions), so it is a hazard here: a barrier that not every thread reaches.

A lane that does not come, or that the mask leaves out, has no value to give: whoever asks it gets an
undefined value. That is no fault as long as nobody uses it, as the upper half of the eight lanes that do
`v += shfl_down_sync(0xFF, v, 4)`. So it is a remark, and the value is one that nobody means and that cannot
be told from the others: a result made of it is wrong.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.counting import WARP
from course_lib.simulators.gpu.lanes import first_of
from course_lib.simulators.gpu.machine import LaneMachine
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Value

EVERY_LANE = 0xFFFFFFFF


def _exchange(machine: LaneMachine, m: Mask, mask: Value, value: Value, source: np.ndarray) -> Value:
    """Return the value of another lane of the warp; a source outside of it gives one's own."""
    _meet(machine, m, mask)
    count_exchange(machine, m, numbers.vector(value, machine.lanes).itemsize)
    own = machine.lane_index
    source = np.where((source < 0) | (source >= WARP), own, source)
    source = np.arange(machine.lanes) - own + source
    value = numbers.plain(value)
    asked = _bits(machine, m, mask) >> machine.lane_index[source] & 1 == 1
    silent = m.lanes & ~(m.lanes[source] & asked)
    if not silent.any():
        return value[source] if type(value) is np.ndarray else value
    words = "asks {} for its value, which does not give one here: what it gets is undefined"
    _note(machine, silent, source, words, "undefined-value")
    found = np.array(numbers.vector(value, machine.lanes)[source])
    found[silent] = _undefined(found)[silent]
    return found


def count_exchange(machine: LaneMachine, m: Mask, item_bytes: int = 4) -> None:
    """Count what lanes tell each other by 4 bytes, be it one bit: 32 votes say what 32 shuffles say."""
    words = -(-item_bytes // 4)  # a GPU shuffles no more at once, so Numba makes two of 8 bytes
    machine.tally.shuffle_lines[machine.line] += m.warps * words
    machine.requests += m.by_warp * words


def _undefined(found: np.ndarray) -> np.ndarray:
    """Return for each lane what is found, what another lane finds, or what lies just outside of all that."""
    chance = np.random.default_rng(zlib.crc32(found.tobytes()))
    sizes = np.abs(found[np.isfinite(found)]).astype(np.float64)
    largest = np.max(sizes, initial=0.5) + (found.dtype.kind in "iu")
    outside = (chance.choice([-1.003, 1.001], found.shape) * largest).astype(found.dtype)
    return np.choose(chance.integers(3, size=found.shape), [found, chance.permutation(found), outside])


def _meet(machine: LaneMachine, m: Mask, mask: Value) -> None:
    """Note lanes that are not named by their own mask, and lanes that are waited for and do not come."""
    own, lanes = machine.lane_index, np.arange(machine.lanes)
    if type(mask) is int and mask & EVERY_LANE == EVERY_LANE and m.count == machine.alive.count:
        return
    bits = _bits(machine, m, mask)
    left_out = m.lanes & (bits >> own & 1 == 0)
    if left_out.any():
        _note(machine, left_out, lanes, "gives a mask that leaves out {}, itself")
    bits = bits.reshape(-1, WARP)
    alive = machine.alive.lanes.reshape(-1, 1, WARP)
    missing = _named(machine, m, mask) & alive & (bits[:, :, None] != bits[:, None, :])
    if missing.any():
        missing = missing.reshape(-1, WARP)
        words = "waits for {}, which its mask names and which does not come here with the same mask"
        _note(machine, missing.any(axis=1), missing.argmax(axis=1) + lanes - own, words)


def _bits(machine: LaneMachine, m: Mask, mask: Value) -> np.ndarray:
    """Return the mask of each lane that comes, 0 for the others."""
    return np.where(m.lanes, numbers.vector(mask, machine.lanes).astype(np.int64) & EVERY_LANE, 0)


def _named(machine: LaneMachine, m: Mask, mask: Value) -> np.ndarray:
    """Return (warps, lanes, lanes): whom the mask of each lane that comes names."""
    return _bits(machine, m, mask).reshape(-1, WARP, 1) >> np.arange(WARP) & 1 == 1


def _note(
    machine: LaneMachine, where: np.ndarray, other: np.ndarray, what: str, kind: str = "divergent-barrier"
) -> None:
    """Report the first of some lanes, with the lane that it is about."""
    found = first_of(where)
    there = machine.thread_of(int(other[found[0]]))
    said = f"thread {machine.thread_of(found[0])} of a warp {what.format(f'thread {there}')}"
    is_remark = kind == "undefined-value"
    machine.report(kind, machine.line, found, said, remark=is_remark, others=(there,))


def _shuffle(source_of: Callable) -> Callable:
    """Return a shuffle from the lane that `source_of` makes of one's own lane and what is given."""

    def shuffle(machine: LaneMachine, m: Mask, mask: Value, value: Value, given: Value) -> Value:
        given = numbers.vector(numbers.widened(given), machine.lanes)
        return _exchange(machine, m, mask, value, source_of(machine.lane_index, given))

    return shuffle


def _vote(decide: Callable) -> Callable:
    """Return a vote: what `decide` makes of (predicates, who has come), a row for whom a lane names."""

    def vote(machine: LaneMachine, m: Mask, mask: Value, predicate: Value) -> Value:
        _meet(machine, m, mask)
        count_exchange(machine, m)
        true = numbers.vector(numbers.truth(predicate), machine.lanes).reshape(-1, 1, WARP)
        came = _named(machine, m, mask) & m.lanes.reshape(-1, 1, WARP)
        return decide(true, came).reshape(-1)

    return vote


def _ballot(true: np.ndarray, came: np.ndarray) -> np.ndarray:
    return _as_int32((true & came) @ (1 << np.arange(WARP, dtype=np.int64)))


def _as_int32(bits: np.ndarray) -> np.ndarray:
    """Return 32 bits as Numba's functions do: as a signed integer."""
    return bits.astype(np.uint32).view(np.int32).astype(np.int64)


def activemask(machine: LaneMachine, m: Mask) -> Value:
    """Return a bit for each lane of the warp that executes this."""
    count_exchange(machine, m)
    came = m.lanes.reshape(-1, WARP)
    return np.repeat(_ballot(came, came), WARP)


def match_any_sync(machine: LaneMachine, m: Mask, mask: Value, value: Value) -> Value:
    """Return a bit for each lane of the warp that has the same value."""
    _meet(machine, m, mask)
    count_exchange(machine, m)
    values = numbers.vector(value, machine.lanes).reshape(-1, WARP)
    same = (values[:, :, None] == values[:, None, :]) & _named(machine, m, mask)
    same &= m.lanes.reshape(-1, 1, WARP)
    bits = (same << np.arange(WARP, dtype=np.int64)).sum(axis=2)
    return _as_int32(bits.reshape(-1))


def syncwarp(machine: LaneMachine, m: Mask, mask: Value = EVERY_LANE) -> None:
    """Order the accesses of those lanes of a warp that come here with the same mask, which names them."""
    _meet(machine, m, mask)
    machine.syncwarp(m, mask)


WARPS: dict[str, Callable] = {
    "shfl_sync": _shuffle(lambda own, source: source % WARP),
    "shfl_up_sync": _shuffle(lambda own, delta: own - delta),
    "shfl_down_sync": _shuffle(lambda own, delta: own + delta),
    "shfl_xor_sync": _shuffle(lambda own, bits: own ^ bits),
    "ballot_sync": _vote(_ballot),
    "any_sync": _vote(lambda true, came: (true & came).any(axis=-1)),
    "all_sync": _vote(lambda true, came: (true | ~came).all(axis=-1)),
    "eq_sync": _vote(lambda true, came: (true | ~came).all(axis=-1) | ~(true & came).any(axis=-1)),
    "match_any_sync": match_any_sync,
    "activemask": activemask,
    "syncwarp": syncwarp,
    "lanemask_lt": lambda machine, m: (1 << machine.lane_index) - 1,
}
