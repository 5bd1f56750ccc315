"""The simulator and its traces against an independent tool: the same loop nests in C, under Valgrind.

Cachegrind counts the misses of each C function in caches of our geometry.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from course_lib.measure import programs
from course_lib.simulators import traces
from course_lib.simulators.cache import Level, simulate
from course_lib.simulators.placement import Matrix

SOURCE = Path(__file__).parent / "loop_nests_c" / "nests.c"
BLOCK = 32  # large enough that what a call keeps on the stack is nothing beside a block
NESTS = (*traces.ORDERS, "blocked")
#: Two geometries: sets that are few, and ways that are no power of two; the lines of the second are longer.
GEOMETRIES = ((Level(8 << 10, 4), Level(64 << 10, 8)), (Level(12 << 10, 3, 128), Level(48 << 10, 6, 128)))
#: N and padding: a power of two (a column falls into few sets), the same padded, odd, and in between.
SHAPES = ((64, 0), (64, 1), (96, 0), (97, 0))

FLAGS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-tree-vectorize", "-ffp-contract=off"]

pytestmark = pytest.mark.needs("valgrind", "c compiler")


def done(*command):
    finished = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return finished.stdout


def cachegrind(n, pad, folder, levels):
    """Return accesses and misses of both levels, (nest, event) -> count, and where the arrays lie."""
    out, program = folder / "counts", folder / "nests"
    sizes = [f"-DN={n}", f"-DPAD={pad}", f"-DBLOCK={BLOCK}"]
    done(programs.find("C compiler"), *FLAGS, *sizes, SOURCE, "-o", program)
    told = [f"{level.size_bytes},{level.ways},{level.line_bytes}" for level in levels]
    caches = [f"--{name}={size}" for name, size in zip(("I1", "D1", "LL"), (told[0], *told), strict=True)]
    printed = done(
        "valgrind", "--tool=cachegrind", "--cache-sim=yes", *caches, f"--cachegrind-out-file={out}", program
    )
    totals, events, nest = Counter(), [], ""
    for line in out.read_text().splitlines():  # a line of counts for each line of source
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("fn="):  # nest_blocked_block is a part of blocked
            nest = line[8:].split("_")[0] if line.startswith("fn=nest_") else ""
        elif line[:1].isdigit() and nest:
            for event, count in zip(events, line.split()[1:], strict=False):
                totals[nest, event] += int(count)
    return totals, {name: int(at, 16) for name, at in re.findall(r"(\w+) (0x[0-9a-f]+)", printed)}


def agree(folder, levels, shapes):
    """Compare our misses with cachegrind's in each nest."""
    for n, pad in shapes:
        count, places = cachegrind(n, pad, folder, levels)
        first = [count[nest, "D1mr"] + count[nest, "D1mw"] for nest in NESTS]
        if (n, pad) == (64, 0):  # agreement would prove little if the nests did not spread widely
            assert max(first) > 10 * min(first)
        where = {name: Matrix(places[name], (n, n), 8 * (n + pad), 8) for name in "ABC"}
        for nest in NESTS:
            is_blocked = nest == "blocked"
            trace = (traces.blocked if is_blocked else traces.loops)(
                *((n, n, n, BLOCK) if is_blocked else (nest, n, n, n)), matrices=where
            )
            ours, case = simulate(trace, levels), (n, pad, nest)
            wanted = count[nest, "Dr"] + count[nest, "Dw"]
            assert wanted == pytest.approx(len(trace), rel=0.02), case  # the same program
            for misses, name in zip(ours.misses, ("D1m", "DLm"), strict=True):
                wanted = count[nest, f"{name}r"] + count[nest, f"{name}w"]
                assert misses == pytest.approx(wanted, rel=0.02), case


def test_misses_agree_with_cachegrind_within_two_percent(tmp_path):
    agree(tmp_path, GEOMETRIES[0], SHAPES[::3])


@pytest.mark.slow
def test_misses_agree_in_every_geometry_and_shape(tmp_path):
    for levels in GEOMETRIES:
        agree(tmp_path, levels, SHAPES)
