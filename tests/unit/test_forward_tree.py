"""The tree of a forward: every part and operator once, times that add up, layers that merge."""

from types import SimpleNamespace

import pytest
import torch

from course_lib.speech import forward_tree as module
from course_lib.speech.conformer import ConformerEncoder
from course_lib.speech.encoder_profile import mel_features
from course_lib.speech.forward_tree import ForwardTree, Span, forward_tree
from course_lib.speech.part_labels import labelled


def small() -> ConformerEncoder:
    torch.manual_seed(1)
    return ConformerEncoder(n_layers=3, d_model=32, n_heads=2, subsampling_channels=8).eval()


@pytest.fixture(scope="module")
def tree() -> ForwardTree:
    return forward_tree(small(), mel_features(60, seed=1), runs=2, threads=1)


def every(span):
    yield span
    for child in span.children:
        yield from every(child)


def calls(span, name):
    return sum(one.calls for one in every(span) if one.name == name)


def test_parts_stand_in_the_order_they_run_and_under_what_calls_them(tree):
    parts = [child.name for child in tree.root.children if child.kind == "part"]
    assert parts == ["pre_encode", "pos_enc", "layers.0", "layers.1", "layers.2"]
    inner = [child.name for child in tree.root.find("layers.1").children if child.kind == "part"]
    assert inner == [
        "norm_feed_forward1",
        "feed_forward1",
        "norm_self_att",
        "self_attn",
        "norm_conv",
        "conv",
        "norm_feed_forward2",
        "feed_forward2",
        "norm_out",
    ]
    assert tree.root.find("layers.0", "self_attn", "linear_q", "aten::addmm").kind == "operator"
    assert tree.root.find("pre_encode", "conv.2").kind == "part"


def test_every_call_is_in_the_tree_once(tree):
    assert calls(tree.root, "aten::addmm") == 3 * 8 + 1
    assert calls(tree.root, "aten::bmm") == 3 * 3 and calls(tree.root, "aten::mm") == 3
    assert tree.root.find("layers.2", "self_attn", "aten::bmm").calls == 3
    assert not any(one.name == "aten::linear" for one in every(tree.root))  # it only hands on
    assert tree.root.find("layers.0", "conv", "pointwise_conv1", "handing on").calls > 0


def test_a_part_takes_what_is_in_it_and_its_own(tree):
    for span in every(tree.root):
        assert span.own_us >= 0 and span.us == pytest.approx(span.own_us + sum(c.us for c in span.children))
        assert span.kind == "part" or not span.children
    total = sum(span.own_us for span in every(tree.root))
    assert tree.root.us == pytest.approx(total)
    assert 0 < tree.root.find("layers.0").us < tree.root.us


def test_merged_adds_the_layers_up_and_leaves_the_rest(tree):
    merged = tree.merged()
    names = [child.name for child in merged.root.children if child.kind == "part"]
    assert names == ["pre_encode", "pos_enc", "layers.*"]
    assert merged.root.us == pytest.approx(tree.root.us)
    layers = merged.root.find("layers.*")
    assert layers.calls == 3 and layers.find("self_attn", "aten::bmm").calls == 9
    alone = [tree.root.find(f"layers.{n}", "conv").us for n in range(3)]
    assert layers.find("conv").us == pytest.approx(sum(alone))
    assert merged.root.find("pre_encode", "conv.0") == tree.root.find("pre_encode", "conv.0")
    assert tree.what == "0.6 s of speech, 1 thread, medians of 2 forwards"


def event(name, start, self_us, parent=None):
    """Return what the profiler would give for one call."""
    return SimpleNamespace(
        name=name,
        count=1,
        self_cpu_time_total=self_us,
        cpu_time_total=1000.0,
        cpu_parent=parent,
        time_range=SimpleNamespace(start=start),
    )


def test_operators_stand_longest_first_and_what_hands_on_last(monkeypatch):
    root = event("part: encoder", 0, 1.0)
    times = {"aten::add": 5.0, "aten::view": 99.0, "aten::mm": 7.0, "aten::div": 5.0}
    events = [root, *(event(name, 1 + place, us, root) for place, (name, us) in enumerate(times.items()))]
    monkeypatch.setattr(module, "recorded_forwards", lambda *_: iter([events]))
    root = forward_tree(torch.nn.Identity(), mel_features(8, seed=1), runs=1).root
    assert [child.name for child in root.children] == ["aten::mm", "aten::add", "aten::div", "handing on"]


def test_own_times_are_medians_over_the_runs(monkeypatch):
    def run(operator_us, own_us):
        root = event("part: encoder", 0, own_us)
        return [event("aten::mm", 1, operator_us, root), root, event("outside", 9, 1e6)]

    runs = [run(5.0, 1.0), run(500.0, 2.0), run(6.0, 90.0)]
    monkeypatch.setattr(module, "recorded_forwards", lambda *_: iter(runs))
    root = forward_tree(torch.nn.Identity(), mel_features(8, seed=1), runs=3).root
    assert (root.own_us, root.find("aten::mm").us, root.us) == (2.0, 6.0, 8.0)


def test_labels_are_taken_away_even_if_the_forward_fails(tree):
    encoder = small()
    with pytest.raises(ValueError, match="planted"), labelled([("layer", encoder.layers[0])]):
        encoder.layers[0].norm_out.forward = lambda x: (_ for _ in ()).throw(ValueError("planted"))
        encoder(mel_features(60, seed=1), torch.tensor([60]))
    assert not encoder.layers[0]._forward_hooks and not encoder.layers[0]._forward_pre_hooks


def test_a_span_that_is_not_there_is_named(tree):
    with pytest.raises(KeyError, match=r"no 'conv9' in layers\.0, only norm_feed_forward1"):
        tree.root.find("layers.0", "conv9")
    assert Span("x", "part", 1, 2.0).us == 2.0


@pytest.mark.parametrize(
    ("features", "runs", "sentence"),
    [
        (mel_features(60, 1), 0, "runs is 0"),
        (mel_features(60, 1), True, "runs is True"),
        (mel_features(60, 1)[0], 1, r"shape \(80, 60\), but one utterance is \(1, bands, frames\)"),
        (torch.cat([mel_features(60, 1)] * 2), 1, r"shape \(2, 80, 60\)"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(features, runs, sentence):
    with pytest.raises(ValueError, match=sentence):
        forward_tree(small(), features, runs)


def test_an_encoder_in_training_mode_is_refused():
    with pytest.raises(ValueError, match="in training mode"):
        forward_tree(small().train(), mel_features(60, seed=1), 1)
