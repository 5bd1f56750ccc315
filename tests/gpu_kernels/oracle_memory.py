"""What the oracle knows of memory: every access of every thread, judged by brute force.

Races by happens-before with vector clocks (Fidge 1988, Mattern 1989): thread t's clock says how far into each
other thread's work t has waited for. A barrier joins the clocks of all who meet in it, `syncwarp` those of
its lanes. Shuffles and votes join nothing: they promise no memory order (CUDA C++ Programming Guide, Warp
Shuffle Functions). Blocks are never ordered.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

WARP = 32
SECTOR_BYTES, BANK_BYTES, BANKS = 32, 4, 32
#: The modules of the model itself: what they call on a kernel's behalf is none of its code.
MODEL = frozenset({"gpu_kernels.oracle", "gpu_kernels.oracle_cuda", "gpu_kernels.oracle_memory"})

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
    """One allocation: `start` is the address of its first byte, which counts as aligned to 256 bytes."""

    name: str
    space: str
    start: int
    written: np.ndarray | None = None
    #: (byte offset, kind) -> {(block, thread): (time, line)}, the latest access of each kind by each thread.
    past: dict[tuple, dict] = field(default_factory=lambda: defaultdict(dict))


@dataclass
class Request:
    """What the lanes of one warp did in one execution of one access."""

    memory: Memory
    kind: str
    line: int
    offsets: list[int] = field(default_factory=list)
    itemsize: int = 0

    @property
    def sectors(self) -> int:
        ends = (offset + byte for offset in self.offsets for byte in (0, self.itemsize - 1))
        return len({end // SECTOR_BYTES for end in ends})

    @property
    def wavefronts(self) -> int:
        """The most different words that fall into one bank."""
        words = {
            (offset + byte) // BANK_BYTES
            for offset in self.offsets
            for byte in range(0, self.itemsize, BANK_BYTES)
        }
        return max(np.bincount([word % BANKS for word in words]))

    @property
    def rounds(self) -> int:
        """The most lanes at one address: what an atomic has to do one after the other."""
        return max(np.unique(self.offsets, return_counts=True)[1])


def kernel_frame():
    """Return the frame of the kernel's (or its device function's) code that made this access."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") in MODEL:
        frame = frame.f_back
    return frame


def site_of(frame) -> tuple:
    """Return what tells one access of the source from another: its code and its place in the text."""
    return id(frame.f_code), positions(frame.f_code)[frame.f_lasti // 2]


@lru_cache
def positions(code) -> list[tuple]:
    """Return the place in the text of each instruction (the instruction's own number changes as it runs)."""
    return list(code.co_positions())


class Watched:
    """An array whose element accesses go through the machine; a slice of it is watched as well."""

    def __init__(self, machine, array: np.ndarray, memory: Memory):
        self._machine, self._array, self._memory = machine, array, memory
        self.shape, self.size, self.ndim = array.shape, array.size, array.ndim
        self.dtype, self.strides = array.dtype, array.strides
        self._offset = array.__array_interface__["data"][0] - memory.start

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
