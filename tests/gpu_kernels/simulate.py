"""Run right cases that numba's own simulator can run, and print {name: what was wrong, or null} as JSON.

To be started in a process of its own with NUMBA_ENABLE_CUDASIM=1, which Numba looks at when it is imported,
and the cases' names, a line each, on its standard input.
"""

from __future__ import annotations

import json
import sys

from numba import config

from gpu_kernels import correct, values
from gpu_kernels.case import Case

#: A thread of the simulator is a thread of the operating system: blocks of 1024 take minutes.
MOST_THREADS = 256


def simulated() -> list[Case]:
    """Return the cases that the simulator knows and gets done with."""
    everything = correct.CASES + correct.DISPUTED + values.CASES + values.WIDE
    return [case for case in everything if case.in_simulator and case.block_threads <= MOST_THREADS]


def complaint(case: Case) -> str | None:
    """Launch the case and return what is wrong with its result, or None."""
    args = case.make_args(0)
    try:
        case.kernel[case.griddim, case.blockdim, 0, case.shared_bytes](*args)
        case.check(args, 0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    if not config.ENABLE_CUDASIM:
        raise SystemExit("The simulator is off: set NUMBA_ENABLE_CUDASIM=1 before Numba is imported.")
    asked = set(sys.stdin.read().splitlines())
    print(json.dumps({case.name: complaint(case) for case in simulated() if case.name in asked}))
