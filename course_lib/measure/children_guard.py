"""The last line of defence: a tiny process that ends what a killed notebook has left behind.

    python children_guard.py TOKEN

Its standard input is a pipe whose other end the notebook holds. When the notebook dies, however it dies,
the system closes that end, and every process that carries the token in its environment is killed: also
grandchildren, and also those that left their process group. A line "done" means that nothing is left and the
guard may go.

Linux could send a signal at the parent's death (prctl, PR_SET_PDEATHSIG); but it does so at the death of
the *thread* that started the child, it tells no grandchild, and no other system has it.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import psutil

#: Environment variable of every process that `Children` starts: the tokens of the blocks it stands in.
MARK = "NINE_CIRCLES_CHILD"
LONGEST_HUNT_S = 5.0
SPARED_S = 1.0  # for the processes that remove what the killed have left


def carrying(token: str | None = None) -> list:
    """Return the psutil processes that carry the mark (None: any token), in the order of their numbers."""
    found = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK)
            is_meant = mark and (token is None or token in mark.split(","))
            if is_meant and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):  # gone, or not ours
            continue
    return sorted(found, key=lambda process: process.pid)


def hunt(token: str) -> None:
    """Kill what carries the token until nothing does: one may start another while it is being killed.

    Python's resource trackers are killed last. They end by themselves when those they serve are gone, and
    remove the shared memory that these have left.
    """
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < LONGEST_HUNT_S and (processes := carrying(token)):
        for process in processes:
            with suppress(psutil.Error):
                if passed >= SPARED_S or not is_tracker(process):
                    process.kill()
        time.sleep(0.02)


def is_tracker(process: Any) -> bool:
    """Whether a psutil process is the one in which Python keeps the list of shared memory and semaphores."""
    return any("multiprocessing.resource_tracker" in word for word in process.cmdline())


if __name__ == "__main__":
    if sys.stdin.read().strip() != "done":
        hunt(sys.argv[1])
