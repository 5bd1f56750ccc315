"""What a run of the warp scheduler simulation counted, and its table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from course_lib.measure.table import Table, digits
from course_lib.simulators.gpu.warp_stream import REQUESTS, Stream

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
class Result:
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
