"""The encoder's calls are the talk's calls, every one of them from a part of the model, with its work."""

from collections import Counter

import pytest

from course_lib.speech import profiling
from course_lib.speech.operator_work import CONVOLUTIONS, CallWork, work
from course_lib.speech.profiling import talk_profile

ONE_OF_EACH = (100, 256, 257)  # frames: all pointwise convolutions slow, only the first conv2d, none


def imports():
    global torch, p, tree
    import torch

    from course_lib.speech import encoder_profile as p
    from course_lib.speech import forward_tree as tree


def encoder(n_layers=1, **sizes):
    """Return an encoder of the large one's sizes: they decide mkldnn or slow."""
    from course_lib.speech.conformer import ConformerEncoder

    torch.manual_seed(1)
    return ConformerEncoder(n_layers=n_layers, **sizes).eval()


def totals(calls):
    """Return {operator: calls} of what calls_by_part gives."""
    summed = Counter()
    for (_, operator), times in calls.items():
        summed[operator] += times
    return summed


# -- torch's profiler as plain rows --------------------------------------------------------------------------


def two_layers():
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.SiLU(), torch.nn.Linear(64, 8)).eval()


def test_rows_are_of_one_pass_and_threads_are_given_back():
    before = torch.get_num_threads()
    rows = profiling.profile(two_layers(), torch.randn(10, 32), runs=3)
    assert [row.self_us for row in rows] == sorted((row.self_us for row in rows), reverse=True)
    rows = {row.name: row for row in rows}
    addmm, linear = rows["aten::addmm"], rows["aten::linear"]
    assert addmm.calls == 2 and addmm.flops == 2 * 10 * 32 * 64 + 2 * 10 * 64 * 8
    assert rows["aten::silu"].calls == 1 and rows["aten::silu"].flops == 0
    assert 0 < addmm.self_us <= addmm.total_us <= linear.total_us
    assert linear.self_us < linear.total_us / 2  # it only hands on to addmm
    with pytest.raises(TypeError):
        profiling.profile(two_layers(), "no tensor", threads=1)
    assert torch.get_num_threads() == before


def test_the_talks_tables():
    talk = talk_profile()
    cpu, gpu = ({row.name: row for row in rows} for rows in (talk.cpu, talk.gpu))
    assert cpu["aten::addmm"].calls == gpu["aten::addmm"].calls == 9280
    assert cpu["aten::addmm"].self_us == 2_335_000
    assert sum(row.calls for name, row in cpu.items() if "conv" in name) == 3340 + 244
    on_gpu = gpu["aten::addmm"].self_us + gpu["aten::addmm"].device_us
    assert cpu["aten::addmm"].self_us / on_gpu == pytest.approx(7.90, abs=0.005)
    assert "not measured here" in talk.source


# -- the work of single calls, by hand -----------------------------------------------------------------------


def call(*arguments, values=()):
    """Return the arguments of a call, each (shape, type)."""
    shapes, types = zip(*arguments, strict=True)
    return shapes, types, values


NUMBER, VECTOR = ((), "Scalar"), ((4,), "float")
X, HIDDEN = ((2, 3, 4), "float"), ((2, 1, 4), "bool")
BY_HAND = {  # operator: arguments, operations, bytes
    "aten::silu": (call(X), 4 * 24, 4 * (24 + 24)),  # negate, exp, add, divide
    "aten::glu": (call(X, NUMBER), 5 * 12, 4 * (24 + 12)),  # half of what comes in
    "aten::_softmax": (call(X, NUMBER, NUMBER), 5 * 24, 4 * (24 + 24)),
    "aten::native_layer_norm": (call(X, NUMBER, VECTOR, VECTOR, NUMBER), 8 * 24, 4 * (24 + 4 + 4 + 24)),
    "aten::native_batch_norm": (call(X, *[((3,), "float")] * 4), 2 * 24, 4 * (24 + 4 * 3 + 24)),  # by channel
    "aten::add": (call(X, VECTOR, NUMBER), 24, 4 * (24 + 4 + 24)),
    "aten::mul": (call(((3, 1), "double"), ((1, 5), "double")), 15, 8 * (3 + 5 + 15)),
    "aten::masked_fill_": (call(X, HIDDEN, NUMBER), 0, 4 * 24 + 8 + 4 * 24),
    "aten::copy_": (call(X, ((2, 3, 4), "c10::BFloat16"), NUMBER), 0, 4 * 24 + 2 * 24),
    "aten::bmm": (call(((7, 2, 3), "c10::Half"), ((7, 3, 5), "c10::Half")), 2 * 210, 2 * 7 * (6 + 15 + 10)),
    "aten::addmm": (call(((5,), "float"), ((2, 3), "float"), ((3, 5), "float")), 60, 4 * (5 + 6 + 15 + 10)),
    "aten::transpose": (call(X, NUMBER, NUMBER), 0, 0),
}


def test_work_by_hand():
    for name, (arguments, flops, moved) in BY_HAND.items():
        assert work(name, *arguments) == CallWork(flops, moved), name


# -- the talk's experiment -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_64_utterances_give_the_calls_of_the_talk():
    rows = p.profile_encoder(encoder(18), p.utterances(64), threads=2)
    calls = {row.name: row.calls for row in rows}
    talk = {row.name: row.calls for row in talk_profile().cpu}
    assert talk["aten::copy_"] == 21876 and len(talk) == 9
    assert {name: calls[name] for name in talk} == talk


def test_the_talk_s_calls_follow_from_the_architecture():
    wanted = totals(p.calls_by_part(18, forwards=64))
    talk = {row.name: row.calls for row in talk_profile().cpu}
    slow = talk["aten::_slow_conv2d_forward"]
    assert wanted.pop("aten::convolution") == talk["aten::mkldnn_convolution"] + slow
    assert wanted.pop("aten::copy_") + slow == talk["aten::copy_"]
    for operator, calls in wanted.items():
        assert calls == talk[operator], operator
    assert totals(p.calls_by_part(18))["aten::addmm"] == 145 == 18 * 8 + 1
    frames = [features.size(2) for features in p.utterances(64)]
    # 37 of an utterance of at most 160 frames, one of 161 to 256: 6 · 37 + 22
    assert sum(37 if length <= 160 else length <= 256 for length in frames) == 244 == slow
    assert len(frames) == 64 and sum(length > 256 for length in frames) == 36


def test_the_profile_counts_what_ran_and_adds_up_the_forwards():
    before, model = torch.get_num_threads(), encoder(2)
    features = [p.mel_features(frames, seed=frames) for frames in ONE_OF_EACH]
    found = p.profile_encoder(model, features, threads=2)
    assert torch.get_num_threads() == before
    rows, wanted = {row.name: row for row in found}, totals(p.calls_by_part(2, forwards=3))
    slow = (2 * 2 + 1) + 1 + 0
    assert rows["aten::_slow_conv2d_forward"].calls == slow
    assert rows["aten::mkldnn_convolution"].calls == wanted.pop("aten::convolution") - slow
    assert rows["aten::copy_"].calls == wanted.pop("aten::copy_") + slow
    assert {name: rows[name].calls for name in wanted} == wanted
    assert rows["aten::linear"].total_cpu_us > rows["aten::addmm"].total_cpu_us > 0
    with pytest.raises(ValueError, match=r"in training mode, but what is measured is inference: call \.eval"):
        p.profile_encoder(model.train(), features[:1])


def test_every_call_comes_from_the_part_that_is_said():
    wanted, model = p.calls_by_part(2), encoder(2)
    operators = {operator for _, operator in wanted}
    counted = p.calls_in_parts(model, [p.mel_features(257, seed=1)], threads=2)
    assert {key: calls for key, calls in counted.items() if key[1] in operators} == wanted
    assert not model.pre_encode._forward_hooks and not model.layers[0]._forward_pre_hooks


def test_work_is_that_of_the_formulas_and_of_torchs_counter():
    from torch.utils.flop_counter import FlopCounterMode

    frames, quarter, d, layers = 257, 65, 512, 2
    model, features = encoder(layers), p.mel_features(257, seed=1)
    rows = {row.name: row for row in p.profile_encoder(model, [features])}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(features, torch.tensor([frames]))
    by_torch = {str(operator): flops for operator, flops in counter.get_flop_counts()["Global"].items()}
    for name in ("addmm", "mm", "bmm"):
        assert rows[f"aten::{name}"].flops == by_torch[f"aten.{name}"] > 0, name
    assert sum(rows[name].flops for name in CONVOLUTIONS & set(rows)) == by_torch["aten.convolution"]
    weights, out = 4 * layers * d * d, 4 * layers * (2 * quarter - 1) * d
    assert rows["aten::mm"].bytes == weights + 2 * out
    assert rows["aten::native_batch_norm"].flops == layers * 2 * d * quarter


# -- one forward as a tree -----------------------------------------------------------------------------------


def every(span):
    yield span
    for child in span.children:
        yield from every(child)


def test_every_call_and_all_time_is_in_the_tree_once():
    model = encoder(3, d_model=32, n_heads=2, subsampling_channels=8)
    whole = tree.forward_tree(model, p.mel_features(60, seed=1), runs=2, threads=1)
    root = whole.root

    def find(span, *names):
        return find(next(c for c in span.children if c.name == names[0]), *names[1:]) if names else span

    def parts(span):
        return [child.name for child in span.children if child.kind == "part"]

    def calls(name):
        return sum(span.calls for span in every(root) if span.name == name)

    assert parts(root) == ["pre_encode", "pos_enc", "layers.0", "layers.1", "layers.2"]
    assert parts(find(root, "layers.1"))[:3] == ["norm_feed_forward1", "feed_forward1", "norm_self_att"]
    assert find(root, "layers.0", "self_attn", "linear_q", "aten::addmm").kind == "operator"
    assert calls("aten::addmm") == 3 * 8 + 1 and calls("aten::bmm") == 3 * 3 and calls("aten::mm") == 3
    assert calls("aten::linear") == 0  # it only hands on
    for span in every(root):
        assert span.own_us >= 0 and span.us == pytest.approx(span.own_us + sum(c.us for c in span.children))
        assert span.kind == "part" or not span.children
    assert root.us == pytest.approx(sum(span.own_us for span in every(root)))

    merged = whole.merged().root
    assert parts(merged) == ["pre_encode", "pos_enc", "layers.*"] and merged.us == pytest.approx(root.us)
    layers = find(merged, "layers.*")
    assert layers.calls == 3 and find(layers, "self_attn", "aten::bmm").calls == 9
    assert whole.what == "0.6 s of speech, 1 thread, medians of 2 forwards"


def test_what_cannot_be_measured_leaves_no_labels_behind():
    model, features = encoder(d_model=32, n_heads=2, subsampling_channels=8), p.mel_features(60, 1)
    for given, runs, sentence in ((features, 0, "runs is 0"), (features[0], 1, r"shape \(80, 60\)")):
        with pytest.raises(ValueError, match=sentence):
            tree.forward_tree(model, given, runs)
    with pytest.raises(ValueError, match="in training mode"):
        tree.forward_tree(model.train(), features, 1)
    model.eval().layers[0].norm_out.forward = lambda x: 1 / 0
    with pytest.raises(ZeroDivisionError), profiling.labelled([("layer", model.layers[0])]):
        model(features, torch.tensor([60]))
    assert not model.layers[0]._forward_hooks and not model.layers[0]._forward_pre_hooks


def test_a_kernel_with_the_number_of_an_operator_does_not_take_its_dtypes():
    """As torch 2.11 has them on a GPU: seen there, where all counting ended at the first such operator."""
    from types import SimpleNamespace

    from course_lib.speech import encoder_profile

    def read(number, shapes, dtypes):
        return SimpleNamespace(correlation_id=lambda: number, shapes=lambda: shapes, dtypes=lambda: dtypes)

    events = [SimpleNamespace(id=5), SimpleNamespace(id=6)]
    encoder_profile._take_dtypes(events, [read(5, [[2, 3]], ["float"]), read(5, [], []), read(6, [], [])])
    assert [event.input_dtypes for event in events] == [["float"], []]
