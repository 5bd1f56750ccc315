"""Which kernel with which tile computes a product: candidates, the model's favourite first.

    candidates(4096, 4096, 7168)[0]     # Choice(kernel="v6_tuned", tile=Tile(BM=256, BN=128, cluster=2))
    candidates(20, 7168, 2048)[0]       # Choice(kernel="v8_swap_ab", tile=Tile(BM=64, BN=32, cluster=1))

`v8_swap_ab` computes D transposed, so to the model it is a product of N x M. The model (`choose`) decides
between the two; `search` asks the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from course_lib.fp8.choose import H200, Estimate, Hopper, estimate, memory_cycles
from course_lib.fp8.tiles import TILES, Tile

DENSE, SWAPPED, GROUPED = "v6_tuned", "v8_swap_ab", "v9_grouped"
MOST_SWAPPED = 128  # rows of A: above, 64-row tiles of A are full
GROUP_ROWS = 128  # rows that share an index, where groups stand one behind the other
#: The swapped kernel's: 64 or 128 rows of weights, tokens in steps of 16.
SWAPPED_TILES = tuple(Tile(rows, tokens) for rows in (64, 128) for tokens in range(16, 129, 16))


@dataclass(frozen=True)
class Choice:
    """A kernel's name and its tile."""

    kernel: str
    tile: Tile


@lru_cache(maxsize=4096)
def candidates(M: int, N: int, K: int, gpu: Hopper = H200) -> tuple[Choice, ...]:
    """Return what may compute D (M, N) with K products an element; what the model thinks fastest first."""
    found = [Choice(DENSE, tile) for tile in TILES]
    if M <= MOST_SWAPPED:
        found += [Choice(SWAPPED, tile) for tile in SWAPPED_TILES]
    return _ranked([(one, expected(one, M, N, K, gpu)) for one in found], memory_cycles(M, N, K, gpu))


def expected(choice: Choice, M: int, N: int, K: int, gpu: Hopper = H200) -> Estimate:
    """Return what the model expects of a choice for D (M, N); `v8_swap_ab` computes its transpose."""
    if choice.kernel == SWAPPED:
        M, N = N, M
    return estimate(choice.tile, M, N, K, gpu)


@lru_cache(maxsize=4096)
def candidates_of_groups(
    groups: int, rows: int, N: int, K: int, masked: bool, gpu: Hopper = H200
) -> tuple[Choice, ...]:
    """Return what may compute groups of about `rows` rows, each with its own matrix (N, K).

    Every group begins with a new tile, so a group counts as whole tiles. Not `masked`, a tile has at most
    the 128 rows that share an index.
    """
    tiles = [tile for tile in TILES if masked or tile.BM <= GROUP_ROWS]
    return _ranked(
        [
            (Choice(GROUPED, tile), estimate(tile, groups * -(-rows // tile.BM) * tile.BM, N, K, gpu))
            for tile in tiles
        ]
    )


def _ranked(found: list[tuple[Choice, Estimate]], memory: float = 0.0) -> tuple[Choice, ...]:
    """Sort by the model's cycles; what is fast enough for memory anyway, by what it would take without it.

    Of equals what comes first in `found` stays first.
    """
    return tuple(
        one
        for one, _ in sorted(found, key=lambda pair: (max(pair[1].own_cycles, memory), pair[1].own_cycles))
    )
