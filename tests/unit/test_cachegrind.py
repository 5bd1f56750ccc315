"""The simulator and its traces against an independent tool: the same loop nests in C, under Valgrind.

Cachegrind counts the misses of each C function in caches of our geometry.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.looped import looped

from course_lib.measure import programs
from course_lib.simulators import traces
from course_lib.simulators.cache import Level, simulate
from course_lib.simulators.placement import Matrix

SOURCE = Path(__file__).parent / "loop_nests_c" / "nests.c"
BLOCK = 32  # large enough that what a call keeps on the stack is nothing beside a block
NESTS = (*traces.ORDERS, "blocked", "packed")
#: Two geometries: sets that are few, and ways that are no power of two; the lines of the second are longer.
GEOMETRIES = {
    "8 KiB 4-way, 64 KiB 8-way": (Level(8 << 10, 4), Level(64 << 10, 8)),
    "12 KiB 3-way, 48 KiB 6-way, 128-byte lines": (Level(12 << 10, 3, 128), Level(48 << 10, 6, 128)),
}
#: N and padding: a power of two (a column falls into few sets), the same padded, odd, and in between.
SHAPES = ((64, 0), (64, 1), (96, 0), (97, 0))

FLAGS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fno-tree-vectorize", "-ffp-contract=off"]

pytestmark = pytest.mark.needs("valgrind", "c compiler")


@dataclass(frozen=True)
class Counted:
    """What cachegrind counted in each function: its data misses in the first and the last level."""

    misses: dict[str, tuple[int, int]]
    accesses: dict[str, int]
    places: dict[str, int]  # where the C program's arrays lie


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Return a function that compiles the C program for N and a padding, and returns where it is."""
    folder = tmp_path_factory.mktemp("nests")

    @functools.cache
    def build(n: int, pad: int) -> Path:
        binary = folder / f"nests_{n}_{pad}"
        sizes = [f"-DN={n}", f"-DPAD={pad}", f"-DBLOCK={BLOCK}"]
        done = subprocess.run(
            [programs.find("C compiler"), *FLAGS, *sizes, SOURCE, "-o", binary],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return binary

    return build


def valgrind(*arguments) -> subprocess.CompletedProcess:
    done = subprocess.run(["valgrind", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def places_of(printed: str) -> dict[str, int]:
    return {name.replace("_", " "): int(at, 16) for name, at in re.findall(r"(\w+) (0x[0-9a-f]+)", printed)}


def cachegrind(program, folder, levels) -> Counted:
    """Run the program under cachegrind; its output file has a line of counts for each line of source."""
    out = folder / "counts"
    sizes = [f"{level.size_bytes},{level.ways},{level.line_bytes}" for level in levels]
    caches = [f"--{name}={size}" for name, size in zip(("I1", "D1", "LL"), (sizes[0], *sizes), strict=True)]
    done = valgrind("--tool=cachegrind", "--cache-sim=yes", *caches, f"--cachegrind-out-file={out}", program)
    totals = defaultdict(lambda: defaultdict(int))
    events, nest = [], ""
    for line in out.read_text().splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("fn="):  # nest_packed_tiles is a part of packed
            nest = line[8:].split("_")[0] if line.startswith("fn=nest_") else ""
        elif line[:1].isdigit() and nest:
            for event, count in zip(events, line.split()[1:], strict=False):
                totals[nest][event] += int(count)
    return Counted(
        {name: (n["D1mr"] + n["D1mw"], n["DLmr"] + n["DLmw"]) for name, n in totals.items()},
        {name: n["Dr"] + n["Dw"] for name, n in totals.items()},
        places_of(done.stdout),
    )


def trace_of(nest: str, n: int, pad: int, places: dict[str, int]) -> traces.AddressTrace:
    """Return our trace of the nest with the matrices where the C program had them."""
    row = 8 * (n + pad)
    where = {name: Matrix(places[name], (n, n), row, 8) for name in "ABC"}
    if nest == "blocked":
        return traces.blocked(n, n, n, BLOCK, matrices=where)
    if nest != "packed":
        return traces.loops(nest, n, n, n, matrices=where)
    trace = traces.packed(n, n, n, MC=BLOCK, KC=BLOCK, NC=BLOCK, MR=2, NR=2, matrices=where)
    for buffer in ("packed A", "packed B"):
        trace.matrices[buffer] = Matrix(places[buffer], (BLOCK * BLOCK // 2, 2), 16, 8)
    return trace


def test_misses_agree_with_cachegrind_within_two_percent(program, tmp_path):
    agree(program, tmp_path, next(iter(GEOMETRIES.values())), SHAPES[::3])


@pytest.mark.slow
@looped("geometry, levels", GEOMETRIES.items())
def test_misses_agree_in_every_geometry_and_shape(geometry, levels, program, tmp_path):
    agree(program, tmp_path, levels, SHAPES)


def agree(program, folder, levels, shapes):
    """Compare our misses with cachegrind's in each nest."""
    for shape in shapes:
        count = cachegrind(program(*shape), folder, levels)
        first = [misses for misses, _ in count.misses.values()]
        if shape == (64, 0):  # agreement would prove little if the nests did not spread widely
            assert max(first) > 20 * min(first), shape
        for nest in NESTS:
            if nest not in count.misses:
                assert nest == "packed" and shape[0] % BLOCK, "the C program ran another set of nests"
                continue
            trace = trace_of(nest, *shape, count.places)
            ours = simulate(trace, levels)
            case = (shape, nest)
            assert count.accesses[nest] == pytest.approx(len(trace), rel=0.02), case  # the same program
            for level in range(2):
                assert ours.misses[level] == pytest.approx(count.misses[nest][level], rel=0.02), case
