"""Tiles against waves: a shape, a tile, and what the model of `fp8.choose` says: a map of waves, and the saw.

Every figure here is the model's, none is measured, and every picture says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from course_lib import theme
from course_lib.arguments import whole
from course_lib.fp8.choose import H200, Estimate, estimate, fetched_bytes, ranking, schedule_of
from course_lib.fp8.schedule import Schedule
from course_lib.fp8.tiles import BLOCK, TILES, Tile
from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import digits
from course_lib.theme import GREY, INK, PAPER, PINK_TINT, VIOLET_TINT, Picture
from course_lib.views.figures import centred, headline, series, stacked
from course_lib.views.live import Explorer, buttons, widgets
from course_lib.views.paper import Html, card, escape, note, plural, side_by_side, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST = {"M": 65_536, "N": 65_536, "K": 131_072}
FIRST = 5  # of the ranking that are shown
KEYS = "Keyboard: Tab goes from field to field, arrow keys change a number or a tile, Enter takes a number."
EXPLAINED = (
    "A model, nothing is measured: 4096 products a cycle and multiprocessor, at most 64 bytes a cycle from "
    "L2 and 128 into or out of shared memory, the clock as of large products; the peak is what the tensor "
    "cores could do at that clock. A wave: every block computes a tile; the last wave takes as long as the "
    "others, however few tiles it has."
)


def tile_choice(M: int, N: int, K: int) -> TileExplorer:
    """Return fields for the shape of D (M, N) and K, and for the tile, which begins with the best one.

    Raises ValueError for sizes below 1 or too large to draw.
    """
    return TileExplorer(checked(M, N, K), ranking(M, N, K)[0].tile)


def checked(M: int, N: int, K: int) -> tuple[int, int, int]:
    """Return the sizes; raises ValueError, in a sentence, for those that cannot be drawn."""
    for (name, most), size in zip(LARGEST.items(), (M, N, K), strict=True):
        whole(name, size, most=most)
    return M, N, K


class TileExplorer(Explorer):
    """The fields `.sizes` (M, N, K), `.rows`, `.columns` and `.cluster`; `.tile` is as they stand."""

    def __init__(self, shape: tuple[int, int, int], tile: Tile) -> None:
        super().__init__()
        kit = widgets()
        self._given = (shape, tile)
        self.sizes = {
            name: kit.IntText(value=size, description=name, layout={"width": "170px"})
            for name, size in zip("MNK", shape, strict=True)
        }
        self.rows = buttons(sorted({one.BM for one in TILES}), value=tile.BM, description="rows")
        look = {"tooltip": KEYS, "layout": {"width": "min(420px, 95%)"}, "continuous_update": False}
        widths = _widths(tile.BM)
        self.columns = kit.SelectionSlider(options=widths, value=tile.BN, description="columns", **look)
        pairs = [("alone", 1), ("in pairs that share A's tile", 2)]
        self.cluster = buttons(pairs, value=tile.cluster, description="blocks")
        self.rows.observe(self._other_rows, names="value")
        for control in (*self.sizes.values(), self.columns, self.cluster):
            control.observe(lambda _: self._show(), names="value")
        self._show()
        numbers = kit.HBox(list(self.sizes.values()), layout={"flex_flow": "row wrap"})
        both = kit.HBox([self.rows, self.cluster], layout={"flex_flow": "row wrap"})
        self.widget = kit.VBox([numbers, both, self.columns, self.status, self.picture])

    def _other_rows(self, change: Any) -> None:
        """Offer the widths that go with so many rows, and keep the nearest to the present one."""
        widths, before = _widths(change["new"]), self.columns.value
        with self._moving():  # the slider jumps to its first width on the way
            self.columns.options = widths
            self.columns.value = min(widths, key=lambda width: abs(width - before))
        self._show()

    @property
    def tile(self) -> Tile:
        """The tile that is chosen."""
        return Tile(self.rows.value, self.columns.value, self.cluster.value)

    def _show(self) -> None:
        if self._is_moving:
            return
        try:
            shape = checked(*(field.value for field in self.sizes.values()))
        except ValueError as problem:
            self._say(f"{problem} The picture still shows the sizes before.")
        else:
            self._draw(self.frame(shape, self.tile))
            self._say(f"{finding(estimate(self.tile, *shape))}. {KEYS}")

    def frame(self, shape: tuple[int, int, int], tile: Tile) -> str:
        """Return the map of waves, what the model says of the tile, and the five best."""
        picture, tables = self._parts(shape, tile)
        return card(picture._repr_html_() + tables + note(EXPLAINED), f"{picture.alt} {EXPLAINED}")

    def _parts(self, shape: tuple[int, int, int], tile: Tile) -> tuple[Any, str]:
        found = estimate(tile, *shape)
        return wave_map(found, shape), side_by_side([_about(found, shape), _best(shape, tile)])

    def static(self) -> Html:
        """Return the same for what was given, and below it the saw of waves for three tiles."""
        shape, tile = self._given
        picture, tables = self._parts(shape, tile)
        # the tile, 128 x 128 in pairs, and one that is small: three different ones
        others = (tile, Tile(128, 128, 2), Tile(64, 64), ranking(*shape)[0].tile, Tile(128, 192, 2))
        saw = tile_sawtooth(shape, tuple(dict.fromkeys(others))[:3])
        best = "; ".join(
            f"{tile_name(one.tile)} {digits(one.flops / 1e12)} TFLOP/s" for one in ranking(*shape)[:FIRST]
        )
        words = f"{picture.alt} The best by the model: {best}. {saw.alt} {EXPLAINED}"
        body = f"<div>{picture._repr_html_()}</div>{tables}<div>{saw._repr_html_()}</div>{note(EXPLAINED)}"
        return Html(card(body, words), words)


def finding(found: Estimate) -> str:
    """Say in one sentence what the model says of a tile."""
    return (
        f"Model: {tile_name(found.tile)}: {plural(found.turns, 'wave')}, {percent(found.efficiency)} of the "
        f"peak, limited by {'the ' * (found.limit == 'tensor core')}{found.limit}"
    )


def _widths(rows: int) -> list[int]:
    return sorted({one.BN for one in TILES if rows == one.BM})


def _about(found: Estimate, shape: tuple[int, int, int]) -> str:
    tile, (M, N, K) = found.tile, shape
    schedule = schedule_of(tile, M, N)
    computed = schedule.rows * schedule.columns
    last = in_last_wave(schedule)
    read = computed * -(-K // BLOCK) * fetched_bytes(tile)
    rows = [
        ("tiles of D", f"{schedule.rows:,} x {schedule.columns:,} = {computed:,}"),
        ("waves", f"{schedule.turns:,} of {H200.sms // tile.cluster * tile.cluster} blocks"),
        ("last wave", f"{last} tiles, {percent(1 - last / (schedule.clusters * schedule.cluster))} idle"),
        ("idle, all waves", percent(found.idle_share)),
        ("outside of D", f"{percent(1 - M * N / (computed * tile.BM * tile.BN))} of the tiles"),
        ("shared memory", f"{in_bytes(tile.shared_bytes)}, {plural(tile.stages, 'stage')}"),
        ("accumulators", f"{tile.accumulators} registers a thread"),
        ("read from L2", in_bytes(read)),
        ("limit", found.limit),
        ("time (model)", f"{digits(found.seconds * 1e6)} µs"),
        ("rate (model)", f"{digits(found.flops / 1e12)} TFLOP/s"),
    ]
    head = [tile_name(tile), f"model of the {escape(H200.name)}"]
    return table(head, [list(row) for row in rows], left=(0, 1), marked=(len(rows) - 1,))


def _best(shape: tuple[int, int, int], tile: Tile) -> str:
    places = enumerate(ranking(*shape), start=1)
    shown = [(place, one) for place, one in places if place <= FIRST or one.tile == tile]
    rows = [
        [
            str(place),
            tile_name(one.tile),
            f"{one.turns:,}",
            percent(one.idle_share),
            one.limit,
            digits(one.flops / 1e12),
        ]
        for place, one in shown
    ]
    marked = [number for number, (_, one) in enumerate(shown) if one.tile == tile]
    head = ["place", "tile", "waves", "idle", "limit", "TFLOP/s (model)"]
    return table(head, rows, left=(1, 4), marked=marked)


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
    unit = first * schedule.units_across + column // schedule.cluster * height + row - first
    return unit // schedule.clusters


def in_last_wave(schedule: Schedule) -> int:
    """Return how many tiles the last wave has."""
    return int((waves(schedule) == schedule.turns - 1).sum())


def wave_map(found: Estimate, shape: tuple[int, int, int]) -> Picture:
    """Draw D with its tiles, each in the tint of its wave, the last wave in full colour."""
    schedule = schedule_of(found.tile, *shape[:2])
    wave = waves(schedule)
    said = finding(found)
    last, slots = in_last_wave(schedule), schedule.clusters * schedule.cluster
    with theme.figure(8.6, 4.2) as fig:
        axes, strip = stacked(fig, [10, 1], sharex=False)
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
        headline(fig, said, 76)
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
        ground = {"boxstyle": "round,pad=0.15", "alpha": 0.85}
        x, y = columns[middle] + 0.5, rows[middle] + 0.5
        centred(axes, x, y, turn + 1, ground, fontsize=9.5, fontweight="bold")


def tile_sawtooth(shape: tuple[int, int, int], tiles: Sequence[Tile]) -> Picture:
    """Draw the model's share of the peak against the rows of D, a line for each tile, M itself marked."""
    M, N, K = shape
    step = max(max(M, LEAST_M) // POINTS // 16 * 16, 16)
    rows = np.arange(step, max(M, LEAST_M) + step, step)
    curves = {tile: [estimate(tile, int(m), N, K).efficiency for m in rows] for tile in tiles}
    said = _steepest(tiles[0], rows, curves[tiles[0]])
    with theme.figure(8.6, 3.7) as fig:
        axes = fig.subplots()
        for number, (tile, curve) in enumerate(curves.items()):
            look = {**series(number), "markersize": 5, "linewidth": 1.6, "markevery": 12}
            axes.plot(rows, 100 * np.array(curve), label=tile_name(tile), **look)
        axes.axvline(M, color=INK, linestyle=":", linewidth=1.2)
        axes.text(M, 3, f" M = {M:,} ", ha="right" if rows[-1] / 2 < M else "left", fontsize=9)
        axes.set(xlabel=f"M, rows of D (N = {N:,}, K = {K:,})", ylabel="model, % of the peak")
        axes.set_ylim(0, 105)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=9, borderaxespad=0.1)
        headline(fig, said, 76)
        each = "; ".join(
            f"{tile_name(tile)} {percent(estimate(tile, M, N, K).efficiency)}" for tile in curves
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
