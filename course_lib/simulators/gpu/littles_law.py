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
import re
from collections.abc import Iterable
from dataclasses import dataclass

from course_lib.arguments import whole
from course_lib.measure.table import Table, digits

# -- latencies of some GPUs ----------------------------------------------------------------------------------


MOST_LATENCY = 10_000


@dataclass(frozen=True)
class Latencies:
    """Cycles from an instruction's issue to that of the first one that may read its result."""

    arithmetic: int  # an FP32 FMA
    shared: int  # a load from shared memory, without bank conflicts
    l2: int  # a load from global memory that the L2 cache answers
    dram: int  # a load from global memory that no cache answers
    source: str = ""

    def __post_init__(self) -> None:
        for what in ("arithmetic", "shared", "l2", "dram"):
            whole(f"The latency {what}", getattr(self, what), most=MOST_LATENCY)


_LUO = (
    "memory: Luo et al. 2024, arXiv:2402.13499, table IV; FMA: Jia et al. 2019, arXiv:1903.07486, table 4.1"
)
LATENCIES = {
    "A100": Latencies(4, 23, 200, 290, "Abdelkhalik et al. 2022, arXiv:2208.11174"),
    "RTX 4090": Latencies(4, 30, 273, 542, _LUO),
    "H100": Latencies(4, 29, 263, 479, _LUO),
}


def latencies_of(gpu: str | Latencies) -> Latencies:
    """Return the latencies of a GPU by its name in LATENCIES; Latencies are returned as they are.

    Raises ValueError for an unknown name.
    """
    if isinstance(gpu, Latencies):
        return gpu
    if gpu not in LATENCIES:
        known = ", ".join(map(repr, LATENCIES))
        raise ValueError(
            f"latencies is {gpu!r}, but known are {known}: name one, or give Latencies of your own."
        )
    return LATENCIES[gpu]


# -- what a warp executes ------------------------------------------------------------------------------------


OPERATIONS = ("fma", "use", "shared", "l2", "load")
LOADS = ("shared", "l2", "load")
REQUESTS = ("l2", "load")  # leave the SM: the memory behind it takes one every so many cycles
MOST_INSTRUCTIONS = 256


@dataclass(frozen=True)
class StreamInstruction:
    """One warp instruction: its operation, the registers it reads, the one it writes (None: nothing)."""

    op: str
    reads: tuple[str, ...] = ()
    writes: str | None = None

    def latency(self, latencies: Latencies) -> int:
        """Return the cycles until its result can be read."""
        cycles = {"shared": latencies.shared, "l2": latencies.l2, "load": latencies.dram}
        return cycles.get(self.op, latencies.arithmetic)

    def __str__(self) -> str:
        target = f"{self.writes} = " if self.writes else ""
        return target + " ".join((self.op, *self.reads))


Stream = tuple[StreamInstruction, ...]


def stream(text: str | Iterable[str | StreamInstruction]) -> Stream:
    """Return the instructions that `text` spells; lines and instructions in a list are taken as well.

    What follows a # in a line is a comment. Raises ValueError with the line that cannot be read.
    """
    lines = re.split(r"[;\n]", re.sub(r"#[^\n]*", "", text)) if isinstance(text, str) else text
    instructions = tuple(
        _instruction(line.strip()) if isinstance(line, str) else line
        for line in lines
        if not isinstance(line, str) or line.strip()
    )
    if not 1 <= len(instructions) <= MOST_INSTRUCTIONS:
        raise ValueError(
            f"The stream has {len(instructions)} instructions, but 1 to {MOST_INSTRUCTIONS} are possible."
        )
    for instruction in instructions:
        _checked(instruction)
    return instructions


def independent_loads(loads: int, arithmetic: int = 0, op: str = "load") -> Stream:
    """Return a stream of `loads` loads that do not depend on each other, then their uses, one for each.

    Its pass ends with `arithmetic` dependent FMAs. The more loads before the first use, the more
    instruction-level parallelism: a single warp then has that many requests in flight.
    """
    whole("loads", loads, most=MOST_INSTRUCTIONS)
    whole("arithmetic", arithmetic, least=0, most=MOST_INSTRUCTIONS)
    lines = [f"x{i} = {op}" for i in range(loads)]
    lines += [f"use x{i}" for i in range(loads)]
    lines += ["s = fma s"] * arithmetic
    return stream(";".join(lines))


def registers(instructions: Stream) -> tuple[str, ...]:
    """Return the names of all registers, in the order of their first appearance."""
    named = (name for one in instructions for name in (*one.reads, one.writes) if name)
    return tuple(dict.fromkeys(named))


def _instruction(line: str) -> StreamInstruction:
    target, equals, rest = line.rpartition("=")
    words = rest.split()
    if not words or (equals and not target.strip()):
        raise ValueError(f"The instruction {line!r} cannot be read: write it like 's = fma x s' or 'use x'.")
    return StreamInstruction(words[0], tuple(words[1:]), target.strip() or None)


def _checked(instruction: StreamInstruction) -> None:
    op, target = instruction.op, instruction.writes
    if op not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        raise ValueError(f"The instruction '{instruction}' has the operation {op!r}, but there are {known}.")
    names = (*instruction.reads, *([] if target is None else [target]))
    wrong = next((name for name in names if not name.isidentifier()), None)
    if wrong is not None:
        raise ValueError(
            f"The instruction '{instruction}' names {wrong!r}, but a register is a word like x0."
        )
    if op in LOADS and target is None:
        raise ValueError(f"The instruction '{instruction}' loads nothing: say where to, like 'x = {op}'.")
    if op == "use" and target is not None:
        raise ValueError(f"The instruction '{instruction}' has a result, but use has none: write fma.")


# -- Little's law --------------------------------------------------------------------------------------------


MOST_WARPS = 64
MOST_INTERVAL = 10_000


@dataclass(frozen=True)
class ThroughputBound:
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
) -> ThroughputBound:
    """Return the bounds for `warps` warps that run a stream; arguments as in `warp_scheduler.simulate`."""
    whole("warps", warps, most=MOST_WARPS)
    whole("memory_interval", memory_interval, most=MOST_INTERVAL)
    instructions = stream(instructions)
    latency = pass_cycles(instructions, latencies_of(latencies), memory_interval)
    requests = sum(one.op in REQUESTS for one in instructions)
    return ThroughputBound(warps, len(instructions), requests, latency, memory_interval)


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
