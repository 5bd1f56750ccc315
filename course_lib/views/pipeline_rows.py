"""A block's timeline as rows of bars: the copy engine, the warpgroups, the tensor core, the stores.

A warpgroup's colour is its colour on the tensor core, too; hatches tell promotion and the way out from
products. Copies that are on their way are thin lines, one below the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from course_lib.simulators.pipeline import COPIES, TENSOR_CORE, PipelineSpan, PipelineTimeline
from course_lib.theme import GREY, INK, PAPER, PINK, VIOLET
from course_lib.views.paper import PINK_TINT, VIOLET_TINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
