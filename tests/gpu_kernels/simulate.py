"""Run right cases that Numba's own simulator can run, and print {name: what was wrong, or null} as JSON.

To be started in a process of its own with NUMBA_ENABLE_CUDASIM=1, which Numba looks at when it is imported.
"""

from __future__ import annotations

import json

from numba import config

from gpu_kernels.case import Case, read

#: A thread of the simulator is a thread of the operating system: blocks of 1024 take minutes.
MOST_THREADS = 256


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
    right = [*read("own.txt"), *read("foreign.txt"), *read("counted.txt")]
    done = [case for case in right if case.in_simulator and case.threads <= MOST_THREADS]
    print(json.dumps({case.name: complaint(case) for case in done}))
