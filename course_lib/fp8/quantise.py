"""Matrices in eight bits: every block of numbers gets a scale, and the numbers are rounded to e4m3 beside it.

    codes, scales = quantise(x, ROW_BLOCKS)           # (M, K) e4m3 and (M, ceil(K / 128)) float32
    dequantise(codes, scales, ROW_BLOCKS)             # about x again
    m_major(scales)                                   # the order in which Hopper's TMA can fetch them

The scale of a block is its largest absolute value over 448, e4m3's largest number: then the block fills the
format's range, and no number overflows. A block may be the whole tensor, a row, 128 numbers of a row, or a
square of 128 x 128; DeepSeek-V3 takes the last two for activations and weights (DeepSeek-AI 2024,
arXiv:2412.19437, section 3.3.2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.arguments import is_whole
from course_lib.fp8 import BLOCK
from course_lib.fp8.formats import E4M3

LARGEST = E4M3.largest
SMALLEST_AMAX = 1e-4  # a block of zeros must not be divided by zero
TMA_ALIGNMENT = 4  # float32 numbers in the 16 bytes of which TMA's strides must be multiples
SIDE = BLOCK


class ScaleBlock(NamedTuple):
    """The numbers that share a scale: rows x columns, None for all of them."""

    rows: int | None
    columns: int | None


WHOLE = ScaleBlock(None, None)
ROWS = ScaleBlock(1, None)
ROW_BLOCKS = ScaleBlock(1, SIDE)
SQUARES = ScaleBlock(SIDE, SIDE)


def quantise(x: Tensor, block: ScaleBlock = ROW_BLOCKS) -> tuple[Tensor, Tensor]:
    """Return x (..., M, K) as e4m3 and the scales, float32 (..., ceil(M / rows), ceil(K / columns)).

    x is about codes * scale. NaN and infinity spread over their block. Raises ValueError for what is no
    matrix of floating-point numbers, and for an empty block.
    """
    _checked("x", x, block)
    if not x.is_floating_point():
        raise ValueError(f"x has dtype {x.dtype}, but it must hold floating-point numbers.")
    blocks = _in_blocks(x.float(), block)  # (..., M/rows, rows, K/columns, columns)
    amax = blocks.abs().amax(dim=(-3, -1)).clamp(min=SMALLEST_AMAX)  # (..., M/rows, K/columns)
    codes = blocks * _spread(LARGEST / amax)
    codes = codes.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)  # rounding may reach beyond by one unit
    return _out_of_blocks(codes, x.shape), amax / LARGEST


def dequantise(codes: Tensor, scales: Tensor, block: ScaleBlock = ROW_BLOCKS) -> Tensor:
    """Return codes * scales, float32, in the shape of the codes.

    Raises ValueError for scales of another shape.
    """
    _checked("codes", codes, block)
    blocks = _in_blocks(codes.float(), block)
    wanted = (*blocks.shape[:-3], blocks.shape[-2])
    if tuple(scales.shape) != wanted:
        raise ValueError(
            f"scales has shape {tuple(scales.shape)}, but codes of shape {tuple(codes.shape)} need {wanted}."
        )
    return _out_of_blocks(blocks * _spread(scales.float()), codes.shape)


def m_major(scales: Tensor) -> Tensor:
    """Return float32 (M, K/128) or (groups, M, K/128) with neighbouring rows beside each other in memory.

    TMA, Hopper's tensor memory accelerator, fetches a tile's scales as one run, and wants columns to begin at
    multiples of 16 bytes: the strides become (1, M rounded up to 4). The shape stays; what is so already is
    returned as it is.
    """
    if is_m_major(scales):
        return scales
    *groups, rows, columns = scales.shape
    room = scales.new_zeros((*groups, columns, in_tma(rows)))
    view = room.mT[..., :rows, :]
    view.copy_(scales)
    return view


def is_m_major(scales: Tensor) -> bool:
    """Are these scales laid out as `m_major` lays them out, from a multiple of 16 bytes on?

    TMA reads whole columns of the rounded height, so these must lie in the tensor's memory.
    """
    *groups, rows, columns = scales.shape
    room = in_tma(rows)
    end = scales.storage_offset() + math.prod((*groups, room, columns))
    if scales.data_ptr() % (4 * TMA_ALIGNMENT) or 4 * end > scales.untyped_storage().nbytes():
        return False
    wanted = (*(room * columns for _ in groups), 1, room)
    return all(
        have == want or size == 1
        for have, want, size in zip(scales.stride(), wanted, scales.shape, strict=True)
    )


def _checked(name: str, x: Tensor, block: ScaleBlock) -> None:
    if not isinstance(x, Tensor) or x.dim() < 2:
        shape = f" of shape {tuple(x.shape)}" if isinstance(x, Tensor) else ""
        raise ValueError(
            f"{name} is a {type(x).__name__}{shape}, but it must be a tensor of two dimensions or more."
        )
    for side in block:
        if side is not None and (not is_whole(side) or side < 1):
            raise ValueError(
                f"block is {tuple(block)}, but its sides must be whole numbers above 0, or None for all."
            )


def _in_blocks(x: Tensor, block: ScaleBlock) -> Tensor:
    """Return x (..., M, K) as (..., M/rows, rows, K/columns, columns), filled up with zeros."""
    *front, height, width = x.shape
    rows, columns = block[0] or max(height, 1), block[1] or max(width, 1)
    padding = (0, -width % columns, 0, -height % rows)
    x = torch.nn.functional.pad(x, padding) if any(padding) else x
    return x.reshape(*front, -(-height // rows), rows, -(-width // columns), columns)


def _out_of_blocks(blocks: Tensor, shape: torch.Size) -> Tensor:
    *front, m, rows, k, columns = blocks.shape
    return blocks.reshape(*front, m * rows, k * columns)[..., : shape[-2], : shape[-1]].contiguous()


def _spread(scales: Tensor) -> Tensor:
    return scales[..., :, None, :, None]


def in_tma(rows: int) -> int:
    """Return the rows with which `m_major` lays out so many: a multiple of 4."""
    return -(-rows // TMA_ALIGNMENT) * TMA_ALIGNMENT
