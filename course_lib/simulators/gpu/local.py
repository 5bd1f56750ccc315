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
    index, row, active = _place(machine, m, array, index)
    if row is None:
        if array.matrix is not None:
            number = np.ravel_multi_index(index, array.shape)
            _check_written(machine, active, array, array.known[number])
            return array.matrix[number].copy()
        if index not in array.cells:
            array.cells[index] = np.zeros(machine.lanes, array.dtype)
            array.partly[index] = np.zeros(machine.lanes, np.bool_)
        if index in array.partly:
            _check_written(machine, active, array, array.partly[index])
        return array.cells[index]
    matrix, lanes = array.as_matrix(), np.arange(machine.lanes)
    _check_written(machine, active, array, array.known[row, lanes])
    return matrix[row, lanes]


def _check_written(machine: Machine, active: np.ndarray, array: LocalArray, known: np.ndarray) -> None:
    """Report lanes that read what they have not written."""
    missing = active & ~known
    if missing.any():
        machine.report(
            "uninitialised",
            machine.line,
            int(np.argmax(missing)),
            f"an element of {array.name}, local memory, is read before it is written",
            array=array.name,
            times=int(missing.sum()),
        )


def store(machine: Machine, m: Mask, array: LocalArray, index: tuple, value: Value) -> None:
    if len(index) < len(array.shape):
        machine.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} are indexed")
    index, row, active = _place(machine, m, array, index)
    value = machine.as_elements(value, array.dtype)
    value = value if len(value) > 1 else np.full(machine.lanes, value[0], array.dtype)
    if row is not None:
        matrix, lanes = array.as_matrix(), np.flatnonzero(active)
        matrix[row[lanes], lanes] = value[lanes]
        array.known[row[lanes], lanes] = True
    elif array.matrix is not None:
        number = np.ravel_multi_index(index, array.shape)
        np.copyto(array.matrix[number], value, where=m.lanes)
        array.known[number] |= m.lanes
    elif m.count == machine.alive.count:
        array.cells[index] = value
        array.partly.pop(index, None)
    elif index in array.cells:
        array.cells[index] = np.where(m.lanes, value, array.cells[index])
        if index in array.partly:
            array.partly[index] = array.partly[index] | m.lanes
    else:
        array.cells[index], array.partly[index] = value, m.lanes


def _place(
    machine: Machine, m: Mask, array: LocalArray, index: tuple
) -> tuple[tuple, np.ndarray | None, np.ndarray]:
    """Return the index (the same for all lanes) or each lane's element number, and who is inside."""
    if len(index) != len(array.shape):
        machine.refuse(f"{array.name} has {len(array.shape)} dimensions, but {len(index)} indices are given")
    if not any(map(numbers.is_vector, index)):
        whole = tuple(machine.whole(i) for i in index)
        if all(-size <= i < size for i, size in zip(whole, array.shape, strict=True)):
            inside = tuple(i % size for i, size in zip(whole, array.shape, strict=True))
            return inside, None, m.lanes
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
    active = m.lanes & ~outside
    return (), array.row(tuple(np.where(active, i, 0) for i in vectors)), active
