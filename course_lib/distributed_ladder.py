"""The ladder for many ranks: every product of `course_lib.distributed` by name, in bytes before seconds.

    distributed_ladder.rung("distributed-summa").matmul(A, B)     one product on four processes
    distributed_ladder.climb((1000, 1000, 1000), ranks=4)         all of them: GFLOP/s, bytes for each rank

A registry of its own: what walks along `ladder.LADDER` would start processes for every product, and keeps
nothing but times. A rung's code is imported, and torch with it, when it is first called.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_lib.arguments import whole
from course_lib.circles.front_door import RungUnavailable, through_the_door
from course_lib.ladder import FLOATS, Rung, Shape, find_rung, operands

if TYPE_CHECKING:
    import numpy as np

    from course_lib.circles.front_door import Matmul
    from course_lib.measure.table import Table

RANKS = 4  # processes of a rung's `matmul`: a square, as Cannon needs it
PREFIX = "distributed-"


def _make(name: str, title: str, bottleneck: str) -> Rung:
    """Make the rung of `distributed.matmul.ALGORITHMS[name]`."""
    id = PREFIX + name

    def load() -> Matmul:
        return lambda A, B: on_ranks([id], A, B, RANKS, rounds=0)[id].C

    door = through_the_door(load, id, FLOATS, lambda: rung(id).missing())
    return Rung(id, 8, title, door, FLOATS, bottleneck, ("ranks",), "course_lib.distributed.matmul", True)


DISTRIBUTED: tuple[Rung, ...] = (
    _make("row", "Bands of rows, all of B gathered", "B (P − 1) / P through every wire"),
    _make("column", "Bands of columns, all of A gathered", "A (P − 1) / P through every wire"),
    _make("inner", "Bands of K, all of C added up", "C (P − 1) / P through every wire"),
    _make("summa", "Blocks, panels broadcast", "bytes / sqrt(P), and log P steps for each panel"),
    _make("summa-pipelined", "Blocks, panels passed on", "bytes / sqrt(P), in many short messages"),
    _make("cannon", "Blocks, shifted between neighbours", "bytes / sqrt(P), and a skew before it"),
    _make("2.5d", "Blocks, kept c times", "memory: c copies of A and B"),
)


def rung(id: str) -> Rung:
    """Return the rung of that id; raises KeyError with the nearest names if there is none."""
    return find_rung(id, DISTRIBUTED, "distributed rung", "")


@dataclass(frozen=True)
class OnRanks:
    """What came of a product on many ranks: C, seconds of each round, bytes that each rank sent for one."""

    C: np.ndarray
    seconds: list[float]
    sent: list[int]


def climb(
    shape: Shape,
    *,
    ids: Sequence[str] = (),
    ranks: int = RANKS,
    dtype: str = "float32",
    rounds: int = 5,
) -> Table:
    """Measure rungs in turns on one random product: GFLOP/s, and the megabytes that a rank sends.

    `shape` is (M, K, N). Without `ids` those that can use so many ranks. The time is the median of `rounds`.
    Raises KeyError for an unknown rung, ValueError for a shape, dtype or number of ranks that makes no sense,
    RungUnavailable with the sentence where there are no ranks, and otherwise as `distributed.launch.run`.
    """
    from course_lib.distributed.matmul import ALGORITHMS
    from course_lib.measure import machine
    from course_lib.measure.accuracy import relative_error
    from course_lib.measure.table import Table, digits

    M, K, N = shape = tuple(whole("a side of the shape", side) for side in shape)
    whole("ranks", ranks)
    whole("rounds", rounds)
    if dtype not in FLOATS:
        raise ValueError(f"dtype is {dtype!r}, but these rungs multiply {' or '.join(FLOATS)}.")
    chosen = [rung(id).id for id in ids] or _able(shape, ranks)
    A, B = operands(shape, dtype)
    found = on_ranks(chosen, A, B, ranks, rounds)
    rows = []
    for id, one in found.items():
        theory = ALGORITHMS[id.removeprefix(PREFIX)].words(shape, ranks) * A.itemsize
        speed = 2e-9 * M * K * N / statistics.median(one.seconds)
        error = f"{relative_error(one.C, A, B):.1e}"
        sent = f"{statistics.mean(one.sent) / 1e6:.3f}"
        rows.append((id, digits(speed), sent, f"{theory / 1e6:.3f}", error))
    return Table(
        ("rung", "GFLOP/s", "MB a rank sends", "by the formula", "max error"),
        tuple(rows),
        f"{M:,} x {K:,} x {N:,} {dtype} on {ranks} ranks",
        notes=(what_the_clock_says(ranks, machine.describe().cores),),
    )


def what_the_clock_says(ranks: int, cores: int) -> str:
    """Return the sentence on whether GFLOP/s of so many ranks on so many cores mean anything."""
    if ranks > cores:
        return (
            f"The clock means nothing here: {ranks} ranks take turns on {cores} cores. The bytes are the "
            "verdict, and the time that a simulated network makes of them."
        )
    return (
        f"The clock is this machine's: its {ranks} ranks pass messages through memory, not through a wire. "
        "The bytes are those of any network."
    )


def on_ranks(ids: Sequence[str], A: np.ndarray, B: np.ndarray, ranks: int, rounds: int) -> dict[str, OnRanks]:
    """Multiply by each rung on `ranks` processes, once unmeasured and then `rounds` times, in turns.

    Raises RungUnavailable where there are no ranks, ValueError for ranks that a rung cannot use.
    """
    import numpy as np

    if lacking := rung(ids[0]).missing():
        raise RungUnavailable(f"The rung '{ids[0]}' cannot run here: {lacking}")
    from course_lib.distributed.launch import run
    from course_lib.distributed.matmul import ALGORITHMS

    shape = (*A.shape, B.shape[1])
    layouts = {id: ALGORITHMS[id.removeprefix(PREFIX)].layout(shape, ranks) for id in ids}
    values = run(_play, ranks, ids=list(ids), A=A, B=B, rounds=rounds)
    found = {}
    for id, layout in layouts.items():
        C = np.empty((shape[0], shape[2]), A.dtype)
        for cell, value in zip(layout.C, values, strict=True):
            C[cell] = value[id][0]
        seconds = [max(of_round) for of_round in zip(*(value[id][1] for value in values), strict=True)]
        found[id] = OnRanks(C, seconds, [value[id][2] for value in values])
    return found


def _play(ids: list[str], A: np.ndarray, B: np.ndarray, rounds: int) -> dict[str, tuple[Any, list, int]]:
    """What a rank does: cut out its shards, and multiply by each rung in turns. C, seconds, bytes of one."""
    import numpy as np
    import torch
    from threadpoolctl import threadpool_limits

    from course_lib.distributed.matmul import ALGORITHMS
    from course_lib.distributed.wire import Wire

    wire, shape = Wire.of_group(), (*A.shape, B.shape[1])
    plays = {}
    for id in ids:
        algorithm = ALGORITHMS[id.removeprefix(PREFIX)]
        layout = algorithm.layout(shape, wire.size)
        a, b = np.ascontiguousarray(A[layout.A[wire.rank]]), np.ascontiguousarray(B[layout.B[wire.rank]])
        plays[id] = functools.partial(algorithm.multiply, A=a, B=b, shape=shape)
    seconds: dict[str, list[float]] = {id: [] for id in ids}
    found = {}
    with threadpool_limits(torch.get_num_threads()):  # ranks that share cores share them
        for round in range(1 + rounds):
            for id, play in plays.items():
                before = wire.bytes_sent
                C, took = _timed(lambda play=play: play(wire))
                found[id] = (C, seconds[id], wire.bytes_sent - before)
                seconds[id] += [took] * (round > 0)
    return found


def _timed(play: Callable[[], Any]) -> tuple[Any, float]:
    """Return the value, and the seconds from when all ranks have come to when all have ended."""
    import torch.distributed as dist

    dist.barrier()
    start = time.perf_counter()
    value = play()
    dist.barrier()
    return value, time.perf_counter() - start


def _able(shape: Shape, ranks: int) -> list[str]:
    """Return the rungs that can use so many ranks."""
    from course_lib.distributed.matmul import ALGORITHMS

    able = []
    for entry in DISTRIBUTED:
        with contextlib.suppress(ValueError):
            ALGORITHMS[entry.id.removeprefix(PREFIX)].layout(shape, ranks)
            able.append(entry.id)
    return able
