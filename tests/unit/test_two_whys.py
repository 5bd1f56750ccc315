"""The model of the talk's two ratios: its work is the encoder's, its constants are not what it predicts."""

import dataclasses

import pytest

from course_lib.measure.gpu_published import PUBLISHED
from course_lib.speech import two_whys
from course_lib.speech.profiling import talk_profile
from course_lib.speech.two_whys import CannotBe, Product, Times

TALK = talk_profile()
GPU = PUBLISHED["RTX A6000"]  # of the talk's generation, with 128 FMAs a cycle in each SM


@pytest.fixture(scope="module")
def lengths():
    from course_lib.speech.encoder_profile import utterances

    return [features.size(2) for features in utterances(64)]


def test_the_products_are_the_encoders(lengths):
    from course_lib.speech.conformer import ConformerEncoder
    from course_lib.speech.encoder_profile import mel_features, profile_encoder

    encoder = ConformerEncoder(n_layers=1).eval()
    operators = {"addmm": {"aten::addmm"}, "mm": {"aten::mm"}}
    operators["convolution"] = {"aten::mkldnn_convolution", "aten::_slow_conv2d_forward"}
    for frames in (301, 97):
        rows = {row.name: row for row in profile_encoder(encoder, [mel_features(frames, seed=1)])}
        for family, names in operators.items():
            mine = [product for product in two_whys.products(frames, layers=1) if product.family == family]
            theirs = [rows[name] for name in names if name in rows]
            assert sum(product.calls for product in mine) == sum(row.calls for row in theirs), family
            assert sum(product.flops for product in mine) == sum(row.flops for row in theirs), family
            moved = sum(row.bytes for row in theirs)  # with the biases
            assert sum(product.bytes for product in mine) == pytest.approx(moved, rel=0.02), family
    slow = [product.calls for length in lengths for product in two_whys.products(length) if product.slow]
    assert sum(slow) == 244
    assert not any(product.slow for frames in (60, 200) for product in two_whys.products(frames, batch=2))


def test_a_kernel_takes_as_long_as_its_tiles_or_its_bytes():
    """SMs that do a tile of 32 x 64 and a sum over 10 in 1 s: 40,960 FLOP; 3 tiles on 2 SMs take 2 s."""
    known = two_whys.Constants(
        cpu_flops_per_s=1, call_s=9, start_s=0.5, sm_flops_per_s=40_960, sms=2, bytes_per_s=1e9, peak_flops=1
    )
    product = Product("mm", "three tiles", calls=7, M=64, K=10, N=96)
    moved = 4 * (64 * 10 + 10 * 96 + 64 * 96)
    assert known.device_s(product) == pytest.approx(7 * (0.5 + 2))
    slow_memory = dataclasses.replace(known, bytes_per_s=moved / 3)
    assert slow_memory.device_s(product) == pytest.approx(7 * (0.5 + 3))
    times = Times(cpu_s=12.0, host_s=1.0, device_s=3.0)
    assert (times.ratio, times.device_ratio) == (3.0, 4.0)


def test_both_ratios_are_missed_by_as_much_as_the_chapter_says(lengths):
    from course_lib import views
    from course_lib.speech.encoder_profile import LENGTH_CLASSES

    addmm, convolution = two_whys.predict(TALK, lengths, GPU)
    assert (addmm.calls, convolution.calls) == (9280, 2432)
    assert round(addmm.talk.ratio, 2) == 7.90 and round(convolution.talk.ratio, 2) == 11.46
    gaps = [getattr(convolution, who).ratio / getattr(addmm, who).ratio for who in ("predicted", "talk")]
    assert [round(gap, 2) for gap in gaps] == [2.27, 1.45]
    assert addmm.miss == pytest.approx(-0.23, abs=0.01)
    assert convolution.miss == pytest.approx(0.20, abs=0.01)
    assert addmm.at_peak > addmm.predicted.device_ratio > addmm.predicted.ratio
    alt = views.two_whys((addmm, convolution)).alt
    assert "the talk 7.90x and 11.5x" in alt and "addmm: 75.2x at the GPU's peak" in alt
    for end in (0, 1):  # how long the talk's utterances were is not said; the calls leave room in classes
        extreme = [one[end] for one in LENGTH_CLASSES for _ in range(one[2])]
        assert all(abs(why.miss) < 1 / 3 for why in two_whys.predict(TALK, extreme, GPU))
    for once, twice in zip((addmm, convolution), two_whys.predict(TALK, lengths * 2, GPU), strict=True):
        assert once.calls == twice.calls  # a sample of the lengths says the same for 64 forwards
        assert dataclasses.astuple(once.predicted) == pytest.approx(dataclasses.astuple(twice.predicted))


def test_what_is_predicted_is_not_looked_at(lengths):
    hidden = {"aten::addmm", "aten::mkldnn_convolution", "aten::cudnn_convolution"}

    def doubled(rows):
        return tuple(
            dataclasses.replace(row, self_us=2 * row.self_us, device_us=2 * (row.device_us or 0))
            if row.name in hidden
            else row
            for row in rows
        )

    other = dataclasses.replace(TALK, cpu=doubled(TALK.cpu), gpu=doubled(TALK.gpu))
    before, after = (two_whys.predict(talk, lengths, GPU) for talk in (TALK, other))
    assert [why.predicted for why in before] == [why.predicted for why in after]
    assert after[0].talk.cpu_s == 2 * before[0].talk.cpu_s
    with pytest.raises(CannotBe, match=r"SM of the A100 11\.6 us at its peak, but .* took 10\.9 us"):
        two_whys.predict(TALK, lengths, PUBLISHED["A100"])


def test_batches_fill_the_gpu(lengths):
    known = two_whys.constants(TALK, lengths, GPU)
    for family in ("addmm", "convolution"):
        shares = [two_whys.share_of_peak(family, 293, batch, known) for batch in (1, 4, 16, 64)]
        assert shares == sorted(shares)
        assert shares[-1] < known.sm_flops_per_s * known.sms / known.peak_flops  # what cuBLAS reaches
