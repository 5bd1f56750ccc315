"""`make mutants`: systematic faults in every solution, and which of them the tasks catch.

python -m tests.tools.mutation --help    its options, from the root of the repository
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time

from course_lib.grading import registry
from course_lib.grading.check import PUBLIC_SEED

from .survey import survey, table


def main() -> int:
    """Make the survey and print its table; return 0 if every fault is caught or explained, else 1."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.partition("\n")[0])
    tasks = "tasks such as 01.dot (default: all)"
    parser.add_argument("--task", nargs="+", default=[], metavar="ID", help=tasks)
    seeds = "seeds of the inputs, 0 or more (default: the public one and a random one)"
    parser.add_argument("--seed", nargs="+", type=int, metavar="N", help=seeds)
    args = parser.parse_args()
    seeds = args.seed or [PUBLIC_SEED, secrets.randbelow(2**32)]
    began = time.monotonic()
    try:
        found = survey([registry.task(id) for id in args.task] or registry.tasks(), seeds)
    except (KeyError, ValueError) as problem:
        print(f"mutants: {problem.args[0]}")
        return 2
    print(table(found))
    print(f"\nseeds {', '.join(map(str, seeds))}; {time.monotonic() - began:.0f} s")
    return int(any(findings.survived or findings.stale for findings in found))


if __name__ == "__main__":
    sys.exit(main())
