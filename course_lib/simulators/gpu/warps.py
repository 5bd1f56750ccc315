"""What the lanes of a warp tell each other: shuffles and votes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.lanes import WARP
from course_lib.simulators.gpu.machine import Machine
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Value


def _exchange(machine: Machine, value: Value, source: np.ndarray) -> Value:
    """Return the value of another lane of the warp; a source outside of it gives one's own."""
    value = numbers.plain(value)
    if type(value) is not np.ndarray:
        return value
    own = machine.lane_index
    source = np.where((source < 0) | (source >= WARP), own, source)
    first = np.arange(machine.lanes) - own
    return value[first + source]


def _lane(machine: Machine, number: Value) -> np.ndarray:
    return numbers.vector(numbers.widened(number), machine.lanes)


def shfl_sync(machine: Machine, m: Mask, mask: Value, value: Value, source: Value) -> Value:
    """Return the value of lane `source`."""
    return _exchange(machine, value, _lane(machine, source) % WARP)


def shfl_up_sync(machine: Machine, m: Mask, mask: Value, value: Value, delta: Value) -> Value:
    """Return the value of the lane `delta` below."""
    return _exchange(machine, value, machine.lane_index - _lane(machine, delta))


def shfl_down_sync(machine: Machine, m: Mask, mask: Value, value: Value, delta: Value) -> Value:
    """Return the value of the lane `delta` above."""
    return _exchange(machine, value, machine.lane_index + _lane(machine, delta))


def shfl_xor_sync(machine: Machine, m: Mask, mask: Value, value: Value, lane_mask: Value) -> Value:
    """Return the value of the lane whose number differs in the bits of `lane_mask`."""
    return _exchange(machine, value, machine.lane_index ^ _lane(machine, lane_mask))


def _warps(machine: Machine, m: Mask, predicate: Value) -> np.ndarray:
    true = numbers.vector(numbers.truth(predicate), machine.lanes) & m.lanes
    return true.reshape(-1, WARP)


def _as_int32(bits: np.ndarray) -> np.ndarray:
    """Return 32 bits for each warp as Numba's functions do: a signed integer, for each lane."""
    return np.repeat(bits.astype(np.uint32).view(np.int32).astype(np.int64), WARP)


def ballot_sync(machine: Machine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return a bit for each lane of the warp: whether the predicate holds there."""
    return _as_int32(_warps(machine, m, predicate) @ (1 << np.arange(WARP, dtype=np.int64)))


def activemask(machine: Machine, m: Mask) -> Value:
    """Return a bit for each lane of the warp that executes this."""
    return ballot_sync(machine, m, 0xFFFFFFFF, True)


def lanemask_lt(machine: Machine, m: Mask) -> Value:
    """Return a bit for each lane below one's own."""
    return (1 << machine.lane_index) - 1


def any_sync(machine: Machine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return whether the predicate holds for a lane of the warp."""
    return np.repeat(_warps(machine, m, predicate).any(axis=1), WARP)


def all_sync(machine: Machine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return whether the predicate holds for all lanes of the warp that execute this."""
    return np.repeat(~_warps(machine, m, machine.negated(predicate)).any(axis=1), WARP)


def eq_sync(machine: Machine, m: Mask, mask: Value, predicate: Value) -> Value:
    """Return whether the predicate is the same for all lanes of the warp that execute this."""
    some, none = any_sync(machine, m, mask, predicate), any_sync(machine, m, mask, machine.negated(predicate))
    return ~(some & none)


def match_any_sync(machine: Machine, m: Mask, mask: Value, value: Value) -> Value:
    """Return a bit for each lane of the warp that has the same value."""
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
