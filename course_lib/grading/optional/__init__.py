"""Tasks beyond the points, for those who want to see their own text on a Hopper GPU.

    check_loops(fetch, multiply)    two loops in CUDA C++, in the place of those of v3_warp_specialised
    check_tile(tile_for)            a tile for each of three products, measured beside what a search finds

Nobody is graded by them: what they say depends on the hardware, which a class does not share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.grading.report import PARTLY, Report
from course_lib.measure import machine


def check_loops(fetch: Any, multiply: Any) -> Report:
    """Compile both loops, run them on the model of Hopper and on a GPU where there is one; show the report.

    `fetch` and `multiply` return the loops as text, or are texts. TypeError for what is neither.
    """
    from course_lib.grading.optional import loops

    return _shown(loops.judged(fetch, multiply))


def check_tile(tile_for: Callable[[int, int, int], Any]) -> Report:
    """Say what the model expects of own tiles and, on a Hopper GPU, what they take; show the report.

    `tile_for(M, N, K)` returns BM, BN and cluster. TypeError for what is no function.
    """
    if sentence := machine.missing("torch"):
        return _shown(Report("10.tile", "Your tile against a search", 0, 0, PARTLY, (sentence,)))
    from course_lib.grading.optional import tile

    return _shown(tile.judged(tile_for))


def _shown(report: Report) -> Report:
    report.show()
    return report
