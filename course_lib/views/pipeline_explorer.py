"""Stages, latency and roles as controls over a block's timeline, and what they do to the tensor core's share.

All numbers are the model's (`simulators.pipeline`), and every picture says so.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from course_lib import theme
from course_lib.fp8.pipelines import pipeline_of
from course_lib.simulators.pipeline import COPIES, ROLES, TENSOR_CORE, Pipeline, PipelineTimeline, timeline
from course_lib.theme import GREY, INK, SERIES, Picture
from course_lib.views.live import FITS, Live, widgets
from course_lib.views.paper import Html, card, note
from course_lib.views.pipeline_rows import ROW_HEIGHT, draw, heights, legend, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


class PipelineExplorer(Live):
    """The controls `.stages`, `.latency` and `.roles`; `.pipeline` is as they stand, `frame` draws one."""

    def __init__(self, start: Pipeline) -> None:
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
        self.status = kit.HTML(layout={"width": "auto"})
        self.picture = kit.HTML(layout={"width": "auto"})
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
        said = f"{finding(timeline(self.pipeline))}. {KEYS}"
        self.picture.value = f'<div style="{FITS}">{self.frame(self.pipeline)}</div>'
        self.status.value = f'<div role="status" style="{FITS};line-height:1.45">{said}</div>'

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
        every = fig.subplots(
            len(founds), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights(founds)}
        )
        for axes, found in zip(every[:, 0], founds, strict=True):
            draw(axes, found, until)
            axes.set_title(_upper(finding(found)), fontsize=9.5, pad=3)
        every[-1, 0].set_xlabel("time, cycles (model)")
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
    fig.suptitle(textwrap.fill(said, 76), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)


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
