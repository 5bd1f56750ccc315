"""Swizzled tiles: the same bytes in another order, so that a column meets all banks of shared memory.

    swizzled(row * 128 + byte)             # where a byte of a tile with rows of 128 bytes is put
    conflicts(addresses)                   # how often a request has to be repeated

Shared memory has 32 banks of 4 bytes: 128 bytes side by side. In a plain tile with rows of 128 bytes
everything in a column lies in the same banks. Swizzled, the 16-byte piece p of row r lies where piece p XOR
(r mod 8) would lie: eight rows begin in eight different places, and a column of eight pieces meets all banks
once. TMA and wgmma know the three widths 128, 64 and 32 bytes (CUDA Driver API,
CUtensorMapSwizzle; PTX ISA, "Swizzling modes"); own code that shares a tile with them must compute the same
address.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

WIDTHS = (32, 64, 128)
PIECE = 16  # bytes that stay together
LINE = 128  # bytes of all banks side by side
BANKS, BANK = 32, 4


def swizzled(offset: int, width: int = 128) -> int:
    """Return where byte `offset` of a tile lies when it is swizzled over `width` bytes.

    `width` is one of WIDTHS. Offsets count from the tile's start, which must be a multiple of 8 * width.
    """
    pieces = width // PIECE
    return offset ^ ((offset // LINE % pieces) * PIECE)


def panel_width(columns: int) -> int:
    """Return the bytes of a row of D's tile that are stored together: the widest swizzle that divides the
    tile.

    `columns` of bf16, a multiple of 16. A tile wider than that is stored as several panels side by side.
    """
    return next(width for width in reversed(WIDTHS) if columns * 2 % width == 0)


def conflicts(addresses: Iterable[int]) -> int:
    """Return how many requests one bank gets at most for pieces of 16 bytes, eight lanes at once."""
    addresses = list(addresses)
    worst = 0
    for first in range(0, len(addresses), 8):  # hardware serves 128 bytes at a time
        words = {
            (address + 4 * word) // BANK for address in addresses[first : first + 8] for word in range(4)
        }
        worst = max(worst, *Counter(word % BANKS for word in words).values())
    return worst
