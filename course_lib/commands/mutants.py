"""`python -m course_lib mutants`: systematic faults in every solution, and which of them the tasks catch."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import time
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "--task", nargs="+", default=[], metavar="ID", help="tasks such as 01.dot (default: all)"
    )
    parser.add_argument(
        "--seed",
        nargs="+",
        type=int,
        metavar="N",
        help="seeds of the inputs (default: the public one and a random one)",
    )
    parser.add_argument(
        "--workers", type=int, default=0, metavar="N", help="processes (default: one per core)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings to FILE")


def run(args: argparse.Namespace) -> int:
    """Make the survey and print its table; return 0 if every fault is caught or explained, else 1."""
    from course_lib.grading.check import PUBLIC_SEED
    from course_lib.grading.mutation import survey as room
    from course_lib.grading.mutation.workers import WorkFailed

    seeds = args.seed or [PUBLIC_SEED, secrets.randbelow(2**32)]
    began = time.monotonic()
    try:
        if wrong := [seed for seed in seeds if seed < 0]:
            raise ValueError(f"--seed is {wrong[0]}, but it must be 0 or more.")
        if args.workers < 0:
            raise ValueError(f"--workers is {args.workers}, but it must be 0 (one per core) or more.")
        found = room.survey(room.chosen(args.task), seeds, args.workers, _progress)
    except (KeyError, ValueError, WorkFailed) as problem:
        print(f"mutants: {problem.args[0]}")
        return 2
    print(room.table(found))
    print(f"\nseeds {', '.join(map(str, seeds))}; {time.monotonic() - began:.0f} s")
    content = {"seeds": list(seeds), "tasks": [one.to_json() for one in found]}
    written = _write(args.json, content) if args.json else 0
    return written or int(any(one.survived or one.stale for one in found))


def _progress(done: int, total: int) -> None:
    """Show how far it is, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{done} of {total} answers judged", end="\n" if done == total else "", file=sys.stderr)


def _write(path: Path, content: dict) -> int:
    try:
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as problem:
        print(f"mutants: {path} cannot be written ({problem.strerror}): choose another file with --json.")
        return 2
    return 0
