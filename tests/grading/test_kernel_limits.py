"""Limits on what a launch may cost, on counts made by hand: each looks at its own rows and names the line."""

from course_lib.grading.launch import (
    Atomics,
    Barriers,
    BusiestWarp,
    LaunchCounts,
    LineCount,
    SectorsPerRequest,
    SharedRequests,
    TotalSectors,
    WavefrontsPerRequest,
)

COUNTS = LaunchCounts(
    rows=(
        LineCount("global", 3, 10, "a", "load", 40, 320, 1280, code="x = a[i]"),
        LineCount("global", 5, 2, "a", "load", 40, 64, 256, code="y = a[32 * i]"),
        LineCount("global", 6, 10, "c", "store", 50, 320, 1280, code="c[i] = x"),
        LineCount("global", 7, 4, "c", "atomic", 4, 128, 512, code="add(c, 0, x)"),
        LineCount("shared", 4, 10, "tile", "store", 10, 320, 1280, code="tile[i] = x"),
        LineCount("shared", 8, 10, "tile", "load", 320, 320, 1280, code="x = tile[32 * i]"),
        LineCount("shared", 9, 3, "bins", "atomic", 6, 96, 384, code="add(bins, 0, 1)"),
        LineCount("barrier", 4, 8),
        LineCount("barrier", 9, 4),
        LineCount("shuffle", 10, 5, code="x = shfl_sync(-1, x, 0)"),
    ),
    busiest_warp=30,
)
ARGS = (100,)


def at_most(number):
    return lambda n: number


def test_a_limit_that_is_missed_says_what_and_how_much():
    for limit, words in (
        (SectorsPerRequest(4), "Reading a in line 5, `y = a[32 * i]`, needs 20 sectors"),
        (WavefrontsPerRequest(1), "Reading tile in line 8, `x = tile[32 * i]`, takes 32 wavefronts"),
        (TotalSectors(at_most(133), "few"), "needs 134 sectors, and 133 are enough: few."),
        (TotalSectors(at_most(53), "few", "store"), "needs 54 sectors to write"),
        (SharedRequests(at_most(30), "few"), "needs 31 requests to shared memory and shuffles, and 30"),
        (Barriers(at_most(11), "few"), "needs 12 warps at barriers, and 11"),
        (
            Barriers(at_most(20), "some", least=at_most(13)),
            "12 warps come to a barrier, and 13 should: some.",
        ),
        (Atomics(at_most(223), "few"), "needs 224 atomic operations, and 223"),
        (
            BusiestWarp(at_most(29), "few"),
            "One warp makes 30 requests to memory and other lanes, and no warp needs more than 29",
        ),
    ):
        said, rows = limit.judge(COUNTS, ARGS)
        assert words in said, limit
        assert isinstance(limit, BusiestWarp) or rows, limit  # it is no matter of a line


def test_neighbours_that_begin_elsewhere_are_told_from_threads_that_are_no_neighbours():
    for sectors, lanes, words in (
        (50, 320, "the first of a warp does not begin a sector"),
        (20, 80, "the first of a warp does not begin a sector"),  # eight lanes, in two sectors
        (51, 320, "let neighbouring threads (threadIdx.x) take neighbouring elements"),
        (80, 80, "let neighbouring threads (threadIdx.x) take neighbouring elements"),
    ):
        row = LineCount("global", 3, 10, "a", "load", sectors, lanes, 4 * lanes, code="x = a[i + 1]")
        assert words in SectorsPerRequest(1).judge(LaunchCounts((row,)), ARGS)[0], sectors


def test_a_limit_that_is_just_kept_says_nothing():
    for limit in (
        SectorsPerRequest(20),
        WavefrontsPerRequest(32),
        TotalSectors(at_most(84), "few", "load"),
        TotalSectors(lambda n: n + 34, "few"),
        SharedRequests(at_most(31), "few"),
        Barriers(at_most(12), "few", least=at_most(12)),
        Atomics(at_most(224), "few"),
        BusiestWarp(at_most(30), "few"),
    ):
        assert limit.judge(COUNTS, ARGS) is None, limit


def test_the_worst_line_counts_and_not_the_average():
    """A cheap access that is made often must not pay for a dear one."""
    rows = COUNTS.rows[:2]
    mean = sum(row.cost for row in rows) / sum(row.requests for row in rows)
    assert mean < 7 and SectorsPerRequest(7).judge(LaunchCounts(rows), ARGS)
