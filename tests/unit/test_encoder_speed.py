"""Measuring an encoder in many settings: every point is checked, none is invented, what cannot be is said."""

import sys
from types import SimpleNamespace

import pytest
import torch

from course_lib.measure import gpu_timing, hardware, machine, timing
from course_lib.speech import encoder_speed, encoder_variants
from course_lib.speech.conformer import ConformerEncoder
from course_lib.speech.encoder_speed import SpeedPoint, grid, measure
from course_lib.speech.encoder_variants import (
    CannotMeasure,
    Graphed,
    Setting,
    Variants,
    missing,
    working_bytes,
)


def small():
    torch.manual_seed(3)
    return ConformerEncoder(n_layers=1, d_model=16, n_heads=2, conv_kernel=5, pos_emb_max_len=60).eval()


BASE = Setting(frames=40)


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


def test_points_carry_what_was_measured(timed):
    settings = [BASE, BASE.but(batch=4), BASE.but(dtype="bfloat16"), BASE.but(dtype="int8")]
    points = measure(small(), settings, budget_s=7)
    assert [point.setting for point in points] == settings
    assert [point.seconds for point in points] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert [point.samples for point in points] == [5] * 4 and timed["budget_s"] == 7
    assert points[1].audio_per_s == pytest.approx(4 * 0.4 / 0.2)
    assert points[1].per_utterance_s == pytest.approx(0.05) and points[1].busy_s is None
    assert [point.error for point in points[:2]] == [0.0, 0.0]
    assert all(1e-4 < point.error < 0.1 for point in points[2:])


def test_a_wrong_variant_shows_in_the_error(timed, monkeypatch):
    real = Variants.forward

    def swapped(self, setting, features):
        if setting.dtype == "int8":
            features = features.flip(2)
        return real(self, setting, features)

    monkeypatch.setattr(Variants, "forward", swapped)
    points = measure(small(), [BASE, BASE.but(dtype="int8")], budget_s=1)
    assert points[0].error == 0 and points[1].error > 0.2


def test_the_numbers_of_threads_are_those_of_the_settings(timed, monkeypatch):
    monkeypatch.setattr(hardware, "threads", lambda: 4)
    seen = []
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 9)
    measure(small(), [BASE.but(threads=2), BASE, BASE.but(threads=3)], budget_s=1)
    assert timed["threads"] == 3  # what compare caps everything to
    assert seen[-4:-1] == [2, 1, 3] and seen[-1] == 9  # while timed; restored
    before = []
    encoder_speed._until_done(BASE.but(threads=2), lambda: before.append(seen[-1]))()
    assert before == [2]


def test_float32_is_float32_while_it_is_measured(timed, monkeypatch):
    """A "medium" that a notebook has set would have products rounded to bfloat16, on a CPU as well."""
    seen = []
    real = Variants.forward

    def spied(self, setting, features):
        forward = real(self, setting, features)
        return lambda: (
            seen.append((torch.get_float32_matmul_precision(), torch.is_grad_enabled())) or forward()
        )

    monkeypatch.setattr(Variants, "forward", spied)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        measure(small(), [BASE, BASE.but(batch=2)], budget_s=1)
        assert set(seen) == {("highest", False)}
        assert torch.get_float32_matmul_precision() == "medium" and torch.is_grad_enabled()
    finally:
        torch.set_float32_matmul_precision(before)


def test_rows_of_a_batch_are_the_same_in_every_batch():
    two, three = (encoder_speed._features(batch, 50, 80) for batch in (2, 3))
    assert torch.equal(two, three[:2]) and not torch.equal(three[0], three[1])
    assert three.shape == (3, 80, 50)


@pytest.mark.timing
def test_the_whole_way_on_this_machine():
    settings = [BASE.but(frames=100), BASE.but(frames=100, dtype="int8")]
    points = measure(small(), settings, budget_s=0.3)
    assert all(point.seconds > 0 and point.samples >= 3 for point in points)
    assert torch.is_grad_enabled() and torch.get_float32_matmul_precision() == "highest"


def test_a_compiled_encoder_is_the_same_encoder(monkeypatch):
    """Without the compiler: torch's "eager" backend traces, and calls what it traced."""
    real = torch.nn.Module.compile
    kept = []

    def traced(self, **options):
        kept.append(options)
        real(self, backend="eager", **options)

    monkeypatch.setattr(torch.nn.Module, "compile", traced)
    encoder = small()
    features = torch.randn(2, 80, 40)
    with torch.no_grad():
        forward = Variants(encoder).forward(BASE.but(batch=2, how="compiled"), features)
        wanted = encoder(features, torch.tensor([40, 40]))[0]
        assert torch.allclose(forward(), wanted, atol=1e-6)
    assert kept == [{"dynamic": False, "fullgraph": True}]
    assert encoder.layers[0]._compiled_call_impl is None  # the encoder that was given is as it was
    torch.compiler.reset()


def test_variants_are_made_once_and_leave_the_encoder_alone():
    encoder = small()
    variants = Variants(encoder)
    made = {dtype: variants._variant("cpu", dtype, "eager") for dtype in ("float32", "bfloat16", "int8")}
    assert made["float32"] is encoder
    assert all(variants._variant("cpu", dtype, "eager") is one for dtype, one in made.items())
    assert {weights.dtype for weights in made["bfloat16"].parameters()} == {torch.bfloat16}
    assert {weights.dtype for weights in encoder.parameters()} == {torch.float32}
    with pytest.raises(ValueError, match=r"training mode.*call \.eval\(\)"):
        Variants(small().train())


# -- what cannot be measured -------------------------------------------------------------------------------


def test_what_cannot_be_measured_is_a_sentence(monkeypatch):
    monkeypatch.setattr(hardware, "threads", lambda: 2)
    monkeypatch.setattr(machine, "missing", lambda need: f"No {need}.")
    assert missing(BASE) is None and missing(BASE.but(threads=2)) is None
    assert missing(BASE.but(device="cuda")) == "No torch-cuda."
    assert missing(BASE.but(how="graph")).startswith("A CUDA graph needs a GPU")
    assert missing(BASE.but(threads=3)).startswith("3 threads were asked for, and this process may use 2")


def test_memory_is_looked_at_before():
    encoder = small()
    assert working_bytes(Setting(2, 100), encoder) == 3 * 4 * 2 * 16 * 50 * 40
    assert working_bytes(Setting(2, 100, "bfloat16"), encoder) == 3 * 2 * 2 * 16 * 50 * 40
    assert missing(Setting(2, 100), encoder) is None
    assert "take a smaller batch" in missing(Setting(10**6, 10**5), encoder)


def test_the_others_go_on_when_asked_to(timed):
    said = []
    settings = [BASE, BASE.but(how="graph"), BASE.but(batch=2)]
    points = measure(small(), settings, budget_s=1, skip=said.append)
    assert [point.setting for point in points] == [BASE, BASE.but(batch=2)]
    assert said == [missing(BASE.but(how="graph"))]
    with pytest.raises(CannotMeasure, match="A CUDA graph needs a GPU"):
        measure(small(), settings, budget_s=1)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (RuntimeError("InvalidCxxCompiler: No working C++ compiler found"), "install g++"),
        (RuntimeError("out of\nmemory"), r"cannot be measured here \(RuntimeError: out of\)\."),
    ],
)
def test_a_compiler_that_fails_is_a_sentence(timed, monkeypatch, problem, words):
    real = Variants.forward

    def failing(self, setting, features):
        def fail():
            raise problem

        return fail if setting.how == "compiled" else real(self, setting, features)

    monkeypatch.setattr(Variants, "forward", failing)
    with pytest.raises(CannotMeasure, match=words) as caught:
        measure(small(), [BASE, BASE.but(how="compiled")], budget_s=1)
    assert "\n" not in str(caught.value)


def test_a_result_without_numbers_is_refused(timed):
    encoder = small()
    encoder.layers[0].norm_out.weight.data *= 1e37  # beyond bfloat16 no, beyond int8's float32 sums yes
    encoder.layers[0].norm_out.weight.data *= 1e3
    said = []
    assert measure(encoder, [BASE], budget_s=1, skip=said.append) == []
    assert "gives no finite numbers" in said[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch": 0}, "batch is 0"),
        ({"frames": 2.5}, "frames is 2.5"),
        ({"threads": True}, "threads is True"),
        ({"dtype": "float16"}, "dtype is 'float16', but it must be one of float32, bfloat16, int8"),
        ({"how": "fast"}, "how is 'fast'"),
        ({"device": "tpu"}, "device is 'tpu'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        Setting(**change)


def test_arguments_that_make_no_sense_are_refused():
    for settings, error, words in (
        ([], TypeError, "one Setting or more"),
        (["eager"], TypeError, "one Setting or more"),
        ([BASE, BASE], ValueError, "stands there twice"),
    ):
        with pytest.raises(error, match=words):
            measure(small(), settings)
    for budget in (0, -1, float("nan"), True, "3"):
        with pytest.raises(ValueError, match="budget_s is"):
            measure(small(), [BASE], budget)


# -- the chapter's sweeps ----------------------------------------------------------------------------------


def test_the_sweep_on_a_cpu():
    settings = grid("cpu", threads=6)
    assert settings[0] == Setting(1, 200, "float32", 6)
    assert len(set(settings)) == len(settings) < 30
    assert [one.batch for one in settings if one == settings[0].but(batch=one.batch)] == [1, 2, 4, 8, 16, 32]
    lengths = {one.frames for one in settings if one == settings[0].but(frames=one.frames)}
    assert lengths == {100, 200, 500, 1000, 2000}
    assert {one.threads for one in settings} == {1, 2, 4, 6}
    assert {(one.dtype, one.batch) for one in settings if one.dtype != "float32"} == {
        (dtype, batch) for dtype in ("bfloat16", "int8") for batch in (1, 8)
    }
    assert {one.how for one in settings} == {"eager", "compiled"}


def test_the_sweep_on_a_gpu():
    settings = grid("cuda")
    assert {one.device for one in settings} == {"cuda"} and {one.threads for one in settings} == {1}
    assert max(one.batch for one in settings) == 128 and {one.how for one in settings} == {
        "eager", "compiled", "graph"
    }  # fmt: skip
    assert len(grid("cpu", threads=2, small=True)) == 6


# -- a GPU's way, with stand-ins ---------------------------------------------------------------------------


class FakeCuda:
    """Notes what is asked of torch.cuda, in order."""

    def __init__(self):
        self.said = []
        outer = self

        class Stream:
            def wait_stream(self, other):
                outer.said.append(f"{self} waits for {other}")

            def __repr__(self):
                return "side"

        class Main(Stream):
            def __repr__(self):
                return "main"

        class Graph:
            def replay(self):
                outer.said.append("replay")

        self.Stream, self.CUDAGraph, self.main = Stream, Graph, Main()

    def current_stream(self):
        return self.main

    def synchronize(self):
        self.said.append("synchronize")

    def stream(self, stream):
        return Noted(self.said, f"on {stream}")

    def graph(self, graph, stream=None):
        return Noted(self.said, f"record on {stream}")


class Noted:
    def __init__(self, said, what):
        self.said, self.what = said, what

    def __enter__(self):
        self.said.append(self.what)

    def __exit__(self, *problem):
        self.said.append("end")


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(torch, "cuda", fake)
    return fake


def test_a_graph_is_recorded_on_the_stream_that_was_warmed_up(cuda):
    result = torch.zeros(1)

    def function():
        cuda.said.append("work")
        return result

    graphed = Graphed(function)
    assert cuda.said == [
        "side waits for main", "on side", "work", "work", "work", "end", "main waits for side",
        "record on side", "work", "end",
    ]  # fmt: skip
    cuda.said.clear()
    assert graphed() is result and cuda.said == ["replay"]  # nothing but the replay is queued


def test_wall_time_on_a_gpu_ends_when_the_work_is_done(cuda):
    on_gpu = encoder_speed._until_done(Setting(device="cuda"), lambda: cuda.said.append("work"))
    on_gpu()
    assert cuda.said == ["work", "synchronize"]
    cuda.said.clear()
    encoder_speed._until_done(Setting(), lambda: cuda.said.append("work"))()
    assert cuda.said == ["work"]


def test_a_gpu_gets_wall_time_and_its_own_time(timed, monkeypatch):
    on_gpu = Setting(frames=40, device="cuda")

    class OnCpu(Variants):
        def forward(self, setting, features):
            return super().forward(setting.but(device="cpu"), features)

    monkeypatch.setattr(encoder_speed, "Variants", OnCpu)
    monkeypatch.setattr(encoder_speed, "missing", lambda *setting: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    budgets = []

    def samples(functions, rounds, budget_s):
        budgets.append(budget_s)
        assert all(function() is not None for function in functions.values())
        return {name: SimpleNamespace(median_s=0.04) for name in functions}

    monkeypatch.setattr(gpu_timing, "samples", samples)
    points = measure(small(), [on_gpu, on_gpu.but(batch=2)], budget_s=8)
    assert [(point.seconds, point.busy_s) for point in points] == [
        (pytest.approx(0.1), 0.04), (pytest.approx(0.2), 0.04)
    ]  # fmt: skip
    assert timed["budget_s"] == 6 and budgets == [2]
    assert timed["threads"] == 2  # for two and more compare takes wall time


def test_importing_loads_no_torch():
    import subprocess

    code = (
        "import sys; from course_lib.speech import encoder_speed, encoder_recordings, costs; "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_point_of_a_setting_in_words():
    assert str(Setting(8, 500, "int8", 2)) == "batch 8 of 5 s, int8, eager, 2 threads"
    assert str(Setting(1, 50, how="graph", device="cuda")) == "batch 1 of 0.5 s, float32, graph, on a GPU"
    assert SpeedPoint(Setting(2, 50), 0.5, 0.1, 3, 0.0).audio_per_s == 2.0
    assert encoder_variants.FRAMES_A_SECOND == 100
