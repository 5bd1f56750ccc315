"""How many warps hide a latency: Little's law, beside which the simulation of `warp_scheduler` is held.

    littles_law("x = load; use x", warps=8, latencies="H100").table()

Little's law (Little 1961, "A proof for the queuing formula L = λW"): what is in progress = throughput x
latency. In progress are `warps` passes through the stream, one per warp; the latency is what one pass takes
a warp that is alone. So the throughput is warps x instructions / latency – until the scheduler issues in
every cycle, or the memory answers as fast as it can. Where the first line meets the lower of the two others
is the knee: from there on more warps do not help. How far real GPUs follow this, and where they do not, is
the subject of Volkov 2016, "Understanding latency hiding on GPUs" (thesis, UC Berkeley).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from course_lib.measure.table import Table, digits
from course_lib.simulators.gpu.gpu_latencies import Latencies, latencies_of
from course_lib.simulators.gpu.warp_stream import REQUESTS, Stream, registers, stream
from course_lib.simulators.gpu.whole_numbers import check_whole

MOST_WARPS = 64
MOST_INTERVAL = 10_000


@dataclass(frozen=True)
class Prediction:
    """What bounds the issue-slot utilisation of `warps` warps: shares of the cycles, 0 to 1."""

    warps: int
    instructions: int  # per pass through the stream
    requests: int  # to memory, per pass
    latency: float  # cycles per pass of a warp that is alone
    memory_interval: int  # cycles between two requests that the memory takes

    @property
    def by_latency(self) -> float:
        """Little's law: what the warps could issue if none ever waited for another one."""
        return self.warps * self.instructions / self.latency

    @property
    def by_issue(self) -> float:
        """One instruction per cycle."""
        return 1.0

    @property
    def by_memory(self) -> float:
        """What the memory can feed; infinite without requests."""
        needed = self.requests * self.memory_interval
        return self.instructions / needed if needed else math.inf

    @property
    def utilisation(self) -> float:
        """The least of the three bounds."""
        return min(self.by_latency, self.by_issue, self.by_memory)

    @property
    def limited_by(self) -> tuple[str, ...]:
        """What the least bound is of: "latency", "issue", "memory"; all that tie."""
        bounds = {"latency": self.by_latency, "issue": self.by_issue, "memory": self.by_memory}
        return tuple(name for name, bound in bounds.items() if bound == self.utilisation)

    @property
    def knee(self) -> float:
        """The number of warps that hides the latency; a fraction, as the bounds are."""
        return min(self.by_issue, self.by_memory) * self.latency / self.instructions

    def table(self) -> Table:
        """Return the bounds, one a row."""
        served = f"{self.instructions} / ({self.requests} x {self.memory_interval})" if self.requests else "–"
        hidden = f"{self.warps} x {self.instructions} / {digits(self.latency)}"
        rows = (
            ("latency", hidden, _share(self.by_latency)),
            ("issue", "1 / 1", _share(self.by_issue)),
            ("memory", served, _share(self.by_memory)),
        )
        least = " and ".join(self.limited_by)
        caption = f"At most {_share(self.utilisation)} of the issue slots used, limited by {least}"
        knee = f"{digits(self.knee)} warps would hide the latency of {digits(self.latency)} cycles per pass."
        return Table(("bound by", "instructions / cycles", "issue slots"), rows, caption, notes=(knee,))

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def littles_law(
    instructions: str | Stream,
    warps: int,
    *,
    latencies: str | Latencies = "H100",
    memory_interval: int = 1,
) -> Prediction:
    """Return the bounds for `warps` warps that run a stream; arguments as in `warp_scheduler.simulate`."""
    check_whole("warps", warps, 1, MOST_WARPS)
    check_whole("memory_interval", memory_interval, 1, MOST_INTERVAL)
    instructions = stream(instructions)
    latency = pass_cycles(instructions, latencies_of(latencies), memory_interval)
    requests = sum(one.op in REQUESTS for one in instructions)
    return Prediction(warps, len(instructions), requests, latency, memory_interval)


def pass_cycles(instructions: Stream, latencies: Latencies, memory_interval: int) -> float:
    """Return how many cycles a pass takes a warp that is alone, once it has found its rhythm.

    An instruction is issued a cycle after the one before, or when the last of its registers is ready. The
    passes repeat as soon as one begins with the same registers on their way as an earlier one; between the
    two lies a whole number of passes, so the result may be a fraction.
    """
    names = registers(instructions)
    ready = dict.fromkeys(names, 0)
    passes = now = memory_free = 0
    begun: dict[tuple[int, ...], tuple[int, int]] = {}
    while True:
        on_the_way = tuple(max(0, at - now) for at in (*ready.values(), memory_free))
        if on_the_way in begun:
            passes_then, then = begun[on_the_way]
            return (now - then) / (passes - passes_then)
        begun[on_the_way] = passes, now
        for one in instructions:
            touched = (*one.reads, one.writes) if one.writes else one.reads
            issued = taken = max([now, *(ready[name] for name in touched)])
            if one.op in REQUESTS:
                taken = max(issued, memory_free)
                memory_free = taken + memory_interval
            if one.writes:
                ready[one.writes] = taken + one.latency(latencies)
            now = issued + 1
        passes += 1


def memory_interval_of(
    bytes_per_second: float, clock_hz: float, sms: int, bytes_per_request: int = 128
) -> int:
    """Return the cycles between two requests if all sub-partitions of a GPU share its memory's bandwidth.

    A request of a warp for one float32 per thread, coalesced, has 128 bytes; an SM has 4 sub-partitions.
    """
    given = (("bytes_per_second", bytes_per_second), ("clock_hz", clock_hz), ("sms", sms))
    for what, value in (*given, ("bytes_per_request", bytes_per_request)):
        if not value > 0:
            raise ValueError(f"{what} is {value!r}, but it must be positive.")
    return max(1, round(bytes_per_request * clock_hz * sms * 4 / bytes_per_second))


def _share(bound: float) -> str:
    return "no limit" if math.isinf(bound) else f"{digits(100 * bound)} %"
