"""Which kernel with which tile computes a product: candidates, the model's favourite first.

    candidates(4096, 4096, 7168)[0]   # KernelChoice(kernel="v6_tuned", tile=Tile(BM=256, BN=128, cluster=2))
    candidates(20, 7168, 2048)[0]     # KernelChoice(kernel="v8_swap_ab", tile=Tile(BM=64, BN=32, cluster=1))
    best(4096, 4096, 7168, gpu)       # what a search found fastest on this GPU, or else the model's favourite

`v8_swap_ab` computes D transposed, so to the model it is a product of N x M. The model (`choose`) decides
between the two; `searching` asks the GPU, and what it finds is kept here for products of its kind.

A kind is a GPU, N, K and a class of M. What is kept belongs to the text of the kernels and the compiler: when
one of them changes, the search is as if it had never been.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from typing import Any

from course_lib.fp8 import jit
from course_lib.fp8.choose import H200, Estimate, Hopper, estimate, in_order
from course_lib.fp8.tiles import TILES, Tile
from course_lib.measure.store import Store

DENSE, SWAPPED, GROUPED = "v6_tuned", "v8_swap_ab", "v9_grouped"
MOST_SWAPPED = 128  # rows of A: above, 64-row tiles of A are full
GROUP_ROWS = 128  # rows that share an index, where groups stand one behind the other
#: The swapped kernel's: 64 or 128 rows of weights, tokens in steps of 16.
SWAPPED_TILES = tuple(Tile(rows, tokens) for rows in (64, 128) for tokens in range(16, 129, 16))
STEPS = ((128, 16), (512, 64))  # M up to 128 in steps of 16, as tokens come, up to 512 in rows of tiles


@dataclass(frozen=True)
class KernelChoice:
    """A kernel's name and its tile."""

    kernel: str
    tile: Tile


@lru_cache(maxsize=4096)
def candidates(M: int, N: int, K: int, gpu: Hopper = H200) -> tuple[KernelChoice, ...]:
    """Return what may compute D (M, N) with K products an element; what the model thinks fastest first."""
    choices = [KernelChoice(DENSE, tile) for tile in TILES]
    if M <= MOST_SWAPPED:
        choices += [KernelChoice(SWAPPED, tile) for tile in SWAPPED_TILES]
    return tuple(in_order({choice: expected(choice, M, N, K, gpu) for choice in choices}))


def expected(choice: KernelChoice, M: int, N: int, K: int, gpu: Hopper = H200) -> Estimate:
    """Return what the model expects of a choice for D (M, N); `v8_swap_ab` computes its transpose."""
    if choice.kernel == SWAPPED:
        M, N = N, M
    return estimate(choice.tile, M, N, K, gpu)


@lru_cache(maxsize=4096)
def candidates_of_groups(
    groups: int, rows: int, N: int, K: int, masked: bool, gpu: Hopper = H200
) -> tuple[KernelChoice, ...]:
    """Return what may compute groups of about `rows` rows, each with its own matrix (N, K).

    Every group begins with a new tile, so a group counts as whole tiles. Not `masked`, a tile has at most
    the 128 rows that share an index.
    """
    tiles = [tile for tile in TILES if masked or tile.BM <= GROUP_ROWS]
    estimates = {tile: estimate(tile, groups * -(-rows // tile.BM) * tile.BM, N, K, gpu) for tile in tiles}
    return tuple(KernelChoice(GROUPED, tile) for tile in in_order(estimates))


# -- what a search has found -------------------------------------------------------------------------------

_known: dict[str, KernelChoice | None] = {}  # what is kept on disk, asked for once


def best(M: int, N: int, K: int, gpu: Hopper) -> KernelChoice:
    """Return the choice for D (M, N): what was kept for its kind, or the model's favourite. Needs no GPU."""
    key = _key(M, N, K, gpu)
    if key not in _known:
        _known[key] = _restored(_store().read().get(key))
    return _known[key] or candidates(M, N, K, gpu)[0]


def keep(fastest: KernelChoice, seconds: float, M: int, N: int, K: int, gpu: Hopper) -> None:
    """Have `best` return this choice for products of this kind from now on."""
    key = _key(M, N, K, gpu)
    entry = {"kernel": fastest.kernel, "tile": asdict(fastest.tile), "seconds": seconds}
    _store().update(lambda values: values.update({key: entry}))
    _known[key] = fastest


def class_of(M: int) -> int:
    """Return the largest M of the class: multiples of 16 up to 128, of 64 up to 512, then powers of two."""
    step = next((step for most, step in STEPS if most >= M), None)
    return -(-M // step) * step if step else 1 << (M - 1).bit_length()


def _key(M: int, N: int, K: int, gpu: Hopper) -> str:
    return f"{gpu.name}, {gpu.sms} SMs|{class_of(M)}x{N}x{K}|{_text()}"


@cache
def _text() -> str:
    """Return what an answer depends on besides GPU and sizes: the kernels' text and the compiler."""
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted(jit.KERNELS.iterdir()))
    return f"{jit.compiler()}|{hashlib.sha256(texts.encode()).hexdigest()[:12]}"


def _restored(saved: Any) -> KernelChoice | None:
    """Return what was kept, None if it makes no sense any more."""
    try:
        return KernelChoice(saved["kernel"], Tile(**saved["tile"]))
    except (TypeError, KeyError, ValueError):
        return None


def _store() -> Store:
    return Store("fp8-tiles")
