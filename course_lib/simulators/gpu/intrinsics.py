"""What the names of `numba.cuda` mean to lanes in lockstep.

Every function takes the machine, the mask, and the values of the kernel's arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.simulators.gpu import atomics, counting, functions, numbers, races, warps
from course_lib.simulators.gpu.arrays import ArrayPart, ConstantArray, DeviceArray, Site
from course_lib.simulators.gpu.lanes import WARP
from course_lib.simulators.gpu.machine import LaneMachine
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import BINARY, Value

AXES = {"x": 0, "y": 1, "z": 2}


def special(machine: LaneMachine, path: str) -> Value:
    """Return threadIdx.x and its like."""
    name, _, axis = path.partition(".")
    if name == "threadIdx":
        return machine.thread_index[AXES[axis]]
    if name == "blockIdx":
        return machine.block_index[AXES[axis]]
    if name == "blockDim":
        return machine.block[AXES[axis]]
    if name == "gridDim":
        return machine.grid[AXES[axis]]
    return machine.lane_index if name == "laneid" else WARP


SPECIAL = {
    *(f"{name}.{axis}" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in AXES),
    "laneid",
    "warpsize",
}


# -- the grid ----------------------------------------------------------------------------------------------


def grid(machine: LaneMachine, m: Mask, dimensions: int) -> Value:
    """Return the thread's place in the whole grid: a number, or a tuple of 2 or 3."""
    if dimensions not in (1, 2, 3):
        machine.refuse(f"cuda.grid({dimensions!r}) is asked for, but a grid has 1, 2 or 3 dimensions")
    if not hasattr(machine, "places"):
        machine.places = tuple(
            numbers.plain(BINARY["Add"](BINARY["Mult"](block, size), thread))
            for block, size, thread in zip(
                machine.block_index, machine.block, machine.thread_index, strict=True
            )
        )
    return machine.places[0] if dimensions == 1 else machine.places[:dimensions]


def gridsize(machine: LaneMachine, m: Mask, dimensions: int) -> Value:
    """Return the number of threads of the whole grid, in each dimension."""
    if dimensions not in (1, 2, 3):
        machine.refuse(f"cuda.gridsize({dimensions!r}) is asked for, but a grid has 1, 2 or 3 dimensions")
    sizes = tuple(blocks * threads for blocks, threads in zip(machine.grid, machine.block, strict=True))
    return sizes[0] if dimensions == 1 else sizes[:dimensions]


# -- barriers ----------------------------------------------------------------------------------------------


def syncthreads(machine: LaneMachine, m: Mask) -> None:
    """Wait for the block."""
    machine.syncthreads(m)


def _over_block(machine: LaneMachine, m: Mask, predicate: Value) -> np.ndarray:
    machine.syncthreads(m)
    true = numbers.vector(numbers.truth(predicate), machine.lanes) & m.lanes
    return true.reshape(machine.slots, -1)


def syncthreads_count(machine: LaneMachine, m: Mask, predicate: Value) -> Value:
    """Wait for the block; return for how many of its threads the predicate holds."""
    return np.repeat(_over_block(machine, m, predicate).sum(axis=1), machine.block_lanes)


def syncthreads_or(machine: LaneMachine, m: Mask, predicate: Value) -> Value:
    """Wait for the block; return 1 if the predicate holds for any of its threads."""
    return np.repeat(_over_block(machine, m, predicate).any(axis=1), machine.block_lanes).astype(np.int64)


def syncthreads_and(machine: LaneMachine, m: Mask, predicate: Value) -> Value:
    """Wait for the block; return 1 if the predicate holds for all of its threads."""
    false = _over_block(machine, m, machine.negated(predicate))
    return np.repeat(~false.any(axis=1), machine.block_lanes).astype(np.int64)


def syncwarp(machine: LaneMachine, m: Mask, mask: Value = 0xFFFFFFFF) -> None:
    """Wait for the warp."""
    machine.syncwarp(m, mask)


def threadfence(machine: LaneMachine, m: Mask) -> None:
    """Order this thread's own accesses: in lockstep they are in order already."""


# -- memory ------------------------------------------------------------------------------------------------


def atomic(name: str) -> Callable:
    """Return an atomic operation on array[index]: it gives back what was there before."""
    code = atomics.CODES[name]

    def operate(machine: LaneMachine, m: Mask, site: Site, array: Any, index: Value, *values: Value) -> Value:
        if type(array) is ArrayPart:
            index = array.prefix + (index if isinstance(index, tuple) else (index,))
            array = array.array
        if type(array) is not DeviceArray:
            machine.refuse(f"cuda.atomic.{name} needs an array in global or shared memory")
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(array.shape):
            machine.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} are indexed")
        if array.dtype.kind not in "iuf" or array.dtype == np.float16:
            machine.refuse(f"cuda.atomic.{name} does not work on numbers of type {array.dtype}")
        if not array.is_writable:
            machine.refuse(f"the kernel updates {array.name}, which is a read-only NumPy array")
        m, place, shift = machine.find(site, m, array, index)
        old = np.zeros(machine.lanes, array.dtype)
        if not m:
            return old
        machine.count_access(site, "atomic", place, shift)
        storage, at = array.storage, array.offset + shift
        if storage.unwritten:
            machine.check_written(site, array, place, shift)
        if storage.shadow is not None:
            machine.watch_access(site, races.ATOMIC, array, place, shift, np.zeros(1, np.uint64))
        _, rounds = counting.contention(m.lanes, place.base, at, machine.scratch)
        machine.tally.atomic_rounds[site.line, array.name] += rounds
        *expected, value = (machine.as_elements(value, array.dtype) for value in values)
        if code >= atomics.AND:
            if array.dtype.kind not in "iu":
                machine.refuse(f"cuda.atomic.{name} needs integers, but {array.name} holds {array.dtype}")
            atomics.update_bits(array.typed, code, m.lanes, place.base, at, value, old)
        else:
            compared = expected[0] if expected else value
            atomics.update(array.typed, code, m.lanes, place.base, at, value, compared, old)
        return numbers.widened(old)

    return operate


def compare_and_swap(
    machine: LaneMachine, m: Mask, site: Site, array: Any, old: Value, value: Value
) -> Value:
    """Store a value into an array's first element where the old one is there; return what was there."""
    return atomic("cas")(machine, m, site, array, 0, old, value)


CUDA: dict[str, Callable] = {
    "grid": grid,
    "gridsize": gridsize,
    "syncthreads": syncthreads,
    "syncthreads_count": syncthreads_count,
    "syncthreads_or": syncthreads_or,
    "syncthreads_and": syncthreads_and,
    "syncwarp": syncwarp,
    "threadfence": threadfence,
    "threadfence_block": threadfence,
    "threadfence_system": threadfence,
    **warps.WARPS,
    **functions.CUDA,
}

ATOMIC: dict[str, Callable] = {
    **{f"atomic.{name}": atomic(name) for name in atomics.CODES},
    "atomic.compare_and_swap": compare_and_swap,
}


def constant_array(name: str, values: Any) -> ConstantArray:
    """Return an array that cuda.const.array_like was given, or a global one."""
    return ConstantArray(name, np.array(values))
