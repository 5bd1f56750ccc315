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
from course_lib.views.paper import box, plural, svg, tag, write

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
    return _draw(step, LARGE)[0]


def memory(step: WarpStep, scale: Scale = LARGE, least: float = 0.0, widest: float = 960) -> str:
    """Return the drawing of what memory does for a step, at least so high."""
    high, parts, words = _draw(step, scale)
    return svg(scale.width, max(high, least), parts, words, widest=widest)


def _draw(step: WarpStep, scale: Scale) -> tuple[float, list[str], str]:
    if step.kind == "barrier":
        said = "A barrier moves no data."
        return 24.0, [write(0, 14, said, fill=QUIET)], said
    return _banks(step, scale) if step.space == "shared" else _sectors(step, scale)


def _legend(y: float, lines: tuple[str, ...]) -> tuple[float, list[str]]:
    """Return where the picture ends, and the lines of its legend."""
    return y - 8 + 15 * len(lines), [
        write(0, y + 15 * n, line, size=11.5, fill=QUIET) for n, line in enumerate(lines)
    ]


# -- global memory -----------------------------------------------------------------------------------------


def _sectors(step: WarpStep, scale: Scale) -> tuple[float, list[str], str]:
    found = sectors(step)
    used, moved = bytes_used(step), len(found) * SECTOR_BYTES
    said = f"{plural(len(found), 'sector')} of {SECTOR_BYTES} bytes: {used:,} of {moved:,} bytes used"
    parts = [write(0, 14, said, bold=True)]
    rows = -(-len(found) // scale.in_row)
    pitch = max(15.0, min(26.0, _TALLEST / rows))
    first = min(found)
    for number, sector in enumerate(found):
        x = number % scale.in_row * (_NAME + scale.sector + 4) + _NAME
        y = _TOP + number // scale.in_row * pitch
        name = f"+{sector - first:,}"
        parts.append(write(x - 5, y + pitch / 2 + 2, name, size=10.5, fill=QUIET, anchor="end"))
        parts += _sector(step, sector, x, y, scale.sector, min(18.0, pitch - 3))
    bottom = _TOP + rows * pitch + 16
    lines = (
        "Full: used, with the lane or the number of lanes. Hatched: moved for nothing.",
        f"+n: so many sectors after the first, which is number {first:,} of the array's memory.",
    )
    high, legend = _legend(bottom, lines if scale.has_legend else ())
    return high, [*parts, *legend], f"{said}."


def _sector(step: WarpStep, sector: int, x: float, y: float, wide: float, high: float) -> list[str]:
    """Draw one sector, element by element."""
    lanes = lanes_by_place(step)
    each = max(1, SECTOR_BYTES // step.item_bytes)
    cell, pieces = wide / each, min(each, 8)
    parts = hatched([(x + n * wide / pieces, y) for n in range(pieces)], wide / pieces, high)
    for n, place in enumerate(range(sector * each, (sector + 1) * each)):
        if place not in lanes:
            continue
        parts.append(box(x + n * cell, y, cell, high, fill=VIOLET, stroke=PAPER, stroke_width=0.7))
        if cell >= _NUMBERED:
            parts.append(lane_label(x + (n + 0.5) * cell, y + high / 2, lanes[place], 8.5))
    return [*parts, box(x, y, wide, high, fill="none", stroke=INK, stroke_width=1.2)]


# -- shared memory -----------------------------------------------------------------------------------------


def _banks(step: WarpStep, scale: Scale) -> tuple[float, list[str], str]:
    turns, span = passes(step), bank_span(step)
    said = f"{plural(len(turns), 'wavefront')}: {verdict(step)}"
    pitch = min(20.0, _TALLEST / len(turns))
    base = _TOP + 4 + len(turns) * pitch
    parts = [write(0, 14, said, bold=True)]
    for turn, served in enumerate(turns):
        y = base - (turn + 1) * pitch
        parts += _pass(step, served, y, pitch, scale.bank)
        if pitch >= 11 or turn in (0, len(turns) - 1):
            parts.append(write(_LEFT - 6, y + pitch / 2 + 4, turn + 1, size=10.5, fill=QUIET, anchor="end"))
    counts = {bank: sum(bank in served.lanes for served in turns) for bank in range(0, BANKS, span)}
    parts += _axis(counts, span * scale.bank, base, conflict(step) > 1)
    bottom = base + 50
    lines = (
        f"A box: a word of {span * BANK_BYTES} bytes; its bank serves one a wavefront (rows).",
        "Banks are counted from the start of the array.",
    )
    most = max(counts.values())
    busy = [bank for bank, count in counts.items() if count == most]
    who = f"bank {busy[0]} serves" if len(busy) == 1 else f"{len(busy)} banks serve"
    high, legend = _legend(bottom, lines if scale.has_legend else ())
    return high, [*parts, *legend], f"{said}; {who} {plural(most, 'word')}."


def _pass(step: WarpStep, served: Pass, y: float, high: float, bank: float) -> list[str]:
    """Draw the words of one wavefront over their banks; those that a conflict made wait in pink."""
    wide = bank_span(step) * bank
    parts = []
    for first, lanes in served.lanes.items():
        x = _LEFT + first * bank
        fill = DEEP_PINK if served.is_repeat else VIOLET
        parts.append(box(x, y, wide, high, fill=fill, stroke=PAPER, stroke_width=1 if high > 6 else 0.6))
        if min(wide, high) >= _NUMBERED:
            parts.append(lane_label(x + wide / 2, y + high / 2, lanes, 8.5))
    return parts


def _axis(counts: dict[int, int], wide: float, base: float, is_conflict: bool) -> list[str]:
    """Draw the banks, and under each how many words it serves."""
    parts = []
    for number, (bank, count) in enumerate(counts.items()):
        x, middle = _LEFT + number * wide, _LEFT + (number + 0.5) * wide
        parts.append(box(x, base, wide, 15, fill=GREY_TINT, stroke=LINE))
        if wide >= _NUMBERED or bank % 4 == 0:
            parts.append(write(middle, base + 11.5, bank, size=9, fill=QUIET, anchor="middle"))
        if wide >= _NUMBERED or count:
            strong = is_conflict and count > 1
            ink = INK if count else GREY
            parts.append(write(middle, base + 28, count, size=9, fill=ink, anchor="middle", bold=strong))
    for y, name in ((base + 11.5, "bank"), (base + 28, "words")):
        parts.append(write(_LEFT - 6, y, name, size=10.5, fill=QUIET, anchor="end"))
    edge = _LEFT + len(counts) * wide
    return [*parts, tag("line", x1=_LEFT, y1=base, x2=edge, y2=base, stroke=INK, stroke_width=1.2)]
