"""A block's timeline of bars: the rungs of circle 10 below each other, and a pipeline to try stages on.

All numbers are the model's (`simulators.pipeline`, `fp8.pipelines`): no kernel was timed for them.
A warpgroup's colour is its colour on the tensor core, too; hatches tell promotion and the way out from
products. Copies that are on their way are thin lines, one below the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.fp8.pipelines import ROLES_OF, pipeline_of
from course_lib.fp8.tiles import Tile
from course_lib.simulators.pipeline import (
    COPIES,
    COPY_LATENCY,
    ROLES,
    TENSOR_CORE,
    Pipeline,
    PipelineSpan,
    PipelineTimeline,
    timeline,
)
from course_lib.theme import GREY, INK, PAPER, PINK, SERIES, VIOLET, Picture
from course_lib.views.figures import headline, stacked
from course_lib.views.live import Explorer, widgets
from course_lib.views.paper import PINK_TINT, VIOLET_TINT, Html, card, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STAGES = 8
STILL_STAGES = (1, 2, 4)
LONGEST_LATENCY = 2000
KEYS = "Keyboard: Tab goes from control to control, arrow keys move a slider, Space presses a button."
WORDS = {
    "one": "who multiplies also orders",
    "specialised": "a warp only orders",
    "persistent": "and the block stays",
}


def pipeline(start: Pipeline | None = None) -> PipelineExplorer:
    """Return controls for the stages (1 to 8), the latency and the roles of a pipeline.

    start: what they begin with, and all that they do not change. None: v4_two_level's with two stages, two
    tiles of 128 x 128 and K = 768.
    """
    start = start or pipeline_of("v4_two_level", K=768, tiles=2, stages=2)
    if start.stages > MOST_STAGES or start.copy_latency > LONGEST_LATENCY:
        raise ValueError(
            f"The pipeline has {start.stages} stages and a latency of {start.copy_latency} cycles, but the "
            f"sliders end at {MOST_STAGES} and {LONGEST_LATENCY:,}: start with less."
        )
    return PipelineExplorer(start)


class PipelineExplorer(Explorer):
    """The controls `.stages`, `.latency` and `.roles`; `.pipeline` is as they stand, `frame` draws one."""

    def __init__(self, start: Pipeline) -> None:
        super().__init__()
        kit = widgets()
        self.start = start
        slider = {"layout": {"width": "min(420px, 95%)"}, "tooltip": KEYS, "continuous_update": False}
        self.stages = kit.IntSlider(start.stages, min=1, max=MOST_STAGES, description="stages", **slider)
        self.latency = kit.IntSlider(
            start.copy_latency, min=0, max=LONGEST_LATENCY, step=1, description="latency", **slider
        )
        self.roles = kit.ToggleButtons(
            options=[(f"{role}: {WORDS[role]}", role) for role in ROLES],
            value=start.roles,
            description="roles",
            style={"button_width": "auto"},
        )
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
            _title(fig, finding(found))
            picture = Picture.of(fig, f"{_alt_of_rows([found])} {_alt_of_curve(chosen)}")
        return card(picture._repr_html_() + note(in_words(chosen)), picture.alt)

    def static(self) -> Html:
        """Return the timelines with 1, 2 and 4 stages, and the curve."""
        several, curve = timelines(self.start), shares(self.start)
        words = in_words(self.start)
        body = "".join(f"<div>{one._repr_html_()}</div>" for one in (several, curve)) + note(words)
        return Html(card(body, f"{several.alt} {curve.alt}"), f"{several.alt} {curve.alt} {words}")


def timelines(base: Pipeline, stages: Sequence[int] = STILL_STAGES) -> Picture:
    """Draw the timelines of a pipeline with several numbers of stages below each other, on one axis."""
    if not stages:
        raise ValueError("There is no timeline to draw: name one or more numbers of stages.")
    founds = [timeline(dataclasses.replace(base, stages=count)) for count in stages]
    until = max(found.cycles for found in founds)
    with theme.figure(8.6, 1.15 + sum(0.16 + ROW_HEIGHT * rows for rows in heights(founds))) as fig:
        every = stacked(fig, heights(founds))
        for axes, found in zip(every, founds, strict=True):
            draw(axes, found, until)
            axes.set_title(_upper(finding(found)), fontsize=9.5, pad=3)
        every[-1].set_xlabel("time, cycles (model)")
        legend(fig, founds)
        first, last = founds[0], founds[-1]
        said = f"Model: {_stages(last)} need {last.cycles / first.cycles:.2g} of the time of {_stages(first)}"
        said = said if len(founds) > 1 else finding(first)
        _title(fig, said)
        return Picture.of(fig, f"{said}. {_alt_of_rows(founds)}")


def shares(base: Pipeline) -> Picture:
    """Draw the share of time in which the tensor core works against the stages, a line for each role."""
    with theme.figure(8.6, 3.0) as fig:
        _draw_curve(fig.subplots(), base, marks=False)
        _title(fig, _curve_finding(base))
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
    limits = "the copy engine" if chosen.bounds[COPIES] >= chosen.bounds[TENSOR_CORE] else "the tensor core"
    needed = chosen.stages_needed
    return (
        f"A lap of a stage takes {chosen.copy_latency:,} (latency) + {chosen.copy_cycles:,} (copy) + "
        f"{chosen.math_cycles:,} (product) = {lap:,} cycles. With {chosen.stages} "
        f"stage{'s' * (chosen.stages > 1)} a block of K can be done every {lap / chosen.stages:,.0f} cycles; "
        f"{limits} needs {slowest:,}. So {needed} stage{'s' * (needed > 1)} or more keep it busy. "
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
    axes.set_ylim(0, 105)
    axes.set_xticks(list(counts))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)


def _share(base: Pipeline, **values: Any) -> float:
    return timeline(dataclasses.replace(base, **values)).share(TENSOR_CORE)


def _curve_finding(base: Pipeline) -> str:
    best = max(range(1, MOST_STAGES + 1), key=lambda count: (round(_share(base, stages=count), 3), -count))
    return f"Model: from {best} stage{'s' * (best > 1)} on, more of them bring nothing"


def _title(fig: Any, said: str) -> None:
    headline(fig, said, 76)


def _stages(found: PipelineTimeline) -> str:
    count = found.pipeline.stages
    return f"{count} stage{'s' * (count > 1)}"


def _upper(said: str) -> str:
    """Return a finding without "Model: ", for where that was said."""
    return said.removeprefix("Model: ").capitalize()


def _alt_of_rows(founds: Sequence[PipelineTimeline]) -> str:
    each = "; ".join(f"{_upper(finding(one))}, {one.cycles:,} cycles" for one in founds)
    return (
        "Timelines of a block, a row each for copy engine, warpgroups, tensor core and stores. "
        f"{each}. A model, nothing measured."
    )


def _alt_of_curve(base: Pipeline) -> str:
    each = "; ".join(
        f"{role}: "
        + ", ".join(
            f"{count}: {percent(_share(base, stages=count, roles=role))}"
            for count in range(1, MOST_STAGES + 1)
        )
        for role in ROLES
    )
    return f"The tensor core's share of the time against stages. {_curve_finding(base)}. {each}."


FULL, TINTS = (PINK, VIOLET), (PINK_TINT, VIOLET_TINT)
COPY = "#d6d1dc"
NARROW = 0.026  # of the axis: a bar must be so wide to hold its number
ROW_HEIGHT = 0.24  # inches a row of bars takes
KINDS = {"promotion": "promotion", "way out": "tile's way out"}


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
    axes.set_xlim(0, until)
    axes.set_ylim(len(workers) - 0.45, -0.55)
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
    axes.broken_barh(
        [(span.start, shown)],
        (middle - height / 2, height),
        facecolors=colour,
        hatch=hatch,
        edgecolor=edge,
        linewidth=0.6,
    )
    if span.who in (COPIES, TENSOR_CORE) and shown > NARROW * until:
        ink = PAPER if span.by else INK
        name = name_of(span)
        where = span.start + shown / 2
        axes.text(
            where, middle + 0.02, name, ha="center", va="center", fontsize=7.5, color=ink, fontweight="bold"
        )


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
    return {"product": (FULL[by], ""), "promotion": (TINTS[by], "////"), "way out": (PAPER, "xxxx")}[what]


def name_of(span: PipelineSpan) -> str:
    """Return the tile's letter and the number of its block of K: A0, A1, …, B0."""
    return f"{chr(ord('A') + span.tile % 26)}{span.block}"


def legend(fig: Figure, founds: list[PipelineTimeline]) -> None:
    """Say below the figure what the bars mean, as far as they occur."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    seen = {span.what for found in founds for span in found.spans}
    handles: list = [Line2D([], [], color=INK, linewidth=0.8, label="ordered, on its way")]
    handles.append(Patch(facecolor=COPY, edgecolor=GREY, label="copy"))
    groups = max(found.pipeline.consumers for found in founds)
    for group in range(groups):
        colour, _ = look("product", group)
        handles.append(Patch(facecolor=colour, label=f"product, warpgroup {group}"))
    for what, name in KINDS.items():
        if what in seen:
            colour, hatch = look(what, 0)
            handles.append(Patch(facecolor=colour, hatch=hatch, edgecolor=PINK, label=name))
    fig.legend(
        handles=handles,
        loc="outside lower left",
        ncols=min(len(handles), 6),
        fontsize=8.5,
        handlelength=1.5,
        columnspacing=1.0,
    )


def percent(share: float) -> str:
    """Return a share as a whole percentage, and never 100 % for what is less."""
    return f"{min(100 * share, 99) if share < 1 else 100:.0f} %"


def heights(founds: list[PipelineTimeline]) -> list[int]:
    """Return the rows of each timeline, a line for its title counted."""
    return [len(found.workers) + 1 for found in founds]


SHOWN = ("v1_wgmma", "v2_tma_ring", "v3_warp_specialised", "v4_two_level", "v5_persistent")
RUNGS = {
    "v1_wgmma": "one stage, one warpgroup, tiles of 64 rows",
    "v2_tma_ring": "a ring; who multiplies also orders",
    "v3_warp_specialised": "a warp that only orders",
    "v4_two_level": "the same, with scales and promotion",
    "v5_persistent": "the block stays: fetches the next tile while it stores",
    "v6_tuned": "the block stays, stores go on by themselves",
}


def roles(
    kernels: Sequence[str] = SHOWN,
    *,
    tile: Tile | None = None,
    K: int = 512,
    tiles: int = 2,
    latency: int = COPY_LATENCY,
) -> Picture:
    """Draw the timelines of several rungs below each other, on one axis of cycles.

    Each computes `tiles` tiles of D (default 128 x 128) with K products an element. The axis ends when the
    slowest rung but v1_wgmma is done. A block is seen alone: several small ones of v1_wgmma, which share a
    multiprocessor, cover for each other, and the picture does not show that. Raises ValueError for no
    kernel and for one that has no pipeline.
    """
    if not kernels:
        raise ValueError(f"There is no kernel to draw: name some of {', '.join(ROLES_OF)}.")
    found = {name: timeline(pipeline_of(name, tile, K, tiles, latency=latency)) for name in kernels}
    rung_by_rung = [one.cycles for name, one in found.items() if name != "v1_wgmma"]
    until = 1.01 * max(rung_by_rung or [one.cycles for one in found.values()])
    founds, said = list(found.values()), rungs_in_words(found)
    with theme.figure(8.8, 1.15 + sum(0.16 + ROW_HEIGHT * rows for rows in heights(founds))) as fig:
        every = stacked(fig, heights(founds))
        for axes, (name, one) in zip(every, found.items(), strict=True):
            draw(axes, one, until)
            axes.set_title(_subtitle(name, one), fontsize=9.5, pad=3)
            if one.cycles > until:
                axes.text(1.0, 1.02, "goes on ▶", transform=axes.transAxes, ha="right", fontsize=8.5)
        every[-1].set_xlabel("time, cycles (model)")
        legend(fig, founds)
        headline(fig, said, 80)
        return Picture.of(fig, _alt_of_rungs(said, found, K))


def rungs_in_words(found: dict[str, PipelineTimeline]) -> str:
    """Say how much of the time the tensor core works in the first and in the last rung."""
    (first, one), *_, (last, other) = [*found.items()] * 2
    said = f"Model: the tensor core works {percent(one.share(TENSOR_CORE))} of the time in {first}"
    return said + (f", {percent(other.share(TENSOR_CORE))} in {last}" if last != first else "")


def _subtitle(name: str, one: PipelineTimeline) -> str:
    share = percent(one.share(TENSOR_CORE))
    return f"{name}: {RUNGS[name]} – {one.cycles:,} cycles, tensor core {share}"


def _alt_of_rungs(said: str, found: dict[str, PipelineTimeline], K: int) -> str:
    each = "; ".join(
        f"{name} ({RUNGS[name]}) is done after {one.cycles:,} cycles, tensor core "
        f"{percent(one.share(TENSOR_CORE))}"
        for name, one in found.items()
    )
    return f"Timelines of a block, a row for each worker, K = {K}. {said}. {each}. A model, nothing measured."
