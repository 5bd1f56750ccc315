"""Task 02.roofline: the speed that memory and arithmetic allow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.grading.compare import close
from course_lib.grading.rules import OnlyImports
from course_lib.grading.task import Case, Lookalike, Task
from course_lib.measure import roofline


def attainable(intensity: float, peak_gflops: float, gbps: float) -> tuple[float, str]:
    """Return the GFLOP/s the roofline allows, and what limits: "memory" below the ridge, else "compute"."""
    bounds = intensity, peak_gflops, gbps
    return roofline.attainable(*bounds), roofline.limit(*bounds)


def _kernels(rng: np.random.Generator) -> Iterator[Case]:
    yield Case((0.5, 100.0, 20.0), "a loop that moves more than it computes")
    yield Case((0.083, 100.0, 20.0), "the inner step of ikj with nothing in cache")
    yield Case((64.0, 100.0, 20.0), "a product of large matrices, well blocked")
    yield Case((5.0, 100.0, 20.0), "exactly at the ridge: the peak is reached")
    below_one, above_one, memory_bound, compute_bound = (0.05, 0.9), (1.1, 40), (1.2, 9), (0.1, 0.8)
    for intensities in (below_one, above_one):  # on both sides of the ridge, in numbers of many digits
        for peaks in (memory_bound, compute_bound, memory_bound, compute_bound):
            intensity, gbps, peak = (rng.uniform(*span) for span in (intensities, (8, 400), peaks))
            values = (intensity, peak * intensity * gbps, gbps)
            yield Case(tuple(round(float(value), 6) for value in values), "a kernel")


TASK = Task(
    id="02.roofline",
    title="Is this the end, right?",
    kind="write",
    points=2,
    difficulty=2,
    minutes=10,
    good_for="an upper bound for any loop before anybody optimises it",
    entry="attainable",
    cases=_kernels,
    reference=attainable,
    comparison=close(rtol=1e-9, parts=("GFLOP/s", "limit")),
    rules=(OnlyImports(("math", "numpy")),),
    lookalikes=(
        Lookalike(
            "Your result exceeds the peak: no kernel computes faster than the machine.",
            lambda intensity, peak, gbps: (
                (intensity * gbps, attainable(intensity, peak, gbps)[1]) if intensity * gbps > peak else None
            ),
        ),
        Lookalike(
            "You took the higher roof; the lower one limits.",
            fits=lambda got, intensity, peak, gbps: (
                intensity * gbps != peak and got[0] == max(intensity * gbps, peak)
            ),
        ),
        Lookalike(
            "The bound by memory is intensity * bandwidth: FLOP/byte times GB/s. You divide.",
            lambda intensity, peak, gbps: (
                min(gbps / intensity, peak),
                "memory" if gbps / intensity < peak else "compute",
            ),
        ),
        Lookalike(
            "You divide the intensity by the bandwidth; FLOP/byte times GB/s is GFLOP/s.",
            fits=lambda got, intensity, peak, gbps: (
                np.isclose(got[0], min(intensity / gbps, peak)) and intensity / gbps < peak
            ),
        ),
        Lookalike(
            "Only where both bounds meet: the task says compute there.",
            lambda intensity, peak, gbps: (peak, "memory") if intensity * gbps == peak else None,
        ),
        Lookalike(
            "The words are swapped: left of the ridge memory is what limits.",
            lambda intensity, peak, gbps: (
                attainable(intensity, peak, gbps)[0],
                "compute" if intensity * gbps < peak else "memory",
            ),
        ),
    ),
    hints=(
        "A kernel that does `intensity` FLOP for each byte, on a machine that moves `gbps` GB per second: "
        "how many "
        "FLOP can it do per second at most, if arithmetic cost nothing?",
        "intensity * gbps is the roof set by memory, peak_gflops the one set by arithmetic. The lower "
        "roof limits.",
        'by_memory = intensity * gbps; return (by_memory, "memory") if by_memory < peak_gflops '
        'else (peak_gflops, "compute").',
    ),
)
