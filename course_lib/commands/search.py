"""`python -m course_lib search M N K`: which kernel and tile compute an FP8 product fastest on this GPU.

The model's favourites are timed on the Hopper GPU of this machine, in turns and with an empty L2 cache; the
fastest is kept, and `fp8_gemm` takes it from then on. With no such GPU the model's order is printed, and
nothing is kept.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from course_lib.measure import machine
from course_lib.measure.table import Table, digits

MOST = 1 << 20
MODEL = "The model is one of waves, L2 and memory."
LARGEST = 1 << 31  # numbers of a matrix: its exact product takes eight bytes each, several times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    for name, of in (
        ("M", "rows of A and D"),
        ("N", "rows of B, columns of D"),
        ("K", "products an element"),
    ):
        parser.add_argument(name, type=int, metavar=name, help=of)


def run(args: argparse.Namespace) -> int:
    """Print the candidates, the fastest first, and return the exit code."""
    shape = (args.M, args.N, args.K)
    if problem := _wrong(*shape) or machine.missing("torch"):
        print(f"search: {problem}")
        return 2
    import torch

    from course_lib.fp8 import launch, searching
    from course_lib.fp8.choice import candidates
    from course_lib.fp8.choose import H200

    if sentence := launch.missing_here():
        print(_table(shape, dict.fromkeys(candidates(*shape)[: searching.TRIED]), H200))
        print(f"{MODEL} Nothing was measured. {sentence}")
        return 0
    try:
        ranked = searching.here(*shape)
    except searching.FAILURES as problem:
        print(f"search: {str(problem).splitlines()[0]}")
        return 1
    gpu = launch.gpu(torch.device("cuda", torch.cuda.current_device()))
    print(_table(shape, ranked, gpu))
    print(f"Medians, in turns, L2 cache empty. The first is kept: `fp8_gemm` takes it now. {MODEL}")
    return 0


def _wrong(M: int, N: int, K: int) -> str | None:
    """Return what is wrong with the sizes: `fp8_gemm` takes N in steps of 8 and K in steps of 16."""
    for name, size, step in (("M", M, 1), ("N", N, 8), ("K", K, 16)):
        if not 0 < size <= MOST or size % step:
            steps = f", in steps of {step}" if step > 1 else ""
            return f"{name} is {size}, but it must be a whole number from {step} to {MOST}{steps}."
    if max(M * N, M * K, N * K) > LARGEST:
        return f"a matrix of {M} x {N} x {K} has more than {LARGEST} numbers: take smaller sizes."
    return None


def _table(shape: tuple[int, int, int], ranked: dict, gpu: Any) -> Table:
    """Return the candidates with what was measured of them (None: nothing), and what the model expects."""
    from course_lib.fp8.choice import expected
    from course_lib.fp8.searching import words

    work, rows = 2e-12 * math.prod(shape), []
    for choice, seconds in ranked.items():
        model = expected(choice, *shape, gpu)
        took = (digits(seconds * 1e6), digits(work / seconds)) if seconds else ("–", "–")
        rows.append((words(choice), *took, digits(model.seconds * 1e6), model.limit))
    columns = ("kernel and tile", "us", "TFLOP/s", "model: us", "model: limit")
    return Table(columns, tuple(rows), f"{' x '.join(map(str, shape))} on an {gpu.name}")
