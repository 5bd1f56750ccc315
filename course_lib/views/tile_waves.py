"""D's tiles by wave as a map, and the saw that whole waves cut into the rate as D grows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from course_lib import theme
from course_lib.fp8.choose import H200, Estimate, Hopper, estimate, schedule_of
from course_lib.fp8.schedule import Schedule
from course_lib.fp8.tiles import Tile
from course_lib.measure.table import digits
from course_lib.theme import GREY, INK, PAPER, SERIES, Picture
from course_lib.views.paper import PINK_TINT, VIOLET_TINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Fills of the waves, in turn; a number and an outline tell them apart as well. The last has the full pink.
TINTS = (VIOLET_TINT, "#ffffff", PINK_TINT, "#e7e3ec")
MOST_OUTLINED = 20_000  # tiles: more are too small for outlines
MOST_GRIDDED = 2000  # so many show each tile's edges
MOST_NUMBERED = 40  # waves
POINTS = 240  # of the saw
LEAST_M = 2048  # the saw's axis ends there, or at M if that is larger


def tile_name(tile: Tile) -> str:
    """Return what a tile is called: 128 x 112 (pairs)."""
    return f"{tile.BM} x {tile.BN}" + (" (pairs)" if tile.cluster == 2 else "")


def percent(share: float) -> str:
    """Return a share as a percentage of two figures."""
    return f"{digits(100 * share, 2)} %"


def waves(schedule: Schedule) -> np.ndarray:
    """Return the turn in which each tile is computed, int64 (rows, columns)."""
    row, column = np.indices((schedule.rows, schedule.columns))
    first = row // schedule.band * schedule.band
    height = np.minimum(schedule.rows - first, schedule.band)
    unit = first * schedule.units_across + column // schedule.team * height + row - first
    return unit // schedule.teams


def wave_map(found: Estimate, shape: tuple[int, int, int], gpu: Hopper = H200, title: str = "") -> Picture:
    """Draw D with its tiles, each in the tint of its wave, the last wave in full colour."""
    schedule = schedule_of(found.tile, *shape[:2], gpu)
    wave = waves(schedule)
    said = title or f"{schedule.turns} waves"
    last, slots = int((wave == schedule.turns - 1).sum()), schedule.teams * schedule.team
    with theme.figure(8.6, 4.2) as fig:
        axes, strip = fig.subplots(2, 1, gridspec_kw={"height_ratios": [10, 1]})
        _last_wave(strip, last, slots)
        _fill(axes, wave, schedule.turns)
        if wave.size <= MOST_OUTLINED:
            _outline(axes, wave)
        if schedule.turns <= MOST_NUMBERED:
            _number(axes, wave, schedule)
        axes.set_xlabel(f"tiles of D across, {found.tile.BN} columns each")
        axes.set_ylabel(f"tiles down, {found.tile.BM} rows each")
        axes.grid(visible=False)
        axes.locator_params(integer=True)
        fig.suptitle(textwrap.fill(said, 76), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        return Picture.of(
            fig,
            f"Map of the {schedule.rows:,} x {schedule.columns:,} tiles of D with the number of the wave in "
            f"which each is computed. {said}. The last wave has {last} tiles for {slots} blocks.",
        )


def _fill(axes: Axes, wave: np.ndarray, turns: int) -> None:
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(tint) for tint in TINTS])[wave % len(TINTS)]
    colours[wave == turns - 1] = to_rgb(theme.PINK)
    rows, columns = wave.shape
    axes.imshow(colours, aspect="auto", interpolation="nearest", extent=(0, columns, rows, 0))
    if wave.size <= MOST_GRIDDED:
        axes.hlines(range(1, rows), 0, columns, colors=TINTS[-1], linewidth=0.5)
        axes.vlines(range(1, columns), 0, rows, colors=TINTS[-1], linewidth=0.5)


def _last_wave(axes: Axes, busy: int, slots: int) -> None:
    """Draw the blocks of the last wave as a strip: those with a tile, and hatched those without."""
    axes.broken_barh([(0, busy)], (0, 1), facecolors=theme.PINK)
    axes.broken_barh([(busy, slots - busy)], (0, 1), facecolors=PAPER, hatch="////", edgecolor=GREY)
    axes.set(xlim=(0, slots), ylim=(0, 1), yticks=[])
    idle = f"; {slots - busy} idle (hatched)" if busy < slots else ""
    axes.set_xlabel(f"blocks in the last wave: {busy} with a tile{idle}")
    axes.grid(visible=False)


def _outline(axes: Axes, wave: np.ndarray) -> None:
    """Draw a line wherever neighbouring tiles belong to different waves."""
    from matplotlib.collections import LineCollection

    across = [((c + 1, r), (c + 1, r + 1)) for r, c in zip(*np.nonzero(np.diff(wave, axis=1)), strict=True)]
    down = [((c, r + 1), (c + 1, r + 1)) for r, c in zip(*np.nonzero(np.diff(wave, axis=0)), strict=True)]
    axes.add_collection(LineCollection(across + down, colors=GREY, linewidths=1.2))


def _number(axes: Axes, wave: np.ndarray, schedule: Schedule) -> None:
    """Write every wave's number on the tile in its middle, in the band of rows where it has most tiles."""
    for turn in range(schedule.turns):
        rows, columns = np.nonzero(wave == turn)
        band = rows // schedule.band
        here = band == np.bincount(band).argmax()
        rows, columns = rows[here], columns[here]
        apart = np.abs(rows - rows.mean()) / len(wave) + np.abs(columns - columns.mean()) / len(wave[0])
        middle = np.argmin(apart)
        axes.text(
            columns[middle] + 0.5,
            rows[middle] + 0.5,
            turn + 1,
            ha="center",
            va="center",
            fontsize=9.5,
            fontweight="bold",
            color=INK,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.85},
        )


def tile_sawtooth(shape: tuple[int, int, int], tiles: Sequence[Tile], gpu: Hopper = H200) -> Picture:
    """Draw the model's share of the peak against the rows of D, a line for each tile, M itself marked.

    Raises ValueError for no tile and for more than there are line styles.
    """
    M, N, K = shape
    if not 1 <= len(tiles) <= len(SERIES):
        raise ValueError(f"There are {len(tiles)} tiles, but a figure shows 1 to {len(SERIES)}.")
    step = max(max(M, LEAST_M) // POINTS // 16 * 16, 16)
    rows = np.arange(step, max(M, LEAST_M) + step, step)
    curves = {tile: [estimate(tile, int(m), N, K, gpu).efficiency for m in rows] for tile in tiles}
    said = _steepest(tiles[0], rows, curves[tiles[0]])
    with theme.figure(8.6, 3.7) as fig:
        axes = fig.subplots()
        for (tile, curve), (colour, marker, line) in zip(curves.items(), SERIES, strict=False):
            style = {"color": colour, "marker": marker, "linestyle": line, "markersize": 5, "linewidth": 1.6}
            axes.plot(rows, 100 * np.array(curve), markevery=12, label=tile_name(tile), **style)
        axes.axvline(M, color=INK, linestyle=":", linewidth=1.2)
        axes.text(M, 3, f" M = {M:,} ", ha="right" if rows[-1] / 2 < M else "left", fontsize=9)
        axes.set(xlabel=f"M, rows of D (N = {N:,}, K = {K:,})", ylabel="model, % of the peak")
        axes.set_ylim(0, 105)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=9, borderaxespad=0.1)
        fig.suptitle(textwrap.fill(said, 76), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
        each = "; ".join(
            f"{tile_name(tile)} {percent(estimate(tile, M, N, K, gpu).efficiency)}" for tile in curves
        )
        return Picture.of(
            fig,
            f"Share of the peak against M by the model, N = {N:,}, K = {K:,}. {said}. At M = {M:,}: {each}.",
        )


def _steepest(tile: Tile, rows: np.ndarray, curve: Sequence[float]) -> str:
    """Say where the curve falls most from one number of rows to the next."""
    falls = [(before - after, place) for place, (before, after) in enumerate(pairwise(curve))]
    fall, place = max(falls)
    if fall < 0.005:
        return f"Model: no new wave costs {tile_name(tile)} anything here"
    before, after = map(percent, curve[place : place + 2])
    return (
        f"Model: a new wave, and {tile_name(tile)} falls from {before} to {after} "
        f"(M = {rows[place]:,} to {rows[place + 1]:,})"
    )
