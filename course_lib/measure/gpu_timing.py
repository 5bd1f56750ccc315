"""How long work on the GPU takes: seconds there, and seconds it costs the CPU to start it.

A kernel is started and runs on its own, so a clock around the call measures the start alone. Here the GPU's
own clock is read, by events in its queue before and after a batch of launches. The GPU is first kept
waiting until the whole batch is in the queue: otherwise the time between two short kernels, in which it
waits for the CPU, would count as theirs. What that wait costs in daily life is the second figure, the CPU's
time for a launch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

BATCH_S = 5e-3  # of work in a sample: ten thousand steps of the GPU's clock for events (0.5 us, CUDA runtime)
MOST_LAUNCHES = 200  # in a sample: the queue holds about 1,000, then a launch waits
SPIN_HZ = 2e9  # cycles per second at most: what torch.cuda._sleep counts, so the GPU waits at least that long
LONGEST_WAIT_S = 0.2
MOST_FLUSHED = 20  # launches in a sample with a flush before each


@dataclass
class Taken:
    """What one function took: seconds on the GPU and, until the work is queued, of the CPU, a sample each."""

    seconds: list[float] = field(default_factory=list)
    call_s: list[float] = field(default_factory=list)

    @property
    def median_s(self) -> float:
        """Seconds on the GPU, the median of the samples."""
        return float(np.median(self.seconds))

    @property
    def median_call_s(self) -> float:
        """Seconds of the CPU for a call: its Python and the launch. The median of the samples."""
        return float(np.median(self.call_s))

    @property
    def spread_s(self) -> float:
        """Half the distance between the quartiles of the samples."""
        quarter, three_quarters = np.percentile(self.seconds, (25, 75))
        return float(three_quarters - quarter) / 2


def samples(
    functions: Mapping[str, Callable[[], None]],
    rounds: int = 7,
    budget_s: float = math.inf,
    flush: Callable[[], None] | None = None,
) -> dict[str, Taken]:
    """Time functions that start work on torch's current stream, taking turns in shuffled order.

    Each is called once before (that compiles). At least three rounds are made; more, up to `rounds`, as long
    as `budget_s` seconds are not over. With `flush`, which empties the L2 cache (`l2_flush`), it comes before
    each launch and does not count; the GPU's clock is then read around each launch, not around a batch.
    """
    random = np.random.default_rng(0)
    names = list(functions)
    for name in names:
        functions[name]()
    launches = {name: _launches(functions[name]) for name in names}
    if flush:  # it takes longer than most of what is measured, and its launches want room in the queue, too
        launches = {name: min(count, MOST_FLUSHED) for name, count in launches.items()}
    taken = {name: Taken() for name in names}
    begin = time.perf_counter()
    for turn in range(rounds):
        if turn >= 3 and time.perf_counter() - begin > budget_s:
            break
        for place in random.permutation(len(names)):
            name = names[place]
            seconds, call_s = _sample(functions[name], launches[name], flush)
            taken[name].seconds.append(seconds)
            taken[name].call_s.append(call_s)
    return taken


def _launches(function: Callable[[], None]) -> int:
    """Return how many launches make a sample of BATCH_S."""
    seconds, _ = _sample(function, 3)
    return min(max(1, math.ceil(BATCH_S / max(seconds, 1e-7))), MOST_LAUNCHES)


def l2_flush() -> Callable[[], None]:
    """Return what puts other numbers into all of the L2 cache: twice its size is written, then as much read.

    After writing alone the cache would be full of numbers that must go to memory first, on somebody else's
    time.
    """
    import torch

    size = 2 * torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    written, read = (torch.zeros(size // 4, device="cuda") for _ in range(2))

    def flush() -> None:
        written.zero_()
        torch.sum(read)

    return flush


def _sample(
    function: Callable[[], None], launches: int, flush: Callable[[], None] | None = None
) -> tuple[float, float]:
    """Return the seconds a call takes on the GPU and on the CPU, the mean of a batch."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    if flush:
        flush()
    function()
    expected_s = time.perf_counter() - start  # for one launch; the work itself goes on meanwhile
    torch.cuda.synchronize()
    torch.cuda._sleep(int(min(2 * launches * expected_s, LONGEST_WAIT_S) * SPIN_HZ))
    batches = [launches] if flush is None else [1] * launches
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in batches]
    call_s = 0.0
    for (before, after), batch in zip(events, batches, strict=True):
        if flush:
            flush()
        before.record()
        start = time.perf_counter()
        for _ in range(batch):
            function()
        call_s += time.perf_counter() - start
        after.record()
    torch.cuda.synchronize()
    seconds = sum(before.elapsed_time(after) for before, after in events) / 1e3
    return seconds / launches, call_s / launches
