"""The encoder's calls are the talk's calls, and every one of them is explained by a part of the model."""

from collections import Counter

import pytest
import torch

from course_lib.speech.conformer import ConformerEncoder
from course_lib.speech.encoder_profile import (
    calls_by_part,
    calls_in_parts,
    mel_features,
    profile_encoder,
    utterances,
)
from course_lib.speech.operator_work import CONVOLUTIONS
from course_lib.speech.profiling import talk_profile

ONE_OF_EACH = (100, 256, 257)  # frames: all pointwise convolutions slow, only the first conv2d, none


def one_of_each():
    return [mel_features(frames, seed=frames) for frames in ONE_OF_EACH]


def encoder(n_layers: int) -> ConformerEncoder:
    torch.manual_seed(1)
    return ConformerEncoder(n_layers=n_layers).eval()  # sizes of the large model: they decide mkldnn or slow


def totals(calls):
    """Return {operator: calls} of what calls_by_part gives."""
    summed = Counter()
    for (_, operator), times in calls.items():
        summed[operator] += times
    return summed


@pytest.mark.slow
def test_64_utterances_give_the_calls_of_the_talk():
    rows = profile_encoder(ConformerEncoder.large().eval(), utterances(64), threads=2)
    calls = {row.name: row.calls for row in rows}
    talk = {row.name: row.calls for row in talk_profile().cpu}
    assert talk["aten::copy_"] == 21876 and len(talk) == 9
    assert {name: calls[name] for name in talk} == talk


def test_the_talk_s_calls_follow_from_the_architecture():
    wanted = totals(calls_by_part(18, forwards=64))
    talk = {row.name: row.calls for row in talk_profile().cpu}
    slow = talk["aten::_slow_conv2d_forward"]
    assert wanted.pop("aten::convolution") == talk["aten::mkldnn_convolution"] + slow
    assert wanted.pop("aten::copy_") + slow == talk["aten::copy_"]
    for operator, calls in wanted.items():
        assert calls == talk[operator], operator
    assert totals(calls_by_part(18))["aten::addmm"] == 145 == 18 * 8 + 1


def test_slow_convolutions_of_the_mix():
    """37 of an utterance of at most 160 frames, one of 161 to 256: 6 · 37 + 22 = 244."""
    frames = [features.size(2) for features in utterances(64)]
    slow = sum(37 if length <= 160 else length <= 256 for length in frames)
    assert slow == 244 and len(frames) == 64
    assert sum(length > 256 for length in frames) == 36
    assert all(features.shape[:2] == (1, 80) for features in utterances(3))


def test_utterances_are_the_same_every_time():
    first, again, other = utterances(5), utterances(5), utterances(5, seed=8)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert [x.size(2) for x in first] != [x.size(2) for x in other]


def test_calls_of_a_class_each():
    rows = {row.name: row for row in profile_encoder(encoder(2), one_of_each(), threads=2)}
    wanted = totals(calls_by_part(2, forwards=3))
    slow = (2 * 2 + 1) + 1 + 0
    assert rows["aten::_slow_conv2d_forward"].calls == slow
    assert rows["aten::mkldnn_convolution"].calls == wanted.pop("aten::convolution") - slow
    assert rows["aten::copy_"].calls == wanted.pop("aten::copy_") + slow
    assert {name: rows[name].calls for name in wanted} == wanted


@pytest.mark.parametrize("n_layers", [1, 3])
def test_every_call_comes_from_the_part_that_is_said(n_layers):
    wanted = calls_by_part(n_layers)
    operators = {operator for _, operator in wanted}
    model = encoder(n_layers)
    found = calls_in_parts(model, [mel_features(257, seed=1)], threads=2)
    assert {key: calls for key, calls in found.items() if key[1] in operators} == wanted
    assert not model.pre_encode._forward_hooks and not model.layers[0]._forward_pre_hooks


def test_work_is_that_of_the_formulas():
    frames, quarter, d, layers = 257, 65, 512, 2
    rows = {row.name: row for row in profile_encoder(encoder(layers), [mel_features(frames, seed=1)])}
    feed_forward, attention = 4 * d * 4 * d, 4 * d * d  # multiply-adds a frame and layer
    assert rows["aten::addmm"].flops == 2 * quarter * (layers * (feed_forward + attention) + 10240 * d)
    assert rows["aten::mm"].flops == 2 * layers * (2 * quarter - 1) * d * d
    assert rows["aten::bmm"].flops == 2 * layers * d * quarter * (quarter + 2 * quarter - 1 + quarter)
    conv2d = 129 * 40 * d * 9 + quarter * 20 * d * d * 9
    conv1d = quarter * (d * 2 * d + d * 31 + d * d)
    assert sum(rows[name].flops for name in CONVOLUTIONS & set(rows)) == 2 * (conv2d + layers * conv1d)
    assert rows["aten::silu"].bytes == 2 * 4 * layers * quarter * (2 * 4 * d + d)
    weights, out = 4 * layers * d * d, 4 * layers * (2 * quarter - 1) * d
    assert rows["aten::mm"].bytes == weights + 2 * out
    assert rows["aten::mm"].intensity == rows["aten::mm"].flops / rows["aten::mm"].bytes
    assert rows["aten::linear"].intensity is None


def test_work_of_products_is_what_torch_counts():
    from torch.profiler import ProfilerActivity, profile

    model, features = encoder(1), mel_features(180, seed=2)
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], with_flops=True) as recording:
        model(features, torch.tensor([180]))
    counted = {event.key: event.flops for event in recording.key_averages()}
    rows = {row.name: row for row in profile_encoder(model, [features])}
    for name in ("aten::addmm", "aten::mm", "aten::bmm"):
        assert rows[name].flops == counted[name] > 0


def test_times_are_sums_of_the_forwards():
    rows = profile_encoder(encoder(1), one_of_each())
    by_name = {row.name: row for row in rows}
    assert all(0 <= row.self_cpu_us <= row.total_cpu_us + 1 for row in rows)
    assert by_name["aten::linear"].total_cpu_us > by_name["aten::addmm"].total_cpu_us > 0
    assert by_name["aten::linear"].self_cpu_us < by_name["aten::addmm"].self_cpu_us
    assert {row.kind for row in rows} == {"operator"} and not any(row.self_device_us for row in rows)
    assert [row.self_cpu_us for row in rows] == sorted((row.self_cpu_us for row in rows), reverse=True)


def test_threads_are_given_back_and_training_is_refused():
    before = torch.get_num_threads()
    model = encoder(1)
    profile_encoder(model, one_of_each()[:1], threads=before + 1)
    assert torch.get_num_threads() == before
    with pytest.raises(ValueError, match=r"in training mode, but what is measured is inference: call \.eval"):
        profile_encoder(model.train(), one_of_each()[:1])
