"""`python -m course_lib search M N K`: which kernel and tile compute an FP8 product fastest on this GPU.

The model's favourites are timed on the Hopper GPU of this machine, in turns and with an empty L2 cache; the
fastest is kept, and `fp8_gemm` takes it from then on. With no such GPU the model's order is printed, and
nothing is kept.
"""

from __future__ import annotations

import argparse

from course_lib.measure import machine

MOST = 1 << 20
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
    from course_lib.fp8 import launch, searching

    if sentence := launch.missing_here():
        print(_expected(*shape))
        print(f"Nothing was measured. {sentence}")
        return 0
    try:
        ranked = searching.here(*shape)
    except searching.FAILURES as problem:
        print(f"search: {str(problem).splitlines()[0]}")
        return 1
    print(_measured(*shape, ranked))
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


def _expected(M: int, N: int, K: int):
    from course_lib.fp8.choice import candidates, expected
    from course_lib.fp8.choose import H200
    from course_lib.fp8.searching import TRIED, words
    from course_lib.measure.table import Table, digits

    models = {choice: expected(choice, M, N, K) for choice in candidates(M, N, K)[:TRIED]}
    return Table(
        columns=("kernel and tile", "model: us", "limit"),
        rows=tuple((words(c), digits(model.seconds * 1e6), model.limit) for c, model in models.items()),
        caption=f"{M} x {N} x {K} on an {H200.name}, as the model expects it",
        notes=("A model of waves, L2 and memory; nothing here is measured.",),
    )


def _measured(M: int, N: int, K: int, ranked: dict):
    import torch

    from course_lib.fp8 import launch
    from course_lib.fp8.choice import expected
    from course_lib.fp8.searching import words
    from course_lib.measure.table import Table, digits

    gpu = launch.gpu(torch.device("cuda", torch.cuda.current_device()))
    return Table(
        columns=("kernel and tile", "us", "TFLOP/s", "model: us"),
        rows=tuple(
            (
                words(choice),
                digits(seconds * 1e6),
                digits(2e-12 * M * N * K / seconds),
                digits(expected(choice, M, N, K, gpu).seconds * 1e6),
            )
            for choice, seconds in ranked.items()
        ),
        caption=f"{M} x {N} x {K} on {gpu.name}",
        notes=("Medians on the GPU, in turns, L2 cache empty. The first is kept: `fp8_gemm` takes it now.",),
    )
