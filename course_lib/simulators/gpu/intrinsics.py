"""What the names of `numba.cuda`, `math` and NumPy mean to lanes in lockstep.

Every function takes the machine, the mask, and the values of the kernel's arguments.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.simulators.gpu import atomics, counting, numbers, races
from course_lib.simulators.gpu.arrays import ConstantArray, DeviceArray, Part
from course_lib.simulators.gpu.lanes import WARP
from course_lib.simulators.gpu.machine import Machine
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import BINARY, Value
from course_lib.simulators.gpu.places import Site

AXES = {"x": 0, "y": 1, "z": 2}


def special(machine: Machine, path: str) -> Value:
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


def grid(machine: Machine, m: Mask, dimensions: int) -> Value:
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


def gridsize(machine: Machine, m: Mask, dimensions: int) -> Value:
    """Return the number of threads of the whole grid, in each dimension."""
    if dimensions not in (1, 2, 3):
        machine.refuse(f"cuda.gridsize({dimensions!r}) is asked for, but a grid has 1, 2 or 3 dimensions")
    sizes = tuple(blocks * threads for blocks, threads in zip(machine.grid, machine.block, strict=True))
    return sizes[0] if dimensions == 1 else sizes[:dimensions]


# -- barriers ----------------------------------------------------------------------------------------------


def syncthreads(machine: Machine, m: Mask) -> None:
    """Wait for the block."""
    machine.syncthreads(m)


def _over_block(machine: Machine, m: Mask, predicate: Value) -> np.ndarray:
    machine.syncthreads(m)
    true = numbers.vector(numbers.truth(predicate), machine.lanes) & m.lanes
    return true.reshape(machine.slots, -1)


def syncthreads_count(machine: Machine, m: Mask, predicate: Value) -> Value:
    """Wait for the block; return for how many of its threads the predicate holds."""
    return np.repeat(_over_block(machine, m, predicate).sum(axis=1), machine.block_lanes)


def syncthreads_or(machine: Machine, m: Mask, predicate: Value) -> Value:
    """Wait for the block; return 1 if the predicate holds for any of its threads."""
    return np.repeat(_over_block(machine, m, predicate).any(axis=1), machine.block_lanes).astype(np.int64)


def syncthreads_and(machine: Machine, m: Mask, predicate: Value) -> Value:
    """Wait for the block; return 1 if the predicate holds for all of its threads."""
    false = _over_block(machine, m, machine.negated(predicate))
    return np.repeat(~false.any(axis=1), machine.block_lanes).astype(np.int64)


def syncwarp(machine: Machine, m: Mask, mask: Value = 0xFFFFFFFF) -> None:
    """Wait for the warp."""
    machine.syncwarp(m, mask)


def threadfence(machine: Machine, m: Mask) -> None:
    """Order this thread's own accesses: in lockstep they are in order already."""


# -- warps -------------------------------------------------------------------------------------------------


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


# -- memory ------------------------------------------------------------------------------------------------


def atomic(name: str) -> Callable:
    """Return an atomic operation on array[index]: it gives back what was there before."""
    code = atomics.CODES[name]

    def operate(machine: Machine, m: Mask, site: Site, array: Any, index: Value, *values: Value) -> Value:
        if type(array) is Part:
            index = array.prefix + (index if isinstance(index, tuple) else (index,))
            array = array.array
        if type(array) is not DeviceArray:
            machine.refuse(f"cuda.atomic.{name} needs an array in global or shared memory")
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(array.shape):
            machine.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} are indexed")
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


def compare_and_swap(machine: Machine, m: Mask, site: Site, array: Any, old: Value, value: Value) -> Value:
    """Store a value into an array's first element where the old one is there; return what was there."""
    return atomic("cas")(machine, m, site, array, 0, old, value)


# -- arithmetic --------------------------------------------------------------------------------------------


def fma(machine: Machine, m: Mask, a: Value, b: Value, c: Value) -> Value:
    """Return a * b + c (with two roundings here, one on the GPU)."""
    machine.tally.flops += 2 * m.count
    return BINARY["Add"](BINARY["Mult"](a, b), c)


def selp(machine: Machine, m: Mask, condition: Value, one: Value, other: Value) -> Value:
    """Return `one` where the condition holds and `other` elsewhere, without a branch."""
    condition = numbers.truth(condition)
    if type(condition) is bool:
        return one if condition else other
    return numbers.where(condition, numbers.plain(one), numbers.plain(other))


def popc(machine: Machine, m: Mask, value: Value) -> Value:
    """Return the number of bits that are set."""
    value = numbers.plain(value)
    if type(value) is np.ndarray:
        return np.bitwise_count(value & np.int64(0xFFFFFFFF) if _is_small(value) else value).astype(np.int64)
    return (
        (int(value) & (2**64 - 1)).bit_count()
        if abs(value) >= 2**31
        else (int(value) & 0xFFFFFFFF).bit_count()
    )


def _is_small(value: np.ndarray) -> bool:
    """Whether all numbers fit 32 signed bits: then a negative one has 32 bits, as on the GPU."""
    return value.dtype.kind == "i" and bool(np.all((value >= -(2**31)) & (value < 2**31)))


def ffs(machine: Machine, m: Mask, value: Value) -> Value:
    """Return the place of the lowest bit that is set, from 1; 0 if there is none."""
    value = numbers.vector(value, machine.lanes).astype(np.int64)
    lowest = value & -value
    return np.where(value == 0, 0, np.bitwise_count((lowest - 1).view(np.uint64)).astype(np.int64) + 1)


def clz(machine: Machine, m: Mask, value: Value) -> Value:
    """Return the number of zero bits before the first that is set, of 32."""
    value = numbers.vector(value, machine.lanes).astype(np.int64) & 0xFFFFFFFF
    return 31 - np.floor(np.log2(np.maximum(value, 0.5))).astype(np.int64)


def brev(machine: Machine, m: Mask, value: Value) -> Value:
    """Return the 32 bits in reverse order."""
    value = numbers.vector(value, machine.lanes).astype(np.int64) & 0xFFFFFFFF
    result = np.zeros_like(value)
    for bit in range(32):
        result |= ((value >> bit) & 1) << (31 - bit)
    return result


def cbrt(machine: Machine, m: Mask, value: Value) -> Value:
    """Return the cube root."""
    return np.cbrt(_float(value))


def _float(value: Value) -> Value:
    value = numbers.widened(numbers.plain(value))
    if numbers.kind(value) in "iu":
        return value.astype(np.float64) if type(value) is np.ndarray else np.float64(value)
    return value


def _numpy(function: Callable) -> Callable:
    def compute(machine: Machine, m: Mask, *values: Value) -> Value:
        if len(values) == 2:
            values = numbers.common(*values)
        result = function(*map(_float, values))
        return numbers.scalar(result) if not isinstance(result, np.ndarray) else result

    return compute


def _by_python(function: Callable) -> Callable:
    table = np.vectorize(function, otypes=[np.float64])

    def compute(machine: Machine, m: Mask, value: Value) -> Value:
        value = _float(value)
        result = table(np.where(m.lanes, value, 1.0) if type(value) is np.ndarray else value)
        return result.astype(value.dtype) if type(value) is np.ndarray else value.dtype.type(result)

    return compute


def _whole(function: Callable) -> Callable:
    def compute(machine: Machine, m: Mask, value: Value) -> Value:
        value = numbers.plain(value)
        if numbers.kind(value) in "iub":
            return numbers.widened(value)
        result = function(value)
        return result.astype(np.int64) if type(result) is np.ndarray else int(result)

    return compute


def _extreme(function: Callable) -> Callable:
    def compute(machine: Machine, m: Mask, *values: Value) -> Value:
        if len(values) == 1 and isinstance(values[0], tuple):
            values = values[0]
        result = numbers.plain(values[0])
        for value in values[1:]:
            result = numbers.as_value(function(*numbers.common(result, value)))
        return result

    return compute


def absolute(machine: Machine, m: Mask, value: Value) -> Value:
    """Return |value|."""
    value = numbers.plain(value)
    if numbers.kind(value) == "u":  # in its own width, which a minus before it would show
        return value
    result = np.abs(numbers.widened(value))
    return result if type(result) is np.ndarray else numbers.scalar(result)


def length(machine: Machine, m: Mask, array: Any) -> Value:
    """Return the length of an array's first dimension, or of a tuple."""
    return len(array) if isinstance(array, tuple) else array.shape[0]


MATH: dict[str, Callable] = {
    **{
        name: _numpy(getattr(np, name))
        for name in ("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh")
    },
    **{name: _numpy(getattr(np, name)) for name in ("cosh", "tanh", "fmod", "hypot", "copysign", "fabs")},
    **{name: _numpy(getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    **{name: _numpy(getattr(np, "arc" + name[1:])) for name in ("asin", "acos", "atan", "asinh", "acosh")},
    "atanh": _numpy(np.arctanh),
    "atan2": _numpy(np.arctan2),
    "pow": lambda machine, m, a, b: BINARY["Pow"](_float(a), _float(b)),
    "floor": _whole(np.floor),
    "ceil": _whole(np.ceil),
    "trunc": _whole(np.trunc),
    "erf": _by_python(math.erf),
    "erfc": _by_python(math.erfc),
    "lgamma": _by_python(math.lgamma),
    "gamma": _by_python(math.gamma),
    "degrees": _numpy(np.degrees),
    "radians": _numpy(np.radians),
}

NUMPY: dict[str, Callable] = {
    **{name: MATH[name] for name in MATH if name not in ("floor", "ceil", "trunc", "pow")},
    "floor": _numpy(np.floor),
    "ceil": _numpy(np.ceil),
    "trunc": _numpy(np.trunc),
    "abs": absolute,
    "absolute": absolute,
    "minimum": _extreme(np.minimum),
    "maximum": _extreme(np.maximum),
    "power": lambda machine, m, a, b: BINARY["Pow"](a, b),
    "sign": _numpy(np.sign),
}

BUILTIN: dict[Any, Callable] = {
    builtins.min: _extreme(np.minimum),
    builtins.max: _extreme(np.maximum),
    builtins.abs: absolute,
    builtins.len: length,
    builtins.round: _whole(np.rint),
    builtins.pow: lambda machine, m, a, b: BINARY["Pow"](a, b),
}

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
    "fma": fma,
    "selp": selp,
    "popc": popc,
    "ffs": ffs,
    "clz": clz,
    "brev": brev,
    "cbrt": cbrt,
}

ATOMIC: dict[str, Callable] = {
    **{f"atomic.{name}": atomic(name) for name in atomics.CODES},
    "atomic.compare_and_swap": compare_and_swap,
}


def ignored(machine: Machine, m: Mask, *values: Any) -> None:
    """Print nothing: a traced kernel's output would come block after block."""


def constant_array(name: str, values: Any) -> ConstantArray:
    """Return an array that cuda.const.array_like was given, or a global one."""
    return ConstantArray(name, np.array(values))
