"""How many reads that miss its caches one core keeps in flight: several pointer chases at once.

    found = measure()
    found.most, found.table()

One chase (`measure.latency`) waits for every read. Several that know nothing of each other wait together:
while one number is on its way, the core asks for that of the next chase. By Little's law (Little 1961) reads
in flight = reads per second x latency. A core has a fixed number of places for reads that have missed L1
(line fill buffers, or MSHRs); once they are taken more chases do not help.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from course_lib.measure import hardware, latency
from course_lib.measure.clocks import HAS_THREAD_CLOCK
from course_lib.measure.jit import compiled
from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import Shown, Table, digits

CHASES = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32)
BEYOND_L2 = 16  # times the size of L2, the last cache that a core has for itself
SMALLEST, LARGEST = 2**24, 2**26  # bytes of the working set
ROUNDS = 5
WARM_UPS = 64  # passes before, of all chases at once: only then does the last cache keep what comes again


@dataclass(frozen=True, repr=False)
class InFlight(Shown):
    """Nanoseconds a read, the shortest of several passes, against the number of chases at once."""

    chases: tuple[int, ...]
    nanoseconds: tuple[float, ...]
    size_bytes: int  # of the working set
    line_bytes: int = 64
    level: str = "memory"  # what answers: the smallest cache that holds the working set

    @property
    def latency_ns(self) -> float:
        """Nanoseconds a read takes: the least that a chase needed for a step, whatever ran beside it."""
        return min(count * ns for count, ns in zip(self.chases, self.nanoseconds, strict=True))

    @property
    def most(self) -> float:
        """The most reads in flight, by Little's law: the highest rate x the latency."""
        return self.latency_ns / min(self.nanoseconds)

    @property
    def gbps(self) -> tuple[float, ...]:
        """GB/s for each number of chases, counting a line for a read."""
        return tuple(self.line_bytes / ns for ns in self.nanoseconds)

    def table(self) -> Table:
        """Return a row for each number of chases."""
        rows = tuple(
            (str(count), digits(ns), digits(count * ns), digits(gbps))
            for count, ns, gbps in zip(self.chases, self.nanoseconds, self.gbps, strict=True)
        )
        columns = ("chases at once", "ns a read", "ns a chase waits", "GB/s of lines")
        caption = f"One core keeps up to {digits(self.most, 2)} reads in flight ({self.where})"
        return Table(columns, rows, caption)

    @property
    def where(self) -> str:
        """What was read, in a few words."""
        return f"{in_bytes(self.size_bytes)}, answered by {self.level}"


def measure() -> InFlight:
    """Return what one core of this machine keeps in flight: about a second.

    The CHASES share one random cycle through the cache lines of a working set beyond L2, from starts that lie
    evenly along it: in a pass every line is read once, whatever the number of chases. All numbers take turns,
    in shuffled order.
    """
    caches = hardware.caches()
    size = working_set(caches)
    line = max([cache.line_bytes for cache in caches], default=64)
    memory, _ = latency.allocate(size, "system")
    rng = np.random.default_rng(0)
    order = rng.permutation(size // line).astype(np.uint64) * np.uint64(line // latency.WORD)
    memory[order] = np.roll(order, -1)  # one cycle, in this order
    for _ in range(WARM_UPS):
        _pass_s(memory, order, CHASES[-1])
    seconds: dict[int, list[float]] = {count: [] for count in CHASES}
    for _ in range(ROUNDS):
        for count in rng.permutation(CHASES):
            seconds[int(count)].append(_pass_s(memory, order, int(count)))
    shortest = (1e9 * min(seconds[count]) / len(order) for count in CHASES)
    return InFlight(CHASES, tuple(shortest), size, line, latency.holding(caches, size)[0])


def working_set(caches: Sequence[hardware.CacheLevel]) -> int:
    """Return the bytes of the working set: beyond L2, and not so large that building it takes long."""
    l2 = next((cache.size_bytes for cache in caches if cache.level == 2), 0)
    return min(max(BEYOND_L2 * l2, SMALLEST), LARGEST)


@compiled
def walk(memory, places, steps):
    """Move every place (uint64) `steps` steps through memory, chase by chase: none waits for another."""
    for _ in range(steps):
        for chase in range(len(places)):
            places[chase] = memory[places[chase]]


def _pass_s(memory: np.ndarray, order: np.ndarray, count: int) -> float:
    """Return the seconds in which `count` chases together read every line once (a few are left over)."""
    places = order[np.arange(count) * len(order) // count]
    clock = time.thread_time if HAS_THREAD_CLOCK else time.perf_counter  # a core that waits for memory runs
    start = clock()
    walk(memory, places, len(order) // count)
    return clock() - start
