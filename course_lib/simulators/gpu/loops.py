"""The turns of a loop, and the lanes that are still in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.masks import Branch, Mask
from course_lib.simulators.gpu.numbers import Value

if TYPE_CHECKING:
    from course_lib.simulators.gpu.lanes import Lanes

LONGEST_LOOP = 10_000_000  # turns


class SharedLoop:
    """A for loop whose turns are the same for all lanes: a range, or a tuple of values."""

    def __init__(self, machine: Lanes, m: Mask, turns: range | tuple) -> None:
        self.machine, self.m, self._entered = machine, m, m
        self._turns, self.k = iter(turns), 0
        if len(turns) > LONGEST_LOOP:
            machine.refuse(f"this loop would turn {len(turns):,} times, more than {LONGEST_LOOP:,}")

    def step(self) -> bool:
        """Go to the next turn; False when there is none."""
        if self.m:
            following = next(self._turns, None)
            if following is not None:
                self.k = following
                return True
        return False

    def drop(self, m: Mask) -> None:
        """Take lanes out of the loop that go on after it (break)."""
        self.m = self.m.without(m)

    def end(self, m: Mask) -> None:
        """Take lanes out of the loop and of what follows it (return)."""
        self.m = self.m.without(m)
        self._entered = self._entered.without(m)

    def out(self) -> Mask:
        """Return the lanes that go on after the loop."""
        return self._entered


class LaneLoop(SharedLoop):
    """A for loop whose bounds differ between lanes: it turns until the last one is through."""

    def __init__(
        self, machine: Lanes, branch: Branch, m: Mask, start: Value, stop: Value, step: Value
    ) -> None:
        super().__init__(machine, m, range(0))
        self._branch, self._next, self._stop, self._step = branch, start, stop, step
        self._is_upwards = numbers.COMPARE["Gt"](step, 0)
        self._count = 0

    def step(self) -> bool:
        """Go to the next turn; False when no lane is left."""
        self._count = _one_more(self.machine, self._count)
        self.k = self._next
        goes_on = numbers.COMPARE["Lt"](self.k, self._stop)
        if self._is_upwards is not True:
            above = numbers.COMPARE["Gt"](self.k, self._stop)
            goes_on = np.where(self._is_upwards, goes_on, above)
        self.m, _ = self.machine.split(self._branch, self.m, goes_on)
        if not self.m:
            return False
        self._next = numbers.plain(numbers.add(self.k, self._step))
        return True


class WhileLoop(SharedLoop):
    """A while loop: it turns until the condition holds for no lane."""

    def __init__(self, machine: Lanes, branch: Branch, m: Mask) -> None:
        super().__init__(machine, m, range(0))
        self._branch, self._count = branch, 0

    def test(self, condition: Callable[[Mask], Value]) -> bool:
        """Evaluate the condition for the lanes in the loop; False when it holds for none."""
        self._count = _one_more(self.machine, self._count)
        if self.m:
            self.m, _ = self.machine.split(self._branch, self.m, condition(self.m))
        return bool(self.m)


def _one_more(machine: Lanes, count: int) -> int:
    if count >= LONGEST_LOOP:
        machine.refuse(
            f"this loop has turned {LONGEST_LOOP:,} times and does not end; threads that wait for other "
            "threads (spin locks, flags) cannot run in lockstep"
        )
    return count + 1
