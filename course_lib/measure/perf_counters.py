"""What the processor itself counted during a call: Linux's `perf stat` around a Python of its own.

    count("from course_lib.circles.simd import matmul; A = …", {"simd": "matmul(A, A)"})

Each call is run in two programs, once in the first and TIMES more in the second: the difference is of the
calls alone, and starting Python and compiling drop out. Counting takes a processor that shows its counters,
which most virtual machines do not: there it was tried with a stand-in for `perf` only.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_lib.measure import hardware, programs
from course_lib.measure.table import Table, digits

EVENTS = ("cycles", "instructions", "L1-dcache-loads", "L1-dcache-load-misses")
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
TIME_LIMIT_S = 60
TIMES = 8


def count(setup: str, calls: Mapping[str, str]) -> Table | str:
    """Return what each call counts, a row for each; or in a sentence why nothing can be counted here.

    `setup` and the calls are texts, as in timeit: the setup runs once in each program. RuntimeError with the
    last line of a program that fails.
    """
    if programs.find("perf") is None:
        return "There is no program `perf` here (Linux has it), so only the simulator counts."
    if why := _unseen(_counted(["true"])):
        return why
    rows = []
    for name, call in calls.items():
        text = f"{setup}\n{call}\nfor _ in range({{}}):\n    {call}"
        less, more = (_counted([sys.executable, "-c", text.format(n)]) for n in (0, TIMES))
        if why := _unseen(more):
            return why
        rows.append((name, *(digits((more[event] - less[event]) / TIMES) for event in EVENTS)))
    return Table(("of a call", *EVENTS), tuple(rows), notes=("counted by the processor (perf stat)",))


def _counted(program: Sequence[str]) -> Counter[str]:
    """Return the counts of a program by event; what is not shown is missing."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder, "counts.csv")
        words = [programs.find("perf"), "stat", "-x", ",", "-o", said, "-e", ",".join(EVENTS), "--", *program]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
        lines = hardware.text_of(said).splitlines()
    if ran.returncode and any(lines):
        raise RuntimeError(f"The program to be counted failed: {ran.stderr.strip().splitlines()[-1:]}.")
    counts: Counter[str] = Counter()
    for line in lines:  # value, unit, event, …; a chip with two kinds of cores has a line for each
        value, _, event, *_ = [*line.split(","), "", ""]
        if value.isdigit() and (known := re.search(rf"\b({'|'.join(EVENTS)})\b(?!-)", event)):
            counts[known[1]] += int(value)
    return counts


def _unseen(counts: Counter[str]) -> str:
    """Say in a sentence why an event was not counted; "" if all were."""
    if all(counts[event] for event in EVENTS):
        return ""
    level = hardware.text_of(PARANOID).strip()
    if level.isdigit() and int(level) > 2:
        return f"`perf` may not count here: kernel.perf_event_paranoid is {level}, and 2 would do."
    missing = ", ".join(event for event in EVENTS if not counts[event])
    return (
        f"This machine, virtual perhaps, does not show its counters ({missing}): only the simulator counts."
    )
