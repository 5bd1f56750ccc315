"""What memory does for one instruction of a warp: 32-byte sectors, or words from the 32 banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.simulators.gpu.counting import BANK_BYTES, BANKS, SECTOR_BYTES
from course_lib.theme import DEEP_PINK, GREY, GREY_TINT, INK, LINE, PAPER, QUIET, VIOLET
from course_lib.views.kernel_access import (
    Pass,
    bank_span,
    bytes_used,
    conflict,
    lanes_by_place,
    passes,
    sectors,
    verdict,
)
from course_lib.views.kernel_window import hatched, lane_label
from course_lib.views.paper import Sheet, plural

if TYPE_CHECKING:
    from course_lib.simulators.gpu.tally import WarpStep

_TOP, _NAME, _LEFT = 26.0, 46.0, 50.0  # room for the heading, for a sector's name, for the axis of banks
_NUMBERED = 12.0  # a cell of this size has room for the number of a lane
_TALLEST = 160.0  # of what stands between heading and legend


@dataclass(frozen=True)
class Scale:
    """How large things are drawn: beside the slider, or in the still twin."""

    width: float
    in_row: int  # sectors
    sector: float
    bank: float
    has_legend: bool = True


LARGE = Scale(664.0, 4, 116.0, 18.5)
SMALL = Scale(376.0, 2, 138.0, 10.0, has_legend=False)


def height(step: WarpStep) -> float:
    """Return how high the large drawing of a step is."""
    return _draw(Sheet(), step, LARGE)[0]


def memory(step: WarpStep, scale: Scale = LARGE, least: float = 0.0, widest: float = 960) -> str:
    """Return the drawing of what memory does for a step, at least so high."""
    on = Sheet()
    high, words = _draw(on, step, scale)
    return on.svg(scale.width, max(high, least), words, widest=widest)


def _draw(on: Sheet, step: WarpStep, scale: Scale) -> tuple[float, str]:
    """Draw a step; return how high that is, and it in words."""
    if step.kind == "barrier":
        said = "A barrier moves no data."
        on.write(0, 14, said, fill=QUIET)
        return 24.0, said
    return (_banks if step.space == "shared" else _sectors)(on, step, scale)


def _legend(on: Sheet, y: float, lines: tuple[str, ...]) -> float:
    """Write a legend; return where the picture ends."""
    for n, line in enumerate(lines):
        on.write(0, y + 15 * n, line, size=11.5, fill=QUIET)
    return y - 8 + 15 * len(lines)


# -- global memory -----------------------------------------------------------------------------------------


def _sectors(on: Sheet, step: WarpStep, scale: Scale) -> tuple[float, str]:
    found = sectors(step)
    used, moved = bytes_used(step), len(found) * SECTOR_BYTES
    said = f"{plural(len(found), 'sector')} of {SECTOR_BYTES} bytes: {used:,} of {moved:,} bytes used"
    on.write(0, 14, said, bold=True)
    rows = -(-len(found) // scale.in_row)
    pitch = max(15.0, min(26.0, _TALLEST / rows))
    first = min(found)
    for number, sector in enumerate(found):
        x = number % scale.in_row * (_NAME + scale.sector + 4) + _NAME
        y = _TOP + number // scale.in_row * pitch
        name = f"+{sector - first:,}"
        on.write(x - 5, y + pitch / 2 + 2, name, size=10.5, fill=QUIET, anchor="end")
        _sector(on, step, sector, x, y, scale.sector, min(18.0, pitch - 3))
    bottom = _TOP + rows * pitch + 16
    lines = (
        "Full: used, with the lane or the number of lanes. Hatched: moved for nothing.",
        f"+n: so many sectors after the first, which is number {first:,} of the array's memory.",
    )
    return _legend(on, bottom, lines if scale.has_legend else ()), f"{said}."


def _sector(on: Sheet, step: WarpStep, sector: int, x: float, y: float, wide: float, high: float) -> None:
    """Draw one sector, element by element."""
    lanes = lanes_by_place(step)
    each = max(1, SECTOR_BYTES // step.item_bytes)
    cell, pieces = wide / each, min(each, 8)
    hatched(on, [(x + n * wide / pieces, y) for n in range(pieces)], wide / pieces, high)
    for n, place in enumerate(range(sector * each, (sector + 1) * each)):
        if place not in lanes:
            continue
        on.box(x + n * cell, y, cell, high, fill=VIOLET, stroke=PAPER, stroke_width=0.7)
        if cell >= _NUMBERED:
            lane_label(on, x + (n + 0.5) * cell, y + high / 2, lanes[place], 8.5)
    on.box(x, y, wide, high, fill="none", stroke=INK, stroke_width=1.2)


# -- shared memory -----------------------------------------------------------------------------------------


def _banks(on: Sheet, step: WarpStep, scale: Scale) -> tuple[float, str]:
    turns, span = passes(step), bank_span(step)
    said = f"{plural(len(turns), 'wavefront')}: {verdict(step)}"
    pitch = min(20.0, _TALLEST / len(turns))
    base = _TOP + 4 + len(turns) * pitch
    on.write(0, 14, said, bold=True)
    for turn, served in enumerate(turns):
        y = base - (turn + 1) * pitch
        _pass(on, step, served, y, pitch, scale.bank)
        if pitch >= 11 or turn in (0, len(turns) - 1):
            on.write(_LEFT - 6, y + pitch / 2 + 4, turn + 1, size=10.5, fill=QUIET, anchor="end")
    counts = {bank: sum(bank in served.lanes for served in turns) for bank in range(0, BANKS, span)}
    _axis(on, counts, span * scale.bank, base, conflict(step) > 1)
    bottom = base + 50
    lines = (
        f"A box: a word of {span * BANK_BYTES} bytes; its bank serves one a wavefront (rows).",
        "Banks are counted from the start of the array.",
    )
    most = max(counts.values())
    busy = [bank for bank, count in counts.items() if count == most]
    who = f"bank {busy[0]} serves" if len(busy) == 1 else f"{len(busy)} banks serve"
    high = _legend(on, bottom, lines if scale.has_legend else ())
    return high, f"{said}; {who} {plural(most, 'word')}."


def _pass(on: Sheet, step: WarpStep, served: Pass, y: float, high: float, bank: float) -> None:
    """Draw the words of one wavefront over their banks; those that a conflict made wait in pink."""
    wide = bank_span(step) * bank
    for first, lanes in served.lanes.items():
        x = _LEFT + first * bank
        fill = DEEP_PINK if served.is_repeat else VIOLET
        on.box(x, y, wide, high, fill=fill, stroke=PAPER, stroke_width=1 if high > 6 else 0.6)
        if min(wide, high) >= _NUMBERED:
            lane_label(on, x + wide / 2, y + high / 2, lanes, 8.5)


def _axis(on: Sheet, counts: dict[int, int], wide: float, base: float, is_conflict: bool) -> None:
    """Draw the banks, and under each how many words it serves."""
    for number, (bank, count) in enumerate(counts.items()):
        x, middle = _LEFT + number * wide, _LEFT + (number + 0.5) * wide
        on.box(x, base, wide, 15, fill=GREY_TINT, stroke=LINE)
        if wide >= _NUMBERED or bank % 4 == 0:
            on.write(middle, base + 11.5, bank, size=9, fill=QUIET, anchor="middle")
        if wide >= _NUMBERED or count:
            strong = is_conflict and count > 1
            ink = INK if count else GREY
            on.write(middle, base + 28, count, size=9, fill=ink, anchor="middle", bold=strong)
    for y, name in ((base + 11.5, "bank"), (base + 28, "words")):
        on.write(_LEFT - 6, y, name, size=10.5, fill=QUIET, anchor="end")
    edge = _LEFT + len(counts) * wide
    on.line(_LEFT, base, edge, base, stroke=INK, width=1.2)
