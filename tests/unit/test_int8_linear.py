"""Linear layers in int8: the error is that of rounding both operands, and nothing else is touched."""

import warnings

import pytest
import torch
from torch import nn

from course_lib.speech.conformer import ConformerEncoder
from course_lib.speech.int8 import Int8Linear, int8_product, quantise, sharing_weights, with_int8_linears


@pytest.fixture(autouse=True)
def no_gradients():
    torch.manual_seed(0)
    with torch.no_grad():
        yield


def small():
    return ConformerEncoder(n_layers=2, d_model=32, n_heads=4, conv_kernel=5, pos_emb_max_len=50).eval()


def test_numbers_are_off_by_half_a_step_at_most():
    x = torch.randn(6, 40) * torch.tensor([1e-3, 1.0, 1e3, 0.0, 1.0, 1e-30])[:, None]
    q, scale = quantise(x)
    assert q.dtype == torch.int8 and scale.shape == (6, 1)
    assert ((q * scale - x).abs() <= scale / 2 * 1.001).all()
    assert q.abs().amax(dim=1).tolist() == [127, 127, 127, 0, 127, 127]


def test_products_are_exact():
    q, weight = (torch.randint(-127, 128, (rows, 64), dtype=torch.int8) for rows in (3, 24))
    assert torch.equal(int8_product(q, weight), (q.long() @ weight.long().t()).int())


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_is_a_linear_layer_up_to_rounding(bias):
    linear, x = nn.Linear(64, 24, bias=bias), torch.randn(2, 7, 64)
    y, wanted = Int8Linear(linear)(x), linear(x)
    assert y.shape == (2, 7, 24) and y.dtype == torch.float32
    # each product is off by half a step of either operand: 64 of them, at most 1/254 of the largest
    bound = 2.1 / 254 * (x.abs().amax(-1, keepdim=True) * linear.weight.abs().amax(1)) * 64
    assert ((y - wanted).abs() <= bound).all()
    assert 1e-4 < float((y - wanted).abs().max() / wanted.abs().max()) < 0.03


def test_rows_and_channels_have_scales_of_their_own():
    linear = nn.Linear(16, 8, bias=False)
    linear.weight[0] *= 1e4
    x = torch.randn(2, 16) * torch.tensor([[1.0], [1e4]])
    y, wanted = Int8Linear(linear)(x), linear(x)
    assert (((y - wanted).abs() / wanted.abs().amax(dim=1, keepdim=True))[:, 0] < 0.03).all()
    assert ((y - wanted)[:, 1:].abs() / wanted[:, 1:].abs().amax(dim=1, keepdim=True) < 0.03).all()


def test_the_encoder_keeps_all_but_its_linear_layers():
    encoder = small()
    made = with_int8_linears(encoder)
    kinds = [type(module).__name__ for module in made.modules()]
    assert kinds.count("Int8Linear") == 2 * 9 + 1 and "Linear" not in kinds
    assert made.pre_encode.conv[0].weight is encoder.pre_encode.conv[0].weight
    assert made.layers[1].norm_out.weight is encoder.layers[1].norm_out.weight
    assert made.layers[0].feed_forward1.linear1.bias.data_ptr() == (
        encoder.layers[0].feed_forward1.linear1.bias.data_ptr()
    )
    assert all(type(module).__name__ != "Int8Linear" for module in encoder.modules())
    x, lengths = torch.randn(2, 80, 40), torch.tensor([40, 33])
    y, wanted = made(x, lengths)[0], encoder(x, lengths)[0]
    assert 1e-4 < float((y - wanted).abs().max() / wanted.abs().max()) < 0.05


def test_a_shared_copy_has_modules_of_its_own():
    encoder = small()
    made = sharing_weights(encoder)
    assert made.layers[0] is not encoder.layers[0]
    pairs = zip(made.parameters(), encoder.parameters(), strict=True)
    assert all(one is other for one, other in pairs)


def test_nothing_deprecated_is_used():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Int8Linear(nn.Linear(16, 8))(torch.randn(3, 16))


def test_sizes_that_have_no_int8_products_are_refused():
    with pytest.raises(ValueError, match=r"from 12 to 8, but int8 products need multiples of 8"):
        Int8Linear(nn.Linear(12, 8))
