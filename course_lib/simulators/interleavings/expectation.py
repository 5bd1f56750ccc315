"""What is right at the end: given values, a function of them, or what whole threads in some order give."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from course_lib.simulators.interleavings.program import ThreadProgram
from course_lib.simulators.interleavings.replay import replay

Expect = Mapping[str, Any] | Callable[[dict[str, Any]], bool | str]
Judge = Callable[[tuple], str | None]  # final cells -> the sentence that says what is wrong with them
ASK = "say what is right at the end with expect=, final values or a function of them."


class NotJudged(TypeError):
    """The function given as `expect` returned something that is neither True nor False nor a sentence."""


def expectation(expect: Expect | None, program: ThreadProgram, time_limit_s: float) -> Judge:
    """Return judge(final cells): None, or the sentence that says what is wrong with them."""
    if callable(expect):
        return _by_function(expect, program)
    return Serial(program, time_limit_s) if expect is None else _by_values(expect, program)


def _by_function(expect: Callable[[dict[str, Any]], bool | str], program: ThreadProgram) -> Judge:
    def judge(cells: tuple) -> str | None:
        said = expect(program.heap.plain(cells))
        if isinstance(said, str) and said.strip():
            return said
        if not _is_truth(said):
            raise NotJudged(
                f"expect returned {said!r}, but it must return True (right), False (wrong), or a sentence "
                "that names the fault: is a return missing, or a comparison?"
            )
        return None if said else "the final values are not what they should be"

    return judge


def _is_truth(said: object) -> bool:
    """Whether this is a bool, or one of NumPy's (known by its name: NumPy need not be loaded)."""
    kind = type(said)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def _by_values(expect: Mapping[str, Any], program: ThreadProgram) -> Judge:
    heap = program.heap
    for name in expect:
        if name not in heap.plain(heap.cells):
            raise ValueError(f"expect names {name!r}, which is not among the shared variables.")

    def judge(cells: tuple) -> str | None:
        final = heap.plain(cells)
        for name, wanted in expect.items():
            if final[name] != wanted:
                return f"{name} ends as {final[name]!r} instead of {wanted!r}"
        return None

    return judge


class Serial:
    """Accepts what some order of whole threads gives: all orders are tried, of 6 threads 720.

    `allowed` are these final cells. Where it is empty no order ends, and nothing is known to be wrong.
    """

    def __init__(self, program: ThreadProgram, time_limit_s: float) -> None:
        self._heap = program.heap
        self.allowed: set[tuple] = set()
        until = time.perf_counter() + time_limit_s
        for order in _orders(program):
            one = replay(program, (), order=order)
            if one.ended:
                self.allowed.add(one.cells)
            if time.perf_counter() > until:
                raise ValueError(
                    f"Trying the orders of {len(program.start)} whole threads takes longer than "
                    f"{time_limit_s:g} s: {ASK}"
                )

    def __call__(self, cells: tuple) -> str | None:
        if not self.allowed or cells in self.allowed:
            return None
        final = self._heap.plain(cells)
        others = [self._heap.plain(one) for one in self.allowed]
        apart = [name for name in final if any(one[name] != final[name] for one in others)]
        said = ", ".join(f"{name} ends as {final[name]!r}" for name in apart)
        right = " or ".join(sorted({", ".join(f"{one[name]!r}" for name in apart) for one in others}))
        return f"{said}, but one thread after the other gives {right}"


def _orders(program: ThreadProgram) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the threads; threads that start alike (same function, same arguments) only once."""
    seen = set()
    for order in itertools.permutations(range(len(program.start))):
        starts = tuple(program.start[thread] for thread in order)
        if starts not in seen:
            seen.add(starts)
            yield order
