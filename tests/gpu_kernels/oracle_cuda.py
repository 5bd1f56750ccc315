"""What a kernel finds under the name `cuda` when it runs in the oracle."""

from __future__ import annotations

import linecache
import math
import re
import types

import numpy as np
from numba import types as numba_types
from numba.np.numpy_support import as_dtype

from gpu_kernels.oracle_memory import WARP, Memory, Watched, kernel_frame, site_of


def rebound(function, stand_in, done: dict):
    """Return the function with `cuda` replaced by the stand-in, in what it calls and closes over as well."""
    if function not in done:
        names = set(function.__code__.co_names) | {"__builtins__"}
        new_globals = {"__name__": function.__module__}
        cells = None
        if function.__closure__:
            cells = tuple(types.CellType() for _ in function.__closure__)
        done[function] = types.FunctionType(function.__code__, new_globals, function.__name__, None, cells)
        for name in names & set(function.__globals__):
            new_globals[name] = replaced(function.__globals__[name], stand_in, done)
        for cell, old in zip(cells or (), function.__closure__ or (), strict=True):
            cell.cell_contents = replaced(old.cell_contents, stand_in, done)
    return done[function]


def replaced(value, stand_in, done: dict):
    """Return the stand-in for `cuda`, the rebound function for a jitted one, anything else as it is."""
    if isinstance(value, types.ModuleType) and value.__name__ == "numba.cuda":
        return stand_in
    if hasattr(value, "py_func"):
        return rebound(value.py_func, stand_in, done)
    if isinstance(value, types.ModuleType) and value.__name__.startswith("gpu_kernels"):
        return types.SimpleNamespace(
            **{k: replaced(v, stand_in, done) for k, v in vars(value).items() if k[0] != "_"}
        )
    return value


class StandIn:
    """What the kernel's code finds under the name `cuda`."""

    warpsize = WARP

    def __init__(self, machine):
        self._machine = machine
        self.shared = types.SimpleNamespace(array=self._shared_array)
        self.local = types.SimpleNamespace(array=self._local_array)
        self.atomic = Atomics()

    threadIdx = property(lambda self: named(self._machine.current.index))
    blockIdx = property(lambda self: named(self._machine.current.block))
    blockDim = property(lambda self: named(self._machine.blockdim))
    gridDim = property(lambda self: named(self._machine.griddim))
    laneid = property(lambda self: self._machine.current.lane)

    def grid(self, count: int):
        machine, thread = self._machine, self._machine.current
        indices = tuple(
            b * d + t for b, d, t in zip(thread.block, machine.blockdim, thread.index, strict=True)
        )
        return indices[0] if count == 1 else indices[:count]

    def gridsize(self, count: int):
        sizes = tuple(g * b for g, b in zip(self._machine.griddim, self._machine.blockdim, strict=True))
        return sizes[0] if count == 1 else sizes[:count]

    def _array(self, shape, dtype, space: str, nbytes: int | None = None) -> Watched:
        dtype = as_dtype(dtype) if isinstance(dtype, numba_types.Type) else np.dtype(dtype)
        shape = shape if isinstance(shape, tuple) else (shape,)
        if nbytes is not None:
            shape = (nbytes // dtype.itemsize,)
        array = np.full(math.prod(shape) * dtype.itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)
        frame = kernel_frame()
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        name = re.match(r"\s*(\w+)\s*=", text)[1]
        written = np.zeros(array.nbytes, bool) if space == "shared" else None
        return Watched(
            self._machine, array, Memory(name, space, array.__array_interface__["data"][0], written)
        )

    def _shared_array(self, shape, dtype) -> Watched:
        dynamic = shape in (0, (0,))
        key = "dynamic" if dynamic else site_of(kernel_frame())
        shared = self._machine.current.home.shared
        if key not in shared:
            nbytes = self._machine.shared_bytes if dynamic else None
            shared[key] = self._array(shape, dtype, "shared", nbytes)
        return shared[key]

    def _local_array(self, shape, dtype) -> Watched:
        return self._array(shape, dtype, "local")

    def syncthreads(self):
        self._machine.wait("barrier", "all", None)

    def syncthreads_count(self, vote):
        return self._machine.wait("barrier", "count", vote)

    def syncthreads_and(self, vote):
        return self._machine.wait("barrier", "and", vote)

    def syncthreads_or(self, vote):
        return self._machine.wait("barrier", "or", vote)

    def syncwarp(self, mask=0xFFFFFFFF):
        self._machine.wait("warp", ("syncwarp", mask), None)

    def threadfence(self):
        """Order nothing: what a fence and an atomic order together is beyond this model."""

    def __getattr__(self, name: str):
        if name.startswith("shfl") or name in ("all_sync", "any_sync", "ballot_sync", "match_any_sync"):
            return lambda mask, value, parameter=0: self._machine.wait(
                "warp", (name, mask), (value, parameter)
            )
        raise AttributeError(f"the oracle has no cuda.{name}")

    def popc(self, value):
        return int(value).bit_count()

    def fma(self, a, b, c):
        return a * b + c


class Atomics:
    """cuda.atomic: each returns the old value."""

    def add(self, array, index, value):
        return array.atomically(index, lambda old: old + value)

    def max(self, array, index, value):
        return array.atomically(index, lambda old: max(old, value))

    def cas(self, array, index, expected, value):
        return array.atomically(index, lambda old: value if old == expected else old)


def named(index: tuple[int, int, int]):
    """Return (x, y, z) with its coordinates as attributes."""
    return types.SimpleNamespace(x=index[0], y=index[1], z=index[2])
