"""The learner's ladder: how fast each rung is, what limits it, and what it costs in accuracy."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from course_lib import theme
from course_lib.theme import DEEP_PINK, GREY, INK, PINK, QUIET, VIOLET, Picture
from course_lib.views.figures import beside, centred
from course_lib.views.paper import plural, times, upper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from course_lib.ladder import Result, Rung

BASELINE = "numpy"
#: They stand last, and no rung is said to have climbed past itself.
BASELINES = (BASELINE, "openblas", "torch")
EPS = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}  # spacing of the numbers just above 1
WHAT_TO_RUN = "Run a measuring cell of chapter 01, or `python -m course_lib bench`."
SIZES_DIFFER = "sizes differ: each label names its own"
CROWDED = 13  # more columns than this: their labels stand upright
LETTER = 0.54  # mean width of a letter, in font sizes


def ladder_plot(results: Iterable[Result] | None = None, dtype: str | None = None) -> Picture:
    """Return the ladder: GFLOP/s of each rung on a log scale, in ladder order, its bottleneck, its error.

    `results` None: the learner's own. `dtype` None: the one most rungs were measured in. Of several results
    of a rung those on the fewest threads count, so that all stand on equal terms where they can, and the
    one at the largest size is drawn: small matrices lie in the caches, where no rung meets its limit. Where
    the sizes of the rungs differ, the title says so. Rungs without a result stand as empty places, unless
    they cannot have one: in this dtype, or on this computer. A rung for several cores that was measured only
    on one thread has no place: its speed there says nothing.
    """
    from course_lib import ladder

    known = {rung.id: rung for rung in ladder.LADDER}
    found = [r for r in (ladder.results() if results is None else results) if r.rung in known]
    chosen = dtype or _commonest_dtype(found)
    alone = {r.rung for r in found if r.dtype == chosen and r.threads == 1 and known[r.rung].parallel}
    best = representative(r for r in found if r.dtype == chosen and (r.rung not in alone or r.threads > 1))
    possible = [rung for rung in ladder.LADDER if rung.id not in alone and rung.missing() is None]
    able = {rung.id for rung in possible if chosen in rung.dtypes} or {rung.id for rung in possible}
    rungs = [rung for rung in ladder.LADDER if rung.id in best or rung.id in able]
    rungs.sort(key=lambda rung: rung.id in BASELINES)
    return Picture.of(draw(rungs, best, chosen), _alt(rungs, best, chosen))


def representative(results: Iterable[Result]) -> dict[str, Result]:
    """Return each rung's result on its fewest threads at its largest size; of equals the fastest."""

    def rank(result: Result) -> tuple[int, int, float]:
        return -result.threads, math.prod(result.shape), result.gflops

    return {result.rung: result for result in sorted(results, key=rank)}


def draw(rungs: Sequence[Rung], best: Mapping[str, Result], dtype: str | None) -> Figure:
    """Draw a column for each rung, with its best result if there is one."""
    width = min(max(8.0, 1.5 + 0.95 * len(rungs)), 13.5)
    threads = {result.threads for result in best.values()}
    labels = {id: _words(rungs, result, len(threads) > 1) for id, result in best.items()}
    with theme.figure(width, 6.4 if best else 4.2) as fig:
        upper, lower = fig.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3.4, 1]})
        fig.get_layout_engine().set(h_pad=0.06)
        title = textwrap.wrap(_finding(rungs, best), int((width - 1.2) / 0.115))
        upper.set_title("\n".join([*title, *([SIZES_DIFFER] if _sizes_differ(best) else [])]))
        _axes(upper, lower, rungs, width)
        conditions = (dtype, plural(*threads, "thread") if len(threads) == 1 else "")
        said = ", ".join(filter(None, conditions))
        upper.set_ylabel("speed (GFLOP/s)" + (f"\n{said}" if said else ""))
        columns = [(x, best[rung.id]) for x, rung in enumerate(rungs) if rung.id in best]
        empty = [x for x, rung in enumerate(rungs) if rung.id not in best]
        if columns:
            upper.set_yscale("log")
            fig.draw_without_rendering()  # settles the axes, so that labels can be measured
            _points(upper, columns, labels, len(rungs))
            _errors(lower, columns, dtype, crowded=len(rungs) > CROWDED)
        else:
            for axes in (upper, lower):
                axes.set_yticks([])
            centred(upper, 0.5, 0.55, WHAT_TO_RUN, fontsize=12, color=DEEP_PINK, transform=upper.transAxes)
        if empty:
            _places(upper, lower, empty)
        if reference := _reference(best):
            lower.set_xlabel(f"{lower.get_xlabel()}; dashed: {reference.rung}")
    return fig


def _sizes_differ(best: Mapping[str, Result]) -> bool:
    return len({tuple(result.shape) for result in best.values()}) > 1


def _axes(upper: Axes, lower: Axes, rungs: Sequence[Rung], width: float) -> None:
    lower.set_ylabel("error against\nexact entries\n(relative)")
    lower.set_xlabel("rung of the ladder")
    upper.set_xlim(-0.6, len(rungs) - 0.4)
    upper.tick_params(axis="x", length=0)
    for axes in (upper, lower):
        axes.grid(visible=False, axis="x")
    places = ["baseline" if rung.id in BASELINES else f"circle {rung.circle}" for rung in rungs]
    if len(rungs) > CROWDED:
        names = [f"{rung.id}, {place}" for rung, place in zip(rungs, places, strict=True)]
        lower.set_xticks(range(len(rungs)), names, fontsize=8, rotation=90)
        return
    letters = _letters((width - 1.2) / len(rungs), 8.5)
    names = [
        "\n".join([*_wrapped(rung.id, letters), place]) for rung, place in zip(rungs, places, strict=True)
    ]
    lower.set_xticks(range(len(rungs)), names, fontsize=8.5)


def _points(
    upper: Axes, columns: Sequence[tuple[int, Result]], labels: Mapping[str, Sequence[str]], places: int
) -> None:
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
    look = {"ha": "center", "va": "bottom", "fontsize": size, "zorder": 4, "bbox": ground}
    look |= {"rotation": 90 if upright else 0, "linespacing": 1.15}
    notes = []
    reference = _reference({result.rung: result for _, result in columns})
    for x, result in columns:
        colour, marker = (VIOLET, "s") if result.rung in BASELINES else (PINK, "o")
        if result is reference:
            upper.axhline(result.gflops, color=VIOLET, linestyle="--", linewidth=1.8, zorder=1)
        upper.vlines(x, 1e-12, result.gflops, color=colour, linewidth=1.5, alpha=0.45, zorder=1)
        upper.plot(x, result.gflops, marker, color=colour, markersize=9, markeredgecolor=INK, zorder=5)
        notes.append(beside(upper, written[result.rung], (x, result.gflops), (0, 9), **look))
    tallest = max(note.get_window_extent().height for note in notes)
    _limits(upper, [r.gflops for _, r in columns], tallest + 24)


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
    unit = EPS.get(dtype or "")
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


def _words(rungs: Sequence[Rung], result: Result, say_threads: bool) -> list[str]:
    """Return what stands at a point: what limits it (or what the baseline is), its speed, its size."""
    limit = next(rung.bottleneck for rung in rungs if rung.id == result.rung)
    first = _baseline_name(result) if result.rung in BASELINES else limit
    said = [first, f"{_figures(result.gflops)} at {_shape(result.shape)}"]
    return [*said, plural(result.threads, "thread")] if say_threads else said


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=True) or [""]


def _shape(shape: Sequence[int]) -> str:
    return f"{shape[0]:,}³" if len(set(shape)) == 1 else "×".join(map(str, shape))


def _baseline_name(baseline: Result) -> str:
    """Return what the baseline is: the rung's title and, when it was measured here, which BLAS ran."""
    from course_lib import ladder
    from course_lib.measure import machine

    if baseline.rung != BASELINE or baseline.machine != machine.key():
        return ladder.rung(baseline.rung).title
    here = machine.describe()
    return f"NumPy as installed: {here.blas}, {here.blas_architecture}"


def _commonest_dtype(results: Sequence[Result]) -> str | None:
    """Return the dtype in which most rungs were measured; of equals the wider one."""
    rungs = Counter(dtype for dtype, _ in {(result.dtype, result.rung) for result in results})
    return max(rungs, key=lambda dtype: (rungs[dtype], dtype), default=None)


def _finding(rungs: Sequence[Rung], best: Mapping[str, Result]) -> str:
    measured = [best[rung.id] for rung in rungs if rung.id in best and rung.id not in BASELINES]
    baseline = _reference(best)
    if not measured:
        return "No rung is measured yet" if baseline is None else "Only the baseline is measured yet"
    slow, fast = min(measured, key=attrgetter("gflops")), max(measured, key=attrgetter("gflops"))
    threads_differ = len({result.threads for result in (slow, fast, baseline) if result}) > 1

    def named(result: Result) -> str:
        return f"{result.rung} on {plural(result.threads, 'thread')}" if threads_differ else result.rung

    if slow is fast:
        finding = f"{named(fast)} reaches {_figures(fast.gflops)} GFLOP/s"
    else:
        finding = f"{named(fast)} computes {times(fast.gflops / slow.gflops)} as fast as {named(slow)}"
    if baseline is None:
        return finding
    if fast.gflops < baseline.gflops:
        return f"{finding}; {named(baseline)} is {times(baseline.gflops / fast.gflops)} as fast as that"
    return f"{finding} and {times(fast.gflops / baseline.gflops)} as fast as {named(baseline)}"


def _reference(best: Mapping[str, Result]) -> Result | None:
    """Return the faster one of the baselines that are measured: beating only the other is no victory."""
    return max((best[id] for id in BASELINES if id in best), key=attrgetter("gflops"), default=None)


def _figures(gflops: float) -> str:
    return f"{gflops:,.0f}" if gflops >= 100 else f"{gflops:.3g}"


def _letters(inches: float, size: float) -> int:
    """Return how many letters of that size fit into a column, with a little air."""
    return max(7, int((inches - 0.08) * 72 / (size * LETTER)))


def _alt(rungs: Sequence[Rung], best: Mapping[str, Result], dtype: str | None) -> str:
    kind = f" in {dtype}" if dtype else ""
    if not best:
        return f"An empty ladder: none of its {len(rungs)} rungs is measured yet{kind}. {WHAT_TO_RUN}"
    said = []
    for rung in (rung for rung in rungs if rung.id in best):
        what = rung.bottleneck if rung.id in BASELINES else f"limited by: {rung.bottleneck}"
        one = best[rung.id]
        wrong = f", error {one.max_error:.1e}" if one.max_error is not None else ""
        place = f"at {_shape(one.shape)} on {plural(one.threads, 'thread')}"
        said.append(f"{rung.id} {_figures(one.gflops)} GFLOP/s {place}{wrong}, {what}")
    empty = [rung.id for rung in rungs if rung.id not in best]
    differ = f"{upper(SIZES_DIFFER)}. " if _sizes_differ(best) else ""
    scales = f"Speed of each rung on a log scale{kind}, its error against exact entries below: "
    words = f"{_finding(rungs, best)}. {differ}{scales}"
    return words + "; ".join(said) + (f". Not measured yet: {', '.join(empty)}." if empty else ".")
