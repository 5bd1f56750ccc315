"""Scales for blocks of numbers: right to what e4m3 can, and laid out as the hardware asks."""

import pytest
import torch

from course_lib.fp8.quantise import (
    ROW_BLOCKS,
    ROWS,
    SQUARES,
    WHOLE,
    Block,
    dequantise,
    is_m_major,
    m_major,
    quantise,
)

BLOCKS = {"whole": WHOLE, "rows": ROWS, "1x128": ROW_BLOCKS, "128x128": SQUARES}
every_block = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def scale_of_each(x, scales, block):
    """The scale of every number, by a plain loop."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            row = 0 if block.rows is None else i // block.rows
            out[i, j] = scales[row, 0 if block.columns is None else j // block.columns]
    return out


@every_block
@pytest.mark.parametrize("shape", [(1, 1), (3, 130), (128, 256), (200, 300)])
@pytest.mark.parametrize("power_of_two", [False, True])
def test_numbers_come_back_within_half_a_step(block, shape, power_of_two):
    x = normal(*shape) * torch.logspace(-3, 3, shape[1])  # columns of very different size
    codes, scales = quantise(x, block, power_of_two)
    assert codes.dtype == torch.float8_e4m3fn and codes.shape == x.shape and codes.is_contiguous()
    back, each = dequantise(codes, scales, block), scale_of_each(x, scales, block)
    assert torch.equal(back, codes.float() * each)
    step = torch.maximum(
        torch.exp2(torch.floor(torch.log2((x / each).abs().clamp(min=2**-6)))) / 8, torch.tensor(2**-9)
    )
    assert ((back - x).abs() <= each * step / 2 * (1 + 1e-5)).all()


@every_block
def test_a_block_fills_the_range(block):
    x = normal(256, 384, seed=1)
    codes, scales = quantise(x, block)
    filled, _ = quantise(dequantise(codes, scales, block), block)
    assert float(codes.float().abs().max()) == 448
    assert torch.equal(filled.float(), codes.float())  # to round twice changes nothing
    _, powers = quantise(x, block, power_of_two=True)
    assert ((powers / scales >= 1) & (powers / scales < 2)).all()
    assert torch.equal(torch.frexp(powers).mantissa, torch.full_like(powers, 0.5))


def test_shapes_of_scales():
    x = normal(200, 300)
    shapes = {name: tuple(quantise(x, block)[1].shape) for name, block in BLOCKS.items()}
    assert shapes == {"whole": (1, 1), "rows": (200, 1), "1x128": (200, 3), "128x128": (2, 3)}
    codes, scales = quantise(normal(4, 200, 300), SQUARES)
    assert codes.shape == (4, 200, 300) and scales.shape == (4, 2, 3)


def test_each_block_has_its_own_scale_and_a_tail_too():
    x = torch.ones(130, 130)
    x[:, 128:] = 1e-3
    x[128:] *= 100
    _, scales = quantise(x, SQUARES)
    assert torch.allclose(scales * 448, torch.tensor([[1.0, 1e-3], [100.0, 0.1]]))


def test_zeros_and_nan():
    codes, scales = quantise(torch.zeros(2, 256))
    assert not codes.float().any() and (scales > 0).all()
    x = normal(2, 256)
    x[0, 3] = torch.nan
    back = dequantise(*quantise(x))
    assert back[0, :128].isnan().all() and not back[0, 128:].isnan().any() and not back[1].isnan().any()
    assert quantise(torch.zeros(0, 256))[1].shape == (0, 2)


def test_bf16_is_quantised_as_its_numbers_in_float32():
    x = normal(5, 256).bfloat16()
    (codes, scales), (wanted, theirs) = quantise(x), quantise(x.float())
    assert torch.equal(codes.view(torch.uint8), wanted.view(torch.uint8)) and torch.equal(scales, theirs)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(
        ValueError, match=r"x is a Tensor of shape \(3,\), but it must be a tensor of two dimensions"
    ):
        quantise(torch.ones(3))
    with pytest.raises(ValueError, match="x is a list, but"):
        quantise([[1.0]])
    with pytest.raises(ValueError, match=r"x has dtype torch.int64"):
        quantise(torch.ones(2, 2, dtype=torch.int64))
    for side in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="its sides must be whole numbers above 0"):
            quantise(torch.ones(2, 2), Block(1, side))
    with pytest.raises(
        ValueError, match=r"scales has shape \(2, 1\), but codes of shape \(2, 256\) need \(2, 2\)"
    ):
        dequantise(quantise(torch.ones(2, 256))[0], torch.ones(2, 1))


# -- the layout ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, 4, 130])
@pytest.mark.parametrize("groups", [(), (3,)])
def test_m_major(rows, groups):
    scales = normal(*groups, rows, 5)
    turned = m_major(scales)
    room = -(-rows // 4) * 4
    assert torch.equal(turned, scales) and turned.shape == scales.shape
    assert turned.stride()[-2:] == (1, room) and (not groups or turned.stride(0) == 5 * room)
    assert is_m_major(turned) and m_major(turned) is turned
    assert is_m_major(scales) == (rows == 1 and room == 1)


def test_rows_that_need_no_room_between_columns_may_be_a_plain_transpose():
    scales = normal(5, 8).T  # (8, 5), strides (1, 8)
    assert m_major(scales) is scales
    odd = normal(5, 7).T  # strides (1, 7): columns begin at 28 bytes
    assert not is_m_major(odd) and torch.equal(m_major(odd), odd)


def test_the_layout_of_what_are_no_scales_is_refused():
    with pytest.raises(ValueError, match=r"scales has shape \(4,\) and dtype torch.float32"):
        m_major(torch.ones(4))
    with pytest.raises(ValueError, match=r"dtype torch\.float64"):
        m_major(torch.ones(4, 4, dtype=torch.float64))
