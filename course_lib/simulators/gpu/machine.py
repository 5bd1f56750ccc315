"""Some blocks of a grid, run in lockstep: what a rewritten kernel calls while it runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from course_lib.simulators.gpu import counting, numbers
from course_lib.simulators.gpu.addresses import Addressed
from course_lib.simulators.gpu.arrays import (
    OBJECTS,
    ONE,
    ArrayPart,
    ConstantArray,
    DeviceArray,
    LocalArray,
    Site,
    Storage,
)
from course_lib.simulators.gpu.lanes import first_of
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Value
from course_lib.simulators.gpu.tally import Recorder

# -- a thread's own memory: how lanes read and write the elements of a local array ---------------------------


def _load_local(machine: LaneMachine, m: Mask, array: LocalArray, index: tuple) -> Value:
    if len(index) < len(array.shape):
        return ArrayPart(array, index)
    at, active = _local_place(machine, m, array, index)
    if (type(at) is not int or at not in array.complete) and (missing := active & ~array.known[at]).any():
        what = f"an element of {array.name}, local memory, is read before it is written"
        machine.report("uninitialised", machine.line, first_of(missing), what, array.name)
    return array.elements[at].copy()


def _store_local(machine: LaneMachine, m: Mask, array: LocalArray, index: tuple, value: Value) -> None:
    at, active = _local_place(machine, m, array, index)
    value = machine.as_elements(value, array.dtype)
    if type(at) is int and m.count == machine.alive.count:  # the same element for all lanes
        array.elements[at] = value
        if at not in array.complete:
            array.known[at] = True
            array.complete.add(at)
    elif type(at) is int:
        np.copyto(array.elements[at], value, where=active)
        array.known[at] |= active
    else:
        row, lanes = at[0][active], np.flatnonzero(active)
        array.elements[row, lanes] = value[lanes] if len(value) > 1 else value
        array.known[row, lanes] = True


def _local_place(
    machine: LaneMachine, m: Mask, array: LocalArray, index: tuple
) -> tuple[int | tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the row of the element that all lanes name, or (row, lane) of each lane's, and who is inside."""
    machine.check_count(array, index)
    if not any(map(numbers.is_vector, index)):
        whole = tuple(machine.whole(i) for i in index)
        if all(-size <= i < size for i, size in zip(whole, array.shape, strict=True)):
            inside = [i % size for i, size in zip(whole, array.shape, strict=True)]
            return int(array.rows_of(np.ravel_multi_index(inside, array.shape))), m.lanes
    number, outside = np.zeros(machine.lanes, np.int64), np.zeros(machine.lanes, np.bool_)
    for i, size in zip(index, array.shape, strict=True):
        i = machine.integers(numbers.vector(i, machine.lanes))
        i = np.where(i < 0, i + size, i)
        outside |= (i < 0) | (i >= size)
        number = number * size + i
    outside &= m.lanes
    if outside.any():
        shape = " x ".join(map(str, array.shape))
        what = f"an index of {array.name} ({shape}, local memory) is outside of it"
        machine.report("out-of-bounds", machine.line, first_of(outside), what, array.name)
    active = m.lanes & ~outside
    return (array.rows_of(np.where(active, number, 0)), np.arange(machine.lanes)), active


# -- the machine ---------------------------------------------------------------------------------------------


#: CUDA C++ Programming Guide, technical specifications per compute capability: the same from 5.0 to 9.0.
MOST_STATIC_BYTES = 48 * 1024  # shared memory of a block, unless it is dynamic
MOST_LOCAL_BYTES = 512 * 1024  # local memory of a thread


class LaneMachine(Addressed):
    """The lanes of some blocks with their memory; `dynamic_bytes` of shared memory come with the launch."""

    def __init__(self, *launch: Any, recorder: Recorder | None, dynamic_bytes: int) -> None:
        super().__init__(*launch, recorder=recorder)
        self.dynamic_bytes = dynamic_bytes
        self.shared: dict[Any, Any] = {}  # by place in the source, so that a loop gets the same array again
        self.locals: dict[Any, LocalArray] = {}
        self._static_bytes = 0

    # -- arrays --------------------------------------------------------------------------------------------

    def shared_array(self, place: Any, name: str, shape: tuple[int, ...], dtype: np.dtype) -> DeviceArray:
        """Return the block's array of shared memory declared at a place in the source."""
        place = place, shape, dtype  # a device function may get them as arguments
        if place not in self.shared:
            size = math.prod(shape)
            if size == 0:
                self.shared[place] = self._dynamic_array(name, dtype)
            else:
                self._static_bytes += size * dtype.itemsize
                if not 0 < self._static_bytes <= MOST_STATIC_BYTES:
                    self.refuse(
                        f"with {name} a block declares {self._static_bytes:,} bytes of shared memory, but it "
                        f"has {MOST_STATIC_BYTES:,} at most (more only as dynamic shared memory)"
                    )
                storage = self._shared_storage(size * dtype.itemsize, dtype.itemsize)
                self.shared[place] = self._block_array(storage, name, dtype, shape)
        return self.shared[place]

    def _dynamic_array(self, name: str, dtype: np.dtype) -> DeviceArray:
        """Return dynamic shared memory: all arrays of size 0 are one and the same memory."""
        if "dynamic" not in self.shared:
            if not self.dynamic_bytes:
                self.refuse(
                    f"{name} is dynamic shared memory (its shape is 0), but the launch gives it no bytes: "
                    "pass shared_bytes= to trace()"
                )
            self.shared["dynamic"] = self._shared_storage(self.dynamic_bytes, 1)
        shape = (self.dynamic_bytes // dtype.itemsize,)
        return self._block_array(self.shared["dynamic"], name, dtype, shape)

    def _shared_storage(self, block_bytes: int, unit: int) -> Storage:
        aligned = -(-block_bytes // 16) * 16  # so that no two blocks share a word of a bank
        storage = Storage("shared", np.zeros(self.slots * aligned, np.uint8), unit)
        storage.watch(is_loaded=True, has_atomics=True)
        storage.written = np.zeros(storage.memory.nbytes // unit, np.bool_)
        storage.unwritten = self.slots * block_bytes // unit
        self.storages.append(storage)
        self.tally.shared_bytes += block_bytes
        return storage

    def _block_array(self, storage: Storage, name: str, dtype: np.dtype, shape: tuple) -> DeviceArray:
        strides = tuple(math.prod(shape[along:]) for along in range(1, len(shape) + 1))
        size = storage.memory.nbytes // self.slots // dtype.itemsize
        return DeviceArray(storage, name, dtype, shape, strides, block_size=size)

    def local_array(
        self, m: Mask, place: Any, name: str, shape: tuple[int, ...], dtype: np.dtype
    ) -> LocalArray:
        """Return the threads' own array declared at a place in the source; it keeps nothing of before."""
        place = place, shape, dtype
        if place in self.locals:
            self.locals[place].forget(m)
        else:
            size = math.prod(shape) * dtype.itemsize
            if not 0 <= size <= MOST_LOCAL_BYTES:
                self.refuse(
                    f"{name} has {size:,} bytes, but a thread's local memory has {MOST_LOCAL_BYTES:,}"
                )
            self.locals[place] = LocalArray(name, dtype, shape, self.lanes)
        return self.locals[place]

    # -- reading and writing -------------------------------------------------------------------------------

    def load(self, site: Site, m: Mask, array: Any, index: tuple) -> Value:
        """Return array[index]."""
        if type(array) is DeviceArray:
            return self._load(site, m, array, index)
        if type(array) is LocalArray:
            return _load_local(self, m, array, index)
        if type(array) is ArrayPart:
            return self.load(site, m, array.array, array.prefix + index)
        if isinstance(array, tuple):
            return self._item(array, index)
        if type(array) is ConstantArray:
            return self._load_constant(m, array, index)
        return self.refuse(
            f"a {type(array).__name__} is indexed, but the tracer indexes arrays and tuples only"
        )

    def _load(self, site: Site, m: Mask, array: DeviceArray, index: tuple) -> Value:
        if len(index) < len(array.shape):
            return self._part(array, index)
        wanted = m
        m, place, shift = self.find(site, m, array, index)
        if not m:
            return numbers.scalar(array.dtype.type(0))
        self.count_access(site, place, shift)
        storage = array.storage
        if storage.unwritten:
            self.check_written(site, array, place, shift)
        if storage.shadow is not None:
            self.watch_access(site, array, place, shift, ONE)
        if not place.vectors and not array.block_size:
            return numbers.scalar(array.typed[array.offset + shift])
        out = np.empty(self.lanes, array.dtype)
        if array.bits is None:
            np.take(array.typed, place.base + (array.offset + shift), out=out)
        else:
            counting.gather(array.bits, place.base, array.offset + shift, out.view(array.bits.dtype))
        if m is not wanted:
            out[~m.lanes] = 0  # to those outside of the array
        return out

    def store(self, site: Site, m: Mask, array: Any, index: tuple, value: Value) -> None:
        """Do array[index] = value."""
        if type(array) is ArrayPart:
            return self.store(site, m, array.array, array.prefix + index, value)
        if type(array) is LocalArray:
            return _store_local(self, m, array, index, value)
        if type(array) is not DeviceArray:
            return self.refuse(
                "something is stored into what is not an array of global, shared or local memory"
            )
        if not array.is_writable:
            return self.refuse(f"the kernel writes {array.name}, which is a read-only NumPy array")
        m, place, shift = self.find(site, m, array, index)
        if not m:
            return None
        self.count_access(site, place, shift)
        value = self.as_elements(value, array.dtype)
        storage = array.storage
        bits = value if array.bits is None else value.view(array.bits.dtype)
        if storage.unwritten:
            self.mark_written(array, place, shift)
        if storage.shadow is not None:
            self.watch_access(site, array, place, shift, bits)
        if array.bits is None:
            at = place.base[m.lanes] + (array.offset + shift)
            array.typed[at] = value[m.lanes] if len(value) > 1 else value
        else:
            counting.scatter(array.bits, m.lanes, place.base, array.offset + shift, bits)
        return None

    def as_elements(self, value: Value, dtype: np.dtype) -> np.ndarray:
        """Return a value as a vector of an array's type: of all lanes, or of length 1."""
        if isinstance(value, (*OBJECTS, tuple)) or value is None:
            self.refuse("an array, a tuple or None is stored as an element")
        value = numbers.cast(value, dtype)
        return value if type(value) is np.ndarray else np.array([value], dtype)

    def _part(self, array: DeviceArray, index: tuple) -> Any:
        """Return A[i]: a view if all threads mean the same row and there is one."""
        if any(map(numbers.is_vector, index)):
            return ArrayPart(array, index)
        rows = tuple(map(self.whole, index))
        if all(-size <= row < size for row, size in zip(rows, array.shape, strict=False)):
            return array.sliced(rows)
        return ArrayPart(array, index)  # an access to an element of it is out of bounds

    def sliced(self, m: Mask, array: Any, index: tuple) -> Any:
        """Return array[index], a view: the bounds of slices must be the same for all threads."""
        while 1 < len(index) <= len(array.shape) and index[-1] == slice(None):
            index = index[:-1]  # a[i, :] is a[i]
        if type(array) is not DeviceArray:
            self.refuse("only arrays of global and shared memory can be sliced")
        if not any(isinstance(i, slice) for i in index):
            return self._part(array, index)
        if len(index) > len(array.shape):
            self.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} are sliced")
        parts = []
        for i in index:
            edges = (i.start, i.stop, i.step) if isinstance(i, slice) else (i,)
            if any(numbers.is_vector(edge) for edge in edges):
                self.refuse(f"{array.name} is sliced differently in different threads; index its elements")
            parts.append(i if isinstance(i, slice) else self.whole(i))
        for row, size in zip(parts, array.shape, strict=False):
            if not isinstance(row, slice) and not -size <= row < size:
                self.refuse(f"{array.name} has {size} rows here, but row {row} is asked for")
        return array.sliced(tuple(parts))

    def _item(self, values: tuple, index: tuple) -> Value:
        if len(index) != 1 or numbers.is_vector(index[0]):
            self.refuse("a tuple is indexed by a number that differs between threads")
        number = self.whole(index[0])
        if not -len(values) <= number < len(values):
            self.refuse(f"a tuple of {len(values)} has no element {number}")
        return values[number]

    def _load_constant(self, m: Mask, array: ConstantArray, index: tuple) -> Value:
        self.check_count(array, index)
        at = tuple(numbers.plain(i) for i in index)
        at = tuple(np.where(m.lanes, i, 0) if type(i) is np.ndarray else i for i in at)
        try:
            value = array.values[at]
        except IndexError as problem:
            self.refuse(f"{array.name}: {problem}")
        return value if type(value) is np.ndarray and value.ndim else numbers.scalar(value)
