"""The learner's ladder, as a figure (speed, limit, error) and as a table (what each step brought)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.measure.table import Table, digits, seconds_in_words
from course_lib.theme import DEEP_PINK, GREY, INK, PAPER, PINK, QUIET, VIOLET, Picture
from course_lib.views.figures import beside, centred, hollow
from course_lib.views.paper import plural, times, upper
from course_lib.views.standing import BASELINE, BASELINES, Standing, shape_in_words, standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

    from course_lib.ladder import Result, Rung, Shape
    from course_lib.measure.peaks import Peaks

EPS = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}  # spacing of the numbers just above 1
WHAT_TO_RUN = "Run a measuring cell of chapter 01, or `python -m course_lib bench`."
#: Why a point is hollow.
OWN_SIZE, ROUGH = "measured at a size of its own", "rough (in haste, on held cores, or scattered as on them)"
ONLY_ROUGH = "All times so far are rough: measure again when no other program holds the cores"
NOTHING_BESIDE = "No two rungs were measured at one size yet"
SAME = 0.05  # a speed that differs from a baseline's by less is said to be the same
CROWDED = 13  # more columns than this: their labels stand upright
LETTER = 0.54  # mean width of a letter, in font sizes


def ladder_plot(results: Iterable[Result] | None = None, dtype: str | None = None) -> Picture:
    """Return the ladder: GFLOP/s of each rung on a log scale, in ladder order, its bottleneck, its error.

    `results` None: the learner's own; `dtype` None: the one most rungs were measured in (see `standing`).
    Rungs are compared at one shape. Who was not measured there stands at the largest size that it has, hollow
    and in no ratio; hollow is also what was measured in haste or while other programs held the cores. Rungs
    without a result stand as empty places.
    """
    found = standing(results, dtype)
    return Picture.of(draw(found), _alt(found))


def draw(found: Standing) -> Figure:
    """Draw a column for each rung, with its result if there is one."""
    rungs, drawn, compared = found.rungs, found.drawn, found.compared()
    width = min(max(8.0, 1.5 + 0.95 * len(rungs)), 13.5)
    threads = {result.threads for result in drawn.values()}
    labels = {id: _words(found, result, len(threads) > 1) for id, result in drawn.items()}
    with theme.figure(width, 6.4 if drawn else 4.2) as fig:
        upper, lower = fig.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3.4, 1]})
        fig.get_layout_engine().set(h_pad=0.06)
        upper.set_title(textwrap.fill(_finding(found), int((width - 1.2) / 0.115)))
        fig.supxlabel(_what_is_hollow(found), fontsize=10)
        _axes(upper, lower, rungs, width)
        conditions = (found.dtype, plural(*threads, "thread") if len(threads) == 1 else "")
        said = ", ".join(filter(None, conditions))
        upper.set_ylabel("speed (GFLOP/s)" + (f"\n{said}" if said else ""))
        columns = [(x, drawn[rung.id]) for x, rung in enumerate(rungs) if rung.id in drawn]
        empty = [x for x, rung in enumerate(rungs) if rung.id not in drawn]
        reference = _reference(compared)
        if columns:
            upper.set_yscale("log")
            fig.draw_without_rendering()  # settles the axes, so that labels can be measured
            if reference:
                upper.axhline(reference.gflops, color=VIOLET, linestyle="--", linewidth=1.8, zorder=1)
            notes = _points(upper, columns, labels, len(rungs), set(compared))
            if reference:
                _clear(upper, notes, reference.gflops)
            _errors(lower, columns, found.dtype, crowded=len(rungs) > CROWDED)
        else:
            for axes in (upper, lower):
                axes.set_yticks([])
            centred(upper, 0.5, 0.55, WHAT_TO_RUN, fontsize=12, color=DEEP_PINK, transform=upper.transAxes)
        if empty:
            _places(upper, lower, empty)
        if reference:
            lower.set_xlabel(f"{lower.get_xlabel()}; dashed: {reference.rung}")
    return fig


def _what_is_hollow(found: Standing) -> str:
    """Return the line that says why some points are hollow, "" if none is."""
    drawn = found.drawn.values()
    why = [OWN_SIZE] if any(tuple(one.shape) != found.shape for one in drawn) else []
    why += [ROUGH] if any(one.rough for one in drawn) else []
    return f"hollow, and in no ratio at {shape_in_words(found.shape)}: {'; '.join(why)}" if why else ""


def _axes(upper: Axes, lower: Axes, rungs: Sequence[Rung], width: float) -> None:
    lower.set_ylabel("error against\nexact entries\n(relative)")
    lower.set_xlabel("rung of the ladder")
    upper.set_xlim(-0.6, len(rungs) - 0.4)
    upper.tick_params(axis="x", length=0)
    for axes in (upper, lower):
        axes.grid(visible=False, axis="x")
    places = ["baseline" if rung.id in BASELINES else f"circle {rung.circle}" for rung in rungs]
    crowded = len(rungs) > CROWDED
    letters = _letters((width - 1.2) / len(rungs), 8.5)
    names = [
        f"{rung.id}, {place}" if crowded else "\n".join([*_wrapped(rung.id, letters), place])
        for rung, place in zip(rungs, places, strict=True)
    ]
    look = {"fontsize": 8, "rotation": 90} if crowded else {"fontsize": 8.5}
    lower.set_xticks(range(len(rungs)), names, **look)


def _points(
    upper: Axes,
    columns: Sequence[tuple[int, Result]],
    labels: Mapping[str, Sequence[str]],
    places: int,
    compared: Container[str],
) -> list[Annotation]:
    """Draw a stem, a point and a label for each result; a label keeps to its column, so none can collide."""
    upright = places > CROWDED
    size = 7.5 if upright else 8.5
    frame = upper.get_window_extent()
    letters = 28 if upright else _letters(frame.width / upper.figure.dpi / places, size)
    written = {
        id: "\n".join(line for part in parts for line in _wrapped(part, letters))
        for id, parts in labels.items()
    }
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 0.8}
    words = {"ha": "center", "va": "bottom", "fontsize": size, "zorder": 4, "bbox": ground}
    words |= {"rotation": 90 if upright else 0, "linespacing": 1.15}
    notes = []
    for x, result in columns:
        colour, marker = (VIOLET, "s") if result.rung in BASELINES else (PINK, "o")
        upper.vlines(x, 1e-12, result.gflops, color=colour, linewidth=1.5, alpha=0.45, zorder=1)
        look = {"color": colour, "markersize": 9, "markeredgecolor": INK}
        if result.rung not in compared:
            look = {**hollow(colour, 9, 1.8), "markerfacecolor": PAPER}
        upper.plot(x, result.gflops, marker, zorder=5, **look)
        notes.append(beside(upper, written[result.rung], (x, result.gflops), (0, 9), **words))
    upper.autoscale_view()  # a label outside of the axes would have no height
    tallest = max(note.get_window_extent().height for note in notes)
    _limits(upper, [r.gflops for _, r in columns], tallest + 24)
    return notes


def _clear(upper: Axes, notes: Sequence[Annotation], speed: float) -> None:
    """Lift the labels through which the line at this speed would run; a thin line leads there."""
    level = upper.transData.transform((0, speed))[1]
    for note in notes:
        box = note.get_window_extent()
        if box.y0 - 4 < level < box.y1 + 4:
            lifted = note.xyann[1] + (level + 7 - box.y0) * 72 / upper.figure.dpi
            note.xyann = (0, lifted)
            beside(upper, "", note.xy, (0, lifted), arrowprops={"arrowstyle": "-", "color": GREY, "lw": 0.7})


def _limits(upper: Axes, speeds: Sequence[float], label_px: float) -> None:
    """Set the scale so that the tallest label fits above the highest point."""
    low, high = math.log10(min(speeds)) - 0.5, math.log10(max(speeds))
    share = min(label_px / upper.get_window_extent().height, 0.6)
    room = (max(high - low, 1.0)) * share / (1 - share)
    upper.set_ylim(10**low, 10 ** (max(high, low + 1.0) + room))


def _errors(lower: Axes, columns: Sequence[tuple[int, Result]], dtype: str | None, crowded: bool) -> None:
    """Draw the errors that are known; an exact result stands on the axis and says so."""
    some = [(x, r) for x, r in columns if r.max_error is not None and math.isfinite(r.max_error)]
    if not some:
        lower.set_yticks([])
        lower.text(0.5, 0.4, "no error measured", transform=lower.transAxes, ha="center", color=QUIET)
        return
    unit = EPS.get(dtype)
    ends = [*(r.max_error for _, r in some if r.max_error > 0), *([unit] if unit else [])] or [1e-16]
    floor, top = min(ends) / 40, max(ends) * 40
    lower.set_yscale("log")
    lower.set_ylim(floor, top)
    for x, result in some:
        exact = result.max_error == 0
        y = floor if exact else result.max_error
        colour = VIOLET if result.rung in BASELINES else PINK
        marker = "v" if exact else "s" if result.rung in BASELINES else "o"
        lower.plot(x, y, marker, color=colour, markeredgecolor=INK, markersize=7, clip_on=False, zorder=4)
        if not crowded:
            said = "exact" if exact else f"{y:.0e}"
            beside(lower, said, (x, y), (0, 6), ha="center", fontsize=8)
    if unit:
        lower.axhline(unit, color=GREY, linestyle=":", linewidth=1.2)
        lower.set_xlabel(f"rung of the ladder (dotted: {unit:.1e}, one rounding in {dtype})")


def _places(upper: Axes, lower: Axes, empty: Sequence[int]) -> None:
    """Mark the rungs that wait to be measured, on the axis."""
    from matplotlib.transforms import blended_transform_factory

    floor = blended_transform_factory(upper.transData, upper.transAxes)
    style = {"markersize": 9, "markerfacecolor": "white", "markeredgecolor": GREY, "markeredgewidth": 1.4}
    upper.plot(empty, [0.0] * len(empty), "o", transform=floor, clip_on=False, zorder=5, **style)
    lower.set_xlabel(lower.get_xlabel() + "; empty circle: not measured yet")


def _words(found: Standing, result: Result, say_threads: bool) -> list[str]:
    """Return what stands at a point: what limits it (or what the baseline is), its speed, its size."""
    limit = next(rung.bottleneck for rung in found.rungs if rung.id == result.rung)
    first = _baseline_name(result) if result.rung in BASELINES else limit
    where = f"at {shape_in_words(result.shape)}{', rough' if result.rough else ''}"
    said = [first, f"{_figures(result.gflops)} {where}"]
    return [*said, plural(result.threads, "thread")] if say_threads else said


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width, break_long_words=False) or [""]


def _baseline_name(baseline: Result) -> str:
    """Return what the baseline is: the rung's title and, when it was measured here, which BLAS ran."""
    from course_lib import ladder
    from course_lib.measure import machine

    if baseline.rung != BASELINE or baseline.machine != machine.key():
        return ladder.rung(baseline.rung).title
    here = machine.describe()
    return f"NumPy as installed: {here.blas}, {here.blas_architecture}"


def _finding(found: Standing) -> str:
    """Say what the ladder shows, in ratios between sound results of one shape."""
    compared = found.compared()
    if not compared:
        return ONLY_ROUGH if found.drawn else "No rung is measured yet"
    measured = [one for id, one in compared.items() if id not in BASELINES]
    if not measured:
        alone = not any(id not in BASELINES for id in found.drawn)
        return "Only the baseline is measured yet" if alone else NOTHING_BESIDE
    at = f"At {shape_in_words(found.shape)}"
    slow, fast = min(measured, key=attrgetter("gflops")), max(measured, key=attrgetter("gflops"))
    baseline = _reference(compared)
    threads_differ = len({result.threads for result in (slow, fast, baseline) if result}) > 1

    def named(result: Result) -> str:
        return f"{result.rung} on {plural(result.threads, 'thread')}" if threads_differ else result.rung

    if slow is fast:
        finding = f"{at} {named(fast)} reaches {_figures(fast.gflops)} GFLOP/s"
    else:
        finding = f"{at} {named(fast)} computes {times(fast.gflops / slow.gflops)} as fast as {named(slow)}"
    if baseline:
        finding += _beside_baseline(fast.gflops / baseline.gflops, named(baseline))
    return finding + _elsewhere(found)


def _beside_baseline(ratio: float, name: str) -> str:
    if abs(ratio - 1) < SAME:
        return f"; {name} is as fast as that, within {100 * SAME:.0f} %"
    return (
        f"; {name} is {times(1 / ratio)} as fast as that"
        if ratio < 1
        else f" and {times(ratio)} as fast as {name}"
    )


def _elsewhere(found: Standing) -> str:
    """Return the ratio to the slowest rung that was measured only elsewhere, at a shape that it has."""
    compared = found.compared()
    others = [one for id, one in found.drawn.items() if id not in compared and not one.rough]
    slow = min((one for one in others if one.rung not in BASELINES), key=attrgetter("gflops"), default=None)
    if slow is None:
        return ""
    there = [one for one in found.compared(tuple(slow.shape)).values() if one.rung not in BASELINES]
    fast = max(there, key=attrgetter("gflops"))
    if fast.rung == slow.rung:
        return ""
    ratio = times(fast.gflops / slow.gflops)
    return f"; at {shape_in_words(slow.shape)} {fast.rung} computes {ratio} as fast as {slow.rung}"


def _reference(best: Mapping[str, Result]) -> Result | None:
    """Return the faster one of the baselines that are measured: beating only the other is no victory."""
    return max((best[id] for id in BASELINES if id in best), key=attrgetter("gflops"), default=None)


def _figures(gflops: float) -> str:
    return f"{gflops:,.0f}" if gflops >= 100 else f"{gflops:.3g}"


def _letters(inches: float, size: float) -> int:
    """Return how many letters of that size fit into a column, with a little air."""
    return max(7, int((inches - 0.08) * 72 / (size * LETTER)))


def _alt(found: Standing) -> str:
    kind = f" in {found.dtype}" if found.dtype else ""
    drawn = found.drawn
    if not drawn:
        return f"An empty ladder: none of its {len(found.rungs)} rungs is measured yet{kind}. {WHAT_TO_RUN}"
    said = []
    for rung in (rung for rung in found.rungs if rung.id in drawn):
        what = rung.bottleneck if rung.id in BASELINES else f"limited by: {rung.bottleneck}"
        one = drawn[rung.id]
        wrong = f", error {one.max_error:.1e}" if one.max_error is not None else ""
        place = f"at {shape_in_words(one.shape)} on {plural(one.threads, 'thread')}"
        place += " (rough)" if one.rough else "" if tuple(one.shape) == found.shape else " (not compared)"
        said.append(f"{rung.id} {_figures(one.gflops)} GFLOP/s {place}{wrong}, {what}")
    empty = [rung.id for rung in found.rungs if rung.id not in drawn]
    hollow_ones = f"{upper(line)}. " if (line := _what_is_hollow(found)) else ""
    scales = f"Speed of each rung on a log scale{kind}, its error against exact entries below: "
    words = f"{_finding(found)}. {hollow_ones}{scales}"
    return words + "; ".join(said) + (f". Not measured yet: {', '.join(empty)}." if empty else ".")


# -- the same as a table ----------------------------------------------------------------------------------

COLUMNS = ("change", "at", "time", "× last", "× first", "% of peak")
RULE = (
    "× last: times as fast as the nearest row above that was measured at the same size, too; × first: as the "
    "first row. Where one of the two rows shows another size, that of the ratio stands behind it. –: no size "
    "in common, or a baseline, which has no last."
)
HASTY = "≈: measured in haste, on cores that others held, or scattered as on them; in no ratio."
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
    return (RULE, *([HASTY] * rough), *([NOMINAL] * nominal))
