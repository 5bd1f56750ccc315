"""`python -m course_lib record`: for those who lack it, what a GPU measures or a compiler for GPUs makes.

--gpu measures the GPU rungs (here); --code compiles them (`record_code`); --encoder measures the speech
encoder on a CPU or a GPU (`record_encoder`); --hopper measures the FP8 kernels (`record_hopper`).

For --gpu, all rungs and cuBLAS take turns on the same operands, size by size, in one run. The result is a
small JSON file in `course_lib/measure/recordings/`, which `course_lib.measure.recordings` reads.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_lib import ladder
from course_lib.circles.front_door import RungUnavailable
from course_lib.commands import record_order
from course_lib.commands.record_order import CannotRecord, RecordOrder, WrongResult
from course_lib.measure import gpu_state, recordings
from course_lib.measure.recordings import Recording, RungRow
from course_lib.measure.timing import HASTE_VARIABLE, in_haste

#: What can be recorded; all but the first in a module of its own, `record_<kind>`.
KINDS = {
    "gpu": "the GPU rungs and cuBLAS",
    "code": "what the GPU rungs are compiled to",
    "encoder": "the speech encoder",
    "hopper": "the FP8 kernels on a Hopper GPU",
}
PROJECT = Path(__file__).resolve().parents[2]
SIZES = (256, 512, ladder.SIZE, 1024, ladder.LARGE, 2048, 4096, 8192)  # the ladder's, and powers of two
METHOD = (
    "Normally distributed operands, the same for all rungs; rungs in shuffled order, round after round; a "
    "sample is a batch of launches between two CUDA events, all queued before the first begins; caches as "
    "the launch before left them; TF32 off; error against the product in float64."
)
BUDGET_S = 20.0  # for a size
CHAINS = (1, 2, 4)  # independent sums a thread, for the curve of latency hiding
WORST_ERROR = 2.0**-22  # times sqrt(K): several times what rounding leaves, below a tenth of what TF32 does


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to ``parser``."""
    kinds = parser.add_mutually_exclusive_group(required=True)
    for kind, text in KINDS.items():
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=f"record {text}")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="where the encoder runs (default: cpu)"
    )
    parser.add_argument(
        "--small", action="store_true", help="a small encoder or small shapes, for trying out"
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="N", help="N of N x N")
    parser.add_argument("--rounds", type=int, default=15, metavar="R", help="samples of each (default: 15)")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="S",
        help="seconds of measuring: for a size (default: 20), for the encoder (120 on a CPU, 60 on a GPU), "
        "for a product of --hopper (3)",
    )
    parser.add_argument("--folder", type=Path, help="where the files go (default: into the course)")
    parser.add_argument("--commit", help="the course's git commit, where this folder is no git checkout")


def run(args: argparse.Namespace) -> int:
    """Measure or compile, print tables and write the files; return the exit code."""
    try:
        order = _order(args)
        if args.kind == "gpu":
            return _run_on_gpu(order)
        return importlib.import_module(f"course_lib.commands.record_{args.kind}").run(order)
    except CannotRecord as problem:
        print(f"record: {problem}")
        return problem.code


def _run_on_gpu(order: RecordOrder) -> int:
    import torch

    from course_lib.measure import machine

    record_order.refuse(machine.missing("cuda"))
    try:
        recording = measured(order.sizes, order.rounds, order.budget_s or BUDGET_S, order.commit)
    except (RungUnavailable, torch.OutOfMemoryError) as problem:
        raise CannotRecord(str(problem)) from None
    for size in recording.sizes:
        print(f"\n{recording.table(size)}")
    print()
    record_order.write(recordings.write, recording, order.folder or recordings.FOLDER)
    return 0


def _order(args: argparse.Namespace) -> RecordOrder:
    """Return what is to be done; raises CannotRecord for options that make no sense."""
    if in_haste():
        raise CannotRecord(
            f"{HASTE_VARIABLE} is set, but a recording must be measured with patience: unset it."
        )
    if too_small := [size for size in args.sizes if size < 1]:
        raise CannotRecord(f"--sizes has {too_small[0]}, but a matrix needs at least 1 row.")
    if args.rounds < 3:
        raise CannotRecord(f"--rounds is {args.rounds}, but a spread needs at least 3 samples.")
    if args.budget is not None and not 0 < args.budget < math.inf:
        raise CannotRecord(f"--budget is {args.budget:g}, but it must be a number of seconds above 0.")
    commit = args.commit or _commit()
    if not recordings.is_commit(commit):
        raise CannotRecord(
            f"the commit is {commit!r}, but 40 hexadecimal digits are needed: give it with --commit "
            "(git rev-parse HEAD, in the checkout that this is a copy of)."
        )
    sizes = tuple(args.sizes)
    return RecordOrder(commit, args.folder, sizes, args.rounds, args.budget, args.device, args.small)


def _commit() -> str:
    """Return the commit of the course, with "+changes" if its code differs from it; "" without git."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "course_lib") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def measured(
    sizes: Sequence[int] = SIZES, rounds: int = 15, budget_s: float = BUDGET_S, commit: str = ""
) -> Recording:
    """Return what the GPU of this machine does, for size x size matrices; `budget_s` seconds for a size.

    Raises WrongResult if a rung computes something else than the product.
    """
    import torch

    from course_lib.commands import gpu_counters
    from course_lib.measure import latency_hiding, machine
    from course_lib.measure.gpu_timing import samples

    here = machine.gpu()
    rungs = [entry for entry in ladder.LADDER if "cuda" in entry.requires]
    rows: list[RungRow] = []
    watch = gpu_state.Watch()

    def sampler(starts: Mapping[str, Any]) -> Mapping:
        with watch:  # not while tiles are chosen and results are checked
            return samples(starts, rounds, budget_s)

    for size in dict.fromkeys(sizes):
        print(f"{size} x {size} x {size} …", flush=True)
        rows += measure(rungs, size, sampler, "cuda")
    points = [point for chains in CHAINS for point in latency_hiding.measure(chains)]
    try:
        counters = gpu_counters.measure()
    except gpu_counters.NotCounted as problem:
        counters = []
        print(f"Without the GPU's own counters: {problem}.", flush=True)
    return Recording(
        when=record_order.now(),
        commit=commit,
        device=here.name,
        memory_bytes=here.memory_bytes or torch.cuda.get_device_properties(0).total_memory,
        gpu=gpu_state.recorded(watch),
        versions=record_order.versions("numpy", "torch", "numba", "numba-cuda"),
        method=METHOD,
        rows=tuple(rows),
        latency_hiding=tuple(points),
        counters=tuple(counters),
    )


def measure(
    rungs: Sequence[ladder.Rung], size: int, sampler: Callable[[Mapping[str, Any]], Mapping], device: str
) -> list[RungRow]:
    """Return a row for each rung, of products of size x size float32 matrices on torch's `device`.

    `sampler` takes the functions by name and returns what each took (`measure.gpu_timing.samples`). Raises
    WrongResult if a rung's result is further from the exact product than rounding explains.
    """
    import torch

    random = torch.Generator(device).manual_seed(size)
    A, B = (torch.randn(size, size, generator=random, device=device) for _ in range(2))
    exact = A.double() @ B.double()
    results = {entry.id: torch.full_like(A, math.nan) for entry in rungs}
    starts = {entry.id: functools.partial(entry.module().start, A, B, results[entry.id]) for entry in rungs}
    for start in starts.values():
        start()  # finds the tile and compiles
    errors = {id: float((C - exact).abs().max() / exact.abs().max()) for id, C in results.items()}
    for id, error in errors.items():
        if not error < WORST_ERROR * max(16.0, size**0.5):  # NaN is not below anything
            raise WrongResult(
                f"'{id}' is wrong at {size} x {size}: it is off by {error:.1e} of the largest entry."
            )
    taken = sampler(starts)
    return [
        RungRow(
            rung=entry.id,
            shape=(size,) * 3,
            seconds=taken[entry.id].median_s,
            spread_s=taken[entry.id].spread_s,
            samples=len(taken[entry.id].seconds),
            call_s=taken[entry.id].median_call_s,
            error=errors[entry.id],
            tile=_tile(entry, A, B, results[entry.id]),
        )
        for entry in rungs
    ]


def _tile(entry: ladder.Rung, A: Any, B: Any, C: Any) -> str:
    """Return the tile shape that the rung uses here, "" for a rung without a choice."""
    module = entry.module()
    if not hasattr(module, "TILES"):
        return ""
    from course_lib.circles.cuda_tuning import fastest

    return str(fastest(entry.id, module.TILES, module.start, A, B, C))
