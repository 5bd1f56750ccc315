"""Tiles against waves: choose a shape and a tile and see what the model of `fp8.choose` says of them.

Every figure here is the model's, none is measured, and every picture says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.fp8.choose import H200, Estimate, Hopper, estimate, fetched_bytes, ranking, schedule_of
from course_lib.fp8.tiles import BLOCK, TILES, Tile
from course_lib.measure.sizes import in_bytes
from course_lib.measure.table import digits
from course_lib.views.live import FITS, Live, widgets
from course_lib.views.paper import Html, card, escape, note, plural, side_by_side, table
from course_lib.views.tile_waves import percent, tile_name, tile_sawtooth, wave_map, waves

LARGEST = {"M": 65_536, "N": 65_536, "K": 131_072}
FIRST = 5  # of the ranking that are shown
KEYS = "Keyboard: Tab goes from field to field, arrow keys change a number or a tile, Enter takes a number."
EXPLAINED = (
    "A model, nothing is measured: 4096 products a cycle and multiprocessor, at most 64 bytes a cycle from "
    "L2, the clock as of large products; the peak is what the tensor cores could do at that clock. A wave: "
    "every block computes a tile; the last wave takes as long as the others, however few tiles it has."
)


def tile_choice(M: int, N: int, K: int, *, tile: Tile | None = None, gpu: Hopper = H200) -> TileExplorer:
    """Return fields for the shape of D (M, N) and K, and for the tile (None: the best of the ranking).

    Raises ValueError for sizes below 1 or too large to draw, and for a tile that is not in `fp8.tiles.TILES`.
    """
    checked(M, N, K)
    if tile is not None and tile not in TILES:
        raise ValueError(f"{tile} is not among the tiles that are worth a try: take one of fp8.tiles.TILES.")
    return TileExplorer((M, N, K), tile or ranking(M, N, K, gpu)[0].tile, gpu)


def checked(M: int, N: int, K: int) -> tuple[int, int, int]:
    """Return the sizes; raises ValueError, in a sentence, for those that cannot be drawn."""
    for name, size in (("M", M), ("N", N), ("K", K)):
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST[name]:
            raise ValueError(
                f"{name} is {size!r}, but it must be a whole number from 1 to {LARGEST[name]:,}."
            )
    return M, N, K


class TileExplorer(Live):
    """The fields `.sizes` (M, N, K), `.rows`, `.columns` and `.cluster`; `.tile` is as they stand."""

    def __init__(self, shape: tuple[int, int, int], tile: Tile, gpu: Hopper) -> None:
        kit = widgets()
        self.gpu, self._given, self._is_moving = gpu, (shape, tile), False
        self.sizes = {
            name: kit.IntText(value=size, description=name, layout={"width": "170px"})
            for name, size in zip("MNK", shape, strict=True)
        }
        self.rows = self._buttons("rows", sorted({one.BM for one in TILES}), tile.BM)
        self.columns = kit.SelectionSlider(
            options=_widths(tile.BM),
            value=tile.BN,
            description="columns",
            tooltip=KEYS,
            layout={"width": "min(420px, 95%)"},
            continuous_update=False,
        )
        self.cluster = self._buttons(
            "blocks", [("alone", 1), ("in pairs that share A's tile", 2)], tile.cluster
        )
        self.status = kit.HTML(layout={"width": "auto"})
        self.picture = kit.HTML(layout={"width": "auto"})
        self.rows.observe(self._other_rows, names="value")
        for control in (*self.sizes.values(), self.columns, self.cluster):
            control.observe(lambda _: self._show(), names="value")
        self._show()
        numbers = kit.HBox(list(self.sizes.values()), layout={"flex_flow": "row wrap"})
        both = kit.HBox([self.rows, self.cluster], layout={"flex_flow": "row wrap"})
        self.widget = kit.VBox([numbers, both, self.columns, self.status, self.picture])

    def _buttons(self, name: str, options: Sequence[Any], value: int) -> Any:
        return widgets().ToggleButtons(
            options=options, value=value, description=name, style={"button_width": "auto"}
        )

    def _other_rows(self, change: Any) -> None:
        """Offer the widths that go with so many rows, and keep the nearest to the present one."""
        widths, before = _widths(change["new"]), self.columns.value
        self._is_moving = True  # the slider jumps to its first width on the way
        try:
            self.columns.options = widths
            self.columns.value = min(widths, key=lambda width: abs(width - before))
        finally:
            self._is_moving = False
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
            said = f"{problem} The picture still shows the sizes before."
        else:
            said = f"{finding(estimate(self.tile, *shape, self.gpu))}. {KEYS}"
            self.picture.value = f'<div style="{FITS}">{self.frame(shape, self.tile)}</div>'
        self.status.value = f'<div role="status" style="{FITS};line-height:1.45">{escape(said)}</div>'

    def frame(self, shape: tuple[int, int, int], tile: Tile) -> str:
        """Return the map of waves, what the model says of the tile, and the five best."""
        picture, tables = self._parts(shape, tile)
        return card(picture._repr_html_() + tables + note(EXPLAINED), f"{picture.alt} {EXPLAINED}")

    def _parts(self, shape: tuple[int, int, int], tile: Tile) -> tuple[Any, str]:
        found = estimate(tile, *shape, self.gpu)
        picture = wave_map(found, shape, self.gpu, finding(found))
        return picture, side_by_side([_about(found, shape, self.gpu), _best(shape, tile, self.gpu)])

    def static(self) -> Html:
        """Return the same for what was given, and below it the saw of waves for three tiles."""
        shape, tile = self._given
        picture, tables = self._parts(shape, tile)
        saw = tile_sawtooth(shape, _three(shape, tile, self.gpu), self.gpu)
        best = "; ".join(
            f"{tile_name(one.tile)} {digits(one.flops / 1e12)} TFLOP/s"
            for one in ranking(*shape, self.gpu)[:FIRST]
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


def _three(shape: tuple[int, int, int], tile: Tile, gpu: Hopper) -> tuple[Tile, ...]:
    """Return the tile, 128 x 128 in pairs, and one that is small: three different ones."""
    others = (tile, Tile(128, 128, 2), Tile(64, 64), ranking(*shape, gpu)[0].tile, Tile(128, 192, 2))
    return tuple(dict.fromkeys(others))[:3]


def _about(found: Estimate, shape: tuple[int, int, int], gpu: Hopper) -> str:
    tile, (M, N, K) = found.tile, shape
    schedule = schedule_of(tile, M, N, gpu)
    computed = schedule.rows * schedule.columns
    last = int((waves(schedule) == schedule.turns - 1).sum())
    read = computed * -(-K // BLOCK) * fetched_bytes(tile)
    rows = [
        ("tiles of D", f"{schedule.rows:,} x {schedule.columns:,} = {computed:,}"),
        ("waves", f"{schedule.turns:,} of {gpu.sms // tile.cluster * tile.cluster} blocks"),
        ("last wave", f"{last} tiles, {percent(1 - last / (schedule.teams * schedule.team))} idle"),
        ("idle, all waves", percent(found.idle_share)),
        ("outside of D", f"{percent(1 - M * N / (computed * tile.BM * tile.BN))} of the tiles"),
        ("shared memory", f"{in_bytes(tile.shared_bytes)}, {plural(tile.stages, 'stage')}"),
        ("accumulators", f"{tile.accumulators} registers a thread"),
        ("read from L2", in_bytes(read)),
        ("limit", found.limit),
        ("time (model)", f"{digits(found.seconds * 1e6)} µs"),
        ("rate (model)", f"{digits(found.flops / 1e12)} TFLOP/s"),
    ]
    head = [tile_name(tile), f"model of the {escape(gpu.name)}"]
    return table(head, [list(row) for row in rows], left=(0, 1), marked=(len(rows) - 1,))


def _best(shape: tuple[int, int, int], tile: Tile, gpu: Hopper) -> str:
    every = ranking(*shape, gpu)
    shown = every[:FIRST]
    place = next(number for number, one in enumerate(every, start=1) if one.tile == tile)
    if place > FIRST:
        shown = [*shown, every[place - 1]]
    rows = [
        [
            str(number if number <= FIRST else place),
            tile_name(one.tile),
            f"{one.turns:,}",
            percent(one.idle_share),
            one.limit,
            f"{digits(one.flops / 1e12)}",
        ]
        for number, one in enumerate(shown, start=1)
    ]
    marked = [number for number, one in enumerate(shown) if one.tile == tile]
    head = ["place", "tile", "waves", "idle", "limit", "TFLOP/s (model)"]
    return table(head, rows, left=(1, 4), marked=marked)
