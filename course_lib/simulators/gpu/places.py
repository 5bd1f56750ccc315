"""Places in the source that read or write an array, and the elements that lanes named there."""

from __future__ import annotations

from typing import Any

import numpy as np

from course_lib.simulators.gpu.arrays import DeviceArray
from course_lib.simulators.gpu.masks import Mask

ONE = np.zeros(1, np.int64)  # stands for an index that all lanes share


class Site:
    """A place in the source that reads or writes an array, and what is known of its last access.

    Places of a function are numbered in the order in which they are come to; `loops` names the loops around.
    """

    __slots__ = ("kind", "line", "loops", "number", "place", "rows")

    def __init__(self, line: int, kind: str, number: int, loops: tuple[str, ...] = ()) -> None:
        self.line, self.kind, self.number, self.loops = line, kind, number, loops
        self.place: Place | None = None
        self.rows: dict[tuple[str, str], Any] = {}


class Place:
    """The lanes' elements for one choice of index vectors, and what was counted for them."""

    __slots__ = ("array", "base", "costs", "high", "low", "mask", "vectors")

    def __init__(self, array: DeviceArray, mask: Mask, vectors: tuple) -> None:
        self.array, self.mask, self.vectors = array, mask, vectors
        self.costs: dict[int, tuple[int, int]] = {}
