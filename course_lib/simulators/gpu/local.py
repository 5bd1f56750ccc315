"""A thread's own memory: how lanes read and write the elements of a local array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.arrays import LocalArray, Part
from course_lib.simulators.gpu.masks import Mask
from course_lib.simulators.gpu.numbers import Value

if TYPE_CHECKING:
    from course_lib.simulators.gpu.machine import Machine


def load(machine: Machine, m: Mask, array: LocalArray, index: tuple) -> Value:
    if len(index) < len(array.shape):
        return Part(array, index)
    index, row = _place(machine, m, array, index)
    if row is None:
        if array.matrix is not None:
            return array.matrix[np.ravel_multi_index(index, array.shape)].copy()
        if index not in array.cells:
            machine.report(
                "uninitialised",
                machine.line,
                int(np.argmax(m.lanes)),
                f"{array.name}{list(index)} of local memory is read before it is written",
                array=array.name,
            )
            array.cells[index] = np.zeros(machine.lanes, array.dtype)
        return array.cells[index]
    return array.as_matrix()[row, np.arange(machine.lanes)]


def store(machine: Machine, m: Mask, array: LocalArray, index: tuple, value: Value) -> None:
    if len(index) < len(array.shape):
        machine.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} are indexed")
    index, row = _place(machine, m, array, index)
    value = machine.as_elements(value, array.dtype)
    value = value if len(value) > 1 else np.full(machine.lanes, value[0], array.dtype)
    if row is not None:
        matrix = array.as_matrix()
        lanes = np.flatnonzero(m.lanes)
        matrix[row[lanes], lanes] = value[lanes]
    elif array.matrix is not None:
        np.copyto(array.matrix[np.ravel_multi_index(index, array.shape)], value, where=m.lanes)
    elif index in array.cells and m.count != machine.alive.count:
        array.cells[index] = np.where(m.lanes, value, array.cells[index])
    else:
        array.cells[index] = value


def _place(machine: Machine, m: Mask, array: LocalArray, index: tuple) -> tuple[tuple, np.ndarray | None]:
    """Return the index (the same for all lanes), or each lane's element number."""
    if len(index) != len(array.shape):
        machine.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} indices are given")
    if not any(map(numbers.is_vector, index)):
        whole = tuple(machine.whole(i) for i in index)
        if all(-size <= i < size for i, size in zip(whole, array.shape, strict=True)):
            return tuple(i % size for i, size in zip(whole, array.shape, strict=True)), None
    vectors, outside = [], np.zeros(machine.lanes, np.bool_)
    for i, size in zip(index, array.shape, strict=True):
        i = machine.integers(numbers.vector(i, machine.lanes))
        i = np.where(i < 0, i + size, i)
        outside |= ((i < 0) | (i >= size)) & m.lanes
        vectors.append(i)
    if outside.any():
        lane = int(np.argmax(outside))
        machine.report(
            "out-of-bounds",
            machine.line,
            lane,
            f"an index of {array.name} ({' x '.join(map(str, array.shape))}, local memory) is outside of it",
            array=array.name,
            times=int(outside.sum()),
        )
    idle = outside | ~m.lanes
    return (), array.row(tuple(np.where(idle, 0, i) for i in vectors))
