"""The steps of the learner's ladder as a table: what each brought over the last rung and the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from course_lib.measure.table import Table, digits, seconds_in_words
from course_lib.views.paper import plural, times
from course_lib.views.standing import BASELINES, shape_in_words, standing

if TYPE_CHECKING:
    from course_lib.ladder import Result, Shape
    from course_lib.measure.peaks import Peaks

COLUMNS = ("change", "at", "time", "× last", "× first", "% of peak")
RULE = (
    "× last: times as fast as the nearest row above that was measured at the same size, too; × first: as the "
    "first row. Where one of the two rows shows another size, that of the ratio stands behind it. –: no size "
    "in common, or a baseline, which has no last."
)
ROUGH = "≈: measured in haste, on cores that others held, or scattered as on them; in no ratio."
NOMINAL = (
    "Strassen's rungs multiply blocks with the kernel of circle 4, and leave small products to it whole; "
    "their operations are counted as 2N³, though they do fewer."
)
EMPTY = "Nothing is measured yet: run a measuring cell, or `python -m course_lib bench`."


def ladder_table(results: Iterable[Result] | None = None, dtype: str | None = None) -> Table:
    """Return a row for each measured rung: change, size, time, × last, × first, % of this machine's peak.

    `results` and `dtype` are those of `ladder_plot`, whose rungs and results these are: rows in ladder order,
    baselines last. The peak is that of one core, or of as many as the rung had; GPU rungs have none.
    """
    found = standing(results, dtype)
    drawn = found.drawn
    rungs = [rung for rung in found.rungs if rung.id in drawn]
    limits = _peaks(drawn.values())
    rows = []
    for place, rung in enumerate(rungs):
        one = drawn[rung.id]
        above = [] if rung.id in BASELINES else reversed(rungs[:place])
        known = [(*ratio, last.id) for last in above if (ratio := found.ratio(rung.id, last.id))]
        known.sort(key=lambda ratio, one=one: ratio[1] != tuple(one.shape))  # the nearest stay first
        first = found.ratio(rung.id, rungs[0].id)
        ratios = (known[0] if known else None), (*first, rungs[0].id) if first else None
        row = (
            rung.title + (f", {plural(one.threads, 'thread')}" if one.threads > 1 else ""),
            shape_in_words(one.shape),
            "≈ " * one.rough + seconds_in_words(one.seconds),
            *(_said(ratio, one, drawn) for ratio in ratios),
            _share(one, limits) if "cuda" not in rung.requires else "–",
        )
        rows.append(row)
    marked = next((rung.title for rung in rungs if rung.id in BASELINES), None)
    return Table(COLUMNS, tuple(rows), marked=marked, notes=_notes(drawn) if rows else (EMPTY,))


def _said(ratio: tuple[float, Shape, str] | None, one: Result, drawn: Mapping[str, Result]) -> str:
    """Return a ratio to another rung, with its shape unless both rows show that one."""
    if ratio is None:
        return "–"
    factor, shape, other = ratio
    is_shown = tuple(one.shape) == shape == tuple(drawn[other].shape)
    return times(factor) + (f" at {shape_in_words(shape)}" if not is_shown else "")


def _share(result: Result, limits: Peaks | None) -> str:
    if limits is None or result.dtype not in limits.flops:
        return "–"
    return digits(100 * result.gflops / limits.gflops(result.dtype, result.threads), 2)


def _peaks(drawn: Iterable[Result]) -> Peaks | None:
    """Return the peaks of this machine, None if the results are another's (or nothing can be compiled)."""
    from course_lib.measure import machine

    is_here = any(one.machine == machine.key() for one in drawn)
    return machine.peaks() if is_here and not machine.missing("numba") else None


def _notes(drawn: Mapping[str, Result]) -> tuple[str, ...]:
    rough = any(one.rough for one in drawn.values())
    nominal = any(id.startswith("strassen") for id in drawn)
    return (RULE, *([ROUGH] * rough), *([NOMINAL] * nominal))
