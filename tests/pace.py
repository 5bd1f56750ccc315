"""How fast this machine is at the moment: a limit in seconds was set on a quiet one."""

from time import perf_counter

QUIET_S = 5.1e-3  # one piece of work on a core of its own (Xeon of 2023, CPython 3.11), best of a thousand
PIECES = 100


def _piece_of_work() -> float:
    start, table, total = perf_counter(), {}, 0
    for i in range(50_000):
        table[i & 1023] = total
        total += i % 7
    return perf_counter() - start


def slowness() -> float:
    """How many times longer plain Python takes now than on the quiet machine; at least 1.

    The mean, not the median: what a busy host takes away comes in pieces, and every piece counts.
    """
    return max(1.0, sum(_piece_of_work() for _ in range(PIECES)) / PIECES / QUIET_S)
