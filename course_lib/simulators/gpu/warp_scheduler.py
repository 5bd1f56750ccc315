"""A warp scheduler, cycle by cycle: how many warps hide how much latency.

    result = simulate("x = load; s = fma x s", warps=8, latencies="H100")
    result.utilisation, result.table(), result.timeline
    occupancy_curve("x = load; use x").table()

One sub-partition of a streaming multiprocessor: one scheduler, its resident warps (of an SM's, a quarter),
one instruction issued per cycle. Each warp runs the same stream of instructions in order, over and over; an
instruction can be issued when all registers it touches are ready. Switching to another warp costs nothing:
that is how a GPU hides latency.

Memory has a bandwidth, too: an SM's shared memory hands out one wavefront a cycle, to four schedulers in
turns, so one of them can have a request every four cycles; to global memory there is a second path. A load
whose path is still busy with the one before is held back. Nothing else is modelled: no caches, barriers,
branches, bank conflicts, no queue of requests that would let a warp go on, no other unit that is busy.

The policy is greedy-then-oldest: it stays with a warp until it stalls, then takes the oldest that can issue
(Rogers, O'Connor & Aamodt 2012, "Cache-conscious wavefront scheduling"). What NVIDIA's schedulers do is not
published; on cards of the Ampere generation it was found to be the *youngest* (Huerta et al. 2025,
arXiv:2503.20481). The states of a warp bear the names of Nsight Compute (Kernel Profiling Guide, "Warp Stall
Reasons").

Beside it stands Little's law (Little 1961, "A proof for the queuing formula L = λW"): what is in progress =
throughput x latency. In progress are `warps` passes through the stream, one per warp; the latency is what one
pass takes a warp that is alone. So the throughput is warps x instructions / latency – until the scheduler
issues in every cycle, or a path to memory is busy in every cycle. There is the knee: from there on more warps
do not help. How far real GPUs follow this,
and where they do not, is the subject of Volkov 2016, "Understanding latency hiding on GPUs" (thesis, UC
Berkeley).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from course_lib.arguments import whole
from course_lib.measure.gpu_published import PUBLISHED
from course_lib.measure.table import Shown, Table, digits

# -- latencies of some GPUs ----------------------------------------------------------------------------------

MOST_LATENCY = 10_000
SCHEDULERS, REQUEST_BYTES = 4, 128  # of an SM; of a warp whose lanes read 4 bytes each


@dataclass(frozen=True)
class Latencies:
    """Cycles from an instruction's issue to that of the first one that may read its result; and intervals.

    An interval is 4 schedulers x 128 bytes of a request / the bytes that an SM gets a cycle: 128 from shared
    memory, its 32 banks; from L2 about 64, as in `fp8.choose`; from DRAM what all SMs have of it among them.
    """

    arithmetic: int  # an FP32 FMA
    shared: int  # a load from shared memory, without bank conflicts
    l2: int  # a load from global memory that the L2 cache answers
    dram: int  # a load from global memory that no cache answers
    source: str = ""
    shared_interval: int = 4  # cycles from one request of a scheduler to its next one: a path's bandwidth
    l2_interval: int = 8
    dram_interval: int = 40

    def __post_init__(self) -> None:
        for what in ("arithmetic", "shared", "l2", "dram"):
            whole(f"The latency {what}", getattr(self, what), most=MOST_LATENCY)
        for what in ("shared_interval", "l2_interval", "dram_interval"):
            whole(what, getattr(self, what), most=MOST_LATENCY)


_LUO = (
    "memory: Luo et al. 2024, arXiv:2402.13499, table IV; FMA: Jia et al. 2019, arXiv:1903.07486, table 4.1"
)
_ABDELKHALIK = "Abdelkhalik et al. 2022, arXiv:2208.11174"


def _of(name: str, *cycles: int, source: str) -> Latencies:
    gpu = PUBLISHED[name]
    a_cycle = gpu.bytes_per_s / gpu.clock_hz / gpu.sms  # bytes of DRAM for an SM, if all of them ask
    return Latencies(*cycles, source, dram_interval=round(SCHEDULERS * REQUEST_BYTES / a_cycle))


LATENCIES = {
    "A100": _of("A100", 4, 23, 200, 290, source=_ABDELKHALIK),
    "RTX 4090": _of("RTX 4090", 4, 30, 273, 542, source=_LUO),
    "H100": _of("H100", 4, 29, 263, 479, source=_LUO),
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

#: of an operation that reads memory: whose latency it has, what a reader of its result waits for, its path
LOADS = {
    "shared": ("shared", "short scoreboard", 1),
    "l2": ("l2", "long scoreboard", 2),
    "load": ("dram", "long scoreboard", 2),
}
OPERATIONS = ("fma", "use", *LOADS)
MOST_INSTRUCTIONS = 256


@dataclass(frozen=True)
class StreamInstruction:
    """One warp instruction: its operation, the registers it reads, the one it writes (None: nothing)."""

    op: str
    reads: tuple[str, ...] = ()
    writes: str | None = None

    @property
    def touched(self) -> tuple[str, ...]:
        """All its registers, the one that it writes last."""
        return (*self.reads, self.writes) if self.writes else self.reads

    def latency(self, latencies: Latencies) -> int:
        """Return the cycles until its result can be read."""
        return getattr(latencies, LOADS.get(self.op, ("arithmetic",))[0])

    @property
    def path(self) -> int:
        """The path to memory that it needs: 1 to shared, 2 to global memory, 0 for none."""
        return LOADS[self.op][2] if self.op in LOADS else 0

    def interval(self, latencies: Latencies) -> int:
        """Return the cycles for which it holds its path, 0 for none."""
        return getattr(latencies, f"{LOADS[self.op][0]}_interval") if self.path else 0

    def __str__(self) -> str:
        target = f"{self.writes} = " if self.writes else ""
        return target + " ".join((self.op, *self.reads))


Stream = tuple[StreamInstruction, ...]


def stream(text: str | Iterable[str | StreamInstruction]) -> Stream:
    """Return the instructions that `text` spells, parted by `;` or in lines; what follows a # is a comment.

    Lines and instructions in a list are taken as well. Raises ValueError with the line that cannot be read.
    """
    if not isinstance(text, str):
        text = "\n".join(map(str, text))
    lines = [line.strip() for line in re.split(r"[;\n]", re.sub(r"#[^\n]*", "", text))]
    instructions = tuple(_instruction(line) for line in lines if line)
    if not 1 <= len(instructions) <= MOST_INSTRUCTIONS:
        raise ValueError(
            f"The stream has {len(instructions)} instructions, but 1 to {MOST_INSTRUCTIONS} are possible."
        )
    return instructions


def _instruction(line: str) -> StreamInstruction:
    target, equals, rest = (part.strip() for part in line.rpartition("="))
    if not rest or (equals and not target):
        raise ValueError(f"The instruction {line!r} cannot be read: write it like 's = fma x s' or 'use x'.")
    op, *reads = rest.split()
    result = StreamInstruction(op, tuple(reads), target or None)
    wrong = next((name for name in result.touched if not name.isidentifier()), None)
    problem = None
    if op not in OPERATIONS:
        problem = f"has the operation {op!r}, but there are {', '.join(OPERATIONS)}"
    elif wrong is not None:
        problem = f"names {wrong!r}, but a register is a word like x0"
    elif op in LOADS and not target:
        problem = f"loads nothing: say where to, like 'x = {op}'"
    elif op == "use" and target:
        problem = "has a result, but use has none: write fma"
    if problem:
        raise ValueError(f"The instruction '{result}' {problem}.")
    return result


# -- what a run counted --------------------------------------------------------------------------------------

#: What a warp is doing in a cycle; the timeline holds the places in this list.
STATES = (
    "selected",  # its instruction is issued
    "not selected",  # it could, but another warp was taken
    "wait",  # for an arithmetic result, of fixed latency
    "short scoreboard",  # for shared memory
    "long scoreboard",  # for global memory: L2 or DRAM
    "MIO throttle",  # for its turn at shared memory, which serves others
    "LG throttle",  # for its turn on the path to global memory
)


@dataclass(frozen=True, eq=False, repr=False)
class SchedulerRun(Shown):
    """What happened in the cycles that were counted."""

    stream: Stream
    timeline: np.ndarray  # uint8 (warps, cycles): places in STATES

    @property
    def warps(self) -> int:
        """Resident warps."""
        return self.timeline.shape[0]

    @property
    def cycles(self) -> int:
        """Cycles counted."""
        return self.timeline.shape[1]

    @property
    def instructions(self) -> int:
        """Warp instructions issued."""
        return int((self.timeline == STATES.index("selected")).sum())

    @property
    def utilisation(self) -> float:
        """The share of the cycles in which an instruction was issued, 0 to 1."""
        return self.instructions / self.cycles

    def share(self, state: str) -> float:
        """Return the mean share of a warp's cycles that it spent in a state, 0 to 1."""
        if state not in STATES:
            raise ValueError(f"state is {state!r}, but the states are {', '.join(STATES)}.")
        return float((self.timeline == STATES.index(state)).mean())

    def table(self) -> Table:
        """Return the states of each warp, in per cent of its cycles, and of all."""
        counts = np.stack([(self.timeline == number).sum(axis=1) for number in range(len(STATES))], axis=1)
        shown = [number for number in range(len(STATES)) if counts[:, number].any()]
        rows = [(f"warp {warp}", row, self.cycles) for warp, row in enumerate(counts)]
        rows.append(("all warps", counts.sum(axis=0), self.timeline.size))
        rows = tuple((name, *(digits(100 * row[n] / cycles) for n in shown)) for name, row, cycles in rows)
        caption = (
            f"{digits(100 * self.utilisation)} % of the issue slots used: {self.instructions:,} instructions "
            f"in {self.cycles:,} cycles, {self.warps} warp{'s' * (self.warps > 1)}, greedy then oldest"
        )
        notes = (f"In {self.cycles - self.instructions:,} cycles no warp was eligible.",)
        return Table(("", *(f"{STATES[n]} %" for n in shown)), rows, caption, notes=notes)


# -- the simulation ------------------------------------------------------------------------------------------

MOST_CYCLES = 500_000
MOST_WARPS = 64
ROUNDS = 24


def simulate(
    instructions: str | Iterable[str | StreamInstruction],
    warps: int = 8,
    *,
    cycles: int = 2000,
    warm_up: int = 0,
    latencies: str | Latencies = "H100",
) -> SchedulerRun:
    """Run `warps` warps through a stream of instructions and return what each did in each cycle.

    instructions: text as above (operations: fma, use, shared, l2, load), or its lines in a list. warps: 1 to
    64; hardware has 8 (compute capability 7.5), 12 (8.6, 8.7, 8.9) or 16 (8.0, 9.0) per scheduler at most.
    cycles: how many are counted. warm_up: cycles run before the counting begins. latencies: a GPU's name in
    LATENCIES, or Latencies. Raises ValueError for numbers that make no sense.
    """
    instructions, latencies = stream(instructions), latencies_of(latencies)
    whole("warps", warps, most=MOST_WARPS)
    whole("cycles", cycles, most=MOST_CYCLES)
    whole("warm_up", warm_up, least=0, most=MOST_CYCLES)
    from course_lib.simulators.gpu.warp_kernel import run

    timeline = np.zeros((warps, warm_up + cycles), np.uint8)
    run(*_encoded(instructions, latencies), timeline)
    return SchedulerRun(instructions, timeline[:, warm_up:])


def _encoded(instructions: Stream, latencies: Latencies) -> tuple[tuple[np.ndarray, ...], int]:
    """Return the stream as the arrays that `warp_kernel.run` takes, and the number of registers."""
    number = {
        name: place for place, name in enumerate({name for one in instructions for name in one.touched})
    }
    operands = np.full((len(instructions), max(len(one.reads) for one in instructions)), -1, np.int64)
    for row, one in zip(operands, instructions, strict=True):
        row[: len(one.reads)] = [number[name] for name in one.reads]
    arrays = (
        np.array([STATES.index(LOADS.get(one.op, ("", "wait"))[1]) for one in instructions], np.uint8),
        np.array([one.latency(latencies) for one in instructions], np.int64),
        operands,
        np.array([number.get(one.writes, -1) for one in instructions], np.int64),
        np.array([one.path for one in instructions], np.int64),
        np.array([one.interval(latencies) for one in instructions], np.int64),
    )
    return arrays, len(number)


# -- against the number of warps, beside Little's law --------------------------------------------------------


def pass_cycles(instructions: Stream, latencies: Latencies) -> float:
    """Return how many cycles a pass takes a warp that is alone, once it has found its rhythm.

    An instruction is issued a cycle after the one before, or when the last of its registers is ready and its
    path to memory is free. The passes repeat as soon as one begins with the same registers on their way, and
    paths as busy, as an earlier one; between the two lies a whole number of passes, so the result may be a
    fraction.
    """
    ready: dict[str | int, int] = dict.fromkeys((name for one in instructions for name in one.touched), 0)
    ready.update({1: 0, 2: 0})  # the paths
    passes = now = 0
    begun: dict[tuple[int, ...], tuple[int, int]] = {}
    while True:
        on_the_way = tuple(max(0, at - now) for at in ready.values())
        if on_the_way in begun:
            passes_then, then = begun[on_the_way]
            return (now - then) / (passes - passes_then)
        begun[on_the_way] = passes, now
        for one in instructions:
            issued = max([now, ready.get(one.path, 0), *(ready[name] for name in one.touched)])
            if one.writes:
                ready[one.writes] = issued + one.latency(latencies)
            if one.path:
                ready[one.path] = issued + one.interval(latencies)
            now = issued + 1
        passes += 1


def busiest(instructions: Stream, latencies: Latencies) -> tuple[int, str]:
    """Return the cycles for which a pass keeps the scheduler or the busiest path busy, and which it is."""
    paths = (sum(one.interval(latencies) for one in instructions if one.path == path) for path in (1, 2))
    return max(
        zip((len(instructions), *paths), ("issue", "shared memory", "global memory"), strict=True),
        key=lambda found: found[0],
    )


@dataclass(frozen=True, repr=False)
class OccupancyCurve(Shown):
    """Issue-slot utilisation against resident warps: simulated, and as two laws bound it.

    knee: the number of warps from which on more cannot help, a fraction as the bounds are. ceiling: the share
    of the issue slots that no number of warps exceeds; limit: what is busy all the time there.
    """

    warps: tuple[int, ...]
    simulated: tuple[float, ...]
    knee: float
    ceiling: float
    limit: str

    @property
    def predicted(self) -> tuple[float, ...]:
        """The bounds, one per number of warps: Little's law, and what is busy in every cycle."""
        return tuple(self.ceiling * min(warps / self.knee, 1.0) for warps in self.warps)

    def table(self) -> Table:
        """Return a row for each number of warps."""
        rows = tuple(
            (f"{warps}", digits(100 * simulated), digits(100 * predicted), self._limit(warps))
            for warps, simulated, predicted in zip(self.warps, self.simulated, self.predicted, strict=True)
        )
        caption = f"Issue slots used, greedy then oldest; the knee is at {digits(self.knee)} warps"
        return Table(("warps", "simulated %", "at most %", "limited by"), rows, caption)

    def _limit(self, warps: int) -> str:
        parted = (("latency", warps <= self.knee), (self.limit, warps >= self.knee))
        return " and ".join(name for name, holds in parted if holds)


def occupancy_curve(
    instructions: str | Iterable[str | StreamInstruction],
    warps: Iterable[int] = range(1, 17),
    *,
    latencies: str | Latencies = "H100",
) -> OccupancyCurve:
    """Return the utilisation against resident warps, once the warps have found their rhythm.

    Arguments as in `simulate`. ROUNDS passes of all warps are counted, after a quarter as many to warm up; a
    round is as long as Little's law says, so that whole passes are counted where it holds.
    """
    instructions, warps, latencies = stream(instructions), tuple(warps), latencies_of(latencies)
    if not warps:
        raise ValueError("warps is empty, but a curve needs at least one number of warps, like range(1, 17).")
    simulated = []
    latency = pass_cycles(instructions, latencies)
    busy, limit = busiest(instructions, latencies)
    for count in warps:
        one_round = max(latency, whole("warps", count, most=MOST_WARPS) * busy)
        cycles = min(round(ROUNDS * one_round), MOST_CYCLES)
        run = simulate(instructions, count, cycles=cycles, warm_up=cycles // 4, latencies=latencies)
        simulated.append(run.utilisation)
    ceiling = len(instructions) / busy
    return OccupancyCurve(warps, tuple(simulated), latency / busy, ceiling, limit)
