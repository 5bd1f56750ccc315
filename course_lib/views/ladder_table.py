"""The steps of the learner's ladder as a table: what each brought over the last rung and the first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from course_lib.measure.table import Table, digits, seconds_in_words
from course_lib.views.paper import plural, times
from course_lib.views.standing import BASELINES, Standing, shape_in_words, standing

if TYPE_CHECKING:
    from course_lib.ladder import Result, Rung
    from course_lib.measure.peaks import Peaks

COLUMNS = ("change", "at", "time", "× last", "× first", "% of peak")
RULE = (
    "× last: times as fast as the nearest row above that was measured at the same size, or at another one, "
    "which then stands behind it; × first: as the first row. – where no size is common to both."
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
    rows = tuple(_row(found, rungs, place, limits) for place in range(len(rungs)))
    marked = next((rung.title for rung in rungs if rung.id in BASELINES), None)
    return Table(COLUMNS, rows, marked=marked, notes=_notes(found) if rows else (EMPTY,))


def _row(found: Standing, rungs: list[Rung], place: int, limits: Peaks | None) -> tuple[str, ...]:
    rung = rungs[place]
    result = found.drawn[rung.id]
    threads = f", {plural(result.threads, 'thread')}" if result.threads > 1 else ""
    above = [] if rung.id in BASELINES else [one.id for one in reversed(rungs[:place])]
    return (
        rung.title + threads,
        shape_in_words(result.shape),
        "≈ " * result.rough + seconds_in_words(result.seconds),
        _ratio(found, result, _last(found, result, above)),
        _ratio(found, result, rungs[0].id),
        _share(result, limits) if "cuda" not in rung.requires else "–",
    )


def _last(found: Standing, result: Result, above: list[str]) -> str:
    """Return the nearest rung above that was measured where this one is drawn, else at a size of this one."""
    known = [(id, ratio[1]) for id in above if (ratio := found.ratio(result.rung, id))]
    here = [id for id, shape in known if shape == tuple(result.shape)]
    return next(iter([*here, *(id for id, _ in known)]), "")


def _ratio(found: Standing, result: Result, other: str) -> str:
    ratio = found.ratio(result.rung, other)
    if ratio is None:
        return "–"
    factor, shape = ratio
    own = shape == tuple(result.shape)
    return times(factor) + ("" if own else f" at {shape_in_words(shape)}")


def _share(result: Result, limits: Peaks | None) -> str:
    if limits is None or result.dtype not in limits.flops:
        return "–"
    return digits(100 * result.gflops / limits.gflops(result.dtype, result.threads), 2)


def _peaks(drawn: Iterable[Result]) -> Peaks | None:
    """Return the peaks of this machine, None if the results are another's (or nothing can be compiled)."""
    from course_lib.measure import machine

    is_here = any(one.machine == machine.key() for one in drawn)
    return machine.peaks() if is_here and not machine.missing("numba") else None


def _notes(found: Standing) -> tuple[str, ...]:
    rough = any(one.rough for one in found.drawn.values())
    nominal = any(id.startswith("strassen") for id in found.drawn)
    return (RULE, *([ROUGH] * rough), *([NOMINAL] * nominal))
