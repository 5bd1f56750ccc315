"""The ladder for many ranks: every product of `course_lib.distributed`, in bytes before seconds.

    distributed_ladder.climb((1000, 1000, 1000), ranks=4)         all of them: GFLOP/s, bytes for each rank

A registry of its own: what walks along `ladder.LADDER` would start processes for every product, and keeps
nothing but times.
"""

from __future__ import annotations

import statistics
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from course_lib.arguments import one_of, whole
from course_lib.ladder import FLOATS, Shape, operands

if TYPE_CHECKING:
    import numpy as np

    from course_lib.measure.table import Table


def climb(
    shape: Shape,
    *,
    ranks: int = 4,
    dtype: str = "float32",
    rounds: int = 5,
) -> Table:
    """Measure products in turns on random matrices: GFLOP/s, and the megabytes that a rank sends.

    `shape` is (M, K, N); those of `matmul.ALGORITHMS` take part that can use so many ranks. The time is the
    median of `rounds`. Raises ValueError for what makes no sense, and otherwise as `distributed.launch.run`.
    """
    from course_lib.distributed.launch import run
    from course_lib.distributed.matmul import ALGORITHMS, joined
    from course_lib.measure import machine
    from course_lib.measure.accuracy import relative_error
    from course_lib.measure.table import Table, digits

    M, K, N = shape = tuple(whole("a side of the shape", side) for side in shape)
    whole("ranks", ranks)
    whole("rounds", rounds)
    one_of("dtype", dtype, FLOATS)
    able = []
    for name, algorithm in ALGORITHMS.items():
        with suppress(ValueError):
            algorithm.layout(shape, ranks)
            able.append(name)
    A, B = operands(shape, dtype)
    values = run(_play, ranks, names=able, A=A, B=B, rounds=rounds)
    rows = []
    for name in able:
        parts, seconds, sent = zip(*(value[name] for value in values), strict=True)
        slowest = [max(of_round) for of_round in zip(*seconds, strict=True)]
        speed = 2e-9 * M * K * N / statistics.median(slowest)
        error = relative_error(joined(name, parts, shape), A, B)
        formula = ALGORITHMS[name].words(shape, ranks) * A.itemsize
        megabytes = (f"{size / 1e6:.3f}" for size in (statistics.mean(sent), formula))
        rows.append((name, digits(speed), *megabytes, f"{error:.1e}"))
    return Table(
        ("product", "GFLOP/s", "MB a rank sends", "by the formula", "max error"),
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


def _play(names: list[str], A: np.ndarray, B: np.ndarray, rounds: int) -> dict[str, tuple[Any, list, int]]:
    """What a rank does: multiply in each way in turns, once unmeasured. Its C, seconds, bytes of one."""
    import torch
    import torch.distributed as dist
    from threadpoolctl import threadpool_limits

    from course_lib.distributed.matmul import ALGORITHMS, shards
    from course_lib.distributed.wire import Wire

    wire, shape = Wire.of_group(), (*A.shape, B.shape[1])
    mine = {name: shards(wire, name, A, B) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    found = {}
    with threadpool_limits(torch.get_num_threads()):  # ranks that share cores share them
        for round in range(1 + rounds):
            for name in names:
                before = wire.bytes_sent
                dist.barrier()  # from when all ranks have come to when all have ended
                start = time.perf_counter()
                C = ALGORITHMS[name].multiply(wire, *mine[name], shape)
                dist.barrier()
                seconds[name] += [time.perf_counter() - start] * (round > 0)
                found[name] = (C, seconds[name], wire.bytes_sent - before)
    return found
