"""Task 10.schedule: which tiles a block computes that stays on its multiprocessor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.fp8.schedule import Schedule
from course_lib.grading.compare import Mismatch, exact
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS

Tiles = list[list[int]]

SOLUTION = source("""
    def tiles_of(block, rows, columns, blocks, team, band):
        across = -(-columns // team)
        found = []
        for unit in range(block // team, rows * across, blocks // team):
            first = unit // (band * across) * band
            height = min(band, rows - first)
            inside = unit - first * across
            row, column = inside % height, inside // height
            found.append([first + row, column * team + block % team])
        return found
""")


def tiles_of(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> Tiles:
    """Return [row, column] of the tiles that a block computes, in its order."""
    order = Schedule(rows, columns, blocks // team, team, band)
    found = (order.tile(turn, block // team, block % team) for turn in range(order.turns))
    return [list(tile) for tile in found if tile is not None]


def _grids(rng: np.random.Generator) -> Iterator[Case]:
    for rows, columns, blocks, team, band in (
        (4, 3, 2, 1, 4),
        (4, 4, 4, 2, 2),
        (5, 4, 3, 1, 2),
        (4, 5, 4, 2, 4),
        (7, 5, 6, 2, 3),
        (3, 4, 8, 1, 16),
        (1, 7, 4, 2, 16),
        (9, 1, 4, 2, 4),
        (2, 2, 12, 2, 4),
        (0, 5, 4, 2, 4),
        (33, 17, 12, 2, 16),
    ):
        for block in sorted({0, 1, blocks - 1, int(rng.integers(blocks))}):
            yield _case(block, rows, columns, blocks, team, band)
    for _ in range(6):
        team = int(rng.integers(1, 3))
        blocks = team * int(rng.integers(2, 9))
        sizes = (int(rng.integers(2, 20)) for _ in range(2))
        yield _case(int(rng.integers(blocks)), *sizes, blocks, team, int(rng.integers(2, 9)))


def _case(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> Case:
    words = f"block {block} of {blocks}, teams of {team}, {rows} x {columns} tiles, bands of {band} rows"
    return Case((block, rows, columns, blocks, team, band), words)


@dataclass(frozen=True)
class ListOfTiles:
    """Compares lists of [row, column] exactly; too many or too few of them are no fault of the form."""

    def compare(self, got: Any, want: Tiles, args: tuple) -> Mismatch | None:
        """Return None if `got` has the tiles wanted, in their order."""
        found = exact().compare(got, want, args)
        if found is None or not found.form or not _are_tiles(got):
            return found
        number = f"{len(got)} tile{'s' * (len(got) != 1)}"
        same = next((n for n, pair in enumerate(zip(got, want, strict=False)) if pair[0] != pair[1]), None)
        where = "" if same is None else f" The first that differs is number {same}."
        return Mismatch((f"Your block computes {number}; {len(want)} are its own.{where}",), wrong=1, total=1)


def _are_tiles(got: Any) -> bool:
    pairs = isinstance(got, list) and all(isinstance(one, list) and len(one) == 2 for one in got)
    return pairs and all(type(n) is int for one in got for n in one)


def _without(field: str):
    """Return what the answer would be with another band or team."""

    def make(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> Tiles | None:
        if field == "bands":
            found = tiles_of(block, rows, columns, blocks, team, max(rows, 1))
        elif field == "teams":
            found = tiles_of(block, rows, columns, blocks, 1, band)
        elif field == "heights":
            found = _as_high_as_all(block, rows, columns, blocks, team, band)
        else:
            found = [one for one in tiles_of(block, rows, columns, blocks, team, band) if one[1] < columns]
        return None if found == tiles_of(block, rows, columns, blocks, team, band) else found

    return lambda got, *args: got == make(*args)


def _as_high_as_all(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> Tiles:
    """Return what comes out if the last band counts as `band` rows high."""
    across = -(-columns // team)
    units = range(block // team, rows * across, blocks // team)
    at = [(unit // (band * across) * band, unit % (band * across)) for unit in units]
    return [[first + inside % band, inside // band * team + block % team] for first, inside in at]


def _walk(units: Iterable[int], block: int, rows: int, across: int, team: int, band: int) -> Tiles:
    """Return a block's tiles of these units, `across` of them in a row of tiles."""
    bands = [divmod(unit, band * across) for unit in units]
    at = [(n * band, min(band, rows - n * band), inside) for n, inside in bands]
    return [[first + i % height, i // height * team + block % team] for first, height, i in at]


def _along_rows(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> list[Tiles]:
    across = -(-columns // team)
    units = range(block // team, rows * across, blocks // team)
    return [[[unit // across, unit % across * team + block % team] for unit in units]]


def _neighbours(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> list[Tiles]:
    """Return what comes out if each team gets units that follow one another, an equal share of all."""
    across, teams, number = -(-columns // team), blocks // team, block // team
    total = rows * across
    shares = {total // teams, -(-total // teams)}
    runs = [range(number * share, min((number + 1) * share, total)) for share in shares]
    return [_walk(units, block, rows, across, team, band) for units in runs]


def _by_blocks(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> list[Tiles]:
    """Return what comes out if units are dealt out to blocks: the first unit, the step or both are theirs."""
    across = -(-columns // team)
    starts = ((block, blocks), (block // team, blocks), (block, blocks // team))
    runs = [range(start, rows * across, step) for start, step in starts]
    return [_walk(units, block, rows, across, team, band) for units in runs]


def _rounded_down(block: int, rows: int, columns: int, blocks: int, team: int, band: int) -> list[Tiles]:
    across = columns // team
    return [_walk(range(block // team, rows * across, blocks // team), block, rows, across, team, band)]


def _gives(slip: Callable[..., list[Tiles]]):
    """Return whether the tiles are among those that a slip gives, and wrong."""

    def fits(got: Tiles, *args: int) -> bool:
        return got != tiles_of(*args) and got in slip(*args)

    return fits


def _right_in(place: int):
    """Return whether all rows (0) or all columns (1) are right, and they alone."""

    def fits(got: Tiles, *args: int) -> bool:
        want = tiles_of(*args)
        return [one[place] for one in got] == [one[place] for one in want]

    return fits


TASK = Task(
    id="10.schedule",
    title="Who computes what, and when",
    kind="write",
    points=3,
    difficulty=4,
    minutes=25,
    good_for="a kernel that is started once and walks through all tiles, as every fast one for Hopper does",
    entry="tiles_of",
    cases=_grids,
    reference=tiles_of,
    comparison=ListOfTiles(),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike(
            "That is right if nobody stopped at a band: after `band` rows of tiles it goes on with "
            "the next "
            "column, and only then down.",
            fits=_without("bands"),
        ),
        Lookalike(
            "Those are the tiles of blocks that work alone: a team's blocks compute tiles of one "
            "row side by "
            "side.",
            fits=_without("teams"),
        ),
        Lookalike(
            "The tile that sticks out of D is missing: a block keeps its place in the team, or its partner "
            "waits for ever for copies that they share.",
            fits=_without("the last column"),
        ),
        Lookalike(
            "Row and column are exchanged.",
            fits=lambda got, *args: got != tiles_of(*args) == [one[::-1] for one in got],
        ),
        Lookalike(
            "The last band may have fewer rows than the others: its height is what is left.",
            fits=_without("heights"),
        ),
        Lookalike(
            "A tile is there that D does not have: the last band may have fewer rows.",
            fits=lambda got, block, rows, *_: any(one[0] >= rows for one in got),
        ),
        Lookalike(
            "In a band the units go down first, then to the next column of units.", fits=_gives(_along_rows)
        ),
        Lookalike(
            "Both blocks of a team take the same units: count teams, not blocks.", fits=_gives(_by_blocks)
        ),
        Lookalike("Round up: the last unit of a row may stick out.", fits=_gives(_rounded_down)),
        Lookalike(
            "Units are dealt out in turn: team t gets units t, t + teams, t + 2 * teams ...",
            fits=_gives(_neighbours),
        ),
        Lookalike(
            "The right tiles, in another order.",
            fits=lambda got, *args: sorted(got) == sorted(tiles_of(*args)),
        ),
        Lookalike(
            "All rows are right, and the columns are not: a unit is `team` columns wide, and a block keeps "
            "its place in it.",
            fits=_right_in(0),
        ),
        Lookalike("All columns are right, and the rows are not.", fits=_right_in(1)),
        Lookalike(
            "Deal out the first units of the first band by hand: where does the second one lie, and which "
            "team gets it?",
            fits=lambda got, *args: True,
        ),
    ),
    hints=(
        "Number the units 0, 1, 2 … as they are dealt out. Team t gets the units t, t + teams, t + "
        "2 teams … "
        "How many units has a whole band?",
        "A unit is `team` tiles side by side, so a row has across = columns / team of them, rounded up. A "
        "whole band has band * across units; unit // (band * across) is the band. In it the units go down "
        "first: with the band's height h (the last one may be less high) unit i of the band is in row "
        "i % h, column i // h.",
        "first = unit // (band * across) * band; height = min(band, rows - first); inside = unit - first * "
        "across; [first + inside % height, inside // height * team + block % team]",
    ),
)
