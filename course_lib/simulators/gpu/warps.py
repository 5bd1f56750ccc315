"""What the lanes of a warp tell each other: shuffles and votes.

The lanes that a mask names must come to the same call, or have left the kernel, and a lane must name itself.
CUDA leaves what happens undefined otherwise ("CUDA C++ Programming Guide", warp vote and warp shuffle
functions), so it is a hazard here: a barrier that not every thread reaches.

A lane that does not come, or that the mask leaves out, has no value to give: whoever asks it gets an
undefined value. That is no fault as long as nobody uses it, as the upper half of the eight lanes that do
`v += shfl_down_sync(0xFF, v, 4)`. So it is a remark, and the value is NaN
here, or a number that nobody means: a result made of it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.lanes import WARP
from course_lib.simulators.gpu.machine import LaneMachine
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Value
from course_lib.simulators.gpu.tally import Hazard

EVERY_LANE = 0xFFFFFFFF
#: What an undefined whole number is here: large, odd, and the same in every run.
UNDEFINED = 0x5EADBEEF


def _exchange(machine: LaneMachine, m: Mask, mask: Value, value: Value, source: np.ndarray) -> Value:
    """Return the value of another lane of the warp; a source outside of it gives one's own."""
    _meet(machine, m, mask)
    machine.tally.shuffles(machine.line, m)
    machine.requests += m.by_warp
    own = machine.lane_index
    source = np.where((source < 0) | (source >= WARP), own, source)
    source = np.arange(machine.lanes) - own + source
    value, given = numbers.plain(value), _giving(machine, m, mask)
    silent = m.lanes & ~given[source]
    if not silent.any():
        return value[source] if type(value) is np.ndarray else value
    words = "asks {} for its value, which does not give one here: what it gets is undefined"
    _note(machine, machine.tally.remark, "undefined-value", silent, source, words)
    found = np.array(numbers.vector(value, machine.lanes)[source])
    found[silent] = _undefined(found.dtype)
    return found


def _giving(machine: LaneMachine, m: Mask, mask: Value) -> np.ndarray:
    """Return which lanes have a value to give: they come, and a mask of a lane of their warp names them."""
    if type(mask) is int and mask & EVERY_LANE == EVERY_LANE:
        return m.lanes
    return m.lanes & _named(machine, m, mask)


def _undefined(dtype: np.dtype) -> float | int | bool:
    if dtype.kind in "fc":
        return np.nan
    return UNDEFINED if dtype.itemsize >= 4 else True


def _meet(machine: LaneMachine, m: Mask, mask: Value) -> None:
    """Note lanes that are not named by their own mask, and lanes that are waited for and do not come."""
    own, lanes = machine.lane_index, np.arange(machine.lanes)
    if type(mask) is int and mask & EVERY_LANE == EVERY_LANE and m.count == machine.alive.count:
        return
    bits = _bits(machine, m, mask)
    _hazard(machine, m.lanes & (bits >> own & 1 == 0), lanes, "gives a mask that leaves out {}, itself")
    missing = (_named(machine, m, mask) & machine.alive.lanes & ~m.lanes).reshape(-1, WARP)
    first = np.repeat(missing.argmax(axis=1), WARP) + lanes - own
    waiting = m.lanes & np.repeat(missing.any(axis=1), WARP)
    _hazard(machine, waiting, first, "waits for {}, which its mask names and which does not come here")


def _bits(machine: LaneMachine, m: Mask, mask: Value) -> np.ndarray:
    """Return the mask of each lane that comes, 0 for the others."""
    return np.where(m.lanes, numbers.vector(mask, machine.lanes).astype(np.int64) & EVERY_LANE, 0)


def _named(machine: LaneMachine, m: Mask, mask: Value) -> np.ndarray:
    """Return which lanes are named by the mask of a lane of their warp that comes."""
    of_warp = np.bitwise_or.reduce(_bits(machine, m, mask).reshape(-1, WARP), axis=1)
    return np.repeat(of_warp, WARP) >> machine.lane_index & 1 == 1


def _hazard(machine: LaneMachine, where: np.ndarray, other: np.ndarray, what: str) -> None:
    """Report the first of some lanes that keep others waiting, with the lane that it is about."""
    if where.any():
        _note(machine, machine.tally.hazard, "divergent-barrier", where, other, what)


def _note(
    machine: LaneMachine, tell: Callable, kind: str, where: np.ndarray, other: np.ndarray, what: str
) -> None:
    lane = int(np.argmax(where))
    here, there = machine.thread_of(lane), machine.thread_of(int(other[lane]))
    said = f"thread {here} of a warp {what.format(f'thread {there}')}"
    tell(Hazard(kind, machine.line, machine.block_of(lane), (here, there), said, times=int(where.sum())))


def _lane(machine: LaneMachine, number: Value) -> np.ndarray:
    return numbers.vector(numbers.widened(number), machine.lanes)


def shfl_sync(machine: LaneMachine, m: Mask, mask: Value, value: Value, source: Value) -> Value:
    """Return the value of lane `source`."""
    return _exchange(machine, m, mask, value, _lane(machine, source) % WARP)


def shfl_up_sync(machine: LaneMachine, m: Mask, mask: Value, value: Value, delta: Value) -> Value:
    """Return the value of the lane `delta` below."""
    return _exchange(machine, m, mask, value, machine.lane_index - _lane(machine, delta))


def shfl_down_sync(machine: LaneMachine, m: Mask, mask: Value, value: Value, delta: Value) -> Value:
    """Return the value of the lane `delta` above."""
    return _exchange(machine, m, mask, value, machine.lane_index + _lane(machine, delta))


def shfl_xor_sync(machine: LaneMachine, m: Mask, mask: Value, value: Value, lane_mask: Value) -> Value:
    """Return the value of the lane whose number differs in the bits of `lane_mask`."""
    return _exchange(machine, m, mask, value, machine.lane_index ^ _lane(machine, lane_mask))


def _warps(machine: LaneMachine, m: Mask, predicate: Value) -> np.ndarray:
    true = numbers.vector(numbers.truth(predicate), machine.lanes) & m.lanes
    return true.reshape(-1, WARP)


def _as_int32(bits: np.ndarray) -> np.ndarray:
    """Return 32 bits for each warp as Numba's functions do: a signed integer, for each lane."""
    return np.repeat(bits.astype(np.uint32).view(np.int32).astype(np.int64), WARP)


def ballot_sync(machine: LaneMachine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return a bit for each lane of the warp: whether the predicate holds there."""
    _meet(machine, m, mask)
    return _ballot(machine, m, predicate)


def _ballot(machine: LaneMachine, m: Mask, predicate: Value) -> Value:
    return _as_int32(_warps(machine, m, predicate) @ (1 << np.arange(WARP, dtype=np.int64)))


def activemask(machine: LaneMachine, m: Mask) -> Value:
    """Return a bit for each lane of the warp that executes this."""
    return _ballot(machine, m, True)


def lanemask_lt(machine: LaneMachine, m: Mask) -> Value:
    """Return a bit for each lane below one's own."""
    return (1 << machine.lane_index) - 1


def any_sync(machine: LaneMachine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return whether the predicate holds for a lane of the warp."""
    _meet(machine, m, mask)
    return np.repeat(_warps(machine, m, predicate).any(axis=1), WARP)


def all_sync(machine: LaneMachine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return whether the predicate holds for all lanes of the warp that execute this."""
    _meet(machine, m, mask)
    return np.repeat(~_warps(machine, m, machine.negated(predicate)).any(axis=1), WARP)


def eq_sync(machine: LaneMachine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return whether the predicate is the same for all lanes of the warp that execute this."""
    some, none = any_sync(machine, m, mask, predicate), any_sync(machine, m, mask, machine.negated(predicate))
    return ~(some & none)


def match_any_sync(machine: LaneMachine, m: Mask, mask: Value, value: Value) -> Value:
    """Return a bit for each lane of the warp that has the same value."""
    _meet(machine, m, mask)
    values = numbers.vector(value, machine.lanes).reshape(-1, WARP)
    same = (values[:, :, None] == values[:, None, :]) & m.lanes.reshape(-1, 1, WARP)
    bits = (same << np.arange(WARP, dtype=np.int64)).sum(axis=2)
    return bits.reshape(-1).astype(np.uint32).view(np.int32).astype(np.int64)


WARPS: dict[str, Callable] = {
    "shfl_sync": shfl_sync,
    "shfl_up_sync": shfl_up_sync,
    "shfl_down_sync": shfl_down_sync,
    "shfl_xor_sync": shfl_xor_sync,
    "ballot_sync": ballot_sync,
    "any_sync": any_sync,
    "all_sync": all_sync,
    "eq_sync": eq_sync,
    "match_any_sync": match_any_sync,
    "activemask": activemask,
    "lanemask_lt": lanemask_lt,
}
