"""The last line of defence: a tiny process that ends what a killed notebook has left behind.

    python children_guard.py TOKEN

Its standard input is a pipe whose other end the notebook holds. When the notebook dies, however it dies,
the system closes that end, and every process that carries the token in its environment is killed: also
grandchildren, and also those that left their process group. A line "done" means that nothing is left and
the guard may go.

Linux could send a signal at the parent's death (prctl, PR_SET_PDEATHSIG); but it does so at the death of
the *thread* that started the child, it tells no grandchild, and no other system has it.
"""

from __future__ import annotations

import sys
import time

#: Environment variable of every process that `Children` starts: the tokens of the blocks it stands in.
MARK = "NINE_CIRCLES_CHILD"
LONGEST_HUNT_S = 5.0


def carrying(token: str | None = None) -> list:
    """Return the psutil processes that carry the mark (None: any token), in the order of their numbers."""
    import psutil

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
    """Kill what carries the token until nothing does: one may start another while it is being killed."""
    import psutil

    until = time.monotonic() + LONGEST_HUNT_S
    while time.monotonic() < until:
        found = carrying(token)
        if not found:
            return
        for process in found:
            try:
                process.kill()
            except psutil.Error:
                continue
        psutil.wait_procs(found, timeout=0.5)


def main() -> None:
    """Wait for the end of the input, then hunt."""
    token = sys.argv[1]
    if sys.stdin.read().strip() != "done":
        hunt(token)


if __name__ == "__main__":
    main()
