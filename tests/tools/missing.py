"""What a machine may lack: a test marked `needs("chromium")` is skipped without it; the run's end says so.

Skipped tests are counted by tool and named once, with what to type:

    112 tests did not run: no chromium (112): sudo apt install chromium

With $NINE_CIRCLES_ALL_TOOLS set (as .ci/run does) such a test fails instead: there, nothing may be missing.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import pytest

from course_lib.measure import machine, programs

#: Set to anything: a test whose tool is missing fails.
SWITCH = "NINE_CIRCLES_ALL_TOOLS"
PACKAGES = 'pip install -c constraints.txt -e ".[lab,dev,cubin]"'


class Tool(NamedTuple):
    """Something that tests need; `why` returns the words for its absence, None where it is here."""

    what_for: str
    why: Callable[[], str | None]
    program: str | None = None  # of the system; else a package (PACKAGES)


def _program(what_for: str, name: str) -> Tool:
    return Tool(what_for, lambda: programs.why_missing(name), name)


def _no_nvdisasm() -> str | None:
    if importlib.util.find_spec("cuda"):
        from cuda import pathfinder

        if pathfinder.find_nvidia_binary_utility("nvdisasm"):
            return None
    return "no nvdisasm"


#: What a test may name in `needs`.
TOOLS = {
    "bubblewrap": _program("sandbox", "bubblewrap"),
    "chromium": _program("browser", "chromium"),
    "c compiler": _program("C", "C compiler"),
    "c++ compiler": _program("C++", "C++ compiler"),
    "valgrind": _program("cachegrind", "valgrind"),
    "nvrtc": Tool("CUDA C++", lambda: "no nvrtc" if machine.missing("nvrtc") else None),
    "nvdisasm": Tool("machine code", _no_nvdisasm),
    "cubin": Tool("Numba's GPU code", lambda: "no cubin" if machine.missing("cubin") else None),
}
PROGRAMS = [name for name, tool in TOOLS.items() if tool.program]
#: What the switch does not ask for: 550 MB for a handful of tests.
TOO_LARGE = {"cubin"}


@cache
def why_missing(name: str) -> str | None:
    """Return the words for why a tool is not here ("no chromium"), None if it is."""
    if name not in TOOLS:
        raise ValueError(f"needs({name!r}): known tools are {', '.join(TOOLS)} (tests/tools/missing.py).")
    return TOOLS[name].why()


def stop_if_missing(item: pytest.Item) -> None:
    """Skip a test for want of a tool, or let it fail under the switch; called before any fixture is made."""
    named = [name for mark in item.iter_markers("needs") for name in mark.args]
    missing = next(filter(why_missing, named), None)
    if missing is None:
        return
    if os.environ.get(SWITCH) and missing not in TOO_LARGE:
        pytest.fail(f"{why_missing(missing)}: {cure([missing])} (${SWITCH} is set)", pytrace=False)
    item.user_properties.append(("missing tool", missing))
    pytest.skip(why_missing(missing))


def count(reports: Iterable[pytest.TestReport]) -> Counter[str]:
    """Return how many of the skipped tests each missing tool cost."""
    return Counter(
        value for report in reports for key, value in report.user_properties if key == "missing tool"
    )


def sentence(counts: Counter[str]) -> str:
    """Return the one sentence on what did not run: how many tests, for want of what, and the cure."""
    total = sum(counts.values())
    parts = [
        f"{why_missing(name) or f'no {name}'} ({TOOLS[name].what_for}: {number})"
        for name, number in sorted(counts.items())
    ]
    tests = "1 test did" if total == 1 else f"{total} tests did"
    order = cure(sorted(counts))
    return f"{tests} not run: {', '.join(parts)}" + (f": {order}" if order else "")


def cure(names: Iterable[str]) -> str:
    """Return what to type to have these tools."""
    wanted = [TOOLS[name].program for name in names]
    orders = [programs.cure(*filter(None, wanted))] if any(wanted) else []
    return "; ".join([*orders, *([PACKAGES] if None in wanted else [])])
