"""What a machine may lack: a test marked `needs("chromium")` is skipped without it; the run's end says so.

Skipped tests are counted by tool and named once, with what to type:

    112 tests did not run: no chromium (112): sudo apt install chromium

With $NINE_CIRCLES_ALL_TOOLS set (as .ci/run does) such a test fails instead: there, nothing may be missing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

import pytest

from course_lib.measure import machine, programs

#: Set to anything: a test whose tool is missing fails.
SWITCH = "NINE_CIRCLES_ALL_TOOLS"
PACKAGES = 'pip install -c constraints.txt -e ".[lab,dev,cubin]"'


class Tool:
    """Something that tests need. `why` returns the words for its absence; `cure` what to type."""

    def __init__(self, what_for: str, why: Callable[[], str | None], package: str | None = None) -> None:
        self.what_for, self.why, self.package = what_for, why, package


def _unless(is_here: Callable[[], object], words: str) -> Callable[[], str | None]:
    return lambda: None if is_here() else words


def _has_package(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _unless_machine_lacks(need: str) -> Callable[[], str | None]:
    return lambda: f"no {need}" if machine.missing(need) else None


def _why_no_nvdisasm() -> str | None:
    if not _has_package("cuda"):
        return "no nvdisasm"
    from cuda import pathfinder

    return None if pathfinder.find_nvidia_binary_utility("nvdisasm") else "no nvdisasm"


#: What a test may name in `needs`. A tool without a package comes with pip (PACKAGES).
TOOLS = {
    "bubblewrap": Tool("sandbox", programs.why_no_sandbox, "bubblewrap"),
    "chromium": Tool("browser", _unless(programs.browser, "no chromium"), "chromium"),
    "c compiler": Tool("C", _unless(programs.c_compiler, "no C compiler"), "gcc"),
    "c++ compiler": Tool("C++", _unless(programs.cxx_compiler, "no C++ compiler"), "g++"),
    "valgrind": Tool("cachegrind", _unless(lambda: shutil.which("valgrind"), "no valgrind"), "valgrind"),
    "greenlet": Tool("GPU tracer", _unless(lambda: _has_package("greenlet"), "no greenlet")),
    "nvrtc": Tool("CUDA C++", _unless_machine_lacks("nvrtc")),
    "nvdisasm": Tool("machine code", _why_no_nvdisasm),
    "cubin": Tool("Numba's GPU code", _unless_machine_lacks("cubin")),
}
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
    return f"{tests} not run: {', '.join(parts)}: {cure(sorted(counts))}"


def cure(names: Iterable[str]) -> str:
    """Return what to type to have these tools."""
    names = list(names)
    forbidden = [name for name in names if name == "bubblewrap" and shutil.which("bwrap")]
    programs_wanted = [TOOLS[name].package for name in names if TOOLS[name].package and name not in forbidden]
    orders = [programs.cure(*programs_wanted)] if programs_wanted else []
    if forbidden:
        orders.append(programs.how_to_allow_namespaces())
    if any(TOOLS[name].package is None for name in names):
        orders.append(PACKAGES)
    return "; ".join(orders)
