"""A slow, plain model of a GPU that says what is wrong with a kernel: the judge of the cases in this folder.

Each CUDA thread is a greenlet that runs the kernel's Python function; arrays are watched element by element.
It is kept simple rather than quick (some 50 000 accesses/s), and shares no code with the tracer that the
cases are for.

Races by happens-before with vector clocks (Fidge 1988, Mattern 1989): thread t's clock says how far into each
other thread's work t has waited for. A barrier joins the clocks of all who meet in it, `syncwarp` those of
its lanes. Shuffles and votes join nothing: they promise no memory order (CUDA C++ Programming Guide, Warp
Shuffle Functions). Blocks are never ordered.
"""

from __future__ import annotations

import math
import sys
import types
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from greenlet import getcurrent, greenlet
from numba import types as numba_types
from numba.np.numpy_support import as_dtype

from gpu_kernels.case import plain

WARP = 32
#: Which kinds of access to one place are a race with each kind, when nothing orders them.
COLLIDING = {"load": ("store", "atomic"), "store": ("load", "store", "atomic"), "atomic": ("load", "store")}


@dataclass(frozen=True, order=True)
class Hazard:
    """One finding. `partner` is the line of the other access of a race, 0 for other kinds."""

    kind: str
    line: int
    partner: int = 0


@dataclass
class Memory:
    """One allocation: `start` is the address of its first byte."""

    space: str
    start: int
    written: np.ndarray | None = None
    #: (byte offset, kind) -> {(block, thread): (time, line)}, the latest access of each kind by each thread.
    past: dict[tuple, dict] = field(default_factory=lambda: defaultdict(dict))


def kernel_frame():
    """Return the frame of the kernel's (or its device function's) code that made this access."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return frame


def site_of(frame) -> tuple:
    """Return what tells one barrier or shared array from another: the code and the line it stands in."""
    return id(frame.f_code), frame.f_lineno


def address_of(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class Watched:
    """An array whose element accesses go through the machine; a slice of it is watched as well."""

    def __init__(self, machine, array: np.ndarray, memory: Memory):
        self._machine, self._array, self._memory = machine, array, memory
        self.shape, self.size, self.ndim = array.shape, array.size, array.ndim
        self.dtype, self.strides = array.dtype, array.strides
        self._offset = address_of(array) - memory.start

    def __len__(self):
        return len(self._array)

    def _place(self, index) -> tuple[int, ...] | None:
        """Return the index, negative ones counted from the end as Numba does; None when it is outside."""
        place = []
        for i, n in zip(index, self.shape, strict=True):
            if not -n <= i < n:
                return None
            place.append(int(i) % n)
        return tuple(place)

    def _enter(self, index, kind: str) -> tuple[int, ...] | None:
        self._machine.turn()
        place = self._place(index)
        if place is None:
            self._machine.report("out-of-bounds")
            return None
        offset = self._offset
        for i, stride in zip(place, self.strides, strict=True):
            offset += i * stride
        self._machine.access(self._memory, offset, self.dtype.itemsize, kind)
        return place

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) < self.ndim or any(isinstance(i, slice) for i in index):
            return Watched(self._machine, self._array[index], self._memory)
        place = self._enter(index, "load")
        return self.dtype.type(0) if place is None else self._array[place]

    def __setitem__(self, index, value):
        place = self._enter(index if isinstance(index, tuple) else (index,), "store")
        if place is not None:
            self._array[place] = value

    def atomically(self, index, change):
        """Replace an element by change(element) and return what it was."""
        place = self._enter(index if isinstance(index, tuple) else (index,), "atomic")
        if place is None:
            return self.dtype.type(0)
        old = self._array[place]
        self._array[place] = change(old)
        return old


def race_partners(memory: Memory, offset: int, kind: str, thread, line: int) -> set[int]:
    """Enter the access into the memory's past and return the lines of earlier accesses it races with."""
    partners = set()
    for other_kind in COLLIDING[kind]:
        for (block, other), (time, other_line) in memory.past[offset, other_kind].items():
            ordered = block == thread.block and (other == thread.number or time <= thread.clock[other])
            if not ordered:
                partners.add(other_line)
    memory.past[offset, kind][thread.block, thread.number] = (thread.clock[thread.number], line)
    return partners


# -- what a kernel finds under the name `cuda` --------------------------------------------------------------


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
        written = np.zeros(array.nbytes, bool) if space == "shared" else None
        return Watched(self._machine, array, Memory(space, address_of(array), written))

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


# -- threads, blocks and the machine -------------------------------------------------------------------------


#: lockstep: statement by statement together; ascending, descending: block after block, thread after thread,
#: each as far as it can; random: by chance, all blocks at once.
SCHEDULES = ("lockstep", "ascending", "descending", "random")


class Thread:
    """One CUDA thread. `state`: ready, barrier or warp (waiting), left; `line`: where it is in the kernel."""

    def __init__(self, number: int, index: tuple[int, int, int], home: Block, threads: int):
        self.number, self.index, self.home, self.block = number, index, home, home.index
        self.warp, self.lane = divmod(number, WARP)
        self.clock = np.zeros(threads, np.int64)
        self.clock[number] = 1
        self.state, self.waits_for, self.site, self.line, self.value = "ready", None, None, 0, None


class Block:
    """The threads of one block, their shared memory, and the points where they meet."""

    def __init__(self, machine: Machine, index: tuple[int, int, int], function, args):
        self.machine, self.index = machine, index
        self.shared: dict = {}
        indices = [index[::-1] for index in product(*map(range, machine.blockdim[::-1]))]
        self.threads = [Thread(n, index, self, len(indices)) for n, index in enumerate(indices)]
        for thread in self.threads:
            thread.greenlet = greenlet(lambda: function(*args))

    def step(self) -> bool:
        """Let some threads go on, complete what they wait for; return whether any are left."""
        for thread in self._next():
            self.machine.current = thread
            thread.greenlet.switch()
            if thread.greenlet.dead:
                thread.state = "left"
        states = {thread.state for thread in self.threads} - {"left"}
        if not self._release_warps() and states and "ready" not in states:
            self._release_barrier()
        return bool(states)

    def _next(self) -> list[Thread]:
        ready = [thread for thread in self.threads if thread.state == "ready"]
        if (
            self.machine.schedule == "lockstep"
        ):  # those behind catch up: lanes that parted meet after a branch
            hindmost = min((thread.line for thread in ready), default=0)
            return [thread for thread in ready if thread.line == hindmost]
        if self.machine.schedule != "random":
            return ready[:1] if self.machine.schedule == "ascending" else ready[-1:]
        chosen = self.machine.rng.permutation(len(ready))[: 1 + len(ready) // 8]
        return [ready[i] for i in chosen]

    def _join(self, group: list[Thread]) -> None:
        joined = np.max([thread.clock for thread in group], axis=0)
        for thread in group:
            thread.clock = joined.copy()
            thread.clock[thread.number] += 1

    def _release_barrier(self) -> None:
        group = [thread for thread in self.threads if thread.state == "barrier"]
        if not group:
            stuck = sorted({thread.site for thread in self.threads if thread.state == "warp"})
            raise AssertionError(f"lanes wait for lanes that never come, at {stuck}")
        if len(group) < len(self.threads) or len({thread.site for thread in group}) > 1:
            self.machine.hazards |= {Hazard("divergent-barrier", thread.site[1]) for thread in group}
        self._join(group)
        votes = [bool(thread.value) for thread in group]
        results = {"count": sum(votes), "and": int(all(votes)), "or": int(any(votes))}
        for thread in group:
            thread.value, thread.state = results.get(thread.waits_for), "ready"

    def _release_warps(self) -> bool:
        """Complete every warp operation whose lanes have all arrived; return whether there was one."""
        released = False
        for first in self.threads:
            if first.state != "warp":
                continue
            operation, mask = first.waits_for
            named = [
                t for t in self.threads if t.warp == first.warp and mask >> t.lane & 1 and t.state != "left"
            ]
            if all(t.state == "warp" and t.waits_for == first.waits_for for t in named):
                if operation == "syncwarp":
                    self._join(named)
                values = {t.lane: t.value for t in named}
                for thread in named:
                    thread.value, thread.state = warp_result(operation, thread.lane, values), "ready"
                released = True
        return released


class Machine:
    """Runs a kernel; after `launch`, `hazards` holds what was seen."""

    def __init__(self, schedule: str = "lockstep", seed: int = 0):
        self.schedule, self.rng = schedule, np.random.default_rng(seed)
        self.hazards: set[Hazard] = set()
        self.current: Thread | None = None

    def launch(self, kernel, griddim, blockdim, args: tuple, shared_bytes: int = 0) -> None:
        """Run the kernel over the whole grid; NumPy arguments are written in place."""
        self.griddim, self.blockdim = dimensions(griddim), dimensions(blockdim)
        self.shared_bytes = shared_bytes
        function = rebound(plain(kernel), StandIn(self), {})
        self.code = function.__code__
        watched = self._watch(args)
        indices = [index[::-1] for index in product(*map(range, self.griddim[::-1]))]
        blocks = [Block(self, index, function, watched) for index in indices]
        if self.schedule == "random":
            while blocks:
                at = self.rng.integers(len(blocks))
                if not blocks[at].step():
                    del blocks[at]
        for block in reversed(blocks) if self.schedule == "descending" else blocks:
            while block.step():
                pass

    def _watch(self, args) -> list:
        memories: dict[int, Memory] = {}
        watched = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                owner = arg
                while isinstance(owner.base, np.ndarray):
                    owner = owner.base
                start = address_of(owner)
                arg = Watched(self, arg, memories.setdefault(start, Memory("global", start)))
            watched.append(arg)
        return watched

    def turn(self) -> None:
        """Before an access: let the other threads come first, unless each is to run as far as it can."""
        if self.schedule not in ("lockstep", "random"):
            return
        thread = self.current
        if self.schedule == "lockstep":
            frame = kernel_frame()
            while frame.f_code is not self.code:
                frame = frame.f_back
            thread.line = frame.f_lineno
        getcurrent().parent.switch()
        self.current = thread

    def report(self, kind: str, partner: int = 0) -> None:
        self.hazards.add(Hazard(kind, kernel_frame().f_lineno, partner))

    def access(self, memory: Memory, offset: int, itemsize: int, kind: str) -> None:
        """Judge one access of the current thread."""
        frame, thread = kernel_frame(), self.current
        if memory.written is not None:
            if kind != "store" and not memory.written[offset : offset + itemsize].all():
                self.report("uninitialised")
            memory.written[offset : offset + itemsize] |= kind != "load"
        if memory.space != "local":
            for partner in race_partners(memory, offset, kind, thread, frame.f_lineno):
                self.report("race", partner)

    def wait(self, state: str, waits_for, value):
        """Put the current thread to sleep until its barrier or warp operation is complete."""
        thread, frame = self.current, kernel_frame()
        thread.state, thread.waits_for, thread.value = state, waits_for, value
        thread.site = site_of(frame)
        getcurrent().parent.switch()
        return thread.value


def warp_result(operation: str, lane: int, values: dict):
    """Return what one lane gets from a shuffle, vote or match, given {lane: (its value, its parameter)}."""
    if operation == "syncwarp":
        return None
    value, parameter = values[lane]
    if operation.startswith("shfl"):
        source = {"": parameter, "_up": lane - parameter, "_down": lane + parameter, "_xor": lane ^ parameter}
        source = source[operation.removeprefix("shfl").removesuffix("_sync")]
        return values[source if 0 <= source < WARP else lane][0]
    votes = [bool(vote) for vote, _ in values.values()]
    if operation in ("all_sync", "any_sync"):
        return all(votes) if operation == "all_sync" else any(votes)
    chosen = bool if operation == "ballot_sync" else (lambda other: other == value)
    return sum(1 << other for other, (vote, _) in values.items() if chosen(vote))


def dimensions(given) -> tuple[int, int, int]:
    """Return a grid's or block's size as (x, y, z)."""
    given = given if isinstance(given, tuple) else (given,)
    return (*given, 1, 1)[:3]
