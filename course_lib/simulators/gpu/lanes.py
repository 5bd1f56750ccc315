"""The lanes of some blocks in lockstep: their places in the grid, and the control flow they go through.

All threads of the blocks are lanes of one wide vector machine, block after block, each block padded to whole
warps. Every method takes the mask of the lanes that execute it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.simulators.gpu import numbers
from course_lib.simulators.gpu.arrays import ARRAYS, OBJECTS, Triple
from course_lib.simulators.gpu.counting import WARP
from course_lib.simulators.gpu.masks import Branch, Mask
from course_lib.simulators.gpu.numbers import Value
from course_lib.simulators.gpu.source import NotTraceable
from course_lib.simulators.gpu.tally import Hazard, KernelTally

# -- the turns of a loop, and the lanes that are still in it -------------------------------------------------


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


class WhileLoop(SharedLoop):
    """A while loop: it turns until the condition holds for no lane."""

    def __init__(self, machine: Lanes, branch: Branch, m: Mask) -> None:
        super().__init__(machine, m, range(0))
        self._branch, self._count = branch, 0

    def test(self, condition: Callable[[Mask], Value]) -> bool:
        """Evaluate the condition for the lanes in the loop; False when it holds for none."""
        if self._count >= LONGEST_LOOP:
            self.machine.refuse(
                f"this loop has turned {LONGEST_LOOP:,} times and does not end; threads that wait for other "
                "threads (spin locks, flags) cannot run in lockstep"
            )
        self._count += 1
        if self.m:
            self.m, _ = self.machine.split(self._branch, self.m, condition(self.m))
        return bool(self.m)


class LaneLoop(WhileLoop):
    """A for loop whose bounds differ between lanes: it turns until the last one is through."""

    def __init__(
        self, machine: Lanes, branch: Branch, m: Mask, start: Value, stop: Value, step: Value
    ) -> None:
        super().__init__(machine, branch, m)
        self._next, self._stop, self._step = start, stop, step
        self._is_upwards = numbers.COMPARE["Gt"](step, 0)

    def step(self) -> bool:
        """Go to the next turn; False when no lane is left."""
        self.k = self._next
        if not self.test(self._goes_on):
            return False
        self._next = numbers.plain(numbers.add(self.k, self._step))
        return True

    def _goes_on(self, m: Mask) -> Value:
        below = numbers.COMPARE["Lt"](self.k, self._stop)
        if self._is_upwards is True:
            return below
        return np.where(self._is_upwards, below, numbers.COMPARE["Gt"](self.k, self._stop))


# -- the lanes -----------------------------------------------------------------------------------------------


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = _Undefined()
_ASSERT = "nothing is checked, as on a GPU without @cuda.jit(debug=True)"


@dataclass(eq=False, slots=True)
class Partly:
    """The value of a variable to which only some lanes have assigned one."""

    value: Value
    mask: Mask


class Lanes:
    """The lanes of some blocks. `start` is the mask of all threads there are."""

    def __init__(self, tally: KernelTally, file: str, grid: tuple, block: tuple, blocks: np.ndarray) -> None:
        threads = block[0] * block[1] * block[2]
        self.tally, self.file, self.line = tally, file, 0
        self.grid, self.block, self.threads = grid, block, threads
        self.block_lanes = -(-threads // WARP) * WARP
        self.slots = len(blocks)
        self.lanes = self.slots * self.block_lanes
        inside = np.tile(np.arange(self.block_lanes), self.slots)
        self.start = self.alive = Mask.of(inside < threads)
        self.nobody = Mask(np.zeros(self.lanes, np.bool_), 0, 0)
        inside = np.minimum(inside, threads - 1)
        self.thread_index = coordinates(inside, block)
        self.block_number = number = np.repeat(np.asarray(blocks, np.int64), self.block_lanes)
        self.block_index = coordinates(int(number[0]) if self.slots == 1 else number, grid)
        self.lane_index = np.arange(self.lanes, dtype=np.int64) % WARP
        self.global_thread = number * self.block_lanes + np.arange(self.lanes) % self.block_lanes

    # -- control flow --------------------------------------------------------------------------------------

    def split(self, branch: Branch, m: Mask, condition: Value) -> tuple[Mask, Mask]:
        """Return the lanes for which the condition holds, and the others."""
        yes, no, together = branch.split(m, condition)
        self.tally.decisions[branch.line] += m.warps
        self.tally.divided[branch.line] += together
        return yes, no

    def all_of(self, m: Mask, *terms: Any) -> Value:
        """Return a and b and …: the first that is false, else the last one."""
        return self._in_turn(numbers.truth, m, terms)

    def any_of(self, m: Mask, *terms: Any) -> Value:
        """Return a or b or …: the first that is true, else the last one."""
        return self._in_turn(self.negated, m, terms)

    def _in_turn(self, goes_on: Callable[[Value], Value], m: Mask, terms: tuple) -> Value:
        """Evaluate each term by those lanes that go on after what they got from the terms before it."""
        result = terms[0]
        for term in terms[1:]:
            further = goes_on(result)
            m = self._masked(m, further)
            if not m:
                break
            result = self._either(further, term(m), result)
        return result

    def contained(self, m: Mask, value: Value, values: Any) -> Value:
        """Return `value in values` for a tuple of numbers."""
        if not isinstance(values, tuple):
            self.refuse("`in` looks for a number in a tuple only")
        terms = (numbers.COMPARE["Eq"](value, one) for one in values)
        return functools.reduce(numbers.BINARY["BitOr"], terms, False)

    def chained(self, m: Mask, left: Value, *links: tuple[Callable, Callable]) -> Value:
        """Return a < b < …: an operand is evaluated by the lanes for which the comparisons before it hold."""
        holds: Value = True
        for compare, operand in links:
            m = self._masked(m, holds)
            if not m:
                break
            right = operand(m)
            holds = self._either(holds, compare(m, left, right), holds)
            left = right
        return holds

    def _masked(self, m: Mask, condition: Value) -> Mask:
        if type(condition) is bool:
            return m if condition else self.nobody
        return Mask.of(m.lanes & condition)

    @staticmethod
    def _either(condition: Value, one: Value, other: Value) -> Value:
        if type(condition) is bool:
            return one if condition else other
        return numbers.where(condition, one, other)

    @staticmethod
    def negated(value: Value) -> Value:
        """Return not value."""
        value = numbers.truth(value)
        return (not value) if type(value) is bool else ~value

    def choose(self, branch: Branch, m: Mask, condition: Value, one: Callable, other: Callable) -> Value:
        """Return `one if condition else other`."""
        yes, no = self.split(branch, m, condition)
        if not no:
            return one(yes)
        if not yes:
            return other(no)
        return self.merge(yes, one(yes), other(no))

    def merge(self, m: Mask, new: Value, old: Value) -> Value:
        """Return `new` for the lanes of the mask and `old` for the others."""
        if old is UNDEFINED or m.count == self.alive.count:
            return new
        if isinstance(new, tuple):
            if not isinstance(old, tuple) or len(new) != len(old):
                self.refuse("a variable is a tuple for some threads and something else for others")
            return tuple(self.merge(m, one, two) for one, two in zip(new, old, strict=True))
        if isinstance(new, OBJECTS) or isinstance(old, OBJECTS):
            if new is old:
                return new
            self.refuse("a variable names different arrays in different threads; index one array instead")
        return numbers.where(m.lanes, new, old)

    def assigned(self, m: Mask, new: Value, old: Value, home: Mask) -> Any:
        """Return what a variable is after an assignment, if other lanes of `home` may have none yet."""
        if m.count == self.alive.count:
            return new
        if old is UNDEFINED:
            return Partly(new, m)
        if type(old) is not Partly:
            return self.merge(m, new, old)
        value = self.merge(m, new, old.value)
        known = old.mask.joined(m).within(home)
        return value if known.count == home.count else Partly(value, known)

    def leave(self, m: Mask) -> None:
        """Note that these lanes have returned from the kernel."""
        self.alive = self.alive.without(m)

    def defined(self, m: Mask, value: Any, name: str) -> Value:
        """Return a variable's value, if it has one; report lanes that have assigned none."""
        if value is UNDEFINED:
            self.refuse(f"{name} is used before anything is assigned to it")
        if type(value) is not Partly:
            return value
        if m is not value.mask:
            missing = m.lanes & ~value.mask.lanes
            if missing.any():
                what = f"{name} is used before anything is assigned to it"
                self.report("uninitialised", self.line, first_of(missing), what, name)
        return value.value

    def report(
        self,
        kind: str,
        line: int,
        found: tuple[int, int],
        what: str,
        array: str = "",
        remark: bool = False,
        others: tuple = (),
        **more: Any,
    ) -> None:
        """Note a hazard, or what is worth a look, that lanes have met: `found` is `first_of` them.

        others: threads that it is about as well. more: fields of `Hazard`.
        """
        lane, times = found
        threads = (self.thread_of(lane), *others)
        hazard = Hazard(kind, line, self.block_of(lane), threads, what, array=array, times=times, **more)
        self.tally.note(hazard, remark)

    def left_out(self, m: Mask, statement: str) -> None:
        """Note that a line does nothing here."""
        if m:
            why = {"print": "a traced kernel prints nothing", "assert": _ASSERT}[statement]
            what = f"{statement} is left out here: {why}"
            self.report("left-out", self.line, first_of(m.lanes), what, remark=True)

    def loop(self, branch: Branch, m: Mask, *bounds: Value) -> Any:
        """Return the turns of `for … in range(*bounds)`; of a float Numba drops the fraction."""
        bounds = tuple(numbers.plain(bound) for bound in bounds)
        for bound in bounds:
            if isinstance(bound, (*OBJECTS, tuple)) or numbers.kind(bound) not in "iubf":
                self.refuse("range() was given something that is no number")
        whole = np.dtype(np.int64)
        bounds = tuple(numbers.cast(one, whole) if numbers.kind(one) == "f" else one for one in bounds)
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if any(type(bound) is np.ndarray for bound in (start, stop, step)):
            return LaneLoop(self, branch, m, start, stop, step)
        if not step:
            self.refuse("range() was given a step of 0")
        return SharedLoop(self, m, range(int(start), int(stop), int(step)))

    def loop_over(self, m: Mask, values: Any) -> SharedLoop:
        """Return the turns of `for … in values`: a tuple of numbers of one kind, as Numba wants it."""
        if (
            not isinstance(values, tuple)
            or not values
            or any(isinstance(v, (*OBJECTS, tuple)) for v in values)
        ):
            self.refuse("a for loop must go over range(…) or a tuple of one or more numbers")
        if len({(numbers.kind(value), numbers.is_vector(value)) for value in values}) > 1:
            self.refuse("a for loop goes over a tuple of different types, which Numba does not compile")
        return SharedLoop(self, m, values)

    def unpacked(self, value: Any, count: int) -> tuple:
        """Return a tuple that is assigned to so many variables."""
        if not isinstance(value, tuple) or len(value) != count:
            self.refuse(f"{count} variables are assigned from something that is not a tuple of {count}")
        return value

    @staticmethod
    def as_index(value: Any) -> tuple:
        """Return an index as a tuple."""
        return value if isinstance(value, tuple) else (value,)

    def shape_of(self, value: Any) -> tuple[int, ...]:
        """Return the shape of an array that the kernel declares."""
        shape = self.as_index(value)
        for size in shape:
            if type(size) is not int or size < 0:
                self.refuse("the shape of a shared or local array must be whole numbers known when compiling")
        return shape

    def dtype_of(self, value: Any) -> np.dtype:
        """Return the type of an array that the kernel declares."""
        if not isinstance(value, np.dtype):
            self.refuse("the dtype of a shared or local array must be a number type known when compiling")
        return value

    def attribute(self, value: Any, name: str) -> Any:
        """Return shape, size or ndim of an array, or a part of a complex number."""
        if isinstance(value, ARRAYS):
            if name in ("shape", "dtype"):
                return getattr(value, name)
            if name == "size":
                return math.prod(value.shape)
            if name == "ndim":
                return len(value.shape)
        elif isinstance(value, Triple):
            if name in Triple.__slots__:
                return getattr(value, name)
        elif name in ("real", "imag") and numbers.kind(numbers.plain(value)) == "c":
            return getattr(value, name)
        return self.refuse(f".{name} is not supported in a traced kernel")

    def call(self, function: Callable, m: Mask, *arguments: Any) -> Any:
        """Return what an intrinsic gives."""
        try:
            return function(self, m, *arguments)
        except TypeError as problem:
            if "positional argument" not in str(problem):
                raise
            return self.refuse(
                f"a function is called with {len(arguments)} arguments, which it does not take"
            )

    def back(self, file: str, line: int, value: Any) -> Any:
        """Return what a device function gave, at the line that called it."""
        self.file, self.line = file, line
        return value

    def refuse(self, sentence: str) -> None:
        """Stop with a sentence about the current line."""
        raise NotTraceable(f"{sentence}.", self.file, self.line)

    def block_of(self, lane: int) -> tuple[int, int, int]:
        """Return the block of a lane as (x, y, z)."""
        return coordinates(int(self.block_number[lane]), self.grid)

    def thread_of(self, lane: int) -> tuple[int, int, int]:
        """Return a lane's thread as (x, y, z)."""
        return coordinates(lane % self.block_lanes, self.block)


def first_of(where: np.ndarray) -> tuple[int, int]:
    """Return the first lane of some, and how many there are."""
    return int(np.argmax(where)), int(where.sum())


def coordinates(number: Any, size: tuple[int, int, int]) -> tuple:
    """Return (x, y, z) of a number, or of several, in a box of this size, x running fastest."""
    return (number % size[0], number // size[0] % size[1], number // (size[0] * size[1]))
