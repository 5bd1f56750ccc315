"""`make mutants`: systematic faults in every solution, and which of them the tasks catch.

python -m tests.tools.mutation --help    its options, from the root of the repository
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Sequence

from course_lib.grading.check import PUBLIC_SEED

from .survey import chosen, survey, table
from .workers import WorkFailed


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the survey and print its table; return 0 if every fault is caught or explained, else 1."""
    args = _parsed(arguments)
    seeds = args.seed or [PUBLIC_SEED, secrets.randbelow(2**32)]
    began = time.monotonic()
    try:
        found = survey(chosen(args.task), seeds, args.workers, _progress)
    except (KeyError, ValueError, OSError, WorkFailed) as problem:
        print(f"mutants: {problem if isinstance(problem, OSError) else problem.args[0]}")
        return 2
    print(table(found))
    print(f"\nseeds {', '.join(map(str, seeds))}; {time.monotonic() - began:.0f} s")
    return int(any(findings.survived or findings.stale for findings in found))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--task", nargs="+", default=[], metavar="ID", help="tasks such as 01.dot (default: all)")
    seeds = "seeds of the inputs, 0 or more (default: the public one and a random one)"
    add("--seed", nargs="+", type=int, metavar="N", help=seeds)
    add("--workers", type=int, default=0, metavar="N", help="processes (default: one per core)")
    args = parser.parse_args(arguments)
    if any(seed < 0 for seed in args.seed or ()) or args.workers < 0:
        parser.error("--seed and --workers must be 0 or more.")
    return args


def _progress(done: int, total: int) -> None:
    """Show how far it is, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{done} of {total} answers judged", end="\n" if done == total else "", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
