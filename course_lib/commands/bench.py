"""`python -m course_lib bench`: every rung of the ladder, measured fairly on this computer.

Without options the CPU summit follows: the best rungs against both baselines, over all shapes aimed at.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from course_lib import ladder
from course_lib.commands import summit
from course_lib.measure.table import seconds_in_words

#: Two sizes, small enough for plain Python: what does a call cost at least, and what does a product add?
PROBE_SIZES = (16, 48)
PROBES = 3  # calls of each: the quickest counts
DEFAULT_SIZES = (64, 256, 1024)
DEFAULT_DTYPES = ("float64",)
WRITABLE = "choose a file in a folder that exists and is yours"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the bench."""
    parser.add_argument("--rungs", nargs="+", metavar="RUNG", help="rungs to measure (default: all)")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="N of N x N")
    parser.add_argument("--dtype", nargs="+", choices=ladder.FLOATS, help="element type (default: float64)")
    parser.add_argument("--summit", action="store_true", help="only the best rungs against both baselines")
    parser.add_argument("--threads", type=int, default=1, help="threads for BLAS and Numba (default: 1)")
    parser.add_argument(
        "--budget", type=float, default=4.0, metavar="S", help="seconds per table (default: 4)"
    )
    parser.add_argument(
        "--longest", type=float, default=5.0, metavar="S", help="leave out slower single calls"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument("--no-save", action="store_true", help="do not add the results to your ladder")
    parser.add_argument("--list", action="store_true", help="name the rungs and stop")


def run(args: argparse.Namespace) -> int:
    """Measure what the arguments ask for and print a table per size and dtype; return the exit code."""
    if args.list:
        _print_rungs()
        return 0
    try:
        rungs = _chosen(args)
    except (KeyError, ValueError) as problem:
        print(f"bench: {problem.args[0]}")
        return 2
    everything = not (args.rungs or args.sizes or args.dtype)
    return _measure(args, rungs, with_summit=args.summit or everything)


def _measure(args: argparse.Namespace, rungs: list[ladder.Rung], with_summit: bool) -> int:
    from course_lib.measure import machine

    print(machine.card())
    behind = machine.blas_is_behind()
    if behind:
        print(behind)
    tables = []
    for dtype in [] if args.summit else args.dtype or DEFAULT_DTYPES:
        able = _able(rungs, dtype)
        costs = {entry.id: call_cost(entry, dtype) for entry in able}
        for size in args.sizes or DEFAULT_SIZES:
            tables.append(_one_table(args, able, costs, size, dtype))
    measured = [table for table in tables if table]
    lines = []
    if with_summit:
        print()
        lines = [line.data() for line in summit.measure(args.sizes, args.budget, not args.no_save)]
    if args.json:
        content = {"machine": str(machine.card()), "comparisons": measured, "summit": lines}
        return _write(args.json, content)
    return 0 if measured or lines else 1


def _one_table(
    args: argparse.Namespace, rungs: list[ladder.Rung], costs: dict[str, CallCost], size: int, dtype: str
) -> dict | None:
    """Measure the rungs that are fast enough at this size; return the comparison as data, or None."""
    expected = {entry.id: costs[entry.id].seconds(size) for entry in rungs}
    in_time = [entry.id for entry in rungs if expected[entry.id] <= args.longest]
    print(f"\n{size} x {size} x {size}, {dtype}, {args.threads} thread(s)")
    for entry in rungs:
        if entry.id not in in_time:
            about = seconds_in_words(expected[entry.id], significant=2)
            print(f"  {entry.id}: left out, one call would take about {about} (see --longest)")
    if not in_time:
        return None
    comparison = ladder.climb(
        in_time,
        size,
        dtype=dtype,
        threads=args.threads,
        budget_s=args.budget,
        save=not args.no_save,
    )
    print(comparison.table())
    print(comparison.card())
    return comparison.data()


@dataclass(frozen=True)
class CallCost:
    """What a call takes: `start_s` at least (waking threads …), and N^3 times `product_s`."""

    start_s: float
    product_s: float

    def seconds(self, size: int) -> float:
        """Return what is to be expected of size x size matrices."""
        return self.start_s + self.product_s * size**3


def call_cost(entry: ladder.Rung, dtype: str) -> CallCost:
    """Estimate what the rung takes from calls of two sizes, after one that compiles."""
    small, large = PROBE_SIZES
    entry.matmul(*ladder.operands((small,) * 3, dtype))
    at_small, at_large = (_quickest_call(entry, size, dtype) for size in PROBE_SIZES)
    product_s = max(0.0, at_large - at_small) / (large**3 - small**3)
    return CallCost(max(0.0, at_small - product_s * small**3), product_s)


def _quickest_call(entry: ladder.Rung, size: int, dtype: str) -> float:
    A, B = ladder.operands((size,) * 3, dtype)
    calls = []
    for _ in range(PROBES):
        start = time.perf_counter()
        entry.matmul(A, B)
        calls.append(time.perf_counter() - start)
    return min(calls)


def _able(rungs: list[ladder.Rung], dtype: str) -> list[ladder.Rung]:
    """Return the rungs that can be measured here; name the others, those with one reason in one line."""
    reasons = {entry.id: entry.missing() or _why_not(entry, dtype) for entry in rungs}
    for reason in dict.fromkeys(reason for reason in reasons.values() if reason):
        print(f"{', '.join(id for id in reasons if reasons[id] == reason)}: left out. {reason}")
    return [entry for entry in rungs if not reasons[entry.id]]


def _why_not(entry: ladder.Rung, dtype: str) -> str | None:
    if "cuda" in entry.requires:
        return "`python -m course_lib record --gpu` measures these, with the operands in the GPU's memory."
    if dtype in entry.dtypes:
        return None
    return f"This multiplies {' and '.join(entry.dtypes)} but not {dtype} (see --dtype)."


def _chosen(args: argparse.Namespace) -> list[ladder.Rung]:
    from course_lib.measure import machine

    available = machine.describe().threads
    if not 1 <= args.threads <= available:
        raise ValueError(f"--threads is {args.threads}, but this machine offers 1 to {available}.")
    wrong = [size for size in args.sizes or () if size < 1]
    if wrong:
        raise ValueError(f"--sizes has {wrong[0]}, but a matrix needs at least 1 row.")
    for option, seconds in (("--budget", args.budget), ("--longest", args.longest)):
        if not 0 < seconds < math.inf:
            raise ValueError(f"{option} is {seconds:g}, but it must be a number of seconds above 0.")
    if args.json and (trouble := _why_not_writable(args.json)):
        raise ValueError(f"{args.json} cannot be written ({trouble}): {WRITABLE}.")
    return [ladder.rung(id) for id in args.rungs] if args.rungs else list(ladder.LADDER)


def _print_rungs() -> None:
    for entry in ladder.LADDER:
        print(f"{entry.id:16} circle {entry.circle}  {entry.title} ({entry.bottleneck})")


def _why_not_writable(path: Path) -> str | None:
    """Return why a file cannot be made there, None when it can: asked before minutes of measuring."""
    if path.is_dir():
        return "it is a folder"
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return None
    except OSError as problem:
        return problem.strerror or str(problem)


def _write(path: Path, content: dict) -> int:
    """Write the JSON beside its final place and move it there, so a full disk leaves no half file."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(file.name, path)
    except OSError as problem:
        print(f"bench: {path} cannot be written ({problem.strerror}): {WRITABLE}.")
        return 1
    print(f"\nWritten to {path}.")
    return 0
