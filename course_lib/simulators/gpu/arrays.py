"""The arrays a kernel sees: global memory (the arguments), shared, local and constant memory."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course_lib.simulators.gpu import races
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.source import NotTraceable

#: unsigned integers that carry the bits of an element without looking at them
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
MOST_SLICES = 1024  # of one array, kept for when the kernel makes them again
FIRST_ROWS = 1024  # of a local array, made at once


@dataclass(eq=False)
class Storage:
    """A piece of memory that arrays lie in, and what is known of who touched it.

    `unit` is the number of bytes that one shadow stands for, `start` and `end` are addresses of global memory
    and `owners` the arrays that keep it alive; `written` says of shared memory what has been written since
    the block began, `unwritten` how many units have not: reading one of them is reported.
    """

    space: str
    memory: np.ndarray
    unit: int
    start: int = 0
    owners: Sequence[np.ndarray] = ()
    shadow: np.ndarray | None = None
    written: np.ndarray | None = None
    unwritten: int = 0
    log: list[tuple] = field(default_factory=list)  # shared memory: accesses since the last barrier
    has_stores: bool = False  # and whether one of them, logged or compared already, writes

    @property
    def end(self) -> int:
        return self.start + self.memory.nbytes

    def watch(self, is_loaded: bool, has_atomics: bool) -> None:
        """Have every access compared with those before it."""
        self.shadow = races.shadow(-(-self.memory.nbytes // self.unit), is_loaded, has_atomics)


class DeviceArray:
    """An array in global or shared memory: element strides into the storage's typed memory."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        dtype: np.dtype,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int = 0,
        block_size: int = 0,
        is_writable: bool = True,
    ) -> None:
        if len(shape) > 3:
            raise NotTraceable(f"{name} has {len(shape)} dimensions, but the tracer follows at most 3.")
        self.storage, self.name, self.dtype = storage, name, dtype
        self.key = (storage.space, name)  # in a trace
        self.shape, self.strides, self.offset = shape, strides, offset
        self.block_size, self.is_writable = block_size, is_writable
        self.item_bytes = dtype.itemsize
        typed = storage.memory[: storage.memory.nbytes // self.item_bytes * self.item_bytes]
        self.typed = typed.view(dtype)
        self.bits = typed.view(_BITS[self.item_bytes]) if self.item_bytes in _BITS else None
        self.all_strides = np.array((*strides, 0, 0, 0)[:3], np.int64)
        self.unit_ratio = self.item_bytes // storage.unit
        self._slices: dict[tuple, DeviceArray] = {}

    @property
    def space(self) -> str:
        """Return 'global' or 'shared'."""
        return self.storage.space

    def sliced(self, parts: tuple) -> DeviceArray:
        """Return a view; `parts` holds slices and integers that are the same for all lanes."""
        key = tuple((p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts)
        if key not in self._slices:
            if len(self._slices) >= MOST_SLICES:  # kept only to save time
                self._slices.clear()
            offset, shape, strides = self.offset, [], []
            for part, size, stride in zip(parts, self.shape, self.strides, strict=False):
                if isinstance(part, slice):
                    start, stop, step = part.indices(size)
                    offset += start * stride
                    shape.append(len(range(start, stop, step)))
                    strides.append(step * stride)
                else:
                    offset += part % size * stride
            shape += self.shape[len(parts) :]
            strides += self.strides[len(parts) :]
            what = self.storage, self.name, self.dtype
            where = tuple(shape), tuple(strides), offset, self.block_size
            self._slices[key] = DeviceArray(*what, *where, self.is_writable)
        return self._slices[key]


class ArrayPart:
    """An array with its first indices given: A[i], of which A[i][j] is an element."""

    def __init__(self, array: DeviceArray | LocalArray, prefix: tuple) -> None:
        self.array, self.prefix = array, prefix
        self.shape, self.dtype, self.name = array.shape[len(prefix) :], array.dtype, array.name


class LocalArray:
    """A thread's own array (registers, if the compiler unrolls); `known` says which elements it has written.

    The first elements have their rows in the two at once, all others from their first touch on: 512 KiB for
    each thread would be gigabytes.
    """

    space = "local"

    def __init__(self, name: str, dtype: np.dtype, shape: tuple[int, ...], lanes: int) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.rows = np.arange(math.prod(shape))  # of each element, -1: none yet
        self.rows[FIRST_ROWS:] = -1
        self.used = min(len(self.rows), FIRST_ROWS)
        self.elements = np.zeros((self.used, lanes), dtype)
        self.known = np.zeros(self.elements.shape, np.bool_)
        self.complete: set[int] = set()  # rows that all lanes have written

    def forget(self, m: Mask) -> None:
        """Take the elements of some lanes for not written yet."""
        self.known[: self.used] &= ~m.lanes
        self.complete.clear()

    def rows_of(self, number: Any) -> Any:
        """Return the row of an element, or of several."""
        rows = self.rows[number]
        if self.used < len(self.rows) and rows.min() < 0:
            new = np.unique(np.extract(rows < 0, number))
            self.rows[new] = np.arange(self.used, self.used + len(new))
            self.used += len(new)
            if self.used > len(self.elements):
                for array in (self.elements, self.known):
                    array.resize((min(len(self.rows), self.used * 9 // 8), array.shape[1]), refcheck=False)
            rows = self.rows[number]
        return rows


class ConstantArray:
    """Read-only numbers known when the kernel is compiled."""

    space = "constant"

    def __init__(self, name: str, values: np.ndarray) -> None:
        self.name, self.values, self.dtype, self.shape = name, values, values.dtype, values.shape


ARRAYS = (DeviceArray, LocalArray, ConstantArray, ArrayPart)


class Triple:
    """cuda.threadIdx and the like as a value: no number, but its x, y and z are."""

    __slots__ = ("x", "y", "z")
    __array_ufunc__ = None  # no array computes with it

    def __init__(self, x: Any, y: Any, z: Any) -> None:
        self.x, self.y, self.z = x, y, z

    def _is_no_number(self, *_: Any) -> bool:
        raise TypeError(f"a {type(self).__name__} is no number")

    __bool__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _is_no_number
    __hash__ = None


#: what a variable may hold that is no number
OBJECTS = (*ARRAYS, Triple, np.dtype, str)


def storages(arrays: Iterable[np.ndarray]) -> list[Storage]:
    """Return the pieces of memory that the arguments lie in; what overlaps is one piece."""
    found: list[Storage] = []
    spans = [(*_span(owner := _owner(array)), array.itemsize, owner) for array in arrays]
    for start, end, unit, owner in sorted(spans, key=lambda span: span[:2]):
        before = found[-1] if found else None
        if before is not None and start < max(before.end, before.start + 1):
            owners, start = [*before.owners, owner], before.start
            end, unit = max(end, before.end), min(unit, before.unit)
            found.pop()
        else:
            owners = [owner]
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(start))
        found.append(Storage("global", memory, unit, start, owners))
    return found


def global_array(name: str, array: np.ndarray, storages: list[Storage]) -> DeviceArray:
    """Return an argument as a kernel sees it; arguments that are views of one array share its storage."""
    if array.dtype.kind not in "biufc" or array.itemsize > 16:
        raise NotTraceable(f"{name} is an array of {array.dtype}, but the tracer follows plain numbers only.")
    owned = _span(_owner(array))[0]
    storage = next(s for s in storages if s.start <= owned < max(s.end, s.start + 1))
    first = array.__array_interface__["data"][0] if array.size else storage.start
    if any(stride % array.itemsize for stride in array.strides) or (first - storage.start) % array.itemsize:
        raise NotTraceable(f"{name}: its elements do not lie at multiples of their size; pass a copy of it.")
    strides = tuple(stride // array.itemsize for stride in array.strides)
    offset = (first - storage.start) // array.itemsize
    return DeviceArray(
        storage, name, array.dtype, array.shape, strides, offset, is_writable=array.flags.writeable
    )


def _owner(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _span(owner: np.ndarray) -> tuple[int, int]:
    """Return the addresses where an array's memory starts and ends."""
    start, end = np.lib.array_utils.byte_bounds(owner)
    return (start, end) if owner.size else (start, start)


# -- places in the source that read or write an array, and the elements that lanes named there ---------------


ONE = np.zeros(1, np.int64)  # stands for an index that all lanes share


@dataclass(eq=False, slots=True)
class Site:
    """A place in the source that reads or writes an array, and what is known of its last access.

    Places of a function are numbered in the order in which they are come to; `loops` names the loops around.
    """

    line: int
    kind: str
    number: int
    loops: tuple[str, ...]
    place: LanePlaces | None = None
    rows: dict[tuple[str, str], Any] = field(default_factory=dict)  # of the tally, by array


@dataclass(eq=False, slots=True)
class LanePlaces:
    """The lanes' elements for one choice of index vectors, and what was counted for them."""

    array: DeviceArray
    mask: Mask
    vectors: tuple
    base: np.ndarray  # of each lane: the element, less what all lanes share
    low: list[int]  # the smallest index of each dimension among active lanes
    high: list[int]  # and the largest
    costs: dict[int, tuple[int, int]] = field(default_factory=dict)
