"""A warp scheduler, cycle by cycle: how many warps hide how much latency.

    result = simulate("x = load; s = fma x s", warps=8, latencies="H100")
    result.utilisation, result.table(), result.timeline
    occupancy_curve(independent_loads(4), memory_interval=10).table()

One sub-partition of a streaming multiprocessor: one scheduler, its resident warps (of an SM's, a quarter),
one instruction issued per cycle. Each warp runs the same stream of instructions (`warp_stream`) in order; an
instruction can be issued when all registers it touches are ready. Switching to another warp costs nothing:
that is how a GPU hides latency. Memory answers after its latency, but takes only one request every
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
from dataclasses import dataclass

import numpy as np

from course_lib.measure.table import Table, digits
from course_lib.simulators.gpu.gpu_latencies import LATENCIES, Latencies, latencies_of
from course_lib.simulators.gpu.littles_law import (
    MOST_INTERVAL,
    MOST_WARPS,
    Prediction,
    littles_law,
    memory_interval_of,
)
from course_lib.simulators.gpu.warp_result import NUMBER_OF, POLICIES, STATES, Result
from course_lib.simulators.gpu.warp_stream import (
    REQUESTS,
    Instruction,
    Stream,
    independent_loads,
    registers,
    stream,
)
from course_lib.simulators.gpu.whole_numbers import check_whole

__all__ = [
    "LATENCIES",
    "POLICIES",
    "STATES",
    "Curve",
    "Instruction",
    "Latencies",
    "Prediction",
    "Result",
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
) -> Result:
    """Run `warps` warps through a stream of instructions and return what each did in each cycle.

    instructions: text or instructions, see `warp_stream.stream`. warps: 1 to 64; hardware has 8 (compute
    capability 7.5), 12 (8.6, 8.7, 8.9) or 16 (8.0, 9.0) per scheduler at most. cycles: how many are counted.
    passes: how often each warp runs the stream; the run ends with the last issue, which must come within
    `cycles`. None: over and over. warm_up: cycles run before the counting begins. policy: "gto" or "lrr".
    latencies: a GPU's name in LATENCIES, or Latencies. memory_interval: cycles between two requests (`l2`,
    `load`) that the memory takes from this sub-partition; 1: no limit, as one a cycle is issued at most.

    Raises ValueError for numbers that make no sense.
    """
    instructions, latencies = stream(instructions), latencies_of(latencies)
    check_whole("warps", warps, 1, MOST_WARPS)
    check_whole("cycles", cycles, 1, MOST_CYCLES)
    check_whole("warm_up", warm_up, 0, MOST_CYCLES)
    check_whole("passes", 1 if passes is None else passes, 1, MOST_CYCLES)
    check_whole("memory_interval", memory_interval, 1, MOST_INTERVAL)
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
    return Result(instructions, policy, timeline[:, counted], issue[counted], flying, latency)


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
class Curve:
    """Issue-slot utilisation against resident warps: simulated, and as Little's law bounds it."""

    warps: tuple[int, ...]
    simulated: tuple[float, ...]
    predictions: tuple[Prediction, ...]
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
) -> Curve:
    """Return the utilisation against resident warps, once the warps have found their rhythm.

    Arguments as in `simulate`. rounds: how many passes of all warps are counted, after a quarter as many to
    warm up; a round is as long as Little's law says, so that whole passes are counted where it holds.
    """
    instructions, warps = stream(instructions), tuple(warps)
    if not warps:
        raise ValueError("warps is empty, but a curve needs at least one number of warps, like range(1, 17).")
    check_whole("rounds", rounds, 4, 1000)
    settings = {"latencies": latencies, "memory_interval": memory_interval}
    predictions = tuple(littles_law(instructions, count, **settings) for count in warps)
    simulated = []
    for prediction in predictions:
        one_round = prediction.warps * prediction.instructions / prediction.utilisation
        cycles = min(round(rounds * one_round), MOST_CYCLES)
        settings |= {"policy": policy, "cycles": cycles, "warm_up": cycles // 4}
        simulated.append(simulate(instructions, prediction.warps, **settings).utilisation)
    return Curve(warps, tuple(simulated), predictions, policy)
