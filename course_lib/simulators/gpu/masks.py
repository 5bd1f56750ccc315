"""Which lanes take part: every statement runs under a mask, and control flow makes smaller ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from course_lib.simulators.gpu import counting, numbers
from course_lib.simulators.gpu.numbers import Value


class Mask:
    """Active lanes (bool vector), how many they are and how many warps have one."""

    __slots__ = ("_by_warp", "count", "lanes", "warps")

    def __init__(self, lanes: np.ndarray, count: int, warps: int) -> None:
        self.lanes, self.count, self.warps = lanes, count, warps
        self._by_warp: np.ndarray | None = None

    def __bool__(self) -> bool:
        return self.count > 0

    @classmethod
    def of(cls, lanes: np.ndarray) -> Mask:
        """Return the mask of some lanes."""
        return cls(lanes, *counting.count(lanes))

    @property
    def by_warp(self) -> np.ndarray:
        """Whether each warp has an active lane."""
        if self._by_warp is None:
            self._by_warp = self.lanes.reshape(-1, counting.WARP).any(axis=1)
        return self._by_warp

    def without(self, other: Mask) -> Mask:
        """Return this mask less another."""
        if not other or not self:
            return self
        return Mask.of(self.lanes & ~other.lanes)

    def within(self, other: Mask) -> Mask:
        """Return what both have."""
        if other.count == len(other.lanes):
            return self
        return Mask.of(self.lanes & other.lanes)

    def joined(self, other: Mask) -> Mask:
        """Return what either has."""
        if not other:
            return self
        if not self:
            return other
        return Mask.of(self.lanes | other.lanes)


@dataclass(eq=False, slots=True)
class Branch:
    """A place where lanes may part; it remembers the last parting, which loops tend to repeat."""

    line: int
    _condition: Value = None
    _mask: Mask | None = None
    _parted: tuple[Mask, Mask, int] | None = None

    def split(self, mask: Mask, condition: Value) -> tuple[Mask, Mask, int]:
        """Return the lanes for which the condition holds, the others, and how many warps are in both."""
        condition = numbers.truth(condition)
        if type(condition) is bool:
            nobody = Mask(np.zeros_like(mask.lanes), 0, 0)
            return (mask, nobody, 0) if condition else (nobody, mask, 0)
        if condition is self._condition and mask is self._mask:
            return self._parted
        yes, no = np.empty_like(mask.lanes), np.empty_like(mask.lanes)
        y, y_warps, n, n_warps = counting.split(mask.lanes, condition, yes, no)
        together = y_warps + n_warps - mask.warps
        one = mask if y == mask.count else Mask(yes, y, y_warps)
        two = mask if n == mask.count else Mask(no, n, n_warps)
        self._condition, self._mask, self._parted = condition, mask, (one, two, together)
        return self._parted
