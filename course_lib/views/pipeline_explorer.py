"""A block's timeline of bars: the rungs of circle 10 below each other, and a pipeline to try stages on.

All numbers are the model's (`simulators.pipeline`, `fp8.pipelines`): no kernel was timed for them.
A warpgroup's colour is its colour on the tensor core, too; hatches tell promotion and the epilogue from
products. Copies that are on their way are thin lines, one below the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.fp8.pipelines import pipeline_of
from course_lib.simulators.pipeline import (
    COPIES,
    ROLES,
    TENSOR_CORE,
    Pipeline,
    PipelineSpan,
    PipelineTimeline,
    timeline,
)
from course_lib.theme import GREY, INK, PAPER, PINK, PINK_TINT, SERIES, VIOLET, VIOLET_TINT, Picture
from course_lib.views.figures import centred, headline, stacked
from course_lib.views.live import KEYS, Explorer, buttons, widgets
from course_lib.views.paper import Html, card, note, plural, upper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STAGES = 8
STILL_STAGES = (1, 2, 4)
LONGEST_LATENCY = 2000
WORDS = {
    "one": "a consumer orders, too",
    "specialised": "a producer warp",
    "persistent": "and the block stays",
}


def pipeline() -> PipelineExplorer:
    """Return controls for the stages (1 to 8), the latency and the roles of a pipeline.

    They begin with v4_two_level's, two stages, two tiles of 128 x 128 and K = 768.
    """
    return PipelineExplorer(pipeline_of("v4_two_level", K=768, tiles=2, stages=2))


class PipelineExplorer(Explorer):
    """The controls `.stages`, `.latency` and `.roles`; `.pipeline` is as they stand, `frame` draws one."""

    def __init__(self, start: Pipeline) -> None:
        super().__init__()
        kit = widgets()
        self.start = start
        slider = {"layout": {"width": "min(420px, 95%)"}, "tooltip": KEYS, "continuous_update": False}
        self.stages = kit.IntSlider(start.stages, min=1, max=MOST_STAGES, description="stages", **slider)
        latency = {"min": 0, "max": LONGEST_LATENCY, "description": "latency", **slider}
        self.latency = kit.IntSlider(start.copy_latency, **latency)
        options = [(f"{role}: {WORDS[role]}", role) for role in ROLES]
        self.roles = buttons(options, value=start.roles, description="roles")
        controls = (self.stages, self.latency, self.roles)
        for control in controls:
            control.observe(lambda _: self._show(), names="value")
        self._show()
        self.widget = kit.VBox([*controls, self.status, self.picture])

    @property
    def pipeline(self) -> Pipeline:
        """What the controls say."""
        values = {"stages": self.stages.value, "copy_latency": self.latency.value, "roles": self.roles.value}
        return dataclasses.replace(self.start, **values)

    def _show(self) -> None:
        self._draw(self.frame(self.pipeline))
        self._say(f"{finding(timeline(self.pipeline))}. {KEYS}")

    def frame(self, chosen: Pipeline) -> str:
        """Return the timeline of a pipeline, the curve over its stages, and its limits in words."""
        found = timeline(chosen)
        rows = len(found.workers) + 1
        with theme.figure(8.6, 3.6 + 0.16 + ROW_HEIGHT * rows) as fig:
            above, below = fig.subplots(2, 1, gridspec_kw={"height_ratios": [rows * ROW_HEIGHT, 2.0]})
            draw(above, found, found.cycles)
            above.set_xlabel("time, cycles (model)")
            _draw_curve(below, chosen)
            legend(fig, [found])
            headline(fig, finding(found), 76)
            picture = Picture.of(fig, f"{_alt_of_rows([found])} {_alt_of_curve(chosen)}")
        return card(picture._repr_html_() + note(in_words(chosen)), picture.alt)

    def static(self) -> Html:
        """Return the timelines with 1, 2 and 4 stages, and the curve."""
        several, curve = timelines(self.start), shares(self.start)
        words = in_words(self.start)
        body = "".join(f"<div>{one._repr_html_()}</div>" for one in (several, curve)) + note(words)
        return Html(card(body, f"{several.alt} {curve.alt}"), f"{several.alt} {curve.alt} {words}")


def timelines(base: Pipeline) -> Picture:
    """Draw the timelines of a pipeline with several numbers of stages below each other, on one axis."""
    founds = [timeline(dataclasses.replace(base, stages=count)) for count in STILL_STAGES]
    first, last = founds[0], founds[-1]
    said = f"Model: {_stages(last)} need {last.cycles / first.cycles:.2g} of the time of {_stages(first)}"
    titles = [_upper(finding(found)) for found in founds]
    until = max(found.cycles for found in founds)
    return _below_each_other(founds, titles, until, said, f"{said}. {_alt_of_rows(founds)}")


def _below_each_other(
    founds: Sequence[PipelineTimeline], titles: Sequence[str], until: float, said: str, alt: str
) -> Picture:
    """Draw the first `until` cycles of timelines on one axis, what goes on beyond with a mark."""
    heights = [len(found.workers) + 1 for found in founds]  # a line for the title counted
    with theme.figure(8.8, 1.15 + sum(0.16 + ROW_HEIGHT * rows for rows in heights)) as fig:
        every = stacked(fig, heights)
        for axes, found, title in zip(every, founds, titles, strict=True):
            draw(axes, found, until)
            axes.set_title(title, fontsize=9.5, pad=3)
            if found.cycles > until:
                axes.text(1.0, 1.02, "goes on ▶", transform=axes.transAxes, ha="right", fontsize=8.5)
        every[-1].set_xlabel("time, cycles (model)")
        legend(fig, founds)
        headline(fig, said, 80)
        return Picture.of(fig, alt)


def shares(base: Pipeline) -> Picture:
    """Draw the share of time in which the tensor core works against the stages, a line for each role."""
    with theme.figure(8.6, 3.0) as fig:
        _draw_curve(fig.subplots(), base, marks=False)
        headline(fig, _curve_finding(base), 76)
        return Picture.of(fig, _alt_of_curve(base))


def finding(found: PipelineTimeline) -> str:
    """Say what share of the time the tensor core works and what stands in its way."""
    pipeline = found.pipeline
    said = (
        f"Model: with {_stages(found)} the tensor core works {percent(found.share(TENSOR_CORE))} of the time"
    )
    if pipeline.limit == TENSOR_CORE:
        return f"{said}, and it is the limit"
    if pipeline.limit == COPIES:
        return f"{said}: copies are the limit"
    return f"{said}: too few stages"


def in_words(chosen: Pipeline) -> str:
    """Return the sum behind the limit: how long a lap takes, and how many laps must run side by side."""
    lap = chosen.copy_latency + chosen.copy_cycles + chosen.math_cycles
    slowest = max(chosen.bounds[COPIES], chosen.bounds[TENSOR_CORE])
    limits = "TMA" if chosen.bounds[COPIES] >= chosen.bounds[TENSOR_CORE] else "the tensor core"
    return (
        f"A lap of a stage takes {chosen.copy_latency:,} (latency) + {chosen.copy_cycles:,} (copy) + "
        f"{chosen.math_cycles:,} (product) = {lap:,} cycles. With "
        f"{plural(chosen.stages, 'stage')} a block of K can be done every {lap / chosen.stages:,.0f} cycles; "
        f"{limits} needs {slowest:,}. So {plural(chosen.stages_needed, 'stage')} or more keep it busy. "
        "The share stays below the bound because of the beginning and the end of a tile. A model: a latency "
        "as of a plain read of memory is assumed at first, and waiting at barriers is free."
    )


def _draw_curve(axes: Axes, base: Pipeline, marks: bool = True) -> None:
    counts = range(1, MOST_STAGES + 1)
    for role, (colour, marker, line) in zip(ROLES, SERIES, strict=False):
        values = [100 * _share(base, stages=count, roles=role) for count in counts]
        axes.plot(counts, values, linestyle=line, marker=marker, color=colour, markersize=6, label=role)
    bound = [100 * dataclasses.replace(base, stages=count).most_share for count in counts]
    axes.plot(counts, bound, color=GREY, linestyle=":", label="bound, no ends")
    if marks:
        here = 100 * _share(base)
        axes.plot([base.stages], [here], "o", markersize=15, fillstyle="none", color=INK, markeredgewidth=2)
    axes.set(xlabel="stages of the ring", ylabel="tensor core works,\n% of the time (model)")
    axes.set(ylim=(0, 105), xticks=counts)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)


def _share(base: Pipeline, **values: Any) -> float:
    return timeline(dataclasses.replace(base, **values)).share(TENSOR_CORE)


def _curve_finding(base: Pipeline) -> str:
    best = max(range(1, MOST_STAGES + 1), key=lambda count: (round(_share(base, stages=count), 3), -count))
    return f"Model: from {plural(best, 'stage')} on, more of them bring nothing"


def _stages(found: PipelineTimeline) -> str:
    return plural(found.pipeline.stages, "stage")


def _upper(said: str) -> str:
    """Return a finding without "Model: ", for where that was said."""
    return upper(said.removeprefix("Model: "))


def _alt_of_rows(founds: Sequence[PipelineTimeline]) -> str:
    each = "; ".join(f"{_upper(finding(one))}, {one.cycles:,} cycles" for one in founds)
    return (
        "Timelines of a block, a row each for TMA, warpgroups, tensor core and stores. "
        f"{each}. A model, nothing measured."
    )


def _alt_of_curve(base: Pipeline) -> str:
    said = []
    for role in ROLES:
        shares = (f"{n}: {percent(_share(base, stages=n, roles=role))}" for n in range(1, MOST_STAGES + 1))
        said.append(f"{role}: {', '.join(shares)}")
    return f"The tensor core's share of the time against stages. {_curve_finding(base)}. {'; '.join(said)}."


FULL, TINTS = (PINK, VIOLET), (PINK_TINT, VIOLET_TINT)
COPY = "#d6d1dc"
NARROW = 0.026  # of the axis: a bar must be so wide to hold its number
ROW_HEIGHT = 0.24  # inches a row of bars takes


def draw(axes: Axes, found: PipelineTimeline, until: float) -> None:
    """Draw the first `until` cycles of a timeline, a row for each worker."""
    workers = found.workers
    for span in found.spans:
        if span.start >= until or span.who not in workers:
            continue
        row = workers.index(span.who)
        if span.what == "on its way":
            visit = span.tile * found.pipeline.blocks_of_k + span.block
            _on_its_way(axes, span, row, visit, found.pipeline.stages)
        else:
            _bar(axes, span, row, until)
    axes.set(xlim=(0, until), ylim=(len(workers) - 0.45, -0.55))
    axes.set_yticks(range(len(workers)), workers, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _bar(axes: Axes, span: PipelineSpan, row: int, until: float) -> None:
    colour, hatch = look(span.what, span.by)
    is_copy = span.who == COPIES
    height, middle = (0.46, row - 0.13) if is_copy else (0.68, row)
    shown = min(span.end, until) - span.start
    edge = GREY if is_copy else FULL[span.by] if hatch else PAPER
    bar = {"facecolors": colour, "hatch": hatch, "edgecolor": edge, "linewidth": 0.6}
    axes.broken_barh([(span.start, shown)], (middle - height / 2, height), **bar)
    if span.who in (COPIES, TENSOR_CORE) and shown > NARROW * until:
        style = {"fontsize": 7.5, "color": PAPER if span.by else INK, "fontweight": "bold"}
        name = f"{chr(ord('A') + span.tile % 26)}{span.block}"  # the tile and its block of K: A0, A1, …, B0
        centred(axes, span.start + shown / 2, middle + 0.02, name, **style)


def _on_its_way(axes: Axes, span: PipelineSpan, row: int, visit: int, stages: int) -> None:
    """A line from the order to the first byte, in a place of its own among the copies that are ordered."""
    lines = min(stages, 4)
    y = row + 0.17 + 0.26 * (visit % lines) / max(lines - 1, 1)
    axes.plot([span.start, span.end], [y, y], color=INK, linewidth=0.7, solid_capstyle="butt")
    axes.plot([span.start], [y], "|", color=INK, markersize=3, markeredgewidth=0.7)


def look(what: str, by: int | None) -> tuple[str, str]:
    """Return the colour and the hatch of a kind of work of a warpgroup (None: of nobody)."""
    if by is None:
        return COPY, ""
    return {"product": (FULL[by], ""), "promotion": (TINTS[by], "////"), "epilogue": (PAPER, "xxxx")}[what]


def legend(fig: Figure, founds: list[PipelineTimeline]) -> None:
    """Say below the figure what the bars mean, as far as they occur."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    seen = {span.what for found in founds for span in found.spans}
    handles: list = [
        Line2D([], [], color=INK, linewidth=0.8, label="ordered, on its way"),
        Patch(facecolor=COPY, edgecolor=GREY, label="copy"),
    ]
    groups = max(found.pipeline.consumers for found in founds)
    for group, colour in enumerate(FULL[:groups]):
        handles.append(Patch(facecolor=colour, label=f"product, warpgroup {group}"))
    for what in ("promotion", "epilogue"):
        if what in seen:
            colour, hatch = look(what, 0)
            handles.append(Patch(facecolor=colour, hatch=hatch, edgecolor=PINK, label=what))
    room = {"ncols": min(len(handles), 6), "handlelength": 1.5, "columnspacing": 1.0}
    fig.legend(handles=handles, loc="outside lower left", fontsize=8.5, **room)


def percent(share: float) -> str:
    """Return a share as a whole percentage, and never 100 % for what is less."""
    return f"{min(100 * share, 99) if share < 1 else 100:.0f} %"


RUNGS = {
    "v1_wgmma": "one stage, one warpgroup, tiles of 64 rows",
    "v2_tma_ring": "a ring; a consumer orders, too",
    "v3_warp_specialised": "a warp is the producer",
    "v4_two_level": "the same, with scales and promotion",
    "v5_persistent": "the block stays: fetches the next tile while it stores",
}
K, TILES = 512, 2  # of each rung: products an element, tiles of 128 x 128


def roles() -> Picture:
    """Draw the timelines of several rungs below each other, on one axis of cycles.

    Each computes two tiles of D with K = 512. The axis ends when the slowest rung but v1_wgmma is done. A
    block is seen alone: several small ones of v1_wgmma, which share a multiprocessor, cover for each other,
    and the picture does not show that.
    """
    found = {name: timeline(pipeline_of(name, K=K, tiles=TILES)) for name in RUNGS}
    until = 1.01 * max(one.cycles for name, one in found.items() if name != "v1_wgmma")
    shares = {name: percent(one.share(TENSOR_CORE)) for name, one in found.items()}
    first, *_, last = RUNGS
    said = f"Model: the tensor core works {shares[first]} of the time in {first}, {shares[last]} in {last}"
    titles = [
        f"{name}: {words} – {found[name].cycles:,} cycles, tensor core {shares[name]}"
        for name, words in RUNGS.items()
    ]
    each = "; ".join(
        f"{name} ({words}) is done after {found[name].cycles:,} cycles, tensor core {shares[name]}"
        for name, words in RUNGS.items()
    )
    alt = f"Timelines of a block, a row for each worker, K = {K}. {said}. {each}. A model, nothing measured."
    return _below_each_other(list(found.values()), titles, until, said, alt)
