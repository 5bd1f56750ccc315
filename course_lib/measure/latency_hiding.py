"""How many warps hide the latency of an FMA on a real GPU: the simulation of a scheduler is held against it.

    points = measure(chains=1)        on a CUDA machine: FMAs per second against warps per scheduler

Each thread runs `chains` sums that know nothing of each other; in each of them every FMA waits for the one
before. One block on each multiprocessor, of 4 to 32 warps: a multiprocessor has four schedulers, so 1 to 8
warps each. The kernel's loop has 16 FMAs and a few instructions for its counter, so it comes a little short
of the peak; the curve is judged by its shape, against its own highest point.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from numba import cuda, float32

from course_lib.measure.recordings import HidingPoint

SCHEDULERS = 4  # of a multiprocessor
WARP = 32
STEPS = 16  # FMAs of each chain in a turn of the loop
TURNS = 20_000
WARPS = (4, 8, 12, 16, 20, 24, 32)  # of a block: a whole number for each scheduler
ROUNDS = 5


@functools.cache
def kernel(chains: int) -> Callable:
    """Return the kernel with so many independent sums a thread."""

    @cuda.jit
    def dependent_fmas(turns, factor, out):
        sums = cuda.local.array(chains, float32)
        for chain in range(chains):
            sums[chain] = float32(chain)
        turn = 0
        while turn < turns:
            for _ in range(STEPS):
                for chain in range(chains):
                    sums[chain] = sums[chain] * factor + factor
            turn += 1
        total = float32(0)
        for chain in range(chains):
            total += sums[chain]
        out[cuda.grid(1)] = total  # or the compiler would leave all of it out

    return dependent_fmas


def measure(chains: int = 1) -> list[HidingPoint]:
    """Return a point for each number of warps in a block, measured in turns on torch's current GPU."""
    import torch

    from course_lib.measure.cuda_stream import on_torchs_stream
    from course_lib.measure.gpu_timing import samples

    sms = torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.empty(sms * WARP * max(WARPS), dtype=torch.float32, device="cuda")
    function = kernel(chains)

    def started(count: int) -> Callable[[], None]:
        launched = on_torchs_stream(function, sms, count * WARP)
        return lambda: launched(TURNS, float32(0.5), out)

    taken = samples({str(count): started(count) for count in WARPS}, ROUNDS)
    work = sms * WARP * STEPS * TURNS * chains
    return [
        HidingPoint(chains, count / SCHEDULERS, count * work / taken[str(count)].median_s) for count in WARPS
    ]
