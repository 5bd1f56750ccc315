"""A tile in shared memory, plain beside swizzled: where its pieces lie, and which banks an access meets.

Addresses and conflicts are those of `fp8.swizzle`; this only draws them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from course_lib.arguments import one_of
from course_lib.fp8.swizzle import BANK, BANKS, LINE, PIECE, WIDTHS, conflicts, swizzled
from course_lib.theme import DEEP_PINK, GREY_TINT, INK, PAPER, PINK, QUIET, VIOLET, mixed
from course_lib.views.live import Explorer, buttons, widgets
from course_lib.views.paper import Html, Sheet, card, note, plural, side_by_side

LINES, LANES = 8, 8  # lines of 128 bytes that are drawn; lanes that the hardware serves together
PIECES = LINE // PIECE
LEFT, CELL, HIGH, TOP = 40.0, 38.0, 25.0, 62.0
BAR = 7.0  # height of a request
KEYS = "Keyboard: Tab goes from control to control; Space chooses, arrow keys move the slider."
EXPLAINED = (
    "A row of the map is a line of 128 bytes: the 32 banks of shared memory side by side. r3 c1 is piece 1 "
    "of row 3 of the tile: 16 bytes, sixteen numbers of e4m3. Marked: what eight lanes fetch, a piece each; "
    "the hardware serves that many together. A bank gives one word of 4 bytes in a pass. Swizzling changes "
    "the order within a line only."
)


@dataclass(frozen=True)
class Access:
    """Eight lanes that fetch a piece each: of column `index` of the first rows, or from row `index` on."""

    width: int
    kind: str = "column"
    index: int = 0

    @property
    def in_row(self) -> int:
        """Pieces of 16 bytes in a row of the tile."""
        return self.width // PIECE

    @property
    def rows(self) -> int:
        """Rows of the tile that fit into the map."""
        return LINES * LINE // self.width

    @property
    def last(self) -> int:
        """The largest index: eight lanes along rows must still find eight pieces."""
        return self.in_row - 1 if self.kind == "column" else self.rows - LANES // self.in_row

    @property
    def lanes(self) -> list[tuple[int, int]]:
        """Row and piece that each of the eight lanes fetches."""
        if self.kind == "column":
            return [(lane, self.index) for lane in range(LANES)]
        return [(self.index + lane // self.in_row, lane % self.in_row) for lane in range(LANES)]

    def address(self, row: int, piece: int, is_swizzled: bool) -> int:
        """Return the byte where a piece of the tile lies."""
        offset = row * self.width + piece * PIECE
        return swizzled(offset, self.width) if is_swizzled else offset

    def addresses(self, is_swizzled: bool) -> list[int]:
        """Return where the lanes' pieces lie."""
        return [self.address(*place, is_swizzled) for place in self.lanes]

    def passes(self, is_swizzled: bool) -> int:
        """Return how many words the busiest bank has to give: 1 without a conflict."""
        return conflicts(self.addresses(is_swizzled))

    def requests(self, is_swizzled: bool) -> list[int]:
        """Return how many words each of the 32 banks has to give."""
        words = [at // BANK + n for at in self.addresses(is_swizzled) for n in range(PIECE // BANK)]
        found = Counter(word % BANKS for word in words)
        return [found[bank] for bank in range(BANKS)]


def swizzle_map(width: int = 128) -> SwizzleMap:
    """Return a widget with a tile of rows of `width` bytes in shared memory, plain beside swizzled.

    Eight lanes go down a column or along a row of the tile. Raises ValueError for a width other than 32, 64
    and 128.
    """
    return SwizzleMap(Access(one_of("width", width, WIDTHS)))


class SwizzleMap(Explorer):
    """The map: `.width`, `.kind` and `.index` are its controls, `.access` is what they say."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        kit = widgets()
        self.access = self._first = access
        self.width = buttons([(f"{width} bytes", width) for width in WIDTHS], value=access.width)
        kinds = [("down a column", "column"), ("along a row", "row")]
        self.kind = buttons(kinds, value=access.kind)
        self.index = kit.IntSlider(
            access.index, 0, access.last, description=access.kind, tooltip=KEYS, layout={"width": "320px"}
        )
        self._say(KEYS)
        for control in (self.width, self.kind, self.index):
            control.observe(self._moved, names="value")
        self._draw(frame(access))
        row = [kit.Label("A row of the tile has"), self.width, kit.Label("Eight lanes go"), self.kind]
        top = kit.HBox(row, layout={"flex_flow": "row wrap", "align_items": "center", "grid_gap": "0 8px"})
        self.widget = kit.VBox([top, self.index, self.status, self.picture])

    def static(self) -> Html:
        """Return the maps that the widget began with."""
        return Html(frame(self._first), f"{finding(self._first)}. {in_words(self._first)}")

    def _moved(self, _: Any) -> None:
        if self._is_moving:
            return
        start = Access(self.width.value, self.kind.value)
        self.access = Access(start.width, start.kind, min(self.index.value, start.last))
        with self._moving():  # the slider follows
            self.index.value, self.index.max = self.access.index, self.access.last
            self.index.description = self.access.kind
        self._draw(frame(self.access))


def frame(access: Access) -> str:
    """Return both maps side by side under their finding."""
    said = finding(access)
    panels = side_by_side([_map(access, is_swizzled) for is_swizzled in (False, True)], gap=20)
    return card(panels + note(EXPLAINED), f"{said}. {in_words(access)}", title=said)


def finding(access: Access) -> str:
    """Say what the access costs in both orders."""
    plain, turned = access.passes(False), access.passes(True)
    if plain == turned:
        return f"Along rows of {access.width} bytes: {_cost(plain)}, plain and swizzled"
    return f"Down a column of {access.width}-byte rows: {_cost(plain)}; swizzled, {_cost(turned)}"


def in_words(access: Access) -> str:
    """Return for both orders the banks that the lanes meet, as sentences."""
    said = []
    for name, is_swizzled in (("Plain", False), ("Swizzled", True)):
        requests = access.requests(is_swizzled)
        met = sum(count > 0 for count in requests)
        places = ", ".join(str(at // PIECE % PIECES) for at in access.addresses(is_swizzled))
        said.append(
            f"{name}: lanes 0 to 7 find their pieces in places {places} of a line; {met} of 32 banks give "
            f"{plural(max(requests), 'word')} each: {plural(access.passes(is_swizzled), 'pass')}."
        )
    return " ".join(said)


def _cost(passes: int) -> str:
    if passes == 1:
        return "no bank conflict"
    return f"{'an' if passes == 8 else 'a'} {passes}-way bank conflict"


def colour(piece: int, of: int) -> str:
    """Return the pale ground of a column: from violet to pink, neighbours a step lighter and darker."""
    share = piece / max(of - 1, 1)
    pale = 0.62 if piece % 2 else 0.8
    return mixed(VIOLET, PINK, share, pale)


def _map(access: Access, is_swizzled: bool) -> str:
    on = Sheet()
    places = {
        access.address(row, piece, is_swizzled): (row, piece)
        for row in range(access.rows)
        for piece in range(access.in_row)
    }
    head = f"swizzled over {access.width} bytes" if is_swizzled else "plain, as the rows follow each other"
    on.write(LEFT, 18, head, size=14, bold=True)
    on.write(LEFT - 4, TOP - 22, "bank", size=11, fill=QUIET, anchor="end")
    on.write(LEFT - 4, TOP - 7, "byte", size=11, fill=QUIET, anchor="end")
    for place in range(PIECES):
        first = place * PIECE // BANK
        middle = LEFT + (place + 0.5) * CELL
        on.write(middle, TOP - 8, f"{first}–{first + 3}", size=11, fill=QUIET, anchor="middle")
    marked = set(access.addresses(is_swizzled))
    for address, (row, piece) in sorted(places.items(), key=lambda item: item[0] in marked):
        line, place = divmod(address // PIECE, PIECES)
        x, y = LEFT + place * CELL, TOP + line * HIGH
        if place == 0:
            on.write(LEFT - 4, y + 17, line * LINE, size=11, fill=QUIET, anchor="end")
        is_marked = address in marked
        ground = DEEP_PINK if is_marked else colour(piece, access.in_row)
        edge = {"stroke": INK, "stroke_width": 2.5} if is_marked else {"stroke": PAPER, "stroke_width": 1}
        edge |= {"fill": ground, "ink": PAPER if is_marked else INK, "bold": is_marked}
        on.cell((x, y, CELL, HIGH), 17, f"r{row} c{piece}", size=10.5, **edge)
    _bars(on, access, is_swizzled)
    label = f"{head}: {in_words(access).split('Swizzled: ')[is_swizzled]}"
    return on.svg(LEFT + PIECES * CELL + 6, TOP + LINES * HIGH + 8 * BAR + 52, label)


def _bars(on: Sheet, access: Access, is_swizzled: bool) -> None:
    """Return a bar for each bank: how many words it has to give."""
    floor = TOP + LINES * HIGH + 8 * BAR + 22
    wide = CELL * PIECES / BANKS
    on.line(LEFT, floor, LEFT + BANKS * wide, floor, stroke=INK, width=1)
    requests = access.requests(is_swizzled)
    for bank, count in enumerate(requests):
        x = LEFT + bank * wide
        on.box(x + 0.5, floor - 8 * BAR, wide - 1, 8 * BAR, fill=GREY_TINT, stroke=None)
        for n in range(count):
            fill = DEEP_PINK if count > 1 else VIOLET
            on.box(x + 1.5, floor - (n + 1) * BAR + 1, wide - 3, BAR - 1.5, fill=fill, stroke=None)
    on.write(LEFT - 4, floor - 8 * BAR + 9, "8", size=11, fill=QUIET, anchor="end")
    on.write(LEFT - 4, floor, "0", size=11, fill=QUIET, anchor="end")
    passes = access.passes(is_swizzled)
    words = f"words for each bank: {plural(passes, 'pass')}"
    on.write(LEFT, floor + 19, words, size=13, bold=True, fill=DEEP_PINK if passes > 1 else INK)
