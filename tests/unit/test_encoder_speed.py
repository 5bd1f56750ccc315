"""Measuring an encoder in many settings: every point is checked, none is invented, what cannot be is said."""

import warnings
from types import SimpleNamespace

import pytest

from course_lib.measure import hardware, machine, timing
from course_lib.speech import encoder_speed
from course_lib.speech.encoder_speed import grid, measure
from course_lib.speech.encoder_variants import CannotMeasure, Setting, Variants, missing, working_bytes

BASE = Setting(frames=40)


def imports():
    global torch, nn
    import torch
    from torch import nn


def small(n_layers=1):
    from course_lib.speech.conformer import ConformerEncoder

    torch.manual_seed(3)
    return ConformerEncoder(n_layers=n_layers, d_model=16, n_heads=2, conv_kernel=5).eval()


@pytest.fixture
def timed(monkeypatch):
    """No real timing: each function is called once and said to take 0.1 s, 0.2 s, … in the order given."""
    asked = {}

    def compare(functions, **options):
        asked.update(options, names=list(functions))
        for function in functions.values():
            function()
        rows = {name: SimpleNamespace(seconds=0.1 * place, spread_s=0.01, rounds=5)
                for place, name in enumerate(functions, 1)}  # fmt: skip
        return SimpleNamespace(row=rows.__getitem__)

    monkeypatch.setattr(timing, "compare", compare)
    return asked


@pytest.fixture
def changed_forward(monkeypatch):
    """Have `change(setting, forward)` take the place of a setting's forward."""
    real = Variants.forward

    def by(change):
        monkeypatch.setattr(
            Variants, "forward", lambda self, setting, x: change(setting, real(self, setting, x))
        )

    return by


def test_points_carry_what_was_measured(timed, changed_forward):
    settings = [BASE, BASE.but(batch=4), BASE.but(dtype="bfloat16"), BASE.but(dtype="int8")]
    points = measure(small(), settings, budget_s=7)
    assert [point.setting for point in points] == settings
    assert [point.seconds for point in points] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert [point.samples for point in points] == [5] * 4 and timed["budget_s"] == 7
    assert points[1].audio_per_s == pytest.approx(4 * 0.4 / 0.2)
    assert points[1].per_utterance_s == pytest.approx(0.05) and points[1].busy_s is None
    assert [point.error for point in points[:2]] == [0.0, 0.0]
    assert all(1e-4 < point.error < 0.1 for point in points[2:])
    changed_forward(lambda setting, forward: (lambda: -forward()) if setting.dtype == "int8" else forward)
    right, wrong = measure(small(), [BASE, BASE.but(dtype="int8")], budget_s=1)
    assert right.error == 0 and wrong.error > 0.2  # a wrong variant shows in the error
    two, three = (encoder_speed._features(batch, 50, 80) for batch in (2, 3))
    assert torch.equal(two, three[:2]) and not torch.equal(three[0], three[1])


def test_threads_precision_and_gradients_are_set_and_given_back(timed, monkeypatch, changed_forward):
    """A "medium" that a notebook has set would have products rounded to bfloat16, on a CPU as well."""
    monkeypatch.setattr(hardware, "threads", lambda: 4)
    threads, seen = [], set()
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 9)

    def noted(setting, forward):
        return lambda: seen.add((torch.get_float32_matmul_precision(), torch.is_grad_enabled())) or forward()

    changed_forward(noted)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        measure(small(), [BASE.but(threads=2), BASE, BASE.but(threads=3)], budget_s=1)
        assert torch.get_float32_matmul_precision() == "medium" and torch.is_grad_enabled()
    finally:
        torch.set_float32_matmul_precision(before)
    assert seen == {("highest", False)} and timed["threads"] == 3  # what compare caps everything to
    assert threads[-4:] == [2, 1, 3, 9]  # while timed; restored


def test_variants_leave_the_encoder_alone(monkeypatch):
    encoder, features = small(), torch.randn(2, 80, 40)
    variants, compile_module = Variants(encoder), nn.Module.compile
    # torch's "eager" backend traces, and calls what it traced: no compiler
    monkeypatch.setattr(
        nn.Module, "compile", lambda self, **how: compile_module(self, backend="eager", **how)
    )
    wanted = encoder(features, torch.tensor([40, 40]))[0]
    with torch.no_grad():
        for change, off in (({}, 0.0), ({"how": "compiled"}, 1e-6), ({"dtype": "bfloat16"}, 0.1)):
            y = variants.forward(BASE.but(batch=2, **change), features)()
            assert float((y - wanted).abs().max()) <= off, change
    assert {weights.dtype for weights in encoder.parameters()} == {torch.float32}
    assert encoder.layers[0]._compiled_call_impl is None
    torch.compiler.reset()
    with pytest.raises(ValueError, match=r"training mode.*call \.eval\(\)"):
        Variants(small().train())


# -- linear layers in int8 ---------------------------------------------------------------------------------


def test_int8_layers_are_linear_layers_up_to_rounding():
    from course_lib.speech.int8 import Int8Linear, int8_product, quantise

    torch.manual_seed(0)
    x = torch.randn(6, 40) * torch.tensor([1e-3, 1.0, 1e3, 0.0, 1.0, 1e-30])[:, None]
    q, scale = quantise(x)
    assert ((q * scale - x).abs() <= scale / 2 * 1.001).all()
    assert q.abs().amax(dim=1).tolist() == [127, 127, 127, 0, 127, 127]
    q, weight = (torch.randint(-127, 128, (rows, 64), dtype=torch.int8) for rows in (3, 24))
    assert torch.equal(int8_product(q, weight), (q.long() @ weight.long().t()).int())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing deprecated is used
        for bias in (True, False):
            linear, x = nn.Linear(64, 24, bias=bias), torch.randn(2, 7, 64)
            linear.weight[0] *= 1e4  # rows and channels have scales of their own
            x[0] *= 1e4
            y, wanted = Int8Linear(linear)(x), linear(x)
            assert y.shape == (2, 7, 24) and y.dtype == torch.float32
            # each product is off by half a step of either operand: 64 of them, at most 1/254 of the largest
            bound = 2.1 / 254 * (x.abs().amax(-1, keepdim=True) * linear.weight.abs().amax(1)) * 64
            assert ((y - wanted).abs() <= bound).all() and not torch.equal(y, wanted), bias
    with pytest.raises(ValueError, match=r"from 12 to 8, but int8 products need multiples of 8"):
        Int8Linear(nn.Linear(12, 8))


def test_the_int8_encoder_shares_all_but_its_linear_layers():
    from course_lib.speech.int8 import with_int8_linears

    encoder = small(n_layers=2)
    made = with_int8_linears(encoder)
    kinds = [type(module).__name__ for module in made.modules()]
    assert kinds.count("Int8Linear") == 2 * 9 + 1 and "Linear" not in kinds
    assert made.layers[1].norm_out.weight is encoder.layers[1].norm_out.weight
    assert all(type(module).__name__ != "Int8Linear" for module in encoder.modules())


# -- what cannot be measured -------------------------------------------------------------------------------


def test_what_cannot_be_measured_is_a_sentence(monkeypatch, timed):
    monkeypatch.setattr(hardware, "threads", lambda: 2)
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need}.")
    encoder, graph = small(), "A CUDA graph needs a GPU, and the device is the CPU"
    for setting, says in (
        (BASE.but(device="cuda"), "No torch-cuda."),
        (BASE.but(how="graph"), graph),
        (BASE.but(threads=3), "3 threads were asked for, and this process may use 2"),
        (Setting(10**6, 10**5), "take a smaller batch"),
    ):
        assert says in missing(setting, encoder), setting
    assert missing(BASE.but(threads=2), encoder) is None
    assert working_bytes(Setting(2, 100), encoder) == 3 * 4 * 2 * 16 * 50 * 40
    said, settings = [], [BASE, BASE.but(how="graph"), BASE.but(batch=2)]
    points = measure(encoder, settings, budget_s=1, skip=said.append)
    assert [point.setting for point in points] == [BASE, BASE.but(batch=2)] and said[0].startswith(graph)
    with pytest.raises(CannotMeasure, match=graph):
        measure(encoder, settings, budget_s=1)


def test_what_fails_is_a_sentence(timed, changed_forward):
    for problem, words in (
        (RuntimeError("InvalidCxxCompiler: No working C++ compiler found"), "install g++"),
        (RuntimeError("out of\nmemory"), r"cannot be measured here \(RuntimeError: out of\)\."),
    ):
        changed_forward(lambda setting, forward, problem=problem: lambda: (_ for _ in ()).throw(problem))
        with pytest.raises(CannotMeasure, match=words) as caught:
            measure(small(), [BASE], budget_s=1)
        assert "\n" not in str(caught.value)
    changed_forward(lambda setting, forward: lambda: forward() + float("inf"))
    said = []
    assert measure(small(), [BASE], budget_s=1, skip=said.append) == []
    assert "gives no finite numbers" in said[0]
    for settings, budget, words in (
        ([], 1, "one Setting or more"),
        ([BASE, BASE], 1, "stands there twice"),
        ([BASE], float("nan"), "budget_s is"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            measure(None, settings, budget)


# -- the chapter's sweeps ----------------------------------------------------------------------------------


def test_the_sweeps():
    settings = grid("cpu", threads=6)
    first = settings[0]
    assert first == Setting(1, 200, "float32", 6) and len(set(settings)) == len(settings) < 30
    assert [one.batch for one in settings if one == first.but(batch=one.batch)] == [1, 2, 4, 8, 16, 32]
    assert {one.threads for one in settings} == {1, 2, 4, 6}
    assert {one.how for one in settings} == {"eager", "compiled"}
    settings = grid("cuda")
    assert {(one.device, one.threads) for one in settings} == {("cuda", 1)}
    assert {one.how for one in settings} == {"eager", "compiled", "graph"}
    assert str(Setting(8, 500, "int8", 2)) == "batch 8 of 5 s, int8, eager, 2 threads"
    assert str(Setting(1, 50, how="graph", device="cuda")) == "batch 1 of 0.5 s, float32, graph, on a GPU"
