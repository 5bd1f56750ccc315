"""The Conformer has NeMo's tensors, computes what its formulas say, and keeps padding where it belongs."""

import math

import pytest
import torch

from course_lib.speech.conformer import ConformerCTC, ConformerEncoder, ConvDecoder, masks
from course_lib.speech.relative_attention import RelativePositions, masked_softmax, rel_shift, sinusoids

CLASSES = 7


def small(**changes) -> ConformerCTC:
    """Return a model of two layers in which no tensor has its neutral value (0 for a bias, 1 for a scale)."""
    torch.manual_seed(7)
    sizes = {"feat_in": 16, "n_layers": 2, "d_model": 24, "n_heads": 4, "conv_kernel": 7} | changes
    model = ConformerCTC(ConformerEncoder(**sizes), ConvDecoder(sizes["d_model"], CLASSES)).eval()
    return untrained_but_alive(model)


def untrained_but_alive(model):
    for name, tensor in model.state_dict().items():
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 2.0)
        elif name.endswith(("bias", "running_mean", "pos_bias_u", "pos_bias_v")):
            tensor.normal_(0.0, 0.3)
    return model


def batch(*lengths: int, bands: int = 16):
    """Return features (B, bands, longest) that are 0 after each row's end, and the lengths."""
    torch.manual_seed(8)
    features = torch.randn(len(lengths), bands, max(lengths))
    for row, length in enumerate(lengths):
        features[row, :, length:] = 0.0
    return features, torch.tensor(lengths)


def expected_tensors(layers: int, d: int, heads: int, kernel: int, channels: int, reduced: int, classes: int):
    """Return name -> shape, written down from NeMo's checkpoint of the large model (facts: 728 tensors)."""
    shapes = {
        "encoder.pre_encode.conv.0.weight": (channels, 1, 3, 3),
        "encoder.pre_encode.conv.0.bias": (channels,),
        "encoder.pre_encode.conv.2.weight": (channels, channels, 3, 3),
        "encoder.pre_encode.conv.2.bias": (channels,),
        "encoder.pre_encode.out.weight": (d, reduced),
        "encoder.pre_encode.out.bias": (d,),
        "decoder.decoder_layers.0.weight": (classes, d, 1),
        "decoder.decoder_layers.0.bias": (classes,),
    }
    for layer in range(layers):
        for norm in ("feed_forward1", "self_att", "conv", "feed_forward2", "out"):
            for kind in ("weight", "bias"):
                shapes[f"encoder.layers.{layer}.norm_{norm}.{kind}"] = (d,)
        with_bias = {
            "feed_forward1.linear1": (4 * d, d),
            "feed_forward1.linear2": (d, 4 * d),
            "feed_forward2.linear1": (4 * d, d),
            "feed_forward2.linear2": (d, 4 * d),
            "self_attn.linear_q": (d, d),
            "self_attn.linear_k": (d, d),
            "self_attn.linear_v": (d, d),
            "self_attn.linear_out": (d, d),
            "conv.pointwise_conv1": (2 * d, d, 1),
            "conv.depthwise_conv": (d, 1, kernel),
            "conv.pointwise_conv2": (d, d, 1),
        }
        for name, shape in with_bias.items():
            shapes[f"encoder.layers.{layer}.{name}.weight"] = shape
            shapes[f"encoder.layers.{layer}.{name}.bias"] = shape[:1]
        shapes[f"encoder.layers.{layer}.self_attn.linear_pos.weight"] = (d, d)
        shapes[f"encoder.layers.{layer}.self_attn.pos_bias_u"] = (heads, d // heads)
        shapes[f"encoder.layers.{layer}.self_attn.pos_bias_v"] = (heads, d // heads)
        for name in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"encoder.layers.{layer}.conv.batch_norm.{name}"] = (d,)
        shapes[f"encoder.layers.{layer}.conv.batch_norm.num_batches_tracked"] = ()
    return shapes


def shapes_of(model):
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def test_tensors_of_the_large_model():
    with torch.device("meta"):
        model = ConformerCTC(ConformerEncoder.large(), ConvDecoder(512, 129))
    wanted = expected_tensors(18, d=512, heads=8, kernel=31, channels=512, reduced=10240, classes=129)
    assert shapes_of(model) == wanted
    assert len(wanted) == 728
    assert sum(parameter.numel() for parameter in model.encoder.parameters()) == 121_435_136


def test_tensors_of_a_small_model_with_odd_sizes():
    encoder = ConformerEncoder(13, n_layers=1, d_model=12, n_heads=3, conv_kernel=5, subsampling_channels=6)
    wanted = expected_tensors(1, d=12, heads=3, kernel=5, channels=6, reduced=6 * 4, classes=CLASSES)
    assert shapes_of(ConformerCTC(encoder, ConvDecoder(12, CLASSES))) == wanted


@torch.no_grad()
def assert_float32_is_accurate(model, features, lengths):
    encoded, _ = model.encoder(features, lengths)
    log_probs, _ = model(features, lengths)
    model.double()
    exact, _ = model.encoder(features.double(), lengths)
    exact_log_probs, _ = model(features.double(), lengths)
    assert encoded.dtype == torch.float32 and exact.dtype == torch.float64
    assert exact.abs().max() > 1  # something to be wrong about
    assert 0 < (encoded - exact).abs().max() <= 1e-5
    assert 0 < (log_probs - exact_log_probs).abs().max() <= 1e-5


@pytest.mark.parametrize("masks_subsampling", [False, True])
def test_float32_against_float64(masks_subsampling):
    assert_float32_is_accurate(small(masks_subsampling=masks_subsampling), *batch(61, 40, 5))


@pytest.mark.slow
def test_float32_against_float64_large():
    torch.manual_seed(3)
    model = ConformerCTC(ConformerEncoder.large(), ConvDecoder(512, 129)).eval()
    assert_float32_is_accurate(model, *batch(300, bands=80))


@pytest.mark.parametrize("frames", [1, 2, 5, 8])
def test_rel_shift_is_a_choice_by_distance(frames):
    scores = torch.arange(2 * 3 * frames * (2 * frames - 1)).view(2, 3, frames, 2 * frames - 1).double()
    shifted = rel_shift(scores)
    for i in range(frames):
        for j in range(frames):
            column = frames - 1 - (i - j)  # column 0 of the table is distance T − 1
            assert torch.equal(shifted[:, :, i, j], scores[:, :, i, column])


def test_positions_run_from_far_past_to_far_future():
    table = sinusoids(4, 6)
    assert table.shape == (1, 7, 6)
    for row, position in enumerate(range(3, -4, -1)):
        for k in range(3):
            angle = position / 10000 ** (2 * k / 6)
            assert table[0, row, 2 * k].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[0, row, 2 * k + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_attention_is_its_formula():
    """One row without padding, every head and pair of frames by itself, in float64."""
    model = small().double()
    attention, frames, d_k = model.encoder.layers[0].self_attn, 5, 6
    x = torch.randn(1, frames, 24, dtype=torch.float64)
    positions = sinusoids(frames, 24).double()
    hidden = torch.zeros(1, frames, frames, dtype=torch.bool)
    q, k, v = (getattr(attention, f"linear_{name}")(x)[0].view(frames, 4, d_k) for name in "qkv")
    p = attention.linear_pos(positions)[0].view(2 * frames - 1, 4, d_k)
    heads = []
    for head in range(4):
        scores = torch.empty(frames, frames, dtype=torch.float64)
        for i in range(frames):
            for j in range(frames):
                by_content = (q[i, head] + attention.pos_bias_u[head]) @ k[j, head]
                by_distance = (q[i, head] + attention.pos_bias_v[head]) @ p[frames - 1 - (i - j), head]
                scores[i, j] = (by_content + by_distance) / math.sqrt(d_k)
        heads.append(torch.softmax(scores, dim=-1) @ v[:, head])
    wanted = attention.linear_out(torch.cat(heads, dim=-1))
    torch.testing.assert_close(attention(x, positions, hidden)[0], wanted, rtol=0, atol=1e-12)


def test_longer_than_the_table_of_positions():
    """The table grows where it must, and what it says does not depend on how it came to be."""
    features, lengths = batch(61)
    with torch.no_grad():
        grown, _ = small(pos_emb_max_len=4)(features, lengths)
        ample, _ = small(pos_emb_max_len=99)(features, lengths)
    assert torch.equal(grown, ample)


@pytest.mark.parametrize(("frames", "table"), [(4999, 5000), (5000, 5000), (5001, 5001), (5004, 5004)])
def test_the_table_grows_from_the_first_frame_that_it_lacks(frames, table):
    """200 s, the longest that is taken: 20,001 mel frames, T' = 5001, one more than NeMo's table has."""
    positions = RelativePositions(d_model=2)
    given = positions.table
    rows = positions(frames, like=torch.zeros(1))
    assert rows.shape == (1, 2 * frames - 1, 2) and positions.table.size(1) == 2 * table - 1
    assert (positions.table is given) == (table == 5000)
    torch.testing.assert_close(rows, sinusoids(frames, 2), rtol=0, atol=1e-6)


def test_a_table_that_was_half_is_not_rounded_twice():
    positions = RelativePositions(d_model=8, max_len=6)
    half = positions(3, like=torch.zeros(1, dtype=torch.bfloat16))
    assert half.dtype == torch.bfloat16 and torch.equal(half, sinusoids(6, 8)[:, 3:8].bfloat16())
    assert torch.equal(positions(3, like=torch.zeros(1)), sinusoids(6, 8)[:, 3:8])
    assert positions.table.size(1) == 11  # as long as it was


@pytest.mark.parametrize("frames", range(1, 18))
def test_subsampling_leaves_a_quarter(frames):
    features, lengths = batch(frames)
    encoded, encoded_lengths = small().encoder(features, lengths)
    quarter = math.ceil(math.ceil(frames / 2) / 2)
    assert encoded.shape == (1, 24, quarter)
    assert encoded_lengths.tolist() == [quarter] and encoded_lengths.dtype == torch.int64


def test_lengths_of_a_batch_and_log_probabilities():
    features, lengths = batch(61, 40, 5, 1)
    log_probs, encoded_lengths = small()(features, lengths.to(torch.int32))
    assert encoded_lengths.tolist() == [16, 10, 2, 1]
    assert log_probs.shape == (4, 16, CLASSES)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(4, 16))


def test_masks_hide_what_is_not_real():
    padding, hidden = masks(torch.tensor([3, 1]), 3)
    assert padding.tolist() == [[False] * 3, [False, True, True]]
    assert not hidden[0].any()
    assert hidden[1].tolist() == [[False, True, True], [True] * 3, [True] * 3]


def test_masked_softmax_gives_hidden_frames_nothing():
    scores = torch.tensor([[1.0, 2.0, 50.0], [0.0, 0.0, 0.0]])
    hidden = torch.tensor([[False, False, True], [True, True, True]])
    weights = masked_softmax(scores, hidden)
    torch.testing.assert_close(weights[0, :2], torch.softmax(scores[0, :2], dim=0))
    assert weights[0, 2] == 0 and not weights[1].any()


def test_a_hidden_frame_scores_as_in_nemo():
    """−10000 before the softmax: a visible score as low as that shares the weight, which is then lost."""
    weights = masked_softmax(torch.tensor([[5.0, -10_000.0]]), torch.tensor([[True, False]]))
    assert weights.tolist() == [[0.0, 0.5]]


@torch.no_grad()
def error_of_rows_in_a_batch(model, *lengths: int, rubbish: bool = False) -> float:
    """Return the largest difference between rows computed alone and in one batch, real frames only."""
    features, wanted_lengths = batch(*lengths)
    if rubbish:
        for row, length in enumerate(lengths):
            features[row, :, length:] = 100.0
    together, encoded_lengths = model.encoder(features, wanted_lengths)
    worst = 0.0
    for row, length in enumerate(lengths):
        alone, _ = model.encoder(features[row : row + 1, :, :length], torch.tensor([length]))
        real = together[row : row + 1, :, : int(encoded_lengths[row])]
        assert alone.shape == real.shape
        worst = max(worst, (alone - real).abs().max().item())
    return worst


def test_new_mode_a_row_does_not_see_its_neighbours():
    model = small(masks_subsampling=True)
    assert error_of_rows_in_a_batch(model, 61, 41, 38, 7, 1) <= 1e-5
    assert error_of_rows_in_a_batch(model, 61, 41, 38, 7, 1, rubbish=True) <= 1e-5


def test_old_mode_padding_leaks_even_when_it_is_zero():
    assert error_of_rows_in_a_batch(small(), 61, 41, 38, 7, 1) > 1e-2
    assert error_of_rows_in_a_batch(small(), 61, 61) <= 1e-5  # no padding, no leak


def test_both_modes_agree_on_one_row():
    features, lengths = batch(61)
    with torch.no_grad():
        assert torch.equal(small()(features, lengths)[0], small(masks_subsampling=True)(features, lengths)[0])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"d_model": 20, "n_heads": 3}, "d_model is 20, which 3 heads cannot share"),
        ({"d_model": 21, "n_heads": 3}, "d_model is 21, but it must be even"),
        ({"conv_kernel": 30}, "conv_kernel is 30, but it must be odd"),
        ({"n_layers": 0}, "n_layers is 0, but it must be a whole number of at least 1"),
        ({"feat_in": 8.0}, r"feat_in is 8\.0, but it must be a whole number"),
        ({"subsampling_channels": True}, "subsampling_channels is True, but it must be a whole number"),
    ],
)
def test_sizes_that_cannot_be(sizes, message):
    with pytest.raises(ValueError, match=message):
        small(**sizes)


@pytest.mark.parametrize(
    ("features", "lengths", "error", "message"),
    [
        (torch.zeros(2, 80, 9), [9, 9], ValueError, r"\(2, 80, 9\), but must be \(B, 16, T\)"),
        (torch.zeros(16, 9), [9], ValueError, r"shape \(16, 9\), but must be \(B, 16, T\)"),
        (torch.zeros(1, 16, 0), [0], ValueError, "holds no frame"),
        (torch.zeros(0, 16, 4), [], ValueError, "holds no frame"),
        (torch.zeros(1, 16, 9, dtype=torch.float64), [9], TypeError, r"float64, the weights torch\.float32"),
        ("hello", [9], TypeError, "features are a str"),
        (torch.zeros(2, 16, 9), [9], ValueError, r"lengths have shape \(1,\), features 2 rows"),
        (torch.zeros(2, 16, 9), [9, 10], ValueError, r"lengths\[1\] is 10, but must be 1 to 9"),
        (torch.zeros(2, 16, 9), [0, 9], ValueError, r"lengths\[0\] is 0, but must be 1 to 9"),
        (torch.zeros(2, 16, 9), [-3, 9], ValueError, r"lengths\[0\] is -3"),
        (torch.zeros(1, 16, 9), [9.0], TypeError, r"lengths are torch\.float32, but frames are counted"),
        (torch.zeros(1, 16, 9, device="meta"), [9], ValueError, "features are on meta, the weights on cpu"),
    ],
)
def test_batches_that_cannot_be(features, lengths, error, message):
    lengths = torch.tensor(lengths) if lengths else torch.zeros(0, dtype=torch.int64)
    with pytest.raises(error, match=message) as caught:
        small()(features, lengths)
    assert str(caught.value).count("\n") == 0


def test_lengths_must_be_a_tensor():
    with pytest.raises(TypeError, match="lengths are list, but frames are counted in whole numbers"):
        small()(torch.zeros(1, 16, 9), [9])


def test_encoder_and_decoder_must_fit():
    with pytest.raises(ValueError, match="vectors of 24, the decoder wants 25"):
        ConformerCTC(small().encoder, ConvDecoder(25, CLASSES))
