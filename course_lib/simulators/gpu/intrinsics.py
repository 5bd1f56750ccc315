"""What the names of `numba.cuda` mean to lanes in lockstep.

Every function takes the machine, the mask, and the values of the kernel's arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.simulators.gpu import atomics, counting, functions, numbers, races, warps
from course_lib.simulators.gpu.arrays import ArrayPart, DeviceArray, Site, Triple
from course_lib.simulators.gpu.counting import WARP
from course_lib.simulators.gpu.machine import LaneMachine
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import BINARY, Value

TRIPLES = {"threadIdx": "thread_index", "blockIdx": "block_index", "blockDim": "block", "gridDim": "grid"}
SPECIAL: dict[str, Callable[[LaneMachine], Value]] = {
    **{
        f"{name}.{axis}": lambda machine, of=of, n=n: getattr(machine, of)[n]
        for name, of in TRIPLES.items()
        for n, axis in enumerate("xyz")
    },
    **{name: lambda machine, of=of: Triple(*getattr(machine, of)) for name, of in TRIPLES.items()},
    "laneid": lambda machine: machine.lane_index,
    "warpsize": lambda machine: WARP,
}


# -- the grid, and barriers --------------------------------------------------------------------------------


def grid(machine: LaneMachine, m: Mask, dimensions: int) -> Value:
    """Return the thread's place in the whole grid: a number, or a tuple of 2 or 3."""
    if not hasattr(machine, "places"):
        machine.places = tuple(
            numbers.plain(BINARY["Add"](BINARY["Mult"](block, size), thread))
            for block, size, thread in zip(
                machine.block_index, machine.block, machine.thread_index, strict=True
            )
        )
    return _first(machine, "grid", dimensions, machine.places)


def gridsize(machine: LaneMachine, m: Mask, dimensions: int) -> Value:
    """Return the number of threads of the whole grid, in each dimension."""
    sizes = tuple(blocks * threads for blocks, threads in zip(machine.grid, machine.block, strict=True))
    return _first(machine, "gridsize", dimensions, sizes)


def _first(machine: LaneMachine, name: str, dimensions: int, values: tuple) -> Value:
    if dimensions not in (1, 2, 3):
        machine.refuse(f"cuda.{name}({dimensions!r}) is asked for, but a grid has 1, 2 or 3 dimensions")
    return values[0] if dimensions == 1 else values[:dimensions]


def _block_vote(decide: Callable) -> Callable:
    """Return a barrier that tells what `decide` makes of (predicates, who has come), a row for a block."""

    def vote(machine: LaneMachine, m: Mask, predicate: Value) -> Value:
        machine.syncthreads(m)
        warps.count_exchange(machine, m)
        true = numbers.vector(numbers.truth(predicate), machine.lanes)
        decided = decide(true.reshape(machine.slots, -1), m.lanes.reshape(machine.slots, -1))
        return np.repeat(decided.astype(np.int64), machine.block_lanes)

    return vote


# -- memory ------------------------------------------------------------------------------------------------


def atomic(name: str) -> Callable:
    """Return an atomic operation on array[index]: it gives back what was there before."""
    code = atomics.CODES[name]
    does = np.array([atomics.GROUPS[name] << races.SITE_BITS], np.uint64)

    def operate(machine: LaneMachine, m: Mask, site: Site, array: Any, index: Value, *values: Value) -> Value:
        if type(array) is ArrayPart:
            index = array.prefix + (index if isinstance(index, tuple) else (index,))
            array = array.array
        if type(array) is not DeviceArray:
            machine.refuse(f"cuda.atomic.{name} needs an array in global or shared memory")
        index = index if isinstance(index, tuple) else (index,)
        machine.check_count(array, index)
        if array.dtype.kind not in "iuf" or array.dtype == np.float16:
            machine.refuse(f"cuda.atomic.{name} does not work on numbers of type {array.dtype}")
        if not array.is_writable:
            machine.refuse(f"the kernel updates {array.name}, which is a read-only NumPy array")
        m, place, shift = machine.find(site, m, array, index)
        old = np.zeros(machine.lanes, array.dtype)
        if not m:
            return old
        machine.count_access(site, place, shift)
        storage, at = array.storage, array.offset + shift
        if storage.unwritten:
            machine.check_written(site, array, place, shift)
        if storage.shadow is not None:
            machine.watch_access(site, array, place, shift, does)
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


CUDA: dict[str, Callable] = {
    "grid": grid,
    "gridsize": gridsize,
    "syncthreads": LaneMachine.syncthreads,
    "syncthreads_count": _block_vote(lambda true, came: (true & came).sum(axis=1)),
    "syncthreads_or": _block_vote(lambda true, came: (true & came).any(axis=1)),
    "syncthreads_and": _block_vote(lambda true, came: (true | ~came).all(axis=1)),
    # a thread's own accesses are in order already: lanes go in lockstep
    **dict.fromkeys(("threadfence", "threadfence_block", "threadfence_system"), lambda machine, m: None),
    **warps.WARPS,
    **functions.CUDA,
}

ATOMIC: dict[str, Callable] = {
    **{f"atomic.{name}": atomic(name) for name in atomics.CODES},
    # on the first element of an array
    "atomic.compare_and_swap": lambda machine, m, site, array, old, value: atomic("cas")(
        machine, m, site, array, 0, old, value
    ),
}
