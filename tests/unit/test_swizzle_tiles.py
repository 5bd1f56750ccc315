"""The map of a swizzled tile: every piece in its place, the conflicts those of the library, both beside."""

import re
from itertools import product
from xml.etree import ElementTree

from course_lib import views
from course_lib.fp8.swizzle import WIDTHS, conflicts, swizzled
from course_lib.views.swizzle_tiles import (
    CELL,
    HIGH,
    LEFT,
    TOP,
    Access,
    finding,
    frame,
    in_words,
)

KINDS = list(product(WIDTHS, ("column", "row")))
EVERY = [Access(*kind, index) for kind in KINDS for index in range(Access(*kind).last + 1)]
SVG = "{http://www.w3.org/2000/svg}"


def maps(access):
    """Read both maps back: {(row, piece): address} and the marked pieces, plain first."""
    found = []
    for text in re.findall("<svg.*?</svg>", frame(access), re.S):
        places, marked = {}, set()
        for label in ElementTree.fromstring(text).iter(f"{SVG}text"):
            if name := re.fullmatch(r"r(\d+) c(\d+)", label.text):
                piece = tuple(map(int, name.groups()))
                line = (float(label.get("y")) - 17 - TOP) / HIGH
                places[piece] = int(line * 128 + (float(label.get("x")) - CELL / 2 - LEFT) / CELL * 16 + 0.5)
                marked |= {piece} if label.get("font-weight") == "700" else set()
        found.append((places, marked))
    return found


def test_every_piece_lies_where_the_library_puts_it():
    for width in WIDTHS:
        (plain, _), (turned, _) = maps(Access(width))
        pieces = [(r, c) for r in range(1024 // width) for c in range(width // 16)]
        assert plain == {(r, c): r * width + 16 * c for r, c in pieces}, width
        assert turned == {piece: swizzled(address, width) for piece, address in plain.items()}, width


def test_the_lanes_are_marked_and_the_passes_are_the_conflicts():
    without_swizzle = {128: 8, 64: 4, 32: 2}
    for access in EVERY:
        lanes = set(access.lanes)
        assert len(lanes) == 8 and all(marked == lanes for _, marked in maps(access)), access
        for is_swizzled in (False, True):
            addresses = [access.address(row, piece, is_swizzled) for row, piece in lanes]
            assert access.passes(is_swizzled) == conflicts(addresses), access
        plain = without_swizzle[access.width] if access.kind == "column" else 1
        assert access.passes(False) == plain and access.passes(True) == 1, access


def test_titles_and_words():
    assert finding(Access(128)) == (
        "Down a column of 128-byte rows: an 8-way bank conflict; swizzled, no bank conflict"
    )
    assert finding(Access(64, "row", 3)) == "Along rows of 64 bytes: no bank conflict, plain and swizzled"
    words = in_words(Access(128, "column", 3))
    assert "in places 3, 3, 3, 3, 3, 3, 3, 3 of a line; 4 of 32 banks give 8 words each: 8 passes." in words
    assert "in places 3, 2, 1, 0, 7, 6, 5, 4 of a line; 32 of 32 banks give 1 word each: 1 pass." in words


def test_the_controls_follow_each_other():
    view = views.swizzle_map(64)
    assert view.static().text.startswith("Down a column of 64-byte rows: a 4-way")
    view.index.value = 2
    view.width.value = 32
    assert view.access == Access(32, "column", 1) and (view.index.value, view.index.max) == (1, 1)
    assert frame(view.access) in view.picture.value
    view.kind.value = "row"
    view.index.value = 28
    assert view.access == Access(32, "row", 28)
    view.width.value = 128
    assert view.access == Access(128, "row", 7)
