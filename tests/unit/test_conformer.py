"""The Conformer has NeMo's tensors, computes what its formulas say, and keeps padding where it belongs."""

import hashlib
import itertools
import math

import pytest

CLASSES = 7


def imports():
    global torch, ConformerCTC, ConformerEncoder, ConvDecoder, masks, relative
    import torch

    from course_lib.speech import relative_attention as relative
    from course_lib.speech.conformer import ConformerCTC, ConformerEncoder, ConvDecoder, masks


def small(**changes):
    """Return a model of two layers in which no tensor has its neutral value (0 for a bias, 1 for a scale)."""
    torch.manual_seed(7)
    sizes = {"feat_in": 16, "n_layers": 2, "d_model": 24, "n_heads": 4, "conv_kernel": 7} | changes
    model = ConformerCTC(ConformerEncoder(**sizes), ConvDecoder(sizes["d_model"], CLASSES)).eval()
    for name, tensor in model.state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 2.0)
        elif name.endswith(("bias", "running_mean", "pos_bias_u", "pos_bias_v")):
            tensor.normal_(0.0, 0.3)
    return model


def batch(*lengths, bands=16):
    """Return features (B, bands, longest) that are 0 after each row's end, and the lengths."""
    torch.manual_seed(8)
    features = torch.randn(len(lengths), bands, max(lengths))
    for row, length in enumerate(lengths):
        features[row, :, length:] = 0.0
    return features, torch.tensor(lengths)


#: Of the lines "name: shape" of NeMo's checkpoint of the large model, 728 tensors, sorted; with 128 pieces.
NEMOS_TENSORS = "47aeb1732af4b01d2800aa8d2f824e381e1a34b30d5b21ff26c78562dd11cde5"


def test_tensors_are_nemos():
    with torch.device("meta"):
        model = ConformerCTC(ConformerEncoder.large(), ConvDecoder(512, 129))
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert len(shapes) == 728
    assert sum(parameter.numel() for parameter in model.encoder.parameters()) == 121_435_136
    assert shapes["encoder.pre_encode.out.weight"] == (512, 10240)
    assert shapes["encoder.layers.17.self_attn.pos_bias_u"] == (8, 64)
    assert shapes["encoder.layers.17.conv.depthwise_conv.weight"] == (512, 1, 31)
    lines = "\n".join(sorted(f"{name}: {shape}" for name, shape in shapes.items()))
    assert hashlib.sha256(lines.encode()).hexdigest() == NEMOS_TENSORS, lines


def assert_float32_is_accurate(model, features, lengths):
    with torch.no_grad():
        encoded, _ = model.encoder(features, lengths)
        log_probs, _ = model(features, lengths)
        model.double()
        exact, _ = model.encoder(features.double(), lengths)
        exact_log_probs, _ = model(features.double(), lengths)
    assert encoded.dtype == torch.float32 and exact.dtype == torch.float64
    assert exact.abs().max() > 1  # something to be wrong about
    assert 0 < (encoded - exact).abs().max() <= 1e-5
    assert 0 < (log_probs - exact_log_probs).abs().max() <= 1e-5


def test_float32_against_float64():
    for masks_subsampling in (False, True):
        assert_float32_is_accurate(small(masks_subsampling=masks_subsampling), *batch(61, 40, 5))


# -- attention ---------------------------------------------------------------------------------------------


def test_positions_are_sines_and_cosines_of_distances():
    angles = [[position / 10000 ** (2 * k / 6) for k in range(3)] for position in range(3, -4, -1)]
    table = relative.sinusoids(4, 6)[0]
    torch.testing.assert_close(table[:, 0::2], torch.tensor(angles).sin())
    torch.testing.assert_close(table[:, 1::2], torch.tensor(angles).cos())


def test_attention_is_its_formula():
    """One row without padding, every head and pair of frames by itself, in float64."""
    model = small().double()
    attention, frames, d_k = model.encoder.layers[0].self_attn, 5, 6
    x = torch.randn(1, frames, 24, dtype=torch.float64)
    positions = relative.sinusoids(frames, 24).double()
    q, k, v = (getattr(attention, f"linear_{name}")(x)[0].view(frames, 4, d_k) for name in "qkv")
    p = attention.linear_pos(positions)[0].view(2 * frames - 1, 4, d_k)
    u, v_bias = attention.pos_bias_u, attention.pos_bias_v
    scores = torch.empty(4, frames, frames, dtype=torch.float64)
    for h, i, j in itertools.product(range(4), range(frames), range(frames)):
        by_distance = (q[i, h] + v_bias[h]) @ p[frames - 1 - (i - j), h]
        scores[h, i, j] = ((q[i, h] + u[h]) @ k[j, h] + by_distance) / math.sqrt(d_k)
    heads = torch.softmax(scores, dim=-1) @ v.transpose(0, 1)  # (4, T, d_k)
    wanted = attention.linear_out(heads.transpose(0, 1).reshape(frames, 24))
    hidden = torch.zeros(1, frames, frames, dtype=torch.bool)
    torch.testing.assert_close(attention(x, positions, hidden)[0], wanted, rtol=0, atol=1e-12)


def test_the_table_of_positions_grows_where_it_must():
    """200 s, the longest that is taken: 20,001 mel frames, T' = 5001, one more than NeMo's table has."""
    for frames in (4999, 5001):
        shown = relative.RelativePositions(d_model=2)(frames, like=torch.zeros(1))
        torch.testing.assert_close(shown, relative.sinusoids(frames, 2), rtol=0, atol=1e-6)
    positions, exact = relative.RelativePositions(d_model=8, max_len=6), relative.sinusoids(6, 8)[:, 3:8]
    half = positions(3, like=torch.zeros(1, dtype=torch.bfloat16))
    assert half.dtype == torch.bfloat16 and torch.equal(half, exact.bfloat16())
    assert torch.equal(positions(3, like=torch.zeros(1)), exact)  # not rounded twice


def test_masks_hide_what_is_not_real():
    padding, hidden = masks(torch.tensor([3, 1]), 3)
    assert padding.tolist() == [[False] * 3, [False, True, True]]
    assert not hidden[0].any()
    assert hidden[1].tolist() == [[False, True, True], [True] * 3, [True] * 3]
    scores = torch.tensor([[1.0, 2.0, 50.0], [0.0, 0.0, 0.0], [5.0, -10_000.0, 5.0]])
    unseen = torch.tensor([[False, False, True], [True] * 3, [True, False, True]])
    weights = relative.masked_softmax(scores, unseen)
    torch.testing.assert_close(weights[0, :2], torch.softmax(scores[0, :2], dim=0))
    assert weights[0, 2] == 0 and not weights[1].any()
    # as in NeMo, −10000 before the softmax: a visible score as low as that shares the weight, which is lost
    assert weights[2].tolist() == pytest.approx([0, 1 / 3, 0])


# -- lengths -----------------------------------------------------------------------------------------------


def test_subsampling_leaves_a_quarter():
    model = small()
    for frames in range(1, 18):
        encoded, encoded_lengths = model.encoder(*batch(frames))
        quarter = math.ceil(math.ceil(frames / 2) / 2)
        assert encoded.shape == (1, 24, quarter)
        assert encoded_lengths.tolist() == [quarter] and encoded_lengths.dtype == torch.int64
    features, lengths = batch(61, 40, 5, 1)
    log_probs, encoded_lengths = model(features, lengths.to(torch.int32))
    assert encoded_lengths.tolist() == [16, 10, 2, 1] and log_probs.shape == (4, 16, CLASSES)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(4, 16))


# -- doors -------------------------------------------------------------------------------------------------


def test_sizes_that_cannot_be():
    for sizes, message in (
        ({"d_model": 20, "n_heads": 3}, "d_model is 20, which 3 heads cannot share"),
        ({"d_model": 21, "n_heads": 3}, "d_model is 21, but it must be even"),
        ({"conv_kernel": 30}, "conv_kernel is 30, but it must be odd"),
        ({"n_layers": 0}, "n_layers is 0, but it must be a whole number of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            small(**sizes)


def test_batches_that_cannot_be():
    model, two, one = small(), torch.zeros(2, 16, 9), torch.zeros(1, 16, 9)
    for features, lengths, error, message in (
        (torch.zeros(2, 80, 9), [9, 9], ValueError, r"\(2, 80, 9\), but must be \(B, 16, T\)"),
        (torch.zeros(1, 16, 0), [0], ValueError, "holds no frame"),
        (one.double(), [9], TypeError, r"float64, the weights torch\.float32"),
        ("hello", [9], TypeError, "features are a str"),
        (two, [9], ValueError, r"lengths have shape \(1,\), features 2 rows"),
        (two, [0, 9], ValueError, r"lengths\[0\] is 0, but must be 1 to 9"),
        (one, [9.0], TypeError, r"lengths are torch\.float32, but frames are counted"),
        (one.to("meta"), [9], ValueError, "features are on meta, the weights on cpu"),
    ):
        with pytest.raises(error, match=message) as caught:
            model(features, torch.as_tensor(lengths))
        assert "\n" not in str(caught.value)
