"""What one memory instruction of a warp costs, taken apart: sectors, banks, and the finding in words.

Everything here is arithmetic on a recorded step (`simulators.gpu.tally.WarpStep`); nothing is drawn. The
rules are those of `simulators.gpu.counting`: 32-byte sectors in global memory; in shared memory 32 banks of
4 bytes, where items of 8 bytes go by half-warps and items of 16 bytes by quarters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_lib.simulators.gpu.counting import BANK_BYTES, BANKS, SECTOR_BYTES, WARP
from course_lib.views.paper import plural

if TYPE_CHECKING:
    from course_lib.simulators.gpu.tally import WarpStep

_ALL_WANT_ONE = {
    "load": "a broadcast",
    "store": "all lanes write one element",
    "atomic": "all lanes update one element",
}
_OF = {"load": "of", "store": "to", "atomic": "on"}


@dataclass(frozen=True)
class Pass:
    """One wavefront: each bank with the lanes whose word it serves; `is_repeat`: a conflict made it wait."""

    lanes: dict[int, tuple[int, ...]]
    is_repeat: bool


def lanes_by_place(step: WarpStep) -> dict[int, tuple[int, ...]]:
    """Return each element that is touched (its number in the array's memory) with the lanes that touch it."""
    found: dict[int, list[int]] = {}
    for lane, place in enumerate(step.places):
        if place is not None:
            found.setdefault(place, []).append(lane)
    return {place: tuple(found[place]) for place in sorted(found)}


def active(step: WarpStep) -> int:
    """Return how many lanes take part."""
    return sum(place is not None for place in step.places)


def sectors(step: WarpStep) -> dict[int, list[int]]:
    """Return each sector that is moved, counted from the start of the memory, with its touched elements."""
    found: dict[int, list[int]] = {}
    for place in lanes_by_place(step):
        found.setdefault(place * step.item_bytes // SECTOR_BYTES, []).append(place)
    return found


def bytes_used(step: WarpStep) -> int:
    """Return the bytes that the lanes asked for, an element that several want counted once."""
    return len(lanes_by_place(step)) * step.item_bytes


def bank_span(step: WarpStep) -> int:
    """Return how many banks one item occupies: 1 up to 4 bytes, 2 for 8, 4 for 16."""
    return max(1, step.item_bytes // BANK_BYTES)


def groups(step: WarpStep) -> list[dict[int, dict[int, list[int]]]]:
    """Return, for each part of the warp that is served together, bank -> word -> lanes.

    A bank is named by its first one when an item spans several.
    """
    span = bank_span(step)
    size = WARP // span
    found = []
    for first in range(0, WARP, size):
        banks: dict[int, dict[int, list[int]]] = {}
        for lane in range(first, first + size):
            place = step.places[lane]
            if place is not None:
                word = place * step.item_bytes // (BANK_BYTES * span)
                banks.setdefault(word * span % BANKS, {}).setdefault(word, []).append(lane)
        if banks:
            found.append(banks)
    return found


def passes(step: WarpStep) -> list[Pass]:
    """Return the wavefronts of a shared-memory step: in each, a bank serves one word.

    How many there are is the cost; which word goes first is not known and drawn in the order of lanes.
    """
    found: list[Pass] = []
    for banks in groups(step):
        for turn in range(max(len(words) for words in banks.values())):
            served = {bank: list(words.values()) for bank, words in banks.items() if len(words) > turn}
            lanes = {bank: tuple(wanting[turn]) for bank, wanting in served.items()}
            found.append(Pass(lanes, turn > 0))
    return found


def conflict(step: WarpStep) -> int:
    """Return how many words the busiest bank has to serve: 1 without a conflict."""
    return max((len(words) for banks in groups(step) for words in banks.values()), default=0)


def fewest(step: WarpStep) -> int:
    """Return the cost if the same number of elements lay as well as they can."""
    if step.space == "shared":
        return len(groups(step))
    return max(1, -(-bytes_used(step) // SECTOR_BYTES))


def turns(step: WarpStep) -> int:
    """Return how many lanes of an atomic want the element that most of them want; 0 for other steps."""
    return max(map(len, lanes_by_place(step).values()), default=0) if step.kind == "atomic" else 0


def is_costly(step: WarpStep) -> bool:
    """Return whether a better layout would need fewer sectors or passes."""
    return step.kind != "barrier" and step.cost > fewest(step)


def sentence(step: WarpStep) -> str:
    """Return the step in words: "line 12: load of a: 32 lanes, 1 element, 1 sector: a broadcast"."""
    if step.kind == "barrier":
        return f"line {step.line}: barrier: the warp waits until all warps of its block are here"
    what = f"{step.kind} {_OF[step.kind]} {step.array}"
    unit = "sector" if step.space == "global" else "wavefront"
    count = f"{plural(active(step), 'lane')}, {plural(len(lanes_by_place(step)), 'element')}"
    return f"line {step.line}: {what}: {count}, {plural(step.cost, unit)}: {verdict(step)}"


def verdict(step: WarpStep) -> str:
    """Return the finding alone: "a broadcast", "a 32-way bank conflict"."""
    said = _of_shared(step) if step.space == "shared" else _of_global(step)
    if turns(step) > 1:
        said += f"; {turns(step)} lanes want one element and take turns"
    return said


def _of_global(step: WarpStep) -> str:
    elements, used, moved = len(lanes_by_place(step)), bytes_used(step), step.cost * SECTOR_BYTES
    share = f"{used:,} of {moved:,} bytes moved are used"
    if elements == 1 and active(step) > 1:
        return _ALL_WANT_ONE[step.kind]
    if used == moved:
        return "coalesced, every byte moved is used"
    if not is_costly(step):
        return f"as few as can be, {share}"
    if elements == step.cost:
        return f"each element in a sector of its own, {share}"
    return f"{fewest(step)} would do, {share}"


def _of_shared(step: WarpStep) -> str:
    worst = conflict(step)
    if worst > 1:
        return f"{'an' if worst in (8, 11, 18) else 'a'} {worst}-way bank conflict"
    if len(lanes_by_place(step)) == 1 and active(step) > 1:
        return _ALL_WANT_ONE[step.kind]
    if bank_span(step) > 1 and step.cost > 1:
        part = {2: "half-warps", 4: "quarter-warps"}[bank_span(step)]
        return f"no bank conflict, {step.item_bytes}-byte elements go by {part}"
    return "no bank conflict"


def finding(steps: Sequence[WarpStep]) -> str:
    """Return what is worth knowing of a warp's steps: the one that costs most more than it need."""
    costly = [step for step in steps if is_costly(step)]
    if not steps:
        return "it touches no global or shared memory"
    if not costly:
        busiest = max(steps, key=turns)
        if turns(busiest) > 1:
            return f"{turns(busiest)} lanes take turns at the atomic in line {busiest.line}"
        return "no access costs more than it must"
    worst = max(costly, key=lambda step: step.cost / fewest(step))
    unit = "sectors" if worst.space == "global" else "wavefronts"
    least = fewest(worst)
    if worst.space == "shared":
        return f"{verdict(worst)} in line {worst.line}, {worst.cost} {unit} where {least} would do"
    what = f"the {worst.kind} {_OF[worst.kind]} {worst.array} in line {worst.line}"
    return f"{what} moves {worst.cost} {unit} where {least} would do"


def key_steps(steps: Sequence[WarpStep]) -> list[int]:
    """Return the numbers of up to four telling steps: first conflict, first waste, first loads and stores."""
    tests = (
        lambda s: s.space == "shared" and is_costly(s),
        lambda s: s.space == "global" and is_costly(s),
        lambda s: s.kind == "load" and s.space == "global",
        lambda s: s.kind in ("store", "atomic") and s.space == "global",
        lambda s: s.kind == "load" and s.space == "shared",
        lambda s: s.kind in ("store", "atomic") and s.space == "shared",
    )

    def what(step: WarpStep) -> tuple:
        return step.line, step.array, step.kind

    found: list[int] = []
    seen: set[tuple] = set()
    for test in tests:
        first = next((n for n, step in enumerate(steps) if test(step) and what(step) not in seen), None)
        if first is not None and len(found) < 4:
            found.append(first)
            seen.add(what(steps[first]))
    return sorted(found)
