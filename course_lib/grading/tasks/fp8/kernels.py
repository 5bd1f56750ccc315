"""Tasks of chapter 10 on the kernel: its ring, its layout, its order of tiles and their size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from course_lib.fp8.schedule import Schedule
from course_lib.fp8.swizzle import PIECE, swizzled
from course_lib.fp8.tiles import Tile
from course_lib.grading.compare import Mismatch, close, exact, same
from course_lib.grading.inputs import between, every_pair
from course_lib.grading.task import Case, Task
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS

# --- What a table of waits leads to: every order of a producer, a consumer and the copies is tried ----------
# A small sister of `simulators.ring`, in which the table says who waits for what.

DEADLOCK, OVERWRITTEN, NOT_THERE = "deadlock", "overwritten", "not there"
MOST_VISITS = 16  # the first laps show what all laps do
State = tuple[int, int, frozenset[int]]  # visits begun, visits consumed, copies under way


def outcome(table: Sequence[Sequence[int]], stages: int) -> str | None:
    """Return what can go wrong under some order of events: DEADLOCK, OVERWRITTEN, NOT_THERE or None.

    A row is [stage, parity of the producer's wait, parity of the consumer's]. Raises ValueError for a table
    that names no such stage or parity.
    """
    table = [tuple(row) for row in table[:MOST_VISITS]]
    if any(row[0] not in range(stages) or not {*row[1:]} <= {0, 1} for row in table):
        raise ValueError("a row of the table is no stage with two parities.")
    todo, seen, stuck = [(0, 0, frozenset())], set(), False
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        steps = list(_steps(table, state))
        wrong = next((one for one in steps if isinstance(one, str)), None)
        if wrong:
            return wrong
        stuck |= not steps and state[1] < len(table)
        todo += steps
    return DEADLOCK if stuck else None


def _steps(table: list[tuple[int, ...]], state: State) -> Iterator[State | str]:
    """Yield the states that may follow, or what goes wrong."""
    begun, consumed, under_way = state
    if begun < len(table):
        stage, parity, _ = table[begun]
        if (_visits(table, stage, consumed) - 1) % 2 == parity:  # phases of `empty` that are over
            yield begun + 1, consumed, under_way | {begun}
    for visit in under_way:
        earlier = range(consumed, visit)
        if any(table[one][0] == table[visit][0] for one in earlier):
            yield OVERWRITTEN
        yield begun, consumed, under_way - {visit}
    if consumed < len(table):
        stage, _, parity = table[consumed]
        come = _visits(table, stage, begun) - sum(table[one][0] == stage for one in under_way)
        if (come - 1) % 2 == parity:  # phases of `full` that are over
            if consumed >= begun or consumed in under_way:
                yield NOT_THERE
            else:
                yield begun, consumed + 1, under_way


def _visits(table: list[tuple[int, ...]], stage: int, first: int) -> int:
    return sum(row[0] == stage for row in table[:first])


# --- 10.parity: which stage, and which parity, producer and consumer wait for -------------------------------


def waits(visits: int, stages: int) -> list[list[int]]:
    """Return [stage, parity the producer waits for, parity the consumer waits for] of each visit.

    As the kernels have it: barriers begin in phase 0; the phase before it counts as over (PTX ISA, mbarrier).
    """
    laps = [visit // stages % 2 for visit in range(visits)]
    return [[visit % stages, 1 - lap, lap] for visit, lap in enumerate(laps)]


def _rings(rng: np.random.Generator) -> Iterator[Case]:
    for visits, stages in ((3, 4), (8, 4), (12, 4)):
        yield _ring(visits, stages)
    for stages in (2, 3, 1, *range(4, 9)):
        most = int(rng.integers(3 * stages + 1, 130))
        for visits in sorted({0, 1, stages, stages + 1, 2 * stages, 2 * stages + 1, most}):
            yield _ring(visits, stages)


def _ring(visits: int, stages: int) -> Case:
    words = f"{visits} visit{'s' * (visits != 1)}, {stages} stage{'s' * (stages > 1)}"
    return Case((visits, stages), words)


def _goes_wrong(how: str):
    return lambda got, visits, stages: outcome(got, stages) == how


PARITY = Task(
    id="10.parity",
    title="Odd and even laps",
    points=2,
    cases=_rings,
    reference=waits,
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "The columns of producer and consumer are exchanged: at the start nothing is there to be consumed, "
        "and every stage is free.": (
            lambda got, visits, stages: got == [[s, c, p] for s, p, c in waits(visits, stages)]
        ),
        "The stages are not visited in turn, 0, 1, 2 … and again 0.": (
            lambda got, visits, stages: [row[0] for row in got] != [v % stages for v in range(visits)]
        ),
        "A parity is 0 or 1.": lambda got, *args: any(one not in (0, 1) for row in got for one in row[1:]),
        "With this table everybody waits for ever: a wait asks for the phase that is over, and a barrier "
        "that nobody has touched is in phase 0, so that the phase before it, of parity 1, counts as "
        "over.": _goes_wrong(DEADLOCK),
        "With this table the producer overwrites a stage that is still to be read: in lap n it must "
        "wait until phase n - 1 of `empty` is over, of parity 1 or 0 by turns.": _goes_wrong(OVERWRITTEN),
        "With this table the consumer reads a stage before the copy has come: in lap n it must wait "
        "until phase n of `full` is over, of parity 0 or 1 by turns.": _goes_wrong(NOT_THERE),
    },
    hints=(
        "Every barrier begins in phase 0. A wait for parity p returns once the last phase that is over has "
        "parity p; before anything has happened, that is phase -1, of parity 1. Which of the two waits must "
        "return at once in the first lap?",
        "Visit v uses stage v % stages, in lap v // stages. The copy of lap n ends phase n of `full`: the "
        "consumer waits for the parity of n. The producer waits until the stage was emptied in lap n - 1, "
        "phase n - 1 of `empty`: the other parity; for n = 0 that is phase -1, and it passes.",
        "lap = visit // stages % 2; table.append([visit % stages, 1 - lap, lap])",
    ),
)


# --- 10.swizzle: where a byte of a tile lies in shared memory -----------------------------------------------


def address(row: int, column: int, width: int) -> int:
    """Return where byte (row, column) of a tile with rows of `width` bytes lies, swizzled over that width."""
    return swizzled(row * width + column, width)


def _bytes(rng: np.random.Generator) -> Iterator[Case]:
    for row, column, width in (
        (0, 0, 128),
        (0, 77, 128),
        (1, 0, 128),
        (1, 16, 128),
        (3, 40, 128),
        (8, 5, 128),
    ):
        yield _address(row, column, width)
    for width in (128, 64, 32):
        rows = (*range(17), *map(int, rng.integers(17, 256, 8)))
        for row, piece in itertools.product(rows, range(width // PIECE)):
            yield _address(row, piece * PIECE + int(rng.integers(PIECE)), width)


def _address(row: int, column: int, width: int) -> Case:
    return Case((row, column, width), f"row {row}, byte {column} of it, rows of {width} bytes")


SWIZZLE = Task(
    id="10.swizzle",
    title="The same bytes, another order",
    points=2,
    difficulty=4,
    minutes=20,
    cases=_bytes,
    reference=address,
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "For this byte that is the address without swizzle. Its piece moves: the lowest bits of its line's "
        "number are not all 0.": lambda row, column, width: row * width + column,
        "That is where its piece begins: a byte keeps its place in the piece.": (
            lambda got, *args: got == address(*args) // PIECE * PIECE
        ),
        "With rows of 64 or 32 bytes several rows share a line of 128 bytes. The line counts, "
        "offset // 128, not the row.": (
            lambda row, column, width: row * width + (column ^ row % (width // PIECE) * PIECE)
        ),
        "Pieces of 16 bytes change places, bytes do not: shift the number of the line by 4 bits.": (
            lambda row, column, width: (row * width + column) ^ row * width // 128 % (width // PIECE)
        ),
        "A swizzle over 64 (or 32) bytes exchanges 4 (or 2) pieces only: the line counts modulo that.": (
            lambda row, column, width: (row * width + column) ^ row * width // 128 % 8 * PIECE
        ),
        "Pieces are exchanged by XOR, not shifted round.": (
            lambda row, column, width: row * width + (column + row * width // 128 * PIECE) % width
        ),
    },
    hints=(
        "Rows of 128 bytes: row r puts its piece p (16 bytes) where piece p XOR (r mod 8) would lie. Which "
        "bits of an address say p, and which say r?",
        "The bits 4, 5, 6 of the offset row * width + column say the piece in a line of 128 bytes, the bits "
        "from 7 on the line. The swizzle XORs the lowest bits of the line into those of the piece: three for "
        "a width of 128, two for 64, one for 32.",
        "offset ^ (offset // 128 % (width // 16) * 16)",
    ),
)


# --- 10.schedule: which tiles a block computes that stays on its multiprocessor -----------------------------

Tiles = list[list[int]]


def tiles_of(block: int, rows: int, columns: int, blocks: int, cluster: int, band: int) -> Tiles:
    """Return [row, column] of the tiles that a block computes, in its order."""
    order = Schedule(rows, columns, blocks // cluster, cluster, band)
    found = (order.tile(turn, block // cluster, block % cluster) for turn in range(order.turns))
    return [list(tile) for tile in found if tile is not None]


def _grids(rng: np.random.Generator) -> Iterator[Case]:
    for rows, columns, blocks, cluster, band in ((4, 3, 2, 1, 4), (4, 4, 4, 2, 2), (7, 5, 6, 2, 3)):
        for block in (0, 1, blocks - 1):
            yield _grid(block, rows, columns, blocks, cluster, band)
    grids = every_pair(
        rng,
        rows=(0, 1, 2, 3, between(4, 9), 16, 17, between(18, 34)),
        columns=(1, 2, 3, between(4, 9), between(9, 20)),
        clusters=(1, 2, 3, between(4, 9), 40),
        cluster=(1, 2),
        band=(1, 2, 3, 4, between(5, 9), 16),
        block=(0, 1, -1, between(0, 80)),
    )
    for grid in sorted(grids, key=lambda grid: grid["rows"] * grid["columns"] or math.inf):
        blocks = grid.pop("clusters") * grid["cluster"]
        block = grid.pop("block") % blocks
        for one in (block, block ^ 1)[: grid["cluster"]]:  # the odd one's tile is that which sticks out
            yield _grid(one, **grid, blocks=blocks)


def _grid(block: int, rows: int, columns: int, blocks: int, cluster: int, band: int) -> Case:
    words = (
        f"block {block} of {blocks}, clusters of {cluster}, {rows} x {columns} tiles, bands of {band} rows"
    )
    return Case((block, rows, columns, blocks, cluster, band), words)


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


class _Grid(NamedTuple):
    """The arguments of a case."""

    block: int
    rows: int
    columns: int
    blocks: int
    cluster: int
    band: int

    def units(self, across: int) -> range:
        """Return the units of the block's cluster, of so many in a row of tiles."""
        return range(self.block // self.cluster, self.rows * across, self.blocks // self.cluster)

    def column(self, unit: int) -> int:
        """Return the block's own column of tiles in a column of units."""
        return unit * self.cluster + self.block % self.cluster

    def walk(self, units: Iterable[int], across: int) -> Tiles:
        """Return the block's tiles of these units."""
        bands = [divmod(unit, self.band * across) for unit in units]
        at = [(n * self.band, min(self.band, self.rows - n * self.band), inside) for n, inside in bands]
        return [[first + i % height, self.column(i // height)] for first, height, i in at]


def _as_high_as_all(grid: _Grid, across: int) -> list[Tiles]:
    band = grid.band
    at = [(unit // (band * across) * band, unit % (band * across)) for unit in grid.units(across)]
    all_as_high = grid._replace(rows=-(-grid.rows // band) * band)
    return [[[first + i % band, grid.column(i // band)] for first, i in at], tiles_of(*all_as_high)]


def _neighbours(grid: _Grid, across: int) -> list[Tiles]:
    clusters, number, total = grid.blocks // grid.cluster, grid.block // grid.cluster, grid.rows * across
    shares = {total // clusters, -(-total // clusters)}
    runs = [range(number * share, min((number + 1) * share, total)) for share in shares]
    return [grid.walk(units, across) for units in runs]


def _by_blocks(grid: _Grid, across: int) -> list[Tiles]:
    block, _, _, blocks, cluster, _ = grid
    starts = ((block, blocks), (block // cluster, blocks), (block, blocks // cluster))
    runs = [range(start, grid.rows * across, step) for start, step in starts]
    return [grid.walk(units, across) for units in runs]


def _gives(slip: Callable[[_Grid, int], list[Tiles]]):
    """Return whether the tiles are among those that slip(grid, units in a row of tiles) gives, and wrong."""

    def fits(got: Tiles, *args: int) -> bool:
        grid = _Grid(*args)
        return got != tiles_of(*args) and got in slip(grid, -(-grid.columns // grid.cluster))

    return fits


def _right_in(place: int):
    def fits(got: Tiles, *args: int) -> bool:
        want = tiles_of(*args)
        return [one[place] for one in got] == [one[place] for one in want]

    return fits


SCHEDULE = Task(
    id="10.schedule",
    title="Who computes what, and when",
    difficulty=4,
    minutes=25,
    cases=_grids,
    reference=tiles_of,
    comparison=ListOfTiles(),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "That is right if nobody stopped at a band: after `band` rows of tiles it goes on with the next "
        "column, and only then down.": _gives(
            lambda grid, across: [tiles_of(*grid._replace(band=max(grid.rows, 1)))]
        ),
        "Those are the tiles of blocks that work alone: a cluster's blocks compute tiles of one row side by "
        "side.": _gives(lambda grid, across: [tiles_of(*grid._replace(cluster=1))]),
        "The tile that sticks out of D is missing: a block keeps its place in the cluster, or its partner "
        "waits for ever for copies that they share.": _gives(
            lambda grid, across: [[one for one in tiles_of(*grid) if one[1] < grid.columns]]
        ),
        "Row and column are exchanged.": (
            lambda got, *args: got != tiles_of(*args) == [one[::-1] for one in got]
        ),
        "The last band may have fewer rows than the others: its height is what is left.": _gives(
            _as_high_as_all
        ),
        "A tile is there that D does not have: the last band may have fewer rows.": (
            lambda got, block, rows, *_: any(one[0] >= rows for one in got)
        ),
        "In a band the units go down first, then to the next column of units.": _gives(
            lambda grid, across: [[[n // across, grid.column(n % across)] for n in grid.units(across)]]
        ),
        "Both blocks of a cluster take the same units: count clusters, not blocks.": _gives(_by_blocks),
        "Round up: the last unit of a row may stick out.": _gives(
            lambda grid, _: [grid.walk(grid.units(less := grid.columns // grid.cluster), less)]
        ),
        "Units are dealt out in turn: cluster t gets units t, t + clusters, t + 2 * clusters ...": _gives(
            _neighbours
        ),
        "The right tiles, in another order.": lambda got, *args: sorted(got) == sorted(tiles_of(*args)),
        "All rows are right, and the columns are not: a unit is `cluster` columns wide, and a block keeps "
        "its place in it.": _right_in(0),
        "All columns are right, and the rows are not.": _right_in(1),
        "Right as far as it goes. How many units are there, and how many of them are your cluster's?": (
            lambda got, *args: all(one == right for one, right in zip(got, tiles_of(*args), strict=False))
        ),
        "Deal out the first units of the first band by hand: where does the second one lie, and which "
        "cluster gets it?": lambda got, *args: True,
    },
    hints=(
        "Number the units 0, 1, 2 … as they are dealt out. Cluster t gets the units t, t + clusters, t + 2 "
        "clusters … How many units has a whole band?",
        "A unit is `cluster` tiles side by side, so a row has across = columns / cluster of them, rounded "
        "up. A whole band has band * across units; unit // (band * across) is the band. In it the units go "
        "down first: with the band's height h (the last one may be less high) unit i of the band is in row "
        "i % h, column i // h.",
        "first = unit // (band * across) * band; height = min(band, rows - first); inside = unit - first * "
        "across; [first + inside % height, inside // height * cluster + block % cluster]",
    ),
)


# --- 10.tiles: the tile that fills the GPU's turns best, and how many stages it leaves room for -------------

Choice = tuple[int, int, float, int]  # BN, turns, idle share, stages
TILE_WIDTHS = range(16, 129, 16)


def tile_for(M: int, N: int, sms: int) -> Choice:
    """Return BN, turns, the idle share and the stages by the rule of DeepGEMM's first release.

    deepseek-ai/DeepGEMM a6d97a1: the fewest turns, of those the fullest last one, of those the widest tile.
    """
    BM = 64 if M <= 64 else 128
    orders = {BN: Schedule(-(-M // BM), -(-N // BN), sms) for BN in TILE_WIDTHS}
    BN = max(TILE_WIDTHS, key=lambda width: (-orders[width].turns, orders[width].units % -sms, width))
    return BN, orders[BN].turns, orders[BN].idle_share, Tile(BM, BN).stages


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, sms in (
        (256, 7168, 132),
        (128, 24576, 132),
        (64, 2112, 132),
        (65, 2112, 132),
        (4096, 4096, 132),
        (4096, 576, 132),
        (64, 16896, 132),
        (4096, 32768, 132),
    ):
        yield _size(M, N, sms)
    rows = (1, between(2, 64), 64, 65, between(66, 128), 128, 129, between(130, 3000), 4096)
    columns = (between(1, 16), 16, between(17, 128), 128, between(129, 2000), 4096, between(7000, 10000))
    for row in every_pair(rng, M=rows, N=columns, sms=(1, 4, 16, 20, 78, 114, 132)):
        yield _size(**row)


def _size(M: int, N: int, sms: int) -> Case:
    return Case((M, N, sms), f"D {M} x {N}, {sms} multiprocessors")


def _all_but_stages(got: Choice, right: Choice) -> bool:
    return same(got[:3], right[:3]) and same(got[2], right[2]) and got[3] != right[3]


def _full_turn_as_none(got: Choice, M: int, N: int, sms: int) -> bool:
    BM, right = 64 if M <= 64 else 128, tile_for(M, N, sms)
    tiles = {BN: -(-M // BM) * -(-N // BN) for BN in TILE_WIDTHS}
    turns = {BN: -(-tiles[BN] // sms) for BN in TILE_WIDTHS}
    BN = max(TILE_WIDTHS, key=lambda width: (-turns[width], tiles[width] % sms, width))
    idle = (sms - tiles[BN] % sms) / (turns[BN] * sms)
    wrong = not (right[0] == BN and same(idle, right[2]))
    return wrong and same(got[:2], (BN, turns[BN])) and same(got[2], idle)


def _per_cent(got: Choice, M: int, N: int, sms: int) -> bool:
    right = tile_for(M, N, sms)
    return same(got[:2], right[:2]) and right[2] > 0 and bool(np.isclose(got[2], 100 * right[2], rtol=0.02))


TILES = Task(
    id="10.tiles",
    title="A tile that fits",
    minutes=25,
    cases=_sizes,
    reference=tile_for,
    comparison=close(
        rtol=1e-9, atol=1e-12, parts=("the width BN", "the turns", "the idle share", "the stages")
    ),
    rules=(USUAL_IMPORTS,),
    lookalikes={
        "A last turn that is full counts as `sms` tiles, not as 0.": _full_turn_as_none,
        "That is the widest tile. The fewest turns come first.": (
            lambda got, M, N, sms: got[0] == 128 and got[1] > tile_for(M, N, sms)[1]
        ),
        "Of widths with the same number of turns take that with the fullest last turn, and of those the "
        "widest.": (
            lambda got, M, N, sms: got[1] == tile_for(M, N, sms)[1] and got[0] != tile_for(M, N, sms)[0]
        ),
        "With that width D has more tiles: round up on both sides.": (
            lambda got, *args: got[0] == tile_for(*args)[0] and got[1] < tile_for(*args)[1]
        ),
        "The idle share is a share between 0 and 1, not per cent.": _per_cent,
        "The share is what is busy; asked is the idle one.": (
            lambda got, *args: same(got[2], 1 - tile_for(*args)[2]) and got[2] != tile_for(*args)[2]
        ),
        "That is the idle share of the last turn alone; divide by the places of all turns.": (
            lambda got, *args: (
                same(got[2], tile_for(*args)[2] * tile_for(*args)[1])
                and got[1] > 1
                and not same(got[2], tile_for(*args)[2])
            )
        ),
        "M = 64 is at most 64: there a tile has 64 rows.": (
            lambda got, M, N, sms: M == 64 and got[3] == Tile(128, got[0]).stages != Tile(64, got[0]).stages
        ),
        "Count again what a stage and D's tile take of the 226 KiB (1 KiB of the 227 is lost to "
        "alignment): an element of D takes 2 bytes, the scale of a row of A 4, and B's rows have none.": (
            lambda got, *args: got[3] in range(9) and _all_but_stages(got, tile_for(*args))
        ),
        "More than 8 stages bring nothing: stop there.": (
            lambda got, *args: got[3] > 8 and _all_but_stages(got, tile_for(*args))
        ),
    },
    hints=(
        "M = 256, N = 7168, tiles of 128 x 128: how many tiles are there, and how many of 132 "
        "multiprocessors have none? And with tiles of 128 x 112?",
        "For each BN count the tiles (both sides rounded up), the turns (rounded up) and what is left for "
        "the last turn. Tuples compare from left to right, so max of (-turns, last, BN) is the rule. A stage "
        "needs 128 bytes for each row of A and of B, and 4 for the scale of each row of A.",
        "last = tiles - (turns - 1) * sms; best = max(best, (-turns, last, BN)); idle = (sms - last) / "
        "(turns * sms); stages = min((227 * 1024 - 1024 - 2 * BM * BN) // (128 * (BM + BN) + 4 * BM), 8).",
    ),
)
