"""Limits on what a launch may cost, on counts made by hand: each looks at its own rows and names the line."""

import pytest

from course_lib.grading.counts import BarrierRow, Counts, GlobalRow, LineRow, SharedRow
from course_lib.grading.limits import (
    Atomics,
    Barriers,
    FullWarps,
    SectorsPerRequest,
    SharedRequests,
    TotalSectors,
    WavefrontsPerRequest,
)

COUNTS = Counts(
    global_rows=(
        GlobalRow("A", 3, "load", 10, 40, 320, 1280, "a", "x = a[i]"),
        GlobalRow("A", 5, "load", 2, 40, 64, 256, "a", "y = a[32 * i]"),
        GlobalRow("C", 6, "store", 10, 50, 320, 1280, "c", "c[i] = x"),
        GlobalRow("C", 7, "atomic", 4, 4, 128, 512, "c", "add(c, 0, x)"),
    ),
    shared_rows=(
        SharedRow("tile", 4, "store", 10, 10, 320, 1280, "tile", "tile[i] = x"),
        SharedRow("tile", 8, "load", 10, 320, 320, 1280, "tile", "x = tile[32 * i]"),
        SharedRow("bins", 9, "atomic", 3, 3, 96, 384, "bins", "add(bins, 0, 1)"),
    ),
    divergence=(LineRow(3, 10, 320, 0, 0), LineRow(5, 10, 160, 7, 10, "if i % 2:")),
    barriers=(BarrierRow(4, 8), BarrierRow(9, 4)),
)
ARGS = (100,)


def at_most(number):
    return lambda n: number


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (SectorsPerRequest(4), "Reading a in line 5, `y = a[32 * i]`, needs 20 sectors"),
        (SectorsPerRequest(4, "C"), "Writing c in line 6, `c[i] = x`, needs 5 sectors"),
        (SectorsPerRequest(0.5, "C", "atomic"), "Updating c in line 7"),
        (WavefrontsPerRequest(1), "Reading tile in line 8, `x = tile[32 * i]`, takes 32 wavefronts"),
        (TotalSectors(at_most(133), "few"), "needs 134 sectors, and 133 are enough: few."),
        (TotalSectors(at_most(79), "few", "A"), "needs 80 sectors of A, and 79 are enough"),
        (TotalSectors(at_most(49), "few", "C", "store"), "needs 50 sectors to write C"),
        (SharedRequests(at_most(22), "few"), "needs 23 requests to shared memory, and 22"),
        (SharedRequests(at_most(9), "few", "tile", "load"), "needs 10 requests to shared memory"),
        (Barriers(at_most(11), "few"), "needs 12 warps at barriers, and 11"),
        (Atomics(at_most(6), "few"), "needs 7 atomic requests, and 6"),
        (Atomics(at_most(3), "few", "C"), "needs 4 atomic requests, and 3"),
        (FullWarps(at_most(6), "few"), "needs 7 times that a warp goes both ways, and 6"),
    ],
)
def test_a_limit_that_is_missed_says_what_and_how_much(limit, words):
    assert words in limit.judge(COUNTS, ARGS)
    assert limit.wanted
    assert limit.rows(COUNTS)


@pytest.mark.parametrize(
    "limit",
    [
        SectorsPerRequest(20),
        SectorsPerRequest(5, "C"),
        SectorsPerRequest(1, "C", "atomic"),
        SectorsPerRequest(1, "B"),
        SectorsPerRequest(1, when=lambda n: n > 100),
        WavefrontsPerRequest(32),
        WavefrontsPerRequest(1, "bins"),
        WavefrontsPerRequest(1, when=lambda n: n < 100),
        TotalSectors(lambda n: n + 34, "few"),
        SharedRequests(at_most(23), "few"),
        Barriers(at_most(12), "few"),
        Atomics(at_most(7), "few"),
        FullWarps(at_most(7), "few"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_limit_that_is_just_kept_says_nothing(limit):
    assert limit.judge(COUNTS, ARGS) is None


def test_every_limit_is_kept_by_a_kernel_that_does_nothing():
    nothing = [SectorsPerRequest(0), WavefrontsPerRequest(0), FullWarps(at_most(0), "none")]
    assert [one.judge(Counts(), ARGS) for one in nothing] == [None] * 3


def test_the_worst_line_counts_and_not_the_average():
    """A cheap access that is made often must not pay for a dear one."""
    total = sum(row.sectors for row in COUNTS.of("A")) / sum(row.requests for row in COUNTS.of("A"))
    assert total < 7 and SectorsPerRequest(7, "A").judge(COUNTS, ARGS)
