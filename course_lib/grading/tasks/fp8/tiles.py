"""Task 10.tiles: the tile that fills the GPU's turns best, and how many stages it leaves room for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from course_lib.fp8.schedule import Schedule
from course_lib.fp8.tiles import Tile
from course_lib.grading.compare import close
from course_lib.grading.patterns import same
from course_lib.grading.task import Case, Lookalike, Task, source
from course_lib.grading.tasks.fp8.shared import USUAL_IMPORTS

Choice = tuple[int, int, float, int]  # BN, turns, idle share, stages
WIDTHS = range(16, 129, 16)

SOLUTION = source("""
    def tile_for(M, N, sms):
        BM = 64 if M <= 64 else 128
        best = -math.inf, 0, 0
        for BN in range(16, 129, 16):
            tiles = -(-M // BM) * -(-N // BN)
            turns = -(-tiles // sms)
            last = tiles - (turns - 1) * sms
            best = max(best, (-turns, last, BN))
        turns, last, BN = -best[0], best[1], best[2]
        idle = (sms - last) / (turns * sms)
        room = 227 * 1024 - 1024 - 2 * BM * BN
        stage = 128 * (BM + BN) + 4 * BM
        return BN, turns, idle, min(room // stage, 8)
""")


def tile_for(M: int, N: int, sms: int) -> Choice:
    """Return BN, turns, the idle share and the stages by the rule of DeepGEMM's first release.

    deepseek-ai/DeepGEMM a6d97a1: the fewest turns, of those the fullest last one, of those the widest tile.
    """
    BM = 64 if M <= 64 else 128
    orders = {BN: Schedule(-(-M // BM), -(-N // BN), sms) for BN in WIDTHS}
    BN = max(WIDTHS, key=lambda width: (-orders[width].turns, orders[width].units % -sms, width))
    return BN, orders[BN].turns, orders[BN].idle_share, Tile(BM, BN).stages


def _sizes(rng: np.random.Generator) -> Iterator[Case]:
    for M, N, sms in (
        (256, 7168, 132),
        (128, 24576, 132),
        (64, 2112, 132),
        (65, 2112, 132),
        (4096, 4096, 132),
        (4096, 576, 132),
        (1, 16, 132),
        (63, 7168, 78),
        (1, 4096, 132),
        (300, 1000, 20),
        (64, 16896, 132),
        (129, 7168, 132),
        (64, 128, 4),
        (4096, 32768, 132),
    ):
        yield Case((M, N, sms), f"D {M} x {N}, {sms} multiprocessors")
    for _ in range(12):
        M, N = int(rng.integers(1, 3000)), 16 * int(rng.integers(1, 600))
        sms = int(rng.choice([78, 114, 132, 16]))
        yield Case((M, N, sms), f"D {M} x {N}, {sms} multiprocessors")


def _stages(M: int, BN: int, scales: int = 4, way_out: int = 2, room: int = 226) -> int:
    BM = 64 if M <= 64 else 128
    return min((room * 1024 - way_out * BM * BN) // (128 * (BM + BN) + scales * BM), 8)


#: What can be forgotten of a block's memory. Without scales, or with the 1 KiB, the stages mostly agree.
_WAY_OUT = {"way_out": 0}
_FORGOTTEN = (_WAY_OUT, {"scales": 0}, {"room": 227}, {"scales": 0, "room": 227})


def _all_but_stages(got: Choice, right: Choice) -> bool:
    return same(got[:3], right[:3]) and same(got[2], right[2]) and got[3] != right[3]


def _forgets(*slips: dict[str, int]):
    """Return whether the stages, and they alone, are wrong by one of these slips and no other explains it."""

    def fits(got: Choice, M: int, N: int, sms: int) -> bool:
        right = tile_for(M, N, sms)
        told = [slip for slip in _FORGOTTEN if _stages(M, right[0], **slip) == got[3]]
        return _all_but_stages(got, right) and bool(told) and all(slip in slips for slip in told)

    return fits


def _too_many(got: Choice, M: int, N: int, sms: int) -> bool:
    return got[3] > 8 and _all_but_stages(got, tile_for(M, N, sms))


def _full_turn_as_none(got: Choice, M: int, N: int, sms: int) -> bool:
    """Whether the last turn was given `tiles % sms` tiles, 0 where it is full."""
    BM, right = 64 if M <= 64 else 128, tile_for(M, N, sms)
    tiles = {BN: -(-M // BM) * -(-N // BN) for BN in WIDTHS}
    turns = {BN: -(-tiles[BN] // sms) for BN in WIDTHS}
    BN = max(WIDTHS, key=lambda width: (-turns[width], tiles[width] % sms, width))
    idle = (sms - tiles[BN] % sms) / (turns[BN] * sms)
    wrong = not (right[0] == BN and same(idle, right[2]))
    return wrong and same(got[:2], (BN, turns[BN])) and same(got[2], idle)


def _per_cent(got: Choice, M: int, N: int, sms: int) -> bool:
    right = tile_for(M, N, sms)
    return same(got[:2], right[:2]) and right[2] > 0 and bool(np.isclose(got[2], 100 * right[2], rtol=0.02))


TASK = Task(
    id="10.tiles",
    title="A tile that fits",
    kind="complete",
    points=3,
    difficulty=3,
    minutes=25,
    good_for="seeing why the fastest tile for one size is the wrong one for the next",
    entry="tile_for",
    cases=_sizes,
    reference=tile_for,
    comparison=close(
        rtol=1e-9, atol=1e-12, parts=("the width BN", "the turns", "the idle share", "the stages")
    ),
    rules=(USUAL_IMPORTS,),
    lookalikes=(
        Lookalike("A last turn that is full counts as `sms` tiles, not as 0.", fits=_full_turn_as_none),
        Lookalike(
            "That is the widest tile. The fewest turns come first.",
            fits=lambda got, M, N, sms: got[0] == 128 and got[1] > tile_for(M, N, sms)[1],
        ),
        Lookalike(
            "Of widths with the same number of turns take that with the fullest last turn, and of "
            "those the "
            "widest.",
            fits=lambda got, M, N, sms: got[1] == tile_for(M, N, sms)[1] and got[0] != tile_for(M, N, sms)[0],
        ),
        Lookalike("The idle share is a share between 0 and 1, not per cent.", fits=_per_cent),
        Lookalike(
            "The share is what is busy; asked is the idle one.",
            fits=lambda got, *args: same(got[2], 1 - tile_for(*args)[2]) and got[2] != tile_for(*args)[2],
        ),
        Lookalike(
            "That is the idle share of the last turn alone; divide by the places of all turns.",
            fits=lambda got, *args: (
                same(got[2], tile_for(*args)[2] * tile_for(*args)[1])
                and got[1] > 1
                and not same(got[2], tile_for(*args)[2])
            ),
        ),
        Lookalike(
            "D's tile needs room on its way out, two bytes for each element, beside the stages.",
            fits=_forgets(_WAY_OUT),
        ),
        Lookalike(
            "Count again what a stage and D's tile take of the 226 KiB: 1 KiB of the 227 is lost to "
            "alignment, and each row of A has a scale of 4 bytes.",
            fits=_forgets(*_FORGOTTEN),
        ),
        Lookalike("More than 8 stages bring nothing: stop there.", fits=_too_many),
    ),
    hints=(
        "M = 256, N = 7168, tiles of 128 x 128: how many tiles are there, and how many of 132 "
        "multiprocessors have none? And with tiles of 128 x 112?",
        "For each BN count the tiles (both sides rounded up), the turns (rounded up) and what is left for "
        "the last turn. Tuples compare from left to right, so max of (-turns, last, BN) is the "
        "rule. A stage "
        "needs 128 bytes for each row of A and of B, and 4 for the scale of each row of A.",
        "last = tiles - (turns - 1) * sms; best = max(best, (-turns, last, BN)); idle = (sms - last) / "
        "(turns * sms); stages = min((227 * 1024 - 1024 - 2 * BM * BN) // (128 * (BM + BN) + 4 * BM), 8).",
    ),
)
