"""`python -m course_lib bench`: every rung of the ladder, measured fairly on this computer.

Without options the CPU summit follows: the best rungs against both baselines, over all shapes aimed at.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import statistics
import tempfile
import timeit
from collections import defaultdict
from itertools import product
from pathlib import Path

from course_lib import ladder, whole_files
from course_lib.measure.table import seconds_in_words

SMALLEST_PROBE = 48  # N of the first call that is tried: small enough for plain Python
PROBES = 2  # calls of a size: the quicker counts
DEFAULT_SIZES = (ladder.SMALL, ladder.SIZE, ladder.LARGE)
DEFAULT_DTYPES = ("float64",)
#: The CPU summit: the best rungs on one core and on all, and the shapes aimed at.
BEST = {1: ("simd", "unrolled")}
SQUARES = (256, 512, 1000, 1024, 2048, 3000, 4096)
SKINNY: tuple[ladder.Shape, ...] = (
    (4096, 64, 4096),
    (64, 4096, 4096),
    (4096, 4096, 64),
    (257, 1031, 509),
    (250, 512, 2048),  # the last three are products of a Conformer
    (250, 2048, 512),
    (250, 512, 512),
)
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
        for size in args.sizes or DEFAULT_SIZES:
            tables.append(_one_table(args, able, size, dtype))
    measured = [table for table in tables if table]
    lines = []
    if with_summit:
        print()
        lines = _summit(args)
    if args.json:
        content = {"machine": str(machine.card()), "comparisons": measured, "summit": lines}
        return _write(args.json, content)
    return 0 if measured or lines else 1


def _one_table(args: argparse.Namespace, rungs: list[ladder.Rung], size: int, dtype: str) -> dict | None:
    """Measure the rungs that are fast enough at this size; return the comparison as data, or None."""
    expected = {entry.id: expected_s(entry, size, dtype, args.longest) for entry in rungs}
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


def _summit(args: argparse.Namespace) -> list[dict]:
    """Measure the best rungs beside NumPy as installed and OpenBLAS told to use what this CPU has."""
    from course_lib.measure import machine

    baselines = ["numpy"] if machine.missing("openblas") else ["numpy", "openblas"]
    shapes = [*((n, n, n) for n in args.sizes or SQUARES), *(() if args.sizes else SKINNY)]
    ratios, found = defaultdict(list), []
    for shape, dtype, threads in product(shapes, ladder.FLOATS, {1, machine.describe().threads}):
        rungs = BEST.get(threads, ("threads",))
        options = {"dtype": dtype, "threads": threads, "budget_s": args.budget, "save": not args.no_save}
        comparison = ladder.climb([*rungs, *baselines], shape=shape, **options)
        rates = {row.name: row.gflops for row in comparison.rows}
        said = ", ".join(f"{name} {rate:.1f}" for name, rate in rates.items())
        print(f"{' x '.join(map(str, shape))}, {dtype}, {threads} thread(s): {said} GFLOP/s")
        for rung, baseline in product(rungs, baselines):
            ratios[rung, baseline].append(rates[rung] / rates[baseline])
        found.append(comparison.data())
    for (rung, baseline), each in ratios.items():
        median, lowest = statistics.median(each), min(each)
        print(f"{rung}: median {median:.2f}x {baseline}, lowest {lowest:.2f}x of {len(each)}")
    return found


def expected_s(entry: ladder.Rung, size: int, dtype: str, longest_s: float) -> float:
    """Return about what a call takes at this size, from calls of growing sizes.

    Time grows at most with N^3, and a part of a small call (waking threads, packing) does not grow at all. So
    an estimate from a small call may be far too high: it is believed if it is below `longest_s`, or if that
    call itself was so long that one of twice the size would not be tried.
    """
    probe = min(SMALLEST_PROBE, size)
    entry.matmul(*ladder.operands((probe,) * 3, dtype))  # compiles
    while True:
        multiply = functools.partial(entry.matmul, *ladder.operands((probe,) * 3, dtype))
        call_s = min(timeit.repeat(multiply, number=1, repeat=PROBES))
        estimate_s = call_s * (size / probe) ** 3
        if estimate_s <= longest_s or 8 * call_s > longest_s or probe == size:
            return estimate_s
        probe = min(2 * probe, size)


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
    try:
        whole_files.write(path, json.dumps(content, indent=1))
    except OSError as problem:
        print(f"bench: {path} cannot be written ({problem.strerror}): {WRITABLE}.")
        return 1
    print(f"\nWritten to {path}.")
    return 0
