"""A number of bytes as people say it."""

from __future__ import annotations

UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def in_bytes(size: float, digits: int = 3) -> str:
    """Return a size in bytes in the largest unit it fills: 8 bytes, 16 KiB, 1.5 MiB.

    `digits` are significant; digits before the point are never rounded away: 1023 KiB stays 1023 KiB.
    """
    for unit, step in UNITS:
        if abs(size) >= step:
            value = size / step
            return f"{value:.0f} {unit}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g} {unit}"
    return f"{size:g} byte{'' if size == 1 else 's'}"
