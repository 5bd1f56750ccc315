"""Who works when in the rungs of circle 10: the same product, from one stage to roles and blocks that stay.

All numbers are the model's (`simulators.pipeline`, `fp8.pipelines`): no kernel was timed for them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from course_lib import theme
from course_lib.fp8.pipelines import ROLES_OF, pipeline_of
from course_lib.fp8.tiles import Tile
from course_lib.simulators.pipeline import COPY_LATENCY, TENSOR_CORE, PipelineTimeline, timeline
from course_lib.theme import INK, Picture
from course_lib.views.pipeline_rows import ROW_HEIGHT, draw, heights, legend, percent

SHOWN = ("v1_wgmma", "v2_tma_ring", "v3_warp_specialised", "v4_two_level", "v5_persistent")
WORDS = {
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
    founds, said = list(found.values()), finding(found)
    with theme.figure(8.8, 1.15 + sum(0.16 + ROW_HEIGHT * rows for rows in heights(founds))) as fig:
        every = fig.subplots(
            len(found), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights(founds)}
        )
        for axes, (name, one) in zip(every[:, 0], found.items(), strict=True):
            draw(axes, one, until)
            axes.set_title(_subtitle(name, one), fontsize=9.5, pad=3)
            if one.cycles > until:
                axes.text(1.0, 1.02, "goes on ▶", transform=axes.transAxes, ha="right", fontsize=8.5)
        every[-1, 0].set_xlabel("time, cycles (model)")
        legend(fig, founds)
        fig.suptitle(textwrap.fill(said, 80), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        return Picture.of(fig, _alt(said, found, K))


def finding(found: dict[str, PipelineTimeline]) -> str:
    """Say how much of the time the tensor core works in the first and in the last rung."""
    (first, one), *_, (last, other) = [*found.items()] * 2
    said = f"Model: the tensor core works {percent(one.share(TENSOR_CORE))} of the time in {first}"
    return said + (f", {percent(other.share(TENSOR_CORE))} in {last}" if last != first else "")


def _subtitle(name: str, one: PipelineTimeline) -> str:
    share = percent(one.share(TENSOR_CORE))
    return f"{name}: {WORDS[name]} – {one.cycles:,} cycles, tensor core {share}"


def _alt(said: str, found: dict[str, PipelineTimeline], K: int) -> str:
    each = "; ".join(
        f"{name} ({WORDS[name]}) is done after {one.cycles:,} cycles, tensor core "
        f"{percent(one.share(TENSOR_CORE))}"
        for name, one in found.items()
    )
    return f"Timelines of a block, a row for each worker, K = {K}. {said}. {each}. A model, nothing measured."
