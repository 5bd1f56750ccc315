"""A warp scheduler, cycle by cycle: how many warps hide how much latency.

    result = simulate("x = load; s = fma x s", warps=8, latencies="H100")
    result.utilisation, result.table(), result.timeline
    occupancy_curve(independent_loads(4), memory_interval=10).table()

One sub-partition of a streaming multiprocessor: one scheduler, its resident warps (of an SM's, a quarter),
one instruction issued per cycle. Each warp runs the same stream of instructions (`littles_law.stream`) in
order; an instruction can be issued when all registers it touches are ready. Switching to another warp costs
nothing: that is how a GPU hides latency. Memory answers after its latency, but takes only one request every
`memory_interval` cycles; others queue. Nothing else is modelled: no caches, barriers, branches, no unit that
is busy for more than a cycle, no full queue that would stop an issue.

Two policies. Greedy-then-oldest ("gto") stays with a warp until it stalls, then takes the oldest that can
issue (Rogers, O'Connor & Aamodt 2012, "Cache-conscious wavefront scheduling"). Loose round robin ("lrr")
takes the next one in turn that can. Turns keep the warps in step: they compute together, then wait together,
and hide less of each other's latency. What NVIDIA's schedulers do is not published. The states of a warp bear
the names of Nsight Compute (Kernel Profiling Guide, "Warp Stall Reasons").
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from course_lib.arguments import whole
from course_lib.measure.table import Table, digits
from course_lib.simulators.gpu.littles_law import (
    LATENCIES,
    MOST_INTERVAL,
    MOST_WARPS,
    REQUESTS,
    Latencies,
    Stream,
    StreamInstruction,
    ThroughputBound,
    independent_loads,
    latencies_of,
    littles_law,
    memory_interval_of,
    registers,
    stream,
)

# -- what a run counted --------------------------------------------------------------------------------------


#: What a warp is doing in a cycle; the timeline holds the places in this list.
STATES = (
    "finished",
    "selected",  # its instruction is issued
    "not selected",  # it could, but another warp was taken
    "wait",  # for an arithmetic result, of fixed latency
    "short scoreboard",  # for shared memory
    "long scoreboard",  # for global memory: L2 or DRAM
)
POLICIES = {"gto": "greedy then oldest", "lrr": "loose round robin"}
NUMBER_OF = {name: number for number, name in enumerate(STATES)}


@dataclass(frozen=True, eq=False)
class SchedulerRun:
    """What happened in the cycles that were counted."""

    stream: Stream
    policy: str
    timeline: np.ndarray = field(repr=False)  # uint8 (warps, cycles): places in STATES
    issue: np.ndarray = field(repr=False)  # int64 (cycles, 2): warp, place in the stream; -1 for none
    requests_in_flight: np.ndarray = field(repr=False)  # int64 (cycles,): sent and not yet answered
    memory_latency: float  # mean cycles from a request's issue to its answer; NaN without requests

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
        return int((self.issue[:, 0] >= 0).sum())

    @property
    def utilisation(self) -> float:
        """The share of the cycles in which an instruction was issued, 0 to 1."""
        return self.instructions / self.cycles

    @property
    def no_eligible(self) -> int:
        """Cycles in which no warp could issue: the scheduler was idle."""
        return self.cycles - self.instructions

    @property
    def requests(self) -> int:
        """Requests to memory that were issued."""
        sends = np.array([one.op in REQUESTS for one in self.stream])
        places = self.issue[self.issue[:, 0] >= 0, 1]
        return int(sends[places].sum())

    @property
    def states(self) -> np.ndarray:
        """How many cycles each warp spent in each state: int64 (warps, states), columns as in STATES."""
        return np.stack([(self.timeline == number).sum(axis=1) for number in range(len(STATES))], axis=1)

    def share(self, state: str) -> float:
        """Return the mean share of a warp's cycles that it spent in a state, 0 to 1."""
        if state not in NUMBER_OF:
            raise ValueError(f"state is {state!r}, but the states are {', '.join(STATES)}.")
        return float(self.states[:, NUMBER_OF[state]].sum() / self.timeline.size)

    def table(self) -> Table:
        """Return the states of each warp, in per cent of its cycles, and of all."""
        counts = self.states
        shown = [number for number in range(len(STATES)) if counts[:, number].any()]
        rows = [self._row(f"warp {warp}", row, self.cycles, shown) for warp, row in enumerate(counts)]
        rows.append(self._row("all warps", counts.sum(axis=0), self.timeline.size, shown))
        caption = (
            f"{digits(100 * self.utilisation)} % of the issue slots used: {self.instructions:,} instructions "
            f"in {self.cycles:,} cycles, {self.warps} warp{'s' * (self.warps > 1)}, {POLICIES[self.policy]}"
        )
        notes = (f"In {self.no_eligible:,} cycles no warp was eligible.",)
        columns = ("", *(f"{STATES[number]} %" for number in shown))
        return Table(columns, tuple(rows), caption, notes=notes)

    def _row(self, name: str, counts: np.ndarray, cycles: int, shown: list[int]) -> tuple[str, ...]:
        return (name, *(digits(100 * counts[number] / cycles) for number in shown))

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


# -- the simulation ------------------------------------------------------------------------------------------


__all__ = [
    "LATENCIES",
    "POLICIES",
    "STATES",
    "Latencies",
    "OccupancyCurve",
    "SchedulerRun",
    "StreamInstruction",
    "ThroughputBound",
    "independent_loads",
    "littles_law",
    "memory_interval_of",
    "occupancy_curve",
    "simulate",
    "stream",
]

MOST_CYCLES = 500_000
_WAITS = {"shared": "short scoreboard", "l2": "long scoreboard", "load": "long scoreboard"}


def simulate(
    instructions: str | Stream,
    warps: int = 8,
    *,
    cycles: int = 2000,
    passes: int | None = None,
    warm_up: int = 0,
    policy: str = "gto",
    latencies: str | Latencies = "H100",
    memory_interval: int = 1,
) -> SchedulerRun:
    """Run `warps` warps through a stream of instructions and return what each did in each cycle.

    instructions: text or instructions, see `littles_law.stream`. warps: 1 to 64; hardware has 8 (compute
    capability 7.5), 12 (8.6, 8.7, 8.9) or 16 (8.0, 9.0) per scheduler at most. cycles: how many are counted.
    passes: how often each warp runs the stream; the run ends with the last issue, which must come within
    `cycles`. None: over and over. warm_up: cycles run before the counting begins. policy: "gto" or "lrr".
    latencies: a GPU's name in LATENCIES, or Latencies. memory_interval: cycles between two requests (`l2`,
    `load`) that the memory takes from this sub-partition; 1: no limit, as one a cycle is issued at most.

    Raises ValueError for numbers that make no sense.
    """
    instructions, latencies = stream(instructions), latencies_of(latencies)
    whole("warps", warps, most=MOST_WARPS)
    whole("cycles", cycles, most=MOST_CYCLES)
    whole("warm_up", warm_up, least=0, most=MOST_CYCLES)
    whole("passes", 1 if passes is None else passes, most=MOST_CYCLES)
    whole("memory_interval", memory_interval, most=MOST_INTERVAL)
    if policy not in POLICIES:
        raise ValueError(f"policy is {policy!r}, but it must be {' or '.join(map(repr, POLICIES))}.")
    from course_lib.simulators.gpu.warp_kernel import run

    timeline = np.zeros((warps, warm_up + cycles), np.uint8)
    issue, sent = (np.full((warm_up + cycles, 2), -1, np.int64) for _ in range(2))
    encoded, number = _encoded(instructions, latencies)
    rule = list(POLICIES).index(policy)
    end = run(encoded, number, memory_interval, rule, passes or 0, timeline, issue, sent)
    if end <= warm_up:
        raise ValueError(f"warm_up is {warm_up}, but all warps finish after {end}: take fewer than that.")
    if passes and (issue[:, 0] >= 0).sum() < warps * passes * len(instructions):
        raise ValueError(f"cycles is {cycles}, but {passes} passes of {warps} warps take longer: give more.")
    counted = slice(warm_up, end)
    flying, latency = _requests(sent[:end], warm_up)
    return SchedulerRun(instructions, policy, timeline[:, counted], issue[counted], flying, latency)


def _encoded(instructions: Stream, latencies: Latencies) -> tuple[tuple[np.ndarray, ...], int]:
    """Return the stream as the arrays that `warp_kernel.run` takes, and the number of registers."""
    number = {name: place for place, name in enumerate(registers(instructions))}
    most = max(len(one.reads) for one in instructions)
    operands = np.full((len(instructions), most), -1, np.int64)
    for row, one in zip(operands, instructions, strict=True):
        row[: len(one.reads)] = [number[name] for name in one.reads]
    arrays = (
        np.array([NUMBER_OF[_WAITS.get(one.op, "wait")] for one in instructions], np.uint8),
        np.array([one.latency(latencies) for one in instructions], np.int64),
        np.array([one.op in REQUESTS for one in instructions]),
        operands,
        np.array([-1 if one.writes is None else number[one.writes] for one in instructions], np.int64),
    )
    return arrays, len(number)


def _requests(sent: np.ndarray, warm_up: int) -> tuple[np.ndarray, float]:
    """Return the requests in flight in every cycle counted, and the mean latency of those issued then.

    `sent` (cycles, 2): when the memory takes a request issued in a cycle, and when its answer is there.
    """
    cycles = len(sent)
    issued = np.flatnonzero(sent[:, 1] >= 0)
    answered = sent[issued, 1]
    changes = np.bincount(issued, minlength=cycles)
    changes = changes - np.bincount(answered[answered < cycles], minlength=cycles)
    counted = issued >= warm_up
    waited = (answered - issued)[counted]
    return np.cumsum(changes)[warm_up:], float(waited.mean()) if len(waited) else math.nan


# -- against the number of warps ---------------------------------------------------------------------------


@dataclass(frozen=True)
class OccupancyCurve:
    """Issue-slot utilisation against resident warps: simulated, and as Little's law bounds it."""

    warps: tuple[int, ...]
    simulated: tuple[float, ...]
    predictions: tuple[ThroughputBound, ...]
    policy: str

    @property
    def predicted(self) -> tuple[float, ...]:
        """The bounds, one per number of warps."""
        return tuple(prediction.utilisation for prediction in self.predictions)

    @property
    def knee(self) -> float:
        """The number of warps from which on more cannot help."""
        return self.predictions[0].knee

    def table(self) -> Table:
        """Return a row for each number of warps."""
        rows = tuple(
            (
                f"{warps}",
                digits(100 * simulated),
                digits(100 * prediction.utilisation),
                " and ".join(prediction.limited_by),
            )
            for warps, simulated, prediction in zip(self.warps, self.simulated, self.predictions, strict=True)
        )
        caption = f"Issue slots used, {POLICIES[self.policy]}; the knee is at {digits(self.knee)} warps"
        return Table(("warps", "simulated %", "at most %", "limited by"), rows, caption)

    def __str__(self) -> str:
        return str(self.table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def occupancy_curve(
    instructions: str | Stream,
    warps: Iterable[int] = range(1, 17),
    *,
    policy: str = "gto",
    latencies: str | Latencies = "H100",
    memory_interval: int = 1,
    rounds: int = 24,
) -> OccupancyCurve:
    """Return the utilisation against resident warps, once the warps have found their rhythm.

    Arguments as in `simulate`. rounds: how many passes of all warps are counted, after a quarter as many to
    warm up; a round is as long as Little's law says, so that whole passes are counted where it holds.
    """
    instructions, warps = stream(instructions), tuple(warps)
    if not warps:
        raise ValueError("warps is empty, but a curve needs at least one number of warps, like range(1, 17).")
    whole("rounds", rounds, least=4, most=1000)
    settings = {"latencies": latencies, "memory_interval": memory_interval}
    predictions = tuple(littles_law(instructions, count, **settings) for count in warps)
    simulated = []
    for prediction in predictions:
        one_round = prediction.warps * prediction.instructions / prediction.utilisation
        cycles = min(round(rounds * one_round), MOST_CYCLES)
        settings |= {"policy": policy, "cycles": cycles, "warm_up": cycles // 4}
        simulated.append(simulate(instructions, prediction.warps, **settings).utilisation)
    return OccupancyCurve(warps, tuple(simulated), predictions, policy)
