"""How a kernel that is an answer is launched, and what limits on its cost look like.

A kernel never runs as Python: `simulators.gpu` runs its text in lockstep and counts while it runs (`counts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from course_lib.grading.counts import Counts

__all__ = ["CountLimit", "Counts", "Launch", "Shape"]


class CountLimit(Protocol):
    """A limit on what a launch may cost; `wanted` tells the learner what it asks for.

    A limit that has `rows(counts)` as well is shown with these rows where it is missed.
    """

    wanted: str

    def judge(self, counts: Counts, args: tuple) -> str | None:
        """Return None if the limit is kept, else one sentence: what, got, wanted, how to mend it."""


@dataclass(frozen=True)
class Shape:
    """One launch as plain values: what the sandbox is told of it."""

    grid: tuple[int, ...]
    block: tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """How a kernel that is an answer is launched, and which argument holds the result afterwards.

    `grid` and `block` get the case's arguments. `result` is the place of the argument that the kernel writes:
    its value afterwards is compared. `limits` are judged in order on every case.
    """

    grid: Callable[..., tuple[int, ...]]
    block: Callable[..., tuple[int, ...]]
    result: int
    limits: tuple[CountLimit, ...] = ()

    def shape(self, args: tuple) -> Shape:
        """Return the launch for these arguments."""
        return Shape(tuple(self.grid(*args)), tuple(self.block(*args)))
